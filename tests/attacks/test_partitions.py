"""Partitions: parts that are billed as one although one unit is in several of them.

The attack: parts of two partitions, of a function that is written twice, of a source that is joined with itself, or of
one record that becomes several, pay the maximum while one unit moves all of them. What is billed is at least what the
worst unit moves, found by trying all of them in exact arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

import wpinq as wp
from tests.support.parameters import for_each
from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.engines import reference
from wpinq.plan.arithmetic import EXACT

ROWS = wp.source("rows", a=int, b=int)
SAME = wp.source("rows", a=int, b=int)

BATCHES: dict[str, Callable[[], list[Query]]] = {
    "parts of one": lambda: list(ROWS.partition(lambda r: r.a, [0, 1, 2]).values()),
    "parts by two functions": lambda: [
        *ROWS.partition(lambda r: r.a, [0, 1]).values(),
        *ROWS.partition(lambda r: r.b, [0, 1]).values(),
    ],
    "one function in two words": lambda: [
        ROWS.partition(lambda r: r.a, [0, 1])[0],
        SAME.partition(lambda r: r.a + 0, [0, 1])[0],
    ],
    "two lists of keys": lambda: [
        ROWS.partition(lambda r: r.a, [0, 1])[0],
        ROWS.partition(lambda r: r.a, [0, 2])[0],
        ROWS.partition(lambda r: r.a, [1, 2])[1],
    ],
    "parts of what one row becomes": lambda: list(
        ROWS.select_many(lambda r: [F.weighted(r.a, 1.0), F.weighted(r.b, 1.0)]).partition(lambda x: x, [0, 1]).values()
    ),
    "parts of pairs": lambda: list(
        ROWS.join(ROWS, lambda r: r.a, lambda s: s.a, lambda r, s: (r.b, s.b))
        .partition(lambda p: p[0], [0, 1])
        .values()
    ),
    "parts of parts": lambda: [
        inner
        for outer in ROWS.partition(lambda r: r.a, [0, 1]).values()
        for inner in outer.partition(lambda r: r.b, [0, 1]).values()
    ],
    "a part and the whole": lambda: [ROWS.partition(lambda r: r.a, [0, 1])[0], ROWS],
    "parts that meet again": lambda: [
        ROWS.partition(lambda r: r.a, [0, 1])[0]
        .select(lambda r: 0)
        .concat(ROWS.partition(lambda r: r.a, [0, 1])[1].select(lambda r: 0)),
        ROWS.partition(lambda r: r.a, [0, 1])[0],
    ],
}

RECORDS = [(a, b) for a in range(3) for b in range(3)]
DATASETS: list[dict[Any, Fraction]] = [
    {},
    {(0, 0): Fraction(1)},
    {(0, 0): Fraction(1), (0, 1): Fraction(2), (1, 0): Fraction(1)},
    {record: Fraction(1) for record in RECORDS},
]


def moved(queries: list[Query]) -> Fraction:
    """How far the worst unit moves all outputs together. Equal plans are one release, with one noise."""
    queries = list({query.plan.digest: query for query in queries}.values())
    worst = Fraction(0)
    for data in DATASETS:
        before = [reference.evaluate(query.plan, {"rows": data}, EXACT) for query in queries]
        for record in RECORDS:
            more = {**data, record: data.get(record, Fraction(0)) + 1}
            total = Fraction(0)
            for query, old in zip(queries, before, strict=True):
                new = reference.evaluate(query.plan, {"rows": more}, EXACT)
                total += sum((abs(new.get(r, 0) - old.get(r, 0)) for r in {*new, *old}), Fraction(0))
            worst = max(worst, total)
    return worst


@for_each("name", BATCHES)
@for_each("together", [True, False])
def test_parts_are_charged_what_the_worst_unit_moves(name: str, together: bool) -> None:
    """In one batch, and one after the other: the ledger's counters of parts never make it less."""
    queries = BATCHES[name]()
    with wp.Session() as session:
        session.protect(ROWS, [(0, 0), (1, 2)], budget=1000)
        asked = [query.noisy_count(1, over=[]) for query in queries]
        if together:
            session.release(asked)
        else:
            for each in asked:
                session.release(each)
        assert session.spent("rows") >= moved(queries)


@pytest.mark.parametrize("keys", [[0, 0], [0, 0.0], [True, 1], [[1], (1,)], []])
def test_a_key_that_is_there_twice_is_one_part_or_refused(keys: list[Any]) -> None:
    """Two parts of one key would both hold the record, and one would be paid."""
    try:
        parts = ROWS.partition(lambda r: r.a, keys)
    except wp.WpinqError:
        return
    assert len(parts) == len(set(parts))
    total = sum((moved([part]) for part in parts.values()), Fraction(0))
    assert total <= len(parts)
    assert moved(list(parts.values())) <= 1
