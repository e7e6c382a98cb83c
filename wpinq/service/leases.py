"""Leases: records of the releases in flight of several services over a ledger in PostgreSQL.

A lease is durable before the debit. It lasts as long as the process of its release may, by the clock of the server.
Without it nothing is stored, and no answer is sent. Whoever finds one that is over suspends its accounts: to free them
would be a bit for each try.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from wpinq.kernel.ledger.ledger import SuspensionError
from wpinq.kernel.ledger.postgres import LedgerURL, PostgresStore
from wpinq.service.inflight import InflightReleases

_SERVICE = secrets.token_hex(16)
"""The holder of all leases of this service: its processes are forked from the one that drew it."""
_PAUSE = 0.2
"""Seconds between two looks at a lease of another process."""


class Leases(InflightReleases):
    """Records of releases in flight in the ledger itself, each a lease.

    Parameters
    ----------
    store : PostgresStore
        The ledger; a session that writes under these leases has the same.
    holder : str
        The service.
    """

    def __init__(self, store: PostgresStore, holder: str = _SERVICE) -> None:
        self.store, self._holder = store, holder

    @contextmanager
    def recorded(self, name: str, accounts: Collection[str]) -> Iterator[None]:
        """A lease for a release in flight, for as long as the context lasts.

        SuspensionError where it is lost: another process suspends its accounts, and there is no answer.
        """
        seconds, _ = signal.getitimer(signal.ITIMER_REAL)  # this process ends then
        begin = "SELECT begin_lease(?, ?, ?, ?)"
        given = name, self._holder, json.dumps(sorted(accounts)), seconds
        self.store.write(lambda transaction: transaction.execute(begin, given))
        self.store.lease = name
        try:
            yield
        except SuspensionError:
            raise
        except BaseException:
            if self._end(name, standing=True):
                raise
        else:
            if self._end(name, standing=True):
                return
        raise SuspensionError("the lease of a release was lost")

    def names(self) -> frozenset[str]:
        """The names of the releases of this service, and of those of all services that are over."""
        query = "SELECT name FROM leases WHERE holder = ? OR until <= clock_timestamp()"
        rows = self.store.read(lambda transaction: transaction.execute(query, (self._holder,)).fetchall())
        return frozenset(name for (name,) in rows)

    def accounts(self, name: str) -> frozenset[str]:
        """The accounts of a release in flight; none where there is no lease of it."""
        query = "SELECT accounts FROM leases WHERE name = ?"
        row = self.store.read(lambda transaction: transaction.execute(query, (name,)).fetchone())
        return frozenset(json.loads(row[0]) if row else ())

    def forget(self, name: str) -> None:
        """Remove a lease, whose accounts are suspended."""
        self._end(name, standing=False)

    def ended(self, name: str, wait: bool = False) -> bool:
        """Whether a lease is over, one way or the other; with `wait`, when it is."""
        query = "SELECT 1 FROM leases WHERE name = ? AND until > clock_timestamp()"
        while self.store.read(lambda transaction: transaction.execute(query, (name,)).fetchone()) is not None:
            if not wait:
                return False
            time.sleep(_PAUSE)
        return True

    def _end(self, name: str, standing: bool) -> bool:
        """Remove a lease, or one that stands; whether there was such a one."""
        query, self.store.lease = "SELECT end_lease(?, ?)", None
        return bool(self.store.write(lambda transaction: transaction.execute(query, (name, standing)).fetchone()[0]))


def open_inflight(ledger: Path | LedgerURL) -> InflightReleases:
    """The releases in flight over a ledger: leases in PostgreSQL, or files beside it."""
    return InflightReleases(ledger) if isinstance(ledger, Path) else Leases(PostgresStore(os.fspath(ledger)))
