"""Shave: pieces of a record."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from tests.support import expressions
from tests.support.cases import (
    HEAVY,
    A,
    OperatorCase,
    Table,
    lists,
    numbers,
)
from tests.support.expressions import traced

if TYPE_CHECKING:
    from tests.support.plans import Grower, Live

one = numbers.shave(1.0)
tiny = numbers.shave(5e-324, limit=2)
width = Fraction(5e-324)
varying = numbers.shave(lambda x: [x, 0.5])
bumpy = numbers.shave(lambda x: [1.0, -1.0, 0.0, 1.0, -2.0, 3.0])
broken = numbers.shave(lambda x: [1 / x, 2.0])
none = lists.shave(lambda b: b, limit=2)
whole = numbers.shave(0.5).select(lambda p: p.record)


def draw(grower: Grower, below: Live) -> Live | None:
    types = (below.node.type,)
    drawn = expressions.widths(grower.rng, types)
    width = drawn if isinstance(drawn, float) else traced(drawn, types)
    return grower.add("Shave", (below,), widths=width, limit=grower.rng.choice([3, 6, 8]))


CASE = OperatorCase(
    "Shave",
    text="a.Shave(0.5)",
    chain=lambda a, b: a.shave(0.5),
    one_step={
        "Shave": HEAVY.shave(0.7, limit=5),
        "Shave by widths of each record": HEAVY.shave(lambda x: [0.3, 1.7, 1000.1]),
    },
    draw=draw,
    tables=(
        Table("Shave, paper", one, {"numbers": A}, {(1, 0): "0.75", (2, 0): 1, (2, 1): 1, (3, 0): 1}),
        Table("Shave, negative and zero weights", one, {"numbers": {1: -3, 2: 0, 3: "1/2"}}, {(3, 0): "1/2"}),
        Table(
            "Shave, limit",
            numbers.shave(1.0, limit=2),
            {"numbers": {1: 5, 2: "3/2"}},
            {
                (1, 0): 1,
                (1, 1): 1,
                (2, 0): 1,
                (2, 1): "1/2",
            },
        ),
        Table("Shave, wide", numbers.shave(8.0), {"numbers": {1: 5}}, {(1, 0): 5}),
        Table("Shave, tiny", tiny, {"numbers": {1: 1}}, {(1, 0): width, (1, 1): width}),
        Table(
            "Shave, widths of the record",
            varying,
            {"numbers": {1: 2, 2: "1/2", 3: 3, 4: "17/4"}},
            {(1, 0): 1, (1, 1): "1/2", (2, 0): "1/2", (3, 0): 3, (4, 0): 4, (4, 1): "1/4"},
        ),
        Table(
            "Shave, zero and negative widths emit nothing and go on",
            bumpy,
            {"numbers": {7: 4, 8: 1, 9: -1}},
            {(7, 0): 1, (7, 3): 1, (7, 5): 2, (8, 0): 1},
        ),
        Table("Shave, null width", broken, {"numbers": {0: 3, 2: 3}}, {(0, 1): 2, (2, 0): "1/2", (2, 1): 2}),
        Table("Shave, exhausted list", numbers.shave(lambda x: [0.5]), {"numbers": {1: 9}}, {(1, 0): "1/2"}),
        Table(
            "Shave, empty and cut lists",
            none,
            {"lists": {(): 1, (1, 1, 1): 5, (0, 2): 1}},
            {((1, 1, 1), 0): 1, ((1, 1, 1), 1): 1, ((0, 2), 1): 1},
        ),
        Table("Shave, its inverse", whole, {"numbers": A}, A),
    ),
)
