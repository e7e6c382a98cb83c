"""Plans tried on no data in the DuckDB that holds some: out of its sight, and with no say in what is refused."""

from __future__ import annotations

import inspect
from typing import Any

import duckdb
import pytest

import wpinq as wp
from wpinq import functions as F
from wpinq.engines.sql.compile import Plan
from wpinq.engines.sql.duckdb import database, table_cache
from wpinq.engines.sql.duckdb.database import Database
from wpinq.engines.sql.duckdb.instance import DryRun
from wpinq.engines.sql.duckdb.table_cache import ANY_THREADS
from wpinq.errors import EvaluationFailed, PlanError
from wpinq.expr.values import Value
from wpinq.kernel.noisy_evaluation import NoisyEvaluator
from wpinq.kernel.sandbox.evaluation import SandboxedEvaluator
from wpinq.plan.lowering import physical_plan

NUMBERS = wp.source("numbers", int, weights=True)
DATA = {"numbers": {1: 0.75, 2: 2.0, 3: 1.0}}
HALVES = NUMBERS.select(lambda x: x % 2)
LISTS = wp.source("lists", list[float], weights=True).select(lambda xs: F.sum(xs))
UNFIT = wp.source("light", int, cap="1e-25", weights=True).join(
    wp.source("heavy", int, weights=True), lambda x: x % 2, lambda y: y % 2, lambda x, y: x
)


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether plans ran together, or one by one, in the DuckDB without data, in order."""
    database._drafts._shut()
    Database.check.cache_clear()  # type: ignore[attr-defined]
    asked: list[bool] = []
    opened = Database._opened

    def noted(self: Database, cautious: bool = False) -> Any:
        if self is database._drafts:
            asked.append(cautious)
        return opened(self, cautious)

    monkeypatch.setattr(Database, "_opened", noted)
    return asked


def test_what_runs_beside_the_data_opens_no_other_duckdb(apart: list[bool]) -> None:
    with Database() as held:
        weights = held.evaluate(HALVES.plan, DATA)
        held.admit([(HALVES.plan, True), (NUMBERS.plan, True), (LISTS.plan, False)])
        assert not apart
        assert held.evaluate(HALVES.plan, DATA) == weights == {0: 2.0, 1: 1.75}


def test_nothing_of_the_data_is_seen() -> None:
    with Database() as held:
        held.evaluate(HALVES.plan, DATA, keys=[0])
        instance = held.open()
        (seen,) = instance.connection.execute("SELECT count(*) FROM source_numbers").fetchall()
        assert seen == (3,)
        beside = instance.dry_run._tables.connection
        for (name,) in instance.connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
            with pytest.raises(duckdb.CatalogException):
                beside.execute(f"SELECT * FROM {name}")
        held.admit([(HALVES.plan, True)])
        assert beside.execute("SELECT count(*) FROM source_numbers").fetchall() == [(0,)]
        assert instance.connection.execute("SELECT count(*) FROM source_numbers").fetchall() == [(3,)]


@pytest.mark.parametrize("error", [duckdb.OutOfMemoryException, duckdb.InternalError, MemoryError, RecursionError])
def test_what_fails_beside_the_data_is_taken_where_there_are_none(
    error: type[Exception], apart: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = DryRun.run
    with Database() as held:
        held.evaluate(HALVES.plan, DATA)
        own = held.open().dry_run

        def fails(self: DryRun, *given: Any) -> bool:
            if self is own:
                raise error("numbers: 1, 2, 3")
            return run(self, *given)

        monkeypatch.setattr(DryRun, "run", fails)
        held.admit([(HALVES.plan, True), (NUMBERS.plan, True)])
        assert apart
        assert held._instance is None  # nothing in it is left to be trusted
        assert held.evaluate(HALVES.plan, DATA) == {0: 2.0, 1: 1.75}


def test_what_is_refused_is_refused_in_the_words_of_the_check(apart: list[bool]) -> None:
    with Database() as held:
        held.evaluate(HALVES.plan, DATA)
        with pytest.raises(PlanError) as without:
            Database.check(UNFIT.plan)
        for plans in [[(UNFIT.plan, True)], [(HALVES.plan, True), (UNFIT.plan, True)], [(UNFIT.plan, False)]]:
            with pytest.raises(PlanError) as beside:
                held.admit(plans)
            assert str(beside.value) == str(without.value)
            assert beside.value.__context__ is None
        assert held._instance is not None  # it has no program: nothing failed here
        held.admit([(HALVES.plan, True)])


def test_under_a_limit_of_its_own_nothing_is_tried_beside_the_data(apart: list[bool]) -> None:
    with Database("1GB") as held:
        held.admit([(HALVES.plan, True)])
        assert apart


def test_calls_of_python_run_on_one_thread_whichever_connection_asks() -> None:
    with Database(threads=2) as held:
        held.admit([(LISTS.plan, True)])
        connection = held.open().connection
        threads = "SELECT current_setting('threads')"
        assert connection.execute(threads).fetchall() == [(2,)]
        data: dict[str, dict[Value, float]] = {"lists": {(0.5, 0.25): 1.0, (2.0,): 2.0}}
        assert held.evaluate(LISTS.plan, data) == {0.75: 1.0, 2.0: 2.0}
        beside = held.open().dry_run._tables.connection
        calling = "SELECT wpinq_sum([1.5]), current_setting('threads')"
        assert beside.execute(calling).fetchall() == connection.execute(calling).fetchall() == [(1.5, 1)]
        assert connection.execute(f"{threads}{ANY_THREADS}").fetchall() == [(1,)]
        assert connection.execute(threads).fetchall() == beside.execute(threads).fetchall() == [(2,)]
        assert connection.execute(f"{calling}{ANY_THREADS}").fetchall() == [(1.5, 1)]


def test_a_source_of_another_declaration_takes_the_place_of_the_empty_one() -> None:
    with Database() as held:
        held.admit([(HALVES.plan, True)])
        other = wp.source("numbers", str, weights=True).select(lambda x: F.length(x))
        held.admit([(other.plan, True)])
        held.admit([(NUMBERS.where(lambda x: x > 1).plan, True)])
        assert held.evaluate(HALVES.plan, DATA) == {0: 2.0, 1: 1.75}


def test_analysts_who_are_not_trusted_have_plans_tried_apart() -> None:
    for method in ("check", "get_ready"):
        assert vars(SandboxedEvaluator)[method] is not vars(NoisyEvaluator)[method]
        assert "_engine.admit" not in inspect.getsource(vars(SandboxedEvaluator)[method])
    assert "_engine.admit" in inspect.getsource(NoisyEvaluator)


def test_a_closed_database_opens_nothing() -> None:
    held = Database()
    held.close()
    held.admit([(HALVES.plan, True)])
    assert held._instance is None
    with pytest.raises((PlanError, EvaluationFailed)):
        held.evaluate(HALVES.plan, DATA)


@pytest.mark.parametrize("kept", [2**14, 0])
def test_sums_over_the_same_rows_are_those_of_each_plan_alone(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from wpinq.engines.sql.duckdb import table_cache

    monkeypatch.setattr(table_cache, "KEPT_RECORDS", kept)
    rows = wp.source("rows", {"of": int | None, "x": int}, facts=["unit_weights"])
    shares = [rows.select_many(lambda r, n=n: [F.weighted(r.of, r.x / n)]) for n in (3.0, 7.0, 11.0)]
    data: dict[str, dict[Value, float]] = {"rows": {(i % 5 or None, i - 40): 1.0 for i in range(97)}}
    keys = [None, 1, 2, 3, 4, 5]
    plans = [query.plan for query in shares]
    with Database() as held, held.batch(plans):
        together = [held.evaluate(plan, data, keys=keys) for plan in plans]
    for plan, weights in zip(plans, together, strict=True):
        with Database() as alone:
            assert weights == alone.evaluate(plan, data, keys=keys)
        assert list(weights) == [key for key in keys if key in weights]


def test_a_shape_is_tried_once_and_a_length_is_no_constant_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def shape(query: wp.Query) -> str:
        return Plan(physical_plan(query.plan)).program().shape

    def average(most: float) -> wp.Query:
        return wp.Query(NUMBERS.noisy_average(1, lambda x: x, 0, most).plan)

    def shaved(most: int, width: float) -> wp.Query:
        return NUMBERS.where(lambda x: x < most).select(lambda x: x % 2).shave(width)

    assert shape(average(7)) == shape(average(9))
    assert shape(shaved(7, 1.0)) == shape(shaved(9, 1.0)) != shape(shaved(9, 0.5))
    with Database() as held:
        held.admit([(average(7).plan, True)])
        monkeypatch.setattr(table_cache, "run", None)
        held.admit([(average(9).plan, True)])
