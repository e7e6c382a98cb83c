"""Concat: a sum of weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.cases import (
    HEAVY,
    HEAVY_TOO,
    A,
    B,
    OperatorCase,
    Table,
    maybe,
    numbers,
    others,
    words,
)
from wpinq import functions as F

if TYPE_CHECKING:
    from tests.support.plans import Grower, Live

both = {"numbers": A, "others": B}
signs = {"numbers": {1: -1, 2: 3, 3: 1}, "others": {1: -2, 2: -3, 3: 1}}
nulls = {"maybe": {None: 1, 2: 1}, "numbers": {2: 1}}
text = words.concat(words.select(lambda w: F.lower(w)))


def draw(grower: Grower, below: Live) -> Live | None:
    return grower.both_ways("Concat", below)


CASE = OperatorCase(
    "Concat",
    text="a.Concat(b)",
    chain=lambda a, b: a.concat(b),
    one_step={
        "Concat": HEAVY.concat(HEAVY_TOO),
    },
    draw=draw,
    tables=(
        Table("Concat, paper", numbers.concat(others), both, {1: "3.75", 2: 2, 3: 1, 4: 2}),
        Table("Concat, either sign", numbers.concat(others), signs, {1: -3, 3: 2}),
        Table("Concat, null", maybe.concat(numbers), nulls, {None: 1, 2: 2}),
        Table("Concat, with itself", text, {"words": {"A": 1, "a": "1/2"}}, {"A": 1, "a": 2}),
    ),
)
