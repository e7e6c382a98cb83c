"""Copies of a ledger: backups and their restoration, and a ledger carried to a new file.

A backup is marked, so that nothing is spent from it. A restored ledger must contain the last head that is known: an
older copy has lost debits, and would give back their budget. A ledger that is carried is closed for ever first, so that
no budget is there twice.
"""

from __future__ import annotations

import os
import pathlib
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager

from wpinq.errors import LedgerError, place_reason
from wpinq.kernel.ledger import chain, place, schema, store
from wpinq.kernel.ledger.accounts import all_accounts, open_account, set_suspended
from wpinq.kernel.ledger.debit import store_plan
from wpinq.kernel.ledger.head_file import HeadFile, fcntl
from wpinq.kernel.ledger.ledger import EXPECTED, Ledger
from wpinq.kernel.ledger.verification import verify

#: The ending of the folder next to a ledger in which a service keeps a record of each release in flight.
INFLIGHT = "-inflight"

#: The file in that folder that the one service of a ledger keeps locked.
SERVICE = ".service"


def backup(ledger: str | os.PathLike[str], copy: str | os.PathLike[str]) -> chain.Head:
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
    _check_missing(whole, "copies are never overwritten")
    file = store.SQLiteStore(os.fspath(ledger), create=False)
    try:
        with place.unfinished(whole) as part:
            # Not in a transaction: SQLite copies the state of its beginning, and begins again where somebody writes.
            file.flush()
            file.read(lambda connection: _copy(connection, part, schema.BACKUP_ID))
            head = _checked(part, schema.BACKUP_ID)
            place.finish(part, whole)
            return head
    except OSError as error:
        raise LedgerError(f"{whole}: {place_reason(whole, error)}") from None
    finally:
        file.close()


def restore(copy: str | os.PathLike[str], ledger: str | os.PathLike[str], expected_head: str) -> chain.Head:
    """Make a ledger of a copy that `backup` made, where there is none; the head that it has.

    Parameters
    ----------
    copy : path
        The file that `backup` made.
    ledger : path
        The place of the ledger. Neither it nor the files that SQLite keeps next to it may be there.
    expected_head : str
        The last head of the ledger that is known, as was printed after runs.

    Raises
    ------
    LedgerError
        When the copy does not contain that head: debits since then would be spent again.
    """
    known, whole = chain.Head.parse(expected_head), os.path.realpath(ledger)
    if not os.path.isfile(copy):
        raise LedgerError(f"{os.fspath(copy)}: there is no such file")

    def fill(part: str, noted: chain.Head | None) -> chain.Head:
        with closing(sqlite3.connect(f"{pathlib.Path(copy).absolute().as_uri()}?mode=ro", uri=True)) as connection:
            if connection.execute("PRAGMA application_id").fetchone() != (schema.BACKUP_ID,):
                raise LedgerError(f"{os.fspath(copy)} is no backup of a ledger: wpinq ledger backup makes them")
            _copy(connection, part, schema.APPLICATION_ID)
        return _checked(part, schema.APPLICATION_ID, known, noted)

    try:
        return _place(whole, fill)
    except sqlite3.DatabaseError:
        raise LedgerError(f"{os.fspath(copy)} cannot be read, or is no backup of a ledger") from None


def carry(old: str | os.PathLike[str], new: str | os.PathLike[str], expected_head: str | None = None) -> chain.Head:
    """Close a ledger for ever, and carry its accounts, suspensions and plans to a new one.

    Returns the head of the new ledger.

    Accounts keep declarations, units, budgets and all that was spent, analysts' too. Answers stay in the old ledger: no
    measurement is paid for in the new one.

    Parameters
    ----------
    old : path
        The ledger. One that was closed but not carried to its end, as after a crash, is carried to the same place only.
    new : path
        A place without a ledger.
    expected_head : str, optional
        A head that the old ledger has had.

    Raises
    ------
    LedgerError
        When the old ledger is not whole or was carried before, when a service runs over it or left releases in flight,
        or when the new one cannot be made.
    """
    whole = os.path.realpath(new)
    closed = store.SQLiteStore(os.fspath(old), create=False)
    with Ledger(closed, expected_head=expected_head) as ledger, without_service(os.path.realpath(old)):
        ledger.verify()

        def fill(part: str, noted: chain.Head | None) -> chain.Head:
            head = closed.write(lambda transaction: close(transaction, whole))
            with closing(sqlite3.connect(part, isolation_level=None)) as connection:
                connection.execute("BEGIN")
                schema.create(connection)
                closed.snapshot(lambda transaction: _carry(transaction, connection, head))
                connection.execute("COMMIT")
            return _checked(part, schema.APPLICATION_ID, None, noted)

        head = _place(whole, fill)
        content = {"to": whole, "head": str(head)}
        closed.write(lambda transaction: chain.append(transaction, chain.CLOSE, "", 0, content, chain.CURATOR))
    return head


@contextmanager
def without_service(path: str) -> Iterator[None]:
    """Keep services off a ledger for a while.

    Refused where a service runs, or ended with releases in flight.
    """
    folder = path + INFLIGHT
    if not os.path.isdir(folder):  # no service ever ran here
        yield
        return
    with ExitStack() as stack:
        try:
            file = os.open(os.path.join(folder, SERVICE), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            stack.callback(os.close, file)
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            free = all(name.startswith(".") for name in os.listdir(folder))
        except OSError:
            free = False
        if not free:
            raise LedgerError(
                f"a service uses {path} or left releases in flight: stop it; after a crash, start it once first"
            )
        yield


def close(transaction: chain.Transaction, target: str) -> chain.Head:
    """Close a ledger for ever, in a write transaction; its head.

    One that was closed for the same target, and not continued there yet, stays as it is.
    """
    last = chain.read(transaction, "sequence = (SELECT max(sequence) FROM entries)", ())
    if not last or last[0].kind != chain.CLOSE:
        chain.append(transaction, chain.CLOSE, "", 0, {"to": target}, chain.CURATOR)
    elif "head" in last[0].content or last[0].content["to"] != target:
        raise LedgerError(f"this ledger is closed permanently and continued in {last[0].content['to']}: use that one")
    return chain.head(transaction)


def _carry(transaction: chain.Transaction, new: chain.Transaction, head: chain.Head) -> None:
    """Record in a new ledger the state of an old one."""
    plans = dict(transaction.execute("SELECT digest, plan FROM plans ORDER BY digest").fetchall())
    entry = chain.append(new, chain.CARRY, "", 0, {"from": str(head), "plans": sorted(plans)}, chain.CURATOR)
    for digest, plan in plans.items():
        store_plan(new, digest, entry, plan)
    accounts = all_accounts(transaction)
    for account in accounts:
        open_account(new, account, chain.CURATOR)
    set_suspended(new, [account.name for account in accounts if account.suspended], True, chain.CURATOR)


def _place(whole: str, fill: Callable[[str, chain.Head | None], chain.Head]) -> chain.Head:
    """Put a ledger where none is, from a temporary file that is filled next to it.

    The head is noted before the file is put in place.
    """
    _check_missing(whole, "move it away if it is damaged")
    head_file = HeadFile(whole)
    place.check_free(whole, None)
    try:
        noted = head_file.head(store.PATIENCE)
        with place.unfinished(whole) as part:
            head = fill(part, noted)

            def finish(note: Callable[[chain.Head], None]) -> None:
                _check_missing(whole, "another process created it")
                note(head)  # first: a ledger that is missing is noticed, an older one in its place would not be
                place.finish(part, whole)

            head_file.take_turn(finish, store.PATIENCE)
            return head
    except OSError as error:
        raise LedgerError(f"{whole}: {place_reason(whole, error)}") from None


def _check_missing(path: str, reason: str) -> None:
    if os.path.lexists(path):
        raise LedgerError(f"{path} exists ({reason}): give the name of a new file")


def _copy(connection: sqlite3.Connection, part: str, identity: int) -> None:
    with closing(sqlite3.connect(part, isolation_level=None)) as copied:
        copied.execute("PRAGMA synchronous = FULL")
        connection.backup(copied)
        copied.execute("PRAGMA journal_mode = DELETE")
        copied.execute(f"PRAGMA application_id = {identity}")


def _checked(part: str, identity: int, known: chain.Head | None = None, noted: chain.Head | None = None) -> chain.Head:
    """The head of a copy that follows from its chain, and contains the known heads."""
    with closing(sqlite3.connect(part, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        schema.check(connection, "the copy", identity)
        verify(connection, "the copy", whole=True)
        for head, source in ((known, EXPECTED), (noted, "which it had by its -head file")):
            if head is not None:
                chain.check_head(connection, "the copy", head, source)
        return chain.head(connection)
