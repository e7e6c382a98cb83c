"""Intersect: the smaller weight."""

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
below, empty = {"numbers": {1: -1}, "others": {}}, {"numbers": {}, "others": {1: -1}}
signs = {"numbers": {1: -1, 2: 3, 3: 1}, "others": {1: -2, 2: -3, 3: 1}}


def draw(grower: Grower, below: Live) -> Live | None:
    return grower.both_ways("Intersect", below)


CASE = OperatorCase(
    "Intersect",
    text="a.Intersect(b)",
    chain=lambda a, b: a.intersect(b),
    one_step={
        "Intersect": HEAVY.intersect(HEAVY_TOO),
    },
    draw=draw,
    tables=(
        Table("Intersect, paper", numbers.intersect(others), both, {1: "0.75"}),
        Table("Intersect, absent is 0 against a negative weight", numbers.intersect(others), below, {1: -1}),
        Table("Intersect, absent on the left", numbers.intersect(others), empty, {1: -1}),
        Table("Intersect, either sign", numbers.intersect(others), signs, {1: -2, 2: -3, 3: 1}),
    ),
)
