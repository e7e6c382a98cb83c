"""The front: HTTP for analysts and curators. It has no protected data, and reads no program: clerks and slots do."""

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
from wpinq.service.errors import Refusal, busy, failure, refusal_of, too_often
from wpinq.service.fair_queue import FairQueue
from wpinq.service.inflight import InflightReleases
from wpinq.service.ipc import Desk, NoAnswer, NoWorker, read_answer
from wpinq.service.logs import log
from wpinq.service.middleware import Rates
from wpinq.service.users import Register
from wpinq.service.workers.release import GRACE

_CLERK_GRACE = 20.0
"""Seconds that a clerk may take beyond its processor time, on a busy machine."""
_SLOT_GRACE = 5.0
_CURATORS = ""
"""Who stands in line for what no analyst asks: a name that no analyst has."""


Check = Callable[[], object]


class Front:
    """What the process has that clients talk to.

    Parameters
    ----------
    configuration : Configuration
        Limits, files, TLS.
    declared : mapping
        The sources, as the ledger knows them.
    ledger : Ledger
        Budgets.
    clerks, slots : Desk
        Where requests are handed over.
    """

    def __init__(
        self,
        configuration: Configuration,
        declared: Mapping[str, DeclaredSource],
        ledger: Ledger,
        clerks: Desk,
        slots: Desk,
    ) -> None:
        self.configuration, self.declared, self.ledger = configuration, declared, ledger
        self._clerks, self._slots = clerks, slots
        self._releases = Rates(configuration.limits.releases_a_minute)
        self._under_way = InflightReleases(configuration.ledger)

    def begin(self) -> None:
        """Get ready, in the process that is the front."""
        limits = self.configuration.limits
        waiting = limits.queue, limits.queue_seconds
        self.register = Register(self.configuration.register)
        self._clerk_line = FairQueue(self.configuration.clerks, *waiting)
        self._slot_line = FairQueue(self.configuration.slots, *waiting)
        self._see_to_others()

    async def explained(self, asked: Mapping[str, Any], analyst: str | None, check_known: Check) -> dict[str, Any]:
        """What a clerk tells of a program; what it costs an analyst, where one asks.

        Who asks may be turned away while they wait in line: so that is checked again when it is their turn.
        """
        request = {"asked": asked, "analyst": analyst, "confidence": asked["confidence"], "fresh": asked["fresh"]}
        seconds = self.configuration.limits.explain_seconds
        async with self._clerk_line.place(analyst or _CURATORS):
            await run_in_threadpool(check_known)
            try:
                answer = await self._clerks.ask(request, seconds + _CLERK_GRACE)
            except NoWorker:
                raise busy() from None
            except NoAnswer:
                raise Refusal(
                    400,
                    "TooMuch",
                    "reading and pricing this takes more time or memory than a request may: ask for less at once",
                ) from None
        return read_answer(answer)

    async def released(
        self, asked: Mapping[str, Any], analyst: str, label: str | None, check_known: Check
    ) -> dict[str, Any]:
        """What a slot releases to an analyst, once a clerk found nothing wrong with it. Checked as in `explained`."""
        if seconds := self._releases.wait(analyst):
            raise too_often(seconds)
        told = await self.explained(asked, analyst, check_known)
        if told["unbudgeted"]:
            raise Refusal(409, "NoBudget", no_budget(analyst, told["unbudgeted"][0]))
        if told["not_admitted"]:
            raise Refusal(400, "PlanError", told["not_admitted"])
        if told["seconds"] > self.configuration.limits.release_seconds:
            raise Refusal(400, "TooMuch", "this would hold a slot for longer than one request may: split it")
        request = {"asked": asked, "analyst": analyst, "label": label, "seconds": told["seconds"]}
        request |= {"confidence": asked["confidence"], "fresh": asked["fresh"]}
        request |= {"name": (name := self._under_way.name()), "accounts": list(told["bill"])}
        async with self._slot_line.place(analyst):
            await run_in_threadpool(check_known)
            began = asyncio.get_running_loop().time()
            try:
                answer = await self._slots.ask(request, told["seconds"] + GRACE + _SLOT_GRACE)
            except NoWorker:
                raise busy() from None
            except NoAnswer:
                first = await run_in_threadpool(self._close, name)
                await asyncio.sleep(began + told["seconds"] - asyncio.get_running_loop().time())
                # where another release closed them, its bit is not to be repeated
                raise failure() if first else refusal_of(SourceSuspended(IS_SUSPENDED)) from None
        return read_answer(answer)

    def _see_to_others(self) -> None:
        """Close what was under way when another front died, or the whole service, and its slot as well."""
        for name in self._under_way.names():
            if self._under_way.lives(name):
                threading.Thread(target=self._close_after, args=(name,), daemon=True).start()
            else:
                self._close(name)

    def _close_after(self, name: str) -> None:
        """A slot lives on whose front has died: if it dies too, there is nobody else to close what it is over."""
        self._under_way.wait(name)
        self._close(name)

    def _close(self, name: str) -> bool:
        """Close to analysts what a release is over whose slot gave no answer; False where others had closed it.

        Where there is no record of it, nothing was looked at, or all that there was to look at has an answer.
        """
        accounts = self._under_way.accounts(name)
        closed = self.ledger.suspend(accounts) if accounts else frozenset()
        self._under_way.forget(name)
        if closed:
            log("closed to analysts", accounts=" ".join(sorted(closed)))
        return bool(closed) or not accounts
