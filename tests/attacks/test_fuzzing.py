"""Whatever is read gives what it means or a WpinqError: programs, plans, answers, notes, checkpoints, ledgers, data.

Each target of `tests/fuzz` runs in a child under limits of processor time and memory, so that a hang or a blow-up ends
it. The examples are the same in every run; `python -m tests.fuzz TARGET --minutes M` looks for others. What was found
is kept below.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import wpinq as wp
from tests.fuzz.targets import TARGETS
from tests.support.parameters import tenth
from wpinq import functions as F
from wpinq.engines.sql.engine import run
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.measure.measurement import Measurement
from wpinq.plan import work
from wpinq.plan.operators import GroupBy
from wpinq.sinks.laplace import NoisyCount

ROOT = Path(__file__).parents[2]
EXAMPLES = {
    "programs": 30,
    "statements": 200,
    "plans": 150,
    "answers": 150,
    "tables": 60,
    "rows": 30,
    "notes": 80,
    "bytes": 150,
    "ledgers": 40,
}
"""About two seconds of each."""


@pytest.mark.parametrize("target", tenth(TARGETS, 8))
def test_whatever_is_read_is_what_it_means_or_an_error_that_explains(target: str) -> None:
    """Grammar and mutation: no exception of another kind, no hang, bounded memory."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.fuzz", target, "--examples", str(EXAMPLES[target])]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]


def test_fuzzing_for_minutes_without_atheris_says_what_it_needs() -> None:
    """It is in no extra: where it is missing, the reason is said and the status is not 0."""
    hidden = "import sys, runpy; sys.modules['atheris'] = None; sys.argv[1:] = ['plans', '--minutes', '1']; "
    command = [sys.executable, "-c", hidden + "runpy.run_module('tests.fuzz', run_name='__main__')"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install atheris" in done.stderr


# --- what was found ---------------------------------------------------------------------------------------------------


def test_many_releases_of_one_chain_are_certified_step_by_step_and_not_release_by_release(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two hundred releases of a chain of three hundred GroupBys: each certified all steps below it anew."""
    monkeypatch.setattr(work, "_ROWS", {})
    calls: list[object] = []
    rows = GroupBy.rows
    monkeypatch.setattr(GroupBy, "rows", lambda self, *given: (calls.append(self), rows(self, *given))[1])
    query, chain = wp.source("numbers", int), []
    for i in range(40):
        query = query.group_by(lambda x, i=i: x % (i + 2), lambda g: F.count(g)).select(lambda p: p.val)
        chain.append(query)
    for each in chain:
        assert each.explain(0.5)
    assert len(calls) == len(chain)


def test_what_is_no_longer_read_is_found_in_proportion_to_the_statements() -> None:
    """After each statement all later ones were gone through: of a program of n statements, n²."""
    looked: list[str] = []

    class Statement:
        def __init__(self, number: int) -> None:
            self.creates, self.step = f"t{number}", ""
            self._reads = (f"t{number - 1}",) if number else ()

        @property
        def reads(self) -> tuple[str, ...]:
            looked.append(self.creates)
            return self._reads

    class Tables:
        def stands(self, table: str) -> bool:
            return False

        def create(self, statement: Statement, shared: bool) -> None:
            live.add(statement.creates)

        def drop(self, table: str) -> None:
            looked.append(table)
            live.remove(table)

    class Program:
        statements = tuple(map(Statement, range(200)))
        reads = ("t199",)
        steps = ()

    live: set[str] = set()
    run(Program(), Tables(), None)
    assert live == {"t199"}
    assert len(looked) < 10 * 200


@pytest.mark.parametrize("content", [b"who,amount\nb\0,2\n", b'who,amount\n"a\0",1\n', b"who,amount\na,1\n\0,2\n"])
def test_a_zero_character_is_called_one(tmp_path: Path, content: bytes) -> None:
    """It was called no UTF-8, which it is."""
    path = tmp_path / "data.csv"
    path.write_bytes(content)
    with pytest.raises(wp.SourceRejected, match="a zero character"):
        wp.evaluate(wp.source("visits", who=str, amount=int), {"visits": path})
    edges = tmp_path / "edges.txt"
    edges.write_bytes(b"1 2\n3\0 4\n")
    with pytest.raises(wp.SourceRejected, match="a zero character"):
        wp.evaluate(wp.source("edges", src=str, dst=str), {"edges": edges})


def test_a_row_of_nobody_is_named_with_what_to_do(tmp_path: Path) -> None:
    """A csv file with an empty id was refused for "an empty field where int or str is declared"."""
    path = tmp_path / "data.csv"
    path.write_text("who,amount\na,1\n,2\n")
    with pytest.raises(wp.SourceRejected, match=r"id of a person .*leave out .*or give each an id") as refused:
        wp.evaluate(wp.source("visits", amount=int, person="who", at_most=2), {"visits": path})
    assert refused.value.positions == (1,)


@pytest.mark.parametrize("given", [3, None, "x", [1]])
def test_what_are_no_marginals_is_not_drawn(given: object) -> None:
    """It was an AttributeError."""
    with pytest.raises(wp.AnswersError, match="draws released marginals"):
        wp.plot_marginals(given)


def test_a_measurement_made_by_hand_has_an_epsilon_in_range() -> None:
    """An integer of 5,000 digits was a ValueError of Python's where it was written out."""
    with pytest.raises(wp.EpsilonError, match="at most"):
        Measurement(wp.source("numbers", int).plan, NoisyCount(), 10**5000, (1,))


def test_a_ledger_that_cannot_be_made_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a full disk it was an error of SQLite's."""
    import sqlite3

    def full(connection: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr("wpinq.kernel.ledger.schema.create", full)
    with pytest.raises(wp.LedgerError, match=r"cannot be made .*make room"):
        Ledger(tmp_path / "ledger.db")
    assert list(tmp_path.glob("ledger.db")) == []
