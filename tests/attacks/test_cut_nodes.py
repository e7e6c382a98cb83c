"""A node of a graph: what a declared bound on degrees gives, and why a cut to such a bound gives nothing."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wpinq as wp
from tests.support.parameters import for_each
from wpinq import functions as F, graphs
from wpinq.errors import SourceRejected

D = 4
Records = list[tuple[int, int]]


def nodes(bound: int = D) -> wp.Query:
    return wp.source(
        "nodes",
        src=int,
        dst=int,
        unit="one node with its edges",
        unit_weight=2 * bound,
        facts=["unit_weights", "symmetric"],
        keys_at_most={"src": bound},
    )


def both_ways(edges: Any) -> Records:
    return [(a, b) for a, b in edges] + [(b, a) for a, b in edges]


RECIPES: dict[str, Callable[[wp.Query], wp.Query]] = {
    "ccdf": graphs.degree_ccdf,
    "sequence": graphs.degree_sequence,
    "joint degrees": graphs.joint_degrees,
    "triangles": graphs.triangles_by_intersect,
}


@for_each("name", list(RECIPES))
def test_a_node_of_a_declared_degree_moves_a_query_by_no_more_than_its_bill(name: str) -> None:
    query, rng = RECIPES[name](nodes()), np.random.default_rng(7)
    most = query.stability()["nodes"] * 2 * D
    assert wp.bill(query.noisy_count(1))["nodes"] == most
    for _ in range(15):
        edges, degrees = list[tuple[int, int]](), Counter[int]()
        for a, b in rng.permutation(list(itertools.combinations(range(9), 2))).tolist():
            if max(degrees[a], degrees[b]) < D:
                edges.append((a, b))
                degrees.update((a, b))
        gone = int(rng.integers(9))
        before, after = (
            wp.evaluate(query, {"nodes": both_ways(held)}, exact=True)
            for held in (edges, [edge for edge in edges if gone not in edge])
        )
        assert sum(abs(before.get(key, 0) - after.get(key, 0)) for key in {*before, *after}) <= most


def test_a_node_pays_d_times_an_edge_for_counts_too() -> None:
    edge = wp.source("e", src=int, dst=int, unit_weight=2, facts=["unit_weights", "symmetric"])
    for count in (graphs.triangle_count, graphs.largest_degree, graphs.largest_core):
        assert count(nodes(50), 1).bill()["nodes"] == 50 * count(edge, 1).bill()["e"]


def test_data_with_a_node_above_the_bound_are_refused_whole_and_it_is_not_named() -> None:
    star = both_ways([(0, 7000 + i) for i in range(D + 1)])
    with wp.Session() as session, pytest.raises(SourceRejected) as caught:
        session.protect(nodes(), star, budget=1)
    assert "700" not in str(caught.value)
    assert str(D + 1) not in str(caught.value)
    assert not caught.value.positions


def test_a_cut_of_each_list_moves_by_the_degree_of_a_node_and_not_by_the_bound() -> None:
    """The trap: every list keeps D rows by a rule that reads it alone, and a new node displaces one in each."""
    count = 60
    paths = [(10 * i, 10 * i + j) for i in range(1, count + 1) for j in range(1, D + 1)]  # `count` nodes of degree D
    hub = [(0, 10 * i) for i in range(1, count + 1)]
    moved = []
    for rule in (min, max):
        kept = [cut(both_ways(edges), rule) for edges in (paths, paths + hub)]
        others = [{edge for edge in held if 0 not in edge} for held in kept]
        moved.append(len(others[0] ^ others[1]))
    assert moved == [count, 0]  # by number, the new node is first in all lists, or last
    source = wp.source("lists", src=int, dst=int, person="src", at_most=D)
    billed = wp.bill(source.select(lambda e: F.record(src=e.src, dst=e.dst)).noisy_count(1))["lists"]
    assert billed == D < count / 10  # the bill is of the list of src: a person there is not a node


def cut(edges: Records, rule: Any) -> set[tuple[int, int]]:
    """What each node keeps of its own list: the D smallest, or largest."""
    lists: dict[int, list[int]] = {}
    for a, b in edges:
        lists.setdefault(a, []).append(b)
    return {(a, b) for a, held in lists.items() for b in sorted(held, reverse=rule is max)[:D]}


def test_the_cut_of_wpinq_protects_the_list_and_no_node() -> None:
    """Rows beyond `at_most` go by a hash of the rows of one person: the rows that others lose are a hub's degree."""
    source = wp.source("lists", src=int, dst=int, person="src", at_most=D)
    paths = [(10 * i, 10 * i + j) for i in range(1, 61) for j in range(1, D + 1)]
    hub = [(0, 10 * i) for i in range(1, 61)]
    query = source.where(lambda e: (e.src != 0) & (e.dst != 0)).noisy_count(10_000, both_ways(paths))
    found = []
    for edges in (paths, paths + hub):
        with wp.Session() as session:
            session.protect(source, [{"src": a, "dst": b} for a, b in both_ways(edges)], budget=100_000)
            found.append({key for key, value in session.release(query).items() if value > 0.5})
    assert len(found[0] - found[1]) > 2 * D


# --- the recipes of docs/node_privacy.md ------------------------------------------------------------------------------


def test_concurrency_by_neighbours_in_the_list_is_that_of_all_pairs() -> None:
    egos = wp.people("egos", id=("id", int), ties=wp.table(since=int, until=int, at_most=20))
    query = egos.where(lambda p: F.any(F.pairwise(p.ties), lambda two: two.after.since < two.before.until))
    rng, rows, true = np.random.default_rng(3), list[dict[str, int]](), 0
    for person in range(200):
        starts = rng.integers(0, 30, rng.integers(0, 4))
        ties = [(int(s), int(s + rng.integers(1, 9))) for s in starts]
        rows += [{"id": person, "since": s, "until": u} for s, u in ties]
        true += any(max(a[0], b[0]) < min(a[1], b[1]) for a, b in itertools.combinations(ties, 2))
    with wp.Session() as session:
        session.protect(egos, {"ties": rows}, budget=2_000)
        answer = session.release(query.count(epsilon=1_000)).value
    assert 0 < true < 200
    assert round(answer) == true
