import tracemalloc
from itertools import combinations_with_replacement, pairwise
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tests.support.parameters import for_each
from wpinq.errors import AnswersError
from wpinq.graphs.fitting import degree_sequence_from_ccdf, fit_degree_sequence, isotonic_degree_sequence


def ccdf_of(degrees, length):
    degrees = np.asarray(degrees)
    return np.array([np.count_nonzero(degrees > y) for y in range(length)])


def padded(degrees, length):
    return np.pad(degrees, (0, length - len(degrees)))


def cost(degrees, v, h, sequence_scale=1.0, ccdf_scale=1.0):
    degrees = padded(degrees, len(v))
    vertical = np.abs(v - degrees).sum() / sequence_scale
    return vertical + np.abs(h - ccdf_of(degrees, len(h))).sum() / ccdf_scale


def cheapest_path(v, h, sequence_scale=1.0, ccdf_scale=1.0):
    """The cost of the best staircase, by Dijkstra on the whole grid, as the paper words it."""
    n, m = len(v), len(h)
    grid = nx.DiGraph()
    for x in range(n + 1):
        for y in range(m + 1):
            if x < n:
                grid.add_edge((x, y), (x + 1, y), weight=abs(v[x] - y) / sequence_scale)
            if y < m:
                grid.add_edge((x, y + 1), (x, y), weight=abs(h[y] - x) / ccdf_scale)
    return nx.dijkstra_path_length(grid, (0, m), (n, 0))


def noisy_measurements(rng, kind, largest=14):
    n, m = (int(k) for k in rng.integers(1, largest, 2))
    degrees = np.sort(rng.integers(0, m + 1, n))[::-1]
    if kind == "plateau":
        degrees = np.repeat(degrees[:1], n)
    scale = rng.choice([0.3, 1.0, 5.0, 50.0])
    v = degrees + rng.laplace(0, scale, n)
    h = ccdf_of(degrees, m) + rng.laplace(0, scale, m)
    if kind == "ties":
        v, h = np.rint(v), np.rint(h)
    if kind == "pure noise":
        v, h = rng.normal(0, 20, n), rng.normal(0, 20, m)
    return v, h


@pytest.mark.parametrize("kind", ["noisy", "ties", "plateau", "pure noise"])
def test_the_cost_is_that_of_the_cheapest_path(kind):
    rng = np.random.default_rng(11)
    for _ in range(60):
        v, h = noisy_measurements(rng, kind)
        fit = fit_degree_sequence(v, h)
        assert cost(fit, v, h) == pytest.approx(cheapest_path(v, h), abs=1e-6)


def test_the_cost_is_that_of_the_cheapest_path_for_unequal_scales():
    rng = np.random.default_rng(12)
    for _ in range(120):
        v, h = noisy_measurements(rng, "noisy")
        scales = tuple(rng.choice([0.1, 0.7, 1.0, 3.0, 40.0], 2))
        fit = fit_degree_sequence(v, h, *scales)
        assert cost(fit, v, h, *scales) == pytest.approx(cheapest_path(v, h, *scales), abs=1e-6)


@pytest.mark.parametrize("scales", [(1.0, 1.0), (2.0, 1.0), (1.0, 2.0)])
def test_ties_go_to_the_lowest_of_all_optimal_staircases(scales):
    rng = np.random.default_rng(13)
    ties = 0
    for _ in range(150):
        n, m = (int(k) for k in rng.integers(1, 6, 2))
        v, h = rng.integers(-2, m + 3, n), rng.integers(-2, n + 3, m)
        staircases = list(combinations_with_replacement(range(m, -1, -1), n))
        costs = np.array([cost(np.array(d), v, h, *scales) for d in staircases])
        optimal = np.array(staircases)[costs <= costs.min() + 1e-9]
        ties += len(optimal) > 1
        assert padded(fit_degree_sequence(v, h, *scales), n).tolist() == optimal.min(axis=0).tolist()
    assert ties > 10


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=40), st.integers(0, 10), st.integers(1, 10))
def test_without_noise_the_sequence_comes_back(degrees, spare_nodes, spare_degrees):
    degrees = np.sort(degrees)[::-1]
    v = padded(degrees, len(degrees) + spare_nodes)
    h = ccdf_of(degrees, int(degrees[0]) + spare_degrees)
    expected = degrees[degrees > 0].tolist()
    assert fit_degree_sequence(v, h).tolist() == expected
    assert fit_degree_sequence(v, h, 3.0, 0.5).tolist() == expected
    assert degree_sequence_from_ccdf(h).tolist() == expected


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.lists(st.floats(-1e9, 1e9) | st.integers(-3, 12), min_size=1, max_size=12),
    st.lists(st.floats(-1e9, 1e9) | st.integers(-3, 12), min_size=1, max_size=12),
    st.sampled_from([0.5, 1.0, 2.0]),
)
def test_shape_bounds_and_transposition(v, h, scale):
    fit = fit_degree_sequence(v, h, scale, 1.0)
    assert fit.dtype == np.int64
    assert (np.diff(fit) <= 0).all()
    assert (fit > 0).all()
    assert len(fit) <= len(v)
    assert fit.max(initial=0) <= len(h)
    transposed = fit_degree_sequence(h, v, 1.0, scale)
    assert padded(transposed, len(h)).tolist() == ccdf_of(fit, len(h)).tolist()


def test_only_the_ratio_of_the_scales_matters():
    v, h = noisy_measurements(np.random.default_rng(14), "noisy", largest=60)
    assert fit_degree_sequence(v, h, 3.0, 6.0).tolist() == fit_degree_sequence(v, h, 0.5, 1.0).tolist()


def test_a_precise_measurement_outweighs_an_imprecise_one():
    assert fit_degree_sequence([3, 2, 2], [1, 1, 0], 1e-6, 1.0).tolist() == [3, 2, 2]
    assert fit_degree_sequence([3, 2, 2], [1, 1, 0], 1.0, 1e-6).tolist() == [2]


def test_a_large_graph_fits_in_little_memory():
    """76,000 × 3,100, the size of Epinions: the choices alone would take 236 MB at a byte each."""
    rng = np.random.default_rng(15)
    degrees = np.minimum(3_080, np.floor(3_080 / np.arange(1, 76_001) ** 0.6)).astype(np.int64)
    v = degrees + rng.laplace(0, 20, len(degrees))
    h = ccdf_of(degrees, 3_100) + rng.laplace(0, 20, 3_100)
    tracemalloc.start()
    fit = fit_degree_sequence(v, h)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6
    assert np.abs(padded(fit, len(degrees)) - degrees).sum() < 0.05 * degrees.sum()


def test_an_unbounded_band_still_fits_in_memory():
    """Measurements that want every cell, at 20,000 × 2,000: one bit a cell is 5 MB."""
    tracemalloc.start()
    fit = fit_degree_sequence(np.full(20_000, 5_000.0), np.full(2_000, 50_000.0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert fit.tolist() == [2_000] * 20_000
    assert peak < 30e6


def test_isotonic_satisfies_the_optimality_conditions():
    """The projection on a convex cone: pooled blocks have their mean, and no prefix of a block lies below it."""
    rng = np.random.default_rng(16)
    for _ in range(100):
        v = np.rint(rng.normal(0, 5, int(rng.integers(1, 40))))
        fit = isotonic_degree_sequence(v)
        assert (np.diff(fit) <= 1e-12).all()
        edges = np.flatnonzero(np.diff(fit, prepend=np.inf, append=-np.inf))
        for start, stop in pairwise(edges):
            block = v[start:stop]
            assert fit[start] == pytest.approx(block.mean())
            assert (np.cumsum(block - block.mean()) <= 1e-9).all()


def test_isotonic_agrees_with_scipy():
    optimize = pytest.importorskip("scipy.optimize")
    v = np.random.default_rng(17).normal(0, 5, 500) + np.linspace(20, 0, 500)
    expected = optimize.isotonic_regression(v, increasing=False).x
    assert isotonic_degree_sequence(v) == pytest.approx(expected)


def test_a_ccdf_without_nodes_gives_no_degrees():
    assert degree_sequence_from_ccdf([-3.0, 0.2, -0.1]).tolist() == []
    assert fit_degree_sequence([-1.0, 0.1], [-2.0]).tolist() == []


def test_a_ccdf_of_absurd_counts_is_refused():
    with pytest.raises(AnswersError, match="2\\^31"):
        degree_sequence_from_ccdf([1e19, 3.0])


def test_answers_are_read_through_their_values():
    answers = SimpleNamespace(values=np.array([2.1, 0.9]))
    assert fit_degree_sequence(answers, [2, 1]).tolist() == [2, 1]
    assert isotonic_degree_sequence(answers).tolist() == [2.1, 0.9]


BAD = [[], [[1.0, 2.0]], 3.0, [1.0, float("nan")], [float("inf")], ["a"], {0: 1.0}, None, [1.0, [2.0]], 1j]


@for_each("bad", BAD, ids=repr)
def test_bad_measurements_are_refused_by_name(bad):
    with pytest.raises(AnswersError, match="sequence"):
        fit_degree_sequence(bad, [1.0])
    with pytest.raises(AnswersError, match="ccdf"):
        fit_degree_sequence([1.0], bad)
    with pytest.raises(AnswersError, match="sequence"):
        isotonic_degree_sequence(bad)
    with pytest.raises(AnswersError, match="ccdf"):
        degree_sequence_from_ccdf(bad)


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_bad_scales_are_refused(scale):
    with pytest.raises(AnswersError, match="sequence_scale"):
        fit_degree_sequence([1.0], [1.0], scale, 1.0)
    with pytest.raises(AnswersError, match="ccdf_scale"):
        fit_degree_sequence([1.0], [1.0], 1.0, scale)
