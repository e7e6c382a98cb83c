"""GroupBy: prefixes of a group, heaviest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support import expressions
from tests.support.cases import (
    HEAVY,
    OperatorCase,
    Table,
    numbers,
    pairs,
)
from tests.support.expressions import traced
from wpinq import functions as F
from wpinq.expr.types import ListOf

if TYPE_CHECKING:
    from tests.support.plans import Grower, Live

by_parity = numbers.group_by(lambda x: F.where(x % 2 == 1, "odd", "even"))


def draw(grower: Grower, below: Live) -> Live | None:
    type_ = below.node.type
    key = traced(expressions.scalar(grower.rng, (type_,)), (type_,))
    reduce = traced(expressions.reducer(grower.rng, type_), (ListOf(type_),))
    return grower.add("GroupBy", (below,), key=key, reduce=reduce)


CASE = OperatorCase(
    "GroupBy",
    text="a.GroupBy(r => r.x, g => count(g))",
    chain=lambda a, b: a.group_by(lambda r: r.x, lambda g: F.count(g)),
    one_step={
        "GroupBy": HEAVY.group_by(lambda x: x % 4),
    },
    draw=draw,
    tables=(
        Table(
            "GroupBy, paper",
            by_parity,
            {"numbers": {1: "0.75", 2: 2, 3: 1, 4: 2, 5: 2}},
            {("odd", (5,)): "0.5", ("odd", (3, 5)): "0.125", ("odd", (1, 3, 5)): "0.375", ("even", (2, 4)): 1},
        ),
        Table(
            "GroupBy, unit weights give a half",
            pairs.group_by(lambda p: p.key, lambda g: F.count(g)),
            {"pairs": {(1, 1): 1, (1, 2): 1, (1, 3): 1, (2, 1): 1, (None, 1): 1, (None, 2): 1}},
            {(1, 3): "1/2", (2, 1): "1/2", (None, 2): "1/2"},
        ),
        Table(
            "GroupBy, negative and zero weights",
            numbers.group_by(lambda x: 0, lambda g: F.collect(g)),
            {"numbers": {1: 1, 2: -1, 3: 0, 4: "1/2"}},
            {(0, (1,)): "1/4", (0, (1, 4)): "1/4"},
        ),
        Table("GroupBy, only negative", by_parity, {"numbers": {1: -1, 3: -2}}, {}),
        Table(
            "GroupBy, ties",
            numbers.group_by(lambda x: 0),
            {"numbers": {4: 1, 2: 3, 3: 1, 1: 3, 5: "1/2"}},
            {(0, (1, 2)): 1, (0, (1, 2, 3, 4)): "1/4", (0, (1, 2, 3, 4, 5)): "1/4"},
        ),
        Table(
            "GroupBy, the group is in the order of records, not of weights",
            numbers.group_by(lambda x: 0, lambda g: F.element(g, 0)),
            {"numbers": {3: 4, 1: 2, 2: 1}},
            {(0, 3): 1, (0, 1): 1},
        ),
        Table(
            "GroupBy, equal results add",
            numbers.group_by(lambda x: 0, lambda g: F.count(g) // 2),
            {"numbers": {1: 4, 2: 3, 3: 1}},
            {(0, 0): "1/2", (0, 1): "3/2"},
        ),
        Table(
            "GroupBy, reducers",
            numbers.group_by(lambda x: x % 2, lambda g: (F.sum(g), F.min(g), F.max(g))),
            {"numbers": {1: 1, 3: 1, 5: 1, 2: "1/2"}},
            {(1, (9, 1, 5)): "1/2", (0, (2, 2, 2)): "1/4"},
        ),
    ),
)
