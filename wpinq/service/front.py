"""The front: HTTP for analysts and curators. It has no protected data, and reads no program: clerks and slots do."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from starlette.concurrency import run_in_threadpool

from wpinq.errors import SourceClosed
from wpinq.kernel.confined_looking import IS_CLOSED
from wpinq.kernel.debits import no_budget
from wpinq.kernel.ledger import Ledger
from wpinq.kernel.orders import DeclaredSource
from wpinq.service.configuration import Configuration
from wpinq.service.handing_over import Desk, NobodyAnswered, NobodyThere, read_answer
from wpinq.service.lines import WaitingLine
from wpinq.service.logs import log
from wpinq.service.rates import Rates
from wpinq.service.refusals import Refusal, busy, failure, refusal_of, too_often
from wpinq.service.slots import GRACE
from wpinq.service.token_register import Register

_CLERK_GRACE = 20.0
"""Seconds that a clerk may take beyond its processor time, on a busy machine."""
_SLOT_GRACE = 5.0


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

    def begin(self) -> None:
        """Get ready, in the process that is the front."""
        limits = self.configuration.limits
        waiting = limits.queue, limits.queue_seconds
        self.register = Register(self.configuration.register)
        self._clerk_line = WaitingLine(self.configuration.clerks, *waiting)
        self._slot_line = WaitingLine(self.configuration.slots, *waiting)

    async def explained(self, asked: Mapping[str, Any], analyst: str | None) -> dict[str, Any]:
        """What a clerk tells of a program; what it costs an analyst, where one asks."""
        request = {"asked": asked, "analyst": analyst, "confidence": asked["confidence"], "fresh": asked["fresh"]}
        seconds = self.configuration.limits.explain_seconds
        async with self._clerk_line.place():
            try:
                answer = await self._clerks.ask(request, seconds + _CLERK_GRACE)
            except NobodyThere:
                raise busy() from None
            except NobodyAnswered:
                raise Refusal(
                    400,
                    "TooMuch",
                    "reading and pricing this takes more time or memory than a request may: ask for less at once",
                ) from None
        return read_answer(answer)

    async def released(self, asked: Mapping[str, Any], analyst: str, label: str | None) -> dict[str, Any]:
        """What a slot releases to an analyst, once a clerk found nothing wrong with it."""
        if seconds := self._releases.wait(analyst):
            raise too_often(seconds)
        told = await self.explained(asked, analyst)
        if told["unbudgeted"]:
            raise Refusal(409, "NoBudget", no_budget(analyst, told["unbudgeted"][0]))
        if told["not_admitted"]:
            raise Refusal(400, "PlanError", told["not_admitted"])
        if told["seconds"] > self.configuration.limits.release_seconds:
            raise Refusal(400, "TooMuch", "this would hold a slot for longer than one request may: split it")
        request = {"asked": asked, "analyst": analyst, "label": label, "seconds": told["seconds"]}
        request |= {"confidence": asked["confidence"], "fresh": asked["fresh"]}
        async with self._slot_line.place():
            began = asyncio.get_running_loop().time()
            try:
                answer = await self._slots.ask(request, told["seconds"] + GRACE + _SLOT_GRACE)
            except NobodyThere:
                raise busy() from None
            except NobodyAnswered:
                first = await run_in_threadpool(self._close, list(told["bill"]))
                await asyncio.sleep(began + told["seconds"] - asyncio.get_running_loop().time())
                # where another release closed them, its bit is not to be repeated
                raise failure() if first else refusal_of(SourceClosed(IS_CLOSED)) from None
        return read_answer(answer)

    def _close(self, accounts: list[str]) -> bool:
        """A slot died over a release, so that nobody in it could: close to analysts what it was over, if it is open."""
        closed = self.ledger.close_to_analysts(accounts)
        if closed:
            log("closed to analysts", accounts=" ".join(sorted(closed)))
        return bool(closed)
