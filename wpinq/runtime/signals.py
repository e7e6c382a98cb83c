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


#: The signals for which a handler may end some work by an error: Ctrl-C, and those of limits of a user's own.
_HEARD = [signal.Signals[f"SIG{name}"] for name in ("INT", "TERM", "HUP", "ALRM", "PROF", "VTALRM", "USR1", "USR2")]


def interruptible(work: Callable[[], T]) -> T:
    """What some work gives; where a handler of a signal raised meanwhile, its error alone.

    Ctrl-C raises KeyboardInterrupt, and a handler of the user's own, as of SIGALRM, an error of its own. A database
    that calls Python, or waits for it, makes of the interrupt a failure of its own, in words that may quote rows, goes
    on without what was interrupted, or comes to an end all the same.

    Raises
    ------
    BaseException
        The handler's, without any other error in its context. Only the main thread runs handlers.
    """
    if _noting or threading.current_thread() is not threading.main_thread():
        return work()  # what is around this one notes it
    noting = _Noting({n: h for n, h in zip(_HEARD, map(signal.getsignal, _HEARD), strict=True) if callable(h)})
    output: list[T] = []
    try:
        _noting.append(noting)
        for number in noting.handlers:
            signal.signal(number, noting)
        output.append(work())
    except BaseException:
        if noting.raised is None:
            raise
    finally:
        _noting.clear()  # first: a signal may leave it in its place, with nothing around what comes then
        for number, handler in noting.handlers.items():
            signal.signal(number, handler)
    if noting.raised is not None:  # outside of the handler, so that no other error hangs on to this one
        output.clear()  # nor do its frames hold what came out all the same, which nobody is to see
        noting.raised.__context__ = None
        raise noting.raised.with_traceback(None)
    return output[0]


class _Noting:
    """A handler that remembers what those before it raised."""

    def __init__(self, handlers: dict[signal.Signals, Callable[[int, FrameType | None], Any]]) -> None:
        self.handlers = handlers
        self.raised: BaseException | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        try:
            self.handlers[signal.Signals(number)](number, frame)
        except BaseException as error:
            self.raised = error
            raise


#: The handler of work that goes on, if any.
_noting: list[_Noting] = []


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
