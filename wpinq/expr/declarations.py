"""The facts that a source may declare: what rewrites may use, and what every bill must say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from types import MappingProxyType

from wpinq.errors import PlanError
from wpinq.expr.types import TupleOf, Type

FACTS: Mapping[str, str] = MappingProxyType(
    {
        "nonnegative": "no record has a negative weight",
        "unit_weights": "every record weighs exactly 1",
        "whole_weights": "every record weighs a whole number, of rows that are equal to it",
        "symmetric": "the records (a, b) and (b, a) weigh the same",
        "simple": "no record is (a, a), and never are both (a, b) and (b, a) there",
    }
)
"""Fact name -> what the curator promises. It narrows which neighbours are covered, so bills print it."""


def check_listed(facts: Iterable[str]) -> Iterable[str]:
    """Facts in a list; PlanError where one stands there alone, which Python would take for a list of its letters."""
    if isinstance(facts, str):
        raise PlanError(f'facts are a list: facts=["{facts}"]')
    return facts


def check_facts(facts: Iterable[str], type_: Type, unit_weight: Fraction) -> None:
    """Refuse facts that do not exist, that records of the type cannot have, or that no unit of this weight keeps.

    Raises
    ------
    PlanError
        With what to declare instead.

    Notes
    -----
    Two datasets that keep `symmetric` and differ at all, but for loops, differ by a weight in each of two records. With
    a unit weight of 1 a whole edge would be two units, and half the loss would be billed.
    """
    declared = set(facts)
    unknown = sorted(declared - set(FACTS))
    if unknown:
        raise PlanError(
            f"there is no fact {', '.join(map(repr, unknown))}: a source can declare {', '.join(sorted(FACTS))}"
        )
    for fact in sorted(declared & {"symmetric", "simple"}):
        pairs = isinstance(type_, TupleOf) and len(type_.elements) == 2 and _alike(*type_.elements)
        if not pairs or type_.nullable:
            raise PlanError(f"the fact {fact!r} is for records of two fields of one type, never null, not for {type_}")
    if {"symmetric", "simple"} <= declared:
        raise PlanError("no edge is both symmetric and simple: declare one of the two facts")
    if "symmetric" in declared and unit_weight < 2:
        raise PlanError(
            "with the fact 'symmetric' one edge is two records, (a, b) and (b, a), of weight 2 together: declare "
            "unit_weight=2 (or more), for a smaller one bills less than one edge loses"
        )


def _alike(left: Type, right: Type) -> bool:
    """Whether two fields are of one type, and records in them are null alike, so that they lie in as many columns."""
    if isinstance(left, TupleOf) and isinstance(right, TupleOf) and left == right:
        return left.nullable == right.nullable and all(map(_alike, left.elements, right.elements))
    return left == right
