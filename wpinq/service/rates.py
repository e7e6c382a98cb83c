"""Rates: how often somebody may ask, as a bucket of tries that fills with time."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable


class Rates:
    """For each asker a bucket of so many tries, which fills again in a minute.

    Parameters
    ----------
    a_minute : int
        How many tries a bucket holds.
    clock : callable
        Seconds, as `time.monotonic` tells them.

    Examples
    --------
    >>> now = [0.0]
    >>> rates = Rates(2, clock=lambda: now[0])
    >>> [rates.wait("alice") for _ in range(3)], rates.wait("bob")
    ([0.0, 0.0, 30.0], 0.0)
    >>> now[0] = 30.0
    >>> rates.wait("alice")
    0.0
    """

    def __init__(self, a_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._size = float(a_minute)
        self._clock = clock
        self._left: dict[Hashable, tuple[float, float]] = {}

    def wait(self, asker: Hashable) -> float:
        """Take a try: 0, or the seconds until there will be one, and then none is taken."""
        now, each = self._clock(), 60.0 / self._size
        left, then = self._left.get(asker, (self._size, now))
        left = min(self._size, left + (now - then) / each)
        taken = left >= 1.0
        self._left[asker] = (left - 1.0 if taken else left, now)
        return 0.0 if taken else (1.0 - left) * each
