"""A fair queue: limited numbers of requests are served and wait, and further ones are refused at once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from wpinq.service.errors import busy


class FairQueue:
    """A queue before some places, which no user can fill alone.

    A free place goes to the waiting user with the fewest places, then to the one with the oldest last turn, then to
    the one that waits longest. One user has all places but one at most, where there are several.

    Parameters
    ----------
    places : int
        The number served at once.
    longest : int
        The number that may wait.
    seconds : float
        The longest wait.
    """

    def __init__(self, places: int, longest: int, seconds: float) -> None:
        self._free, self._most = places, max(1, places - 1)
        self._longest, self._seconds = longest, seconds
        self._held: Counter[str] = Counter()
        self._turns = 0
        self._last_turn: dict[str, int] = {}
        self._waiting: dict[asyncio.Future[None], str] = {}

    @asynccontextmanager
    async def place(self, user: str) -> AsyncIterator[None]:
        """A place, for as long as the context lasts; Refusal (503) where there is none to be had."""
        if len(self._waiting) >= self._longest:
            raise busy()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[turn] = user
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
                self._held[user] -= 1
                if not self._held[user]:
                    del self._held[user]
                self._seat()

    def _seat(self) -> None:
        """Give free places to those who wait."""
        while self._free:
            due = [turn for turn, user in self._waiting.items() if self._held[user] < self._most and not turn.done()]
            if not due:
                return
            turn = min(due, key=lambda each: self._before(self._waiting[each]))  # the first of several
            user = self._waiting.pop(turn)
            self._held[user] += 1
            self._free -= 1
            self._turns += 1
            self._last_turn[user] = self._turns
            turn.set_result(None)

    def _before(self, user: str) -> tuple[int, int]:
        """The order of turns: the least is next."""
        return self._held[user], self._last_turn.get(user, 0)
