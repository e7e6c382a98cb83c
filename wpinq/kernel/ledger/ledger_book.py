"""An open ledger as a book of entries: they are appended, read, and proved; its head is what to keep elsewhere."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from functools import partial
from typing import Any, Self

from wpinq.kernel.ledger import chain, ledger_audit
from wpinq.kernel.ledger.chain import Entry
from wpinq.kernel.ledger.head import Head
from wpinq.kernel.ledger.store import LedgerFile


class LedgerBook:
    """The entries of a ledger.

    Parameters
    ----------
    file : LedgerFile
        Where they are.
    """

    def __init__(self, file: LedgerFile) -> None:
        self._file = file

    def head(self) -> str:
        """The last entry by its number and hash: keep it elsewhere, to know a ledger that lost entries by it."""
        return str(self._file.read(chain.head))

    def check_head(self, expected: str) -> None:
        """Refuse a ledger that does not hold an entry which it had, as `head` gave it."""
        check = partial(ledger_audit.check_head, name=self._file.name, known=Head.parse(expected))
        self._file.read(partial(check, told=ledger_audit.EXPECTED))

    def entries(self) -> Iterator[Entry]:
        """The history, from the first entry on, as far as it goes when the iteration gets there."""
        after = 0
        while True:
            page = self._file.read(partial(chain.page, after=after))
            if not page:
                return
            yield from page
            after = page[-1].sequence

    def verify(self) -> None:
        """Compute the hash chain again, and check every account, demand and answer against the entries.

        Raises
        ------
        LedgerError
            Naming the first entry that is broken, or what does not follow from the entries.

        Notes
        -----
        No privacy cost. Opening finds most of this at once. Who rewrites the whole file, or puts back an old copy with
        what stands beside it, is found out only by a head that is kept elsewhere.
        """
        self._file.snapshot(lambda connection: ledger_audit.verify(connection, self._file.name))

    def close(self) -> None:
        """Close the ledger. All that was spent and stored is durable already."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _next_entry(self, connection: sqlite3.Connection) -> int:
        """The number that the next entry will have."""
        self._file.last = self._file.last or chain.current(connection)
        return self._file.last.head.sequence + 1

    def _append(
        self, connection: sqlite3.Connection, kind: str, source: str, amount: int, content: Any, measurements: int = 0
    ) -> None:
        last = self._file.last
        self._file.last = chain.append(connection, kind, source, amount, content, last, measurements)
