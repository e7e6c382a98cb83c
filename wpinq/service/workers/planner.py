"""Planners: processes without protected data that read programs, check them, and price them.

Reading a program may take as long as its author likes, so the web process does not read it. A planner has limited
processor time and memory; one that needs more dies, and another takes its place.
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
from wpinq.kernel.sandbox.admission import admit, granted_seconds
from wpinq.kernel.sandbox.limits import Limits
from wpinq.noise.epsilon import format_epsilon
from wpinq.service.ipc import Channel, serve_one
from wpinq.service.programs import Releases, releases_of
from wpinq.service.serializers import explained

_MEMORY = 4 << 30
"""Bytes of address space."""


class PlannerWorker:
    """One explanation.

    Parameters
    ----------
    channel : Channel
        The way of requests.
    queries, declared : mapping
        The sources by name, as programs and as ledgers know them.
    ledger : Ledger
        Budgets.
    limits : Limits
        The limits of a release.
    seconds : float
        Processor time for one request.
    """

    def __init__(
        self,
        channel: Channel,
        queries: Mapping[str, Query],
        declared: Mapping[str, DeclaredSource],
        ledger: Ledger,
        limits: Limits,
        seconds: float,
    ) -> None:
        self._channel, self._queries, self._declared, self._ledger = channel, queries, declared, ledger
        self._limits, self._processor_seconds = limits, seconds

    def work(self) -> None:
        """Take one request and answer it."""
        serve_one(self._channel, self._answer)

    def _answer(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        signal.setitimer(signal.ITIMER_PROF, self._processor_seconds)  # which ends the process
        releases = releases_of(sent["request"], self._queries)
        found = explained(releases, sent["confidence"]) | self._admission(releases, sent["fresh"])
        if sent["analyst"] is not None:
            found |= self._own_cost(releases, sent["analyst"], sent["fresh"])
        return found

    def _admission(self, releases: Releases, fresh: bool) -> dict[str, Any]:
        """The time of a release worker, or why the limits do not admit it: the same whatever the data are."""
        batch = prepare_batch(releases, self._declared, fresh)
        try:
            held = [self._seconds(order) for order in batch.prepared]
        except PlanError as error:
            return {"seconds": None, "not_admitted": str(error)}
        return {"seconds": sum(held), "not_admitted": ""}

    def _seconds(self, order: PreparedMeasurement) -> float:
        seconds = granted_seconds(admit(order, order.keys_at_once, self._limits), self._limits)
        return seconds + self._limits.grace_seconds if order.evaluates_at_once else 0.0

    def _own_cost(self, releases: Releases, analyst: str, fresh: bool) -> dict[str, Any]:
        """The cost to this analyst now, and how many more releases the own budgets cover."""
        own = AnalystBudgets(self._ledger, analyst, self._declared)
        quoted, known = own.quote(releases, fresh=fresh), {each.account for each in own.balances()}
        return {
            "quote": {account: format_epsilon(epsilon) for account, epsilon in quoted.items()},
            "affords": own.affords(releases),
            "unbudgeted": sorted(account for account in quoted if account not in known),
        }
