"""Tables of people, the datasets that sources make of them, and random plans over them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any

import wpinq as wp
from tests.support.plans import SCHEMAS, Grower, Live, norm, random_record
from wpinq.expr.types import Type, type_from_annotation
from wpinq.ingest.people import kept_rows, weigh
from wpinq.plan.node import Node, sources
from wpinq.plan.operators.source import Source

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
            row = type_from_annotation(tuple[schema] if isinstance(schema, tuple) else schema)  # type: ignore[valid-type]
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
