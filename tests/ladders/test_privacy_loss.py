"""The privacy loss of the ladder mechanism, exactly, on every small graph and every edge that it lacks.

With the chances `q^rung(x) / W`, the loss of G against G′ is `ln q · min_x (rung(x) − rung′(x)) + ln(W′/W)`. The sum W
over all integers is enclosed by decimals of 50 digits, with the closed form of a polynomial above the last terms.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import chain, combinations
from math import comb

import networkx as nx
import pytest

from tests.support.parameters import sizes, tenth
from wpinq.noise.ladder import FrontEntry, Ladder, TriangleLadder
from wpinq.sinks import graph_ladders
from wpinq.sinks.graph_ladders import (
    SimpleGraph,
    clique_ladder,
    component_ladder,
    core_ladder,
    degree_ladder,
    simple_graph,
    star_ladder,
    triangle_ladder,
)

LADDERS: dict[str, Callable[[SimpleGraph], Ladder]] = {
    "triangles": triangle_ladder,
    "wedges": lambda graph: star_ladder(graph, 2),
    "3-stars": lambda graph: star_ladder(graph, 3),
    "4-cliques": clique_ladder,
}
"""Those whose sum over the rungs changes too, so that half of epsilon is for it."""
MOVED: dict[str, Callable[[SimpleGraph], Ladder]] = {
    **LADDERS,
    "largest degree": degree_ladder,
    "components": component_ladder,
    "largest core": core_ladder,
}
RUNGS = 40
"""Rungs that are compared one by one. Fronts of graphs of 7 vertices have met their last entry long before."""


def neighbours(largest: int) -> list[tuple[list[FrontEntry], list[FrontEntry]]]:
    """All graphs of up to so many vertices, isolated ones among them, each with every edge that it lacks."""
    found = []
    for graph in nx.graph_atlas_g():
        if graph.number_of_nodes() <= largest:
            edges = sorted(tuple(sorted(edge)) for edge in graph.edges)
            found += [(edges, [*edges, pair]) for pair in combinations(graph.nodes, 2) if not graph.has_edge(*pair)]
    return found


def bounds(ladder: Ladder, epsilon: Decimal) -> tuple[Decimal, Decimal]:
    """The sum over all integers of `q^rung`, from below and from above."""
    key = type(ladder), ladder.front, getattr(ladder, "edges", 0)
    return _bounds(key, lambda: ladder, epsilon)


_known: dict[object, tuple[Decimal, Decimal]] = {}


def _bounds(key: object, ladder: Callable[[], Ladder], epsilon: Decimal) -> tuple[Decimal, Decimal]:
    if (key, epsilon) not in _known:
        made = ladder()
        with localcontext() as context:
            context.prec = 50
            q = (-epsilon / 2).exp()
            last = int(60 / epsilon)
            total, power = Decimal(1), Decimal(1)
            for t in range(last):
                power *= q
                total += 2 * made.sensitivity(t) * power
            # what is left, by differences at `last` of the polynomial above all LS_t
            polynomial = made.bound
            shifted = [sum(b * comb(last, i) for i, b in enumerate(polynomial[m:])) for m in range(len(polynomial))]
            z = q / (1 - q)
            rest = 2 * power * sum(b * z ** (m + 1) for m, b in enumerate(shifted))
            rounding = total * Decimal("1e-40")
            _known[key, epsilon] = total - rounding, total + rest + rounding
    return _known[key, epsilon]


def shifts(one: Ladder, other: Ladder) -> tuple[int, int]:
    """The least and the largest of `rung(x) − rung′(x)`: both change only where a rung of one of them ends."""
    rungs = []
    for ladder in (one, other):
        ends = [ladder.reach(k) for k in range(2 * RUNGS)]
        rungs.append((ladder.count, ends))
    differences = []
    for count, ends in rungs:
        for end in {*ends[:RUNGS]}:
            for x in (count + end, count + end + 1, count - end, count - end - 1):
                places = [next(k for k, e in enumerate(all_ends) if e >= abs(x - c)) for c, all_ends in rungs]
                differences.append(places[0] - places[1])
    return min(differences), max(differences)


def worst_loss(kind: str, largest: int, epsilons: list[str]) -> dict[str, Decimal]:
    """The largest loss found, in multiples of epsilon, rounded up."""
    worst = dict.fromkeys(epsilons, Decimal(0))
    make = lru_cache(maxsize=None)(lambda edges: LADDERS[kind](simple_graph(edges)))
    seen = set()
    for less, more in neighbours(largest):
        one, other = make(tuple(less)), make(tuple(more))
        pair = (other.count - one.count, one.front, other.front)
        if pair in seen:
            continue
        seen.add(pair)
        low, high = shifts(one, other)
        for epsilon in epsilons:
            e = Decimal(epsilon)
            (low_one, high_one), (low_other, high_other) = bounds(one, e), bounds(other, e)
            from_one = e / 2 * -low + (high_other / low_one).ln()
            from_other = e / 2 * high + (high_one / low_other).ln()
            worst[epsilon] = max(worst[epsilon], from_one / e, from_other / e)
    return worst


@pytest.mark.parametrize("largest", sizes(5, 6))
@pytest.mark.parametrize("kind", LADDERS)
def test_no_edge_costs_more_than_epsilon(kind: str, largest: int) -> None:
    """On up to 6 vertices, and on 7 at one epsilon: `docs/proofs/ladder.md` has the figures."""
    found = {**worst_loss(kind, largest, ["0.1", "0.5", "2"]), **worst_loss(kind, largest + 1, ["1"])}
    for epsilon, loss in found.items():
        assert Decimal("0.5") < loss <= 1, (epsilon, loss)


def test_a_largest_sum_that_is_not_exact_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(graph: SimpleGraph) -> TriangleLadder:
        right = triangle_ladder(graph)
        top = int(graph.degrees[:2].sum()) if len(graph) else 0
        return TriangleLadder(right.count, tuple(graph_ladders.unsurpassed([*right.front, (0, top)])))

    monkeypatch.setitem(LADDERS, "triangles", wrong)
    assert worst_loss("triangles", 5, ["0.1"])["0.1"] > 1


def largest(edges: list[FrontEntry]) -> int:
    return max(Counter(chain(*edges)).values(), default=0)


def components(edges: list[FrontEntry]) -> int:
    return nx.number_connected_components(nx.Graph(edges))


def core(edges: list[FrontEntry]) -> int:
    """By the definition: the largest least degree of a subgraph that some of the vertices induce."""
    nodes = sorted(set(chain(*edges)))
    induced = (nx.Graph(edges).subgraph(some) for n in range(1, len(nodes) + 1) for some in combinations(nodes, n))
    return max((min(degree for _, degree in graph.degree) for graph in induced), default=0)


@pytest.mark.parametrize("number", ["largest degree", "components", "largest core"])
@pytest.mark.parametrize("q", tenth([Fraction(1, 3), Fraction(9, 10), Fraction(1, 1000)]))
def test_an_edge_costs_a_number_epsilon_and_no_more(q: Fraction, number: str) -> None:
    """With `q = exp(−ε)`, not its root: the sum is the same for all graphs, so a chance changes by 1/q at most.

    In rationals, for all graphs of up to 6 vertices, isolated ones among them, and every integer around both numbers.
    """
    numbers: dict[str, Callable[[list[FrontEntry]], int]]
    numbers = {"largest degree": largest, "components": components, "largest core": core}
    counted, worst = lru_cache(maxsize=None)(lambda edges: numbers[number](list(edges))), Fraction(0)
    for less, more in neighbours(6):
        chances = []
        for edges in (less, more):
            ladder = MOVED[number](simple_graph(edges))
            assert ladder.count == counted(tuple(edges))
            last = 30
            total = 1 + 2 * sum(ladder.sensitivity(t) * q ** (t + 1) for t in range(last))
            total += 2 * q ** (last + 1) / (1 - q) * ladder.bound[0]  # LS_t is the bound itself, 1, from there on
            assert total == (1 + q) / (1 - q)
            ends = [ladder.reach(j) for j in range(last)]
            chances.append([q ** bisect_left(ends, abs(x - ladder.count)) / total for x in range(-10, 20)])
        worst = max(worst, *(max(a / b, b / a) for a, b in zip(*chances, strict=True)))
    assert worst == 1 / q


@pytest.mark.parametrize("largest", sizes(5, 6))
@pytest.mark.parametrize("kind", MOVED)
def test_rungs_and_widths_move_by_one(kind: str, largest: int) -> None:
    """`LS_t(G′) ≤ LS_{t+1}(G)`, `|T − T′| ≤ LS_0`, and the width is 1-Lipschitz: for either of two neighbours."""
    for less, more in neighbours(largest):
        one, other = (MOVED[kind](simple_graph(edges)) for edges in (less, more))
        assert abs(one.width - other.width) <= 1
        for g, h in ((one, other), (other, one)):
            assert abs(g.count - h.count) <= g.sensitivity(0)
            assert all(h.sensitivity(t) <= g.sensitivity(t + 1) for t in range(30))


@pytest.mark.parametrize("kind", MOVED)
def test_no_integer_moves_by_more_than_one_rung(kind: str) -> None:
    """So the logarithm of the likelihood ratio lies in an interval of length epsilon."""
    for less, more in neighbours(5):
        low, high = shifts(*(MOVED[kind](simple_graph(edges)) for edges in (less, more)))
        assert -1 <= low <= high <= 1
