"""The first process of the service, and its web server: uvicorn with TLS and limits."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import ssl
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from wpinq.errors import UsageError, WpinqError, system_reason
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.kernel.sandbox.process import ASKED_TO_END
from wpinq.service.app import create_app, security_headers
from wpinq.service.config import Configuration
from wpinq.service.dispatcher import Dispatcher, measure_slowdown
from wpinq.service.errors import Refusal, log
from wpinq.service.inflight import InflightReleases
from wpinq.service.middleware import UNIX, RequestGuard
from wpinq.service.processes import NICENESS, Channel, Role, StopAsked, Supervisor, serve_one, stop_on_signals
from wpinq.service.workers import DataWorkerDied, PlannerWorker, hold_data, read_declared


def server_context(configuration: Configuration) -> ssl.SSLContext | None:
    """The TLS context; None where connections are not encrypted.

    Raises
    ------
    UsageError
        When the files are none that TLS can use, the key asks for a passphrase, or others can read it.
    """
    certificate, key = configuration.certificate, configuration.key
    if certificate is None or key is None:
        return None

    def ask() -> NoReturn:
        raise UsageError(f"{key} has a passphrase, which a service cannot enter: give a key without one, mode 0600")

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        _check_private(key)
        context.load_cert_chain(certificate, key, password=ask)
    except (OSError, ssl.SSLError):
        raise UsageError(f"{certificate} and {key} are no certificate and its key, in PEM") from None
    return context


def _check_private(key: Path) -> None:
    """Refuse a private key that others can read.

    The group may, where the key is another user's, as system keys are root's.
    """
    status = key.stat()
    if status.st_mode & (0o077 if status.st_uid == os.geteuid() else 0o027):
        raise UsageError(f"{key} is readable by other users, who could then decrypt requests: chmod 600 it")


class Certificate:
    """The certificate and key of a service, which are read again without a new start.

    Attributes
    ----------
    context : ssl.SSLContext or None
        For new connections; None where they are not encrypted.
    """

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self.context = server_context(configuration)

    def reload(self, tell: Callable[[], object], *given: object) -> None:
        """Read the files again, if there are any; a bad certificate changes nothing but the log."""
        try:
            self.context = server_context(self._configuration)
        except UsageError as error:
            log("certificate kept", reason=str(error))
        else:
            tell()


#: Seconds for requests to end when the service is asked to.
_GRACE = 3


def listen(dispatcher: Dispatcher, listener: socket.socket, certificate: Certificate) -> None:
    """Answer clients until a signal asks to stop; SIGHUP has the certificate read again."""
    signal.signal(signal.SIGHUP, partial(certificate.reload, partial(log, "read again")))
    try:
        dispatcher.start()
    except WpinqError as error:  # then the service ends
        log("failure", error=type(error).__name__, reason=str(error))
        raise
    limits, encrypted = dispatcher.configuration.limits, certificate.context is not None
    application = RequestGuard(create_app(dispatcher), dispatcher, security_headers(encrypted))
    unnamed = UNIX if listener.family == socket.AF_UNIX else ""  # of TCP, one that is gone already
    config = uvicorn.Config(
        application,
        http=_protocol(limits.slow_seconds, limits.connections, certificate, unnamed),
        ws="none",
        loop="asyncio",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=int(limits.slow_seconds) or 1,
        timeout_graceful_shutdown=_GRACE,
    )
    os.nice(NICENESS)
    uvicorn.Server(config).run(sockets=[listener])


def _protocol(wait: float, most: int, certificate: Certificate, unnamed: str) -> Any:
    """The protocols of uvicorn, for a bounded number of connections with bounded waiting.

    A connection counts from its start, also while it begins to encrypt. `unnamed` is the address of clients that have
    none.
    """
    open_connections = set[asyncio.BaseProtocol]()
    of_tls: Any = {"waiter": None, "server_side": True, "ssl_handshake_timeout": wait, "ssl_shutdown_timeout": wait}

    class Refused(asyncio.Protocol):
        """One connection too many."""

        def connection_made(self, transport: Any) -> None:
            transport.abort()

    class Encrypted(SSLProtocol):
        """TLS on one connection."""

        max_size = 16 * 1024  # a record of TLS fits into it, and each connection has one

        def connection_lost(self, exc: BaseException | None) -> None:
            open_connections.discard(self._app_protocol)
            super().connection_lost(exc)

    class PatientProtocol(H11Protocol):
        """HTTP on one connection."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.client = self.client or (unnamed, 0)
            self._waiting = self.loop.call_later(wait, self._give_up, self.cycle)

        def connection_lost(self, error: Exception | None) -> None:
            open_connections.discard(self)
            self._waiting.cancel()
            super().connection_lost(None)  # with an error, a timer would hold this for as long as a client may be slow

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._waiting.cancel()
            self._waiting = self.loop.call_later(wait, self._give_up, self.cycle)

        def _give_up(self, before: Any) -> None:
            """No request began since."""
            if self.cycle is before and (before is None or before.response_complete):
                self.transport.abort()

        def send_400_response(self, msg: str) -> None:
            refusal = Refusal(400, "NoRequest", "this is no HTTP request that can be read")
            response = refusal.response(connection="close")
            head = h11.Response(status_code=400, headers=response.raw_headers)
            events = (head, h11.Data(data=bytes(response.body)), h11.EndOfMessage())
            if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
                for event in events:
                    self.transport.write(self.conn.send(event) or b"")
            self.transport.close()

    def protocol(**given: Any) -> asyncio.BaseProtocol:
        if len(open_connections) >= most:
            return Refused()
        http = PatientProtocol(**given)
        open_connections.add(http)
        if certificate.context is None:
            return http
        return Encrypted(http.loop, http, certificate.context, **of_tls)

    return protocol


# The processes of a service: the first one forks all others, and ends with the data worker.
#
# The first process knows the configuration and has no data and no threads. It forks the data worker, then planners
# and the web process, which have no data. A planner that ends, or a web process that dies, is forked anew. Without the
# data worker there is nothing to serve, and the service ends.


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
    certificate = Certificate(configuration)  # refused here, before data are read
    if isinstance(configuration.ledger, Path):  # in PostgreSQL, several services share a ledger
        InflightReleases(configuration.ledger).begin()
    stop_on_signals(signal.SIGTERM, signal.SIGINT)
    with ExitStack() as held:
        listener = held.enter_context(_listener(configuration))
        planners, releases, load = Channel.create(), Channel.create(), Channel.create()
        end_of_data = signal.SIGKILL
        children = Supervisor()
        # here too, for a web process that is forked later
        signal.signal(signal.SIGHUP, partial(certificate.reload, partial(children.send, "web", signal.SIGHUP)))
        try:
            mine, theirs = socket.socketpair()
            with mine:
                with theirs:
                    hold = partial(hold_data, configuration, releases, theirs)
                    children.fork(Role("data", hold, again=False, without=(listener, planners, load, mine)))
                declared = read_declared(mine)
            ledger = held.enter_context(Ledger(configuration.ledger, create=False))
            end_of_data = ASKED_TO_END
            on_ready(_address(configuration, listener), ledger)
            planner = PlannerWorker(configuration, declared, ledger)
            planner.prepare()
            plan, measure = partial(serve_one, planners, planner.answer), partial(serve_one, load, measure_slowdown)
            children.fork(Role("planner", plan, again=True, without=(listener, releases, load)), configuration.planners)
            children.fork(Role("load", measure, again=True, without=(listener, planners, releases)))
            dispatcher = Dispatcher(configuration, declared, ledger, planners, releases, load)
            children.fork(Role("web", partial(listen, dispatcher, listener, certificate), again=True))
            lost = children.tend()
            raise DataWorkerDied(f"the service ends: its {lost.name} process ended, and it cannot go on without it")
        except StopAsked:
            log("stopping")
        finally:
            for name, number in (("web", signal.SIGTERM), ("planner", signal.SIGKILL), ("load", signal.SIGKILL)):
                children.stop(name, number)
            # with its release workers, each after it has suspended the sources of a failed evaluation
            children.stop("data", end_of_data)


def _listener(configuration: Configuration) -> socket.socket:
    """The socket for clients: bound before data are read, so that a taken port shows at once."""
    host, port, path = configuration.host, configuration.port, configuration.socket
    try:
        if path is None:
            family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            made = socket.create_server(address, family=family, backlog=512)
        else:
            if path.is_socket():
                path.unlink()  # of a service that has ended
            made = socket.create_server(str(path), family=socket.AF_UNIX, backlog=512)
            path.chmod(0o660)
    except OSError as error:
        where = f"{host}, port {port}" if path is None else path
        raise UsageError(f"cannot listen on {where} ({system_reason(error)}): name another place") from None
    return socket.socket(fileno=made.detach())  # which knows its protocol: asyncio sets TCP_NODELAY on TCP alone


def _address(configuration: Configuration, listener: socket.socket) -> str:
    """The address for clients."""
    if configuration.socket is not None:
        return f"unix:{configuration.socket}"
    scheme = "http" if configuration.certificate is None else "https"
    host = f"[{configuration.host}]" if ":" in configuration.host else configuration.host
    return f"{scheme}://{host}:{listener.getsockname()[1]}"
