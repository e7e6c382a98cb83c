"""The answers that a ledger keeps: a key that was answered keeps its answer, whoever asks, in whatever process.

A second noisy value for a key could be averaged with the first. So what was drawn is shown only as it stands here.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any

from wpinq.errors import LedgerError
from wpinq.kernel import ledger_audit, ledger_history
from wpinq.kernel import ledger_tables as tables
from wpinq.kernel.ledger_book import LedgerBook
from wpinq.kernel.ledger_file import LedgerFile, Version


class LedgerAnswers(LedgerBook):
    """The answers and listings of measurements that were debited."""

    def __init__(self, file: LedgerFile) -> None:
        super().__init__(file)
        # measurements whose answers were found to be those that were stored: as of when, and how many there were
        self._sound: dict[str, tuple[Version, int]] = {}

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
            self._check_answers(connection, measurement, self._file.version(connection))
            identity = tables.measurement_id(connection, measurement)
            if identity is None:
                return {}
            if wanted is None:
                query = "SELECT key, value FROM answers WHERE measurement = ? ORDER BY key"
                rows = connection.execute(query, (identity,)).fetchall()
                return {key: tables.from_bytes(value) for key, value in rows}
            stored = tables.stored_answers(connection, identity, sorted(wanted))
            return {key: tables.from_bytes(stored[key][0]) for key in wanted if key in stored}

        return self._file.snapshot(found)

    def listings(self, measurement: str) -> list[Any]:
        """The listings of a measurement as `store_listing` was given them, in order.

        Read them before the answers: one that comes in between is found out when what was drawn is stored.
        """

        def found(connection: sqlite3.Connection) -> list[Any]:
            self._check_answers(connection, measurement, self._file.version(connection))
            return tables.listings(connection, measurement)

        return self._file.snapshot(found)

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
            self._check_answers(connection, measurement, self._file.seen)
            identity = tables.measurement_id(connection, measurement)
            if identity is None:
                raise LedgerError("a measurement must be debited before its answers are stored: call debit first")
            if tables.count(connection, "listings", identity) != listings:
                return None
            entry = self._next_entry(connection)
            offered = {key: tables.to_bytes(answers[key]) for key in sorted(answers)}
            stored, ours = dict(zip(answers, map(float, answers.values()), strict=True)), offered
            if tables.insert_answers(connection, identity, entry, offered) < len(offered):
                found = tables.stored_answers(connection, identity, [*offered])
                stored = {key: tables.from_bytes(found[key][0]) for key in answers}
                ours = {key: value for key, (value, by) in sorted(found.items()) if by == entry}
            if ours:
                self._count_answers(measurement, len(ours))
                said = ledger_history.summary(measurement, ours)
                self._append(connection, ledger_history.ANSWERS, "", 0, said)
            return stored

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
        given = {key: tables.to_bytes(value) for key, value in sorted(rows.items()) if math.isfinite(value)}

        def added(connection: sqlite3.Connection) -> None:
            self._check_answers(connection, measurement, self._file.seen)
            identity = tables.measurement_id(connection, measurement)
            if identity is None or len(given) < len(rows):
                raise LedgerError(
                    "a listing is of a measurement that was debited, with finite floats: call debit first"
                )
            if [tables.count(connection, of, identity) for of in ("listings", "answers")] != [listings, answers]:
                return
            tables.insert_answers(connection, identity, self._next_entry(connection), given)
            self._count_answers(measurement, len(given))
            content = ledger_history.summary(measurement, given) | {"listing": dict(listing)}
            self._append(connection, ledger_history.ANSWERS, "", 0, content)

        self._file.write(added)

    def _check_answers(self, connection: sqlite3.Connection, measurement: str, version: Version) -> None:
        """Refuse answers that are not those that were stored: when they are first used, and when others added some.

        None is changed or taken away: where nobody added any, they are as many. The caller is in a transaction.
        """
        known = self._sound.get(measurement)
        if known is not None and known[0] == version:
            return
        identity = tables.measurement_id(connection, measurement)
        there = 0 if identity is None else tables.count(connection, "answers", identity)
        if known is None or known[1] != there:
            ledger_audit.check_answers(connection, self._file.name, measurement)
        self._sound[measurement] = version, there

    def _count_answers(self, measurement: str, added: int) -> None:
        """Keep in mind that this process added answers, after they were checked: none of them is somebody else's."""
        version, there = self._sound[measurement]
        self._sound[measurement] = version, there + added
