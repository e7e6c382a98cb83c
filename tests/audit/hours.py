"""The time that an audit is given. The only place where tests look at a clock: how long is said, and never asserted."""

from __future__ import annotations

import resource
import time


def now() -> float:
    """Seconds that pass, from anywhere; the same for all processes."""
    return time.monotonic()


def processor_time() -> float:
    """Of this process and of its children that have ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


class Allotment:
    """Some time from now on; None is as much as it takes."""

    def __init__(self, seconds: float | None) -> None:
        self._end = None if seconds is None else now() + seconds

    @property
    def left(self) -> float | None:
        """Seconds that are left."""
        return None if self._end is None else max(0.0, self._end - now())

    @property
    def over(self) -> bool:
        """Whether it has passed."""
        return self._end is not None and now() >= self._end

    def share(self, part: float) -> Allotment:
        """A part of what is left, from now on."""
        return Allotment(None if self.left is None else self.left * part)
