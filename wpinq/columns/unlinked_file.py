"""Databases in files without a name, which a DuckDB can open in this process alone.

A file that is unlinked is still reached by `/dev/fd/N`. DuckDB from 2.0.1 on follows such a link by what it *says*, not
by what it is. So it would write what it is given to a new file of the name `… (deleted)`. Therefore exactly this name,
in a folder of our own, is a link to the file. Followed by what it says, it leads to itself, without end, and DuckDB
opens it as it is. Where that is not what happens, the database is detached before anything is written to it.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from wpinq.errors import SessionError

_MEMORY = "/dev/shm"
#: Bytes that are free in the memory file system, for anything to be held there.
_ENOUGH = 1 << 30


class UnlinkedFile:
    """A database of one table, `held`, in a file without a name.

    The file goes with this, or with the last process that has it open.

    Parameters
    ----------
    in_memory : bool
        Whether to make it in the memory file system, where there is one with room; else where temporary files are.

    Attributes
    ----------
    number : int
        Of the file, which a forked child keeps open.
    """

    __slots__ = ("__weakref__", "_link", "number")

    def __init__(self, in_memory: bool) -> None:
        folder = tempfile.mkdtemp(prefix="wpinq-", dir=_MEMORY if in_memory and has_room() else None)
        gone = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        name = os.path.join(folder, "held")
        self.number = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        gone.detach()
        weakref.finalize(self, _let_go, self.number, folder, os.getpid())
        os.unlink(name)
        self._link = _said_of(self.number, folder)
        os.symlink(f"/dev/fd/{self.number}", self._link)

    def attach_empty(self, connection: Any, name: str) -> None:
        """Have a database write to the file, under a name.

        The caller detaches the name also where this fails.
        """
        os.write(self.number, _empty_database(connection))
        # DuckDB looks for a log beside a database, even where it is told to write none.
        connection.execute(f"ATTACH {quoted(self._link)} AS {name} (RECOVERY_MODE no_wal_writes)")
        query = f"SELECT path FROM duckdb_databases() WHERE database_name = {quoted(name)}"
        ((opened,),) = connection.execute(query).fetchall()
        if not _is_file(opened, self.number):
            raise SessionError(
                "this DuckDB writes files that have no name to files that have one, where others could read them; "
                "nothing was written: install another version of duckdb, such as 2.0.1, or tell us"
            )

    def attach(self, connection: Any, name: str) -> str:
        connection.execute(f"ATTACH {quoted(self._link)} AS {name} (READ_ONLY)")
        return f"{name}.held"

    def detach(self, connection: Any, name: str) -> None:
        connection.execute(f"DETACH {name}")


def has_room() -> bool:
    """Whether there is a memory file system with room for what people hold in memory."""
    try:
        room = os.statvfs(_MEMORY)
    except OSError:
        return False
    return os.access(_MEMORY, os.W_OK) and room.f_bavail * room.f_frsize >= _ENOUGH


def _said_of(number: int, folder: str) -> str:
    """What a link to an unlinked file says, where the operating system has such links."""
    with contextlib.suppress(OSError):
        said = os.readlink(f"/proc/self/fd/{number}")
        if os.path.samefile(os.path.dirname(said), folder):
            return said
    return os.path.join(folder, "held")


def _is_file(path: str, number: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(number))
    except OSError:
        return False


def _let_go(number: int, folder: str, process: int) -> None:
    os.close(number)
    if os.getpid() == process:  # a forked child closes the file, and leaves the folder to its parent
        shutil.rmtree(folder, ignore_errors=True)


def quoted(text: str) -> str:
    """A text as SQL."""
    return "'" + text.replace("'", "''") + "'"


def _empty_database(connection: Any) -> bytes:
    """The bytes of a DuckDB database without tables, made once."""
    if not _EMPTY:
        with tempfile.TemporaryDirectory(prefix="wpinq-") as folder:
            path = Path(folder) / "empty"
            connection.execute(f"ATTACH {quoted(str(path))} AS empty")
            connection.execute("DETACH empty")
            _EMPTY.append(path.read_bytes())
    return _EMPTY[0]


_EMPTY: list[bytes] = []


# The order in which rows stand, which a DuckDB that is opened for speed does not keep.


@contextlib.contextmanager
def in_order(connection: Any) -> Iterator[None]:
    """Have rows come in the order in which they stand, which costs time."""
    ((setting,),) = connection.execute("SELECT current_setting('preserve_insertion_order')").fetchall()
    connection.execute("SET preserve_insertion_order = true")
    try:
        yield
    finally:
        cleanly(connection.execute, f"SET preserve_insertion_order = {str(setting).lower()}")


def cleanly(act: Callable[..., object], *given: object) -> None:
    """Do what cleans up, and ignore errors of a broken database.

    It goes with all that is in it.
    """
    import duckdb

    with contextlib.suppress(duckdb.Error):
        act(*given)


# Sizes of memory, as DuckDB writes them.

_SIZE = re.compile(r"([\d.]+)\s*([KMGTP]?)i?B|([\d.]+) bytes")


def bytes_of(size: str) -> int:
    """How many bytes a size is, as DuckDB writes it.

    Examples
    --------
    >>> bytes_of("1.5 GiB"), bytes_of("512 bytes"), bytes_of("0 bytes")
    (1610612736, 512, 0)
    """
    found = _SIZE.fullmatch(size.strip())
    if found is None:
        return 0  # what cannot be read leaves room for nothing
    number, unit, plain = found.groups()
    return int(float(plain or number) * 1024 ** " KMGTP".index(unit or " "))


# DuckDB's progress bar, which would show shares of protected work on the screen: off.


def stop_progress_bar(connection: Any) -> None:
    """Turn it off, where it is on.

    Without ipywidgets, a notebook has none, and DuckDB then refuses to set it.
    """
    if connection.execute("SELECT current_setting('enable_progress_bar')").fetchall() != [(False,)]:
        connection.execute("SET enable_progress_bar = false")
