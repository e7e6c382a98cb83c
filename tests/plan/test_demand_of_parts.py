"""Parts of a partition with other data beside them: what rounds in proportion to the part, and who pays in full."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from random import Random

import pytest

import wpinq as wp
from tests.support.parameters import tenth
from tests.support.plans import OPERATORS, distance, norm, random_case
from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.engines import reference
from wpinq.engines.sql.duckdb.database import Database
from wpinq.noise.laplace import laplace_scale
from wpinq.plan.arithmetic import EXACT, SUM_ROUNDING_UNITS, UNIT_ROUNDOFF
from wpinq.plan.demand import charges, demand, least_on_a_way, norm_bounds_over_parts, partition_of, unshared
from wpinq.plan.node import Node, sources, topological
from wpinq.plan.operators import Partition, Source
from wpinq.plan.properties import PARTITION_SLACK, plan_properties

PARTS = 2**20
LEAST_MOVE = Fraction(1, 2**34)

thin = wp.source("thin", int, cap=1, weights=True, unit_weight=PARTS * LEAST_MOVE)
heavy = wp.source("heavy", int, cap=2**30, weights=True)


def _parts(count: int) -> list[Query]:
    return list(thin.partition(lambda x: x, range(count)).values())


def _added(part: Query) -> Query:
    return part.select(lambda x: 0).concat(heavy.select(lambda x: 0))


def _joined(part: Query) -> Query:
    return part.join(heavy, lambda x: x, lambda y: y)


def _billed(queries: list[Query], epsilon: Fraction = Fraction(1)) -> Fraction:
    plans = [query.plan for query in queries]
    return charges(demand([(plan, epsilon) for plan in plans]).sources, sources(plans))["thin"]


def test_a_unit_spread_over_many_parts_loses_more_than_the_largest_part_pays() -> None:
    """Each part moves by 2^-34, and beside 2^29 rounds by 2^-23 more or less: so do 2^20 of them, and all are paid for.

    All parts are alike, so one is evaluated.
    """
    (part,) = _parts(1)
    plan, weight = _added(part).plan, 2.0**-24
    scale = laplace_scale(Fraction(1), plan_properties(plan).slack())
    near, far = ({"thin": {0: w}, "heavy": {0: 2.0**29}} for w in (weight, weight + float(LEAST_MOVE)))
    with Database() as database:
        for evaluate in (reference.evaluate, database.evaluate):
            moved = distance(evaluate(plan, near), evaluate(plan, far))
            loss = PARTS * moved / Fraction(scale)
            unit = PARTS * LEAST_MOVE
            assert loss > 5 * unit  # what the largest of all parts pays
            assert loss < PARTS * unit  # what all of them pay
    assert _billed([_added(part) for part in _parts(7)]) == 7 * _billed([_added(part)])


def test_parts_that_are_joined_with_other_data_cost_the_largest() -> None:
    keys = heavy.group_by(lambda x: x).select(lambda g: g.key)
    for beside in (_joined, lambda part: part.intersect(keys)):
        assert _billed([beside(part) for part in _parts(7)]) == _billed([beside(_parts(1)[0])]) == PARTS * LEAST_MOVE


def test_a_minimum_with_weights_that_may_be_negative_is_not_bounded_by_the_part() -> None:
    assert unshared(_parts(1)[0].intersect(heavy).plan)


def test_parts_added_to_each_other_cost_the_largest() -> None:
    """Of one partition, all that is read is in proportion to its parts; of two it is not."""
    one, two, three = _parts(3)
    assert not unshared(one.concat(two).difference(three).plan)
    other = thin.partition(lambda x: x % 7, [1])[1]
    assert len(unshared(one.concat(other).plan)) == 2
    assert not unshared(one.join(other, lambda x: x, lambda y: y).plan)


def test_parts_of_two_datasets_by_one_key_are_of_two_partitions() -> None:
    one, two = (items.partition(lambda x: x, [0])[0] for items in (thin, heavy))
    assert len(unshared(one.concat(two).plan)) == 2
    assert not unshared(one.concat(one).plan)


def test_what_a_step_below_adds_is_not_made_up_for_by_a_join_with_a_part() -> None:
    """The join weighs no more than the part; what the sum below it rounds goes through it all the same."""
    one, two, three = _parts(3)
    beside = [_added(part).join(two.select(lambda x: 0), lambda x: x, lambda y: y) for part in (one, three)]
    assert [len(unshared(query.plan)) for query in beside] == [1, 1]
    assert _billed(beside) == sum((_billed([query]) for query in beside), Fraction(0)) > _billed(beside[:1])


def test_one_release_over_several_parts_pays_for_the_largest_of_them_also_in_full() -> None:
    one, two, _ = _parts(3)
    both = one.concat(two).concat(heavy)
    assert _billed([both]) == _billed([one])
    assert _billed([both, both]) == 2 * _billed([one])
    assert _billed([both, _added(one), two]) == 3 * _billed([one])


def test_data_added_to_an_inner_part_are_paid_for_in_every_outer_one() -> None:
    """An inner part with other data is not in proportion to the outer part either."""
    inner = [part.partition(lambda x: x % 2, [0])[0] for part in _parts(3)]
    assert _billed(inner) == _billed(inner[:1])
    assert _billed([_added(part) for part in inner]) == 3 * _billed([_added(inner[0])])
    assert _billed([_joined(part) for part in inner]) == _billed([_joined(inner[0])])
    one, two, _ = _parts(3)
    assert _billed([inner[0].concat(two)]) == _billed([one])


def test_what_is_split_again_pays_in_full_below() -> None:
    """Data added to a part before it is split again weigh in all of the inner parts."""
    inner = [part.concat(heavy).partition(lambda x: x % 2, [0])[0].select(lambda x: 0) for part in _parts(3)]
    assert _billed(inner) == 3 * _billed(inner[:1])


@pytest.mark.parametrize("seed", tenth(range(3)))
def test_steps_weigh_no_more_than_the_parts_that_bound_them(seed: int) -> None:
    rng, held, heavier = Random(seed), 0, 0
    for i in range(160):
        case = random_case(rng, OPERATORS[i % len(OPERATORS)])
        for node in topological([case.plan]):
            if isinstance(node.operator, (Source, Partition)):
                continue
            of_partition: dict[bytes, Fraction] = {}
            shares: dict[bytes, Fraction] = {}
            norm_bounds = norm_bounds_over_parts(node)
            for cut, paths in _cuts(node).items():
                partition, weight = partition_of(cut), norm(reference.evaluate(cut, case.data, EXACT))
                of_partition[partition] = of_partition.get(partition, Fraction(0)) + paths * weight
                shares[partition] = shares.get(partition, Fraction(0)) + weight / norm_bounds[cut.digest]
            for partition, bound in of_partition.items():
                weight = norm(reference.evaluate(node, case.data, EXACT))
                assert weight <= bound or partition in unshared(node)
                assert weight <= shares[partition] * norm_bounds[node.digest] or partition in unshared(node)
                held, heavier = held + (partition not in unshared(node)), heavier + (weight > bound)
    assert held > 20
    assert heavier > 3


def _cuts(root: Node) -> dict[Node, int]:
    """The parts right below a plan, each with the number of paths to it."""
    paths, found = {root.digest: 1}, {}
    for node in reversed(list(topological([root]))):
        count = paths.get(node.digest, 0)
        if count and isinstance(node.operator, Partition):
            found[node] = count
        elif count:
            for child in node.inputs:
                paths[child.digest] = paths.get(child.digest, 0) + count
    return found


def test_the_least_way_is_what_rounding_is_measured_by() -> None:
    part = heavy.partition(lambda x: x, [0])[0]
    faint = heavy.select_many(lambda x: [F.weighted(x, 2.0**-20)])
    beside, plain = (part.join(other, lambda x: x, lambda y: y).plan for other in (faint, heavy))
    assert dict(least_on_a_way(beside)) == {"heavy": Fraction(1, 2**20)}
    assert dict(least_on_a_way(plain)) == {"heavy": 1}
    assert plan_properties(plain).slack() == PARTITION_SLACK
    rounded = (7 + SUM_ROUNDING_UNITS) + (
        2 + SUM_ROUNDING_UNITS
    )  # of a whole side, for the join shrinks no faster than the part
    widening = 2 * UNIT_ROUNDOFF * rounded * 2**30 * 2**20
    assert plan_properties(beside).slack() == (1 + PARTITION_SLACK) * 4 * widening / PARTITION_SLACK - 1


def test_a_join_with_other_data_rounds_over_all_parts_up_to_the_mass_of_the_parts() -> None:
    """Many parts of little weight, each joined with a record of weight 1, weigh more in all than the whole, joined."""
    single = wp.source("single", int, cap=1)
    wide = wp.source("wide", int, cap=2**20)
    parts = list(wide.partition(lambda x: x, range(400)).values())
    data = {"wide": dict.fromkeys(range(400), Fraction(1, 2)), "single": {0: Fraction(1)}}
    joined = [part.join(single, lambda x: 0, lambda y: 0) for part in parts]
    weight = sum((norm(reference.evaluate(query.plan, data, EXACT)) for query in joined), Fraction(0))
    assert weight == 400 * Fraction(1, 3) > joined[0].plan.operator.norm_bound(Fraction(2**20), Fraction(1))
    assert norm_bounds_over_parts(joined[0].plan)[joined[0].plan.digest] == 2**20 > weight
    itself = parts[0].join(parts[0], lambda x: 0, lambda y: 0).plan
    assert norm_bounds_over_parts(itself)[itself.digest] == 2**19


def test_on_a_grid_what_is_rounded_goes_with_rows_and_not_with_weights() -> None:
    """However light a part is, its rows are off by a step of the grid: more than its share, and less than rows take."""
    light = wp.source("light", int, cap=2**20)
    (part,) = light.partition(lambda x: x // 4, [0]).values()
    plan = part.select_many(lambda x: [x, x + 1, x + 2]).plan
    norm_bounds, certificate = norm_bounds_over_parts(plan), plan_properties(plan)
    (step,) = (step for step in certificate.steps.values() if step.node.operator.rounding_units())
    rng, rows = Random(2), 12
    for weight in (2.0**-60, 2.0**-20, 1.0):
        data = {"light": {x: weight * (1 + rng.random()) for x in range(4)}}
        exact = reference.evaluate(plan, data, EXACT)
        share = norm(data["light"]) * UNIT_ROUNDOFF * step.node.operator.rounding_units()
        grid = rows * Fraction(2) ** (20 - 105)
        with Database() as database:
            error = distance(exact, database.evaluate(plan, data))
        assert distance(exact, reference.evaluate(plan, data)) <= share
        assert (
            0 < error <= share + grid < share + norm_bounds[plan.digest] * UNIT_ROUNDOFF / 2**6 * rows / Fraction(2**38)
        )
        assert (error > share) == (weight < 2.0**-50)


def test_two_engines_round_what_is_split_in_different_parts() -> None:
    """One errs in one part and one in another: the largest errors of all parts are more than either engine makes."""
    light = wp.source("light", int, cap=1)
    split = light.select_many(lambda x: [x, x, x, x + 16, x + 16]).partition(lambda x: x, range(32))
    rng = Random(1)
    data = {"light": {i: rng.random() / 32 for i in range(16)}}
    exact = {key: reference.evaluate(part.plan, data, EXACT) for key, part in split.items()}
    with Database() as database:
        errors = [
            [distance(exact[key], evaluate(part.plan, data)) for key, part in split.items()]
            for evaluate in (reference.evaluate, database.evaluate)
        ]
    assert sum(map(max, *errors)) > max(map(sum, errors))


def test_a_ledger_adds_them_up_over_sessions(tmp_path: Path) -> None:
    people = wp.source("people", region=int, age=int, facts=["unit_weights"])
    others = wp.source("others", int)
    parts = people.partition(lambda p: p.region, [0, 1, 2])
    spent = []
    for region in (0, 1, 2, 2):
        with wp.Session(tmp_path / "ledger.sqlite") as session:
            session.protect(people, [(0, 30), (1, 40)], budget=3, version="1")
            session.protect(others, [1, 2, 2], budget=30, version="1")
            ages = parts[region].select(lambda p: p.age)
            session.release(ages.concat(others).noisy_count("0.5", over=[30]), fresh=True)
            session.release(ages.join(others, lambda a: a, lambda b: b).noisy_count("0.125", over=[(30, 1)]))
            spent.append(session.spent("people"))
    assert spent == [Fraction(5, 8), Fraction(9, 8), Fraction(13, 8), Fraction(17, 8)]
