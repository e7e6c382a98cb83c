"""Families of operators: those that work on each record, and those that work on each key."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction

from wpinq.expr.values import Value
from wpinq.plan.arithmetic import SUM_ROUNDING_UNITS, Arithmetic, Weight, Weights, accumulate
from wpinq.plan.domain import RowBounds, Sized
from wpinq.plan.operator import Operator


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
        return accumulate(
            (
                (image, weight * coefficient)
                for record, weight in inputs[0].items()
                for image, coefficient in images(record)
            ),
            arithmetic,
        )


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
