"""The pure half on graphs: degrees, methods, the workflow, its report."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wpinq as wp
from tests.support.parameters import for_each
from wpinq.errors import AnswersError, EpsilonError, PlanError
from wpinq.graphs import Bounds, SyntheticGraph, fit_graph, read_edges
from wpinq.graphs.synthesis import find_method, graph_statistics, method_names
from wpinq.graphs.synthesis.fit import graph_structure
from wpinq.graphs.synthesis.random_graphs import fit_degrees, graphical, random_graph
from wpinq.graphs.synthesis.report import report
from wpinq.mcmc import STEPS_PER_EDGE, CheckpointError, Settings, Update
from wpinq.measure.answers import Answers
from wpinq.noise.epsilon import parse_budget, to_nano

ROOT = Path(__file__).parents[2]
EDGES = read_edges(ROOT / "examples" / "data" / "les-miserables.txt", directed=False)
BOTH = [*EDGES, *((b, a) for a, b in EDGES)]


def simulated(name: str, epsilon: float, node: type = int, seed: int = 1) -> dict[str, Answers]:
    """What a session would answer about the Miserables."""
    method = find_method(name)
    data = {"edges": [(node(a), node(b)) for a, b in (BOTH if method.symmetric else EDGES)]}
    answers: dict[str, Answers] = {}
    bounds = Bounds(nodes=100, degree=60)
    for key, measurement in method.measurements(method.source(node), epsilon, bounds=bounds).items():
        keys = measurement.domain if measurement.domain is not None else method.keys(key, answers, bounds)
        asked = replace(measurement, domain=tuple(keys))
        answers[key] = wp.simulate(asked, data, seed, engine="reference")
    return answers


# --- degrees


def is_graphical(degrees: Any) -> bool:
    """What `graphical` leaves as it is."""
    return bool((graphical(degrees) == np.sort(degrees)[::-1]).all())


def degree_rows() -> Iterator[tuple[int, ...]]:
    for size in range(1, 6):
        yield from combinations([d for d in range(size + 1) for _ in range(3)], size)


def test_graphical_is_what_some_graph_has() -> None:
    """Against all graphs on up to five nodes."""
    realised = set()
    for size in range(1, 6):
        pairs = list(combinations(range(size), 2))
        for chosen in range(2 ** len(pairs)):
            ends = [v for i, pair in enumerate(pairs) if chosen >> i & 1 for v in pair]
            realised.add(tuple(sorted(np.bincount(np.array(ends, dtype=int), minlength=size).tolist())))
    rows = {tuple(sorted(row)) for row in degree_rows()}
    assert {row for row in rows if is_graphical(row)} == rows & realised


def test_mended_degrees_are_graphical_and_not_larger() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        given = np.sort(rng.integers(0, 12, size=rng.integers(1, 10)))[::-1]
        mended = graphical(given)
        assert is_graphical(mended)
        assert (mended <= given).all()
        if is_graphical(given):
            assert (mended == given).all()


def test_a_random_graph_is_simple_has_the_degrees_and_follows_its_seed() -> None:
    degrees = np.bincount(np.array(EDGES).ravel())
    drawn = [random_graph(degrees, np.random.default_rng(seed)).tolist() for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert (np.bincount(np.array(drawn[0]).ravel()) == degrees).all()
    assert len({frozenset(edge) for edge in drawn[0]}) == len(EDGES)
    assert all(a != b for a, b in drawn[0])


def test_statistics_are_those_of_networkx() -> None:
    networkx = pytest.importorskip("networkx")
    graph = networkx.Graph(EDGES)
    found = graph_statistics(EDGES)
    far, named = [(10**9 * a - 7, 10**9 * b - 7) for a, b in EDGES], [(str(a), str(b)) for a, b in EDGES]
    assert graph_statistics(far) == found  # labels in the same order, and no dense numbers
    assert graph_statistics(named) == pytest.approx(found)
    assert found["triangles"] == sum(networkx.triangles(graph).values()) // 3
    assert found["average_clustering"] == pytest.approx(networkx.average_clustering(graph))
    assert found["assortativity"] == pytest.approx(networkx.degree_assortativity_coefficient(graph))
    assert (found["nodes"], found["edges"], found["largest_degree"]) == (77, 254, 36)


def test_degrees_lost_in_noise_are_said_to_be() -> None:
    query = find_method("tbi").measurements(find_method("tbi").source(), 1)["degree_ccdf"]
    flat = Answers(wp.Query(query.plan).noisy_count(1, range(4)), 1.0, np.zeros(4))
    with pytest.raises(AnswersError, match="noise dominates"):
        fit_degrees({"degree_ccdf": flat})


# --- methods


@for_each("name", [*method_names(), "tbi+jdd", "jdd+tbd+tbi"])
@for_each("epsilon", [1, "0.3", Fraction(1, 3), "0.12345678987654321"])
def test_a_method_spends_its_epsilon_and_no_more(name: str, epsilon: Any) -> None:
    method = find_method(name)
    measurements = method.measurements(method.source(), epsilon)
    cost = wp.bill(measurements)["edges"]
    assert 0 <= Fraction(epsilon) - cost < Fraction(2, 10**9)
    assert to_nano(cost) <= parse_budget(Fraction(epsilon))
    assert set(measurements) == set(method.shares)
    assert sum(method.shares.values()) == 1


def test_shares_can_be_chosen() -> None:
    method = find_method("tbi")
    shares = {"degree_ccdf": 1, "degree_sequence": 1, "tbi": 2}
    made = method.measurements(method.source(), 1, shares)
    assert [float(m.epsilon) for m in made.values()] == [0.125, 0.125, 0.125]  # tbi moves by 2
    with pytest.raises(PlanError, match="a share for each of"):
        method.measurements(method.source(), 1, {"tbi": 1})
    with pytest.raises(EpsilonError):
        method.measurements(method.source(), 1, {**shares, "tbi": 0})


def test_an_epsilon_that_no_ledger_can_charge_is_refused() -> None:
    method = find_method("tags")
    with pytest.raises(EpsilonError, match="at least 1e-9"):
        method.measurements(method.source(), "0.9e-9")


@pytest.mark.parametrize("name", ["tbx", "tbi+tbi", "", "tbi+"])
def test_an_unknown_method_is_refused(name: str) -> None:
    with pytest.raises(PlanError, match="there is no method"):
        find_method(name)


def test_keys_of_degrees_grow_until_the_counts_are_below_a_node() -> None:
    method, hub = find_method("tbi"), 300
    star = [(0, i) for i in range(1, hub + 1)] + [(i, 0) for i in range(1, hub + 1)]
    plan = method.measurements(method.source(), 20)["degree_ccdf"].plan
    answers: dict[str, Answers] = {}
    asked: list[int] = []
    while (count := len(list(method.keys("degree_ccdf", answers)))) not in asked:
        asked.append(count)
        query = wp.Query(plan).noisy_count(2, range(count))
        answers["degree_ccdf"] = wp.simulate(query, {"edges": star}, seed=1, engine="reference")
    assert asked == [64, 128, 256, 512]
    sequence = list(method.keys("degree_sequence", answers))
    assert hub + 1 <= len(sequence) < hub + 20


def test_too_little_epsilon_for_keys_from_answers_asks_for_a_bound() -> None:
    method = find_method("tbi")
    with pytest.raises(PlanError, match="give a public bound on the degree"):
        method.measurements(method.source(), "0.01")
    assert method.measurements(method.source(), "0.01", bounds=Bounds(degree=100))["degree_ccdf"].domain is not None


@pytest.mark.parametrize("bound", [{"nodes": 0}, {"degree": True}, {"degree": 2.0}])
def test_bounds_are_checked(bound: dict[str, Any]) -> None:
    with pytest.raises(PlanError, match="the bound on"):
        Bounds(**bound)


# --- the workflow


def test_with_much_epsilon_the_query_and_the_degrees_come_out_as_they_were() -> None:
    answers = simulated("tbi", 4000)
    graph = fit_graph(answers, "tbi", Settings(200_000, seed=1))
    true_degrees = np.sort(np.bincount(np.array(EDGES).ravel()))
    assert (np.sort(np.unique(graph.edges, return_counts=True)[1]) == true_degrees).all()
    trace = graph.samples.traces[0]
    assert trace.score[-1] < 0.1 * trace.score[0]
    began = graph_statistics(graph.seeds[0])["triangles"]
    assert abs(graph.statistics()["triangles"] - 467) < abs(began - 467) / 2


@pytest.mark.parametrize(
    ("name", "place", "estimates"),
    [
        ("tags", "degree_sequence", ["estimate_degrees"]),
        ("tags", "estimates", ["estimate_clustering", "estimate_mixing", "fit_fields"]),
        pytest.param("tbi+jdd", "methods", ["fit_degrees"], marks=pytest.mark.long),
    ],
)
def test_estimates_are_made_once_a_run(
    name: str, place: str, estimates: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the number of chains, for all that they begin from and fit, and for the report."""
    answers, calls = simulated(name, 20), Counter[str]()
    module = sys.modules[f"wpinq.graphs.synthesis.{place}"]

    def counted(estimate: str) -> Callable[..., Any]:
        made = getattr(module, estimate)

        def call(*given: Any) -> Any:
            calls[estimate] += 1
            return made(*given)

        return call

    for estimate in estimates:
        monkeypatch.setattr(module, estimate, counted(estimate))
    report(fit_graph(answers, name, Settings(100, chains=3), statistics=None))
    assert calls == dict.fromkeys(estimates, 1)


def test_the_graph_depends_on_answers_settings_and_seed_alone() -> None:
    answers = simulated("tbi", 5)
    read_back = {name: Answers.from_json(json.loads(json.dumps(table.to_json()))) for name, table in answers.items()}
    settings = Settings(3000, seed=1)
    first, again = fit_graph(answers, "tbi", settings), fit_graph(read_back, "tbi", settings)
    assert (first.edges == again.edges).all()
    assert json.dumps(report(first)) == json.dumps(report(again))
    other = fit_graph(answers, "tbi", Settings(3000, seed=2))
    assert first.edges.shape != other.edges.shape or (first.edges != other.edges).any()


def test_without_a_number_of_steps_there_are_150_for_each_edge_and_going_on_is_the_same(tmp_path: Path) -> None:
    answers, settings = simulated("tbi", 20), Settings(chains=2, seed=3)

    class Stop(Exception):
        pass

    def on_update(update: Update) -> None:
        if update.steps > update.total / 10:
            raise Stop

    through = fit_graph(answers, "tbi", settings, statistics=None)
    steps = STEPS_PER_EDGE * len(through.edges)
    done = [trace.steps[-1] for trace in through.samples.traces]
    assert all(steps / 5 <= count < steps for count in done), "both chains come to rest"
    assert through.settings.steps == report(through)["settings"]["steps"] == steps
    assert report(through)["steps_per_edge"] == done[through.samples.best] / len(through.edges)
    with pytest.raises(Stop):
        fit_graph(answers, "tbi", settings, statistics=None, checkpoints=tmp_path, on_update=on_update)
    resumed = fit_graph(answers, "tbi", settings, statistics=None, checkpoints=tmp_path)
    assert (resumed.edges == through.edges).all()
    assert resumed.samples.traces == through.samples.traces
    with np.load(tmp_path / "chain-0.npz") as held:
        assert json.loads(held["header"].tobytes())["steps"] == steps
    with pytest.raises(CheckpointError, match="other settings"):
        fit_graph(answers, "tbi", Settings(steps + 1, chains=2, seed=3), statistics=None, checkpoints=tmp_path)


@pytest.mark.parametrize("name", ["tags", "tbi"])
def test_a_graph_lost_in_noise_is_said_to_be(name: str) -> None:
    method, answers = find_method(name), dict[str, Answers]()
    for key, measurement in method.measurements(method.source(), 1, bounds=Bounds(degree=8, nodes=8)).items():
        keys = measurement.domain if measurement.domain is not None else method.keys(key, answers)
        asked = replace(measurement, domain=tuple(keys))
        values = np.full(len(asked.domain or ()), 1.0 if key in ("degree_mass", "degree_ccdf") else 0.0)
        values[1:] = 0.0
        answers[key] = Answers(asked, 1e-3, values)
    with pytest.raises(AnswersError, match="noise dominates"):
        fit_graph(answers, name, Settings(100))


def test_what_a_graph_lacks_has_no_convergence_figure(tmp_path: Path) -> None:
    """A ring: all degrees are equal, so there is no assortativity."""
    ring = [(node, (node + 1) % 40) for node in range(40)]
    method, answers = find_method("tbi"), dict[str, Answers]()
    for name, measurement in method.measurements(method.source(), 4000, bounds=Bounds(degree=8, nodes=60)).items():
        both = [*ring, *((b, a) for a, b in ring)]
        answers[name] = wp.simulate(measurement, {"edges": both}, seed=1)
    graph = fit_graph(answers, method, Settings(400))
    assert len(graph.edges) == 40
    (trace,) = graph.samples.traces
    assert np.isnan(trace.statistics["assortativity"]).all()
    assert np.isfinite(trace.statistics["triangles"]).all()
    assert report(graph)["graph"]["assortativity"] is None


def test_chains_begin_from_graphs_of_their_own_and_the_best_is_given() -> None:
    graph = fit_graph(simulated("tbi", 20), "tbi", Settings(4000, chains=2, seed=3, chunk=200))
    assert (graph.seeds[0] != graph.seeds[1]).any()
    ends = [trace.score[-1] for trace in graph.samples.traces]
    assert ends[graph.samples.best] == min(ends)
    for trace in graph.samples.traces:
        assert set(trace.statistics) == {"triangles", "assortativity", "average_clustering"}


@pytest.mark.parametrize("compiled", [True, False])
def test_nodes_may_be_texts(compiled: bool) -> None:
    graph = fit_graph(simulated("tbi", 20, str), "tbi", Settings(300, seed=1), compiled=compiled)
    assert graph.edges.dtype == np.int64
    assert (graph.edges[:, 0] < graph.edges[:, 1]).all()
    assert len(graph.edges) == len(graph.seeds[0])


def test_a_report_says_what_was_paid_and_nothing_exact_of_the_secret() -> None:
    graph = fit_graph(simulated("tbi+jdd", 2), "tbi+jdd", Settings(500, seed=1))
    made = json.loads(json.dumps(report(graph), allow_nan=False))
    assert made["bill"] == {"edges": "2"}
    assert made["simulated"] is True
    assert set(made) == {
        "public_nodes",
        *("format", "version", "method", "bill", "bill_text", "measurements", "simulated", "settings"),
        *("prior", "steps_per_edge", "chains", "best_chain", "noise_level", "graph", "uncertainty"),
    }
    assert made["graph"] == pytest.approx(graph_statistics(graph.edges) | graph_structure(graph.edges))
    numbers = set()

    def gather(value: Any) -> None:
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, list):
            for item in value:
                gather(item)
        elif isinstance(value, float):
            numbers.add(value)

    gather(made)
    secret = graph_statistics(EDGES)
    assert not numbers & {secret["assortativity"], secret["average_clustering"]}


def test_plots_are_drawn(tmp_path: Path) -> None:
    from wpinq.graphs.synthesis.report import plot_degrees, plot_trace, save_plots

    graph = fit_graph(simulated("tbi", 5), "tbi", Settings(500, seed=1, chunk=100, chains=2))
    steps = plot_degrees(graph).get_lines()[0].get_xydata()
    assert steps[0][1] == 1
    assert steps[-1][1] == graph.statistics()["nodes"]
    lines = plot_trace(graph, "triangles").get_lines()
    assert [len(line.get_xdata()) for line in lines] == [5, 5]
    assert list(lines[0].get_ydata()) == graph.samples.traces[0].statistics["triangles"]
    with pytest.raises(AnswersError, match="no trace of 'squares'"):
        plot_trace(graph, "squares")
    names = {path.name for path in save_plots(graph, tmp_path / "plots")}
    assert names >= {"degrees.png", "joint_degrees.png", "score.png", "triangles.png", "assortativity.png"}
    assert all((tmp_path / "plots" / name).stat().st_size > 1000 for name in names)


def test_a_synthetic_graph_as_a_graph_of_other_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("networkx")
    pytest.importorskip("pandas")
    samples: Any = None  # of the chains, which no graph is made of
    graph = SyntheticGraph(np.array([(0, 1), (1, 3)]), find_method("tbi"), Settings(), {}, samples, ())
    networkx, igraph, pandas = graph.to_networkx(), graph.to_igraph(), graph.to_pandas()
    assert sorted(networkx.edges) == igraph.get_edgelist() == [(0, 1), (1, 3)]
    assert sorted(networkx) == list(range(igraph.vcount())) == [0, 1, 2, 3]
    assert not networkx.is_directed()
    assert not igraph.is_directed()
    assert pandas.to_dict("list") == {"src": [0, 1], "dst": [1, 3]}
    assert replace(graph, edges=np.empty((0, 2), dtype=np.int64)).to_networkx().number_of_nodes() == 0
    for library, convert in (("networkx", graph.to_networkx), ("igraph", graph.to_igraph), ("pandas", graph.to_pandas)):
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(AnswersError, match=rf"{library}: pip install ['-].*\[(graphs|synthesis|tables)\]'"):
            convert()
