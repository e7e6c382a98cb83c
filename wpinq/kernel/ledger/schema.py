"""The tables of a ledger file, and the refusal of every file with other tables.

The entries are the truth: a chain to which each event is appended. The other tables follow from the entries and serve
look-ups. All tables but `accounts` only grow, and there `spent` only rises. Triggers and checks enforce this for every
program that opens the file.

No table depends on the data: a key is stored because it was requested, a value because it was released.
"""

from __future__ import annotations

import functools
import sqlite3
from collections.abc import Iterator
from contextlib import closing

from wpinq.errors import LedgerError
from wpinq.kernel.ledger.chain import LIMIT, Transaction, tampered

#: `wPIN`, in the header of the file: it distinguishes a ledger from another SQLite database.
APPLICATION_ID = 0x7750494E

#: `wPIB`: the header of a copy that is kept to be restored, from which nothing is spent.
BACKUP_ID = 0x77504942

FORMAT = 6

_KINDS = "open account, set budget, debit, answers, suspend, resume, admit, renew, remove, carry, close"

TABLES = {
    "accounts": f"""(name TEXT PRIMARY KEY, schema TEXT NOT NULL, unit TEXT NOT NULL, unit_weight TEXT NOT NULL,
    budget INTEGER NOT NULL CHECK (0 <= budget AND budget < {LIMIT}), spent INTEGER NOT NULL CHECK (0 <= spent),
    suspended INTEGER NOT NULL CHECK (suspended IN (0, 1)), CHECK (spent <= budget)) STRICT, WITHOUT ROWID""",
    "entries": f"""(sequence INTEGER PRIMARY KEY, time TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('{"', '".join(_KINDS.split(", "))}')), actor TEXT NOT NULL, target TEXT NOT NULL,
    amount INTEGER NOT NULL CHECK (0 <= amount AND amount < {LIMIT}),
    hash BLOB NOT NULL CHECK (length(hash) = 32), content TEXT NOT NULL) STRICT""",
    "measurements": "(digest TEXT PRIMARY KEY, entry INTEGER NOT NULL) STRICT, WITHOUT ROWID",
    "plans": "(digest TEXT PRIMARY KEY, entry INTEGER NOT NULL, plan TEXT NOT NULL) STRICT, WITHOUT ROWID",
    "parts": """(partition TEXT NOT NULL, part TEXT NOT NULL, entry INTEGER NOT NULL, demand TEXT NOT NULL,
    PRIMARY KEY (partition, part, entry)) STRICT, WITHOUT ROWID""",
    "answers": """(measurement TEXT NOT NULL, entry INTEGER NOT NULL, answers BLOB NOT NULL,
    PRIMARY KEY (measurement, entry)) STRICT, WITHOUT ROWID""",
}

# Tables that only grow, and the rows that each refuses: INSERT OR REPLACE would fire no trigger of a deletion.
_REFUSED_ROWS = {
    "entries": "NEW.sequence IS NOT (SELECT coalesce(max(sequence), 0) + 1 FROM entries)",
    "measurements": "EXISTS (SELECT 1 FROM measurements WHERE digest = NEW.digest)",
    "plans": "EXISTS (SELECT 1 FROM plans WHERE digest = NEW.digest)",
    "parts": "EXISTS (SELECT 1 FROM parts WHERE partition = NEW.partition AND part = NEW.part AND entry >= NEW.entry)",
    "answers": "EXISTS (SELECT 1 FROM answers WHERE measurement = NEW.measurement AND entry >= NEW.entry)",
}
_SAME_ACCOUNT = "(NEW.name, NEW.schema, NEW.unit, NEW.unit_weight) IS (OLD.name, OLD.schema, OLD.unit, OLD.unit_weight)"
_KNOWN_ACCOUNT = "EXISTS (SELECT 1 FROM accounts WHERE name = NEW.name)"


def _refusal(table: str, change: str, reason: str, when: str = "true") -> str:
    name = f"{table}_{change.lower()}"
    raised = f"BEGIN SELECT RAISE(ABORT, '{reason}'); END"
    return f"CREATE TRIGGER {name} BEFORE {change} ON {table} WHEN {when} {raised}"


def _statements() -> Iterator[str]:
    yield from (f"CREATE TABLE {table} {columns}" for table, columns in TABLES.items())
    for table, refused in _REFUSED_ROWS.items():
        yield _refusal(table, "UPDATE", f"a ledger only grows: no update of {table}")
        yield _refusal(table, "DELETE", f"a ledger only grows: no delete of {table}")
        yield _refusal(table, "INSERT", f"rows of {table} are recorded once and in order", refused)
    once = "an account is opened once, with nothing spent"
    yield _refusal("accounts", "INSERT", once, f"NEW.spent <> 0 OR {_KNOWN_ACCOUNT}")
    kept = "what is spent is never refunded, and an account protects what it was opened for"
    yield _refusal("accounts", "UPDATE", kept, f"NEW.spent < OLD.spent OR NOT ({_SAME_ACCOUNT})")
    yield _refusal("accounts", "DELETE", "an account is for ever")


def create(connection: Transaction) -> None:
    """Make an empty database a ledger; the caller is in a transaction."""
    for statement in _statements():
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")


def check(connection: Transaction, path: str, identity: int = APPLICATION_ID) -> None:
    """Refuse a database that is no ledger, or one with other tables, checks or triggers.

    Raises
    ------
    LedgerError
        Naming the file and the difference.
    """
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application == BACKUP_ID != identity:
        raise LedgerError(
            f"{path} is the backup of a ledger, and a budget would be spent twice from it: "
            "restore it with wpinq ledger restore"
        )
    if application != identity:
        raise LedgerError(f"{path} is not a ledger: give the path of a ledger or a new file")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version != FORMAT:
        raise LedgerError(
            f"{path} is a ledger of format {version} and this wpinq reads format {FORMAT}: "
            "use the version of wpinq that wrote it"
        )
    if _definitions(connection) != _expected():
        raise tampered(path, "its tables, checks or triggers are not those of a ledger")


def _definitions(connection: Transaction) -> frozenset[tuple[str, str, str]]:
    rows = connection.execute(
        "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name <> 'sqlite_stat1'"
    )
    return frozenset(rows.fetchall())


@functools.cache
def _expected() -> frozenset[tuple[str, str, str]]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        create(connection)
        return _definitions(connection)
