"""Tables of people, the datasets that sources make of them, and random plans over them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any

import wpinq as wp
from tests.support.plans import SCHEMAS, Grower, Live, norm, random_record
from wpinq.expr.declarations import Person
from wpinq.expr.types import TupleOf, Type, type_from_annotation
from wpinq.expr.values import Value, canonical_bytes, order_key
from wpinq.plan.node import Node, sources
from wpinq.plan.operators.source import Source

Id = int | str
"""Who a person is: told apart, and never looked into."""


def kept_rows(ids: Iterable[Id], rows: Iterable[Value], type_: Type, at_most: int) -> dict[Id, tuple[Value, ...]]:
    """The rows of each person that count, in canonical order.

    Parameters
    ----------
    ids : iterable of int or str
        Whose the rows are.
    rows : iterable
        The rows, in canonical form.
    type_ : Type
        What a row is declared to be.
    at_most : int
        How many rows of one person count.
    """
    by_person: dict[Id, list[Value]] = {}
    for person, row in zip(ids, rows, strict=True):
        by_person.setdefault(person, []).append(row)
    return {person: _kept(theirs, type_, at_most) for person, theirs in by_person.items()}


def _kept(rows: list[Value], type_: Type, at_most: int) -> tuple[Value, ...]:
    if len(rows) > at_most:
        numbered = [(row, number) for row, times in Counter(rows).items() for number in range(1, times + 1)]
        numbered.sort(key=lambda copy: (place(copy[0], copy[1], type_), order_key(copy[0]), copy[1]))
        rows = [row for row, _ in numbered[:at_most]]
    return tuple(sorted(rows, key=order_key))


def place(row: Value, number: int, type_: Type) -> str:
    """What orders the rows of a person: SHA-256, in hexadecimal, of the row's canonical bytes and its number.

    >>> from wpinq.expr.types import INT
    >>> place(7, 1, INT)[:16] < place(7, 2, INT)[:16]
    False
    """
    return hashlib.sha256(f"{canonical_bytes(row, type_).hex().upper()}:{number}".encode("ascii")).hexdigest()


def weigh(kept: Mapping[Id, Sequence[Value]], person: Person) -> dict[Value, float]:
    """The dataset of what is kept: each row weighs 1, or each person's list of rows; equal ones add up.

    >>> weigh({"a": (1, 3, 3), "b": (1,)}, Person("who", at_most=3))
    {1: 2.0, 3: 2.0}
    >>> weigh({"a": (1, 3), "b": (1, 3)}, Person("who", at_most=3, nested=True))
    {(1, 3): 2.0}
    """
    records = kept.values() if person.nested else (row for rows in kept.values() for row in rows)
    return {record: float(count) for record, count in Counter(records).items()}


Table = list[tuple[int, Any]]
"""Whose a row is, and the row."""

PEOPLE = 4


def counted(source: Source, table: Table) -> dict[Any, Fraction]:
    """The dataset that a source makes of a table."""
    assert source.person is not None
    ids, rows = [who for who, _ in table], [row for _, row in table]
    kept = kept_rows(ids, rows, source.row, source.person.at_most)
    return {record: Fraction(weight) for record, weight in weigh(kept, source.person).items()}


def random_table(rng: Random, row: Type) -> Table:
    """Rows of a few people, from so few values that they meet, some people with many rows and many times the same."""
    table: Table = []
    for who in range(PEOPLE):
        own = [random_record(rng, row) for _ in range(rng.choice([1, 1, 2, 3]))]
        table += [(who, rng.choice(own)) for _ in range(rng.choice([0, 1, 2, 3, 6]))]
    rng.shuffle(table)
    return table


@dataclass(frozen=True)
class PeopleCase:
    """A plan and the tables that its sources are made of."""

    plan: Node
    tables: dict[str, Table]

    def data(self, without: int | None = None) -> dict[str, dict[Any, Fraction]]:
        """The datasets, with one person's rows left out of every table."""
        return {
            name: counted(source, [(who, row) for who, row in self.tables[name] if who != without])
            for name, source in sources([self.plan]).items()
        }


class PeopleGrower(Grower):
    """A plan under construction over up to three tables of the same people, which share an account."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.data: dict[str, dict[Any, Fraction]] = {}
        self.live: list[Live] = []
        self.tables: dict[str, Table] = {}
        first = rng.choice(SCHEMAS)
        for name in ("a", "b", "c")[: rng.choice([1, 2, 3])]:
            schema = first if rng.random() < 0.6 else rng.choice(SCHEMAS)
            row = type_from_annotation(tuple[schema] if isinstance(schema, tuple) else schema)
            if not isinstance(row, TupleOf) or None in row.names:
                row = TupleOf(("x",), (row,))  # rows that say whose they are have named fields
            nested = rng.random() < 0.25
            self.tables[name] = random_table(rng, row)
            query = wp.source(
                name, row, cap=100, person="who", at_most=rng.choice([1, 2, 3]), nested=nested, account="people"
            )
            (source,) = sources([query.plan]).values()
            self.data[name] = counted(source, self.tables[name])
            assert norm(self.data[name]) <= 100
            self.live.append(Live(query.plan, self.data[name], 0))


def people_case(rng: Random, root: str) -> PeopleCase:
    """A plan with this operator at its root, on tables of people."""
    while True:
        grower = PeopleGrower(rng)
        if not all(grower.data.values()):
            continue
        grown = grower.grow(root)
        if grown is not None:
            return PeopleCase(grown.node, {name: grower.tables[name] for name in sources([grown.node])})
