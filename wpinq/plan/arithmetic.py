"""The two arithmetics of weights: exact rationals, and floats with correctly rounded sums.

Sums are over sets of contributions, never in order of arrival: `math.fsum` gives the correctly rounded sum
whatever the order, so equal datasets give equal bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

from wpinq.expr.nodes import Call, Constant, Expr
from wpinq.expr.types import ListOf
from wpinq.expr.values import Value

#: The relative error of one correctly rounded float operation.
UNIT_ROUNDOFF = Fraction(1, 2**53)

#: The rounding of sums of equal records: one roundoff each, and 1/32 for second-order terms.
#: The 1/32 also covers grids.
SUM_ROUNDING_UNITS = Fraction(33, 32)

#: A weight: a Fraction in exact arithmetic, a float otherwise. The arithmetic in use decides.
Weight = Any

#: A weighted dataset while it is computed: record to non-zero weight.
Weights = dict[Value, Weight]


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """An arithmetic of weights: conversion from numbers, and sums."""

    name: str
    number: Callable[[Any], Weight]
    total: Callable[[Iterable[Weight]], Weight]


EXACT = Arithmetic("exact", Fraction, partial(sum, start=Fraction(0)))
FLOAT = Arithmetic("float", float, math.fsum)


def accumulate(contributions: Iterable[tuple[Value, Weight]], arithmetic: Arithmetic) -> Weights:
    """The sum of the contributions of each record; zero weights are dropped."""
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
# of g instead of the reals; its guarantee is then for neighbours that keep the facts, which are on the same lattice.


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


def written_list(body: Expr) -> tuple[Expr, ...] | None:
    """The elements of a list written in place."""
    if isinstance(body, Constant) and isinstance(body.type, ListOf):
        return None if body.value is None else tuple(Constant(body.type.element, item) for item in body.value)
    if isinstance(body, Call) and body.name == "list" and not body.type.nullable:
        return body.arguments
    return None


def public_numbers(expr: Expr) -> set[Fraction] | None:
    """The finite set of numbers that an expression can be, from its constants, or None."""
    if isinstance(expr, Constant):
        return None if isinstance(expr.value, (bool, str, tuple)) or expr.value is None else {Fraction(expr.value)}
    if isinstance(expr, Call) and expr.name == "where":
        yes, no = public_numbers(expr.arguments[1]), public_numbers(expr.arguments[2])
        return None if yes is None or no is None else yes | no
    if isinstance(expr, Call) and expr.name == "to_float":
        found = public_numbers(expr.arguments[0])
        return None if found is None else {Fraction(float(value)) for value in found}  # rounded beyond 2⁵³
    return None
