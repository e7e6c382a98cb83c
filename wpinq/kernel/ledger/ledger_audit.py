"""The proof that a ledger is what its chain says: quickly by signs when it is opened, and wholly when they fail.

The signs take time that goes with the accounts, never with the history: the last entries follow from one another and
have happened, and the totals that the last one carries are those of the books. Where one of them is missing, all is
verified, which says what is wrong, or finds that nothing is.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import sqlite3
from typing import Any

from wpinq.errors import LedgerError
from wpinq.kernel.ledger import chain, ledger_totals, schema
from wpinq.kernel.ledger.chain import ANSWERS, IMPOSSIBLE
from wpinq.kernel.ledger.debit import MARK
from wpinq.kernel.ledger.head import START, Head
from wpinq.kernel.ledger.ledger_stored import Stored
from wpinq.kernel.ledger.ledger_totals import TOTALS

TAIL = 32
"""How many of the last entries are looked at when a ledger is opened."""

SMALL = 2**16
"""Where more bytes of answers than this were stored, they are checked when they are first used, and not before."""

EXPECTED = "the head that is expected"
"""How an entry is known that somebody kept elsewhere."""

_FOLLOWING = {
    "accounts": "the account of {!r} is not what the entries add up to",
    "measurements": "the measurements are not those that the entries paid for",
    "parts": "the demands of the parts are not those of the entries",
    "answered": "the entries that answered measurements are not those of the history",
    "listings": "the listings are not those of the entries",
}
"""The tables that the entries add up to, and what is said of one that is something else."""

_OF_ANALYSTS = tuple(
    f"SELECT 1 FROM {table} AS own WHERE instr({name}, '{MARK}') AND NOT EXISTS "
    f"(SELECT 1 FROM {table} WHERE {name} = substr(own.{name}, 1, instr(own.{name}, '{MARK}') - 1))"
    for table, name in (("accounts", "name"), ("measurements", "digest"))
)
"""Accounts within none, and measurements that an analyst paid for and no source did."""


def check(connection: sqlite3.Connection, name: str, last: int = TAIL) -> None:
    """Look for the signs, at so many of the last entries, and verify all where they fail, in a transaction.

    Raises
    ------
    LedgerError
        As `verify`.
    """
    with contextlib.suppress(*IMPOSSIBLE, sqlite3.Error):
        if _signs_hold(connection, last):
            return
    verify(connection, name)


def check_head(connection: sqlite3.Connection, name: str, known: Head, told: str) -> None:
    """Refuse a ledger that does not hold an entry which is known of it.

    Raises
    ------
    LedgerError
        Saying how it was known.
    """
    if chain.holds(connection, known):
        return
    now = chain.head(connection)
    lost = (
        f"it ends with entry {now.sequence}: its -wal was lost, or an older copy was put in its place"
        if now.sequence < known.sequence
        else f"its entry {known.sequence} is another: it is another ledger, or goes another way after an older copy"
    )
    raise LedgerError(
        f"{name} does not hold entry {known.sequence}, {told}: {lost}. What was spent since is not in it, and "
        "would be spent again: put the ledger back, or start a new one with the budget that is left"
    )


def _signs_hold(connection: sqlite3.Connection, last: int) -> bool:
    query = "SELECT * FROM entries ORDER BY sequence DESC LIMIT ?"
    rows = connection.execute(query, (max(last, 1) + 1,)).fetchall()
    contents = {row[0]: json.loads(row[5]) for row in rows[: max(last, 1)]}
    if rows and len(rows) <= max(last, 1):
        rows.append((0, *[None] * 5, START.hash))
    for (*row, chained), before in itertools.pairwise(rows):
        if row[0] != before[0] + 1 or chain.chain(before[-1], tuple(row)) != chained:
            return False
    totals = ledger_totals.now(connection, ledger_totals.of_accounts(connection))
    if not rows:
        return totals | {"schema": 0} == ledger_totals.carried(0, 0, 0)
    if contents[rows[0][0]].get(TOTALS) != totals:
        return False
    told = [(row[0], row[2], contents[row[0]]) for row in rows[:last] if row[0]]
    first = {content["measurement"]: entry for entry, kind, content in told if kind == ANSWERS}  # the last comes first
    return all(_happened(connection, *entry) for entry in told) and all(
        _sound(connection, measurement, since) for measurement, since in first.items()
    )


def _happened(connection: sqlite3.Connection, sequence: int, kind: str, content: dict[str, Any]) -> bool:
    """Whether the tables have what one entry put there; what it did to its account is in the totals."""

    def there(table: str, where: str, *values: object) -> bool:
        return connection.execute(f"SELECT 1 FROM {table} WHERE {where}", values).fetchone() is not None

    if kind == "debit":
        raised = all(
            there("parts", "partition = ? AND part = ? AND entry = ? AND demand = ?", partition, part, sequence, demand)
            for partition, part, demand in content["parts"]
        )
        paid = {each for digest in content["measurements"] for each in (digest, digest.partition(MARK)[0])}
        return raised and all(there("measurements", "digest = ?", digest) for digest in paid)
    where = "entry = ? AND measurement = (SELECT id FROM measurements WHERE digest = ?)"
    return kind != ANSWERS or there("answered", where, sequence, content["measurement"])


def _sound(connection: sqlite3.Connection, measurement: str, since: int) -> bool:
    """Whether a measurement has what an entry stored, and what later ones did, as far as that is little."""
    query = (
        "SELECT sum(length(answers)) FROM answer_sets "
        "WHERE measurement = (SELECT id FROM measurements WHERE digest = ?) AND entry >= ?"
    )
    (size,) = connection.execute(query, (measurement, since)).fetchone()
    return (size or 0) > SMALL or Stored(since).catch_up(connection, measurement) is None


def catch_up(connection: sqlite3.Connection, name: str, measurement: str, stored: Stored) -> None:
    """Take in what was stored of a measurement since, or refuse it: it is something else than its entries say.

    The caller is in a transaction. What was taken in before a refusal must not be used.
    """
    wrong: int | None = 0
    with contextlib.suppress(*IMPOSSIBLE):
        wrong = stored.catch_up(connection, measurement)
    if wrong is not None:
        where = f"of entry {wrong} " if wrong else "of a measurement "
        raise _tampered(name, f"the answers {where}are not those that were stored")


def check_parts(connection: sqlite3.Connection, name: str, partition: str) -> None:
    """Refuse demands of a partition that are not those of their entries. The caller is in a transaction."""
    rows = connection.execute("SELECT entry, part, demand FROM parts WHERE partition = ?", (partition,))
    query = "SELECT sequence, content FROM entries WHERE sequence IN (SELECT entry FROM parts WHERE partition = ?)"
    told = set()
    with contextlib.suppress(*IMPOSSIBLE):
        for entry, content in connection.execute(query, (partition,)):
            told |= {(entry, part, demand) for of, part, demand in json.loads(content)["parts"] if of == partition}
    if set(rows) != told:
        raise _tampered(name, _FOLLOWING["parts"])


def verify(connection: sqlite3.Connection, name: str, identity: int = schema.APPLICATION_ID) -> None:
    """Check the chain, then every table against what the chain adds up to. The caller holds a read transaction.

    Raises
    ------
    LedgerError
        Naming the first entry that is broken, or the table that does not follow from the entries.
    """
    schema.check(connection, name, identity)
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as books:
        books.execute("BEGIN")  # one transaction is faster than one a statement
        schema.create(books)
        _replay(connection, books, name)
        for table, reason in _FOLLOWING.items():
            query = f"SELECT * FROM {table}"
            wrong = set(connection.execute(query)) ^ set(books.execute(query))
            if wrong:
                raise _tampered(name, reason.format(min(row[0] for row in wrong)))
    query = "SELECT 1 FROM answer_sets WHERE measurement NOT IN (SELECT id FROM measurements)"
    if connection.execute(query).fetchone() is not None:
        raise _tampered(name, "there are answers of what was never paid for")
    for query in _OF_ANALYSTS:
        if connection.execute(query).fetchone() is not None:
            raise _tampered(name, "there is what an analyst has, and no source")
    answered = "SELECT measurement FROM answered UNION SELECT measurement FROM answer_sets"
    query = f"SELECT digest FROM measurements WHERE id IN ({answered})"
    for (measurement,) in connection.execute(query).fetchall():
        catch_up(connection, name, measurement, Stored())
    if connection.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
        raise _tampered(name, "the file is damaged")


def _replay(connection: sqlite3.Connection, books: sqlite3.Connection, name: str) -> None:
    """Do to empty books what the entries say."""
    previous, accounts, carried = START.hash, 0, False
    cursor = connection.execute("SELECT * FROM entries ORDER BY sequence")
    for expected, (*row, chained) in enumerate(cursor, start=1):
        sequence, time, kind, source, amount, text = row
        if sequence != expected:
            raise _tampered(name, f"entry {expected} is missing")
        if chain.chain(previous, (sequence, time, kind, source, amount, text)) != chained:
            raise _tampered(name, f"entry {sequence} is not the one that was recorded, or the one before is missing")
        try:
            content = json.loads(text)
            before = ledger_totals.account(books, source)
            chain.carry_out(books, sequence, kind, source, amount, content)
            after = ledger_totals.account(books, source)
            accounts += ledger_totals.written(after) - ledger_totals.written(before)
            if carried or TOTALS in content:  # entries of older formats have none
                carried = True
                _check_totals(content[TOTALS], ledger_totals.now(books, accounts))
        except (*IMPOSSIBLE, LedgerError, sqlite3.Error):
            raise _tampered(name, f"entry {sequence} does not follow from those before it") from None
        previous = chained


def _check_totals(told: ledger_totals.Totals, found: ledger_totals.Totals) -> None:
    if told.keys() != found.keys() or type(told["schema"]) is not int or told | {"schema": found["schema"]} != found:
        raise LedgerError("the totals are not those of the books")


def _tampered(name: str, reason: str) -> LedgerError:
    return LedgerError(
        f"{name} has been tampered with: {reason}. "
        "Restore it from a copy, or start a new one with the budget that is left"
    )
