"""The processes of a service: who forks whom, and what ends with whom.

The parent of all knows the configuration and has no data and no threads. It forks the keeper, which has the data, then
clerks and the front, which have none. A clerk or a front that dies is forked anew. Without the keeper there is
nothing to serve, and the service ends.
"""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Mapping
from contextlib import ExitStack

from wpinq.errors import UsageError, system_reason
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.kernel.prepare import DeclaredSource
from wpinq.kernel.sandbox.process import ASKED_TO_END
from wpinq.service.app import Front
from wpinq.service.config import Configuration
from wpinq.service.inflight import InflightReleases
from wpinq.service.ipc import Desk
from wpinq.service.logs import log
from wpinq.service.server import listen, server_context
from wpinq.service.supervisor import Role, StopAsked, Supervisor, stop_on_signals
from wpinq.service.workers.planner import Clerk
from wpinq.service.workers.release import DataWorkerDied, Keeper, read_declared

_BACKLOG = 512


def serve(configuration: Configuration, on_ready: Callable[[str, Ledger], None]) -> None:
    """Serve until a signal asks to stop.

    Parameters
    ----------
    configuration : Configuration
        The service.
    on_ready : callable
        Called with the address and the ledger, when the data are protected and before anybody is answered.

    Raises
    ------
    WpinqError
        When it cannot begin, or the keeper died.
    """
    server_context(configuration)  # refused here, before data are read
    InflightReleases(configuration.ledger).begin()
    stop_on_signals()
    with ExitStack() as held:
        listener = held.enter_context(_listener(configuration))
        clerk_desk, slot_desk, end_of_keeper = Desk.made(), Desk.made(), signal.SIGKILL
        children = Supervisor()
        try:
            declared = _keeper(children, configuration, slot_desk)
            ledger = held.enter_context(Ledger(configuration.ledger, create=False))
            end_of_keeper = ASKED_TO_END
            on_ready(_address(configuration, listener), ledger)
            _others(children, configuration, declared, ledger, (clerk_desk, slot_desk), listener)
            lost = children.tend()
            end_of_keeper = signal.SIGKILL
            raise DataWorkerDied(f"the service ends: its {lost.name} ended, and there is no going on without it")
        except StopAsked:
            log("stopping")
        finally:
            for name, number in (("front", signal.SIGTERM), ("clerk", signal.SIGKILL)):
                children.stop(name, number)
            children.stop("keeper", end_of_keeper)  # with its slots, each after it has closed what had failed


def _keeper(children: Supervisor, configuration: Configuration, desk: Desk) -> Mapping[str, DeclaredSource]:
    mine, theirs = socket.socketpair()
    with mine:
        with theirs:
            children.fork(Role("keeper", Keeper(configuration, desk, theirs).work, again=False))
        return read_declared(mine)


def _others(
    children: Supervisor,
    configuration: Configuration,
    declared: Mapping[str, DeclaredSource],
    ledger: Ledger,
    desks: tuple[Desk, Desk],
    listener: socket.socket,
) -> None:
    seconds = configuration.limits.explain_seconds
    clerk = Clerk(desks[0], configuration.declared, declared, ledger, configuration.untrusted, seconds)
    for _ in range(configuration.clerks):
        children.fork(Role("clerk", clerk.work, again=True))
    front = Front(configuration, declared, ledger, *desks)
    children.fork(Role("front", lambda: listen(front, listener), again=True))


def _listener(configuration: Configuration) -> socket.socket:
    """The socket at which clients are heard: bound before data are read, so that a taken port shows at once."""
    host, port = configuration.host, configuration.port
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address, family=family, backlog=_BACKLOG)
    except OSError as error:
        raise UsageError(f"cannot listen on {host}, port {port} ({system_reason(error)}): name another port") from None


def _address(configuration: Configuration, listener: socket.socket) -> str:
    """What clients connect to."""
    scheme = "http" if configuration.certificate is None else "https"
    host = f"[{configuration.host}]" if ":" in configuration.host else configuration.host
    return f"{scheme}://{host}:{listener.getsockname()[1]}"
