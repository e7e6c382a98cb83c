"""What a ledger file looks like, and the refusal of anything that looks otherwise.

The entries are the truth: a chain to which everything that happened is appended. The other tables are what the
entries add up to, kept for speed. All tables but `accounts` only ever grow, and there `spent` only ever rises: the
triggers and checks below hold for whoever opens the file, not just for this library.

No table knows of the data: a key is there because somebody asked for it, a value because it was released.
"""

from __future__ import annotations

import functools
import sqlite3

from wpinq.errors import LedgerError

APPLICATION_ID = 0x7750494E
"""`wPIN`, in the header of the file: how a ledger is told from another SQLite database."""

BACKUP_ID = 0x77504942
"""`wPIB`: of a copy that is kept to be restored, and that nothing is spent from."""

FORMAT = 5
"""What is written. Of the older ones, 1 was the first, 2 had accounts that tables share, 3 listings and 4 totals; in
all of them each answer was a row. They are brought to this one when they are opened. Versions that know an older one
only refuse it: they would append entries without totals, and leave out what keeps a listing and an account true."""

LIMIT = 2**62
"""Budgets are below it and so are charges, so no sum of the two leaves the 64 bits of an SQLite integer."""

_TABLES = (
    f"""CREATE TABLE accounts (
    name TEXT PRIMARY KEY,
    schema TEXT NOT NULL,
    unit TEXT NOT NULL,
    unit_weight TEXT NOT NULL,
    budget INTEGER NOT NULL CHECK (0 <= budget AND budget < {LIMIT}),
    spent INTEGER NOT NULL CHECK (0 <= spent),
    CHECK (spent <= budget)
) STRICT, WITHOUT ROWID""",
    f"""CREATE TABLE entries (
    sequence INTEGER PRIMARY KEY,
    time TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('open account', 'set budget', 'debit', 'answers')),
    source TEXT NOT NULL,
    amount INTEGER NOT NULL CHECK (0 <= amount AND amount < {LIMIT}),
    content TEXT NOT NULL,
    hash BLOB NOT NULL CHECK (length(hash) = 32)
) STRICT""",
    """CREATE TABLE measurements (
    id INTEGER PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE
) STRICT""",
    """CREATE TABLE parts (
    partition TEXT NOT NULL,
    part TEXT NOT NULL,
    entry INTEGER NOT NULL REFERENCES entries (sequence),
    demand TEXT NOT NULL,
    PRIMARY KEY (partition, part, entry)
) STRICT, WITHOUT ROWID""",
)

_ANSWERS = """CREATE TABLE answers (
    measurement INTEGER NOT NULL REFERENCES measurements (id),
    key BLOB NOT NULL,
    value BLOB NOT NULL CHECK (length(value) = 8),
    entry INTEGER NOT NULL,
    PRIMARY KEY (measurement, key)
) STRICT, WITHOUT ROWID"""

_LISTINGS = """CREATE TABLE listings (
    measurement INTEGER NOT NULL REFERENCES measurements (id),
    entry INTEGER NOT NULL REFERENCES entries (sequence),
    PRIMARY KEY (measurement, entry)
) STRICT, WITHOUT ROWID"""

_ANSWERED = """CREATE TABLE answered (
    measurement INTEGER NOT NULL,
    entry INTEGER NOT NULL,
    PRIMARY KEY (measurement, entry)
) STRICT, WITHOUT ROWID"""

_ANSWER_SETS = """CREATE TABLE answer_sets (
    measurement INTEGER NOT NULL,
    entry INTEGER NOT NULL,
    answers BLOB NOT NULL,
    PRIMARY KEY (measurement, entry)
) STRICT, WITHOUT ROWID"""


def _refusal(name: str, when: str, reason: str) -> str:
    return f"CREATE TRIGGER {name} BEFORE {when} BEGIN SELECT RAISE(ABORT, '{reason}'); END"


def _only_grow(*tables: str) -> tuple[str, ...]:
    return tuple(
        _refusal(f"{table}_{change}", f"{change} ON {table}", f"a ledger only grows: no {change} of {table}")
        for table in tables
        for change in ("update", "delete")
    )


# INSERT OR REPLACE deletes without firing the delete triggers, so a second insert of a row is refused as well.
_TRIGGERS = (
    *_only_grow("entries", "measurements", "parts"),
    _refusal(
        "entries_in_order",
        "INSERT ON entries WHEN NEW.sequence IS NOT (SELECT coalesce(max(sequence), 0) + 1 FROM entries)",
        "entries are appended in order",
    ),
    _refusal(
        "measurements_once",
        "INSERT ON measurements WHEN EXISTS (SELECT 1 FROM measurements WHERE digest = NEW.digest OR id = NEW.id)",
        "a measurement is recorded once",
    ),
    _refusal(
        "parts_once",
        "INSERT ON parts WHEN EXISTS "
        "(SELECT 1 FROM parts WHERE partition = NEW.partition AND part = NEW.part AND entry >= NEW.entry)",
        "the demand of a part is recorded in order",
    ),
    _refusal("accounts_delete", "DELETE ON accounts", "an account is for ever"),
    _refusal(
        "accounts_start_unspent",
        "INSERT ON accounts WHEN NEW.spent <> 0 OR EXISTS (SELECT 1 FROM accounts WHERE name = NEW.name)",
        "an account is opened once, with nothing spent",
    ),
    _refusal(
        "accounts_never_refund",
        "UPDATE ON accounts WHEN NEW.spent < OLD.spent OR NEW.name IS NOT OLD.name OR NEW.schema IS NOT OLD.schema "
        "OR NEW.unit IS NOT OLD.unit OR NEW.unit_weight IS NOT OLD.unit_weight",
        "what is spent is never refunded, and an account protects what it was opened for",
    ),
)

_LISTING_TRIGGERS = (
    *_only_grow("listings"),
    _refusal(
        "listings_once",
        "INSERT ON listings WHEN EXISTS (SELECT 1 FROM listings WHERE entry >= NEW.entry)",
        "listings are recorded in order",
    ),
)

_ANSWERS_TRIGGERS = (
    *_only_grow("answers"),
    "CREATE TRIGGER answers_first_stands BEFORE INSERT ON answers WHEN EXISTS "
    "(SELECT 1 FROM answers WHERE measurement = NEW.measurement AND key = NEW.key) "
    "BEGIN SELECT RAISE(IGNORE); END",
)


def _in_order(table: str, reason: str) -> tuple[str, ...]:
    """A table of measurements and entries only grows, and each measurement at its end."""
    later = f"SELECT 1 FROM {table} WHERE measurement = NEW.measurement AND entry >= NEW.entry"
    return *_only_grow(table), _refusal(f"{table}_once", f"INSERT ON {table} WHEN EXISTS ({later})", reason)


_PARTS = (
    (1, FORMAT, (*_TABLES, *_TRIGGERS)),
    (1, 4, (_ANSWERS, *_ANSWERS_TRIGGERS)),
    (3, FORMAT, (_LISTINGS, *_LISTING_TRIGGERS)),
    (4, FORMAT, (_ANSWERED, *_in_order("answered", "the entries of a measurement are recorded in order"))),
    (5, FORMAT, (_ANSWER_SETS, *_in_order("answer_sets", "the answers of a measurement are stored in order"))),
)
"""The first format and the last that have something, and what makes it."""


def create(connection: sqlite3.Connection, upto: int = FORMAT, above: int = 0) -> None:
    """Make an empty database a ledger, or add to an older one what it lacks. The caller holds the transaction."""
    for first, last, statements in _PARTS:
        for statement in statements if above < first <= upto <= last else ():
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {upto}")


def counter(connection: sqlite3.Connection) -> int:
    """How often tables or triggers were made or dropped: SQLite counts it."""
    (count,) = connection.execute("PRAGMA schema_version").fetchone()
    return int(count)


def check(connection: sqlite3.Connection, path: str, identity: int = APPLICATION_ID) -> int:
    """The format of a ledger; a refusal of what is none, or of one whose checks and triggers were changed."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application == BACKUP_ID != identity:
        raise LedgerError(
            f"{path} is the backup of a ledger, and what is spent from it is spent twice: "
            "restore it with wpinq budget restore"
        )
    if application != identity:
        raise LedgerError(f"{path} is not a ledger: give the path of a ledger or a new file")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if not 1 <= version <= FORMAT:
        raise LedgerError(
            f"{path} is a ledger of format {version} and this wpinq reads formats 1 to {FORMAT}: "
            "use the version of wpinq that wrote it"
        )
    if _definitions(connection) != _expected(version):
        raise LedgerError(
            f"{path} has been tampered with: its tables, checks or triggers are not those of a ledger. "
            "Restore it from a copy, or start a new one with the budget that is left"
        )
    return int(version)


def _definitions(connection: sqlite3.Connection) -> frozenset[tuple[str, str, str]]:
    rows = connection.execute(
        "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name <> 'sqlite_stat1'"
    )
    return frozenset(rows.fetchall())


@functools.cache
def _expected(version: int) -> frozenset[tuple[str, str, str]]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        create(connection, version)
        return _definitions(connection)
    finally:
        connection.close()
