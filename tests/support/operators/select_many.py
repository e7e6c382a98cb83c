"""SelectMany: a list for each record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support import expressions
from tests.support.cases import (
    HEAVY,
    A,
    OperatorCase,
    Table,
    lists,
    maybe,
    numbers,
)
from tests.support.expressions import traced
from wpinq import functions as F

if TYPE_CHECKING:
    from tests.support.plans import Grower, Live

up_to = numbers.select_many(lambda x: F.range(1, x + 1, limit=10))
repeats = numbers.select_many(lambda x: [x, x, 0])
opposite = numbers.select_many(lambda x: [F.weighted(x, 3), F.weighted(x, -2.5), F.weighted(0, 0.5)])
light = numbers.select_many(lambda x: [F.weighted(x, 0.25)])
signs = numbers.select_many(lambda x: [F.weighted(x, 1.5), F.weighted(-x, -1.5), F.weighted(0, 1)])
null_weight = numbers.select_many(lambda x: [F.weighted(x, 4 / x), F.weighted(9, 1)])
null_item = maybe.select_many(lambda x: [x, 0])
huge = numbers.select_many(lambda x: [F.weighted(x, 1e308), F.weighted(0, 1e308)])
subsets = lists.select_many(lambda b: F.subsets(b, 2), limit=3)


def draw(grower: Grower, below: Live) -> Live | None:
    types = (below.node.type,)
    function = traced(expressions.elements(grower.rng, types), types)
    return grower.add("SelectMany", (below,), function=function, limit=grower.rng.choice([3, 6]))


CASE = OperatorCase(
    "SelectMany",
    text="a.SelectMany(r => [r.x, r.y])",
    chain=lambda a, b: a.select_many(lambda r: [r.x, r.y]),
    one_step={
        "SelectMany": HEAVY.select_many(lambda x: [x % 3, x % 5, x % 7]),
        "SelectMany of weights": HEAVY.select_many(lambda x: [F.weighted(x % 3, 0.1), F.weighted(x % 5, -1.7)]),
    },
    draw=draw,
    tables=(
        Table("SelectMany, paper", up_to, {"numbers": A}, {1: "25/12", 2: "4/3", 3: "1/3"}),
        Table("SelectMany, empty list", up_to, {"numbers": {0: 5, -3: 1, 1: -2}}, {1: -2}),
        Table(
            "SelectMany, limit",
            numbers.select_many(lambda x: F.range(0, x, limit=10), limit=2),
            {"numbers": {1: 1, 7: 1}},
            {0: "3/2", 1: "1/2"},
        ),
        Table("SelectMany, repeats", repeats, {"numbers": {1: 3, 2: -3}}, {1: 2, 2: -2}),
        Table("SelectMany, repeats are merged first", opposite, {"numbers": {5: 8}}, {5: 4, 0: 4}),
        Table("SelectMany, a norm below 1", light, {"numbers": {5: 8}}, {5: 2}),
        Table("SelectMany, either sign", signs, {"numbers": {2: 8}}, {2: 3, -2: -3, 0: 2}),
        Table("SelectMany, null weight", null_weight, {"numbers": {0: 5, 4: 2}}, {9: 6, 4: 1}),
        Table("SelectMany, null element", null_item, {"maybe": {None: 2, 1: 2}}, {None: 1, 0: 2, 1: 1}),
        Table("SelectMany, huge weights", huge, {"numbers": {3: 1}}, {3: "1/2", 0: "1/2"}),
        Table("SelectMany, subsets", subsets, {"lists": {(1, 2, 3): 3, (4,): 1}}, {(1, 2): 1, (1, 3): 1, (2, 3): 1}),
    ),
)
