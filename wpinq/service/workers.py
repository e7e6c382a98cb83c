"""Worker processes of the service: data, releases and planning."""

from __future__ import annotations

import os
import pickle
import resource
import signal
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from wpinq.api.query import Query
from wpinq.errors import LedgerError, PlanError, WpinqError, system_reason
from wpinq.kernel.analysts import AnalystBudgets
from wpinq.kernel.ledger.ledger import Ledger, SuspensionError
from wpinq.kernel.prepare import DeclaredSource, PreparedMeasurement, prepare_batch
from wpinq.kernel.sandbox.admission import Limits, admit, granted_seconds
from wpinq.kernel.sandbox.process import ASKED_TO_END
from wpinq.kernel.session import Session
from wpinq.measure.answer_rows import CONFIDENCE
from wpinq.noise.epsilon_text import format_epsilon
from wpinq.service.config import Configuration
from wpinq.service.errors import log
from wpinq.service.inflight import InflightReleases
from wpinq.service.ipc import Channel, receive, serve_one
from wpinq.service.load import NICENESS
from wpinq.service.schemas import Releases, explained, released, releases_of
from wpinq.service.supervisor import Role, Supervisor

# Planners: processes without protected data that read programs, check them, and price them.
#
# Reading a program may take as long as its author likes, so the web process does not read it. A planner has limited
# processor time and memory; one that needs more dies, and another takes its place. All are forked from an image, a
# process that has explained a built-in program and so has all modules and caches at hand. It has no data, no ledger
# that is open, and nothing of an analyst: no request reaches it.

_MEMORY = 4 << 30
"""Bytes of address space."""
_BUILT_IN = """
var a = {0}.Select(r => 1).Where(x => x > 0);
var b = a.GroupBy(x => x, g => Count(g)).Join(a, x => x.key, y => y, (x, y) => y);
var c = b.NoisyCount(0.1, over: range(0, 10));
"""


@dataclass(frozen=True)
class PlannerWorker:
    """One explanation.

    Parameters
    ----------
    queries, declared : mapping
        The sources by name, as programs and as ledgers know them.
    ledger : Ledger
        Budgets.
    limits : Limits
        The limits of a release.
    seconds : float
        Processor time for one request.
    """

    queries: Mapping[str, Query]
    declared: Mapping[str, DeclaredSource]
    ledger: Ledger
    limits: Limits
    seconds: float

    def answer(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a request."""
        os.nice(NICENESS)
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        signal.setitimer(signal.ITIMER_PROF, self.seconds)  # which ends the process
        return self._explanation(sent)

    def prepare(self) -> None:
        """Explain a built-in program over the first source, for what the process then has at hand."""
        program = _BUILT_IN.format(next(iter(self.queries)))
        self._explanation({"program": program, "confidence": CONFIDENCE, "fresh": False, "analyst": None})

    def _explanation(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        releases = releases_of(sent, self.queries)
        found = explained(releases, sent["confidence"]) | self._admission(releases, sent["fresh"])
        if sent["analyst"] is not None:
            found |= self._own_cost(releases, sent["analyst"], sent["fresh"])
        return found

    def _admission(self, releases: Releases, fresh: bool) -> dict[str, Any]:
        """The time of a release worker, or the reason of the limits against it; without data."""
        batch = prepare_batch(releases, self.declared, fresh)
        try:
            held = [self._seconds(prepared) for prepared in batch.prepared]
        except PlanError as error:
            return {"seconds": None, "not_admitted": str(error)}
        return {"seconds": sum(held), "not_admitted": ""}

    def _seconds(self, prepared: PreparedMeasurement) -> float:
        seconds = granted_seconds(admit(prepared, prepared.keys_at_once, self.limits), self.limits)
        return seconds + self.limits.grace_seconds if prepared.evaluates_at_once else 0.0

    def _own_cost(self, releases: Releases, analyst: str, fresh: bool) -> dict[str, Any]:
        """The cost to this analyst now, and how many more releases the own budgets cover."""
        own = AnalystBudgets(self.ledger, analyst, self.declared)
        quoted, known = own.quote(releases, fresh=fresh), {each.account for each in own.balances()}
        return {
            "quote": {account: format_epsilon(epsilon) for account, epsilon in quoted.items()},
            "affords": own.affords(releases),
            "unbudgeted": sorted(account for account in quoted if account not in known),
        }


def hold_planners(planner: PlannerWorker, number: int, channel: Channel) -> None:
    """Prepare, and fork planners for ever."""
    with suppress(WpinqError):  # of a source over which no such program can be explained
        planner.prepare()
    role, workers = Role("planner", partial(serve_one, channel, planner.answer), again=True), Supervisor()
    for _ in range(number):
        workers.fork(role)
    workers.tend()
    raise RuntimeError("a planner could not begin, and another would fare no better")


# Release workers: children of the data worker, each for one release.

GRACE = 60.0
"""Seconds that a release worker may take beyond its granted time, before it is given up."""


def _release(
    session: Session, inflight: InflightReleases, queries: Mapping[str, Query], sent: Mapping[str, Any]
) -> dict[str, Any]:
    """The answer to a request for one release.

    Each process opens the ledger of the session anew.
    """
    # from here on it ends where it sleeps, after it has suspended the sources of a failed evaluation; SIGHUP to all
    # processes would end the child that evaluates
    signal.pthread_sigmask(signal.SIG_BLOCK, [ASKED_TO_END, signal.SIGTERM, signal.SIGHUP])
    signal.setitimer(signal.ITIMER_REAL, sent["seconds"] + GRACE)  # then the process ends
    session.set_stretch(sent["times"])
    releases = releases_of(sent, queries)
    analyst = session.analyst(sent["analyst"])
    try:
        with inflight.recorded(sent["name"], sent["accounts"]):
            results = analyst.release(releases, fresh=sent["fresh"], label=sent["label"])
    except SuspensionError:  # a failure is not answered before its sources are suspended: as if the worker died
        os._exit(1)
    except OSError as error:  # of the record, before the debit
        raise LedgerError(
            f"a release in flight cannot be recorded ({system_reason(error)}): make room on its disk"
        ) from None
    left = {each.account: format_epsilon(each.remaining) for each in analyst.balances()}
    answers = {name: released(result, sent["confidence"]) for name, result in results.items()}
    return {"answers": answers, "remaining": left}


# The data worker: the process with the protected data. It forks release workers, and no request reaches it.
#
# A release worker that dies takes nothing along, and none knows of another one but by the ledger.


class DataWorkerDied(WpinqError):
    """The process that holds the data is gone."""


def hold_data(configuration: Configuration, channel: Channel, ready: socket.socket) -> None:
    """Protect the data, and fork release workers for ever.

    Parameters
    ----------
    configuration : Configuration
        The sources and how to protect them.
    channel : Channel
        The way of requests to release workers.
    ready : socket
        Gets the declared sources once their data are protected, or the error.
    """
    # before engines have threads, which inherit it; SIGTERM may reach all processes, and is for the first
    signal.pthread_sigmask(signal.SIG_BLOCK, [ASKED_TO_END, signal.SIGTERM])
    try:
        session = _protect(configuration)
        told: object = dict(session.declared())
    except WpinqError as error:  # for the curator, who started the service: it may quote rows
        told = error
    with ready:
        ready.sendall(pickle.dumps(told))
    if isinstance(told, WpinqError):
        return
    work = partial(_release, session, InflightReleases(configuration.ledger), configuration.declared)
    role = Role("release", partial(serve_one, channel, work), again=True)
    workers = Supervisor()
    for _ in range(configuration.release_workers):
        workers.fork(role)
    if workers.tend_until(ASKED_TO_END) is None:
        workers.stop(role.name, ASKED_TO_END)


def _protect(configuration: Configuration) -> Session:
    session = Session(configuration.ledger, sandbox=configuration.sandbox, on_suspended=_log_suspended)
    known = {each.account: each.budget for each in session.balances()}
    for offered in configuration.sources.values():
        account = offered.query.plan.operator.account  # type: ignore[attr-defined]  # a source's
        # the curator may have changed it since, on record: the configuration has the first budget
        budget = known.get(account, offered.budget)
        session.protect(offered.query, offered.data, budget, version=offered.version)
    return session


def read_declared(ready: socket.socket) -> dict[str, DeclaredSource]:
    """The declared sources, after their data are protected.

    Raises the data worker's error where they cannot be.
    """
    sent = receive(ready)
    if not sent:
        raise DataWorkerDied("the data could not be protected: the process that reads them died, as for want of memory")
    found = pickle.loads(sent)  # from our own child
    if isinstance(found, WpinqError):
        raise found
    return dict(found)


def _log_suspended(accounts: tuple[str, ...]) -> None:
    log("suspended", accounts=" ".join(accounts))
