"""What does not fit in memory: files that nobody else can open, of which nothing is left however the process ends."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

import wpinq as wp
from wpinq import functions as F
from wpinq.engines.sql.duckdb import database as keeping
from wpinq.engines.sql.duckdb.database import Database
from wpinq.errors import EvaluationFailed

SECRET = b"Rumpelstilzchen"

SPILLING = f"""
import wpinq as wp
from wpinq import functions as F
from wpinq.engines.sql.duckdb.database import Database

people = wp.source("people", name=str, number=int)
data = {{("{SECRET.decode()} %d" % i, i): 1.0 for i in range(150_000)}}
copies = people.select_many(lambda p: F.map(F.range(0, 8, limit=8), lambda n: (p.name, p.number, n)))
plan = copies.shave(1.0, limit=2).select(lambda piece: piece.record[0]).plan
print("ready", flush=True)
with Database(memory_limit="70MB", threads=2) as database:
    for _ in range(20):
        database.evaluate(plan, {{"people": data}})
"""


def environment(folder: Path) -> dict[str, str]:
    return dict(os.environ, TMPDIR=str(folder), PYTHONPATH=os.pathsep.join([".", *sys.path]))


@pytest.fixture
def spilling(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that spills names, once it has begun."""
    with subprocess.Popen([sys.executable, "-c", SPILLING], env=environment(tmp_path), stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == b"ready\n"
            yield child
        finally:
            child.kill()


def spilled(process: int, folder: Path) -> list[Path]:
    """The open files of a process that lie in a folder, or once did."""
    found = []
    for link in Path(f"/proc/{process}/fd").iterdir():
        try:
            if os.readlink(link).startswith(f"{folder}/"):
                found.append(link)
        except FileNotFoundError:  # closed since
            pass
    return found


PROBES = (b"", b"blat")
"""What Python's tempfile writes to a file with a name, and removes at once, to see whether a folder can be used."""


def is_probe(path: Path) -> bool:
    try:
        return path.read_bytes() in PROBES
    except FileNotFoundError:
        return True


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="looks into another process by /proc")
def test_names_are_spilled_where_nobody_finds_them(spilling: subprocess.Popen[bytes], tmp_path: Path) -> None:
    names = 0
    while not names:
        assert spilling.poll() is None, "nothing spilled, so this tests nothing: lower the limit"
        assert [path for path in tmp_path.rglob("*") if not is_probe(path)] == [], "it has a name, and may have content"
        for link in spilled(spilling.pid, tmp_path):
            try:
                held, content = link.stat(), link.read_bytes()
            except FileNotFoundError:
                continue
            names += content.count(SECRET)
            assert held.st_nlink == 0 or content in PROBES
            assert stat.S_IMODE(held.st_mode) == 0o600
    spilling.send_signal(signal.SIGKILL)
    spilling.wait()
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.long
@pytest.mark.parametrize("part", range(4))
def test_nothing_is_left_of_a_process_that_is_killed(
    spilling: subprocess.Popen[bytes], tmp_path: Path, part: int
) -> None:
    time.sleep(Random(part).uniform(0.2, 3))
    assert spilling.poll() is None
    spilling.send_signal(signal.SIGKILL)
    spilling.wait()
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.long
def test_values_larger_than_a_block_are_spilled_and_come_back() -> None:
    def text(number: int) -> str:
        return f"{SECRET.decode()} {number} " * 20_000

    given: list[str] = []
    with Database(memory_limit="80MB", threads=1) as database:
        instance = database.open()
        spill, connection = instance.spill, instance.connection
        real = spill.open

        def noting(path: str, mode: str) -> Any:
            given.append(path)
            return real(path, mode)

        spill.open = noting
        connection.execute("CREATE TEMP TABLE texts (number INTEGER, text VARCHAR)")
        for number in range(300):
            connection.execute("INSERT INTO texts VALUES ($1, $2)", [number, text(number)])
        for number in range(300):
            query = f"SELECT text FROM texts WHERE number = {number}"
            assert connection.execute(query).fetchall() == [(text(number),)]
    assert sum(name.endswith(".block") for name in given) > 100


@pytest.mark.long
def test_sums_in_python_do_not_wait_for_those_who_spill() -> None:
    with Database(threads=2) as database:
        connection = database.open().connection
        for sql, threads in (("1", 2), ("wpinq_sum([0.5])", 1), ("wpinq_share([1], [0.5])", 1), ("1", 2)):
            assert connection.execute(f"SELECT current_setting('threads'), {sql}").fetchall()[0][0] == threads


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork is of POSIX")
def test_a_forked_child_lets_go_of_the_files() -> None:
    with Database() as database:
        spill = database.open().spill
        spill.open(f"{spill.path}/a.tmp", "rb+")
        number = spill._files[f"{spill.path}/a.tmp"].fileno()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of a process with threads
            child = os.fork()
        if child == 0:
            try:
                os.fstat(number)
            except OSError:
                os._exit(0)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        assert os.fstat(number).st_nlink == 0


@pytest.mark.long
def test_a_full_disk_is_a_failure_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    pairs = wp.source("pairs", a=int, b=int)
    data = {(i, i % 50): 1.0 for i in range(100_000)}
    copies = pairs.select_many(lambda p: F.map(F.range(0, 20, limit=20), lambda n: (p.a * 7919 % 100_003, n)))
    wide = copies.shave(1.0, limit=2).select(lambda piece: piece.record[1])
    with Database(memory_limit="60MB", threads=2) as database:
        monkeypatch.setattr(os, "pwrite", full)
        with pytest.raises(EvaluationFailed) as failure:
            database.evaluate(wide.plan, {"pairs": data})
        assert str(failure.value) == keeping.FAILED
        assert failure.value.__cause__ is None
        assert failure.value.__context__ is None
        monkeypatch.undo()
        assert database.evaluate(pairs.plan, {"pairs": {(1, 2): 1.0}}) == {(1, 2): 1.0}
