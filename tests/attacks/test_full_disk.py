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


SMALL = """
import os, sys
from pathlib import Path
from wpinq.errors import WpinqError
from wpinq.kernel.ledger.accounts import declared_account
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.service.inflight import InflightReleases
from wpinq.service.users import UserStore

folder = Path(sys.argv[1])
with Ledger(folder / "ledger.db") as ledger, UserStore(folder / "users.db") as users:
    ledger.open_accounts([declared_account("edges", schema="s", unit="edge", unit_weight=1, budget=10**9)])
    inflight = InflightReleases(folder / "ledger.db")
    inflight.begin()
    with open(folder / "filler", "wb", buffering=0) as filler:
        try:
            while filler.write(b"x" * 4096):
                pass
        except OSError:
            pass
    for work in (
        lambda: [ledger.set_budget("edges", 10**9 + number) for number in range(10_000)],
        lambda: [users.add(f"user{number}") for number in range(10_000)],
    ):
        try:
            work()
        except WpinqError as error:
            print(type(error).__name__, error)
    os.unlink(folder / "filler")
    ledger.verify()
    assert ledger.set_budget("edges", 10**9).budget == 10**9
    assert users.find(users.add("alice")).name == "alice"
"""


def test_a_disk_that_is_full_is_said_with_what_to_do(tmp_path: pathlib.Path) -> None:
    mounted = f'mount -t tmpfs -o size=1m tmpfs {tmp_path} && exec "$@"'
    apart = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mounted, "sh"]
    try:
        if subprocess.run([*apart, "true"], capture_output=True, check=False).returncode:
            pytest.skip("no process may mount a small disk of its own here")
    except OSError:
        pytest.skip("there is no unshare")
    command = [*apart, sys.executable, "-c", SMALL, str(tmp_path)]
    said = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    assert len(said) == 2
    assert said[0].startswith("LedgerError")
    assert "make room" in said[0] or "disk with room" in said[0]
    assert said[1].startswith("UsersError")
    assert "disk with room" in said[1]
