"""The two arithmetics that weights come in: exact rationals, and floats whose sums are correctly rounded.

Sums are over sets of contributions, never over arrival order: `math.fsum` gives the correctly rounded sum
whatever the order, so equal datasets give equal bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from wpinq.expr.nodes import Call, Constant, Expr, Lambda, show
from wpinq.expr.types import ListOf, Weighted
from wpinq.expr.values import Value

UNIT_ROUNDOFF = Fraction(1, 2**53)
"""The relative error of one correctly rounded float operation."""

SUM_ROUNDING_UNITS = Fraction(33, 32)
"""What adding up equal records may round: one roundoff a sum, and 1/32 for grids and for terms of second order."""

Weight = Any
"""A weight: a Fraction in exact arithmetic, a float otherwise. The arithmetic in use decides."""

Weights = dict[Value, Weight]
"""A weighted dataset while it is computed: record to non-zero weight."""


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """How numbers become weights and how weights are summed."""

    name: str
    number: Callable[[Any], Weight]
    total: Callable[[Iterable[Weight]], Weight]


def _exact_total(weights: Iterable[Fraction]) -> Fraction:
    return sum(weights, Fraction(0))


EXACT = Arithmetic("exact", Fraction, _exact_total)
FLOAT = Arithmetic("float", float, math.fsum)


def accumulate(contributions: Iterable[tuple[Value, Weight]], arithmetic: Arithmetic) -> Weights:
    """The dataset in which each record weighs the sum of its contributions; zero weights are dropped."""
    sums: dict[Value, Weight] = {}
    for record, weight in contributions:
        if weight == 0:
            continue
        held = sums.get(record)
        if held is None:
            sums[record] = weight
        elif type(held) is list:
            held.append(weight)
        else:
            sums[record] = [held, weight]
    results = {}
    for record, held in sums.items():
        weight = arithmetic.total(held) if type(held) is list else held
        if weight != 0:
            results[record] = weight
    return results


# Lattices of weights: a public rational g such that every weight is a multiple of it, for all data.
#
# Static, from the plan and the facts that its sources declare. Where one is proven, noise may be drawn on the multiples
# of g instead of the reals; its promise is then for neighbours that keep the facts, which are on the same lattice. Here
# is what operators need to say theirs: what divides the widths of a Shave, and the shares of a SelectMany.

_LONGEST = 64
"""The longest list of a length that depends on the record: the lattice is divided by the lcm of 1 … that."""
_SHOWN = 200
"""The most characters of a function in an error: its tables may hold millions."""


@dataclass(frozen=True, slots=True)
class NoLattice:
    """A step whose output lies on no lattice that the plan proves, and why."""

    step: str
    reason: str


def common_divisor(*numbers: Fraction) -> Fraction:
    """The largest rational that divides all: `gcd(a/b, c/d) = gcd(ad, cb)/(bd)`.

    Examples
    --------
    >>> common_divisor(Fraction(1, 2), Fraction(3, 4))
    Fraction(1, 4)
    """
    denominator = math.lcm(*(number.denominator for number in numbers))
    return Fraction(math.gcd(*(int(number * denominator) for number in numbers)), denominator)


def _shown(function: Lambda) -> str:
    text = show(function)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} …"


def of_widths(widths: Lambda, below: Fraction) -> Fraction | NoLattice:
    """What divides the pieces that a Shave by widths of each record makes of multiples of `below`."""
    step = f"Shave({_shown(widths)})"
    items = listed(widths.body.core)
    values = None if items is None else [_values(item) for item in items]
    if values is None or any(value is None for value in values):
        return NoLattice(step, "cuts by widths that depend on the record; give constants")
    positive = [width for value in values if value is not None for width in value if width > 0]
    return common_divisor(below, *positive)


def of_shares(function: Lambda, bound: int) -> Fraction | NoLattice:
    """What divides every share of a SelectMany: the weight of an element over the norm of its list."""
    step = f"SelectMany({_shown(function)})"
    assert isinstance(function.type, ListOf)
    items = listed(function.body.core)
    if not isinstance(function.type.element, Weighted):
        if items is not None:
            return Fraction(1, max(1, min(len(items), bound)))
        if bound <= _LONGEST:
            return Fraction(1, math.lcm(*range(1, max(2, bound + 1))))
        return NoLattice(step, f"divides by lengths up to {bound}; give a limit of at most {_LONGEST}")
    if items is None:
        return NoLattice(step, "has weights in a list whose elements depend on the record; write the list in place")
    return _weighted_share(items[:bound], step)


def _weighted_share(items: tuple[Expr, ...], step: str) -> Fraction | NoLattice:
    sizes: list[Fraction] = []
    signed = False
    for item in items:
        values = _values(item.arguments[1]) if isinstance(item, Call) and item.name == "weighted" else None
        magnitudes = set() if values is None else {abs(value) for value in values}
        if len(magnitudes) != 1:
            return NoLattice(step, "has weights that depend on the record beyond their sign; make them constants")
        signed = signed or any(value < 0 for value in values or ())
        sizes.append(magnitudes.pop())
    if signed and not _distinct([item.arguments[0] for item in items if isinstance(item, Call)]):
        return NoLattice(step, "may merge elements of opposite sign; tell its records apart by a constant field")
    nonzero = [size for size in sizes if size]
    if not nonzero:
        return Fraction(1)
    return common_divisor(*nonzero) / max(Fraction(1), sum(nonzero, Fraction(0)))


def listed(body: Expr) -> tuple[Expr, ...] | None:
    """The elements of a list written in place."""
    if isinstance(body, Constant) and isinstance(body.type, ListOf):
        return None if body.value is None else tuple(Constant(body.type.element, item) for item in body.value)
    if isinstance(body, Call) and body.name == "list" and not body.type.nullable:
        return body.arguments
    return None


def _values(expr: Expr) -> set[Fraction] | None:
    """The finitely many numbers that an expression can be, from its constants; None where that does not show."""
    if isinstance(expr, Constant):
        return None if isinstance(expr.value, (bool, str, tuple)) or expr.value is None else {Fraction(expr.value)}
    if isinstance(expr, Call) and expr.name == "where":
        yes, no = _values(expr.arguments[1]), _values(expr.arguments[2])
        return None if yes is None or no is None else yes | no
    if isinstance(expr, Call) and expr.name == "to_float":
        found = _values(expr.arguments[0])
        return None if found is None else {Fraction(float(value)) for value in found}  # rounded beyond 2⁵³
    return None


def _distinct(records: list[Expr]) -> bool:
    """Whether a field holds another constant in every record."""
    if not all(isinstance(record, Call) and record.name == "record" for record in records):
        return False
    columns = zip(*(record.children for record in records), strict=False)
    return any(
        all(isinstance(field, Constant) for field in column) and len({field.digest for field in column}) == len(records)
        for column in columns
    )
