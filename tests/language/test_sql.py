"""SQL: each statement is its chain, with the same weights in engines, and the null of SQL; the rest is refused."""

from __future__ import annotations

import json
import random
import re
import sys
from pathlib import Path

import duckdb
import pytest

import wpinq as wp
from tests.fuzz.statements import check_statement, mutated
from tests.support.parameters import for_each, sizes
from tests.support.sql_statements import ACCEPTED, ATOMS, DATA, REFUSED, SOURCES, Accepted, Refused, people
from wpinq.api.query import Query
from wpinq.cli.main import main
from wpinq.errors import LanguageError

pytest.importorskip("sqlglot", reason="SQL needs sqlglot")

from wpinq.language.sql import aggregates


def test_the_corpus_has_sixty_statements() -> None:
    assert len(ACCEPTED) >= 48
    assert len(REFUSED) >= 12
    assert len({case.text for case in (*ACCEPTED, *REFUSED)}) == len(ACCEPTED) + len(REFUSED) >= 60


@for_each("case", ACCEPTED, ids=lambda case: case.text)
def test_a_statement_is_the_plan_of_its_chain(case: Accepted) -> None:
    asked, chain = wp.sql(case.text, SOURCES, **case.options), case.chain()
    assert [each.digest for each in asked.measurements] == [each.digest for each in chain.measurements]
    assert list(asked.columns) == list(chain.columns)
    assert (asked.keys, asked.listing, asked.epsilons) == (chain.keys, chain.listing, chain.epsilons)
    assert list(map(str, asked.aggregates.values())) == list(map(str, chain.aggregates.values()))
    assert asked.bill() == chain.bill()


@for_each("case", ACCEPTED, ids=lambda case: case.text, every=3)
def test_a_statement_has_the_weights_of_its_chain_in_both_engines(case: Accepted) -> None:
    asked, chain = wp.sql(case.text, SOURCES, **case.options), case.chain()
    for one, other in zip(asked.measurements, chain.measurements, strict=True):
        weights = dict(wp.evaluate(Query(one.plan), DATA, "duckdb"))
        assert weights == dict(wp.evaluate(Query(other.plan), DATA, "reference"))
        assert weights


@for_each("case", ACCEPTED, ids=lambda case: case.text)
def test_a_statement_is_a_text_program(case: Accepted) -> None:
    asked = wp.sql(case.text, SOURCES, **case.options)
    read = wp.parse(wp.unparse({"answer": asked}))["answer"]
    assert [each.digest for each in read.measurements] == [each.digest for each in asked.measurements]


@for_each("case", REFUSED, ids=lambda case: case.text)
def test_a_refusal_has_a_place_and_a_correction(case: Refused) -> None:
    with pytest.raises(LanguageError, match=re.escape(case.words)) as caught:
        wp.sql(case.text, SOURCES, **case.options)
    assert (caught.value.line, caught.value.column) == (1, case.column)


# --- conditions, as DuckDB itself has them ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def in_duckdb() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("CREATE MACRO clamp(x, a, b) AS CASE WHEN x IS NULL THEN NULL ELSE least(greatest(x, a), b) END")
    connection.execute(
        "CREATE TABLE people (city VARCHAR, sex VARCHAR, age BIGINT, salary DOUBLE, job VARCHAR, born DATE, "
        "fee DECIMAL(18, 2), score BIGINT, seen TIMESTAMP)"
    )
    connection.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", DATA["people"])
    return connection


def condition(chosen: random.Random, depth: int) -> str:
    """A condition of atoms under NOT, AND and OR."""
    if depth == 0:
        return chosen.choice(ATOMS)
    if chosen.random() < 0.3:
        return f"NOT ({condition(chosen, depth - 1)})"
    return f"({condition(chosen, depth - 1)} {chosen.choice(['AND', 'OR'])} {condition(chosen, depth - 1)})"


@for_each(
    "where",
    [*ATOMS, *(f"NOT ({atom})" for atom in ATOMS), *(condition(random.Random(n), 2) for n in range(40))],
    every=5,
)
def test_a_condition_keeps_the_rows_that_duckdb_keeps(where: str, in_duckdb: duckdb.DuckDBPyConnection) -> None:
    asked = wp.sql(f"SELECT COUNT(*) AS n FROM people WHERE {where}", people, epsilon=1)
    (counted,) = in_duckdb.execute(f"SELECT COUNT(*) FROM people WHERE {where}").fetchone() or (None,)
    assert sum(wp.evaluate(Query(asked.measurements[0].plan), DATA, exact=True).values()) == counted


# --- any text ---------------------------------------------------------------------------------------------------------


def test_a_session_releases_a_statement_over_what_it_protects() -> None:
    with wp.Session() as session:
        session.protect(people, DATA["people"], budget=2)
        table = session.sql("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", epsilon=1)
        assert table.keys == ("f", "m")
        assert session.spent("people") == 1
        with pytest.raises(LanguageError, match="no table here"):
            session.sql("SELECT COUNT(*) AS n FROM orders", epsilon=1)
        assert session.spent("people") == 1


@for_each(
    "text",
    [
        "SELECT COUNT(*) AS n FROM people WHERE " + "(" * 40 + "age > 1" + ")" * 40,
        "SELECT COUNT(*) AS n FROM people WHERE " + "NOT " * 5_000 + "age > 1",
        "SELECT COUNT(*) AS n FROM people WHERE age > 1" + " AND age > 1" * 500,
        "SELECT COUNT(*) AS n FROM people WHERE age > " + "-" * 3_000 + "1",
        "SELECT " + "CASE WHEN " * 200 + "1",
        "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex HAVING COUNT(*) > 1e999999999",
        "SELECT PERCENTILE_CONT(CLAMP(age, 0, 9), 0.0.25) AS q FROM people",
        "SELECT PERCENTILE_CONT(CLAMP(age, 0, 9), 'half') AS q FROM people",
        "SELECT COUNT(*) AS n FROM people WHERE FLOOR() > 1",
        "SELECT COUNT(*) AS n FROM people" + " " * 60_000,
        "SELECT " + "FLOOR(" * 29 + "age / 3" + " / 3)" * 29,
        "SELECT " + ", ".join(f"SUM(CLAMP(age, 0, {n})) AS a{n}" for n in range(1, 102)) + " FROM people",
    ],
    ids=range(12),
)
def test_deep_and_long_texts_are_refused(text: str) -> None:
    with pytest.raises(LanguageError):
        wp.sql(text, people, epsilon=1)


def test_the_candidates_of_all_quantiles_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aggregates, "KEYS_LIMIT", 100)
    asked = "SELECT " + ", ".join(f"MEDIAN(CLAMP(age, 0, {n})) AS a{n}" for n in (49, 50)) + " FROM people"
    with pytest.raises(LanguageError, match="at most 100 candidates in all") as caught:
        wp.sql(asked, people, epsilon=1)
    assert caught.value.column == asked.index("CLAMP(age, 0, 50)") + 1
    assert len(wp.sql(asked.replace("50", "48"), people, epsilon=1).aggregates) == 2


def test_no_message_of_another_library_is_passed_on() -> None:
    with pytest.raises(LanguageError, match="cannot be read as SQL here") as caught:
        wp.sql("SELECT COUNT(* FROM people", people, epsilon=1)
    assert "sqlglot" not in str(caught.value).lower()
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("many", sizes(200, 10_000))
def test_a_mutated_statement_is_a_table_or_a_refusal_in_bounded_work(many: int) -> None:
    """`python -m tests.fuzz statements --examples N` tries others; the steps of the parser are bounded by number."""
    for seed in range(many):
        check_statement(mutated(random.Random(seed)))


def test_joins_without_a_condition_take_no_more_steps_than_a_statement_may() -> None:
    """Each doubled the ways that the parser tried."""
    with pytest.raises(LanguageError, match="too many steps"):
        wp.sql("SELECT COUNT(*) AS n FROM stays s" + " JOIN drugs d" * 30, SOURCES, epsilon=1)


def test_options_are_read_of_the_outermost_select_alone() -> None:
    """Neither of a comment, nor of a text, nor of a subquery."""
    written = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 9)"
    asked = wp.sql(f"SELECT COUNT(*) AS n /* {written} */ FROM people WHERE city <> '{written})'", people, epsilon=1)
    assert asked.epsilon == 1
    asked = wp.sql(f"WITH a AS (SELECT * FROM people WHERE city <> ')') {written} COUNT(*) AS n FROM a", people)
    assert asked.epsilon == 9
    with pytest.raises(LanguageError, match="in the outermost SELECT"):
        wp.sql(f"WITH a AS ({written} * FROM people) SELECT COUNT(*) AS n FROM a", people)
    with pytest.raises(LanguageError, match="a released table costs epsilon"):
        wp.sql(f"-- {written}\nSELECT COUNT(*) AS n FROM people", people)


def test_the_command_line_reads_statements_beside_a_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, data, file = tmp_path / "p.wpq", tmp_path / "people.csv", tmp_path / "by_sex.sql"
    program.write_text('source people(sex: category("f", "m"), age: int);')
    data.write_text("sex,age\n" + "f,30\nm,50\n" * 200)
    file.write_text("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex\n")
    comment = "SELECT COUNT(*) AS n FROM people WHERE age > 40 -- not WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 9)"
    asked = [str(program), "--sql", str(file), "--sql", comment, "--epsilon", "0.75"]
    assert main(["explain", *asked]) == 0
    assert "people: 1.5" in capsys.readouterr().out
    given = ["--source", f"people={data}", "--budget", "people=2", "--ledger", str(tmp_path / "l.db")]
    assert main(["run", *asked, *given, "--json"]) == 0
    released = json.loads(capsys.readouterr().out)
    assert (released["bill"], list(released["answers"])) == ({"people": "1.5"}, ["by_sex", "sql"])
    assert main(["run", *asked, *given, "--output", f"by_sex={file}"]) == 2
    assert main(["explain", str(program), "--sql", "SELECT * FROM people", "--epsilon", "1"]) == 7
    assert main(["explain", str(file)]) == 7
    assert "--sql beside a program" in capsys.readouterr().err
    own = ["explain", str(program), "--sql", "SELECT WITH DIFFERENTIAL_PRIVACY {} COUNT(*) AS n FROM people"]
    for options, epsilon, status, words in (
        ("OPTIONS(epsilon = 0.5)", [], 0, "people: 0.5"),
        ("OPTIONS(epsilon = 0.5)", ["--epsilon", "1"], 7, "in OPTIONS and beside the statement"),
        ("OPTIONS(delta = 0)", ["--epsilon", "1"], 0, "people: 1"),
        ("", [], 7, "a released table costs epsilon"),
    ):
        assert main([*own[:3], own[3].format(options), *epsilon]) == status
        shown = capsys.readouterr()
        assert words in shown.out + shown.err
    assert main(["explain", str(program), "--epsilon", "1"]) == 2
    assert "--epsilon is the cost of --sql" in capsys.readouterr().err


def test_without_sqlglot_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.startswith("wpinq.language.sql")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    with wp.Session() as session, pytest.raises(wp.LanguageError, match=r"SQL needs sqlglot: pip install .*sql\]"):
        session.sql("SELECT COUNT(*) AS n FROM people", epsilon=1)
