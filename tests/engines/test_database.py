"""DuckDB as a process sees it: memory, threads, failures, and what it says of them."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest

import wpinq as wp
from tests.support.relational import evaluate
from wpinq import functions as F
from wpinq.engines import reference
from wpinq.engines.sql.compile import Compiled
from wpinq.engines.sql.duckdb import database as keeping, instance, table_cache
from wpinq.engines.sql.duckdb.database import Database
from wpinq.errors import EvaluationFailed, PlanError
from wpinq.plan.arithmetic import EXACT
from wpinq.plan.node import topological

PAIRS = wp.source("pairs", a=int, b=int, weights=True)


def many(count: int) -> dict[Any, float]:
    """So many records that several threads share them, of weights that no two orders add up alike as floats."""
    rng = Random(5)
    return {(i, rng.randrange(50)): rng.choice([1e-9, 1.0, 1 / 3, 7e2]) * rng.random() for i in range(count)}


def bits(weights: dict[Any, float]) -> list[tuple[Any, str]]:
    return [(record, weight.hex()) for record, weight in weights.items()]


def test_sums_of_many_threads_have_the_same_bits_and_are_near_the_exact_ones() -> None:
    data = many(300_000)
    query = wp.source("pairs", a=int, b=int, weights=True).select(lambda p: p.b)
    first = evaluate(query.plan, {"pairs": data}, threads=1)
    rows = list(data.items())
    Random(6).shuffle(rows)
    for threads in (2, 4):
        assert bits(evaluate(query.plan, {"pairs": dict(rows)}, threads=threads)) == bits(first)
    exact: dict[int, Fraction] = {}
    for (_, b), weight in data.items():
        exact[b] = exact.get(b, Fraction(0)) + Fraction(weight)
    assert all(abs(Fraction(first[b]) - total) <= 3 * total / 2**53 for b, total in exact.items())


@pytest.mark.long
def test_a_memory_limit_is_obeyed_by_spilling_and_changes_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    data = many(100_000)
    copies = PAIRS.select_many(lambda p: F.map(F.range(0, 20, limit=20), lambda n: (p.a * 7919 % 100_003, n)))
    wide = copies.shave(1.0, limit=2).select(lambda piece: piece.record[1])  # two million records on the way
    free = evaluate(wide.plan, {"pairs": data}, threads=1)
    written: list[int] = []
    real = os.pwrite

    def counting(file: int, data: bytes, place: int) -> int:
        written.append(len(data))
        return real(file, data, place)

    monkeypatch.setattr(os, "pwrite", counting)
    with Database(memory_limit="60MB", threads=1) as database:
        limited = database.evaluate(wide.plan, {"pairs": data})
    assert bits(limited) == bits(free)
    assert written, "nothing spilled, so this tests nothing: lower the limit"


def test_a_plan_that_cannot_fit_fails_with_a_constant_message() -> None:
    data = {(i, 0): 1.0 for i in range(20_000)}
    copies = PAIRS.select_many(lambda p: F.map(F.range(0, 40, limit=40), lambda n: (p.a, n, p.a, n)))
    everything = copies.group_by(lambda p: 0)
    with Database(memory_limit="24MB", threads=1) as database:
        with pytest.raises(EvaluationFailed) as failure:
            database.evaluate(everything.plan, {"pairs": data})
        assert str(failure.value) == keeping.FAILED
        assert failure.value.__cause__ is None
        assert failure.value.__context__ is None
        small = {"pairs": {(1, 2): 1.0}}
        assert database.evaluate(PAIRS.plan, small) == {(1, 2): 1.0}, "it goes on after a failure"


@pytest.mark.long
def test_nothing_is_left_when_a_process_ends_without_closing(tmp_path: Path) -> None:
    code = (
        "from wpinq.engines.sql.duckdb.database import Database\n"
        "import wpinq as wp\n"
        "database = Database(); numbers = wp.source('numbers', int)\n"
        "print(database.evaluate(numbers.plan, {'numbers': {1: 1.0}}))\n"
    )
    environment = dict(os.environ, TMPDIR=str(tmp_path), PYTHONPATH=os.pathsep.join([".", *sys.path]))
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
    assert done.stdout == b"{1: 1.0}\n"
    assert done.stderr == b""
    assert list(tmp_path.iterdir()) == []


def test_a_dataset_is_loaded_once_and_again_when_it_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[str] = []
    real = instance.load

    def counting(instance: Any, table: str, source: Any, weights: Any) -> None:
        loads.append(table)
        real(instance, table, source, weights)

    monkeypatch.setattr(keeping, "load", counting)
    first, second = {"pairs": {(1, 2): 1.0}}, {"pairs": {(1, 3): 2.0}}
    with Database() as database:
        assert database.evaluate(PAIRS.plan, first) == first["pairs"]
        assert database.evaluate(PAIRS.select(lambda p: p.b).plan, first) == {2: 1.0}
        assert len(loads) == 1
        assert database.evaluate(PAIRS.plan, second) == second["pairs"]
        assert len(loads) == 2


def test_no_weight_of_the_data_is_in_a_program() -> None:
    weight, plan = 0.123456789, PAIRS.select(lambda p: p.a).plan
    with Database() as database:
        assert database.evaluate(plan, {"pairs": {(1, 2): weight, (1, 3): weight}}) == {1: 2 * weight}
        programs = [program.query for program in gc.get_objects() if isinstance(program, Compiled)]
        assert programs
        assert not any(str(weight) in query for query in programs)


def counts(column: str) -> Any:
    """How many records have each value of a column, then one more step: the first is a statement of its own."""
    groups = PAIRS.group_by(lambda p: getattr(p, column), lambda group: F.count(group))
    return groups.join(groups, lambda g: g.val, lambda g: g.val, lambda g, h: (g.key, h.key))


def tables(database: Database) -> list[str]:
    rows = database.open().connection.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall()
    return [name for (name,) in rows]


def test_a_statement_over_the_same_data_is_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    data = {"pairs": {(i % 7, i): 1.0 + i / 3 for i in range(40)}}
    longer = counts("a").select(lambda pair: pair[0])
    with Database() as alone:
        expected = bits(alone.evaluate(longer.plan, data))
    with Database() as database:
        first = bits(database.evaluate(counts("a").plan, data))
        held = tables(database)
        assert len(held) > 1
        steps: list[str] = []
        assert bits(database.evaluate(counts("a").plan, data, on_step=steps.append)) == first
        assert tables(database) == held
        assert steps == [node.operator.name for node in topological([counts("a").plan])]
        assert bits(database.evaluate(longer.plan, data)) == expected
        assert set(held) <= set(tables(database))
        monkeypatch.setattr(table_cache, "KEPT_SHARE", 0)
        database.evaluate(counts("b").plan, data)
        assert tables(database) == ["source_pairs"], "no more than there is room for"


def test_what_was_made_of_a_dataset_goes_with_it() -> None:
    first, second = ({"pairs": {(i % n, i): 1.0 + i / 3 for i in range(40)}} for n in (7, 5))
    plan = counts("a").plan
    with Database() as database:
        database.evaluate(plan, first)
        before = tables(database)
        assert bits(database.evaluate(plan, second)) == bits(evaluate(plan, second))
        assert bits(database.evaluate(plan, first)) == bits(evaluate(plan, first))
        assert tables(database) == before
        database.forget("pairs")
        assert tables(database) == []


def test_tables_of_text_stay_as_far_as_the_memory_limit_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of text is as large as its text is."""
    words = wp.source("words", str, weights=True)
    by_word = words.group_by(lambda w: w, lambda group: F.count(group)).select(lambda g: (g.key, g.val))
    monkeypatch.setattr(table_cache, "KEPT_SHARE", 1 / 400)
    for length, stays in ((8, True), (2**12, False)):
        data = {"words": {f"{i:06d}" * (length // 6 + 1): 1.0 for i in range(200)}}
        with Database(memory_limit="200MB", threads=1) as database:
            database.evaluate(by_word.where(lambda p: p[1] > 0).plan, data)
            made = set(tables(database))
            database.evaluate(words.select(lambda w: F.length(w)).plan, data)
            kept = made & set(tables(database)) - {"source_words"}
            assert bool(kept) == stays, length


def test_results_of_text_in_python_take_no_more_than_there_is_room_for() -> None:
    words = wp.source("words", str, weights=True)
    data = {"words": {f"{i:06d}" * 800: 1.0 for i in range(400)}}
    with Database(memory_limit="40MB", threads=1) as database:
        for k in range(8):
            counted = words.group_by(lambda w: w, lambda group: F.count(group))
            plan = counted.select(lambda g, k=k: F.record(w=g.key, k=k)).plan
            for key in range(3):  # the whole is read where it is asked for a second time
                assert database.evaluate(plan, data, keys=[("no word", key)]) == {}
        held = database.open().tables
        text = sum(len(w) for result in held.results.values() for w, _ in result.weights or ())
        assert 0 < text <= held.room < 8 * 400 * 4800


@pytest.mark.parametrize("length", [2, 1500])
def test_a_batch_is_answered_however_long_its_texts_are(length: int) -> None:
    """What is let go of for want of room may be of the batch itself."""
    lines = wp.source("lines", kind=str, amount=float, weights=True)
    plans = [lines.select_many(lambda r, i=i: [F.weighted(r.kind, r.amount / (i + 2.0))]).plan for i in range(6)]
    data = {"lines": {(f"{i:04d}" * length, 1.0): 1.0 for i in range(600)}}
    keys = ["0001" * length, "none"]
    with Database(memory_limit="40MB", threads=1) as database:
        for _ in range(2):
            with database.batch(plans):
                found = [database.evaluate(plan, data, keys=keys) for plan in plans]
            assert found == [{keys[0]: 1 / (i + 2)} for i in range(6)]


def test_an_empty_result_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    fetched: list[int] = []
    real = table_cache.fetch
    monkeypatch.setattr(table_cache, "fetch", lambda *given: fetched.append(1) or real(*given))
    numbers = wp.source("numbers", int, weights=True)
    plans = [
        numbers.where(lambda n: n > 9).select_many(lambda n, i=i: [F.weighted(n, 1 / (i + 2.0))]).plan for i in range(2)
    ]
    data = {"numbers": {1: 1.0}}
    with Database() as database, database.batch(plans):
        for key in range(5):
            assert [database.evaluate(plan, data, keys=[key]) for plan in plans] == [{}, {}]
    assert not fetched, "both were read with the table of their sums"


def test_tables_of_values_of_any_length_are_not_kept() -> None:
    words = wp.source("words", str, weights=True)
    pairs = words.group_by(lambda w: F.length(w), lambda group: group)
    query = pairs.join(pairs, lambda g: g.key, lambda g: g.key, lambda g, h: (g.val, h.val))
    with Database() as database:
        assert database.evaluate(query.plan, {"words": {"a": 1.0, "b": 0.5, "cc": 2.0}})
        listed = "SELECT table_name, data_type FROM duckdb_columns() WHERE NOT internal"
        columns = database.open().connection.execute(listed).fetchall()
    assert {type_ for name, type_ in columns if name != "source_words"} == {"BIGINT", "DOUBLE"}


def test_it_says_what_it_cannot_do() -> None:
    with pytest.raises(PlanError, match='use engine="reference"'):
        evaluate(PAIRS.plan, {"pairs": {}}, EXACT)
    with pytest.raises(PlanError, match="no data for the source 'pairs'"):
        evaluate(PAIRS.plan, {})
    with pytest.raises(PlanError, match="weigh more than the cap"):
        evaluate(wp.source("pairs", a=int, b=int, cap=1, weights=True).plan, {"pairs": {(1, 2): 1.5}})
    with pytest.raises(PlanError, match="memory limit"):
        evaluate(PAIRS.plan, {"pairs": {}}, memory_limit="a lot")


def test_steps_are_told_by_name_only() -> None:
    steps: list[str] = []
    query = PAIRS.group_by(lambda p: p.a, lambda group: F.count(group)).select(lambda g: g.val)
    evaluate(query.plan, {"pairs": {(1, 2): 1.0, (1, 3): 0.5}}, on_step=steps.append)
    assert steps == ["Source", "GroupBy", "Select"]


def test_joins_of_sides_of_very_different_caps_keep_their_bound() -> None:
    light = wp.source("light", a=int, b=int, cap=Fraction(1, 2**30), weights=True)
    heavy = wp.source("heavy", a=int, b=int, weights=True)
    query = light.join(heavy, lambda x: x.a % 3, lambda y: y.a % 3, lambda x, y: (x.b, y.b))
    data = {
        "light": {(i, i): 2.0**-40 * (1 + i / 7) for i in range(9)},
        "heavy": {(i, i): 2.0**-45 * (1 + i / 3) for i in range(9)},
    }
    exact, found = reference.evaluate(query.plan, data, EXACT), evaluate(query.plan, data)
    assert exact.keys() == found.keys()
    assert all(abs(Fraction(found[key]) - weight) <= weight * Fraction(10, 2**53) for key, weight in exact.items())


def test_importing_the_engine_does_not_import_duckdb() -> None:
    code = "import sys, wpinq, wpinq.engines.sql.duckdb.database; assert 'duckdb' not in sys.modules"
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([".", *sys.path]))
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


def test_a_float_of_a_statement_is_the_float_of_its_text() -> None:
    rng = Random(3)
    floats = [0.0, 5e-324, 1.7976931348623157e308, 1e22, 0.1, 2.0**53 + 2]
    floats += [rng.random() * 10.0 ** rng.randint(-30, 30) for _ in range(500)]
    with Database() as database:
        connection = database.open().connection
        sql = ", ".join(f"CAST({number!r} AS DOUBLE), 1 - CAST(-{number!r} AS DOUBLE)" for number in floats)
        (row,) = connection.execute(f"SELECT {sql}").fetchall()
        assert [each.hex() for each in row[::2]] == [each.hex() for each in floats]
        assert [*row[1::2]] == [1 + each for each in floats]


def test_the_text_of_a_float_stays_in_strings_and_names() -> None:
    text = "it''s CAST(1.5 AS DOUBLE)"
    sql = f"""SELECT '{text}', "CAST(2.5 AS DOUBLE)", TRY_CAST(3.5 AS DOUBLE), CAST(4.5e-7 AS DOUBLE)"""
    sql += """ FROM (SELECT 1 AS "CAST(2.5 AS DOUBLE)")"""
    with Database() as database:
        found = database.open().connection.execute(sql)
        assert found.fetchall() == [(text.replace("''", "'"), 1, 3.5, 4.5e-7)]
