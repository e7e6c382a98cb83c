"""The place of a ledger file: its absence, its making, and the refusal of an unfit place."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import tempfile
from collections.abc import Callable, Iterator

from wpinq.errors import LedgerError, place_reason
from wpinq.kernel.ledger.chain import Head, Transaction

#: The endings of files next to a ledger in which SQLite keeps part of it.
_PARTS = ("-wal", "-journal")


def exists(path: str, known: Head | None, create: bool) -> bool:
    """Whether there is a file that may be a ledger; False where one is to be made.

    `known` is the head that the ledger had reached, by its head file.

    Raises
    ------
    LedgerError
        When the file can be no ledger, or is missing from a place where one was.
    """
    try:
        status = os.stat(path)
    except FileNotFoundError:
        check_free(path, known)
        if create and os.path.isdir(os.path.dirname(os.path.realpath(path))):
            return False
        raise LedgerError(f"{path}: {place_reason(path)}") from None
    if not stat.S_ISREG(status.st_mode):
        raise LedgerError(f"{path}: {place_reason(path)}")
    if status.st_size == 0:  # an interrupted copy, or an emptied file: as a new ledger it would have spent nothing
        raise LedgerError(f"{path} is empty: put the ledger back, or remove the file to start a new one")
    if status.st_nlink > 1:
        raise LedgerError(
            f"{path} has {status.st_nlink} names (hard links), and the files beside one of them are not found from the "
            "others: remove the others, and leave the one that has -head or -wal beside it"
        )
    return True


def check_free(path: str, known: Head | None) -> None:
    """Refuse a place from which a ledger is missing: a new one would have spent nothing."""
    whole = os.path.realpath(path)
    for suffix in _PARTS:
        if os.path.exists(whole + suffix):
            raise LedgerError(
                f"{path} is missing, but its part {whole}{suffix} exists: put the ledger back, or remove "
                "that file too to start a new one"
            )
    if known is not None and known.sequence:
        raise LedgerError(
            f"{path} is missing, and {whole}-head records {known.sequence} entries: "
            "put it back, or remove that file too to start a new one with nothing spent"
        )


def make(path: str, create: Callable[[Transaction], None]) -> None:
    """Make a new ledger of mode 0600, complete when it appears.

    The caller has the turn.
    """
    if os.path.exists(path):
        return
    whole = os.path.realpath(path)
    with unfinished(whole) as part:
        try:
            # Left from the right: it commits or rolls back, and closes.
            with contextlib.closing(sqlite3.connect(part, isolation_level=None)) as connection, connection:
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("BEGIN IMMEDIATE")
                create(connection)
        except sqlite3.Error as error:
            raise LedgerError(f"{path} cannot be made ({error}): make room, or keep it on another disk") from None
        finish(part, whole)


@contextlib.contextmanager
def unfinished(path: str) -> Iterator[str]:
    """A temporary file next to a path, removed afterwards unless it was finished.

    It has mode 0600 and a random name.
    """
    descriptor, part = tempfile.mkstemp(prefix=f"{os.path.basename(path)}-new-", dir=os.path.dirname(path))
    os.close(descriptor)
    try:
        yield part
    finally:
        for suffix in ("", *_PARTS):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(part + suffix)


def finish(part: str, path: str) -> None:
    """Give a complete and closed file its name, durably."""
    os.rename(part, path)
    directory = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # some file systems cannot, and then the name is as durable as they make it
            os.fsync(directory)
    finally:
        os.close(directory)
