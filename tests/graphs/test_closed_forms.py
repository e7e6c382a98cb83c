"""Which plans have closed forms, and that these count: against a brute count in random graphs, some with loops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import combinations, permutations
from random import Random
from typing import Any

import pytest

import wpinq as wp
from wpinq import graphs
from wpinq.api.query import Query

Edges = set[tuple[int, int]]

SIMPLE = wp.source("edges", a=int, b=int, facts=["unit_weights", "simple"])
BOTH = wp.source("edges", a=int, b=int, facts=["unit_weights", "symmetric"], unit_weight=2)
DIRECTED = wp.source("edges", a=int, b=int, facts=["unit_weights"])
ANY = wp.source("edges", a=int, b=int)
MIRRORED = SIMPLE.concat(SIMPLE.select(lambda e: (e.b, e.a)))


def degrees(edges: Edges) -> Counter[int]:
    return Counter(a for a, _ in edges)


def joint(edges: Edges) -> Counter[Any]:
    known = degrees(edges)
    return Counter((known[a], known[b]) for a, b in edges if (b, a) in edges)


def triangles(edges: Edges) -> Counter[Any]:
    known = degrees(edges)
    return Counter(
        tuple(sorted(known[v] for v in three))
        for three in combinations(sorted(known), 3)
        if all((a, b) in edges for a, b in combinations(three, 2))
    )


def squares(edges: Edges) -> Counter[Any]:
    known, found = degrees(edges), Counter[Any]()
    for four in combinations(sorted(known), 4):
        first, *others = four
        for b, c, d in permutations(others):
            if b < d and {(first, b), (b, c), (c, d), (d, first)} <= edges:
                ring = [known[v] for v in (first, b, c, d)]
                ways = [ring[i:] + ring[:i] for i in range(4)]
                found[min(map(tuple, ways + [way[::-1] for way in ways]))] += 1
    return found


def random_edges(random: Random, loops: bool) -> Edges:
    pairs = [(a, b) for a in range(7) for b in range(a + loops)]
    return set(random.sample(pairs, 12))


def both(edges: Edges) -> Edges:
    return edges | {(b, a) for a, b in edges}


CLAIMS: dict[str, tuple[Query, Callable[[Edges], Counter[Any]], bool]] = {
    "joint degrees": (graphs.joint_degrees(graphs.symmetrize(SIMPLE)), joint, False),
    "joint degrees of both directions": (graphs.joint_degrees(BOTH), joint, True),
    "triangles": (graphs.triangles_by_degree(graphs.symmetrize(SIMPLE)), triangles, False),
    "triangles the other way around": (graphs.triangles_by_degree(MIRRORED), triangles, False),
    "triangles of both directions": (graphs.triangles_by_degree(BOTH), triangles, True),
    "squares": (graphs.squares_by_degree(graphs.symmetrize(SIMPLE)), squares, False),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_weights_over_their_factors_are_counts(name: str) -> None:
    query, brute, loops = CLAIMS[name]
    kind = query.noisy_count(1, over=[]).kind
    assert kind.name == "rescaled count"
    random, seen = Random(3), 0
    for _ in range(8):
        once = random_edges(random, loops)
        data = both(once) if "symmetric" in str(query.plan.operator) or loops else once
        weights = wp.evaluate(query, {"edges": sorted(data)}, exact=True)
        counts = {key: weight / kind.at(key)[1] for key, weight in weights.items()}
        assert counts == brute(both(once))
        seen += len(counts)
    assert seen > 8


def test_edges_of_one_direction_are_counted_where_their_reverse_is_there() -> None:
    query = graphs.joint_degrees(DIRECTED)
    edges = {(0, 1), (1, 0), (1, 2), (2, 2), (3, 0)}
    kind = query.noisy_count(1, over=[]).kind
    weights = wp.evaluate(query, {"edges": sorted(edges)}, exact=True)
    assert {key: weight / kind.at(key)[1] for key, weight in weights.items()} == joint(edges)


def test_what_has_no_closed_form_is_a_weight() -> None:
    recipes: Iterable[Callable[[Query], Query]] = (
        graphs.joint_degrees, graphs.triangles_by_degree, graphs.squares_by_degree
    )  # fmt: skip
    plain = graphs.symmetrize(SIMPLE)
    bucketed = graphs.triangles_by_degree(plain, bucket=2)
    merged = graphs.triangles_by_degree(plain).select(lambda t: t[0])
    weights = [
        *(recipe(edges) for recipe in recipes for edges in (ANY, graphs.symmetrize(ANY), graphs.symmetrize(DIRECTED))),
        graphs.triangles_by_degree(DIRECTED),  # in one direction, there are others
        graphs.squares_by_degree(BOTH),  # a loop makes squares of three vertices
        graphs.triangles_by_intersect(plain),
        graphs.paths(plain),
        bucketed,
        merged,
    ]
    assert {query.noisy_count(1, over=[]).kind.name for query in weights} == {"weight, not a count"}


def test_rows_and_frames_divide_key_by_key() -> None:
    query = graphs.triangles_by_degree(graphs.symmetrize(SIMPLE)).where(lambda t: t[2] > 2)
    keys = [(2, 2, 3), (3, 3, 3), (1, 2, 3), None]
    answers = wp.simulate(query.noisy_count(1000, over=keys), {"edges": [(0, 1), (1, 2), (2, 0), (2, 3)]}, seed=1)
    rows = list(answers.rows())
    assert [row.kind for row in rows] == ["rescaled count"] * 2 + ["weight, not a count"] * 2
    assert rows[0].estimate == pytest.approx(answers[2, 2, 3] * 17 / 3)
    assert round(rows[0].estimate) == 1
    low, high = answers.interval((2, 2, 3))
    assert (rows[0].low, rows[0].high) == pytest.approx((low * 17 / 3, high * 17 / 3))
    assert rows[3].key == (None, None, None)
    assert answers.to_json()["kind"]["factors"] == ["3/17", "1/9", "1", "1"]
    assert wp.Answers.from_json(answers.to_json()).to_pandas().equals(answers.to_pandas())
    assert answers.to_polars()["kind"].to_list() == [row.kind for row in rows]
