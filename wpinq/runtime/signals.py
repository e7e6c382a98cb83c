"""Signals that come at the wrong moment, while foreign code runs or a process forks.

Foreign code may make of Ctrl-C an error of its own, or nothing.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

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
    handler = signal.getsignal(signal.SIGINT)
    main = threading.current_thread() is threading.main_thread()
    if not main or not callable(handler) or (isinstance(handler, _Noting) and handler.at_work):
        return work()  # what is around this one notes it
    noting = _Noting(handler)
    output: list[T] = []
    try:
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


def hold_signals() -> None:
    """Delay signals with Python handlers until `let_signals_go`, in this thread or a fork.

    Where they wait already, they wait until that was called as often. A mask would not do. What one thread masks, the
    system gives to another, such as one of numpy's. Python runs the handler in the main thread all the same. Only there
    are handlers run, and can be set.
    """
    global _holds
    if threading.current_thread() is threading.main_thread():
        for number in signal.valid_signals():
            handler = signal.getsignal(number)
            if callable(handler) and handler is not _wait:
                _handlers[number] = handler
                signal.signal(number, _wait)
        _holds += 1  # last: until then a handler may raise


def let_signals_go(wholly: bool = False) -> None:
    """Hear signals again, those that waited included, of which a child has none of its parent's.

    Wholly, however often they were held: by a child that never comes back to where its parent was to let them go.
    """
    global _holds
    if threading.current_thread() is not threading.main_thread():
        return
    _holds = 0 if wholly else max(0, _holds - 1)
    if _holds:
        return
    try:
        for number, handler in list(_handlers.items()):
            if signal.getsignal(number) is _wait:  # else somebody set another meanwhile
                signal.signal(number, handler)
            del _handlers[number]
        while _waiting:
            process, number = _waiting.pop()
            if process == os.getpid():
                signal.raise_signal(number)
    finally:
        if _handlers or _waiting:  # a handler raised, and the others are still to be heard
            let_signals_go()


def _wait(number: int, frame: FrameType | None) -> None:
    _waiting.append((os.getpid(), number))


@contextmanager
def signals_held() -> Iterator[None]:
    """Signals that come in this context are heard at its end."""
    try:
        hold_signals()
        yield
    finally:
        let_signals_go()


_holds = 0
_handlers: dict[int, Any] = {}
_waiting: list[tuple[int, int]] = []
