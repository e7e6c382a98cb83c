"""Declarations of sources by the type of a row, for tests of reading."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from wpinq.expr.declarations import Person
from wpinq.expr.types import Type
from wpinq.plan.domain import Sizes
from wpinq.plan.operators.source import Source


def declared(
    type_: Type,
    *,
    unit_weight: Any = 1,
    cap: Any = 2**30,
    facts: Iterable[str] = (),
    person: Person | None = None,
    sizes: Sizes | None = None,
) -> Source:
    """The source of rows of a type; where a person is declared, the unit weight follows."""
    record = type_ if person is None else person.record(type_)
    weight = Fraction(unit_weight if person is None else person.weight)
    return Source("s", record, repr(record), "one row", weight, Fraction(cap), tuple(sorted(facts)), person, sizes)
