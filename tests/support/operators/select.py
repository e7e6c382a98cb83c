"""Select: a function of each record."""

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

if TYPE_CHECKING:
    from tests.support.plans import Grower, Live


def draw(grower: Grower, below: Live) -> Live | None:
    types = (below.node.type,)
    return grower.add("Select", (below,), function=traced(expressions.record(grower.rng, types), types))


CASE = OperatorCase(
    "Select",
    text="a.Select(r => r.x)",
    chain=lambda a, b: a.select(lambda r: r.x),
    one_step={
        "Select": HEAVY.select(lambda x: x % 3),
    },
    draw=draw,
    tables=(
        Table("Select, paper", numbers.select(lambda x: x % 2), {"numbers": A}, {0: 2, 1: "1.75"}),
        Table("Select, weights that cancel", numbers.select(lambda x: x % 2), {"numbers": {1: 1, 3: -1, 2: 1}}, {0: 1}),
        Table("Select, zero weights", numbers.select(lambda x: x + 1), {"numbers": {1: 0, 2: 1}}, {3: 1}),
        Table("Select, null", maybe.select(lambda x: x + 1), {"maybe": {None: -1, 1: 1}}, {None: -1, 2: 1}),
        Table("Select, null together", numbers.select(lambda x: 4 // x), {"numbers": {0: 1, 2: 1}}, {None: 1, 2: 1}),
        Table("Select, nothing", numbers.select(lambda x: x), {"numbers": {}}, {}),
    ),
)
