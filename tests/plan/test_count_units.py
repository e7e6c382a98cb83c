"""What the plan says that weights count: against numbers counted by hand, and on random plans and data."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from random import Random
from typing import Any

import pytest

import wpinq as wp
from tests.support.parameters import for_each
from wpinq import functions as F, graphs
from wpinq.api.query import Query
from wpinq.graphs.tags import half_edges
from wpinq.plan.domain import Counted, NoCount
from wpinq.plan.format import plan_from_json, plan_to_json
from wpinq.plan.work import counted

HALF = Fraction(1, 2)
ROWS = wp.source("rows", a=int, b=int)
ONCE = wp.source("once", a=int, b=int, facts=["unit_weights"])
EDGES = wp.source("edges", a=int, b=int, facts=["unit_weights", "simple"])
ANY = wp.source("any", a=int, b=int, weights=True)
KEPT = wp.source("kept", a=int, b=int, person="id", at_most=20)
PEOPLE = wp.source("people", a=int, b=int, person="id", at_most=20, nested=True)

COUNTS: dict[str, tuple[Query, Fraction, str]] = {
    "rows": (ROWS, Fraction(1), "rows of rows"),
    "rows of people": (KEPT, Fraction(1), "rows of kept, at most 20 per person"),
    "people": (PEOPLE, Fraction(1), "people in people, with at most 20 rows each"),
    "filtered, mapped, in part": (
        ROWS.where(lambda r: r.a > 1).partition(lambda r: r.a, [2])[2].select(lambda r: r.b),
        Fraction(1),
        "rows of rows",
    ),
    "both sides": (ROWS.concat(ONCE), Fraction(1), "rows of rows and rows of once"),
    "one side twice": (ROWS.concat(ROWS), Fraction(1), "rows of rows, summed over two inputs"),
    "a difference": (ROWS.difference(ONCE), Fraction(1), "rows of rows minus rows of once"),
    "a union": (ROWS.union(ONCE), Fraction(1), "rows of rows or rows of once, the larger number at each record"),
    "an intersection": (
        ROWS.intersect(ROWS.where(lambda r: r.a > 1)),
        Fraction(1),
        "the smaller number at each record",
    ),
    "groups": (ONCE.group_by(lambda r: r.a), HALF, "groups of rows of once"),
    "groups of rows put in another order": (
        ONCE.select(lambda r: (r.b, r.a)).group_by(lambda r: r[0]),
        HALF,
        "groups of rows of once",
    ),
    "groups of rows that were shaved": (ROWS.shave(1.0).group_by(lambda p: p.record.a), HALF, "groups of rows of rows"),
    "groups of what is in both": (
        ONCE.intersect(ONCE.where(lambda r: r.a > 1)).group_by(lambda r: r.a),
        HALF,
        "groups",
    ),
    "groups of edges that are made symmetric": (
        graphs.degrees(graphs.symmetrize(EDGES)),
        HALF,
        "groups of rows of edges",
    ),
    "groups of half-edges": (
        half_edges(EDGES).group_by(lambda h: h.src),
        HALF / 2,
        "groups of elements of rows of edges (2 each)",
    ),
    "nodes": (graphs.nodes(graphs.symmetrize(ONCE)), HALF, "elements of rows of once, summed over two inputs (2 each)"),
    "the CCDF": (graphs.degree_ccdf(graphs.symmetrize(ONCE)), Fraction(1), "numbered within each record"),
    "the degree sequence": (
        graphs.degree_sequence(graphs.symmetrize(ONCE)),
        Fraction(1),
        "numbered within each record",
    ),
    "slices of rows": (ROWS.shave(0.25), Fraction(1, 4), "slices of rows of rows"),
    "rows by twos": (ROWS.shave(2.0), Fraction(1), "rows of rows, numbered within each record"),
    "rows by widths": (ROWS.shave(lambda r: [2.0, 1.0]), Fraction(1), "rows of rows, numbered within each record"),
    "elements": (ROWS.select_many(lambda r: [r.a, r.b]), HALF, "elements of rows of rows (2 each)"),
    "elements that stand in the plan": (
        ROWS.select_many(lambda r: ["x", "y", "z"]),
        Fraction(1, 3),
        "elements of rows of rows (3 each)",
    ),
    "elements cut": (ROWS.select_many(lambda r: [r.a, r.b, 0], limit=1), Fraction(1), "rows of rows"),
    "elements of one weight": (
        ROWS.select_many(lambda r: [F.weighted(r.a, 2.0), F.weighted(r.b, 2.0)]),
        HALF,
        "elements of rows of rows (2 each)",
    ),
}

NO_COUNTS: dict[str, tuple[Query, str]] = {
    "any weights": (ANY, "Source(any)"),
    "any weights below": (ANY.where(lambda r: r.a > 1).concat(ANY), "Source(any)"),
    "one side of any weights": (ROWS.concat(ANY), "Source(any)"),
    "a join": (ONCE.join(ONCE, lambda r: r.a, lambda r: r.b), "Join"),
    "a count of joined": (ONCE.join(ONCE, lambda r: r.a, lambda r: r.b).select(lambda p: 0), "Join"),
    "groups of rows that may be several": (ROWS.group_by(lambda r: r.a), "GroupBy"),
    "groups of rows by twos": (ROWS.shave(2.0).group_by(lambda p: p.record.a), "GroupBy"),
    "groups of merged rows": (ONCE.select(lambda r: r.a).group_by(lambda a: a), "GroupBy"),
    "groups of rows that are on both sides": (graphs.degrees(graphs.symmetrize(ONCE)), "GroupBy"),
    "groups of half-edges that may stand both ways": (half_edges(ONCE).group_by(lambda h: h.src), "GroupBy"),
    "groups of an end twice": (
        EDGES.select_many(lambda e: [(e.a, e.a), (e.b, e.b)]).group_by(lambda r: r[0]),
        "GroupBy",
    ),
    "groups of elements of several weights": (
        EDGES.concat(EDGES).select_many(lambda e: [e, (e.b, e.a)]).group_by(lambda r: r[0]),
        "GroupBy",
    ),
    "groups of different weights": (ONCE.concat(ONCE).group_by(lambda r: r.a), "GroupBy"),
    "sides of different weight": (ONCE.select(lambda r: r.a).concat(ONCE.select_many(lambda r: [r.a, r.b])), "Concat"),
    "slices that are no whole rows": (ROWS.shave(0.3), "Shave"),
    "slices by widths of the record": (ROWS.shave(lambda r: [r.a * 1.0]), "Shave"),
    "slices by widths that are no whole rows": (ROWS.shave(lambda r: [0.5, 1.0]), "Shave"),
    "lists of any length": (PEOPLE.select_many(lambda rows: rows), "SelectMany"),
    "elements of different weight": (
        ROWS.select_many(lambda r: [F.weighted(0, 1.0), F.weighted(1, 2.0)]),
        "SelectMany",
    ),
    "elements of weights of the data": (ROWS.select_many(lambda r: [F.weighted(0, r.a * 1.0)]), "SelectMany"),
    "elements that take weight away": (ROWS.select_many(lambda r: [F.weighted(r.a, -1.0)]), "SelectMany"),
}


@for_each("name", COUNTS)
def test_what_is_counted(name: str) -> None:
    query, factor, of = COUNTS[name]
    found = counted(query.plan)
    assert isinstance(found, Counted)
    assert found.factor == factor
    assert of in found.of
    kind = query.noisy_count(1).kind
    assert kind.name == ("count" if factor == 1 else "rescaled count")
    assert kind.factor == factor
    assert str(kind) == query.reading or f"number of {found.of}" in str(kind)


@for_each("name", NO_COUNTS)
def test_what_is_no_count_says_at_which_step(name: str) -> None:
    query, step = NO_COUNTS[name]
    found = counted(query.plan)
    assert isinstance(found, NoCount)
    assert found.step == step
    kind = query.noisy_count(1).kind
    assert kind.name == "weight, not a count"
    assert step in str(kind)


@for_each(
    ("declared", "name"),
    [
        ({}, "count"),
        ({"unit_weight": 3}, "count"),
        ({"facts": ["unit_weights"]}, "count"),
        ({"person": "id", "at_most": 3}, "count"),
        ({"weights": True}, "weight, not a count"),
        ({"weights": True, "facts": ["nonnegative"]}, "weight, not a count"),
        ({"weights": True, "unit_weight": "1/2"}, "weight, not a count"),
    ],
)
def test_rows_are_counted_and_weights_are_declared(declared: dict[str, Any], name: str) -> None:
    source = wp.source("s", a=int, **declared)
    kept = plan_from_json(plan_to_json(source.plan))
    written = wp.parse(wp.unparse({"q": source}))["q"]
    assert kept == written.plan == source.plan
    assert Query(kept).noisy_count(1).kind.name == name
    assert "whole" not in str(source.bill(epsilon=1)) + wp.unparse({"q": source})


@for_each(
    ("declared", "said"),
    [
        ({"weights": "yes"}, "weights is True or False"),
        ({"weights": float}, "a field of this name stands in a schema"),
        ({"weights": True, "person": "id", "at_most": 3}, "False where a person is the unit"),
        ({"unit_weight": "1/2"}, "a row weighs 1, above the unit weight 1/2: declare weights=True"),
    ],
)
def test_declarations_of_weights_that_are_refused(declared: dict[str, Any], said: str) -> None:
    with pytest.raises(wp.PlanError, match=said):
        wp.source("s", a=int, **declared)


def test_statistics_and_counts_of_subgraphs() -> None:
    ages = ROWS.select(lambda r: r.a)
    statistics = [
        ROWS.noisy_sum(1, lambda r: r.a, 0, 10),
        ROWS.noisy_average(1, lambda r: r.a, 0, 10),
        ages.median(1, [1, 2]),
        ages.most_common(1, [1, 2]),
    ]
    assert [measurement.kind.name for measurement in statistics] == ["sum", "mean", "median", "most common"]
    assert str(statistics[0].kind) == "sum of values from 0 to 10"
    assert (
        str(ages.quantile(epsilon=1, q="0.9", candidates=[1, 2]).kind)
        == "quantile 0.9 among public candidates, up to noise"
    )
    assert str(graphs.triangle_count(EDGES, 1, interval_share="0.1").kind) == "number of triangles"
    assert str(graphs.star_count(EDGES, 3, 1, interval_share="0.1").kind) == "number of stars of 3 edges"
    assert str(graphs.largest_degree(EDGES, 1).kind) == "largest degree"
    assert str(graphs.largest_core(EDGES, 1).kind) == "largest core"
    assert ages.geometric_count(1, over=[1]).kind == ages.noisy_count(1).kind


def test_numbers_of_nodes_groups_rows_and_elements() -> None:
    """The weights over the factor, against what Python counts in the same graph."""
    edges = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4)]
    both = [*edges, *((b, a) for a, b in edges)]
    degrees = Counter(a for a, _ in both)
    symmetric = graphs.symmetrize(EDGES)

    def counts(query: Query) -> dict[Any, Fraction]:
        found = counted(query.plan)
        assert isinstance(found, Counted)
        weights = wp.evaluate(query, {"edges": edges, "rows": both + both}, exact=True)
        return {record: weight / found.factor for record, weight in weights.items()}

    assert counts(symmetric.select(lambda e: e.a)) == degrees
    assert counts(graphs.nodes(symmetric)) == dict.fromkeys(degrees, 1)
    assert counts(graphs.degrees(symmetric).select(lambda d: d.val)) == Counter(degrees.values())
    assert counts(graphs.degree_ccdf(symmetric)) == {y: sum(d > y for d in degrees.values()) for y in range(3)}
    assert counts(graphs.degree_sequence(symmetric)) == dict(enumerate(sorted(degrees.values(), reverse=True)))
    assert counts(symmetric.select_many(lambda e: [e.a, e.b])) == {node: 2 * d for node, d in degrees.items()}
    assert counts(ROWS.select(lambda r: r.a)) == {node: 2 * d for node, d in degrees.items()}
    assert counts(ROWS.shave(2.0).select(lambda p: p.index)) == {0: 20}
    assert counts(ROWS.shave(1.0).select(lambda p: p.index)) == {0: 10, 1: 10}


STEPS: list[Any] = [
    lambda x, y: x.where(lambda r: r[0] > 1),
    lambda x, y: x.select(lambda r: (r[1], r[0])),
    lambda x, y: x.select(lambda r: (r[0] % 2, 0)),
    lambda x, y: x.partition(lambda r: r[0], [1])[1],
    lambda x, y: x.concat(y),
    lambda x, y: x.difference(y),
    lambda x, y: x.union(y),
    lambda x, y: x.intersect(y),
    lambda x, y: x.group_by(lambda r: r[0], lambda g: F.count(g)).select(lambda g: (g.key, g.val)),
    lambda x, y: x.shave(1.0).select(lambda p: (p.record[0], p.index)),
    lambda x, y: x.shave(0.25).select(lambda p: (p.record[1], p.index)),
    lambda x, y: x.shave(2.0, limit=2).select(lambda p: (p.index, p.record[1])),
    lambda x, y: x.shave(lambda r: [1.0, 0.5]).select(lambda p: (p.record[0], p.index)),
    lambda x, y: x.select_many(lambda r: [(r[0], 0), (r[1], 1)]),
    lambda x, y: x.select_many(lambda r: [(r[0], r[1]), (r[1], r[0])]),
    lambda x, y: x.select_many(lambda r: [F.weighted((r[0], 0), 0.5)]),
    lambda x, y: x.join(y, lambda r: r[0], lambda r: r[0], lambda r, s: (r[1], s[1])),
]


def grown(random: Random) -> Query:
    made = [source.select(lambda e: (e.a, e.b)) for source in (ROWS, ONCE, EDGES)]
    for _ in range(random.randrange(1, 6)):
        made.append(random.choice(STEPS)(random.choice(made[-3:]), random.choice(made)))
    return made[-1]


def test_weights_are_multiples_and_even_ones_the_factor_on_random_plans() -> None:
    """1,000 plans, each on data that keep the facts; and the claims are many enough to mean something."""
    random, multiples, even = Random(5), 0, 0
    for _ in range(1000):
        query = grown(random)
        found = counted(query.plan)
        if isinstance(found, NoCount):
            continue
        pairs = [(a, b) for a in range(4) for b in range(4)]
        simple = [pair if random.random() < 0.5 else pair[::-1] for pair in pairs if pair[0] < pair[1]]
        data = {
            "rows": random.choices(pairs, k=8),
            "once": random.sample(pairs, 7),
            "edges": random.sample(simple, 4),
        }
        weights = wp.evaluate(query, data, exact=True)
        for weight in weights.values():
            assert (weight / found.factor).denominator == 1
            assert not found.even or weight == found.factor
            multiples += 1
            even += found.even
    assert multiples > 1000
    assert even > 200


def test_it_is_the_same_for_text_and_whatever_the_data() -> None:
    program = wp.parse("""
        source once(a: int, b: int) with facts = [unit_weights];
        var sizes = once.GroupBy(r => r.a).NoisyCount(1);
    """)
    assert program.measurements["sizes"].kind == ONCE.group_by(lambda r: r.a).noisy_count(1).kind
    fractions, whole = {(1, 2): 0.5}, {(1, 2): 1.0}
    asked = ANY.noisy_count(1, over=[(1, 2)])
    names = {wp.simulate(asked, {"any": data}, seed=1).kind.name for data in (fractions, whole)}
    assert names == {"weight, not a count"}
