"""Queries by degree tags: closed forms against the reference in exact arithmetic, uses, stability on random graphs."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations, pairwise
from random import Random

import networkx
import numpy as np
import pytest

import wpinq as wp
from tests.support.parameters import for_each
from wpinq.engines import reference
from wpinq.errors import PlanError
from wpinq.graphs.synthesis.common_neighbours import slices_of_graph
from wpinq.graphs.tags import (
    closed_wedges_by_tag,
    degree_mass_by_tag,
    degree_tags,
    half_edges,
    joint_degrees_by_tag,
    pair_slices,
    tag_weights,
    wedge_weights,
)
from wpinq.plan.arithmetic import EXACT

SOURCE = wp.source("edges", src=int, dst=int)
LIMITS = [0, 2, 4, 32]
Edge = tuple[int, int]
RECIPES: dict[str, tuple[Callable[[wp.Query], wp.Query], int]] = {
    "half": (half_edges, 1),
    "tags": (lambda e: degree_tags(e, LIMITS), 1),
    "mass": (lambda e: degree_mass_by_tag(e, LIMITS), 1),
    "closed": (lambda e: closed_wedges_by_tag(e, LIMITS), 4),
    "closed twice": (lambda e: closed_wedges_by_tag(e, LIMITS, [1.0, 0.5, 0.5]), 5),
    "closed in thirds": (lambda e: closed_wedges_by_tag(e, LIMITS, [0.75, 0.375, 0.375]), 5),
    "closed often": (lambda e: closed_wedges_by_tag(e, LIMITS, [1.5, 0.5, 0.25]), 7),
    "joint": (lambda e: joint_degrees_by_tag(e, LIMITS), 3),
    "joint, few tags": (lambda e: joint_degrees_by_tag(e, [0, 1, 2]), 3),
}


def graph(seed: int, nodes: int = 12, share: float = 0.4) -> list[Edge]:
    """Random edges, in random directions."""
    rng = Random(seed)
    pairs = [pair for pair in combinations(range(nodes), 2) if rng.random() < share]
    return [pair if rng.random() < 0.5 else pair[::-1] for pair in pairs]


def evaluated(query: wp.Query, edges: list[Edge]) -> dict[object, Fraction]:
    return dict(wp.evaluate(query, {"edges": edges}, exact=True))


def tag_shares(degree: int, limits: Sequence[int] = LIMITS, *, whole: bool = False) -> list[Fraction]:
    ends = [*limits[:-1], max(degree, limits[-1]) if whole else limits[-1]]
    return [Fraction(min(max(degree - a, 0), b - a), 2) for a, b in pairwise(ends)]


def neighbours(edges: list[Edge]) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for a, b in edges:
        found.setdefault(a, set()).add(b)
        found.setdefault(b, set()).add(a)
    return found


@for_each("name", RECIPES)
def test_uses(name: str) -> None:
    recipe, uses = RECIPES[name]
    assert recipe(SOURCE).uses() == {"edges": uses}


@pytest.mark.parametrize("seed", range(3))
def test_degrees_in_weight(seed: int) -> None:
    edges = graph(seed)
    degrees = Counter(end for edge in edges for end in edge)
    tags = {(a, i): t for a, d in degrees.items() for i, t in enumerate(tag_shares(d)) if t}
    assert evaluated(degree_tags(SOURCE, LIMITS), edges) == tags
    mass = evaluated(degree_mass_by_tag(SOURCE, LIMITS), edges)
    assert mass == {i: sum(t for (_, j), t in tags.items() if i == j) for i in mass}


@pytest.mark.parametrize(
    ("seed", "room", "weights"),
    [
        (0, None, None),
        (1, None, [1, 0.75, 0.5]),
        (1, [0.03125, 0.125, 0.25], [0.5, 0.5, 0.5]),
        (2, [0.75, 0.375, 0.375], [0.25, 1, 1]),
        (2, [2.5, 1, 0.1], None),
    ],
)
def test_closed_wedges(seed: int, room: list[float] | None, weights: list[float] | None) -> None:
    edges = graph(seed)
    near = neighbours(edges)
    expected: dict[int, Fraction] = defaultdict(Fraction)
    for a, c in edges:
        for tag in range(3):
            middles = [len(near[b]) for b in near[a] & near[c]]
            pair = sum((2 * tag_shares(d)[tag] / Fraction(d * (3 * d - 1)) for d in middles), Fraction(0))
            share = Fraction((weights or [1, 1, 1])[tag])
            expected[tag] += share * min(pair, Fraction((room or [0.5, 0.25, 0.25])[tag]))
    found = evaluated(closed_wedges_by_tag(SOURCE, LIMITS, room, weights), edges)
    assert found == {tag: weight for tag, weight in expected.items() if weight}


def test_the_room_of_an_edge_is_divided_as_told() -> None:
    """Six nodes of degree 3 in common, 1/12 of tag 0 each, in a room of 5/8 and of 1/4."""
    edges = [(0, 1), *((end, middle) for end in (0, 1) for middle in range(2, 8)), *((m, m + 6) for m in range(2, 8))]
    near = neighbours(edges)
    weight = {node: 2 * tag_shares(len(far))[0] / Fraction(len(far) * (3 * len(far) - 1)) for node, far in near.items()}
    pairs = [sum((weight[b] for b in near[a] & near[c]), Fraction(0)) for a, c in edges]
    assert max(pairs) == Fraction(1, 2)
    for room in ([0.625, 0.125, 0.125], [0.25, 0.375, 0.25]):
        found = evaluated(closed_wedges_by_tag(SOURCE, LIMITS, room), edges)
        assert found[0] == sum(min(pair, Fraction(room[0])) for pair in pairs)


@pytest.mark.parametrize(("seed", "limits"), [(0, LIMITS), (1, LIMITS), (2, [0, 2, 4])])
def test_joint_degrees(seed: int, limits: list[int]) -> None:
    """Also where degrees go beyond the last limit."""
    edges = graph(seed)
    near = neighbours(edges)
    expected: dict[tuple[int, int], Fraction] = defaultdict(Fraction)
    for a, b in [*edges, *((b, a) for a, b in edges)]:
        for i, s in enumerate(tag_shares(len(near[a]), limits, whole=True)):
            for j, t in enumerate(tag_shares(len(near[b]), limits, whole=True)):
                expected[min(i, j), max(i, j)] += Fraction(2, 3) * s * t / (len(near[a]) * len(near[b]))
    found = evaluated(joint_degrees_by_tag(SOURCE, limits), edges)
    assert found == {pair: weight for pair, weight in expected.items() if weight}
    assert sum(found.values()) == Fraction(len(edges), 3)


@pytest.mark.parametrize("limits", [LIMITS, [0, 2, 4]])
def test_weights_as_arrays(limits: list[int]) -> None:
    """Also where degrees go beyond the last limit."""
    shares = tag_weights(limits, 9)
    assert shares.tolist() == [[float(t) for t in tag_shares(d, limits)] for d in range(10)]
    whole = tag_weights(limits, 9, whole=True)
    assert whole.tolist() == [[float(t) for t in tag_shares(d, limits, whole=True)] for d in range(10)]
    star = [(0, leaf) for leaf in range(1, 8)] + [(1, 2)]  # one triangle, whose middles have degrees 7, 2 and 2
    weights = wedge_weights(limits, 9)
    found = evaluated(closed_wedges_by_tag(SOURCE, limits, [1.0] * (len(limits) - 1)), star)
    expected = weights[7] + 2 * weights[2]
    assert [float(found.get(i, 0)) for i in range(len(limits) - 1)] == pytest.approx(expected.tolist())


@for_each("name", RECIPES)
def test_an_edge_more_moves_no_more_than_the_uses(name: str) -> None:
    recipe, uses = RECIPES[name]
    query = recipe(SOURCE)
    for seed in range(4):
        edges = graph(seed, nodes=9, share=0.6)
        whole = reference.evaluate(query.plan, {"edges": dict.fromkeys(edges, 1)}, EXACT)
        for left in range(0, len(edges), 5):
            rest = dict.fromkeys(edges[:left] + edges[left + 1 :], 1)
            part = reference.evaluate(query.plan, {"edges": rest}, EXACT)
            moved = sum(abs(whole.get(x, 0) - part.get(x, 0)) for x in {*whole, *part})
            assert moved <= uses


@pytest.mark.parametrize("limits", [[0], [1, 2], [0, 2, 2], []])
def test_limits_that_do_not_rise_are_refused(limits: list[int]) -> None:
    with pytest.raises(PlanError, match="rise from 0"):
        degree_tags(SOURCE, limits)


@for_each(
    "room",
    [[], [1, 1], [1, 1, 1, 1], [1, 0, 1], [1, -1, 1], [True, 1, 1], [1, math.inf, 1], [math.nan] * 3, [10**400, 1, 1]],
)
def test_a_room_that_does_not_fit_the_tags_is_refused(room: list[float]) -> None:
    with pytest.raises(PlanError, match="room"):
        closed_wedges_by_tag(SOURCE, LIMITS, room)


@pytest.mark.parametrize("weights", [[], [1, 1], [1, 1, 1, 1], [1, 0, 1], [1, 1.5, 1], [True, 1, 1], [1, 1, math.nan]])
def test_weights_that_do_not_fit_the_tags_are_refused(weights: list[float]) -> None:
    with pytest.raises(PlanError, match="weight"):
        closed_wedges_by_tag(SOURCE, LIMITS, weights=weights)


def test_weights_of_one_change_no_plan() -> None:
    assert closed_wedges_by_tag(SOURCE, LIMITS, weights=[1, 1, 1]).plan == closed_wedges_by_tag(SOURCE, LIMITS).plan


@pytest.mark.parametrize(
    ("room", "weights", "moved"),
    [
        (None, None, 2),
        ([0.75, 0.375, 0.375], None, Fraction(5, 2)),
        ([0.125, 0.25, 0.125], None, Fraction(3, 2)),
        (None, [1, 0.5, 0.25], Fraction(11, 16) + Fraction(11, 16)),
        ([0.75, 0.375, 0.375], [0.5, 0.5, 0.5], Fraction(5, 4)),
    ],
)
def test_an_edge_moves_closed_wedges_by_what_it_has_room_for_and_by_one(
    room: list[float] | None, weights: list[float] | None, moved: Fraction
) -> None:
    edges = wp.source("edges", src=int, dst=int, facts=["simple", "unit_weights"])
    assert closed_wedges_by_tag(edges, [0, 4, 64, 512], room, weights).stability() == {"edges": moved}


def test_cliques_are_left_whole() -> None:
    """What the room of an edge is chosen for: no pair of a clique reaches it."""
    limits = [0, 2, 8, 32, 128]
    for size in (3, 4, 9, 33):
        clique = list(combinations(range(size), 2))
        found = wp.evaluate(closed_wedges_by_tag(SOURCE, limits), {"edges": clique})
        linear = wedge_weights(limits, size)[size - 1] * size * np.prod([size - 1, size - 2]) / 2
        assert [found.get(i, 0.0) for i in range(4)] == pytest.approx(linear.tolist())


# --- pairs with common neighbours

SLICES = [0, 2**-5, 2**-3, 2**-2, 2**-1]


@pytest.mark.parametrize("seed", range(6))
def test_slices_of_pairs_have_the_closed_form(seed: int) -> None:
    edges = graph(seed, share=0.2 + 0.1 * seed)
    found = evaluated(pair_slices(SOURCE, SLICES), edges)
    common: dict[Edge, Fraction] = defaultdict(Fraction)
    near: dict[int, set[int]] = defaultdict(set)
    for a, b in edges:
        near[a].add(b)
        near[b].add(a)
    for around in near.values():
        for pair in combinations(sorted(around), 2):
            common[pair] += Fraction(1, 2 * len(around))
    wanted = {
        place: sum(min(max(weight - Fraction(low), 0), Fraction(high - low)) for weight in common.values())
        for place, (low, high) in enumerate(pairwise(SLICES))
    }
    assert found == {place: weight for place, weight in wanted.items() if weight}
    assert slices_of_graph(np.array(edges), 12, SLICES) == pytest.approx([float(each) for each in wanted.values()])


def test_an_edge_moves_slices_of_pairs_by_at_most_three_halves() -> None:
    """All graphs of up to 6 nodes, and every pair that they lack."""
    largest = 0.0
    for held in networkx.graph_atlas_g():
        if len(held) != 6:  # those of fewer nodes are among them, with isolated ones
            continue
        edges = np.array(held.edges, dtype=np.int64).reshape(-1, 2)
        before = slices_of_graph(edges, 6, SLICES)
        for pair in networkx.non_edges(held):
            after = slices_of_graph(np.concatenate([edges, [pair]]), 6, SLICES)
            largest = max(largest, float(np.abs(after - before).sum()))
    edges = wp.source("edges", src=int, dst=int, facts=["unit_weights", "simple"])
    assert pair_slices(edges, SLICES).stability() == {"edges": Fraction(3, 2)}
    assert largest == pytest.approx(1.1)
