"""The web server: uvicorn, with time for clients that are slow to say what they want, and refusals of our shape."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from wpinq.commands.exits import UsageError
from wpinq.service.configuration import Configuration
from wpinq.service.front import Front
from wpinq.service.guard import RequestGuard
from wpinq.service.refusals import Refusal
from wpinq.service.web import web_application

_GRACE = 3
"""Seconds for requests to end when the service is asked to."""


def listen(front: Front, listener: socket.socket) -> None:
    """Answer clients until a signal asks to stop."""
    front.begin()
    configuration = front.configuration
    limits, encrypted = configuration.limits, configuration.certificate is not None
    application = RequestGuard(web_application(front), front.register.whose, limits, encrypted)
    config = uvicorn.Config(
        application,
        http=_protocol(limits.slow_seconds, limits.connections),
        ws="none",
        loop="asyncio",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=int(limits.slow_seconds) or 1,
        timeout_graceful_shutdown=_GRACE,
        ssl_certfile=configuration.certificate,
        ssl_keyfile=configuration.key,
    )
    uvicorn.Server(config).run(sockets=[listener])


def check_certificate(configuration: Configuration) -> None:
    """Refuse a certificate or key that TLS cannot use."""
    if configuration.certificate is None or configuration.key is None:
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(configuration.certificate, configuration.key)
    except (OSError, ssl.SSLError):
        raise UsageError(
            f"{configuration.certificate} and {configuration.key} are no certificate and its key, in PEM"
        ) from None


def _protocol(seconds: float, most: int) -> type[asyncio.Protocol]:
    """uvicorn's protocol for connections that say in time what they want, of which there are so many at most."""

    class PatientProtocol(H11Protocol):
        """HTTP on one connection."""

        _waiting: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > most:
                transport.abort()
            else:
                self._wait()

        def connection_lost(self, error: Exception | None) -> None:
            if self._waiting is not None:
                self._waiting.cancel()
            super().connection_lost(error)

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._wait()

        def _wait(self) -> None:
            if self._waiting is not None:
                self._waiting.cancel()
            self._waiting = self.loop.call_later(seconds, self._give_up, self.cycle)

        def _give_up(self, before: Any) -> None:
            """No request began since."""
            if self.cycle is before and (before is None or before.response_complete):
                self.transport.abort()

        def send_400_response(self, msg: str) -> None:
            body = json.dumps(Refusal(400, "NoRequest", "this is no HTTP request that can be read").to_json()).encode()
            headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
            begun = h11.Response(status_code=400, headers=[*headers, (b"connection", b"close")])
            events = (begun, h11.Data(data=body), h11.EndOfMessage())
            if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
                for event in events:
                    self.transport.write(self.conn.send(event) or b"")
            self.transport.close()

    return PatientProtocol
