"""The dispatcher of the web process: requests go to planners and release workers, and failures suspend their sources.

The web process holds no protected data and reads no program.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from typing import Any

from starlette.concurrency import run_in_threadpool

from wpinq.errors import SourceSuspended
from wpinq.kernel.ledger.debit import no_budget
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.kernel.prepare import DeclaredSource
from wpinq.kernel.sandbox.evaluation import IS_SUSPENDED
from wpinq.service.config import Configuration
from wpinq.service.errors import Refusal, busy, failure, log, refusal_of, too_often
from wpinq.service.fair_queue import FairQueue
from wpinq.service.inflight import InflightReleases
from wpinq.service.ipc import Channel, NoAnswer, NoWorker, read_answer
from wpinq.service.middleware import Rates
from wpinq.service.users import UserStore
from wpinq.service.workers.release import GRACE

_PLANNER_GRACE = 20.0
"""Seconds that a planner may take beyond its processor time, on a busy machine."""
_RELEASE_GRACE = 5.0
_CURATORS = ""
"""The name in the queue of all requests without an analyst: no analyst has it."""

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
    planners, releases : Channel
        The ways to the workers.
    """

    def __init__(
        self,
        configuration: Configuration,
        declared: Mapping[str, DeclaredSource],
        ledger: Ledger,
        planners: Channel,
        releases: Channel,
    ) -> None:
        self.configuration, self.declared, self.ledger = configuration, declared, ledger
        self._planners, self._releases = planners, releases
        self._release_rates = Rates(configuration.limits.releases_a_minute)
        self._inflight = InflightReleases(configuration.ledger)

    def start(self) -> None:
        """Open the files and queues of the web process, and see to releases of an earlier one."""
        limits = self.configuration.limits
        waiting = limits.queue, limits.queue_seconds
        self.users = UserStore(self.configuration.users)
        self._planner_queue = FairQueue(self.configuration.planners, *waiting)
        self._release_queue = FairQueue(self.configuration.release_workers, *waiting)
        self._suspend_unanswered()

    async def explain(self, request: Mapping[str, Any], analyst: str | None, check_known: Check) -> dict[str, Any]:
        """The explanation of a program, with the cost to an analyst, if one asks.

        A token may be revoked while its owner waits in the queue, so it is checked again afterwards.
        """
        sent = {"request": request, "analyst": analyst, "confidence": request["confidence"], "fresh": request["fresh"]}
        seconds = self.configuration.limits.explain_seconds
        async with self._planner_queue.place(analyst or _CURATORS):
            await run_in_threadpool(check_known)
            try:
                answer = await self._planners.ask(sent, seconds + _PLANNER_GRACE)
            except NoWorker:
                raise busy() from None
            except NoAnswer:
                raise Refusal(
                    400,
                    "TooMuch",
                    "reading and pricing this takes more time or memory than a request may: ask for less at once",
                ) from None
        return read_answer(answer)

    async def release(
        self, request: Mapping[str, Any], analyst: str, label: str | None, check_known: Check
    ) -> dict[str, Any]:
        """The answers of a release, after a planner accepted it. The token is checked as in `explain`."""
        if seconds := self._release_rates.wait(analyst):
            raise too_often(seconds)
        plan = await self.explain(request, analyst, check_known)
        if plan["unbudgeted"]:
            raise Refusal(409, "NoBudget", no_budget(analyst, plan["unbudgeted"][0]))
        if plan["not_admitted"]:
            raise Refusal(400, "PlanError", plan["not_admitted"])
        if plan["seconds"] > self.configuration.limits.release_seconds:
            raise Refusal(400, "TooMuch", "this would hold a release worker for longer than one request may: split it")
        sent = {"request": request, "analyst": analyst, "label": label, "seconds": plan["seconds"]}
        sent |= {"confidence": request["confidence"], "fresh": request["fresh"]}
        sent |= {"name": (name := self._inflight.name()), "accounts": list(plan["bill"])}
        async with self._release_queue.place(analyst):
            await run_in_threadpool(check_known)
            began = asyncio.get_running_loop().time()
            try:
                answer = await self._releases.ask(sent, plan["seconds"] + GRACE + _RELEASE_GRACE)
            except NoWorker:
                raise busy() from None
            except NoAnswer:
                first = await run_in_threadpool(self._suspend, name)
                await asyncio.sleep(began + plan["seconds"] - asyncio.get_running_loop().time())
                # a source that another release suspended has given its bit already
                raise failure() if first else refusal_of(SourceSuspended(IS_SUSPENDED)) from None
        return read_answer(answer)

    def _suspend_unanswered(self) -> None:
        """Suspend the sources of releases that were in flight when another web process or the whole service died."""
        for name in self._inflight.names():
            if self._inflight.lives(name):
                threading.Thread(target=self._suspend_after, args=(name,), daemon=True).start()
            else:
                self._suspend(name)

    def _suspend_after(self, name: str) -> None:
        """Wait for a worker whose web process died: nobody else would suspend the sources of its release."""
        self._inflight.wait(name)
        self._suspend(name)

    def _suspend(self, name: str) -> bool:
        """Suspend the sources of a release without an answer; False where they were suspended already.

        Without a record, no data were read, or every reading has its answer.
        """
        accounts = self._inflight.accounts(name)
        suspended = self.ledger.suspend(accounts) if accounts else frozenset()
        self._inflight.forget(name)
        if suspended:
            log("suspended", accounts=" ".join(sorted(suspended)))
        return bool(suspended) or not accounts
