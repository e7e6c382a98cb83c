"""Ctrl-C while code of others is at work, which may make of it an error of its own, or nothing."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

T = TypeVar("T")


def interruptible(work: Callable[[], T]) -> T:
    """What some work gives; where Ctrl-C came meanwhile, KeyboardInterrupt and nothing else.

    A database that calls Python, or waits for it, makes of the interrupt a failure of its own, in words that may quote
    rows, goes on without what was interrupted, or comes to an end all the same.

    Raises
    ------
    KeyboardInterrupt
        Without any of these errors in its context. Only the main thread gets Ctrl-C, and only where its handler raises.
    """
    global _outermost
    if threading.current_thread() is not threading.main_thread() or (_outermost and _outermost.at_work):
        return work()  # what is around this one notes it
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):
        return work()
    noting = _Noting(handler)
    output: list[T] = []
    try:
        _outermost = noting
        signal.signal(signal.SIGINT, noting)
        output.append(work())
    except BaseException:
        if not noting.interrupted:
            raise
    finally:
        noting.at_work = False  # first: Ctrl-C again may leave it in its place, with nothing around what comes then
        signal.signal(signal.SIGINT, handler)
    if noting.interrupted:  # outside of the handler, so that no other error hangs on to this one
        output.clear()  # nor do its frames hold what came out all the same, which nobody is to see
        raise KeyboardInterrupt
    return output[0]


class _Noting:
    """A handler that remembers whether the one before it raised KeyboardInterrupt."""

    def __init__(self, handler: Callable[[int, FrameType | None], object]) -> None:
        self._handler = handler
        self.interrupted = False
        self.at_work = True

    def __call__(self, number: int, frame: FrameType | None) -> None:
        try:
            self._handler(number, frame)
        except KeyboardInterrupt:
            self.interrupted = True
            raise


_outermost: _Noting | None = None
"""What notes it in the main thread, or did so last: to ask the system for its handler would take longer."""
