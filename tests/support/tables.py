"""Worked examples: a query, its input and its exact output, computed by hand from the definitions of the operators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import wpinq as wp
from wpinq.query import Query


@dataclass(frozen=True)
class Table:
    """One worked example. Weights are anything that Fraction reads, such as "25/12"."""

    name: str
    query: Query
    data: Mapping[str, Mapping[Any, Any]]
    output: Mapping[Any, Any]

    def holds(self) -> bool:
        """Whether the query gives exactly this output."""
        data = {source: _exact(weights) for source, weights in self.data.items()}
        return wp.evaluate(self.query, data, exact=True) == _exact(self.output)


def _exact(weights: Mapping[Any, Any]) -> dict[Any, Fraction]:
    return {record: Fraction(weight) for record, weight in weights.items()}


def failing_tables() -> list[str]:
    """The names of the worked examples that do not hold, or cannot be computed."""
    return [table.name for table in TABLES if not _holds(table)]


def _holds(table: Table) -> bool:
    try:
        return table.holds()
    except ArithmeticError:
        return False


numbers = wp.source("numbers", int)
others = wp.source("others", int)
words = wp.source("words", str)
maybe = wp.source("maybe", int | None)
pairs = wp.source("pairs", key=int | None, value=int)
right = wp.source("right", key=int | None, value=int)
lists = wp.source("lists", list[int])

A = {1: "0.75", 2: 2, 3: 1}
B = {1: 3, 4: 2}


def _per_record() -> Iterator[Table]:
    yield Table("Where, paper", numbers.where(lambda x: x * x < 5), {"numbers": A}, {1: "0.75", 2: 2})
    yield Table("Where, negative", numbers.where(lambda x: x > 1), {"numbers": {1: 1, 2: -3}}, {2: -3})
    yield Table("Where, null predicate", maybe.where(lambda x: x < 3), {"maybe": {None: 5, 1: 1, 4: 2}}, {1: 1})
    yield Table("Where, not null", maybe.where(lambda x: ~(x < 3)), {"maybe": {None: 5, 1: 1, 4: 2}}, {4: 2})
    yield Table("Where, null", maybe.where(wp.is_null), {"maybe": {None: 5, 1: 1}}, {None: 5})
    yield Table("Select, paper", numbers.select(lambda x: x % 2), {"numbers": A}, {0: 2, 1: "1.75"})
    yield Table(
        "Select, weights that cancel", numbers.select(lambda x: x % 2), {"numbers": {1: 1, 3: -1, 2: 1}}, {0: 1}
    )
    yield Table("Select, zero weights", numbers.select(lambda x: x + 1), {"numbers": {1: 0, 2: 1}}, {3: 1})
    yield Table("Select, null", maybe.select(lambda x: x + 1), {"maybe": {None: -1, 1: 1}}, {None: -1, 2: 1})
    yield Table("Select, null together", numbers.select(lambda x: 4 // x), {"numbers": {0: 1, 2: 1}}, {None: 1, 2: 1})
    yield Table("Select, nothing", numbers.select(lambda x: x), {"numbers": {}}, {})

    up_to = numbers.select_many(lambda x: wp.range(1, x + 1, limit=10))
    yield Table("SelectMany, paper", up_to, {"numbers": A}, {1: "25/12", 2: "4/3", 3: "1/3"})
    yield Table("SelectMany, empty list", up_to, {"numbers": {0: 5, -3: 1, 1: -2}}, {1: -2})
    yield Table(
        "SelectMany, limit",
        numbers.select_many(lambda x: wp.range(0, x, limit=10), limit=2),
        {"numbers": {1: 1, 7: 1}},
        {0: "3/2", 1: "1/2"},
    )
    repeats = numbers.select_many(lambda x: [x, x, 0])
    yield Table("SelectMany, repeats", repeats, {"numbers": {1: 3, 2: -3}}, {1: 2, 2: -2})
    opposite = numbers.select_many(lambda x: [wp.weighted(x, 3), wp.weighted(x, -2.5), wp.weighted(0, 0.5)])
    yield Table("SelectMany, repeats are merged first", opposite, {"numbers": {5: 8}}, {5: 4, 0: 4})
    light = numbers.select_many(lambda x: [wp.weighted(x, 0.25)])
    yield Table("SelectMany, a norm below 1", light, {"numbers": {5: 8}}, {5: 2})
    signs = numbers.select_many(lambda x: [wp.weighted(x, 1.5), wp.weighted(-x, -1.5), wp.weighted(0, 1)])
    yield Table("SelectMany, either sign", signs, {"numbers": {2: 8}}, {2: 3, -2: -3, 0: 2})
    null_weight = numbers.select_many(lambda x: [wp.weighted(x, 4 / x), wp.weighted(9, 1)])
    yield Table("SelectMany, null weight", null_weight, {"numbers": {0: 5, 4: 2}}, {9: 6, 4: 1})
    null_item = maybe.select_many(lambda x: [x, 0])
    yield Table("SelectMany, null element", null_item, {"maybe": {None: 2, 1: 2}}, {None: 1, 0: 2, 1: 1})
    huge = numbers.select_many(lambda x: [wp.weighted(x, 1e308), wp.weighted(0, 1e308)])
    yield Table("SelectMany, huge weights", huge, {"numbers": {3: 1}}, {3: "1/2", 0: "1/2"})
    subsets = lists.select_many(lambda b: wp.subsets(b, 2), limit=3)
    yield Table("SelectMany, subsets", subsets, {"lists": {(1, 2, 3): 3, (4,): 1}}, {(1, 2): 1, (1, 3): 1, (2, 3): 1})

    parts = pairs.partition(lambda p: p.value % 2, [0, 1, 5])
    rows = {(1, 2): 1, (2, 3): -2, (None, 4): "1/2"}
    yield Table("Partition, even", parts[0], {"pairs": rows}, {(1, 2): 1, (None, 4): "1/2"})
    yield Table("Partition, odd", parts[1], {"pairs": rows}, {(2, 3): -2})
    yield Table("Partition, a key without records", parts[5], {"pairs": rows}, {})
    by_key = pairs.partition(lambda p: p.key, [1])
    yield Table("Partition, null keys are in no part", by_key[1], {"pairs": rows}, {(1, 2): 1})


def _group_by() -> Iterator[Table]:
    by_parity = numbers.group_by(lambda x: wp.where(x % 2 == 1, "odd", "even"))
    yield Table(
        "GroupBy, paper",
        by_parity,
        {"numbers": {1: "0.75", 2: 2, 3: 1, 4: 2, 5: 2}},
        {("odd", (5,)): "0.5", ("odd", (3, 5)): "0.125", ("odd", (1, 3, 5)): "0.375", ("even", (2, 4)): 1},
    )
    yield Table(
        "GroupBy, unit weights give a half",
        pairs.group_by(lambda p: p.key, lambda g: wp.count(g)),
        {"pairs": {(1, 1): 1, (1, 2): 1, (1, 3): 1, (2, 1): 1, (None, 1): 1, (None, 2): 1}},
        {(1, 3): "1/2", (2, 1): "1/2", (None, 2): "1/2"},
    )
    yield Table(
        "GroupBy, negative and zero weights",
        numbers.group_by(lambda x: 0, lambda g: wp.collect(g)),
        {"numbers": {1: 1, 2: -1, 3: 0, 4: "1/2"}},
        {(0, (1,)): "1/4", (0, (1, 4)): "1/4"},
    )
    yield Table("GroupBy, only negative", by_parity, {"numbers": {1: -1, 3: -2}}, {})
    yield Table(
        "GroupBy, ties",
        numbers.group_by(lambda x: 0),
        {"numbers": {4: 1, 2: 3, 3: 1, 1: 3, 5: "1/2"}},
        {(0, (1, 2)): 1, (0, (1, 2, 3, 4)): "1/4", (0, (1, 2, 3, 4, 5)): "1/4"},
    )
    yield Table(
        "GroupBy, the group is in the order of records, not of weights",
        numbers.group_by(lambda x: 0, lambda g: wp.element(g, 0)),
        {"numbers": {3: 4, 1: 2, 2: 1}},
        {(0, 3): 1, (0, 1): 1},
    )
    yield Table(
        "GroupBy, equal results add",
        numbers.group_by(lambda x: 0, lambda g: wp.count(g) // 2),
        {"numbers": {1: 4, 2: 3, 3: 1}},
        {(0, 0): "1/2", (0, 1): "3/2"},
    )
    yield Table(
        "GroupBy, reducers",
        numbers.group_by(lambda x: x % 2, lambda g: (wp.sum(g), wp.min(g), wp.max(g))),
        {"numbers": {1: 1, 3: 1, 5: 1, 2: "1/2"}},
        {(1, (9, 1, 5)): "1/2", (0, (2, 2, 2)): "1/4"},
    )


def _shave() -> Iterator[Table]:
    one = numbers.shave(1.0)
    yield Table("Shave, paper", one, {"numbers": A}, {(1, 0): "0.75", (2, 0): 1, (2, 1): 1, (3, 0): 1})
    yield Table("Shave, negative and zero weights", one, {"numbers": {1: -3, 2: 0, 3: "1/2"}}, {(3, 0): "1/2"})
    yield Table("Shave, limit", numbers.shave(1.0, limit=2), {"numbers": {1: 5, 2: "3/2"}}, {
        (1, 0): 1, (1, 1): 1, (2, 0): 1, (2, 1): "1/2",
    })  # fmt: skip
    yield Table("Shave, wide", numbers.shave(8.0), {"numbers": {1: 5}}, {(1, 0): 5})
    tiny = numbers.shave(5e-324, limit=2)
    width = Fraction(5e-324)
    yield Table("Shave, tiny", tiny, {"numbers": {1: 1}}, {(1, 0): width, (1, 1): width})
    varying = numbers.shave(lambda x: [x, 0.5])
    yield Table(
        "Shave, widths of the record",
        varying,
        {"numbers": {1: 2, 2: "1/2", 3: 3, 4: "17/4"}},
        {(1, 0): 1, (1, 1): "1/2", (2, 0): "1/2", (3, 0): 3, (4, 0): 4, (4, 1): "1/4"},
    )
    bumpy = numbers.shave(lambda x: [1.0, -1.0, 0.0, 1.0, -2.0, 3.0])
    yield Table(
        "Shave, zero and negative widths emit nothing and go on",
        bumpy,
        {"numbers": {7: 4, 8: 1, 9: -1}},
        {(7, 0): 1, (7, 3): 1, (7, 5): 2, (8, 0): 1},
    )
    broken = numbers.shave(lambda x: [1 / x, 2.0])
    yield Table("Shave, null width", broken, {"numbers": {0: 3, 2: 3}}, {(0, 1): 2, (2, 0): "1/2", (2, 1): 2})
    yield Table("Shave, exhausted list", numbers.shave(lambda x: [0.5]), {"numbers": {1: 9}}, {(1, 0): "1/2"})
    none = lists.shave(lambda b: b, limit=2)
    yield Table(
        "Shave, empty and cut lists",
        none,
        {"lists": {(): 1, (1, 1, 1): 5, (0, 2): 1}},
        {((1, 1, 1), 0): 1, ((1, 1, 1), 1): 1, ((0, 2), 1): 1},
    )
    whole = numbers.shave(0.5).select(lambda p: p.record)
    yield Table("Shave, its inverse", whole, {"numbers": A}, A)


def _join() -> Iterator[Table]:
    on_parity = numbers.join(others, lambda x: x % 2, lambda y: y % 2)
    yield Table(
        "Join, paper",
        on_parity,
        {"numbers": A, "others": B},
        {(2, 4): 1, (1, 1): "9/19", (3, 1): "12/19"},
    )
    yield Table(
        "Join, negative weights: norms are of absolute weights",
        on_parity,
        {"numbers": {1: 1, 3: -1}, "others": {1: 2}},
        {(1, 1): "1/2", (3, 1): "-1/2"},
    )
    yield Table("Join, both negative", on_parity, {"numbers": {1: -1}, "others": {1: -1}}, {(1, 1): "1/2"})
    yield Table("Join, zero weights", on_parity, {"numbers": {1: 0, 2: 1}, "others": {1: 0, 2: 0}}, {})
    yield Table("Join, one side empty", on_parity, {"numbers": A, "others": {}}, {})
    on_key = pairs.join(right, lambda x: x.key, lambda y: y.key, lambda x, y: (x.value, y.value))
    yield Table(
        "Join, null keys meet",
        on_key,
        {"pairs": {(None, 1): 1, (1, 2): 1}, "right": {(None, 3): 1, (2, 4): 1}},
        {(1, 3): "1/2"},
    )
    constant = numbers.join(others, lambda x: 0, lambda y: 0, lambda x, y: x + y)
    yield Table(
        "Join, equal results add",
        constant,
        {"numbers": {1: 1, 2: 1}, "others": {1: 1, 2: 1}},
        {2: "1/4", 3: "1/2", 4: "1/4"},
    )
    itself = numbers.join(numbers, lambda x: x, lambda y: y, lambda x, y: x)
    yield Table("Join, with itself", itself, {"numbers": {1: 3, 2: -2}}, {1: "3/2", 2: 1})


def _elementwise() -> Iterator[Table]:
    both = {"numbers": A, "others": B}
    yield Table("Concat, paper", numbers.concat(others), both, {1: "3.75", 2: 2, 3: 1, 4: 2})
    yield Table("Intersect, paper", numbers.intersect(others), both, {1: "0.75"})
    yield Table("Union", numbers.union(others), both, {1: 3, 2: 2, 3: 1, 4: 2})
    yield Table("Except", numbers.difference(others), both, {1: "-2.25", 2: 2, 3: 1, 4: -2})
    below, empty = {"numbers": {1: -1}, "others": {}}, {"numbers": {}, "others": {1: -1}}
    yield Table("Intersect, absent is 0 against a negative weight", numbers.intersect(others), below, {1: -1})
    yield Table("Intersect, absent on the left", numbers.intersect(others), empty, {1: -1})
    yield Table("Union, absent is 0 against a negative weight", numbers.union(others), below, {})
    yield Table("Union, absent on the left", numbers.union(others), empty, {})
    signs = {"numbers": {1: -1, 2: 3, 3: 1}, "others": {1: -2, 2: -3, 3: 1}}
    yield Table("Union, either sign", numbers.union(others), signs, {1: -1, 2: 3, 3: 1})
    yield Table("Intersect, either sign", numbers.intersect(others), signs, {1: -2, 2: -3, 3: 1})
    yield Table("Concat, either sign", numbers.concat(others), signs, {1: -3, 3: 2})
    yield Table("Except, either sign", numbers.difference(others), signs, {1: 1, 2: 6})
    nulls = {"maybe": {None: 1, 2: 1}, "numbers": {2: 1}}
    yield Table("Concat, null", maybe.concat(numbers), nulls, {None: 1, 2: 2})
    text = words.concat(words.select(lambda w: wp.lower(w)))
    yield Table("Concat, with itself", text, {"words": {"A": 1, "a": "1/2"}}, {"A": 1, "a": 2})


TABLES: tuple[Table, ...] = (*_per_record(), *_group_by(), *_shave(), *_join(), *_elementwise())
"""Every worked example."""

assert len({table.name for table in TABLES}) == len(TABLES)
