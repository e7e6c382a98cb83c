"""The load of the machine, measured by a process without data, and the time of a release.

An evaluation that gets too little of the processor in its time fails, and suspends its accounts. So the slowdown of the
machine is measured before the debit. A release gets as much more time, or is refused where the machine is too slow.

Load can be the work of another evaluation on data. So it is measured only while no release is under way: neither a
refusal nor a moment of an answer then tells of data.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from starlette.concurrency import run_in_threadpool

from wpinq.kernel.sandbox.admission import Limits
from wpinq.service.errors import busy, overloaded
from wpinq.service.ipc import Channel, NoAnswer, read_answer

_ROUNDS, _SAMPLES, _PAUSE = 60_000, 5, 0.01
"""The fixed work: so often some 20 milliseconds of a processor, after a pause, as an evaluation begins."""

LEAST_SLOWDOWN = 3.0
"""The slowdown that a release gets time for at least: the load changes between two measurements."""

MOST_SLOWDOWN = 64.0
"""The slowdown beyond which releases are refused."""

FRESH_SECONDS = 10.0
"""The time in which releases may begin after one measurement."""

_PATIENCE = 30.0
"""Seconds for a measurement, on a machine that is too slow."""

NICENESS = 5
"""The niceness of processes that no release waits for in its time."""


def measure_slowdown(request: Mapping[str, Any]) -> dict[str, float]:
    """The clock time of the fixed work over its processor time, at worst; no request matters."""
    slowest = 0.0
    for _ in range(_SAMPLES):
        time.sleep(_PAUSE)
        began, used = time.monotonic(), time.process_time()
        hashlib.pbkdf2_hmac("sha256", b"wpinq", b"load", _ROUNDS)
        slowest = max(slowest, (time.monotonic() - began) / (time.process_time() - used))
    return {"slowdown": slowest}


def stretch(slowdown: float, limits: Limits) -> float:
    """The multiple of its granted time that a release needs; 1 within the safety factor."""
    return max(1.0, max(slowdown, LEAST_SLOWDOWN) / limits.safety_factor)


class MachineLoad:
    """The slowdown of the machine, and the releases that are under way.

    Parameters
    ----------
    measured : Channel
        The way to processes that measure.
    seconds : float
        The longest wait for the end of other releases.
    wait_for_others : callable
        Returns when no release of an earlier web process is under way.
    """

    def __init__(self, measured: Channel, seconds: float, wait_for_others: Callable[[], None]) -> None:
        self._measured, self._seconds, self._wait_for_others = measured, seconds, wait_for_others
        self._turn, self._idle, self._under_way = asyncio.Lock(), asyncio.Event(), 0
        self._idle.set()
        self._slowdown, self._fresh_until = math.inf, -math.inf

    @asynccontextmanager
    async def release(self) -> AsyncIterator[float]:
        """The slowdown for a release in this context; Refusal (503) after too long a wait."""
        try:
            async with asyncio.timeout(self._seconds), self._turn:
                now = asyncio.get_running_loop().time
                if now() >= self._fresh_until:
                    await self._idle.wait()
                    await run_in_threadpool(self._wait_for_others)
                    self._slowdown = await self._measure()
                    self._fresh_until = now() + FRESH_SECONDS
                if self._slowdown > MOST_SLOWDOWN:
                    raise overloaded(FRESH_SECONDS)
                slowdown = self._slowdown
                self._under_way += 1
                self._idle.clear()
        except TimeoutError:
            raise busy() from None
        try:
            yield slowdown
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._idle.set()

    async def _measure(self) -> float:
        try:
            return float(read_answer(await self._measured.ask({}, _PATIENCE))["slowdown"])
        except NoAnswer:
            return math.inf
