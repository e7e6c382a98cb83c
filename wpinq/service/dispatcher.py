"""The dispatcher: requests go to planners and release workers; failures suspend sources.

The web process holds no protected data and reads no program.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import threading
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool

from wpinq.errors import LedgerError, SourceSuspended
from wpinq.kernel.ledger.debit import no_budget
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.kernel.prepare import DeclaredSource
from wpinq.kernel.sandbox.admission import Limits
from wpinq.kernel.sandbox.evaluation import IS_SUSPENDED
from wpinq.service.config import Configuration
from wpinq.service.errors import Refusal, busy, failure, log, overloaded, refusal_of, too_often
from wpinq.service.leases import open_inflight
from wpinq.service.limits import Rates
from wpinq.service.processes import Channel, NoAnswer, read_answer
from wpinq.service.users import UserStore
from wpinq.service.workers import GRACE

# A fair queue: limited numbers of requests are served and wait, and further ones are refused at once.


class FairQueue:
    """A queue before some places, which no user can fill alone.

    Places are given in the order of arrival. One user has all of them but one at most, where there are several.

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
        self._places = asyncio.Semaphore(places)
        self._own = defaultdict[str, asyncio.Semaphore](lambda: asyncio.Semaphore(max(1, places - 1)))
        self._longest, self._seconds, self.waiting = longest, seconds, 0

    @asynccontextmanager
    async def place(self, user: str) -> AsyncIterator[None]:
        """A place, for as long as the context lasts; Refusal (503) where there is none to be had."""
        if self.waiting >= self._longest:
            raise busy()
        async with AsyncExitStack() as held:
            self.waiting += 1
            try:
                async with asyncio.timeout(self._seconds):
                    await held.enter_async_context(self._own[user])
                    await held.enter_async_context(self._places)
            except TimeoutError:
                raise busy() from None
            finally:
                self.waiting -= 1
            yield


# The load of the machine, measured by a process without data, and the time of a release.
#
# An evaluation that gets too little of the processor in its time fails, and suspends its accounts. So the slowdown of
# the machine is measured before the debit. A release gets as much more time, or is refused where the machine is too
# slow.
#
# Load can be the work of another evaluation on data. So it is measured only while no release is under way: neither a
# refusal nor a moment of an answer then tells of data.

#: The fixed work: so often some 20 milliseconds of a processor, after a pause, as an evaluation begins.
_ROUNDS, _SAMPLES, _PAUSE = 60_000, 5, 0.01

#: The slowdown that a release gets time for at least: the load changes between two measurements.
LEAST_SLOWDOWN = 3.0

#: The slowdown beyond which releases are refused.
MOST_SLOWDOWN = 64.0

#: The time in which releases may begin after one measurement.
FRESH_SECONDS = 10.0

#: Seconds for a measurement, on a machine that is too slow.
_PATIENCE = 30.0


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


# The dispatcher.

#: The share of a processor that a planner has on a busy machine, at least, and seconds that it may take beyond that.
_PLANNER_SHARE, _PLANNER_GRACE = 0.1, 20.0
_RELEASE_GRACE = 5.0
#: The name in the queue of all requests without an analyst: no analyst has it.
_CURATORS = ""

Check = Callable[[], object]


class Dispatcher:
    """Hands requests to workers, in a fair order.

    Parameters
    ----------
    configuration : Configuration
        Limits, files, TLS.
    declared : mapping
        The sources, as the ledger knows them.
    ledger : Ledger
        Budgets.
    planners, releases, load : Channel
        The ways to the workers, and to processes that measure the load of the machine.

    Attributes
    ----------
    requests : Counter
        Requests by route and status, since the web process began.
    """

    def __init__(
        self,
        configuration: Configuration,
        declared: Mapping[str, DeclaredSource],
        ledger: Ledger,
        planners: Channel,
        releases: Channel,
        load: Channel,
    ) -> None:
        self.configuration, self.declared, self.ledger = configuration, declared, ledger
        self._planners, self._releases, self._measured = planners, releases, load
        self._release_rates = Rates(configuration.limits.releases_a_minute)
        self._inflight = open_inflight(configuration.ledger)
        self._ledger_file = self._ledger_status()
        self.requests: Counter[tuple[str, int]] = Counter()

    def start(self) -> None:
        """Open the files and queues of the web process, and see to releases of an earlier one."""
        limits = self.configuration.limits
        waiting = limits.queue, limits.queue_seconds
        self.users = UserStore(self.configuration.users)
        self._planner_queue = FairQueue(self.configuration.planners, *waiting)
        self._release_queue = FairQueue(self.configuration.release_workers, *waiting)
        self._load = MachineLoad(self._measured, limits.queue_seconds, self._wait_for_others)
        self._suspend_unanswered()
        for name in self._inflight.names():
            threading.Thread(target=self._suspend_after, args=(name,), daemon=True).start()

    def check_files(self) -> None:
        """Refuse unreadable users, an unreadable ledger, and a ledger file that was replaced."""
        self.users.find("")
        self.ledger.head()
        if self._ledger_status() != self._ledger_file:
            raise LedgerError(f"{self.configuration.ledger} was replaced while it was open: start the service again")

    def _ledger_status(self) -> tuple[int, int] | None:
        """The identity of the ledger file; None in PostgreSQL."""
        place = self.configuration.ledger
        return ((status := place.stat()).st_dev, status.st_ino) if isinstance(place, Path) else None

    def waiting(self) -> dict[str, int]:
        """The number of requests that wait for a worker, by the kind of worker."""
        return {"planner": self._planner_queue.waiting, "release": self._release_queue.waiting}

    async def explain(self, request: Mapping[str, Any], analyst: str | None, check_known: Check) -> dict[str, Any]:
        """The explanation of a program, with the cost to an analyst, if one asks.

        A token may be revoked while its owner waits in the queue, so it is checked again afterwards.
        """
        patience = self.configuration.limits.explain_seconds / _PLANNER_SHARE + _PLANNER_GRACE
        async with self._planner_queue.place(analyst or _CURATORS):
            await run_in_threadpool(check_known)
            try:
                answer = await self._planners.ask({**request, "analyst": analyst}, patience)
            except NoAnswer:
                raise Refusal(
                    400, "TooMuch", "planning this request takes more time or memory than allowed: split it"
                ) from None
        return read_answer(answer)

    async def release(
        self, request: Mapping[str, Any], analyst: str, label: str | None, check_known: Check
    ) -> dict[str, Any]:
        """The answers of a release, after a planner accepted it.

        The token is checked as in `explain`.
        """
        if seconds := self._release_rates.wait(analyst):
            raise too_often(seconds)
        plan = await self.explain(request, analyst, check_known)
        if plan["unbudgeted"]:
            raise Refusal(409, "NoBudget", no_budget(analyst, plan["unbudgeted"][0]))
        if plan["not_admitted"]:
            raise Refusal(400, "PlanError", plan["not_admitted"])
        if plan["seconds"] > self.configuration.limits.release_seconds:
            raise Refusal(400, "TooMuch", "this request would exceed the time limit of a release worker: split it")
        sent = {**request, "analyst": analyst, "label": label}
        if plan["program"] is not None:
            sent |= {"program": plan["program"], "sql": None}  # lowered: no process with data reads SQL
        sent |= {"name": (name := self._inflight.name()), "accounts": list(plan["bill"])}
        async with self._release_queue.place(analyst), self._load.release() as slowdown:
            times = stretch(slowdown, self.configuration.sandbox)
            seconds = plan["seconds"] * times
            if seconds > self.configuration.limits.release_seconds:
                raise overloaded(FRESH_SECONDS)
            await run_in_threadpool(check_known)
            await run_in_threadpool(self._suspend_unanswered)
            began = asyncio.get_running_loop().time()
            try:
                sent |= {"seconds": seconds, "times": times}
                answer = await self._releases.ask(sent, seconds + GRACE + _RELEASE_GRACE)
            except NoAnswer:
                try:
                    first = await run_in_threadpool(self._suspend, name)
                finally:
                    await asyncio.sleep(began + seconds - asyncio.get_running_loop().time())
                # a source that another release suspended has given its bit already
                raise failure() if first else refusal_of(SourceSuspended(IS_SUSPENDED)) from None
        return read_answer(answer)

    def _suspend_unanswered(self) -> None:
        """Suspend the sources of releases whose workers died, and which are not suspended yet.

        The web process died too, or its disk was full.
        """
        for name in filter(self._inflight.ended, self._inflight.names()):
            self._suspend(name)

    def _wait_for_others(self) -> None:
        """Return when no release of an earlier web process is under way."""
        for name in self._inflight.names():
            self._inflight.ended(name, wait=True)

    def _suspend_after(self, name: str) -> None:
        """Wait for a worker of a dead web process, and suspend its sources if it fails."""
        self._inflight.ended(name, wait=True)
        self._suspend(name)

    def _suspend(self, name: str) -> bool:
        """Suspend the sources of a release without an answer; False where they were before."""
        accounts, suspended = self._inflight.suspend(name, self.ledger)
        if suspended:
            log("suspended", accounts=" ".join(sorted(suspended)))
        return bool(suspended) or not accounts
