"""Families of operators: on each record, on each key, on two datasets of one record type."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from typing import ClassVar

from wpinq.errors import PlanError
from wpinq.expr.types import Type, unify
from wpinq.expr.values import Value
from wpinq.plan.arithmetic import SUM_ROUNDING_UNITS, Arithmetic, Weight, Weights, accumulate, common_divisor
from wpinq.plan.domain import Counted, Domain, Inference, NoCount, RowBounds, Sized, both
from wpinq.plan.operator import InputChange, Operator, Parameter
from wpinq.plan.sensitivity.change import Change, ChangeBounds, added, together
from wpinq.plan.sensitivity.weights import of_both


class PerRecord(Operator):
    """Operators linear in the weights, with images of each record.

    The coefficients of the images of a record have a total of at most one.

    Stability: a change of one record's weight by w moves the output by at most w times the coefficients.
    """

    @abstractmethod
    def images(self, arithmetic: Arithmetic) -> Callable[[Value], Iterable[tuple[Value, Weight]]]:
        """The function from a record to its images and their coefficients."""

    def norm_bound(self, *inputs: Fraction) -> Fraction:
        return inputs[0]

    def evaluate(self, inputs: tuple[Weights, ...], arithmetic: Arithmetic) -> Weights:
        images = self.images(arithmetic)
        contributions = (
            (image, weight * coefficient)
            for record, weight in inputs[0].items()
            for image, coefficient in images(record)
        )
        return accumulate(contributions, arithmetic)


class Passing(PerRecord):
    """Operators whose records pass their whole weight on to one image, or none."""

    def rounding_units(self) -> Fraction:
        return SUM_ROUNDING_UNITS  # of images that are equal

    def nonnegative(self, *inputs: bool) -> bool:
        return inputs[0]

    def rows(self, *inputs: Sized) -> RowBounds:
        return replace(inputs[0].rows, handled=inputs[0].rows.records)  # a record leaves one at most

    def lattice(self, *inputs: Fraction) -> Fraction:
        return inputs[0]


class Keyed(Operator):
    """Operators that split every input by a key and work on the parts of each key independently.

    Stability: it suffices to show it for the parts of one key.
    """

    @abstractmethod
    def keys(self) -> tuple[Callable[[Value], Value], ...]:
        """The key function of each input."""

    @abstractmethod
    def part_evaluator(self, arithmetic: Arithmetic) -> Callable[..., Iterable[tuple[Value, Weight]]]:
        """The function `(key, *parts)` that gives the output of one key.

        The parts are datasets, perhaps empty.
        """

    def evaluate(self, inputs: tuple[Weights, ...], arithmetic: Arithmetic) -> Weights:
        parts: dict[Value, tuple[Weights, ...]] = {}
        for position, (weights, key) in enumerate(zip(inputs, self.keys(), strict=True)):
            for record, weight in weights.items():
                value = key(record)
                part = parts.get(value)
                if part is None:
                    part = parts[value] = tuple({} for _ in inputs)
                part[position][record] = weight
        evaluate_part = self.part_evaluator(arithmetic)
        return accumulate((output for key, part in parts.items() for output in evaluate_part(key, *part)), arithmetic)


class RecordKeyed(Keyed):
    """Keyed operators with the whole record as key.

    A record's output depends on its own weights alone.
    """

    @abstractmethod
    def record_evaluator(self, arithmetic: Arithmetic) -> Callable[..., Iterable[tuple[Value, Weight]]]:
        """The function `(record, *weights)` that gives a record's output; absent records weigh 0."""

    def keys(self) -> tuple[Callable[[Value], Value], ...]:
        return (lambda record: record,) * self.arity

    def part_evaluator(self, arithmetic: Arithmetic) -> Callable[..., Iterable[tuple[Value, Weight]]]:
        evaluate_record = self.record_evaluator(arithmetic)
        return lambda record, *parts: evaluate_record(record, *(part.get(record, 0) for part in parts))


class Merging(Operator):
    """Operators on two datasets of one record type: a sum, a difference or one of two weights."""

    arity = 2
    parameters = (Parameter("other", "query"),)

    def output_type(self, *inputs: Type) -> Type:
        left, right = inputs
        common = unify(left, right)
        if common is None:
            raise PlanError(
                f"{self.name} needs both sides to have one record type, got {left} and {right}: select one side into "
                "the other's form first (for fields, e.g. `lambda e: (e.dst, e.src)` or F.record(src=e.dst, dst=e.src))"
            )
        return common

    def norm_bound(self, *inputs: Fraction) -> Fraction:
        return sum(inputs, Fraction(0))

    def rounding_units(self) -> Fraction:
        return SUM_ROUNDING_UNITS  # also where it is one of two weights: an engine may put it together from parts

    def lattice(self, *inputs: Fraction) -> Fraction:
        return common_divisor(*inputs)

    def rows(self, *inputs: Sized) -> RowBounds:
        left, right = (below.rows for below in inputs)
        every = both(left.records, right.records)
        return RowBounds(every, of_both(left.a_key, right.a_key), every)

    def domain(self, inference: Inference, *inputs: Domain | None) -> Domain | None:
        return inference.merge(inputs)

    def counted(self, *inputs: Counted) -> Counted | NoCount:
        left, right = inputs
        if left.factor != right.factor:
            return NoCount(self.name, f"adds things of weight {left.factor} and {right.factor}")
        return self.counted_together(left, right)

    @abstractmethod
    def counted_together(self, left: Counted, right: Counted) -> Counted:
        """The things that two sides count together, where one weighs the same on both."""


class Combination(Merging):
    """Sums of the inputs with a coefficient of 1 or -1 each.

    Stability: the triangle inequality.
    """

    coefficients: ClassVar[tuple[int, int]]

    def nonnegative(self, *inputs: bool) -> bool:
        return all(inputs) and min(self.coefficients) >= 0

    def change(self, *inputs: InputChange) -> Change:
        sides = zip(self.coefficients, (moved.change for moved in inputs), strict=True)
        return together(side if sign > 0 else side.each(lambda move: move.reversed) for sign, side in sides)

    def evaluate(self, inputs: tuple[Weights, ...], arithmetic: Arithmetic) -> Weights:
        contributions = (
            (record, coefficient * weight)
            for coefficient, weights in zip(self.coefficients, inputs, strict=True)
            for record, weight in weights.items()
        )
        return accumulate(contributions, arithmetic)


ONE_SIDE = "both sides at one record: the larger"


class Extreme(Merging, RecordKeyed):
    """One of the two weights of each record, absent records weighing 0.

    Attributes
    ----------
    which : str
        Which of two counts it gives, in words.
    """

    choose: ClassVar[Callable[[Weight, Weight], Weight]]
    which: ClassVar[str]

    def counted_together(self, left: Counted, right: Counted) -> Counted:
        of = left.of if left.of == right.of else f"{left.of} or {right.of}"
        return Counted(left.factor, f"{of}, {self.which}", left.even and right.even)

    def change(self, *inputs: InputChange) -> Change:
        # Monotone in both sides, whatever the signs. One record known to both moves as the side that moves it further.
        left, right = (moved.change for moved in inputs)
        shared = {term for term in left.atoms if term.known and term in right.atoms}
        atoms = [(term, move) for side in (left, right) for term, move in side.atoms.items() if term not in shared]
        for term in shared:
            one, other = left.atoms[term], right.atoms[term]
            gain, loss = max(one.increase, other.increase), max(one.decrease, other.decrease)
            atoms.append((term, ChangeBounds.of(gain, loss, max(gain, loss))))
        return added(atoms, left.rules | right.rules | ({ONE_SIDE} if shared else set()))

    def record_evaluator(self, arithmetic: Arithmetic) -> Callable[..., Iterable[tuple[Value, Weight]]]:
        choose = type(self).choose
        return lambda record, left, right: ((record, choose(left, right)),)
