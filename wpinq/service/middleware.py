"""The guard before the application: tokens, limits, security headers, the log, and one shape of errors.

The token is checked before anything of the body is read. Every failure becomes one shape of JSON.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from starlette.concurrency import run_in_threadpool

from wpinq.service.config import ServiceLimits
from wpinq.service.errors import Refusal, failure, log, too_often
from wpinq.service.limits import Application, Message, Rates, Receive, Send, read_body, refuse
from wpinq.service.users import User

PREFIX, METRICS = "/v1", "/metrics"
GUARDED = f"{PREFIX}/", METRICS
"""The beginnings of all paths that need a token."""

_NO_TOKEN = "this needs a token: Authorization: Bearer TOKEN, as the curator gave it to you"


class RequestGuard:
    """An application, guarded.

    Parameters
    ----------
    inner : ASGI application
        Finds the user in `scope["state"]["user"]`, and in `scope["state"]["check_known"]` a check that refuses a token
        which was revoked since.
    find : callable
        The user of a token, if there is one.
    limits : ServiceLimits
        Sizes, rates, times.
    headers : sequence of (bytes, bytes)
        Those of every response.
    requests : Counter
        Counts requests by route and status.
    """

    def __init__(
        self,
        inner: Application,
        find: Callable[[str], User | None],
        limits: ServiceLimits,
        headers: Sequence[tuple[bytes, bytes]],
        requests: Counter[tuple[str, int]],
    ) -> None:
        self._inner, self._find, self._limits, self._headers, self._requests = inner, find, limits, headers, requests
        self._rates = Rates(limits.requests_a_minute)
        self._at_work: Counter[str] = Counter()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            return
        told: dict[str, Any] = {"status": 0, "user": ""}

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                told["status"] = message["status"]
                message["headers"] = [*message.get("headers", ()), *self._headers]
            async with asyncio.timeout(self._limits.slow_seconds):  # a client that does not take its answer
                await send(message)

        try:
            await self._guarded(scope, receive, sent, told)
        except Refusal as refusal:
            await refuse(refusal, sent, told["status"])
        except Exception as error:
            log("failure", error=type(error).__name__)
            await refuse(failure(), sent, told["status"])
        finally:
            route = getattr(scope.get("route"), "path", "") or "other"
            self._requests[route, told["status"]] += 1
            log("request", method=scope["method"], route=route, status=told["status"], user=told["user"])

    async def _guarded(self, scope: Message, receive: Receive, send: Send, told: dict[str, Any]) -> None:
        given = {name for name, _ in scope["headers"]}
        if {b"content-length", b"transfer-encoding"} <= given:
            # a proxy that ends it elsewhere would let one client's body swallow the next one's request, token and all
            raise Refusal(400, "NoRequest", "a request has one length: content-length or transfer-encoding, not both")
        if not scope["path"].startswith(GUARDED):
            await self._inner(scope, await read_body(scope, receive, self._limits), send)
            return
        user = await run_in_threadpool(self._known, scope)
        told["user"] = name = user.name
        if seconds := self._rates.wait(name):
            raise too_often(seconds)
        if self._at_work[name] >= self._limits.at_once:
            raise Refusal(429, "TooMany", f"at most {self._limits.at_once} of your requests are worked on at once")
        self._at_work[name] += 1
        try:
            scope.setdefault("state", {})["user"] = user
            scope["state"]["check_known"] = partial(self._known, scope)
            await self._inner(scope, await read_body(scope, receive, self._limits), send)
        finally:
            self._at_work[name] -= 1
            if not self._at_work[name]:
                del self._at_work[name]

    def _known(self, scope: Message) -> User:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        scheme, _, token = given[0].decode("latin-1").partition(" ") if len(given) == 1 else ("", "", "")
        user = self._find(token.strip()) if scheme.lower() == "bearer" else None
        if user is None:
            raise Refusal(401, "NoToken", _NO_TOKEN)
        return user
