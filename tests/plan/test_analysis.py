"""Costs, masses and slack of plans, against numbers worked out by hand."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import wpinq as wp
from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.plan.demand import demand
from wpinq.plan.properties import plan_properties

ONE = Fraction(1)
PEOPLE = wp.source("people", region=str, age=int, cap=100)
OTHERS = wp.source("others", region=str, age=int, cap=50, unit_weight=2)
REGIONS = PEOPLE.partition(lambda p: p.region, ["north", "south"])
AGES = PEOPLE.partition(lambda p: p.age, [1, 2])


def owed(*roots: tuple[Query, int]) -> dict[str, Fraction]:
    return demand([(query.plan, Fraction(epsilon)) for query, epsilon in roots]).sources


def test_uses_count_paths() -> None:
    twice = PEOPLE.concat(PEOPLE)
    assert plan_properties(PEOPLE.plan).uses == {"people": 1}
    assert plan_properties(twice.plan).uses == {"people": 2}
    assert plan_properties(twice.join(twice, lambda p: p.age, lambda p: p.age).plan).uses == {"people": 4}
    assert plan_properties(twice.intersect(OTHERS).plan).uses == {"people": 2, "others": 1}


def test_the_parts_of_one_partition_owe_the_largest() -> None:
    assert owed((REGIONS["north"], 3), (REGIONS["south"], 5)) == {"people": 5}
    assert owed((REGIONS["north"], 3), (REGIONS["north"], 5)) == {"people": 8}
    assert owed((REGIONS["north"].concat(REGIONS["south"]), 3)) == {"people": 3}
    assert owed((REGIONS["north"], 3), (PEOPLE, 5)) == {"people": 8}


def test_different_keys_and_different_datasets_add() -> None:
    assert owed((REGIONS["north"], 3), (AGES[1], 5)) == {"people": 8}
    older = PEOPLE.where(lambda p: p.age > 1).partition(lambda p: p.region, ["south"])
    assert owed((REGIONS["north"], 3), (older["south"], 5)) == {"people": 8}


def test_a_part_is_known_by_its_value_however_it_is_written() -> None:
    pairs = PEOPLE.partition(lambda p: (p.age, p.age), [(1, 1)])[1, 1]
    named = PEOPLE._then(type(pairs.plan.operator), key=lambda p: (p.age, p.age), part=F.record(a=1, b=1))
    assert owed((pairs, 3), (named, 5)) == {"people": 8}
    maybe = wp.source("maybe", int | None)
    null = maybe.partition(lambda x: x, [None])[None]
    computed = maybe._then(type(null.plan.operator), key=lambda x: x, part=F.element([1], 5))
    assert owed((null, 3), (computed, 5)) == {"maybe": 8}


def test_partitions_nest() -> None:
    inner = {region: part.partition(lambda p: p.age, [1, 2]) for region, part in REGIONS.items()}
    assert owed((inner["north"][1], 3), (inner["north"][2], 4), (inner["south"][1], 5)) == {"people": 5}
    assert owed((inner["north"][1], 3), (REGIONS["north"], 4), (inner["south"][1], 5)) == {"people": 7}


def test_later_batches_owe_the_increase_of_the_maximum() -> None:
    ledger: dict[str, dict[str, Fraction]] = {}

    def release(*roots: tuple[Query, int]) -> Fraction:
        asked = demand(
            [(query.plan, Fraction(epsilon)) for query, epsilon in roots], earlier=lambda key: ledger.get(key, {})
        )
        for (partition, part), cumulative in asked.parts.items():
            ledger.setdefault(partition, {})[part] = cumulative
        return asked.sources["people"]

    assert release((REGIONS["north"], 3)) == 3
    assert release((REGIONS["south"], 2)) == 0
    assert release((REGIONS["south"], 2)) == 1
    assert release((REGIONS["north"], 1), (REGIONS["south"], 2)) == 2
    assert release((PEOPLE, 1)) == 1
    assert sorted(next(iter(ledger.values())).values()) == [4, 6]


def test_versions_of_the_data_keep_apart() -> None:
    roots = [(REGIONS["north"].plan, ONE)]
    first, second = (demand(roots, scope=lambda node, v=v: v).parts.keys() for v in ("v1", "v2"))
    assert not first & second


def norm_bound(query: Query) -> Fraction:
    return plan_properties(query.plan).output.norm_bound


def left(query: Query) -> Fraction:
    return plan_properties(query.plan).output.weight_left


def test_masses() -> None:
    def age(p: Any) -> Any:
        return p.age

    joined = PEOPLE.join(OTHERS, age, age)
    assert norm_bound(PEOPLE) == 100
    assert norm_bound(PEOPLE.select(age).where(lambda a: a > 1).shave(1.0)) == 100
    assert norm_bound(PEOPLE.select_many(lambda p: [p.age, 1])) == 100
    assert norm_bound(PEOPLE.group_by(age)) == 50
    assert norm_bound(joined) == Fraction(100 * 50, 150)
    assert [norm_bound(q) for q in (PEOPLE.concat(OTHERS), PEOPLE.difference(OTHERS), PEOPLE.union(OTHERS))] == [
        150
    ] * 3
    assert norm_bound(REGIONS["north"]) == 100
    assert left(joined) == Fraction(1, 2)
    assert left(joined.join(PEOPLE, lambda p: p[0].age, age)) == Fraction(1, 3)
    assert left(PEOPLE.group_by(age).shave(0.5)) == Fraction(1, 2)


def test_rounding_and_slack() -> None:
    step = Fraction(33, 32) / 2**53
    select = PEOPLE.select(lambda p: p.age)
    assert plan_properties(PEOPLE.plan).rounding_error == 0
    assert plan_properties(select.plan).rounding_error == step * 100
    assert plan_properties(select.concat(select).plan).rounding_error == step * (
        200 + 2 * 100
    )  # the shared step counts twice
    assert plan_properties(select.plan).slack() == 2 * step * 100
    assert plan_properties(select.plan).slack(readouts=3) == 2 * step * (100 + 3 * 100)
    assert plan_properties(OTHERS.select(lambda p: p.age).plan).slack() == 2 * step * 50 / 2
    both = PEOPLE.concat(OTHERS)
    assert plan_properties(both.plan).slack() == 2 * step * 150 / 1, "the smallest unit decides"
