"""The commands by which README and docs start a service."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import wpinq as wp
from tests.support.service import ROOT

pytestmark = pytest.mark.long


def command_of(page: str) -> list[str]:
    """The words after `wpinq` of the command that a page marks."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.search(r"<!-- serve -->\n```sh\n(.*?)\n```", text, flags=re.S)
    assert found is not None
    return shlex.split(found[1].rpartition("wpinq ")[2])


@contextmanager
def on_trial(command: list[str]) -> Iterator[wp.ServiceConnection]:
    """An analyst of the service that a command starts, which ends well after ctrl-C."""
    started = [sys.executable, "-m", "wpinq", *command, "--port", "0"]
    with subprocess.Popen(started, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as trial:
        try:
            assert trial.stdout is not None
            told = [trial.stdout.readline().split()[-1] for _ in range(3)]
            yield wp.connect(told[0], told[1])
        finally:
            trial.send_signal(signal.SIGINT)
        assert trial.wait(timeout=120) == 0


@pytest.mark.parametrize("page", ["README.md", "docs/service.md"])
def test_the_command_of_the_page_serves_the_bundled_graph(page: str) -> None:
    command = command_of(page)
    assert command[:2] == ["serve", "examples/data/les-miserables.txt"]
    with on_trial(command) as analyst:
        assert analyst.remaining("edges") == 10
        answers = analyst.release(analyst.sources["edges"].select(lambda e: 0).noisy_count(1, over=[0]))
        assert 150 < answers[0] < 350  # 254, and noise of scale 1


@pytest.mark.parametrize(
    ("options", "declared"),
    [
        ([], 'source people(id: int, city: str, sex: str, age: int, salary: int) with unit = "one row"'),
        (
            ["--declare", 'source staff(sex: category("f", "m"), age: int) with records_at_most = 5000;'],
            'source staff(sex: category("f", "m"), age: int) with records_at_most = 5000;',
        ),
    ],
)
def test_a_table_is_served_with_examples_from_its_declaration(options: list[str], declared: str) -> None:
    with on_trial(["serve", "examples/data/people.csv", "--trial", *options]) as analyst:
        (source,) = analyst.request("GET", "sources")
        assert source["declaration"].startswith(declared)
        assert {"Number of records", "Mean of age"} <= {each["title"] for each in source["examples"]}
        answers = analyst.release(source["examples"][0]["program"])
        assert 2800 < answers["total"][()]["records"].estimate < 3200  # 3000, and noise of scale 10


def test_an_edge_is_found_in_the_columns_that_are_named(tmp_path: Path) -> None:
    path = tmp_path / "flights.csv"
    path.write_text("carrier,origin,goal\n" + "".join(f"7,{n},{n + 1}\n" for n in range(200)), encoding="utf-8")
    with on_trial(["serve", str(path), "--trial", "--columns", "origin,goal", "--budget", "edges=100"]) as analyst:
        answers = analyst.release(analyst.sources["edges"].select(lambda e: 0).noisy_count(20, over=[0]))
        assert 190 < answers[0] < 210
