"""Waiting in line: so many are served at once, so many wait, and further ones are turned away at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from wpinq.service.refusals import busy


class WaitingLine:
    """A line before some places.

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
        self._free = asyncio.Semaphore(places)
        self._longest, self._seconds = longest, seconds
        self._waiting = 0

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """A place, for as long as the context lasts; Refusal (503) where there is none to be had."""
        if self._waiting >= self._longest:
            raise busy()
        self._waiting += 1
        try:
            async with asyncio.timeout(self._seconds):
                await self._free.acquire()
        except TimeoutError:
            raise busy() from None
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._free.release()
