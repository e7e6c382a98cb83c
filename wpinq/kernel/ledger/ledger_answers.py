"""The answers that a ledger keeps: a key that was answered keeps its answer, whoever asks, in whatever process.

A second noisy value for a key could be averaged with the first. So what was drawn is shown only as it stands here.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any

from wpinq.errors import LedgerError
from wpinq.kernel.ledger import chain, ledger_audit, ledger_stored
from wpinq.kernel.ledger import ledger_tables as tables
from wpinq.kernel.ledger.ledger_book import LedgerBook
from wpinq.kernel.ledger.ledger_stored import Stored
from wpinq.kernel.ledger.store import LedgerFile, Version

_REMEMBERED = 2**20  # answers, of all measurements: where more are read, those used longest ago are read anew


class LedgerAnswers(LedgerBook):
    """The answers and listings of measurements that were debited."""

    def __init__(self, file: LedgerFile) -> None:
        super().__init__(file)
        # what was read, the last used last, and as of when: what others wrote since may be another history
        self._remembered: dict[str, tuple[Version, Stored]] = {}

    def answers(self, measurement: str, keys: Iterable[bytes] | None = None) -> dict[bytes, float]:
        """The stored answers of a measurement: for these keys, or all by increasing key.

        Parameters
        ----------
        measurement : str
            Its digest. One that was never debited has no answers.
        keys : iterable of bytes, optional
            The keys to look up.

        Returns
        -------
        dict
            Key -> value, in the order of `keys`. A key without a stored answer is not in it, which says only
            that it was never asked for.
        """
        wanted = None if keys is None else list(dict.fromkeys(keys))
        if wanted is not None and not all(type(key) is bytes for key in wanted):
            raise LedgerError("answers are kept for keys of bytes")

        def found(connection: sqlite3.Connection) -> dict[bytes, float]:
            stored = self._stored(connection, measurement).answers
            return {key: stored[key] for key in (sorted(stored) if wanted is None else wanted) if key in stored}

        return self._file.snapshot(found)

    def listings(self, measurement: str) -> list[Any]:
        """The listings of a measurement as `store_listing` was given them, in order.

        Read them before the answers: one that comes in between is found out when what was drawn is stored.
        """
        read = self._file.snapshot(lambda connection: [*self._stored(connection, measurement).listings])
        return [json.loads(content)["listing"] for content in read]

    def store_answers(
        self, measurement: str, answers: Mapping[bytes, float], listings: int = 0
    ) -> dict[bytes, float] | None:
        """Store answers, durably, and return those that stand. Reveal these, never the ones passed in.

        Parameters
        ----------
        measurement : str
            The digest of a measurement that was debited.
        answers : Mapping
            Key -> finite noisy value, kept to the last bit. A key that has an answer keeps it.
        listings : int
            How many listings of the measurement were known when the answers were drawn.

        Returns
        -------
        dict or None
            The same keys -> the values in the ledger, which another process may have put there first. None where there
            are further listings by now, which may say something of the keys: nothing was stored, draw again.

        Raises
        ------
        LedgerError
            When the measurement was never debited, or a value is not a finite float. Nothing is stored.
        """
        floats = all(issubclass(kind, float) for kind in set(map(type, answers.values())))
        if not floats or set(map(type, answers)) - {bytes} or not all(map(math.isfinite, answers.values())):
            raise LedgerError("answers are finite floats for keys of bytes: nothing was stored")

        def standing(connection: sqlite3.Connection) -> dict[bytes, float] | None:
            stored = self._stored(connection, measurement)
            identity = tables.measurement_id(connection, measurement)
            if identity is None:
                raise LedgerError("a measurement must be debited before its answers are stored: call debit first")
            if len(stored.listings) != listings:
                return None
            self._store(connection, measurement, identity, answers, stored)
            first = {key: stored.answers[key] for key in stored.answers.keys() & answers.keys()}
            return {**dict(zip(answers, map(float, answers.values()), strict=True)), **first}

        return self._file.write(standing)

    def store_listing(
        self, measurement: str, rows: Mapping[bytes, float], listing: Mapping[str, Any], *, listings: int, answers: int
    ) -> None:
        """Store a listing with the rows that it adds, as one entry, unless what it was drawn from has changed.

        Parameters
        ----------
        measurement : str
            The digest of a measurement that was debited.
        rows : Mapping
            Key -> finite noisy value, of the keys that are listed and had no answer; none is an answer too.
        listing : Mapping
            Its public domain and threshold, as plain data.
        listings, answers : int
            How many listings and answers of the measurement were known when the rows were drawn. Where there are more
            by now nothing is stored: read them, and draw again.

        Raises
        ------
        LedgerError
            As `store_answers`.
        """

        def added(connection: sqlite3.Connection) -> None:
            stored = self._stored(connection, measurement)
            identity = tables.measurement_id(connection, measurement)
            if identity is None or not all(map(math.isfinite, rows.values())):
                raise LedgerError(
                    "a listing is of a measurement that was debited, with finite floats: call debit first"
                )
            if [len(stored.listings), len(stored.answers)] == [listings, answers]:
                self._store(connection, measurement, identity, rows, stored, {"listing": dict(listing)})

        self._file.write(added)

    def _store(
        self,
        connection: sqlite3.Connection,
        measurement: str,
        identity: int,
        answers: Mapping[bytes, float],
        stored: Stored,
        more: dict[str, Any] | None = None,
    ) -> None:
        """Append what is new of some answers, as one entry, unless they are very large, or none without `more` to say.

        It may be undone until it is committed. So it is not remembered here, but read when it is used.
        """
        new = {key: value for key, value in answers.items() if key not in stored.answers} if stored.answers else answers
        pieces = [*ledger_stored.pieces(new)] or [(0, b"")] * (more is not None)
        for left, (count, packed) in zip(reversed(range(len(pieces))), pieces, strict=True):
            row = (identity, self._next_entry(connection), packed)
            connection.execute("INSERT INTO answer_sets (measurement, entry, answers) VALUES (?, ?, ?)", row)
            said = ledger_stored.summary(measurement, packed, count) | ({} if left or more is None else more)
            self._append(connection, chain.ANSWERS, "", 0, said)

    def _stored(self, connection: sqlite3.Connection, measurement: str) -> Stored:
        """All that is stored of a measurement now, or a refusal. The caller is in a transaction."""
        version = self._file.version(connection)
        known, stored = self._remembered.pop(measurement, (version, Stored()))
        if known != version and not stored.stands(connection, measurement):
            stored = Stored()
        before = len(stored.answers)
        ledger_audit.catch_up(connection, self._file.name, measurement, stored)
        self._remembered[measurement] = version, stored
        grown, kept = len(stored.answers) > before, self._remembered
        while grown and len(kept) > 1 and sum(len(each.answers) for _, each in kept.values()) > _REMEMBERED:
            del kept[next(iter(kept))]
        return stored
