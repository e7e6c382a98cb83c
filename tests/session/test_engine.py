"""The engine of a session: DuckDB unless asked, warm, refused before the debit, and silent when it fails."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import Any

import pytest

import wpinq as wp
import wpinq.kernel.session
from tests.support.parameters import tenth
from wpinq import functions as F
from wpinq.display.explanation import gap
from wpinq.engines import reference
from wpinq.engines.contract import DEFAULT_ENGINE, ENGINES, find_engine, rank_weights_of
from wpinq.engines.sql.duckdb import database
from wpinq.engines.sql.duckdb.instance import Instance
from wpinq.kernel.ledger.ledger import Ledger

Weights = dict[Any, float]


@pytest.fixture
def edges() -> wp.Query:
    """Of any weights, whose sums round."""
    return wp.source("edges", src=int, dst=int, unit="one directed edge", weights=True)


def triangles(edges: wp.Query) -> wp.Query:
    """Enough of the language that sums, norms and groups take part."""
    degrees = edges.group_by(lambda e: e.src, lambda group: F.count(group))
    paths = edges.join(edges, lambda e: e.dst, lambda e: e.src, lambda x, y: (x.src, x.dst, y.dst))
    ends = paths.where(lambda p: p[0] != p[2]).select(lambda p: (p[0], p[2]))
    return ends.join(degrees, lambda p: p[0], lambda d: d.key, lambda p, d: d.val)


def random_edges(count: int) -> dict[tuple[int, int], float]:
    rng = Random(8)
    return {(rng.randrange(40), rng.randrange(40)): rng.random() for _ in range(count)}


def bits(weights: Any) -> list[tuple[Any, str]]:
    return [(record, float(weight).hex()) for record, weight in weights.items()]


def evaluated(session: wp.Session, query: wp.Query) -> Weights:
    """What a session's engine makes of its data, which no release shows."""
    data = {name: held.weights for name, held in session._protected.items()}
    return dict(session._engine.evaluate(query.plan, data))


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables that were loaded into databases."""
    names: list[str] = []
    real = database.load

    def counting(connection: Any, table: str, source: Any, weights: Any) -> None:
        if weights:  # plans are checked on no data
            names.append(table)
        real(connection, table, source, weights)

    monkeypatch.setattr(database, "load", counting)
    return names


# --- which engine -----------------------------------------------------------------------------------------------------


def test_duckdb_is_the_default_and_floats_never_fall_back(
    edges: wp.Query, monkeypatch: pytest.MonkeyPatch, loads: list[str]
) -> None:
    monkeypatch.setattr(reference, "evaluate", lambda *_: pytest.fail("the reference ran"))
    assert DEFAULT_ENGINE == "duckdb"
    assert wp.evaluate(edges, {"edges": [(1, 2)]}) == {(1, 2): 1.0}
    wp.simulate(edges.noisy_count(1, over=[(1, 2)]), {"edges": [(1, 2)]}, seed=1)
    with wp.Session() as session:
        session.protect(edges, [(1, 2)], budget=1)
        session.release(edges.noisy_count(1, over=[(1, 2)]))
    assert loads == ["source_edges"] * 3


def test_exact_weights_are_the_references_unless_another_engine_is_named(edges: wp.Query) -> None:
    assert wp.evaluate(edges, {"edges": [(1, 2)]}, exact=True) == {(1, 2): Fraction(1)}
    with pytest.raises(wp.PlanError, match='use engine="reference"'):
        wp.evaluate(edges, {"edges": [(1, 2)]}, "duckdb", exact=True)


@pytest.mark.parametrize("engine", ENGINES)
def test_explain_names_the_engine(edges: wp.Query, engine: str) -> None:
    assert triangles(edges).explain(engine=engine).endswith(f"Engine: {engine}.")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"memory_limit": "a lot"}, "a memory limit is a text"),
        ({"memory_limit": 2}, "a memory limit is a text"),
        ({"threads": 0}, "number of threads"),
        ({"threads": True}, "number of threads"),
        ({"engine": "reference", "threads": 2}, "has no memory_limit and no threads"),
    ],
)
def test_options_are_checked_when_a_session_opens(options: dict[str, Any], message: str) -> None:
    with pytest.raises(wp.PlanError, match=message):
        wp.Session(**options)


# --- what it cannot run -----------------------------------------------------------------------------------------------


def uneven(edges: wp.Query) -> wp.Query:
    light = wp.source("light", int, cap="1e-25", unit_weight="1e-25", weights=True)
    return edges.join(light, lambda e: e.src % 2, lambda x: x % 2, lambda e, x: x)


def nested(edges: wp.Query) -> wp.Query:
    return edges.select_many(lambda e: F.subsets(F.range(0, 20, limit=20), 16), limit=2)


def long(edges: wp.Query) -> wp.Query:
    query = edges.select(lambda e: e.src)
    for _ in range(1500):
        query = query.select(lambda n: n * 3 + 1)
    return query


GAPS: dict[str, tuple[Callable[[wp.Query], wp.Query], str]] = {
    "caps": (uneven, "Join: the caps of its sides differ by more than a factor of 2.106"),
    "nesting": (nested, "SelectMany: functions of lists stand more than 8 deep"),
    "length": (long, "its program is too much for the database"),
}


@pytest.mark.parametrize("name", tenth(GAPS, 2))
def test_what_duckdb_cannot_run_is_refused_before_the_debit(edges: wp.Query, name: str) -> None:
    build, reason = GAPS[name]
    query = build(edges)
    with wp.Session() as session:
        session.protect(edges, [(1, 2)], budget=1)
        if name == "caps":
            session.protect(wp.source("light", int, cap="1e-25", unit_weight="1e-25", weights=True), {}, budget=1)
        for asked in (query.noisy_count(1, over=[]), [edges.noisy_count(1, over=[]), query.noisy_count(1, over=[])]):
            with pytest.raises(wp.PlanError, match=f'"duckdb" cannot run this plan: {reason}.*use engine="reference"'):
                session.release(asked)
        assert session.spent("edges") == 0
    assert "Engine: none. " in query.explain()
    assert query.explain(engine="reference").endswith("Engine: reference.")
    assert not gap(query.plan, "reference")


def test_a_refused_plan_runs_on_the_reference(edges: wp.Query) -> None:
    with wp.Session(engine="reference") as session:
        session.protect(edges, [(1, 2)], budget=1)
        session.release(nested(edges).noisy_count(1, over=[]))
        assert session.spent("edges") == 1


# --- warm -------------------------------------------------------------------------------------------------------------


def test_data_are_loaded_once_for_each_version(edges: wp.Query, people: wp.Query, loads: list[str]) -> None:
    with wp.Session() as session:
        session.protect(edges, [(1, 2)], budget=100)
        session.protect(people, [("north", 1)], budget=100)
        assert loads == []
        for epsilon in (1, 2, 3):
            session.release(edges.noisy_count(epsilon, over=[(1, 2)]))
            session.release(triangles(edges).noisy_count(epsilon, over=[1]))
        handle = session.release(people.noisy_count(1))
        handle[("north", 1)], handle[("south", 1)]
        assert loads == ["source_edges", "source_people"]
        session.protect(edges, [(1, 2), (2, 3)], budget=100)
        held = session._engine.open().connection
        stored = "SELECT database_name FROM duckdb_databases() WHERE database_name LIKE 'held%' ORDER BY 1"
        assert held.execute(stored).fetchall() == [("held_source_people",)]  # the data before are gone
        session.release(edges.noisy_count(1, over=[(1, 2)]))
        assert loads == ["source_edges", "source_people", "source_edges"]
        assert held.execute(stored).fetchall() == [("held_source_edges",), ("held_source_people",)]


def test_public_data_are_let_go_of_after_each_evaluation(edges: wp.Query) -> None:
    from wpinq.engines.sql.duckdb.database import _public

    wp.evaluate(triangles(edges), {"edges": random_edges(50)})
    assert _public.open().connection.execute("SELECT * FROM duckdb_tables()").fetchall() == []


def test_the_bits_are_those_of_a_cold_evaluation_whatever_came_before(edges: wp.Query) -> None:
    data = random_edges(3000)
    query = triangles(edges)
    expected = bits(wp.evaluate(query, {"edges": data}))
    assert len(expected) > 5
    rows = list(data.items())
    Random(1).shuffle(rows)
    for options in ({}, {"threads": 1}, {"threads": 3}, {"memory_limit": "100MB"}):
        with wp.Session(**options) as session:
            session.protect(edges, dict(rows), budget=1)
            assert bits(evaluated(session, query)) == expected
            evaluated(session, edges)
            assert bits(evaluated(session, query)) == expected


# --- failures ---------------------------------------------------------------------------------------------------------


class Failing:
    """A connection on which every query for the result fails, as DuckDB does: with the data in the message."""

    def __init__(self, connection: Any, kind: str) -> None:
        self._connection, self._kind = connection, kind

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, sql: str, *rest: Any) -> Any:
        if sql.startswith(("SELECT * FROM (SELECT", "SELECT q.* FROM")):
            import duckdb

            raise getattr(duckdb, self._kind)("a true record: 4711")
        return self._connection.execute(sql, *rest)


def break_instances(monkeypatch: pytest.MonkeyPatch, kind: str, cautious_too: bool) -> list[bool]:
    """Make new instances fail; what they were opened as."""
    opened: list[bool] = []
    real = Instance.__init__

    def failing(self: Any, memory_limit: Any, threads: Any, cautious: bool = False) -> None:
        real(self, memory_limit, threads, cautious)
        opened.append(cautious)
        if cautious_too or not cautious:
            self.connection = Failing(self.connection, kind)

    monkeypatch.setattr(Instance, "__init__", failing)
    return opened


def test_a_fault_of_duckdbs_own_is_tried_again_with_caution_and_the_same_bits(
    edges: wp.Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, query = random_edges(3000), triangles(edges)
    expected = bits(wp.evaluate(query, {"edges": data}))
    steps: list[str] = []
    with wp.Session(on_step=steps.append) as session:
        session.protect(edges, data, budget=1)
        evaluated(session, query)
        usual, steps[:] = list(steps), []
    with wp.Session(on_step=steps.append) as session, monkeypatch.context() as patched:
        opened = break_instances(patched, "InternalException", cautious_too=False)
        session.protect(edges, data, budget=1)
        assert bits(evaluated(session, query)) == expected
        assert opened == [False, True]
        assert steps == usual  # it shows in no progress either
        patched.undo()
        assert bits(evaluated(session, query)) == expected


@pytest.mark.parametrize(
    ("kind", "tries"),
    [("InternalException", [False, True]), ("FatalException", [False, True]), ("OutOfMemoryException", [False, False])],
)
def test_after_a_failure_a_session_says_nothing_and_evaluates_the_next_release(
    edges: wp.Query,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    kind: str,
    tries: list[bool],
) -> None:
    query = triangles(edges)
    gap(query.plan, "duckdb")
    with wp.Session() as session:
        session.protect(edges, random_edges(100), budget=10)
        session._engine._shut()  # the one that the data were checked in
        with monkeypatch.context() as patched:
            opened = break_instances(patched, kind, cautious_too=True)
            with pytest.raises(wp.EvaluationFailed) as failure:
                session.release(query.noisy_count(1, over=[1]))
            assert opened == tries
        assert "4711" not in str(failure.value)
        assert (failure.value.__cause__, failure.value.__context__) == (None, None)
        assert session.spent("edges") == query.bill(1)["edges"]
        session.release(query.noisy_count(1, over=[1]))  # paid for
        assert session.spent("edges") == query.bill(1)["edges"]
    assert capfd.readouterr() == ("", "")


def test_an_interrupted_evaluation_leaves_nothing_in_the_way(edges: wp.Query) -> None:
    def interrupt(step: str) -> None:
        raise KeyboardInterrupt

    from wpinq.engines.sql.duckdb.database import Database

    query, data = triangles(edges), {"edges": random_edges(100)}
    with Database() as held:
        expected = held.evaluate(query.plan, data)
        with pytest.raises(KeyboardInterrupt):
            held.evaluate(query.plan, data, on_step=interrupt)
        assert held.evaluate(query.plan, data) == expected


FORK = """
import os, sys, threading
import wpinq as wp
edges = wp.source("edges", src=int, dst=int)
query = edges.select(lambda e: e.src).noisy_count("0.01", over=range(3))
with wp.Session(sys.argv[1]) as session:
    session.protect(edges, [(1, 2)], budget=10)
    session.release(query)
    for leave in (os._exit, sys.exit):
        child = os.fork()
        if child == 0:
            session.release(query, fresh=True)
            leave(0)
        assert os.waitpid(child, 0)[1] == 0
    session.release(query, fresh=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork is of POSIX")
def test_a_forked_child_has_a_database_of_its_own(tmp_path: pathlib.Path) -> None:
    ledger, spills = tmp_path / "ledger.db", tmp_path / "spills"
    spills.mkdir()
    environment = dict(os.environ, TMPDIR=str(spills), PYTHONPATH=os.pathsep.join([".", *sys.path]))
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK, str(ledger)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    with Ledger(ledger, create=False) as books:
        assert books.account("edges").spent == 4 * 10**7
    assert list(spills.iterdir()) == []


class Elsewhere(reference.Reference):
    """An engine that gives up no more of an output than it is asked for."""

    def evaluate(self, *arguments: Any, keys: Any = None) -> Weights:
        assert keys is not None
        return super().evaluate(*arguments, keys=keys)

    def rank_weights(self, root: Any, data: Any, candidates: Any, on_step: Any = None) -> Any:
        return rank_weights_of(reference.evaluate(root, data), candidates)


@pytest.mark.parametrize("engine", [find_engine("duckdb"), find_engine("reference"), Elsewhere])
def test_a_median_counts_what_is_no_candidate_on_every_engine(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # Fails by chance with a probability below exp(-300): 10 has 9 ages below and 12 above, 50 has 20 and 1.
    ages = wp.source("ages", int)
    monkeypatch.setattr(wpinq.kernel.session, "find_engine", lambda name: engine)
    with wp.Session() as session:
        session.protect(ages, [*range(1, 21), 50, 80], budget=1000)
        chosen = session.release(ages.median(100, [10, 50, 80]))
        assert isinstance(chosen, wp.Answers)
        assert chosen.value == 10


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
def test_sources_whose_names_differ_in_case_are_two(engine: str) -> None:
    upper, lower = wp.source("A", int), wp.source("a", int)
    with wp.Session(engine=engine) as session:
        session.protect(upper, range(50), budget=10**9)
        session.protect(lower, [1], budget=10**9)

        def ones(query: wp.Query) -> float:
            measurement = query.select(lambda v: v % 10).noisy_count(epsilon=1000, over=[1])
            return round(session.release(measurement, fresh=True)[1])

        assert [ones(upper), ones(lower), ones(upper), ones(upper.concat(lower))] == [5, 1, 5, 6]


def test_no_engine_is_imported_before_it_is_used() -> None:
    code = (
        "import sys, wpinq as wp\n"
        "bits = wp.source('bits', bool)\n"
        "engines = 'wpinq.engines.reference', 'wpinq.engines.sql', 'duckdb', 'pyspark'\n"
        "print([m for m in sys.modules if m.startswith(engines)])\n"
        "print(wp.evaluate(bits, {'bits': [True]}, engine='reference'))\n"
        "print([m for m in sys.modules if m.startswith(engines)])\n"
    )
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([".", *sys.path]))
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "WeightedDataset({True: 1.0})", "['wpinq.engines.reference']"]


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(wp.PlanError, match="there is no engine 'dask'; the engines are duckdb, reference, spark"):
        wp.Session(engine="dask")


def test_a_text_that_names_a_source_is_no_source() -> None:
    texts = ["source_words", "it's source_words", '"source_words"']
    words = wp.source("words", str)
    with wp.Session() as session:
        session.protect(words, [*texts, "other"], budget=10**6)
        for text in texts:
            kept = words.where(lambda w, text=text: w == text)
            assert session.release(kept.noisy_count(10**4, over=[text]))[text] == pytest.approx(1, abs=0.1)
