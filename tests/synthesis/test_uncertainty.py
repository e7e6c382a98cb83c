"""What is said of how far to trust a synthetic graph: intervals, words, and questions that are not asked."""

from __future__ import annotations

import json
import math
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import wpinq as wp
from tests.support.parameters import for_each, tenth
from wpinq.cli.main import main
from wpinq.errors import PlanError
from wpinq.graphs import Bounds, fit_graph
from wpinq.graphs.synthesis import find_method, graph_statistics, method_names
from wpinq.graphs.synthesis.directed import RECIPROCAL
from wpinq.graphs.synthesis.estimates import ClusteringCurves, DegreeClasses, fit_fields
from wpinq.graphs.synthesis.fit import ALL_STATISTICS, graph_structure
from wpinq.graphs.synthesis.method import _mass, infeasible
from wpinq.graphs.synthesis.report import report
from wpinq.graphs.synthesis.tags import clustering_intervals, drawn_mixings, fine_limits, mixing_interval
from wpinq.graphs.synthesis.uncertainty import (
    NOT_MEASURED,
    SWAMPED,
    Interval,
    by_joint_degrees,
    degree_intervals,
    edges_interval,
    largest_degree_interval,
    nodes_interval,
    phrase,
    warning,
)
from wpinq.graphs.tags import tag_weights, wedge_weights
from wpinq.mcmc import Settings
from wpinq.measure.answers import Answers
from wpinq.sinks.graph_counts import SubgraphCount
from wpinq.synthesis import measure_graph

LIMITS = fine_limits(2**10)
DEGREES = {
    "ring": np.full(300, 2),
    "star": np.append(np.ones(400, dtype=np.int64), 400),
    "clique": np.full(50, 49),
    "tree": np.bincount(np.concatenate([np.arange(1, 800), [i * 7919 % 104729 % i for i in range(1, 800)]])),
    "power law": np.minimum(np.floor((1 - (np.arange(300) + 0.5) / 300) ** -0.7).astype(np.int64), 40),
}
TRIALS = 1500
"""At which a coverage of 90 % comes out beyond 85 to 95 % with a chance below 1e-9, by the Chernoff bound."""


@pytest.mark.long
@for_each("kind", DEGREES)
@for_each("terms", [1, 3])
def test_intervals_of_degrees_hold_as_often_as_they_say_for_any_graph(kind: str, terms: int) -> None:
    degrees, scale = DEGREES[kind], 8.0
    mass = 2 * tag_weights(LIMITS, 400)[degrees].sum(axis=0)
    rng = np.random.default_rng(1)
    held = {"nodes": 0, "edges": 0, "low": 0, "high": 0}
    for _ in range(TRIALS):
        noisy = mass + rng.laplace(scale=scale, size=(terms, len(mass))).sum(axis=0)
        nodes = nodes_interval(len(degrees) + rng.laplace(scale=scale), scale)
        held["nodes"] += nodes.holds(len(degrees))
        every = [terms] * len(mass)
        held["edges"] += edges_interval(noisy, scale, every).holds(degrees.sum() / 2)
        largest = largest_degree_interval(LIMITS, noisy, scale, every)
        assert largest.cautious
        held["low"] += largest.low <= degrees.max()
        held["high"] += degrees.max() <= largest.high
    share = {name: count / TRIALS for name, count in held.items()}
    assert 0.85 < share["nodes"] < 0.95
    assert 0.85 < share["edges"] < 0.95
    assert min(share["low"], share["high"]) > 0.91  # 95 % or more, each


def test_the_largest_degree_is_near_where_noise_is_small() -> None:
    mass = 2 * tag_weights(LIMITS, 400)[DEGREES["star"]].sum(axis=0)
    found = largest_degree_interval(LIMITS, mass, 0.01, [1] * len(mass))
    assert 256 < found.low <= 400 <= found.high < 401


def test_where_the_sides_of_a_largest_degree_contradict_each_other_what_is_between_them_stands() -> None:
    limits, mass = (
        [0, 2, 4, 8, 16, 32],
        np.array([40.0, 25.0, 9.0, 0.0, 0.2]),
    )  # the last is noise, as none of a node is
    found = largest_degree_interval(limits, mass, 0.01, [1] * len(mass))
    assert 5 <= found.low < 9.5 and found.high == 17


def test_counts_of_nodes_by_degree_tell_the_same_as_degree_by_tag() -> None:
    degrees = DEGREES["power law"]
    query = wp.source("counts", int).noisy_count(1, range(64))
    ccdf = Answers(query, 1e-4, np.array([(degrees > y).sum() for y in range(64)], dtype=np.float64), simulated=True)
    found = degree_intervals(ccdf)
    assert found["nodes"].low == pytest.approx(300, abs=0.01)
    assert found["edges"].high == pytest.approx(degrees.sum() / 2, abs=0.1)
    assert 33 <= found["largest_degree"].low <= 40 <= found["largest_degree"].high <= 64


# --- curves


def held_triangles(clustering: np.ndarray, scale: float, trials: int) -> tuple[float, list[dict[str, Interval]]]:
    """How often the interval holds the triangles of a graph with this clustering by degree, and all intervals."""
    degrees = np.sort(DEGREES["power law"])
    wedges, weights = degrees * (degrees - 1) / 2, wedge_weights([0, 2, 8, 32, 128], 40)
    closed = (clustering[degrees] * wedges) @ weights[degrees]
    rng = np.random.default_rng(1)
    found = []
    for _ in range(trials):
        noisy = closed + rng.laplace(scale=scale, size=len(closed))
        found.append(clustering_intervals(ClusteringCurves.of(degrees, weights, noisy, scale), len(degrees), rng))
    true = float(clustering[degrees] @ wedges / 3)
    return float(np.mean([one["triangles"].holds(true) for one in found])), found


@pytest.mark.long
def test_intervals_of_triangles_hold_a_smooth_curve_and_are_no_wider_than_that_takes() -> None:
    """Of 150 trials of a chance of 90 %, at least 65 % hold it but with a chance below 1e-9."""
    degree = np.maximum(np.arange(41.0), 1)
    share, found = held_triangles(0.6 * degree**-0.5, 0.2, 150)
    assert share > 0.65
    ratio = np.median([one["triangles"].high / one["triangles"].low for one in found])
    assert 1.1 < ratio < 3
    assert sum(one["triangles"].swamped for one in found) < 40


def test_where_there_are_no_triangles_none_is_not_ruled_out_and_noise_is_said_to_swamp_them() -> None:
    share, found = held_triangles(np.zeros(41), 1.0, 150)
    assert share > 0.65
    assert sum(one["triangles"].swamped for one in found) > 108
    assert all(one["average_clustering"].low == 0 for one in found if one["triangles"].low == 0)


def test_the_interval_of_triangles_is_as_wide_as_the_share_by_chance_is_doubtful() -> None:
    """One node has nearly all wedges, and answers tell of the others: its triangles are of chance."""
    degrees, random = np.append(np.full(300, 4), 300), np.full(301, 0.2)
    weights, scale = wedge_weights([0, 2, 8, 32, 128, 512], 300), 1.0
    closed = (0.2 * degrees * (degrees - 1) / 2) @ weights[degrees]
    curves = ClusteringCurves.of(degrees, weights, closed, scale, None, random)
    sure, unsure = (
        clustering_intervals(curves, 301, np.random.default_rng(1), doubt=np.array(factors)[:, None] * np.ones(2))
        for factors in ([1.0], [0.3, 3.0])
    )
    widths = [found["triangles"].high / found["triangles"].low for found in (sure, unsure)]
    assert widths[1] > 1.3 * widths[0]


def test_an_interval_of_triangles_is_never_as_sharp_as_answers_without_noise() -> None:
    """Degrees are estimates, and wedges are cut: all are off by .8 % together."""
    degree = np.maximum(np.arange(41.0), 1)
    _, (found, *_) = held_triangles(0.6 * degree**-0.5, 1e-5, 1)
    assert found["triangles"].high / found["triangles"].low > 1.02


def test_an_interval_of_clustering_never_exceeds_all_wedges() -> None:
    for share, noise in ((0.999, 0.1), (0.99, 1e-3)):
        _, found = held_triangles(np.full(41, share), noise, 3)
        degrees = DEGREES["power law"]
        for each in found:
            assert each["average_clustering"].high <= (degrees > 1).mean()
            assert each["triangles"].high <= (degrees * (degrees - 1) / 6).sum()


def test_without_a_wedge_nothing_bounds_triangles() -> None:
    curves = ClusteringCurves.of(np.ones(9, dtype=np.int64), wedge_weights([0, 2], 1), np.zeros(1), 1.0)
    found = clustering_intervals(curves, 9, np.random.default_rng(1))
    assert found["triangles"].swamped
    assert json.dumps(found["triangles"].to_json(), allow_nan=False).count("null") == 1
    assert "0 to any" in phrase(found["triangles"])


@pytest.mark.long
def test_the_interval_of_assortativity_holds_that_of_random_mixing_and_narrows_with_the_noise() -> None:
    degrees = np.sort(DEGREES["power law"])
    classes = DegreeClasses.of(degrees)
    limits = fine_limits(40)
    shares = classes.stub_mean(tag_weights(limits, 40) / np.maximum(np.arange(41), 1)[:, None])
    random = np.outer(classes.stubs, classes.stubs) / classes.stubs.sum()
    both = shares.T @ random @ shares
    joint = np.triu(both, 1) * 4 / 3 + np.diag(np.diag(both)) * 2 / 3
    rng = np.random.default_rng(1)
    widths = []
    for scale in (0.3, 10.0):
        found = [
            mixing_interval(classes, drawn_mixings(classes, fields, rng))
            for _ in range(8)
            for noisy in [joint + rng.laplace(scale=scale, size=joint.shape)]
            for fields in [fit_fields(classes, shares, noisy, scale)]
        ]
        assert sum(one.holds(0.0) for one in found) >= 2  # of 8 at 90 %: less with a chance of 1e-6
        widths.append(np.median([one.high - one.low for one in found]))
    assert 0.01 < widths[0] < widths[1] / 2


def test_nodes_that_all_have_one_degree_have_no_assortativity() -> None:
    classes = DegreeClasses.of(np.full(40, 2))
    found = mixing_interval(classes, [])
    assert (found.low, found.high, found.swamped) == (-1, 1, True)


# --- words


def test_words_say_what_there_is() -> None:
    assert phrase(None) == NOT_MEASURED == "not measured: inherited from the seed graph"
    assert phrase(Interval.of_count(90, 110)) == "90 % interval 90 to 110"
    assert SWAMPED in phrase(Interval.of_count(-5, 136))
    assert SWAMPED in phrase(Interval.of_count(10, 31))
    assert phrase(Interval(0.1, 0.2, False, "a bias"), 0.3) == (
        "90 % interval 0.1 to 0.2; does not cover a bias; the synthetic value is outside"
    )
    assert phrase(Interval(0.1, 0.2, False), math.nan) == "90 % interval 0.1 to 0.2"
    assert phrase(Interval(3, 4, False, cautious=True)) == "90 % interval 3 to 4; conservative"
    assert warning({"nodes": Interval(1, 2, False)}) == ""
    named = warning({"nodes": Interval(0, 2, True), "edges": Interval(0, 2, True), "triangles": Interval(0, 2, True)})
    assert named.startswith("Noise dominates nodes, edges and triangles: ")


def test_structure_is_that_of_networkx() -> None:
    networkx = pytest.importorskip("networkx")
    graph = networkx.disjoint_union(networkx.karate_club_graph(), networkx.path_graph(4))
    found = graph_structure(np.array(graph.edges))
    lengths = [n for _, ends in networkx.all_pairs_shortest_path_length(graph) for n in ends.values() if n]
    assert found["components"] == 2
    assert found["mean_path"] == pytest.approx(np.mean(lengths))
    assert found["largest_core"] == max(networkx.core_number(graph).values()) == 4
    best = networkx.community.modularity(graph, networkx.community.louvain_communities(graph, weight=None, seed=1))
    assert found["modularity"] == pytest.approx(best, abs=0.05)
    assert graph_structure(np.array(graph.edges)) == found
    assert set(graph_structure(np.empty((0, 2), dtype=np.int64))) == set(found)


# --- questions that are not asked


@pytest.mark.parametrize("name", method_names())
def test_no_graph_within_the_bounds_gives_more_than_what_hopeless_takes_for_the_most(name: str) -> None:
    """A complete graph, and one of two stars: for it the CCDF, and for that closed wedges, are large."""
    method, nodes = find_method(name), 7
    for edges in (list(combinations(range(nodes), 2)), [(0, i) for i in range(1, nodes)]):
        records = edges + [(b, a) for a, b in edges] if method.symmetric else edges
        for key, measurement in method.measurements(method.source(), 50, bounds=Bounds(nodes, nodes)).items():
            if isinstance(measurement.sink, SubgraphCount):
                continue
            weights = wp.evaluate(wp.Query(measurement.plan), {"edges": records}, exact=True)
            most = _mass(measurement.plan, math.comb(nodes, 2) * 1)
            assert sum(abs(weight) for weight in weights.values()) <= most, key


def test_hopeless_questions_are_refused_before_anything_is_spent(tmp_path: Path) -> None:
    ring, method = [(i, (i + 1) % 20) for i in range(20)], find_method("tags")
    ledger = tmp_path / "ledger.db"
    with pytest.raises(PlanError, match=r"joint_degrees of any graph of at most 20 nodes .* nothing was spent"):
        shares = {"degree_mass": 20, "closed_wedges": 10, "joint_degrees": 1}
        measure_graph(ring, method, 1, split=shares, bounds=Bounds(nodes=20), ledger=ledger, budget=1)
    assert not ledger.exists()
    assert infeasible(method.measurements(method.source(), "0.01"), Bounds(nodes=20))
    assert not infeasible(method.measurements(method.source(), "0.01"), Bounds())
    assert not infeasible(method.measurements(method.source(), 50), Bounds(nodes=20))


def test_numbers_that_noise_hides_in_every_such_graph_are_not_asked_for() -> None:
    method, bounds = find_method("tags"), Bounds(nodes=40, degree=3)
    made = method.measurements(method.source(), 1, bounds=bounds)
    assert set(method.shares) - set(made) == {"largest_degree", "pair_slices", "triangle_count", "component_count"}
    assert wp.bill(made)["edges"] == pytest.approx(1, abs=1e-8)
    paper = find_method("tbi")
    assert "degree_sequence" not in paper.measurements(paper.source(), 1, bounds=Bounds(nodes=12, degree=8))
    asked = method.measurements(method.source(), 1, dict(method.shares), bounds)
    assert "triangle_count" in asked
    with pytest.raises(PlanError, match="largest_degree of any graph"):
        measure_graph([(0, 1), (1, 2)], method, 1, split=dict(method.shares), bounds=bounds)


# --- the way out


def test_a_graph_of_twenty_nodes_is_said_to_be_swamped_before_there_is_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """At this epsilon triangles are in the noise whatever it is: 19 edges in a tree against a scale of 10 and more."""
    path, out = tmp_path / "tree.txt", tmp_path / "out.txt"
    path.write_text("".join(f"{i} {i + 1}\n" for i in range(19)))
    for seed in range(20):  # a graph of which too few edges are left in the noise is refused, which is no less honest
        folder = tmp_path / f"run{seed}"
        told = ["--epsilon", "1", "--out", str(out), "--folder", str(folder), "--quiet", "--steps", "200"]
        code = main(["synthesize", str(path), *told])
        printed, errors = capsys.readouterr()
        if code == 0:
            break
        assert "noise dominates" in errors
    else:
        pytest.skip("twenty graphs were lost in noise")
    before, after = printed.split("Statistics of the synthetic graph")
    assert SWAMPED in before
    lines = {line.partition(":")[0].strip(): line for line in before.splitlines()}
    for name in ("mean path", "modularity", "largest core"):
        assert lines[name].endswith(NOT_MEASURED)
    assert before.count("Noise dominates ") == after.count("Noise dominates ") == 1
    made = json.loads((tmp_path / "out.txt.json").read_text())["uncertainty"]
    assert list(made["statistics"]) == list(ALL_STATISTICS)
    assert made["statistics"]["mean_path"] == {"not_measured": True, "words": NOT_MEASURED}
    assert all(name.replace("_", " ") in after.split("Noise dominates ")[1] for name in made["swamped"])


def test_assortativity_by_joint_degrees_holds_where_degrees_vary() -> None:
    """Where they hardly vary the variance that divides is near 0, and the fitted degrees decide it instead."""
    path = {(i, j) for i in range(40) for j in (i + 1, i + 2, i + 9) if j < 40}
    stars = {(min(i, j), max(i, j)) for j, every in ((0, 2), (13, 3), (21, 3)) for i in range(0, 40, every) if i != j}
    edges, method = sorted(path | stars), find_method("tbi+jdd")
    interval = fit_graph(measure_graph(edges, method, 4000), method, Settings(50, seed=3)).uncertainty["assortativity"]
    assert not interval.swamped and interval.high - interval.low < 0.2
    assert interval.low - 0.15 < graph_statistics(edges)["assortativity"] < interval.high + 0.15


@pytest.mark.parametrize("off", [-40, 40])
def test_an_answer_that_contradicts_the_fitted_degrees_decides_nothing(off: float) -> None:
    degrees = np.array([1, 1, 2, 2, 3, 3])
    pairs = wp.source("pairs", a=int, b=int).noisy_count(1, [(2, 3)])
    answers = Answers(pairs, 0.1, np.array([off]))
    interval = by_joint_degrees(answers, degrees, 3.0, np.random.default_rng(0))["assortativity"]
    assert (interval.low, interval.high, interval.swamped) == (-1.0, 1.0, True)


@pytest.mark.parametrize("name", tenth([*method_names(), "tbi+jdd"], 2))
def test_every_method_tells_of_what_it_measures_the_same_each_time(name: str) -> None:
    edges = [(i, j) for i in range(40) for j in (i + 1, i + 2, i + 9) if j < 40]
    method, told = find_method(name), []
    answers = measure_graph(edges, method, 400)
    graph = fit_graph(answers, method, Settings(50, seed=3), on_uncertainty=told.append)
    again = fit_graph(answers, method, Settings(50, seed=3))
    assert told == [graph.uncertainty] == [again.uncertainty]
    assert {"nodes", "edges", "largest_degree"} <= set(graph.uncertainty) <= {*ALL_STATISTICS, RECIPROCAL}
    true = graph_statistics(edges)
    for statistic in ("nodes", "edges", "largest_degree"):
        interval = graph.uncertainty[
            statistic
        ]  # the noise is 400 times what leaves one out of ten outside at epsilon 1
        assert interval.low - 5 < true[statistic] < interval.high + 5
    if name in ("tags", "tbi", "tbi+jdd"):
        assert not graph.uncertainty["triangles"].swamped
        assert graph.uncertainty["triangles"].low < 1.2 * true["triangles"]
        assert graph.uncertainty["triangles"].high > 0.8 * true["triangles"]
    words = report(graph)["uncertainty"]["statistics"]
    assert list(words) == list(graph.statistics()) == [*ALL_STATISTICS, *[RECIPROCAL] * method.directed]
