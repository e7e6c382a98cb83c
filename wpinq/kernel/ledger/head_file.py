"""The file beside a ledger, `NAME-head`: whose turn it is to write, and how far the ledger had come.

Turns. Who waits for SQLite's lock tries again after pauses, so that others may pass for ever. Here everybody draws a
number and locks the byte of that number; the turn comes when no byte before it is locked. The locks are the kernel's:
they end with their process, and they belong to an open file, so threads queue as well. They give order, and no safety:
that is SQLite's own lock, whatever becomes of this file.

The head. It is written after each commit and read before the ledger is: a ledger that does not hold it has lost
entries. It is no secret and no proof: who removes it, or puts an old one back too, is not found out by it.
"""

from __future__ import annotations

import contextlib
import os
import stat
import struct
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from wpinq.kernel.ledger.head import Head

fcntl: Any
try:
    import fcntl
except ImportError:  # not of POSIX
    fcntl = None

T = TypeVar("T")

Note = Callable[[Head], None]
"""Writes down how far the ledger has come."""

HAS_TURNS = hasattr(fcntl, "F_OFD_SETLK")
"""Whether the system has locks of open files; else there is no such file, and whoever comes first writes first."""

_OPENED = os.O_RDWR | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)  # what a link leads to would be written over
_FLOCK = struct.Struct("hhqqi4x")
_UNLOCK = _FLOCK.pack(fcntl.F_UNLCK, os.SEEK_SET, 0, 0, 0) if HAS_TURNS else b""
_HEAD = struct.Struct(">Q32s")
_HEAD_AT, _COUNTER = 8, 8
_DESK, _NUMBERS, _LAST = 1 << 20, 1 << 21, 1 << 60
_MOST = 1 << 63
_PAUSE, _LONGEST = 0.0004, 0.005
STANDSTILL = 5.0
"""Seconds after which a queue that does not move is passed: whoever is first may be suspended (Ctrl-Z)."""


class HeadFile:
    """The file beside one ledger.

    Parameters
    ----------
    path : str
        The ledger; where it is a symbolic link, what that leads to.
    """

    def __init__(self, path: str) -> None:
        self._ledger = os.path.realpath(path)
        self.path = f"{self._ledger}-head"
        self._descriptors: set[int] = set()

    def head(self, patience: float) -> Head | None:
        """How far the ledger had come; None where that is not known."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe would wait for ever
        except FileNotFoundError:
            return None
        try:
            _lock_soon(descriptor, fcntl.F_RDLCK, time.monotonic() + patience)
            written = os.pread(descriptor, _HEAD.size, _HEAD_AT)
            if len(written) < _HEAD.size:
                return None
            sequence, known = _HEAD.unpack(written)
            return Head(sequence, known) if sequence < _MOST else None  # no ledger's: some other file of this name
        finally:
            try:
                fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _UNLOCK)
            finally:
                os.close(descriptor)

    def alone(self, work: Callable[[Note], T], patience: float) -> T:
        """Do something that nobody else who asks here does at the same time. Raises TimeoutError."""
        return self._opened(lambda descriptor: self._alone(descriptor, work, patience))

    def take_turn(self, work: Callable[[Note], T], patience: float) -> T:
        """Do something when all are done who asked before. Raises TimeoutError when that takes too long."""
        return self._opened(lambda descriptor: self._in_turn(descriptor, work, patience))

    def leave(self) -> None:
        """Give up, in a forked process, the turns of its parent: a lock lasts until its last holder lets go."""
        for descriptor in self._descriptors:
            with contextlib.suppress(OSError):
                if os.path.samestat(os.fstat(descriptor), os.stat(self.path)):
                    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
                    os.dup2(nothing, descriptor, inheritable=False)  # the number is still to be closed, by its user
                    os.close(nothing)

    def _opened(self, work: Callable[[int], T]) -> T:
        # Between the work and its end nothing of Python is called: Ctrl-C is heard where such a call begins, and a
        # descriptor that stayed open would keep its place in the queue. Locks are let go before the file is closed: a
        # child that was forked before the file was noted shares it, and would keep them.
        descriptor = self._open()
        try:
            self._descriptors.add(descriptor)
            return work(descriptor)
        finally:
            try:
                fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _UNLOCK)
            finally:
                os.close(descriptor)
            self._descriptors.discard(descriptor)

    def _open(self) -> int:
        try:
            return os.open(self.path, _OPENED)
        except FileNotFoundError:
            descriptor = os.open(self.path, _OPENED | os.O_CREAT, 0o600)
            with contextlib.suppress(OSError):  # whoever may use the ledger may queue for it, where that can be had
                status = os.stat(self._ledger)
                os.fchmod(descriptor, stat.S_IMODE(status.st_mode) & 0o666)
                os.fchown(descriptor, status.st_uid, status.st_gid)
            return descriptor

    def _alone(self, descriptor: int, work: Callable[[Note], T], patience: float) -> T:
        _lock_soon(descriptor, fcntl.F_WRLCK, time.monotonic() + patience)
        return work(partial(_write_head, descriptor))

    def _in_turn(self, descriptor: int, work: Callable[[Note], T], patience: float) -> T:
        deadline = time.monotonic() + patience
        _lock_soon(descriptor, fcntl.F_WRLCK, deadline)
        number = self._draw(descriptor, deadline)
        _set_lock(descriptor, fcntl.F_UNLCK, _DESK, 1)
        seen, since = None, 0.0
        while (ahead := _first_locked(descriptor, _NUMBERS, number)) is not None:
            _check_time(deadline)
            if ahead != seen:
                seen, since = ahead, time.monotonic()
            elif time.monotonic() - since > STANDSTILL:
                break  # out of turn, which costs order alone: SQLite's own lock still lets one write at a time
            time.sleep(min(_PAUSE * (_NUMBERS + number - ahead), _LONGEST))
        return work(partial(self._note, descriptor))

    def _draw(self, descriptor: int, deadline: float) -> int:
        """The next number, with its byte locked. The caller is alone."""
        if _first_locked(descriptor, _NUMBERS, _LAST) is None:  # nobody waits: the first number, which is in no counter
            _set_lock(descriptor, fcntl.F_WRLCK, _NUMBERS, 1)
            return 0
        number = max(1, int.from_bytes(os.pread(descriptor, _COUNTER, 0), "big") % _LAST)
        while not _set_lock(descriptor, fcntl.F_WRLCK, _NUMBERS + number, 1):
            number += 1  # somebody emptied the file while others waited
            _check_time(deadline)  # or locks all of it
        os.pwrite(descriptor, (number + 1).to_bytes(_COUNTER, "big"), 0)
        return number

    def _note(self, descriptor: int, head: Head) -> None:
        # What is in the ledger stands, so that this fails in silence: the head then is older, which is no harm.
        with contextlib.suppress(OSError):
            _lock_soon(descriptor, fcntl.F_WRLCK, time.monotonic() + 1)
            _write_head(descriptor, head)


def _write_head(descriptor: int, head: Head) -> None:
    os.pwrite(descriptor, _HEAD.pack(head.sequence, head.hash), _HEAD_AT)


def _lock_soon(descriptor: int, kind: int, deadline: float) -> None:
    """Take the lock that everybody holds for a moment only."""
    while not _set_lock(descriptor, kind, _DESK, 1):
        _check_time(deadline)
        time.sleep(_PAUSE / 2)


def _set_lock(descriptor: int, kind: int, start: int, length: int) -> bool:
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _FLOCK.pack(kind, os.SEEK_SET, start, length, 0))
    except BlockingIOError:
        return False
    return True


def _first_locked(descriptor: int, start: int, length: int) -> int | None:
    """Where somebody else has a lock in this range, or None."""
    if not length:
        return None
    asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, start, length, 0)
    kind, _, place, _, _ = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, asked))
    return None if kind == fcntl.F_UNLCK else int(place)


def _check_time(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise TimeoutError
