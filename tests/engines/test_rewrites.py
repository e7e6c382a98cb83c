"""Each rewrite: a plan before it, the program after it, and equal weights either way."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import Any

import pytest

import wpinq as wp
from tests.support.parameters import for_each, tenth
from tests.support.plans import distance
from tests.support.relational import SWITCHES, evaluate, without
from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.engines import reference
from wpinq.engines.sql import terms
from wpinq.engines.sql.compile import Plan
from wpinq.engines.sql.rewrites import REWRITES
from wpinq.engines.sql.script import Rewrite
from wpinq.graphs.recipes import (
    degrees,
    joint_degrees,
    paths,
    squares_by_degree,
    symmetrize,
    triangles_by_degree,
    triangles_by_intersect,
)
from wpinq.plan.arithmetic import EXACT
from wpinq.plan.properties import plan_properties
from wpinq.plan.work import equal_weights

UNIT = wp.source("edges", src=int, dst=int, facts=["unit_weights"])
ANY = wp.source("edges", src=int, dst=int, weights=True)
GRAPH_QUERIES = [triangles_by_intersect, triangles_by_degree, squares_by_degree, joint_degrees]


def graph(rng: Random, weigh: bool = False) -> dict[Any, float]:
    data: dict[Any, float] = {}
    for _ in range(40):
        a, b = rng.sample(range(12), 2)
        data[a, b] = data[b, a] = rng.choice([1.0, 0.5, -2.0, 1 / 3]) if weigh else 1.0
    return data


def text(query: Query, rewrites: tuple[Rewrite, ...] = REWRITES) -> str:
    compiled = Plan(query.plan, rewrites).program()
    return "\n".join([*(statement.sql for statement in compiled.statements), compiled.query])


@pytest.mark.parametrize("recipe", tenth(GRAPH_QUERIES, 2), ids=lambda recipe: recipe.__name__)
@pytest.mark.parametrize("source", [UNIT, pytest.param(ANY, marks=pytest.mark.long)], ids=["unit", "any"])
def test_each_rewrite_can_be_left_out(recipe: Any, source: Query) -> None:
    rng = Random(f"{recipe.__name__} rewrites")
    query = recipe(source)
    data = {"edges": graph(rng, weigh=source is ANY)}
    exact = reference.evaluate(query.plan, data, EXACT)
    for switch in SWITCHES:
        found = evaluate(query.plan, data, rewrites=without(switch))
        assert distance(exact, found) <= plan_properties(query.plan).rounding_error
        assert found.keys() == exact.keys()


def test_an_intersect_becomes_a_join_and_what_is_negative_on_one_side() -> None:
    def swapped(query: Query) -> Query:
        return query.select(lambda e: F.record(src=e.dst, dst=e.src)).intersect(query)

    assert "JOIN" not in text(swapped(UNIT))
    assert "UNION ALL" not in text(swapped(UNIT))
    assert text(swapped(ANY)).count("ANTI JOIN") == 2
    assert "FILTER" in text(swapped(ANY), without("intersect_as_join"))
    negative = {"edges": {(1, 2): -1.0, (3, 4): 2.0, (4, 3): -3.0, (5, 6): 1.0, (6, 5): 2.0}}
    expected = {(1, 2): -1.0, (2, 1): -1.0, (3, 4): -3.0, (4, 3): -3.0, (5, 6): 1.0, (6, 5): 1.0}
    assert evaluate(swapped(ANY).plan, negative) == expected


def test_signs_follow_the_operators() -> None:
    plans = {
        UNIT.select(lambda e: e.src): True,
        UNIT.difference(UNIT): False,
        ANY.difference(ANY).union(UNIT): True,
        ANY.intersect(UNIT): False,
        ANY.shave(1.0, limit=3): True,
        UNIT.select_many(lambda e: [F.weighted(e.src, -1.0)]): False,
        UNIT.join(ANY, lambda x: x.src, lambda y: y.src): False,
    }
    assert [plan_properties(query.plan).output.nonnegative for query in plans] == list(plans.values())


def test_a_triangle_reads_three_edges_and_not_four() -> None:
    query = triangles_by_intersect(UNIT)
    assert Plan(query.plan, without("join_order_by_row")).program().query.count("source_edges") == 3
    assert Plan(query.plan, without("join_order_by_row", "self_joins")).program().query.count("source_edges") == 4


def test_the_norm_of_a_unique_key_is_the_weight_of_its_row() -> None:
    query = UNIT.join(UNIT, lambda x: x, lambda y: y, lambda x, y: x)
    assert "GROUP BY" not in text(query)
    assert "GROUP BY" in text(query, without("unique_norms"))


def test_weights_that_the_key_fixes_are_counted() -> None:
    query = paths(UNIT).select(lambda path: path.b)
    assert "HUGEINT" not in text(query)
    assert "HUGEINT" in text(query, without("late_aggregation"))


def test_lookups_by_one_key_are_one_table() -> None:
    query = triangles_by_degree(UNIT)
    final = Plan(query.plan, without("join_order_by_row")).program().query
    assert final.count(" AS a5") == 1
    assert " AS a6" not in final, "three edges and what is known of three vertices"
    unfolded = Plan(query.plan, without("join_order_by_row", "fold_lookups")).program().query
    assert " AS a11" in unfolded, "three lookups at each"


def test_a_filter_comes_before_lookups() -> None:
    final = Plan(triangles_by_degree(UNIT).plan, without("symmetry", "join_order_by_row")).program().query
    tables = final[final.index(" FROM source_edges") :].split(" WHERE ")[0].split(", ")
    assert [table.split()[-3 if i == 0 else 0] for i, table in enumerate(tables)][:3] == ["source_edges"] * 3


def test_triangles_are_walked_the_shorter_way() -> None:
    final = Plan(triangles_by_intersect(UNIT).plan, without("symmetry")).program().query
    assert final.count("UNION ALL") == 1
    assert final.count('."n" < ') == 2


def test_a_plan_used_twice_is_evaluated_once() -> None:
    counted = ANY.group_by(lambda e: e.src, lambda group: F.count(group))
    query = counted.select(lambda g: g.val).concat(counted.select(lambda g: g.key))
    assert sum("lead(" in statement.sql for statement in Plan(query.plan).program().statements) == 1


def test_a_simple_list_and_its_reverse_are_not_added_up() -> None:
    simple = wp.source("edges", src=int, dst=int, facts=["unit_weights", "simple"])
    first = [Plan(degrees(symmetrize(source)).plan).program().statements[0].query for source in (simple, UNIT)]
    assert ["GROUP BY" in query for query in first] == [False, True]
    kept = Plan(degrees(symmetrize(simple)).plan, without("no_repeats")).program().statements[0].query
    assert "GROUP BY" in kept


def test_a_chain_of_concats_goes_through_each_of_its_inputs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[object] = []
    same_layout = terms.same_layout
    monkeypatch.setattr(terms, "same_layout", lambda *types: compared.append(types) or same_layout(*types))
    query = UNIT.select(lambda e: e.src)
    for i in range(40):
        query = query.concat(UNIT.where(lambda e, i=i: e.src > i).select(lambda e: e.dst))
    program = Plan(query.plan).program()
    assert program.output.count("source_edges") == 41
    assert len(compared) < 10 * 40


def test_shared_terms_do_not_blow_up_the_text() -> None:
    def folded(x: Any) -> Any:
        for i in range(60):
            x = F.where(x % 7 < i, x + x, x - i * x)
        return x

    numbers = wp.source("numbers", int, weights=True)
    query = numbers.select(folded)
    assert len(text(query)) < 100_000
    data = {"numbers": dict.fromkeys(range(-3, 4), 1.0)}
    assert evaluate(query.plan, data) == reference.evaluate(query.plan, data)


def test_shared_terms_inside_lists_do_not_blow_up_the_text() -> None:
    def folded(x: Any) -> Any:
        for i in range(30):
            x = F.where(x % 7 < i, x + x, x - i * x)
        return x

    lists = wp.source("lists", list[int], weights=True)
    query = lists.select(lambda items: F.sum(items, folded))
    assert len(text(query)) < 100_000
    data = {"lists": {(1, 2, 3): 1.0, (): 2.0, (5,): 1.0}}
    assert evaluate(query.plan, data) == reference.evaluate(query.plan, data)


@for_each("limit", [None, 2])
@for_each("number", [0, 1, 5, -1])
@for_each("width", [1.0, 0.375])
def test_one_piece_is_the_piece_among_all(width: float, number: int, limit: int | None) -> None:
    rng = Random(f"{width} {number}")
    numbers = wp.source("numbers", int, weights=True)
    data = {"numbers": {i: rng.choice([1.0, 0.5, 2.0, 0.1, 3.7, -1.0]) for i in range(60)}}
    pieces = numbers.shave(width) if limit is None else numbers.shave(width, limit=limit)
    query = pieces.where(lambda r: (r[1] == number) & (r[0] > 3))
    found = evaluate(query.plan, data)
    assert found == evaluate(query.plan, data, rewrites=without("one_piece"))
    assert found == {
        key: weight for key, weight in evaluate(pieces.plan, data).items() if key[1] == number and key[0] > 3
    }
    assert ("unnest" in text(query)) == (number < 0)
    assert "unnest" in text(query, without("one_piece"))


@for_each("seed", range(20), every=2)
def test_pieces_of_constant_widths_are_those_of_widths_of_each_record(seed: int) -> None:
    """To the last bit, also where totals fall on a weight, widths are far above it, or no float on the grid."""
    rng = Random(seed)
    numbers = wp.source("numbers", int, weights=True)
    usual = [0.0, 0.5, 1.0, 2.5, 2.0**50]
    drawn = rng.choice([usual, usual, [*usual, 1e300, 0.1, 1 / 3, 2.0**-80], [0.0, 2.0**800]])
    widths = [rng.choice(drawn) for _ in range(7)]
    weights = [0.5, 1.0, 1.5, 3.7, 2.0**-70, 9.0, 1e6, -1.0, 0.1, *(sum(widths[:i]) for i in range(1, 4))]
    data = {"numbers": {i: weight for i in range(60) if 0 < abs(weight := rng.choice(weights)) < 1e9}}
    constant, varied = (
        numbers.shave(lambda x: widths),
        numbers.shave(lambda x: [F.where(x < 0, 1.0, w) for w in widths]),
    )
    found = evaluate(constant.plan, data)
    assert found == evaluate(varied.plan, data)
    assert "OVER" in text(varied)
    assert not {*widths} <= {*usual} or "OVER" not in text(constant)


@pytest.mark.parametrize("day", [0, 3, 100])
@pytest.mark.parametrize("facts", [(), ("unit_weights",)])
def test_pieces_of_wanted_records_are_those_of_all(facts: tuple[str, ...], day: int) -> None:
    rng = Random(f"{facts} {day}")
    orders = wp.source("orders", key=int, day=int, facts=facts, weights=True)
    lines = wp.source("lines", key=int, number=int, facts=facts, weights=True)
    weights = [1.0] if facts else [1.0, 0.5, 2.0, 0.1, 3.7, -1.0]
    data = {
        "orders": {(rng.randrange(40), rng.randrange(9)): rng.choice(weights) for _ in range(60)},
        "lines": {(rng.randrange(50), number): rng.choice(weights) for number in range(150)},
    }
    kept = lines.where(lambda r: r.number > 20).select(lambda r: r.key).shave(1.0).where(lambda r: r[1] == 0)
    wanted = orders.where(lambda o: o.day < day)
    for query in (
        wanted.join(kept, lambda o: o.key, lambda r: r[0], lambda o, r: (o.day, r[0])),
        kept.join(wanted, lambda r: r[0], lambda o: o.key, lambda r, o: o.day),
    ):
        found = evaluate(query.plan, data)
        plain = evaluate(query.plan, data, rewrites=without("wanted_pieces"))
        assert {key: weight.hex() for key, weight in found.items()} == {k: w.hex() for k, w in plain.items()}
        assert bool(found) == (day > 0)
        assert "SEMI JOIN" in text(query)
        assert "SEMI JOIN" not in text(query, without("wanted_pieces"))


def test_a_negated_conjunction_is_a_disjunction() -> None:
    pairs = wp.source("pairs", a=int | None, b=int | None, weights=True)
    data = {"pairs": {(a, b): 1.0 for a in (None, 0, 1, 2) for b in (None, 0, 1, 2)}}
    conditions: list[Any] = [
        lambda r: ~((r.a > 0) & (r.b > 0)),
        lambda r: (r.a > 0) | ~(r.b > 1),
        lambda r: ~(~(r.a > 0) & ~((r.b > 0) & (r.a > 1))) | (r.b == 0),
    ]
    for condition in conditions:
        for query in (pairs.where(condition), pairs.select(condition)):
            assert " OR " in text(query)
            assert " AND " not in text(query)
            assert evaluate(query.plan, data) == wp.evaluate(query, data, engine="reference")


def test_a_proven_weight_that_is_not_one_is_read_as_what_it_is() -> None:
    rows = wp.source("rows", group=int, item=int, facts=["unit_weights"])
    halves = rows.group_by(lambda r: r.group, lambda g: F.count(g))
    both = halves.union(halves.select(lambda x: (x[0], x[1])))
    assert equal_weights(both.plan)[both.plan.digest] == Fraction(1, 2)
    pairs, data = both.join(both, lambda x: x[1], lambda y: y[1]), {"rows": [(i % 4, i) for i in range(22)]}
    assert wp.evaluate(pairs, data, "duckdb").distance(wp.evaluate(pairs, data, exact=True)) < 1e-12


@pytest.mark.parametrize(
    "edges, width, whole",
    [(UNIT, 1.0, True), (UNIT, 0.5, True), (UNIT, 2.0, False), (UNIT, 0.3, False), (ANY, 1.0, False)],
)
def test_pieces_that_all_weigh_the_width_are_counted(edges: wp.Query, width: float, whole: bool) -> None:
    """Counts are multiples of the width; other weights may leave a rest, and are weighed piece by piece."""
    query = edges.select(lambda e: e.src).shave(width).select(lambda x: x[1])
    program = Plan(query.plan).program()
    assert (program.output.count("HUGEINT") == 0) == whole
    assert (" % " in program.output) == (not whole)
    data = {"edges": {(a, b): 1.0 for a in range(9) for b in range(a)}}
    assert evaluate(query.plan, data) == reference.evaluate(query.plan, data)
