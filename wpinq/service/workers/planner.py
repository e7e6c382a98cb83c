"""Clerks: processes without protected data that read programs, check them, and tell what they cost.

Reading a program may take as long as its author likes to make it, so it is not done in the front: a clerk has so much
processor time and memory, and where that does not suffice it dies, and another takes its place.
"""

from __future__ import annotations

import resource
import signal
from collections.abc import Mapping
from typing import Any

from wpinq.api.query import Query
from wpinq.errors import PlanError
from wpinq.kernel.analysts import AnalystBudgets
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.kernel.prepare import DeclaredSource, PreparedMeasurement, prepare_batch
from wpinq.kernel.sandbox.admission import admitted, granted_seconds
from wpinq.kernel.sandbox.limits import Limits
from wpinq.noise.epsilon import format_epsilon
from wpinq.service.ipc import Desk, serve_one
from wpinq.service.programs import Releases, releases_of
from wpinq.service.serializers import explained

_MEMORY = 4 << 30
"""Bytes of address space."""


class Clerk:
    """What a clerk knows: declarations, and the ledger for what an analyst has left.

    Parameters
    ----------
    desk : Desk
        Where requests are taken.
    queries, declared : mapping
        The sources by name, as programs and as ledgers know them.
    ledger : Ledger
        Budgets.
    limits : Limits
        What a release may take.
    seconds : float
        Of processor time for one request.
    """

    def __init__(
        self,
        desk: Desk,
        queries: Mapping[str, Query],
        declared: Mapping[str, DeclaredSource],
        ledger: Ledger,
        limits: Limits,
        seconds: float,
    ) -> None:
        self._desk, self._queries, self._declared, self._ledger = desk, queries, declared, ledger
        self._limits, self._processor_seconds = limits, seconds

    def work(self) -> None:
        """Take one request and answer it."""
        serve_one(self._desk, self._answered)

    def _answered(self, request: Mapping[str, Any]) -> dict[str, Any]:
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        signal.setitimer(signal.ITIMER_PROF, self._processor_seconds)  # which ends the process
        return self._told(request)

    def _told(self, request: Mapping[str, Any]) -> dict[str, Any]:
        asked = releases_of(request["asked"], self._queries)
        found = explained(asked, request["confidence"]) | self._admission(asked, request["fresh"])
        if request["analyst"] is not None:
            found |= self._own(asked, request["analyst"], request["fresh"])
        return found

    def _admission(self, asked: Releases, fresh: bool) -> dict[str, Any]:
        """How long it would hold a slot, or why the limits do not admit it: the same whatever the data are."""
        batch = prepare_batch(asked, self._declared, fresh)
        try:
            held = [self._seconds(order) for order in batch.prepared]
        except PlanError as error:
            return {"seconds": None, "not_admitted": str(error)}
        return {"seconds": sum(held), "not_admitted": ""}

    def _seconds(self, order: PreparedMeasurement) -> float:
        seconds = granted_seconds(admitted(order, order.keys_at_once, self._limits), self._limits)
        return seconds + self._limits.grace_seconds if order.evaluates_at_once else 0.0

    def _own(self, asked: Releases, analyst: str, fresh: bool) -> dict[str, Any]:
        """What it costs this analyst now, and how often more the own budgets cover it."""
        own = AnalystBudgets(self._ledger, analyst, self._declared)
        quoted, known = own.quote(asked, fresh=fresh), {each.account for each in own.balances()}
        return {
            "quote": {account: format_epsilon(epsilon) for account, epsilon in quoted.items()},
            "affords": own.affords(asked),
            "unbudgeted": sorted(account for account in quoted if account not in known),
        }
