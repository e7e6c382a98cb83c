"""The measuring half: bill first, everything debited together, and the graph let go of."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import igraph
import networkx
import numpy as np
import pytest

import wpinq as wp
from tests.support.parameters import for_each
from wpinq import synthesis
from wpinq.columns.storage import StoredColumns
from wpinq.engines.contract import DEFAULT_ENGINE, find_engine
from wpinq.errors import AnswersError, BudgetExceeded, EvaluationFailed, PlanError, SourceRejected
from wpinq.graphs import Bounds
from wpinq.graphs.synthesis import find_method, methods
from wpinq.graphs.synthesis.methods import DegreesThen, Fit
from wpinq.graphs.synthesis.random_graphs import fit_degrees
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.mcmc import Settings
from wpinq.noise.epsilon import from_nano
from wpinq.synthesis import measure_graph

ROOT = Path(__file__).parents[2]
GRAPH = ROOT / "examples" / "data" / "les-miserables.txt"
RING = [(7000 + i, 7000 + (i + 1) % 9) for i in range(9)]


def test_the_bill_is_told_before_the_file_is_read(tmp_path: Path) -> None:
    bills: list[wp.Bill] = []
    with pytest.raises(SourceRejected):
        measure_graph(tmp_path / "missing.txt", find_method("tbi"), 1, on_bill=bills.append)
    assert bills[0]["edges"] == 1


def test_what_is_spent_is_epsilon_and_replays_for_free(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    more: dict[str, Any] = {"ledger": ledger, "budget": 3, "version": "2014", "bounds": Bounds(nodes=90)}
    first = measure_graph(GRAPH, find_method("tbi+jdd"), "1.5", **more)
    again = measure_graph(GRAPH, find_method("tbi+jdd"), "1.5", **more)
    assert {name: list(table.items()) for name, table in first.items()} == {
        name: list(table.items()) for name, table in again.items()
    }
    with Ledger(ledger) as kept:
        (account,) = kept.accounts()
        assert Fraction(account.spent, 10**9) == Fraction(3, 2)
        assert (account.name, account.unit, account.unit_weight) == ("edges", "one undirected edge", 2)
    with pytest.raises(BudgetExceeded):
        measure_graph(GRAPH, find_method("tbi"), 2, **more)


def test_once_measured_the_session_holds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    sessions: list[wp.Session] = []

    class Seen(wp.Session):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            sessions.append(self)

    monkeypatch.setattr(synthesis, "Session", Seen)
    measure_graph(RING, find_method("tbi"), 2, bounds=Bounds(nodes=12, degree=8))
    (session,) = sessions
    assert not held(session)
    with pytest.raises(wp.SessionError, match="closed"):
        session.remaining("edges")


def test_the_session_holds_the_graph_while_it_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `held` must be able to see, or the test above would prove nothing."""
    seen: list[bool] = []

    class Seen(wp.Session):
        def close(self) -> None:
            seen.append(any(RING[0] in data for data in held(self)))
            super().close()

    monkeypatch.setattr(synthesis, "Session", Seen)
    measure_graph(RING, find_method("tbi"), 2, bounds=Bounds(nodes=12, degree=8))
    assert seen[0]


def held(root: object) -> list[StoredColumns]:
    """All data that can be reached from an object, but through modules, classes and functions."""
    import gc
    from types import FrameType, FunctionType, ModuleType

    known, left, found = {id(root)}, [root], []
    while left:
        for item in gc.get_referents(left.pop()):
            if id(item) in known or isinstance(item, (ModuleType, type, FunctionType, FrameType)):
                continue
            known.add(id(item))
            left.append(item)
            if isinstance(item, StoredColumns):
                found.append(item)
    return found


def test_loops_and_repeated_edges_are_one_simple_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "graph.txt"
    path.write_text("1 2\n2 1\n2 2\n2 3\n1 2\n")
    assert sorted(synthesis._records(path, find_method("tbi"), int, None)) == [(1, 2), (2, 1), (2, 3), (3, 2)]
    assert sorted(synthesis._records([(2, 1), (1, 2), (3, 3)], find_method("tbi"), int, None)) == [(1, 2), (2, 1)]


def test_degrees_are_fitted_once_for_the_keys_of_a_query(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[object] = []
    monkeypatch.setattr(methods, "fit_degrees", lambda answers: (calls.append(answers), fit_degrees(answers))[1])
    measure_graph(RING, find_method("jdd"), 40, bounds=Bounds(nodes=12, degree=8))
    assert len(calls) == 1


@pytest.mark.parametrize("edges", [[(1, 2, 3)], [(1, "b")], [4], [(True, False)]])
def test_what_are_no_edges_is_refused_without_saying_them(edges: Any) -> None:
    with pytest.raises(SourceRejected) as caught:
        measure_graph(edges, find_method("tbi"), 1)
    assert "b" not in str(caught.value).replace("the edges of a graph are pairs of int", "")


def test_answers_are_handed_over_as_they_come_with_the_keys_that_the_method_asks_for() -> None:
    kept: dict[str, int] = {}
    answers = measure_graph(
        RING, find_method("jdd"), 40, on_answers=lambda name, table: kept.update({name: len(table)})
    )
    assert kept == {name: len(table) for name, table in answers.items()}
    assert list(kept) == ["degree_ccdf", "degree_sequence", "jdd"]
    assert kept["degree_ccdf"] == 64
    assert (2, 2) in answers["jdd"].keys


def test_answers_that_came_before_a_failure_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a ledger and a version, the same call goes on: nothing is paid or drawn twice."""
    engine = find_engine(DEFAULT_ENGINE)
    evaluate, asked = engine.evaluate, list[object]()

    def failing(*args: Any, **more: Any) -> Any:
        if len(args) > 4 or "in_rows" in more:  # of a session: a check is on no data
            asked.append(args)
            if len(asked) == 5:
                raise MemoryError
        return evaluate(*args, **more)

    monkeypatch.setattr(engine, "evaluate", failing)
    more: dict[str, Any] = {"ledger": tmp_path / "l.db", "budget": 4, "version": "1"}
    kept: dict[str, wp.Answers] = {}
    with pytest.raises(EvaluationFailed):
        measure_graph(RING, find_method("tags"), 4, on_answers=kept.__setitem__, **more)
    whole_ones_first = ["largest_degree", "triangle_count", "component_count", "degree_mass"]
    assert list(kept) == whole_ones_first
    answers = measure_graph(RING, find_method("tags"), 4, **more)
    assert list(answers) == list(find_method("tags").shares)
    assert all(list(answers[name].items()) == list(kept[name].items()) for name in kept)
    with Ledger(tmp_path / "l.db") as ledger:
        assert from_nano(ledger.account("edges").spent) == 4


def test_answers_come_again_with_more_keys() -> None:
    star = [(0, leaf) for leaf in range(1, 151)]
    seen: list[tuple[str, int]] = []
    measure_graph(star, find_method("tbi"), 40, on_answers=lambda name, table: seen.append((name, len(table))))
    assert seen[:3] == [("degree_ccdf", 64), ("degree_ccdf", 128), ("degree_ccdf", 256)]
    assert [name for name, _ in seen[3:]] == ["degree_sequence", "tbi"]


@pytest.mark.parametrize("name", ["tags", "tbi", "tbi+jdd"])
@pytest.mark.parametrize("epsilon", [Fraction(4, 3), "1.23456789876543"])
def test_any_epsilon_is_covered_by_itself_as_a_budget(name: str, epsilon: Any) -> None:
    bills: list[wp.Bill] = []
    with contextlib.suppress(AnswersError):  # noise may hide so small a graph
        measure_graph(RING, find_method(name), epsilon, bounds=Bounds(degree=8), on_bill=bills.append)
    assert 0 <= Fraction(epsilon) - bills[0]["edges"] < Fraction(2, 10**9)


def test_keys_are_asked_for_until_the_method_wants_no_more() -> None:
    star = [(0, leaf) for leaf in range(1, 151)]
    assert len(measure_graph(star, find_method("tbi"), 40)["degree_ccdf"]) == 256


def test_nothing_is_read_when_the_shares_make_no_sense(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="a share for each"):
        measure_graph(tmp_path / "missing.txt", find_method("tbi"), 1, split={"tbi": 1})


def test_a_query_without_public_keys_is_refused_before_anything_is_spent(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    method = DegreesThen("mine", {"ends": Fit(lambda edges: edges.select(lambda e: e.src), None)})
    with pytest.raises(PlanError, match="ends has no public keys"):
        measure_graph(RING, method, 1, ledger=ledger, bounds=Bounds(nodes=12, degree=8))
    assert not ledger.exists()


# --- one call


def graphs() -> dict[str, Any]:
    """The ring, in the forms of other libraries."""
    pairs = [(i, (i + 1) % 40) for i in range(40)]
    return {
        "pairs": pairs,
        "array": np.array(pairs),
        "networkx": networkx.Graph(pairs),
        "directed networkx": networkx.DiGraph(pairs),
        "igraph": igraph.Graph(40, pairs),
        "edge list": wp.EdgeList([(b, a) for a, b in pairs], directed=True),
    }


@for_each("form", graphs())
def test_one_call_makes_a_graph_of_any_graph(form: str) -> None:
    bills: list[wp.Bill] = []
    settings = Settings(200, seed=7)
    told: dict[str, Any] = {"method": "tbi", "settings": settings, "bounds": wp.graphs.Bounds(degree=8)}
    made = wp.graphs.synthesize(graphs()[form], epsilon=40, on_bill=bills.append, **told)
    assert bills[0]["edges"] == 40
    assert made.settings.seed == 7
    assert abs(len(made.edges) - 40) < 15
    assert wp.graphs.synthesize(graphs()[form], 40, seed=3, **told).settings.seed == 3


def test_one_call_keeps_its_cost_in_a_ledger_and_repeats_for_free(tmp_path: Path) -> None:
    told: dict[str, Any] = {"method": "tbi", "settings": Settings(100), "ledger": tmp_path / "l.db", "version": "1"}
    first, again = (wp.graphs.synthesize(GRAPH, 4, budget=5, **told) for _ in range(2))
    assert (first.edges == again.edges).all()
    with Ledger(tmp_path / "l.db") as ledger:
        assert from_nano(ledger.account("edges").spent) == 4


@for_each(
    ("told", "words"),
    [
        ({"epsilon": 2, "budget": 1}, "does not cover the bill: 'edges' needs 2"),
        ({"epsilon": 0}, "epsilon"),
        ({"method": "tbx"}, "there is no method"),
        ({"settings": Settings(stop_at_noise=1.0)}, "cannot stop at the noise level"),
        ({"seed": -1}, "a seed"),
        ({"bounds": wp.graphs.Bounds(nodes=20), "epsilon": "0.1"}, "nothing was spent"),
        ({"node": float}, "int or str"),
        ({"split": {}}, "split"),
    ],
)
def test_one_call_refuses_before_it_reads_the_graph_or_opens_an_account(told: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(wp.WpinqError, match=words):
        wp.graphs.synthesize(tmp_path / "missing.txt", ledger=tmp_path / "l.db", **told)
    assert not (tmp_path / "l.db").exists()


def test_without_igraph_nothing_is_spent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "igraph", None)
    with pytest.raises(AnswersError, match="needs igraph"):
        wp.graphs.synthesize(GRAPH, ledger=tmp_path / "l.db")
    assert not (tmp_path / "l.db").exists()


def test_the_floor_above_is_loaded_when_a_call_is_used() -> None:
    code = "import sys, wpinq as wp; wp.graphs.degree_ccdf, wp.tables; print('wpinq.kernel.session' in sys.modules)"
    code += "; wp.graphs.synthesize is wp.graphs.synthesize or exit(1); print('wpinq.kernel.session' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
    assert {"synthesize"} <= {*dir(wp.graphs)} & {*dir(wp.tables)}
    with pytest.raises(AttributeError, match="did you mean `synthesize`"):
        wp.tables.synthesise  # type: ignore[attr-defined]  # noqa: B018
