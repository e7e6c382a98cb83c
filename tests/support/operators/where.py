"""Where: a predicate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support import expressions
from tests.support.cases import (
    HEAVY,
    A,
    OperatorCase,
    Table,
    maybe,
    numbers,
)
from tests.support.expressions import traced
from wpinq import functions as F

if TYPE_CHECKING:
    from tests.support.plans import Grower, Live


def draw(grower: Grower, below: Live) -> Live | None:
    types = (below.node.type,)
    return grower.add("Where", (below,), predicate=traced(expressions.predicate(grower.rng, types), types))


CASE = OperatorCase(
    "Where",
    text="a.Where(r => r.x < r.y)",
    chain=lambda a, b: a.where(lambda r: r.x < r.y),
    one_step={
        "Where": HEAVY.where(lambda x: x % 2 == 0),
    },
    draw=draw,
    tables=(
        Table("Where, paper", numbers.where(lambda x: x * x < 5), {"numbers": A}, {1: "0.75", 2: 2}),
        Table("Where, negative", numbers.where(lambda x: x > 1), {"numbers": {1: 1, 2: -3}}, {2: -3}),
        Table("Where, null predicate", maybe.where(lambda x: x < 3), {"maybe": {None: 5, 1: 1, 4: 2}}, {1: 1}),
        Table("Where, not null", maybe.where(lambda x: ~(x < 3)), {"maybe": {None: 5, 1: 1, 4: 2}}, {4: 2}),
        Table("Where, null", maybe.where(F.is_null), {"maybe": {None: 5, 1: 1}}, {None: 5}),
    ),
)
