"""The data worker: the process with the protected data. It forks release workers, and no request reaches it.

A release worker that dies takes nothing along, and none knows of another one but by the ledger.
"""

from __future__ import annotations

import pickle
import signal
import socket

from wpinq.errors import WpinqError
from wpinq.kernel.prepare import DeclaredSource
from wpinq.kernel.sandbox.process import ASKED_TO_END
from wpinq.kernel.session import Session
from wpinq.service.config import Configuration
from wpinq.service.errors import log
from wpinq.service.ipc import Channel, receive
from wpinq.service.supervisor import Role, Supervisor
from wpinq.service.workers.release import ReleaseWorker


class DataWorkerDied(WpinqError):
    """The process that holds the data is gone."""


class DataWorker:
    """The process that holds the data.

    Parameters
    ----------
    configuration : Configuration
        The sources and how to protect them.
    channel : Channel
        The way of requests to release workers.
    ready : socket
        Gets the declared sources once their data are protected, or the error.
    """

    def __init__(self, configuration: Configuration, channel: Channel, ready: socket.socket) -> None:
        self._configuration, self._channel, self._ready = configuration, channel, ready

    def work(self) -> None:
        """Protect the data, and fork release workers for ever."""
        # before engines have threads, which inherit it; SIGTERM may reach all processes, and is for the first
        signal.pthread_sigmask(signal.SIG_BLOCK, [ASKED_TO_END, signal.SIGTERM])
        try:
            session = self._protect()
        except WpinqError as error:  # for the curator, who started the service: it may quote rows
            self._send(error)
            return
        self._send(dict(session.declared()))
        workers = Supervisor()
        role = Role("release", ReleaseWorker(self._configuration, self._channel, session).work, again=True)
        for _ in range(self._configuration.release_workers):
            workers.fork(role)
        if workers.tend_until(ASKED_TO_END) is None:
            workers.stop(role.name, ASKED_TO_END)

    def _protect(self) -> Session:
        configuration = self._configuration
        session = Session(configuration.ledger, sandbox=configuration.sandbox, on_suspended=_log_suspended)
        known = {each.account: each.budget for each in session.accounts()}
        for offered in configuration.sources.values():
            account = offered.query.plan.operator.account  # type: ignore[attr-defined]  # a source's
            # the curator may have changed it since, on record: the configuration has the first budget
            budget = known.get(account, offered.budget)
            session.protect(offered.query, offered.data, budget, version=offered.version)
        return session

    def _send(self, what: object) -> None:
        with self._ready as ready:
            ready.sendall(pickle.dumps(what))


def read_declared(ready: socket.socket) -> dict[str, DeclaredSource]:
    """The declared sources, once their data are protected; the data worker's error where they cannot be."""
    sent = receive(ready)
    if not sent:
        raise DataWorkerDied("the data could not be protected: the process that reads them died, as for want of memory")
    found = pickle.loads(sent)  # from our own child
    if isinstance(found, WpinqError):
        raise found
    declared: dict[str, DeclaredSource] = found
    return declared


def _log_suspended(accounts: tuple[str, ...]) -> None:
    log("suspended", accounts=" ".join(accounts))
