"""SQL over HTTP: a planner lowers a SELECT to a text program, which is explained and released as any other."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

pytest.importorskip("sqlglot", reason="SQL needs sqlglot")

import wpinq as wp
from tests.service.conftest import Peopled
from tests.service.test_planners import in_memory
from tests.service.test_releases import EDGES, remaining
from tests.service.test_requests import told
from tests.support.service import ROOT, configured, running, until
from wpinq.errors import LanguageError
from wpinq.service.workers import releases_of
from wpinq.tables.released import Table

COUNT = "SELECT src, COUNT(*) AS n\nFROM edges WHERE src IN (1, 2) GROUP BY src"
OPTIONS = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = {}) COUNT(*) AS n FROM edges"


def test_a_select_is_released_as_its_chain(peopled: Peopled) -> None:
    """The chain has the digest of what was paid for: it gets the same numbers, for nothing."""
    service, token, asked = peopled.service, peopled.bob, {"sql": COUNT, "epsilon": "0.0171"}
    chain = EDGES.by("src", keys=[1, 2]).agg(n=wp.count(), epsilon="0.0171")
    found = service.ask("POST", "v1/explain", token, asked).json()
    (read,) = wp.parse(found["program"]).releases.values()
    assert [each.digest for each in read.measurements] == [each.digest for each in chain.measurements]
    assert found["quote"] == {"edges": "0.0171"}
    before = remaining(peopled, token)
    answer = service.ask("POST", "v1/release", token, asked)
    assert answer.status_code == 200, answer.text
    table = Table.from_json(answer.json()["answers"]["sql"]["data"])
    assert table.keys == (1, 2)
    assert before - remaining(peopled, token) == wp.Bill(chain)["edges"]
    bob = wp.connect(service.address, token)
    again = [bob.release(chain), bob.sql(COUNT, epsilon=0.0171), bob.release(wp.sql(COUNT, EDGES, epsilon="0.0171"))]
    assert {each[1]["n"].estimate for each in again} == {table[1]["n"].estimate}
    assert before - remaining(peopled, token) == wp.Bill(chain)["edges"]


def test_epsilon_stands_in_options_or_beside_the_statement(peopled: Peopled) -> None:
    def explain(**asked: Any) -> Any:
        return peopled.service.ask("POST", "v1/explain", peopled.alice, asked)

    assert explain(sql=OPTIONS.format("0.0172")).json()["bill"] == {"edges": "0.0172"}
    assert "leave one out" in told(explain(sql=OPTIONS.format("0.0172"), epsilon="0.1"), 400, "LanguageError")
    assert "costs epsilon" in told(explain(sql=COUNT), 400, "LanguageError")
    assert "more than 0" in told(explain(sql=COUNT, epsilon="-1"), 400, "LanguageError")
    assert "epsilon is the cost of sql" in told(explain(program="var x = 1;", epsilon="0.1"), 400, "Malformed")
    assert "one of the three" in told(explain(program="var x = 1;", sql=COUNT), 400, "Malformed")
    assert "one of the three" in told(explain(), 400, "Malformed")
    assert "write constants" in told(explain(sql=COUNT, epsilon="1", parameters={"e": 1}), 400, "Malformed")


@pytest.mark.parametrize(
    ("statement", "line", "column", "words"),
    [
        ("SELECT COUNT(*) AS n\nFROM edges\nORDER BY n", 3, 10, "sort the released table"),
        ("SELECT src, COUNT(*) AS n\nFROM edges GROUP BY src", 2, 21, "list them, WHERE city IN"),
        ("SELECT AVG(src) AS a FROM edges", 1, 12, "needs a public range"),
        ("SELECT COUNT(*) AS n FROM people", 1, 27, "people"),
        ("DROP TABLE edges", 1, 1, "only SELECT is read here"),
        ("SELECT COUNT(*) AS n FROM edges WHERE " + "(" * 9_000 + "src > 1" + ")" * 9_000, 1, 69, "nests deeper"),
    ],
)
def test_a_refusal_has_a_place_and_a_correction(
    peopled: Peopled, statement: str, line: int, column: int, words: str
) -> None:
    for path in ("v1/explain", "v1/release"):
        answer = peopled.service.ask("POST", path, peopled.alice, {"sql": statement, "epsilon": "0.0173"})
        assert words in told(answer, 400, "LanguageError")
        error = answer.json()["error"]
        assert (error["line"], error["column"]) == (line, column)
    with pytest.raises(LanguageError) as caught:
        wp.connect(peopled.service.address, peopled.alice).sql(statement, epsilon=1)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_a_select_beyond_a_program_is_refused_without_a_place_of_the_program(peopled: Peopled) -> None:
    listed = ", ".join(map(str, range(3_000)))
    asked = {"sql": f"SELECT COUNT(*) AS n FROM edges WHERE src + dst IN ({listed})", "epsilon": "0.0174"}
    answer = peopled.service.ask("POST", "v1/explain", peopled.alice, asked)
    assert "a text program holds less than this" in told(answer, 400, "LanguageError")
    assert answer.json()["error"].get("line") is None


def test_a_release_worker_reads_no_sql() -> None:
    with pytest.raises(wp.PlanError, match="nothing is released"):
        releases_of({"sql": COUNT, "epsilon": "1", "program": None, "measurements": None}, {"edges": EDGES})


@pytest.mark.long
def test_a_process_with_data_has_no_parser_of_sql(peopled: Peopled) -> None:
    asked = {"sql": COUNT, "epsilon": "0.0175"}
    assert peopled.service.ask("POST", "v1/release", peopled.alice, asked).status_code == 200
    held = {
        name: [in_memory(pid, b"sqlglot.parser") for pid in until(lambda name=name: peopled.service.processes(name))]
        for name in ("planner", "data", "release")
    }
    assert all(held["planner"])
    assert not any(held["data"] + held["release"])


@pytest.mark.long
def test_a_long_statement_costs_its_author_a_refusal(tmp_path: Any) -> None:
    """Some 900,000 candidates take a planner longer than it may have, which then dies."""
    many = ", ".join(f"MEDIAN(CLAMP(src, 0, {90_000 + n})) AS a{n}" for n in range(10))
    with running(configured(tmp_path, "planners = 1", "explain_seconds = 2.5")) as service:
        token = service.admit("heavy", "edges=1")

        def explain(statement: str) -> Any:
            return service.ask("POST", "v1/explain", token, {"sql": statement, "epsilon": "0.1"})

        assert "at most 50,000 characters" in told(explain(COUNT + " " * 100_000), 400, "LanguageError")
        assert "more time or memory" in told(explain(f"SELECT {many} FROM edges"), 400, "TooMuch")
        until(lambda: explain("nonsense").json()["error"]["kind"] == "LanguageError")


def test_the_extra_of_the_service_has_sql() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert "wpinq[sql]" in extras["serve"]
