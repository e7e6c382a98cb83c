"""A limit of processor time that the system enforces, far above any need: only work without end meets it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SECONDS = 20.0


@contextmanager
def bounded_work(seconds: float = SECONDS) -> Iterator[None]:
    """The body, or TimeoutError once it has used `seconds` of processor time, even if the body catches that error."""
    late = TimeoutError(f"more than {seconds:g} s of processor time")
    met = False

    def stop(*_: Any) -> None:
        nonlocal met
        met = True
        raise late

    former = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, former)
    if met:
        raise late
