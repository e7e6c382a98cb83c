"""What goes into DuckDB comes out as it was: flat records go in by columns, others row by row."""

from __future__ import annotations

import itertools
from typing import Any

import wpinq as wp
from tests.support.parameters import for_each
from tests.support.relational import evaluate
from wpinq import functions as F
from wpinq.expr.values import order_key

INTS = [-(2**63), -1, 0, 2**53 + 1, 2**63 - 1]
FLOATS = [-1.7976931348623157e308, 5e-324, 0.0, 0.1]
TEXTS = ["", "NaN", "None", "1", "a\0b", "é\U0001f600", "2020-01-01"]
BOOLS = [False, True]


def rows(*columns: list[Any]) -> dict[Any, float]:
    """Every combination, with weights of either sign."""
    return {record: (-1.0) ** i / 2 for i, record in enumerate(itertools.product(*columns))}


SOURCES = {
    "one type": (wp.source("s", a=int, b=int, weights=True), rows(INTS, INTS)),
    "one type, some null": (wp.source("s", a=int, b=int | None, weights=True), rows(INTS, [*INTS, None])),
    "one type, some null, the first": (wp.source("s", a=int | None, b=int, weights=True), rows([None, *INTS], INTS)),
    "floats": (wp.source("s", a=float, b=float | None, weights=True), rows(FLOATS, [None, *FLOATS])),
    "bools": (wp.source("s", a=bool, b=bool | None, weights=True), rows(BOOLS, [None, *BOOLS])),
    "texts": (wp.source("s", a=str, b=str | None, weights=True), rows(TEXTS, [None, *TEXTS])),
    "all": (
        wp.source("s", a=int | None, b=str | None, c=float | None, d=bool | None, e=int, f=str, weights=True),
        rows([None, *INTS], [None, *TEXTS], [None, *FLOATS], [None, *BOOLS], INTS[:2], TEXTS[:2]),
    ),
    "only null": (wp.source("s", a=int | None, b=str | None, c=bool, weights=True), rows([None], [None], BOOLS)),
    "nothing": (wp.source("s", a=int | None, b=str, c=bool, weights=True), {}),
    "a value": (wp.source("s", str, weights=True), dict.fromkeys(TEXTS, 1.0)),
    "nested": (
        wp.source("s", a=int, b={"c": str, "d": float}, weights=True),
        rows(INTS, list(itertools.product(TEXTS, FLOATS))),
    ),
}


@for_each("name", SOURCES)
def test_a_source_is_read_back_to_the_last_bit(name: str) -> None:
    source, data = SOURCES[name]
    found = evaluate(source.plan, {"s": data})
    assert [(repr(record), weight) for record, weight in found.items()] == [
        (repr(record), data[record]) for record in sorted(data, key=order_key)
    ]


def test_a_text_among_many_nulls_is_found() -> None:
    source = wp.source("s", place=int, text=str | None, weights=True)
    data = {(place, None): 1.0 for place in range(200_000)} | {(123_456, "x"): 1.0}
    found = evaluate(source.where(lambda r: ~F.is_null(r.text)).plan, {"s": data})
    assert found == {(123_456, "x"): 1.0}
