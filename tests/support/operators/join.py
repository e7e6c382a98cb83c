"""Join: pairs over the norms of a key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support import expressions
from tests.support.cases import (
    HEAVY,
    HEAVY_TOO,
    A,
    B,
    OperatorCase,
    Table,
    numbers,
    others,
    pairs,
    right,
)
from tests.support.expressions import IDENTITY, Recipe, atoms, traced
from wpinq.expr.types import INT

if TYPE_CHECKING:
    from tests.support.plans import Grower, Live

on_parity = numbers.join(others, lambda x: x % 2, lambda y: y % 2)
on_key = pairs.join(right, lambda x: x.key, lambda y: y.key, lambda x, y: (x.value, y.value))
constant = numbers.join(others, lambda x: 0, lambda y: 0, lambda x, y: x + y)
itself = numbers.join(numbers, lambda x: x, lambda y: y, lambda x, y: x)


def draw(grower: Grower, left: Live) -> Live | None:
    rng, right = (
        grower.rng,
        grower.rng.choice([live for live in grower.live if live.depth <= grower.rng.choice([0, 9])]),
    )
    if rng.random() < 0.5:
        left, right = right, left
    types = (left.node.type, right.node.type)
    recipe, type_ = rng.choice(atoms(types[:1]) or [(("constant", 0), INT)])
    matching = [atom for atom, other in atoms(types[1:]) if other == type_] or [("constant", 0)]
    keys: tuple[Recipe, Recipe] = (recipe, rng.choice(matching))
    if type_ == INT and rng.random() < 0.3:
        keys = tuple(("modulo", key, ("constant", 2)) for key in keys)
    result: Recipe = ("tuple", IDENTITY, ("at", 1, ()))
    if sum(map(expressions.leaves, types)) > 4 or rng.random() < 0.3:
        result = ("tuple", *(expressions.scalar(rng, types) for _ in range(3)))
    return grower.add(
        "Join",
        (left, right),
        left_key=traced(keys[0], types[:1]),
        right_key=traced(keys[1], types[1:]),
        result=traced(result, types),
    )


CASE = OperatorCase(
    "Join",
    text="a.Join(b, r => r.x, s => s.y)",
    chain=lambda a, b: a.join(b, lambda r: r.x, lambda s: s.y),
    one_step={
        "Join": HEAVY.join(HEAVY_TOO, lambda x: x % 7, lambda y: y % 7, lambda x, y: x % 2),
    },
    draw=draw,
    tables=(
        Table(
            "Join, paper",
            on_parity,
            {"numbers": A, "others": B},
            {(2, 4): 1, (1, 1): "9/19", (3, 1): "12/19"},
        ),
        Table(
            "Join, negative weights: norms are of absolute weights",
            on_parity,
            {"numbers": {1: 1, 3: -1}, "others": {1: 2}},
            {(1, 1): "1/2", (3, 1): "-1/2"},
        ),
        Table("Join, both negative", on_parity, {"numbers": {1: -1}, "others": {1: -1}}, {(1, 1): "1/2"}),
        Table("Join, zero weights", on_parity, {"numbers": {1: 0, 2: 1}, "others": {1: 0, 2: 0}}, {}),
        Table("Join, one side empty", on_parity, {"numbers": A, "others": {}}, {}),
        Table(
            "Join, null keys meet",
            on_key,
            {"pairs": {(None, 1): 1, (1, 2): 1}, "right": {(None, 3): 1, (2, 4): 1}},
            {(1, 3): "1/2"},
        ),
        Table(
            "Join, equal results add",
            constant,
            {"numbers": {1: 1, 2: 1}, "others": {1: 1, 2: 1}},
            {2: "1/4", 3: "1/2", 4: "1/4"},
        ),
        Table("Join, with itself", itself, {"numbers": {1: 3, 2: -2}}, {1: "3/2", 2: 1}),
    ),
)
