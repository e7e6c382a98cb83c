"""A real service for tests: a process tree of its own, asked over sockets."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).resolve().parents[2]
TRIES = 1200

COUNT = "var {name} = edges.Select(e => e.src).NoisyCount({epsilon}, over: [1, 2, 3]);"
"""A program that counts edges by their origin."""


def configured(
    folder: Path, service: str = "", limits: str = "", sources: str = "", budget: str = "10", margin: float = 16.0
) -> Path:
    """The configuration of a service over a small graph, in a folder.

    A release is held for `margin` times a third of a second, and its child takes less than a tenth of a second of the
    processor: 16 times leave time to kill something, and 8 are enough where nothing is.
    """
    (folder / "edges.txt").write_text("".join(f"{a}\t{b}\n" for a in range(1, 9) for b in range(a + 1, 9)))
    path = folder / "service.toml"
    path.write_text(f'''
declarations = """
source edges(src: int, dst: int) with unit = "one edge", records_at_most = 100;
{"source people(name: str, town: str) with records_at_most = 100;" if sources else ""}
"""

[service]
ledger = "ledger.db"
users = "users.db"
port = 0
{service}

[limits]
requests_a_minute = 6000
releases_a_minute = 6000
wrong_tokens_a_minute = 6000
at_once = 64
{limits}

[sandbox]
safety_factor = {margin}
grace_seconds = 0.5

[sources.edges]
file = "edges.txt"
edge_list = "undirected"
budget = {budget!r}
version = "first"
{sources}
''')
    return path


class RunningService:
    """`wpinq serve` in a process of its own."""

    command: tuple[str, ...] = ("-m", "wpinq")

    def __init__(self, configuration: Path, before: tuple[str, ...] = ()) -> None:
        """`before` is a command that runs it, as `unshare` does."""
        self.configuration, self.folder, self.before = configuration, configuration.parent, before
        self.log = self.folder / "log.jsonl"
        self.start()

    def start(self) -> None:
        """Start it, and wait until it serves."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*self.before, sys.executable, *self.command, "serve", str(self.configuration)],
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode()
        assert line.startswith("Serving at "), (line, self.log.read_text())
        self.address = line.removeprefix("Serving at ").strip()

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End it by a signal to its first process; what that ends with."""
        self.process.send_signal(number)
        return self.ended()

    def ended(self) -> int:
        """What it ends with by itself; one that does not is killed, so that nobody waits for it."""
        with self.process:
            try:
                return self.process.wait(timeout=120)
            except subprocess.TimeoutExpired:
                self.process.kill()
                raise

    def wpinq(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `wpinq serve CONFIGURATION ARGUMENTS`."""
        command = [sys.executable, "-m", "wpinq", "serve", str(self.configuration), *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False
        )

    def admit(self, name: str, *budgets: str, curator: bool = False) -> str:
        """A token for somebody new, in the way of the command line."""
        from wpinq.kernel.ledger.ledger import Ledger
        from wpinq.service.users import ANALYST, CURATOR, UserStore, admit

        role = CURATOR if curator else ANALYST
        held = dict(each.split("=") for each in budgets)
        with UserStore(self.folder / "users.db") as register, Ledger(self.folder / "ledger.db") as ledger:
            return admit(register, ledger, name, role, held)

    def ask(self, method: str, path: str, token: str | None, body: Any = None, **more: Any) -> httpx.Response:
        """One request."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        json_body = {} if body is None else {"json": body}
        return httpx.request(
            method,
            f"{self.address}/{path}",
            headers=headers | more.pop("headers", {}),
            timeout=300,
            **json_body,
            **more,
        )

    def release(self, token: str, program: str, **more: Any) -> httpx.Response:
        """Release a text program."""
        return self.ask("POST", "v1/release", token, {"program": program, **more})

    def events(self) -> list[dict[str, Any]]:
        """The log."""
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def processes(self, name: str) -> list[int]:
        """The ids of the processes below this one that have a name."""
        return [pid for pid in below(self.process.pid) if comm(pid) == f"wpinq-{name}"]

    def one(self, name: str) -> int:
        """The only one of a name, once there is one."""
        return until(lambda: self.processes(name))[0]


def comm(pid: int) -> str:
    """What a process calls itself; "" where it ended."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def children(*pids: int) -> list[int]:
    """The processes that some are the parents of, and that were not waited for."""
    return [child for child, its in _parents().items() if its in pids]


def below(pid: int) -> list[int]:
    """All descendants of a process, each after the one that it is a child of."""
    parents = _parents()
    found = [pid]
    for ancestor in found:
        found += sorted(child for child, its in parents.items() if its == ancestor)
    return found[1:]


def state(pid: int) -> str:
    """What a process does, by a letter: R, S or D where it lives, T where it was stopped, Z or X where it ended."""
    found = _status(pid)
    return found[0] if found else "X"


def niceness(pid: int) -> int:
    """How nice a process is to others."""
    return int(_status(pid)[16])


def _parents() -> dict[int, int]:
    held = {int(name): _status(int(name)) for name in os.listdir("/proc") if name.isdigit()}
    return {pid: int(fields[1]) for pid, fields in held.items() if fields}


def _status(pid: int) -> list[str]:
    """State, parent and what comes after them; nothing where there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def until(found: Any) -> Any:
    """What a function gives once it is true."""
    for _ in range(TRIES):
        if value := found():
            return value
        time.sleep(0.05)
    raise AssertionError("it never came to be")


@contextlib.contextmanager
def running(configuration: Path) -> Iterator[RunningService]:
    """A service that is ended afterwards, with all its processes."""
    service = RunningService(configuration)
    try:
        yield service
    finally:
        if service.process.poll() is None:
            assert service.stop() == 0
