"""A server of PostgreSQL of its own for tests, on loopback, with Debian's binaries."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from wpinq.kernel.ledger import postgres, schema

PASSWORD = "a secret-word"
"""Of the user `service`: it must be seen nowhere."""


class Server:
    """A running server, and databases with ledgers in it."""

    def __init__(self, binaries: Path, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            self.port = taken.getsockname()[1]
        self._binaries, self.data = binaries, folder / "data"
        self._free: list[str] = []
        (folder / "password").write_text(PASSWORD)
        if os.geteuid() == 0:  # initdb and postgres refuse root
            shutil.chown(folder, "postgres", "postgres")
            shutil.chown(folder / "password", "postgres")
        self._run(
            "initdb", "-U", "curator", "-A", "scram-sha-256", f"--pwfile={folder / 'password'}", "-E", "UTF8", "-N"
        )
        self.start()

    def _run(self, program: str, *arguments: str) -> None:
        user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        command = [*user, str(self._binaries / program), "-D", str(self.data), *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=self.data.parent)

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        settings = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "max_connections": 200}
        options = " ".join(f"-c {name}='{value}'" for name, value in settings.items())
        self._run("pg_ctl", "-w", "-l", str(self.data.parent / "log"), "-o", f"-p {self.port} {options}", "start")

    def stop(self) -> None:
        """Stop it."""
        self._run("pg_ctl", "-w", "-m", "immediate", "stop")

    def kill(self) -> None:
        """Kill the server with all that it runs, and start it again."""
        first = int((self.data / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        for pid in (first, *map(int, children)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(OSError):  # it is gone
            while "Z" not in Path(f"/proc/{first}/stat").read_text().split()[2]:
                pass
        (self.data / "postmaster.pid").unlink(missing_ok=True)
        self.start()

    def url(self, database: str = "postgres", user: str = "curator") -> str:
        """The URL of a database, with a password."""
        return f"postgresql://{user}:{PASSWORD.replace(' ', '%20')}@127.0.0.1:{self.port}/{database}"

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """Run a statement as the curator; its rows."""
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            found = connection.execute(statement.encode())
            return found.fetchall() if found.description else []

    def database(self) -> str:
        """A new database, without a ledger."""
        name = f"db{secrets.token_hex(6)}"
        self.execute(f"CREATE DATABASE {name}")
        return name

    def ledger(self) -> str:
        """The URL of a new ledger, for a user who may do what a service may."""
        if self._free:
            return self._free.pop()
        name = self.database()
        role = postgres.create(self.url(name))
        self.execute(f"CREATE USER {name} PASSWORD '{PASSWORD}' IN ROLE {role}")
        return self.url(name, name)

    def empty(self, ledger: str) -> None:
        """Empty a ledger, for the next test."""
        name = ledger.rpartition("/")[2]
        tables = ", ".join(f"wpinq.{table}" for table in (*schema.TABLES, "leases"))
        self.execute(f"TRUNCATE {tables}", name)
        self._free.append(ledger)


def binaries() -> Path | None:
    """Where the server's binaries are, of the newest version."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda each: int(each.parts[-3]))
    return found[-1].parent if found else None


@contextlib.contextmanager
def running(folder: str | None = None) -> Iterator[Server]:
    """A server that ends with the context, in a folder or in memory; skipped where it cannot be had."""
    pytest.importorskip("psycopg", reason="a ledger in PostgreSQL needs the extra postgres")
    where = binaries()
    if where is None or sys.platform == "win32":
        pytest.skip("no server of PostgreSQL: apt-get install postgresql")
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # no disk is waited for
    with tempfile.TemporaryDirectory(dir=folder or memory) as own:
        server = Server(where, Path(own))
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """A server for all tests of a process."""
    with running() as server:
        yield server


@pytest.fixture
def postgres_ledger(postgres_server: Server) -> Iterator[str]:
    """The URL of a new ledger."""
    made = postgres_server.ledger()
    yield made
    postgres_server.empty(made)
