"""Releases in flight: a record of each, durable before the debit, removed at its end.

A worker that dies over a release cannot suspend its sources itself, and its parents may die as well. So the process
that finds a record suspends the sources in it: the web process of the request, or else the next one that starts.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from wpinq.errors import UsageError, system_reason
from wpinq.kernel.ledger.backup import INFLIGHT, SERVICE
from wpinq.kernel.ledger.ledger import Ledger, SuspensionError

#: The beginning of names of unfinished records: no data were read for them.
_UNFINISHED = "."


class InflightReleases:
    """Records of releases in flight, each a file that is locked while its worker lives.

    Parameters
    ----------
    ledger : Path
        The ledger that pays for them: the records are in a folder beside it, of their owner alone (0700).
    """

    def __init__(self, ledger: Path) -> None:
        ledger = ledger.resolve()
        self._folder = ledger.with_name(f"{ledger.name}{INFLIGHT}")

    def begin(self) -> None:
        """Make the folder, and lock it for this service.

        Another service over the ledger would take the records for its own, and forget them when it stops.

        Raises
        ------
        UsageError
            When that cannot be, others could change what is in it, or another service has it.
        """
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            if self._folder.stat().st_mode & 0o077:
                raise UsageError(f"{self._folder} is accessible to other users: chmod 700 it")
            file = os.open(self._folder / SERVICE, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise UsageError(f"{self._folder} cannot hold the releases in flight ({system_reason(error)})") from None
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # of this process and not of its children, until it ends
        except OSError as error:
            os.close(file)
            raise UsageError(
                f"another service uses this ledger, by {self._folder} ({system_reason(error)}): stop it first, or "
                "serve its sources there"
            ) from None

    @staticmethod
    def name() -> str:
        """A name for a release."""
        return secrets.token_hex(16)

    @contextmanager
    def recorded(self, name: str, accounts: Collection[str]) -> Iterator[None]:
        """A record of a release in flight, for as long as the context lasts.

        It stays where an evaluation failed and the ledger could not suspend its sources: another process has to.
        """
        written, path = self._folder / f"{_UNFINISHED}{name}", self._folder / name
        file = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            os.write(file, json.dumps(sorted(accounts)).encode())
            os.fsync(file)
            os.rename(written, path)
            self._make_durable()
            try:
                yield
            except SuspensionError:
                raise
            except BaseException:
                self.forget(name)
                raise
            self.forget(name)
        finally:
            written.unlink(missing_ok=True)  # that of a full disk
            os.close(file)

    def names(self) -> frozenset[str]:
        """The names of all records."""
        return frozenset(each for each in os.listdir(self._folder) if not each.startswith(_UNFINISHED))

    def accounts(self, name: str) -> frozenset[str]:
        """The accounts of a release in flight; none where there is no record of it."""
        try:
            return frozenset(json.loads((self._folder / name).read_bytes()))
        except FileNotFoundError:
            return frozenset()

    def suspend(self, name: str, ledger: Ledger) -> tuple[frozenset[str], frozenset[str]]:
        """Suspend the sources of a release without an answer; its accounts, and those suspended now.

        Without a record, no data were read, or every reading has its answer. The record goes after the suspension.
        """
        accounts = self.accounts(name)
        suspended = ledger.suspend(accounts) if accounts else frozenset()
        self.forget(name)
        return accounts, suspended

    def forget(self, name: str) -> None:
        """Remove a record."""
        with suppress(FileNotFoundError):
            os.unlink(self._folder / name)
            self._make_durable()

    def ended(self, name: str, wait: bool = False) -> bool:
        """Whether the worker of a release has ended, one way or the other; with `wait`, when it has."""
        try:
            file = os.open(self._folder / name, os.O_RDONLY | os.O_NOFOLLOW)
        except FileNotFoundError:
            return True
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        finally:
            os.close(file)
        return True

    def _make_durable(self) -> None:
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
