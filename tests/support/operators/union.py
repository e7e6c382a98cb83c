"""Union: the larger weight."""

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
    return grower.both_ways("Union", below)


CASE = OperatorCase(
    "Union",
    text="a.Union(b)",
    chain=lambda a, b: a.union(b),
    one_step={
        "Union": HEAVY.union(HEAVY_TOO),
    },
    draw=draw,
    tables=(
        Table("Union", numbers.union(others), both, {1: 3, 2: 2, 3: 1, 4: 2}),
        Table("Union, absent is 0 against a negative weight", numbers.union(others), below, {}),
        Table("Union, absent on the left", numbers.union(others), empty, {}),
        Table("Union, either sign", numbers.union(others), signs, {1: -1, 2: 3, 3: 1}),
    ),
)
