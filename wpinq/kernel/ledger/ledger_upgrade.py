"""The way of an older ledger to the format of today: verified whole, and given what it lacks, in one transaction."""

from __future__ import annotations

import contextlib
import itertools
import json
import sqlite3

from wpinq.kernel.ledger import ledger_audit, schema
from wpinq.kernel.ledger.chain import ANSWERS, IMPOSSIBLE


def upgrade(connection: sqlite3.Connection, name: str) -> None:
    """Bring a ledger to the format of today. No other process has it open meanwhile.

    One of an older version of wpinq would not see that the format has changed, and append entries as it knows them.
    The first entry that is written afterwards carries totals; until then every opening verifies the whole.

    Raises
    ------
    sqlite3.OperationalError
        When somebody else has it open.
    LedgerError
        When it is not what its entries add up to; it stays as it was.
    """
    # Only who is alone can leave the write-ahead log; whoever opens the ledger later takes it up again.
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("BEGIN EXCLUSIVE")
    with connection:  # commits, or rolls back
        version = schema.check(connection, name)
        if version == schema.FORMAT:  # another process was here since
            return
        schema.create(connection, above=version)
        ids = dict(connection.execute("SELECT digest, id FROM measurements"))
        rows = connection.execute("SELECT sequence, content FROM entries WHERE kind = ?", (ANSWERS,)).fetchall()
        answered, sets = [], {}
        with contextlib.suppress(*IMPOSSIBLE):  # which the verification finds out
            answered = [(ids[json.loads(content)["measurement"]], sequence) for sequence, content in rows]
            sets = dict(sorted((dict.fromkeys(answered, b"") | _sets(connection)).items()))
        if version < 4:
            connection.executemany("INSERT INTO answered (measurement, entry) VALUES (?, ?)", answered)
        stored = [(*pair, answers) for pair, answers in sets.items()]
        connection.executemany("INSERT INTO answer_sets (measurement, entry, answers) VALUES (?, ?, ?)", stored)
        connection.execute("DROP TABLE answers")
        ledger_audit.verify(connection, name)


def _sets(connection: sqlite3.Connection) -> dict[tuple[int, int], bytes]:
    """Measurement and entry -> the answers that were rows, as `ledger_stored` packs them."""
    rows = connection.execute("SELECT measurement, entry, key, value FROM answers ORDER BY measurement, entry, key")
    return {
        pair: b"".join(len(key).to_bytes(8, "big") + key + value for *_, key, value in group)
        for pair, group in itertools.groupby(rows, key=lambda row: row[:2])
    }
