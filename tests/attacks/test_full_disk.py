"""A disk that is full at any byte: an answer that is shown and not stored, or a debit that is believed and not written.

The attack: fill the disk (or lower the quota) so that the debit or the answers cannot be written; see the answer all
the same, or have the budget restored. Here the size of any file is limited in a child, page by page, from the first
byte on. Output on a full disk is in `tests/cli/test_output.py`, spilling in `tests/engines/test_spill.py`.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

import wpinq as wp
from wpinq.kernel.ledger.ledger import Ledger

ROOT = pathlib.Path(__file__).parents[2]
NUMBERS = wp.source("numbers", int)
SECRET = 918273645

LIMITED = """
import os, resource, shutil, sys
import wpinq as wp
folder, when, step = sys.argv[1], sys.argv[2], int(sys.argv[3])
numbers = wp.source("numbers", int)

def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

def child(size, path):
    try:
        if when == "opening":
            limit(size)
        with wp.Session(path, engine="reference") as session:
            session.protect(numbers, [918273645], budget=3, version="1")
            limit(size)
            values = session.release(numbers.noisy_count(1, over=range(300))).values
            os.write(1, f"{size} answered {values[0].hex()}\\n".encode())
    except wp.WpinqError as error:
        os.write(1, f"{size} refused {error!s:.300}\\n".encode())

with wp.Session(f"{folder}/whole.db", engine="reference") as session:
    session.protect(numbers, [918273645], budget=3, version="1")
sizes = [*range(0, 150_000, step), 1 << 23]
for size in sizes:
    path = f"{folder}/{size}.db"
    if when == "release":
        shutil.copy(f"{folder}/whole.db", path)
    process = os.fork()
    if process == 0:
        child(size, path)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0, size
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="limits on the size of files are of POSIX")
@pytest.mark.parametrize(
    ("when", "step"),
    [
        ("release", 30_000),
        pytest.param("release", 6000, marks=pytest.mark.long),
        pytest.param("opening", 12_288, marks=pytest.mark.long),
    ],
)
def test_nothing_is_answered_that_could_not_be_written(tmp_path: pathlib.Path, when: str, step: int) -> None:
    """At every size: an answer that stands in the ledger, or an error that explains and shows nothing."""
    command = [sys.executable, "-W", "ignore", "-c", LIMITED, str(tmp_path), when, str(step)]
    said = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    words = {line.split()[1] for line in said if len(line.split()) > 1}
    assert words >= {"answered", "refused"}
    assert str(SECRET) not in "".join(said)
    for line in said:
        size, _, rest = line.partition(" ")
        path = tmp_path / f"{size}.db"
        if not size.isdigit() or not path.exists() or not path.stat().st_size:
            assert not rest.startswith("answered")
            continue
        with wp.Session(path, engine="reference") as session:
            session.protect(NUMBERS, [SECRET], budget=3, version="1")
            spent = session.spent("numbers")
            assert spent in (0, 1)
            again = session.release(NUMBERS.noisy_count(1, over=range(300)))
            assert session.spent("numbers") == 1
            if rest.startswith("answered"):
                assert spent == 1
                assert float(again.values[0]).hex() == rest.split()[1]
        with Ledger(path) as ledger:
            ledger.verify()
