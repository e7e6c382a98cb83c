from collections import Counter
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest

from wpinq.errors import EpsilonError, PlanError
from wpinq.graphs.fitting import sala_joint_degrees


def joint_degrees(graph):
    return Counter(tuple(sorted((graph.degree(a), graph.degree(b)))) for a, b in graph.edges)


def test_every_pair_of_the_domain_is_released_present_or_not():
    released = sala_joint_degrees([(0, 1)], epsilon=1.0, max_degree=7, seed=3)
    pairs = list(zip(released.i.tolist(), released.j.tolist(), strict=True))
    assert pairs == [(i, j) for i in range(1, 8) for j in range(i, 8)]
    assert len(set(released.noisy.tolist())) == len(pairs)


def test_counts_are_exact_without_noise():
    graph = nx.barabasi_albert_graph(200, 3, seed=4)
    largest = max(degree for _, degree in graph.degree)
    released = sala_joint_degrees(list(graph.edges), epsilon=1e12, max_degree=largest + 2, seed=5)
    expected = joint_degrees(graph)
    for i, j, noisy in zip(*released, strict=True):
        assert noisy == pytest.approx(expected[i, j], abs=1e-6)


def test_direction_and_repetition_of_an_edge_do_not_matter():
    once = sala_joint_degrees([(0, 1), (1, 2)], epsilon=1.0, max_degree=3, seed=6)
    again = sala_joint_degrees([(1, 0), (0, 1), (2, 1), (2, 1)], epsilon=1.0, max_degree=3, seed=6)
    assert np.array_equal(once.noisy, again.noisy)


def test_noise_is_laplace_of_the_stated_scale():
    """Against the unit Laplace: Kolmogorov-Smirnov (false alarm < 2e-6, DKW), mean size (5 sigma, about 1e-6)."""
    epsilon = 0.3
    released = sala_joint_degrees([], epsilon=epsilon, max_degree=200, seed=7)
    unit = released.noisy * epsilon / (4 * np.maximum(released.i, released.j))
    for chosen in (unit, unit[released.i <= 30], unit[released.i > 100]):
        x = np.sort(chosen)
        assert abs(np.mean(np.abs(x)) - 1) < 5 / np.sqrt(len(x))
        cumulative = np.where(x < 0, np.exp(-np.abs(x)) / 2, 1 - np.exp(-np.abs(x)) / 2)
        steps = np.arange(len(x) + 1) / len(x)
        distance = max(np.max(steps[1:] - cumulative), np.max(cumulative - steps[:-1]))
        assert distance < np.sqrt(np.log(2 / 2e-6) / (2 * len(x)))


def test_one_edge_moves_the_counts_by_less_than_the_proof_allows():
    """The stability behind the noise, by exact arithmetic: Σ |change| / max(i, j) <= 4 − 1/min(p, q)."""
    largest = Fraction(0)
    for seed in range(30):
        graph = nx.gnp_random_graph(12, 0.2 + 0.02 * seed, seed=seed)
        before = joint_degrees(graph)
        for a, b in list(graph.edges):
            smaller = min(graph.degree(a), graph.degree(b))
            graph.remove_edge(a, b)
            after = joint_degrees(graph)
            graph.add_edge(a, b)
            moved = sum(Fraction(abs(before[k] - after[k]), max(k)) for k in before | after)
            assert moved <= 4 - Fraction(1, smaller)
            largest = max(largest, moved)
    assert largest > 2  # half the noise would not do


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan"), float("inf")])
def test_bad_epsilon_is_refused(epsilon):
    with pytest.raises(EpsilonError, match="positive finite"):
        sala_joint_degrees([(0, 1)], epsilon, 3, seed=1)


@pytest.mark.parametrize(
    ("edges", "max_degree", "says"),
    [
        ([(0, 0)], 3, "self-loop"),
        ([(0, 1, 2)], 3, "pairs"),
        ([(0, 1), (2,)], 3, "pairs"),
        ([(0.5, 1.0)], 3, "integer"),
        ([(0, 1), (0, 2)], 1, "max_degree"),
        ([(0, 1)], 0, "max_degree"),
        ([(0, 1)], True, "max_degree"),
        ([(0, 1)], 2.0, "max_degree"),
    ],
)
def test_bad_input_is_refused(edges, max_degree, says):
    with pytest.raises(PlanError, match=says):
        sala_joint_degrees(edges, 1.0, max_degree, seed=1)
