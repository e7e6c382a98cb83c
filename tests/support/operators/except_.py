"""Except: a difference of weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.cases import (
    HEAVY,
    HEAVY_TOO,
    A,
    B,
    OperatorCase,
    Table,
    numbers,
    others,
)

if TYPE_CHECKING:
    from tests.support.plans import Grower, Live

both = {"numbers": A, "others": B}
signs = {"numbers": {1: -1, 2: 3, 3: 1}, "others": {1: -2, 2: -3, 3: 1}}


def draw(grower: Grower, below: Live) -> Live | None:
    return grower.both_ways("Except", below)


CASE = OperatorCase(
    "Except",
    text="a.Except(b)",
    chain=lambda a, b: a.difference(b),
    one_step={
        "Except": HEAVY.difference(HEAVY_TOO),
    },
    draw=draw,
    tables=(
        Table("Except", numbers.difference(others), both, {1: "-2.25", 2: 2, 3: 1, 4: -2}),
        Table("Except, either sign", numbers.difference(others), signs, {1: 1, 2: 6}),
    ),
)
