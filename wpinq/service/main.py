"""The processes of a service: the first one forks all others, and ends with the data worker.

The first process knows the configuration and has no data and no threads. It forks the data worker, then planners and
the web process, which have no data. A planner or a web process that dies is forked anew. Without the data worker there
is nothing to serve, and the service ends.
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
from wpinq.service.config import Configuration
from wpinq.service.dispatcher import Dispatcher
from wpinq.service.errors import log
from wpinq.service.inflight import InflightReleases
from wpinq.service.ipc import Channel
from wpinq.service.server import listen, server_context
from wpinq.service.supervisor import Role, StopAsked, Supervisor, stop_on_signals
from wpinq.service.workers.data import DataWorker, DataWorkerDied, read_declared
from wpinq.service.workers.planner import PlannerWorker

_BACKLOG = 512


def serve(configuration: Configuration, on_ready: Callable[[str, Ledger], None]) -> None:
    """Serve until a signal asks to stop.

    Parameters
    ----------
    configuration : Configuration
        The service.
    on_ready : callable
        Called with the address and the ledger, when the data are protected and before any request is answered.

    Raises
    ------
    WpinqError
        When it cannot begin, or the data worker died.
    """
    server_context(configuration)  # refused here, before data are read
    InflightReleases(configuration.ledger).begin()
    stop_on_signals()
    with ExitStack() as held:
        listener = held.enter_context(_listener(configuration))
        planners, releases, end_of_data = Channel.create(), Channel.create(), signal.SIGKILL
        children = Supervisor()
        try:
            declared = _fork_data_worker(children, configuration, releases)
            ledger = held.enter_context(Ledger(configuration.ledger, create=False))
            end_of_data = ASKED_TO_END
            on_ready(_address(configuration, listener), ledger)
            _fork_others(children, configuration, declared, ledger, (planners, releases), listener)
            lost = children.tend()
            end_of_data = signal.SIGKILL
            raise DataWorkerDied(f"the service ends: its {lost.name} process ended, and it cannot go on without it")
        except StopAsked:
            log("stopping")
        finally:
            for name, number in (("web", signal.SIGTERM), ("planner", signal.SIGKILL)):
                children.stop(name, number)
            # with its release workers, each after it has suspended the sources of a failed evaluation
            children.stop("data", end_of_data)


def _fork_data_worker(
    children: Supervisor, configuration: Configuration, channel: Channel
) -> Mapping[str, DeclaredSource]:
    mine, theirs = socket.socketpair()
    with mine:
        with theirs:
            children.fork(Role("data", DataWorker(configuration, channel, theirs).work, again=False))
        return read_declared(mine)


def _fork_others(
    children: Supervisor,
    configuration: Configuration,
    declared: Mapping[str, DeclaredSource],
    ledger: Ledger,
    channels: tuple[Channel, Channel],
    listener: socket.socket,
) -> None:
    seconds = configuration.limits.explain_seconds
    planner = PlannerWorker(channels[0], configuration.declared, declared, ledger, configuration.sandbox, seconds)
    for _ in range(configuration.planners):
        children.fork(Role("planner", planner.work, again=True))
    dispatcher = Dispatcher(configuration, declared, ledger, *channels)
    children.fork(Role("web", lambda: listen(dispatcher, listener), again=True))


def _listener(configuration: Configuration) -> socket.socket:
    """The socket for clients: bound before data are read, so that a taken port shows at once."""
    host, port = configuration.host, configuration.port
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address, family=family, backlog=_BACKLOG)
    except OSError as error:
        raise UsageError(f"cannot listen on {host}, port {port} ({system_reason(error)}): name another port") from None


def _address(configuration: Configuration, listener: socket.socket) -> str:
    """The address for clients."""
    scheme = "http" if configuration.certificate is None else "https"
    host = f"[{configuration.host}]" if ":" in configuration.host else configuration.host
    return f"{scheme}://{host}:{listener.getsockname()[1]}"
