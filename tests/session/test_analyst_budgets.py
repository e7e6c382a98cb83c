"""Budgets of analysts for who has no data, and for the curator at the command line."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import pytest

import wpinq as wp
from wpinq.cli.main import main
from wpinq.kernel.analysts import AnalystBudgets
from wpinq.kernel.ledger.ledger import Ledger

EDGES = wp.source("edges", src=int, dst=int, unit="one directed edge", facts=["unit_weights"])
ROWS = [(i, i + j) for i in range(12) for j in (1, 2, 3)]
NODES = EDGES.select(lambda e: e.src)
COUNT = NODES.noisy_count("0.25", over=range(8))

ASKED: dict[str, Any] = {
    "counts": NODES.noisy_count(1, over=range(6)),
    "part": NODES.partition(lambda n: n % 2, [0, 1])[0].noisy_count(1, over=[0, 2]),
    "table": EDGES.by("src", keys=range(4)).agg(rows=wp.count(), epsilon=1),
    "listing": NODES.noisy_count_above(1, wp.integers(0, 500), above=3),
}


def test_who_has_no_data_knows_balances_histories_and_quotes(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    with wp.Session(path) as session:
        session.protect(EDGES, ROWS, budget=100)  # of no version: known to this session alone, and to whom it tells
        session.set_budget("edges", 2, analyst="alice")
        declared = pickle.loads(pickle.dumps(session.declared()))
        assert not any(hasattr(each, "weights") for each in declared.values())
        with Ledger(path) as ledger:
            alice, front = session.analyst("alice"), AnalystBudgets(ledger, "alice", declared)
            for name in ("counts", "part", "table", "listing", "counts"):
                quoted, before = front.quote(ASKED[name]), alice.spent("edges")
                try:
                    alice.release(ASKED[name])
                except wp.BudgetExceeded:
                    assert quoted["edges"] > front.remaining("edges")
                else:
                    assert alice.spent("edges") - before == quoted.get("edges", 0)
                assert front.balances() == alice.balances()
                assert front.history() == alice.history()
            assert not hasattr(front, "release")
            assert [event.amount for event in front.history()] == [1, 1]
            with pytest.raises(wp.SessionError, match="not protected in this session"):
                AnalystBudgets(ledger, "alice", {}).quote(COUNT)


def test_the_curator_gives_budgets_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "l.db")
    with wp.Session(path) as session:
        session.protect(EDGES, ROWS, budget=2, version="1")

    def said(*arguments: str, act: str = "show", code: int = 0) -> str:
        assert main(["ledger", act, path, *arguments]) == code
        output = capsys.readouterr()
        return output.err if code else output.out.partition("Head of")[0]

    assert said("--analyst", "alice") == "alice has no budget in this ledger: give one with set\n"
    assert said("--analyst", "alice", "--budget", "edges=0.5", act="set") == (
        "edges: spent 0 of 0.5, 0.5 remaining; protects one directed edge\n"
    )
    with wp.Session(path) as session:
        session.protect(EDGES, ROWS, budget=2, version="1")
        session.analyst("alice").release(COUNT, label="hers")
        session.release(NODES.noisy_count(1, over=[1]))
    assert said() == (
        "edges: spent 1.25 of 2, 0.75 remaining; protects one directed edge\n"
        "edges@alice: spent 0.25 of 0.5, 0.25 remaining; within the budget of edges\n"
    )
    said("--analyst", "bob", "--budget", "edges=0.6", act="set")
    assert said().splitlines()[3:] == [
        "the analysts of edges have 0.85 left in total, and the account has 0.75: "
        "one analyst may exhaust it for the others"
    ]
    hers = said("--analyst", "alice", "--history")
    assert re.fullmatch(
        r"edges: spent 0.25 of 0.5, 0.25 remaining; protects one directed edge\n"
        r'  1 \S+ debit edges 0.25 NoisyCount\(0.25\)  "hers"\n',
        hers,
    )
    assert main(["ledger", "show", path, "--analyst", "alice"]) == 0
    assert "Head" not in capsys.readouterr().out  # it moves with the entries of others
    assert '"head"' in said("--json")
    assert '"head"' not in said("--json", "--analyst", "alice")
    assert '"source": "edges@alice"' in said("--json")
    assert "cannot be 0.2: 0.25 is spent" in said("--analyst", "alice", "--budget", "edges=0.2", act="set", code=6)
    assert "an analyst is named by" in said("--analyst", "", "--budget", "edges=1", act="set", code=6)
    assert "edges: spent 1.25 of 2" in said()
