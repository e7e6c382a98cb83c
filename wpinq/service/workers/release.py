"""The keeper, which holds the protected data, and its slots: each is forked from it, releases once, and ends.

The keeper protects the data before any slot is forked, and does nothing else: no request reaches it. So a slot that
dies takes nothing along, and no slot knows what another one did but by the ledger.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
from collections.abc import Mapping
from typing import Any

from wpinq.errors import WpinqError
from wpinq.kernel.ledger.ledger import SuspensionError
from wpinq.kernel.prepare import DeclaredSource
from wpinq.kernel.sandbox.process import ASKED_TO_END
from wpinq.kernel.session import Session
from wpinq.noise.epsilon import format_epsilon
from wpinq.service.config import Configuration
from wpinq.service.inflight import InflightReleases
from wpinq.service.ipc import Desk, received, serve_one
from wpinq.service.logs import log
from wpinq.service.programs import releases_of
from wpinq.service.serializers import released
from wpinq.service.supervisor import Role, Supervisor


class Keeper:
    """The process that holds the data.

    Parameters
    ----------
    configuration : Configuration
        What to protect, and how.
    desk : Desk
        Where slots take requests.
    ready : socket
        Told once that the data are protected, or why not.
    """

    def __init__(self, configuration: Configuration, desk: Desk, ready: socket.socket) -> None:
        self._configuration, self._desk, self._ready = configuration, desk, ready

    def work(self) -> None:
        """Protect the data, and fork slots for ever."""
        # before engines have threads, which inherit it; SIGTERM may reach all processes, and is for the first
        signal.pthread_sigmask(signal.SIG_BLOCK, [ASKED_TO_END, signal.SIGTERM])
        try:
            session = self._protect()
        except WpinqError as error:  # for the curator, who started the service: it may tell of rows
            self._tell(error)
            return
        self._tell(dict(session.declared()))
        slots = Supervisor()
        slot = Role("slot", ReleaseWorker(self._configuration, self._desk, session).work, again=True)
        for _ in range(self._configuration.slots):
            slots.fork(slot)
        if slots.tend_until(ASKED_TO_END) is None:
            slots.stop(slot.name, ASKED_TO_END)

    def _protect(self) -> Session:
        told = self._configuration
        session = Session(told.ledger, sandbox=told.untrusted, on_suspended=_log_closed)
        known = {each.account: each.budget for each in session.accounts()}
        for offered in told.sources.values():
            account = offered.query.plan.operator.account  # type: ignore[attr-defined]  # a source's
            # the curator may have changed it since, on record: what is declared is where it began
            budget = known.get(account, offered.budget)
            session.protect(offered.query, offered.data, budget, version=offered.version)
        return session

    def _tell(self, what: object) -> None:
        with self._ready as ready:
            ready.sendall(pickle.dumps(what))


def read_declared(ready: socket.socket) -> dict[str, DeclaredSource]:
    """What the sources are, once the keeper has protected their data; its error where it could not."""
    sent = received(ready)
    if not sent:
        raise DataWorkerDied("the data could not be protected: the process that reads them died, as for want of memory")
    found = pickle.loads(sent)  # from our own child
    if isinstance(found, WpinqError):
        raise found
    declared: dict[str, DeclaredSource] = found
    return declared


GRACE = 60.0
"""Seconds that a slot may take beyond what it is held for, before it is given up."""


class DataWorkerDied(WpinqError):
    """The process that holds the data is gone."""


class ReleaseWorker:
    """A child of the keeper: one release.

    Parameters
    ----------
    configuration : Configuration
        Sources and limits.
    desk : Desk
        Where it takes the request.
    session : Session
        With the data; its ledger is opened anew in each process.
    """

    def __init__(self, configuration: Configuration, desk: Desk, session: Session) -> None:
        self._configuration, self._desk, self._session = configuration, desk, session
        self._under_way = InflightReleases(configuration.ledger)

    def work(self) -> None:
        """Take one request and answer it."""
        serve_one(self._desk, self._released)

    def _released(self, request: Mapping[str, Any]) -> dict[str, Any]:
        # from here on it ends where it sleeps, after it has closed what a look had failed at
        signal.pthread_sigmask(signal.SIG_BLOCK, [ASKED_TO_END, signal.SIGTERM])
        signal.setitimer(signal.ITIMER_REAL, request["seconds"] + GRACE)  # then the process ends
        asked = releases_of(request["asked"], self._configuration.declared)
        analyst = self._session.analyst(request["analyst"])
        try:
            with self._under_way.recorded(request["name"], request["accounts"]):
                results = analyst.release(asked, fresh=request["fresh"], label=request["label"])
        except SuspensionError:  # a failure is not answered before its sources are closed: as if it had died over it
            os._exit(1)
        left = {each.account: format_epsilon(each.remaining) for each in analyst.balances()}
        return {"answers": released(results, request["confidence"]), "remaining": left}


def _log_closed(accounts: tuple[str, ...]) -> None:
    log("closed to analysts", accounts=" ".join(accounts))
