"""Copies of a ledger that are kept: made whole while it is in use, marked so that nothing is spent from them, restored.

What is restored must hold the head that the ledger is known to have had: a copy that is older has lost debits, and
would give back what they spent.
"""

from __future__ import annotations

import os
import pathlib
import sqlite3
from contextlib import closing

from wpinq.errors import LedgerError
from wpinq.kernel.ledger import chain, ledger_audit, place, schema
from wpinq.kernel.ledger.head import Head
from wpinq.kernel.ledger.head_file import HAS_TURNS, HeadFile, Note
from wpinq.kernel.ledger.ledger_upgrade import upgrade
from wpinq.kernel.ledger.store import PATIENCE, LedgerFile


def backup(ledger: str | os.PathLike[str], copy: str | os.PathLike[str]) -> Head:
    """Copy a ledger, at one moment, into a new file; the head that the copy has.

    Parameters
    ----------
    ledger : path
        It may be in use.
    copy : path
        A file that is not there yet. Its mode becomes 0600.

    Raises
    ------
    LedgerError
        When the ledger cannot be opened or is not whole, or the copy cannot be made.
    """
    whole = os.path.abspath(copy)
    _check_missing(whole, "copies are never written over one another")
    file = LedgerFile(os.fspath(ledger), create=False)
    try:
        with place.unfinished(whole) as part:
            # Not in a transaction: SQLite copies what was there when it began, and begins again where somebody writes.
            file.read(lambda connection: _copied(connection, part, schema.BACKUP_ID))
            head = _checked(part, schema.BACKUP_ID)
            place.finish(part, whole)
            return head
    except OSError as error:
        raise LedgerError(f"{whole}: {place.explain(whole, error)}") from None
    finally:
        file.close()


def restore(copy: str | os.PathLike[str], ledger: str | os.PathLike[str], expected: str) -> Head:
    """Make a ledger of a copy that `backup` made, where there is none; the head that it has.

    Parameters
    ----------
    copy : path
        What `backup` made.
    ledger : path
        Where the ledger was. Neither it nor what SQLite keeps beside it may be there.
    expected : str
        The last head of the ledger that is known, as was printed after runs.

    Raises
    ------
    LedgerError
        When the copy does not hold that head: what was spent since would be spent again.
    """
    known, whole = Head.parse(expected), os.path.realpath(ledger)
    _check_missing(whole, "move it away, if it is damaged")
    companion = HeadFile(whole) if HAS_TURNS else None
    place.check_free(whole, None)
    if not os.path.isfile(copy):
        raise LedgerError(f"{os.fspath(copy)}: there is no such file")
    try:
        noted = None if companion is None else companion.head(PATIENCE)
        with place.unfinished(whole) as part:
            with closing(sqlite3.connect(f"{pathlib.Path(copy).absolute().as_uri()}?mode=ro", uri=True)) as connection:
                if connection.execute("PRAGMA application_id").fetchone() != (schema.BACKUP_ID,):
                    raise LedgerError(f"{os.fspath(copy)} is no backup of a ledger: wpinq budget backup makes them")
                _copied(connection, part, schema.APPLICATION_ID)
            with closing(sqlite3.connect(part, isolation_level=None)) as connection:
                upgrade(connection, "the copy")  # which may be of a former format
            head = _checked(part, schema.APPLICATION_ID, known, noted)

            def placed(note: Note) -> None:
                _check_missing(whole, "another process made it meanwhile")
                note(head)  # first: a ledger that is missing is noticed, an older one in its place would not be
                place.finish(part, whole)

            if companion is None:
                placed(lambda head: None)
            else:
                companion.alone(placed, PATIENCE)
            return head
    except sqlite3.DatabaseError:
        raise LedgerError(f"{os.fspath(copy)} cannot be read, or is no backup of a ledger") from None
    except OSError as error:
        raise LedgerError(f"{whole}: {place.explain(whole, error)}") from None


def _check_missing(path: str, reason: str) -> None:
    if os.path.lexists(path):
        raise LedgerError(f"{path} is there already: {reason}, or give the name of a new file")


def _copied(connection: sqlite3.Connection, part: str, identity: int) -> None:
    with closing(sqlite3.connect(part, isolation_level=None)) as copied:
        copied.execute("PRAGMA synchronous = FULL")
        connection.backup(copied)
        copied.execute("PRAGMA journal_mode = DELETE")
        copied.execute(f"PRAGMA application_id = {identity}")


def _checked(part: str, identity: int, known: Head | None = None, noted: Head | None = None) -> Head:
    """The head of a copy that is what its chain says, and holds what is known."""
    with closing(sqlite3.connect(part, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        ledger_audit.verify(connection, "the copy", identity)
        for head, told in ((known, ledger_audit.EXPECTED), (noted, "which it had by its -head file")):
            if head is not None:
                ledger_audit.check_head(connection, "the copy", head, told)
        return chain.head(connection)
