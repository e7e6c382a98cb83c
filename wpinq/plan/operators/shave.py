"""Shave: a heavy record into many records of given weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import ClassVar

from wpinq.errors import PlanError, described
from wpinq.expr.compile import compile_lambda, limited
from wpinq.expr.nodes import Lambda, show
from wpinq.expr.types import FLOAT, INT, ListOf, Type, record_type
from wpinq.expr.values import Value
from wpinq.plan.arithmetic import Arithmetic, NoLattice, Weight, common_divisor, public_numbers, written_list
from wpinq.plan.domain import NUMBERED, Counted, NoCount, RowBounds, Sized, both, kept, numbered, pieces, times
from wpinq.plan.operator import InputChange, Parameter, Parameters, register
from wpinq.plan.operators.families import RecordKeyed
from wpinq.plan.operators.select_many import required_bound
from wpinq.plan.sensitivity.change import UNKNOWN, Change, record
from wpinq.plan.sensitivity.weights import Fields, KnownProportions, WeightBound

#: The most pieces, cap over width, into which a plan may cut one record.
PIECES_LIMIT = 2**40


@register
@dataclass(frozen=True, slots=True)
class Shave(RecordKeyed):
    """Cut each record into pieces of given widths, numbered from 0.

    `out((x, i)) = max(0, min(s_i, A(x) − Σ_{j<i} s_j))`   (paper, section 2.8)

    The widths are a constant > 0, repeated as long as there is weight, or a list for each record. A negative or null
    width of a list counts as 0. The output has the fields `record` and `index`. Negative weights count as 0.
    A list of widths needs a static bound or a public `limit`. A constant stands for the fraction that it is the float
    of, if one has a denominator of at most 10⁶: 0.02 is 1/50.

    Examples
    --------
    >>> import wpinq as wp
    >>> numbers = wp.source("numbers", int, weights=True)
    >>> wp.evaluate(numbers.shave(1.0), {"numbers": {1: 0.75, 2: 2.0}})
    WeightedDataset({(1, 0): 0.75, (2, 0): 1.0, (2, 1): 1.0})
    """

    name: ClassVar[str] = "Shave"
    method: ClassVar[str] = "shave"
    parameters: ClassVar[Parameters] = (Parameter("widths", "widths"), Parameter("limit", "limit", optional=True))
    stability: ClassVar[str] = "each piece is a clamp of the weight, and their total moves as the weight does"

    widths: float | Lambda
    limit: int | None = None

    def output_type(self, *inputs: Type) -> Type:
        if isinstance(self.widths, Lambda):
            type_ = self.widths.type
            if not isinstance(type_, ListOf) or type_.element not in (FLOAT, INT):
                raise PlanError(f"Shave: the widths must be a list of numbers, not {type_}")
            assert self.bound is not None
        elif not (math.isfinite(self.widths) and self.widths > 0):
            raise PlanError(f"Shave: the width must be a positive finite number, not {described(self.widths)}")
        elif self.limit is not None:
            required_bound(self.name, None, self.limit, "the pieces")
        return record_type({"record": inputs[0], "index": INT})

    @property
    def width(self) -> Fraction:
        """The constant width."""
        assert not isinstance(self.widths, Lambda)
        short = Fraction(self.widths).limit_denominator(10**6)
        return short if float(short) == self.widths else Fraction(self.widths)

    @property
    def bound(self) -> int | None:
        """The most widths that one record can have; None where only its weight bounds them."""
        if isinstance(self.widths, Lambda):
            assert isinstance(self.widths.type, ListOf)
            return required_bound(self.name, self.widths.type.bound, self.limit, "the list of widths")
        return self.limit if self.limit is None else required_bound(self.name, None, self.limit, "the pieces")

    def norm_bound(self, *inputs: Fraction) -> Fraction:
        if not isinstance(self.widths, Lambda) and self.limit is None:
            pieces = inputs[0] / self.width
            if pieces > PIECES_LIMIT:
                raise PlanError(
                    f"Shave({self.widths!r}): a record may weigh up to {_rounded(inputs[0])} here and would be cut "
                    f"into {_rounded(pieces)} pieces; declare a smaller cap= on the source, shave wider, or give "
                    "a public limit="
                )
        return inputs[0]

    def bounded_function(self, function: Lambda) -> Lambda:
        return function if self.bound is None else limited(function, self.bound)

    def unit_records(self, inputs: tuple[int, ...], norm_bound: Fraction) -> int:
        limited = None if self.bound is None else inputs[0] * self.bound
        if isinstance(self.widths, Lambda):
            assert limited is not None
            return limited
        pieces = inputs[0] + math.ceil(norm_bound / self.width)  # whole ones share the norm
        return pieces if limited is None else min(pieces, limited)

    def rows(self, *inputs: Sized) -> RowBounds:
        (below,) = inputs
        if isinstance(self.widths, Lambda):
            one, made = self.bound, times(below.rows.records, self.bound)
        else:
            made, one = pieces(below, self.width, self.bound)
        a_key: dict[Fields, int] = {}
        for fields, most in below.rows.a_key.items():
            inside = frozenset((0, *path) for path in fields)
            a_key[inside | {(1,)}] = most
            if one is not None:
                a_key[inside] = most * one
        return RowBounds(made, kept(a_key), both(below.rows.records, made))

    def rounding_units(self) -> Fraction:
        # The remainder of a division is exact; pieces of widths of each record are put on a grid and rounded twice.
        # A rounded width moves its pieces, and what is left.
        return Fraction(3 if isinstance(self.widths, Lambda) else 0 if self.width == self.widths else 2)

    def nonnegative(self, *inputs: bool) -> bool:
        return True  # negative weights count as 0

    def lattice(self, *inputs: Fraction) -> Fraction | NoLattice:
        if isinstance(self.widths, Lambda):
            return _of_widths(self.widths, inputs[0])
        return common_divisor(inputs[0], self.width)

    def counted(self, *inputs: Counted) -> Counted | NoCount:
        (things,) = inputs
        if not isinstance(self.widths, Lambda):
            return numbered(things, self.width)
        if _of_widths(self.widths, things.factor) != things.factor:
            return NoCount(self.name, "cuts by widths other than the weight of one thing")
        return Counted(things.factor, things.of.removesuffix(NUMBERED) + NUMBERED)

    def change(self, *inputs: InputChange) -> Change:
        # every piece is monotone in the weight, and widths are a function of the record alone
        return inputs[0].change.mapped(lambda term: record((term, UNKNOWN)))

    def proportions(self, *inputs: InputChange) -> KnownProportions:
        (below,) = inputs
        if isinstance(self.widths, Lambda) or self.bound is not None:
            return ()  # weight may be cut off
        return tuple(of.mapped(lambda term: record((term, UNKNOWN))) for of in below.proportions)

    def weight_bound(self, *inputs: WeightBound) -> WeightBound:
        (below,) = inputs
        a_key = {frozenset((0, *path) for path in fields): bound for fields, bound in below.a_key.items()}
        return WeightBound(below.largest, a_key)

    def record_evaluator(self, arithmetic: Arithmetic) -> Callable[..., Iterable[tuple[Value, Weight]]]:
        if isinstance(self.widths, Lambda):
            return self._varying(self.widths, arithmetic)
        return self._constant(arithmetic.number(self.width), arithmetic)

    def _constant(self, width: Weight, arithmetic: Arithmetic) -> Callable[..., Iterable[tuple[Value, Weight]]]:
        # fmod is exact, so every piece is exact: no error grows with the number of pieces
        remainder = math.fmod if arithmetic.name == "float" else (lambda weight, width: weight % width)
        limit = self.bound

        def pieces(record: Value, weight: Weight) -> Iterable[tuple[Value, Weight]]:
            if weight <= 0:
                return
            rest = remainder(weight, width)
            ratio = (weight - rest) / width
            whole = limit if limit is not None and ratio > limit else round(ratio)
            for index in range(whole):
                yield (record, index), width
            if rest and (limit is None or whole < limit):
                yield (record, whole), rest

        return pieces

    def _varying(self, widths: Lambda, arithmetic: Arithmetic) -> Callable[..., Iterable[tuple[Value, Weight]]]:
        function, bound = compile_lambda(self.bounded_function(widths)), self.bound

        def pieces(record: Value, weight: Weight) -> Iterable[tuple[Value, Weight]]:
            left = Fraction(weight)  # exact in either arithmetic; rounded once, as a piece is emitted
            for index, width in enumerate(islice(function(record) or (), bound)):
                if left <= 0:
                    return
                if width is not None and width > 0:
                    piece = min(Fraction(width), left)
                    left -= piece
                    yield (record, index), arithmetic.number(piece)

        return pieces


def _of_widths(widths: Lambda, below: Fraction) -> Fraction | NoLattice:
    """A divisor of the pieces that widths of each record make of multiples of `below`."""
    items = written_list(widths.body.core)
    values = None if items is None else [public_numbers(item) for item in items]
    if values is None or any(value is None for value in values):
        return NoLattice(f"Shave({show(widths)})", "cuts by widths that depend on the record; give constants")
    return common_divisor(below, *(width for value in values for width in value or () if width > 0))


def _rounded(number: Fraction) -> str:
    """The number for people, even where it is out of the range of floats."""
    return f"{float(number):.6g}" if number < 2**1000 else f"2^{math.floor(number).bit_length() - 1}"
