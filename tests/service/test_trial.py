"""The commands by which README and docs start a service."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import wpinq as wp
from tests.support.service import ROOT


def command_of(page: str) -> list[str]:
    """The words after `wpinq` of the command that a page marks."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.search(r"<!-- serve -->\n```sh\n(.*?)\n```", text, flags=re.S)
    assert found is not None
    return shlex.split(found[1].rpartition("wpinq ")[2])


@pytest.mark.parametrize("page", ["README.md", "docs/service.md"])
def test_the_command_of_the_page_serves_the_bundled_graph(page: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "wpinq", *command_of(page), "--port", "0"]
    assert command[3:5] == ["serve", "examples/data/les-miserables.txt"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as trial:
        try:
            assert trial.stdout is not None
            told = [trial.stdout.readline().split()[-1] for _ in range(3)]
            analyst = wp.connect(told[0], told[1])
            assert analyst.remaining("edges") == 10
            answers = analyst.release(analyst.sources["edges"].select(lambda e: 0).noisy_count(1, over=[0]))
            assert 150 < answers[0] < 350  # 254, and noise of scale 1
        finally:
            trial.send_signal(signal.SIGINT)
        assert trial.wait(timeout=120) == 0
