"""The file `NAME-head` next to a ledger: the queue of its writers, and its last known head.

The queue. A writer draws a number and locks the byte of that number; its turn comes when no byte before it is locked.
The locks belong to an open file, so threads queue as well, and the kernel drops them with their process. They give
order only (waiters for SQLite's lock may starve); safety is SQLite's lock.

The head. It is written after each commit, within the turn, and never goes back. A ledger without that entry has lost
debits. It is no secret and no proof: whoever removes the file, or restores an older one too, goes unnoticed by it.
"""

from __future__ import annotations

import contextlib
import os
import stat
import struct
import time
from collections.abc import Callable
from typing import Any, TypeVar

from wpinq.kernel.ledger.chain import Head

fcntl: Any
try:
    import fcntl
except ImportError:  # not of POSIX
    fcntl = None

T = TypeVar("T")

#: Whether the system has locks of open files; elsewhere there is no head file, and writers have no order.
HAS_TURNS = hasattr(fcntl, "F_OFD_SETLK")
#: Seconds after which a queue that does not move is passed: the first in it may be suspended (Ctrl-Z).
STANDSTILL = 5.0

_OPENED = os.O_RDWR | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)  # never written through a link
_FLOCK, _HEAD = struct.Struct("hhqqi4x"), struct.Struct(">Q32s")
_COUNTER, _MUTEX, _NUMBERS, _LAST, _MOST = 8, 1 << 20, 1 << 21, 1 << 60, 1 << 63


class HeadFile:
    """The head file of one ledger; none for a ledger in memory.

    It lies at the place to which a symbolic link leads.
    """

    def __init__(self, path: str | None) -> None:
        self._ledger = os.path.realpath(path or os.devnull)
        self.path = f"{self._ledger}-head"
        self._used = HAS_TURNS and path is not None
        self._descriptors: set[int] = set()

    def head(self, patience: float) -> Head | None:
        """The head that the ledger had reached; None where it is unknown."""
        if not self._used:
            return None
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe would wait for ever
        except FileNotFoundError:
            return None
        return self._use(descriptor, lambda: _with_mutex(descriptor, fcntl.F_RDLCK, patience, _read_head))

    def take_turn(self, work: Callable[[Callable[[Head], None]], T], patience: float) -> T:
        """Run `work` after all earlier writers; `work` gets the function that writes a head.

        Raises OSError before the work begins where the file is unfit, and TimeoutError where others take too long.
        """
        if not self._used:
            return work(lambda head: None)
        descriptor = self._open()

        def turn() -> T:
            self._wait(descriptor, time.monotonic() + patience)
            return work(lambda head: _with_mutex(descriptor, fcntl.F_WRLCK, 1, lambda _: _advance(descriptor, head)))

        return self._use(descriptor, turn)

    def leave(self) -> None:
        """Give up, in a forked child, the turns of its parent.

        A lock lasts until its last file descriptor is closed.
        """
        for descriptor in self._descriptors:
            with contextlib.suppress(OSError):
                if os.path.samestat(os.fstat(descriptor), os.stat(self.path)):
                    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
                    os.dup2(nothing, descriptor, inheritable=False)  # its user still closes this number
                    os.close(nothing)

    def _use(self, descriptor: int, work: Callable[[], T]) -> T:
        try:
            self._descriptors.add(descriptor)
            return work()
        finally:
            try:  # first: a child that was forked before `add` shares the file, and would keep its locks
                _set_lock(descriptor, fcntl.F_UNLCK, 0, 0)
            finally:
                os.close(descriptor)
            self._descriptors.discard(descriptor)

    def _open(self) -> int:
        try:
            return os.open(self.path, _OPENED)
        except FileNotFoundError:
            descriptor = os.open(self.path, _OPENED | os.O_CREAT, 0o600)
            with contextlib.suppress(OSError):  # the users of the ledger may queue for it, where that can be had
                status = os.stat(self._ledger)
                os.fchmod(descriptor, stat.S_IMODE(status.st_mode) & 0o666)
                os.fchown(descriptor, status.st_uid, status.st_gid)
            return descriptor

    def _wait(self, descriptor: int, deadline: float) -> None:
        patience, since, seen = deadline - time.monotonic(), 0.0, None
        number = _with_mutex(descriptor, fcntl.F_WRLCK, patience, lambda _: self._draw(descriptor, deadline))
        while (ahead := _first_locked(descriptor, _NUMBERS, number)) is not None:
            seen, since = (seen, since) if ahead == seen else (ahead, time.monotonic())
            if time.monotonic() - since > STANDSTILL:
                break
            _pause(deadline, min(0.0004 * (_NUMBERS + number - ahead), 0.005))

    def _draw(self, descriptor: int, deadline: float) -> int:
        """The next number, with its byte locked.

        Where nobody waits it is the first number, which the counter never contains.
        """
        number = 0
        if _first_locked(descriptor, _NUMBERS, _LAST) is not None:
            number = max(1, int.from_bytes(os.pread(descriptor, _COUNTER, 0), "big") % _LAST)
        while not _set_lock(descriptor, fcntl.F_WRLCK, _NUMBERS + number, 1):
            number += 1  # the file was emptied while others waited
            _pause(deadline, 0)  # or somebody locked all of it
        if number:
            os.pwrite(descriptor, (number + 1).to_bytes(_COUNTER, "big"), 0)
        return number


def _with_mutex(descriptor: int, kind: int, patience: float, work: Callable[[int], T]) -> T:
    """Run `work` under the lock that every writer keeps for a moment only."""
    deadline = time.monotonic() + patience
    while not _set_lock(descriptor, kind, _MUTEX, 1):
        _pause(deadline, 0.0002)
    try:
        return work(descriptor)
    finally:
        _set_lock(descriptor, fcntl.F_UNLCK, _MUTEX, 1)


def _pause(deadline: float, seconds: float) -> None:
    if time.monotonic() > deadline:
        raise TimeoutError
    time.sleep(seconds)


def _read_head(descriptor: int) -> Head | None:
    written = os.pread(descriptor, _HEAD.size, _COUNTER)
    sequence, known = _HEAD.unpack(written) if len(written) == _HEAD.size else (_MOST, b"")
    return Head(sequence, known) if sequence < _MOST else None  # else of some other file of this name


def _advance(descriptor: int, head: Head) -> None:
    before = _read_head(descriptor)
    if before is None or before.sequence < head.sequence:
        os.pwrite(descriptor, _HEAD.pack(head.sequence, head.hash), _COUNTER)


def _set_lock(descriptor: int, kind: int, start: int, length: int) -> bool:
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _FLOCK.pack(kind, os.SEEK_SET, start, length, 0))
    except BlockingIOError:
        return False
    return True


def _first_locked(descriptor: int, start: int, length: int) -> int | None:
    """The first place in this range that another open file has locked, or None."""
    if not length:
        return None
    asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, start, length, 0)
    kind, _, place, _, _ = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, asked))
    return None if kind == fcntl.F_UNLCK else int(place)
