"""Partition: a part by a public key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support import expressions
from tests.support.cases import (
    HEAVY,
    OperatorCase,
    Table,
    pairs,
)
from tests.support.expressions import traced

if TYPE_CHECKING:
    from tests.support.plans import Grower, Live

parts = pairs.partition(lambda p: p.value % 2, [0, 1, 5])
rows = {(1, 2): 1, (2, 3): -2, (None, 4): "1/2"}
by_key = pairs.partition(lambda p: p.key, [1])


def draw(grower: Grower, below: Live) -> Live | None:
    types = (below.node.type,)
    key = traced(expressions.scalar(grower.rng, types), types)
    return grower.part(below, key, grower.keys(below, key)[0])


CASE = OperatorCase(
    "Partition",
    text="a.Partition(r => r.x, 3)",
    chain=lambda a, b: a.partition(lambda r: r.x, [3])[3],
    one_step={
        "Partition": HEAVY.partition(lambda x: x % 2, [0])[0],
    },
    draw=draw,
    tables=(
        Table("Partition, even", parts[0], {"pairs": rows}, {(1, 2): 1, (None, 4): "1/2"}),
        Table("Partition, odd", parts[1], {"pairs": rows}, {(2, 3): -2}),
        Table("Partition, a key without records", parts[5], {"pairs": rows}, {}),
        Table("Partition, null keys are in no part", by_key[1], {"pairs": rows}, {(1, 2): 1}),
    ),
)
