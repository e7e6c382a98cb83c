"""A function whose list is cut early has the first elements of the list that it gives uncut, and no others."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import wpinq as wp
from tests.support.parameters import for_each
from wpinq import functions as F
from wpinq.expr.compile import compile_lambda, limited
from wpinq.expr.trace import trace

ROWS = wp.source("rows", n=int | None, numbers=list[int], text=str | None)

LISTS: dict[str, Callable[[Any], Any]] = {
    "a range": lambda r: F.range(0, r.n, limit=6),
    "a function of a range": lambda r: F.map(F.range(r.n, 20, limit=9), lambda i: i * r.n),
    "a list that is written": lambda r: [r.n, 1, 2, r.n, 3],
    "a list of the data": lambda r: F.map(r.numbers, lambda n: n + 1),
    "either of two": lambda r: F.where(r.n > 3, F.range(0, r.n, limit=7), [5, 6, 7]),
    "short ranges one after another": lambda r: F.flatten(
        F.map(F.first(r.numbers, 4), lambda n: F.range(n, n + 9, limit=2))
    ),
    "long ranges one after another": lambda r: F.flatten(
        F.map(F.first(r.numbers, 4), lambda n: F.range(n, n + 9, limit=50))
    ),
    "lists that may be empty": lambda r: F.flatten(
        F.map(F.range(0, 5, limit=5), lambda i: F.where(i > 1, F.range(0, i, limit=3), F.range(9, 9, limit=1)))
    ),
    "words": lambda r: F.split(r.text, " "),
    "pairs": lambda r: F.subsets(F.first(r.numbers, 6), 2),
}  # fmt: skip


@for_each("name", LISTS)
def test_a_limit_keeps_the_first_elements_and_makes_no_others(name: str) -> None:
    rng = Random(name)
    function = trace(LISTS[name], (ROWS.plan.type,))
    whole = compile_lambda(function)
    records = [
        (
            rng.choice([None, -2, 0, 3, 5, 8, 40]),
            tuple(rng.randrange(9) for _ in range(rng.randrange(8))),
            rng.choice([None, "", "a b c d", " x  y z w v"]),
        )
        for _ in range(40)
    ]
    shorter = 0
    for most in (1, 2, 3, 5, 8, 20):
        cut = compile_lambda(limited(function, most))
        for record in records:
            expected, found = whole(record), cut(record)
            if expected is None:
                assert found is None
                continue
            assert found[:most] == expected[:most]
            assert len(found) <= len(expected)
            shorter += len(found) < len(expected)
    assert shorter or name == "words", "nothing tells how to make fewer of these"
