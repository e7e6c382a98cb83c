"""What strict type checkers make of users' code: that of the package says so itself, and none has to narrow."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]

SNIPPET = """
from collections.abc import Mapping
import wpinq as wp

people = wp.source("people", city=str, age=int)
with wp.Session() as session:
    session.protect(people, [("a", 1)], budget=10)
    cities = people.select(lambda p: p.city)
    listed = cities.noisy_count(0.1, over=["a"])
    one = session.release(listed)
    reveal_type(one)
    reveal_type(session.release(cities.noisy_count(0.1)))
    reveal_type(session.release([listed, people.noisy_sum(0.1, lambda p: p.age, 0, 99)]))
    reveal_type(session.release({"cities": listed}, label="by name"))
    reveal_type(session.release(people.select(lambda p: p.age).median(0.1, range(9))).value)
    several: list[wp.Measurement] = [listed]
    reveal_type(session.release(several))
    low, high = one.interval("a")
    reveal_type(wp.__version__)
    reveal_type(session.history()[0].label)
"""


def test_strict_users_need_not_narrow(tmp_path: Path) -> None:
    snippet = tmp_path / "snippet.py"
    snippet.write_text(SNIPPET, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "pyproject.toml", str(snippet)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    revealed = [
        line.rpartition("Revealed type is ")[2].strip('"') for line in done.stdout.splitlines() if "note" in line
    ]
    answers, release = "wpinq.measure.answers.Answers", "wpinq.kernel.release.Release"
    assert revealed == [
        answers,
        f"{answers} | {release}",
        f"list[{answers}]",
        f"dict[str, {answers}]",
        "Any",
        f"list[{answers} | {release}]",
        "str",
        "str",
    ], done.stdout
    assert "error" not in done.stdout
