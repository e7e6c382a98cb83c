"""Waiting in line: so many are served at once, so many wait, and further ones are turned away at once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from wpinq.service.errors import busy


class FairQueue:
    """A line before some places, which nobody can fill alone.

    A place that is free goes to whoever waits and has the fewest, then to whose last turn is longest ago, then to who
    waits longest. One asker has all places but one at most, where there are several.

    Parameters
    ----------
    places : int
        How many are served at once.
    longest : int
        How many may wait.
    seconds : float
        How long one waits.
    """

    def __init__(self, places: int, longest: int, seconds: float) -> None:
        self._free, self._most = places, max(1, places - 1)
        self._longest, self._seconds = longest, seconds
        self._held: Counter[str] = Counter()
        self._turns = 0
        self._last_turn: dict[str, int] = {}
        self._waiting: dict[asyncio.Future[None], str] = {}

    @asynccontextmanager
    async def place(self, asker: str) -> AsyncIterator[None]:
        """A place, for as long as the context lasts; Refusal (503) where there is none to be had."""
        if len(self._waiting) >= self._longest:
            raise busy()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[turn] = asker
        self._seat()
        try:
            try:
                async with asyncio.timeout(self._seconds):
                    await turn
            except TimeoutError:
                raise busy() from None
            yield
        finally:
            if self._waiting.pop(turn, None) is None:  # it had its turn, if only in the moment when it gave up
                self._free += 1
                self._held[asker] -= 1
                if not self._held[asker]:
                    del self._held[asker]
                self._seat()

    def _seat(self) -> None:
        """Give free places to those who wait."""
        while self._free:
            due = [turn for turn, asker in self._waiting.items() if self._held[asker] < self._most and not turn.done()]
            if not due:
                return
            turn = min(due, key=lambda each: self._before(self._waiting[each]))  # the first of several
            asker = self._waiting.pop(turn)
            self._held[asker] += 1
            self._free -= 1
            self._turns += 1
            self._last_turn[asker] = self._turns
            turn.set_result(None)

    def _before(self, asker: str) -> tuple[int, int]:
        """What decides whose turn it is: the least."""
        return self._held[asker], self._last_turn.get(asker, 0)
