"""The middleware: tokens, rates, sizes, slow clients, security headers, error format.

The user is found before anything of the body is read. Every failure becomes one shape of JSON.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from wpinq.errors import WpinqError
from wpinq.service.dispatcher import Dispatcher
from wpinq.service.errors import Refusal, log, refusal_of, too_often
from wpinq.service.limits import Rates, client_network, read_body
from wpinq.service.users import User

PREFIX, METRICS = "/v1", "/metrics"
#: The beginnings of all paths that need a user.
GUARDED = f"{PREFIX}/", METRICS

#: The address of whoever connects by a Unix socket: a proxy, which is trusted.
UNIX = "unix"

_NO_TOKEN = "a token is required: Authorization: Bearer TOKEN, from the curator"
_NO_PROXY = "this request names a user, which only the proxy may do, for requests of its own pages"


class RequestGuard:
    """An application, guarded.

    Parameters
    ----------
    inner : ASGI application
        Finds the user in `scope["state"]["user"]`, and in `scope["state"]["check_known"]` a check that refuses a user
        who was removed since, or whose token was revoked or has expired.
    dispatcher : Dispatcher
        Has the users, the configuration, and the count of requests by route and status.
    headers : sequence of (bytes, bytes)
        Those of every response.
    """

    def __init__(self, inner: ASGIApp, dispatcher: Dispatcher, headers: Sequence[tuple[bytes, bytes]]) -> None:
        self._inner, self._dispatcher, self._headers = inner, dispatcher, headers
        self._service, self._limits = dispatcher.configuration, dispatcher.configuration.limits
        self._rates, self._wrong = Rates(self._limits.requests_a_minute), Rates(self._limits.wrong_tokens_a_minute)
        self._at_work: Counter[str] = Counter()
        self._proxied = ProxyHeadersMiddleware(self._answer, [*map(str, self._service.proxies), UNIX])  # type: ignore[arg-type]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "http":
            scope.setdefault("state", {})["by_proxy"] = scope["client"][0] in self._proxied.trusted_hosts
            await self._proxied(scope, receive, send)  # type: ignore[arg-type]

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The answer to a request, whose client is now the one that a trusted proxy tells of."""
        told: dict[str, Any] = {"id": secrets.token_hex(8), "status": 0, "user": ""}

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                told["status"] = message["status"]
                own = (b"x-request-id", told["id"].encode())
                message["headers"] = [*message.get("headers", ()), *self._headers, own]
            async with asyncio.timeout(self._limits.slow_seconds):  # a client that does not take its answer
                await send(message)

        try:
            try:
                await self._guarded(scope, receive, sent, told)
            except Exception as error:
                if not isinstance(error, (Refusal, WpinqError)):
                    log("failure", id=told["id"], error=type(error).__name__)
                if not told["status"]:  # else a response has begun, and the server closes the connection
                    # what is left of the body is not read, so the connection cannot go on
                    await refusal_of(error).response(connection="close")(scope, receive, sent)
        finally:
            told["route"] = route = getattr(scope.get("route"), "path", "") or "other"
            self._dispatcher.requests[route, told["status"]] += 1
            address = {"address": scope["client"][0][:64]} if self._service.log_addresses else {}
            log("request", method=scope["method"], **told, **address)

    async def _guarded(self, scope: Scope, receive: Receive, send: Send, told: dict[str, Any]) -> None:
        if {"content-length", "transfer-encoding"} <= {*Headers(scope=scope)}:
            # a proxy that ends it elsewhere would let one client's body swallow the next one's request, token and all
            raise Refusal(400, "NoRequest", "a request has one length: content-length or transfer-encoding, not both")
        if not scope["path"].startswith(GUARDED):
            await self._inner(scope, await read_body(scope, receive, 0, self._limits.slow_seconds), send)
            return
        try:
            user = await run_in_threadpool(self._known, scope)
        except Refusal:
            if seconds := await self._wrong.slow(client_network(scope["client"][0]), self._limits.slow_seconds):
                raise too_often(seconds) from None
            raise
        told["user"] = name = user.name
        if seconds := self._rates.wait(name):
            raise too_often(seconds)
        if self._at_work[name] >= self._limits.at_once:
            raise Refusal(429, "TooMany", f"at most {self._limits.at_once} of your requests run at once")
        self._at_work[name] += 1
        try:
            scope["state"] |= {"user": user, "check_known": partial(self._known, scope)}
            body = await read_body(scope, receive, self._limits.body_bytes, self._limits.slow_seconds)
            await self._inner(scope, body, send)
        finally:
            self._at_work -= Counter([name])  # which keeps no name without requests

    def _known(self, scope: Scope) -> User:
        """The user that a trusted proxy names, or else the one of the token."""
        named, given = _fields(scope, self._service.authenticate or ""), _fields(scope, "authorization")
        if named:
            foreign = not set(_fields(scope, "sec-fetch-site")) <= {"same-origin", "none"}  # of another site's page
            if foreign or len(named) > 1 or not scope["state"]["by_proxy"]:
                raise Refusal(403, "NotProxy", _NO_PROXY)
            user = self._dispatcher.users.named(named[0])
        else:
            scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
            user = self._dispatcher.users.find(token.strip()) if scheme.lower() == "bearer" else None
        if user is None:
            raise Refusal(401, "NoToken", _NO_TOKEN)
        return user


def _fields(scope: Scope, wanted: str) -> list[str]:
    """The values of a header, as often as it is there and not empty."""
    return list(filter(None, Headers(scope=scope).getlist(wanted)))
