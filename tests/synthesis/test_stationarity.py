"""Chains visit every state of tiny spaces as often as `exp(−beta · score)` says, on every engine.

States are enumerated by brute force. Draws are thinned so that they are close to independent, and compared by a
chi-square test at a false-alarm rate of 1e-4 a case; seeds are fixed, so a case that passes keeps passing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import combinations, combinations_with_replacement
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

import wpinq as wp
from wpinq.graphs import triangles_by_intersect
from wpinq.mcmc import EdgeMoves, GenericChain, Prior, ReplaceRecord, Swaps, Target, Walk
from wpinq.mcmc.chain import Chain, compiled_walk
from wpinq.measure.answers import Answers

pytestmark = pytest.mark.long

FALSE_ALARM = 1e-4
SYMMETRIC = wp.source("edges", src=int, dst=int, unit_weight=2)
ONCE = wp.source("edges", src=int, dst=int)
BOTH_ENGINES = pytest.mark.parametrize("compiled", [False, True], ids=["python", "compiled"])


def answered(query: wp.Query, epsilon: float, values: dict[Any, float]) -> Target:
    measurement = query.noisy_count(epsilon, values)
    return Target(Answers(measurement, 1 / epsilon, np.array(list(values.values())), simulated=True))


def records(graph: frozenset[tuple[int, int]], symmetric: bool) -> dict[Any, float]:
    return {edge: 1.0 for a, b in sorted(graph) for edge in ([(a, b), (b, a)] if symmetric else [(a, b)])}


def graph_of(chain: Chain) -> frozenset[tuple[int, int]]:
    return frozenset((min(edge), max(edge)) for edge in chain.candidate["edges"])


def expected(
    states: Iterable[Hashable],
    target: Target,
    weights: Callable[[Any], dict[Any, float]],
    beta: float,
    priors: Sequence[Prior] = (),
) -> dict[Hashable, float]:
    """The stationary distribution, each state scored afresh by the reference."""
    query, name = wp.Query(target.plan), next(iter(wp.Query(target.plan).uses()))
    unnormed = {}
    for state in states:
        candidate = {name: weights(state)}
        log = [prior.log(dict(wp.evaluate(prior.query, candidate, engine="reference"))) for prior in priors]
        output = dict(wp.evaluate(query, candidate, engine="reference"))
        unnormed[state] = math.exp(beta * (math.fsum(log) - target.score(output)))
    total = sum(unnormed.values())
    return {state: weight / total for state, weight in unnormed.items()}


def check(chain: Chain, law: dict[Hashable, float], look: Callable[[Chain], Hashable], draws: int, thin: int) -> None:
    chain.run(50 * thin, BETA)
    seen: Counter[Hashable] = Counter()
    for _ in range(draws):
        chain.run(thin, BETA)
        seen[look(chain)] += 1
    assert set(seen) <= set(law), "a state that the walk must not reach"
    statistic = sum((seen[state] - draws * p) ** 2 / (draws * p) for state, p in law.items())
    assert chi2.sf(statistic, len(law) - 1) > FALSE_ALARM
    assert max(law.values()) / min(law.values()) > 2, "scores must tell states apart for the test to see anything"


BETA = 1.5


def graphs_with_degrees(degrees: list[int]) -> list[frozenset[tuple[int, int]]]:
    pairs = list(combinations(range(len(degrees)), 2))
    found = []
    for chosen in combinations(pairs, sum(degrees) // 2):
        if np.bincount(np.array(chosen).ravel(), minlength=len(degrees)).tolist() == degrees:
            found.append(frozenset(chosen))
    return found


def near(edges: wp.Query) -> wp.Query:
    """Edges between neighbouring numbers: a query that tells tiny graphs apart, the direction of edges aside."""
    return edges.where(lambda e: (e.src - e.dst) * (e.src - e.dst) == 1).select(lambda e: "near")


@BOTH_ENGINES
@pytest.mark.parametrize("symmetric", [True, False], ids=["symmetric", "once"])
def test_swaps_reach_all_graphs_with_the_degrees_as_often_as_their_score_says(symmetric: bool, compiled: bool) -> None:
    states = graphs_with_degrees([2, 2, 2, 2, 1, 1])
    target = answered(near(SYMMETRIC if symmetric else ONCE), 1.0, {"near": 8.0 if symmetric else 4.0})
    law = expected(states, target, lambda graph: records(graph, symmetric), BETA)
    walk = Swaps(symmetric=symmetric)
    start = records(states[0], symmetric)
    if compiled:
        check(compiled_walk([target], walk, list(states[0]), seed=3), law, graph_of, draws=5000, thin=60)
    else:
        check(GenericChain([target], walk, {"edges": start}, seed=3), law, graph_of, draws=1200, thin=25)


@pytest.mark.parametrize("closing", [0.0, 0.6])
def test_closing_proposals_do_not_change_the_distribution(closing: float) -> None:
    states = graphs_with_degrees([2, 2, 2, 2, 2, 2])
    target = answered(triangles_by_intersect(SYMMETRIC), 0.3, {"triangle!": 3.0})
    law = expected(states, target, lambda graph: records(graph, True), BETA)
    chain = compiled_walk([target], Swaps(triad_share=closing), list(states[0]), seed=5)
    check(chain, law, graph_of, draws=5000, thin=60)


@BOTH_ENGINES
@pytest.mark.parametrize("changing", [0.0, 0.5])
def test_moves_of_edges_reach_all_graphs_as_often_as_their_score_says(changing: float, compiled: bool) -> None:
    pairs = list(combinations(range(4), 2))
    sizes = range(7) if changing else [3]
    states = [frozenset(chosen) for size in sizes for chosen in combinations(pairs, size)]
    target = answered(near(SYMMETRIC), 1.0, {"near": 3.0})
    law = expected(states, target, lambda graph: records(graph, True), BETA)
    walk, start = EdgeMoves((0, 1, 2, 3), changing), frozenset(pairs[:3])
    if compiled:
        check(compiled_walk([target], walk, list(start), seed=7), law, graph_of, draws=5000, thin=60)
    else:
        check(GenericChain([target], walk, {"edges": records(start, True)}, seed=7), law, graph_of, draws=1500, thin=20)


FAR = SYMMETRIC.where(lambda e: e.src + e.dst > 5)
PRIORS = [Prior(FAR, 0.4), Prior(triangles_by_intersect(SYMMETRIC), 1.0, {"triangle!": 1.5}, width=2.0)]


@pytest.mark.parametrize("planted", [1.0, 0.0, -1.0], ids=["honest", "ignored", "negated"])
def test_compiled_swaps_follow_a_prior(planted: float) -> None:
    states = graphs_with_degrees([2, 2, 2, 2, 1, 1])
    target = answered(near(SYMMETRIC), 0.5, {"near": 8.0})
    law = expected(states, target, lambda graph: records(graph, True), BETA, PRIORS)
    given = [replace(PRIORS[0], weight=planted * PRIORS[0].weight), PRIORS[1]]
    chain = compiled_walk([target, *given], Swaps(), list(states[0]), seed=17)
    with nullcontext() if planted == 1.0 else pytest.raises(AssertionError):
        check(chain, law, graph_of, draws=5000, thin=60)


def test_compiled_moves_follow_a_prior() -> None:
    pairs = list(combinations(range(4), 2))
    states = [frozenset(chosen) for size in range(7) for chosen in combinations(pairs, size)]
    target, priors = answered(near(SYMMETRIC), 0.5, {"near": 3.0}), [Prior(SYMMETRIC, -0.3), PRIORS[1]]
    law = expected(states, target, lambda graph: records(graph, True), BETA, priors)
    chain = compiled_walk([target, *priors], EdgeMoves((0, 1, 2, 3), 0.5), pairs[:3], seed=19)
    check(chain, law, graph_of, draws=5000, thin=60)


def multiset(chain: Chain) -> Hashable:
    return tuple(sorted((record, weight) for record, weight in chain.candidate["dice"].items()))


DICE = wp.source("dice", int, unit_weight=4)


@BOTH_ENGINES
def test_replaced_records_reach_every_multiset_as_often_as_its_score_says(compiled: bool) -> None:
    states = [tuple(sorted(Counter(drawn).items())) for drawn in combinations_with_replacement(range(3), 4)]
    target = answered(DICE, 1.0, {0: 1.4, 1: 1.0, 2: 0.5})
    law = expected(states, target, dict, BETA)
    chain = GenericChain([target], ReplaceRecord("dice", (0, 1, 2)), {"dice": {0: 4.0}}, seed=11, compiled=compiled)
    check(chain, law, multiset, draws=2500, thin=15)


@dataclass(frozen=True)
class Drift:
    """A walk of a user's own: one die that goes up by one more often than down, on a circle of five."""

    up: float = 0.75
    ratio: bool = True

    def propose(self, rng: np.random.Generator, candidate: Any) -> Any:
        (face,) = candidate["dice"]
        up = rng.random() < self.up
        log_ratio = math.log((1 - self.up) / self.up) * (1 if up else -1) if self.ratio else 0.0
        return {"dice": {face: -1.0, (face + (1 if up else 4)) % 5: 1.0}}, log_ratio


def drifting(walk: Walk) -> tuple[GenericChain, dict[Hashable, float]]:
    target = answered(DICE.select(lambda face: face // 2), 1.0, {0: 1.0, 1: 0.5, 2: 0.0})
    law = expected([((face, 1.0),) for face in range(5)], target, dict, BETA)
    return GenericChain([target], walk, {"dice": {0: 1.0}}, seed=13), law


def test_a_users_own_walk_is_corrected_by_its_ratio() -> None:
    chain, law = drifting(Drift())
    check(chain, law, multiset, draws=2500, thin=20)


def test_without_its_ratio_the_same_walk_is_found_out() -> None:
    chain, law = drifting(Drift(ratio=False))
    with pytest.raises(AssertionError):
        check(chain, law, multiset, draws=2500, thin=20)
