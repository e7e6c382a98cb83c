"""The middleware: tokens, rates, sizes, slow clients, security headers, error format.

The token is checked before anything of the body is read. Every failure becomes one shape of JSON.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, MutableMapping, Sequence
from functools import partial
from typing import Any

from starlette.concurrency import run_in_threadpool

from wpinq.service.config import ServiceLimits
from wpinq.service.errors import Refusal, failure, log, response_parts, too_often
from wpinq.service.users import User


class Rates:
    """Rate limits: for each user a bucket of tries, which fills again in a minute.

    Parameters
    ----------
    a_minute : int
        The tries of a full bucket.
    clock : callable
        Seconds, as `time.monotonic` tells them.

    Examples
    --------
    >>> now = [0.0]
    >>> rates = Rates(2, clock=lambda: now[0])
    >>> [rates.wait("alice") for _ in range(3)], rates.wait("bob")
    ([0.0, 0.0, 30.0], 0.0)
    >>> now[0] = 30.0
    >>> rates.wait("alice")
    0.0
    """

    def __init__(self, a_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._size = float(a_minute)
        self._clock = clock
        self._left: dict[Hashable, tuple[float, float]] = {}

    def wait(self, user: Hashable) -> float:
        """Take a try: 0, or the seconds until there is one, and then none is taken."""
        now, each = self._clock(), 60.0 / self._size
        left, then = self._left.get(user, (self._size, now))
        left = min(self._size, left + (now - then) / each)
        taken = left >= 1.0
        self._left[user] = (left - 1.0 if taken else left, now)
        return 0.0 if taken else (1.0 - left) * each


Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

GUARDED = "/v1/"
"""The beginning of all paths that need a token."""

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
    """

    def __init__(
        self,
        inner: Application,
        find: Callable[[str], User | None],
        limits: ServiceLimits,
        headers: Sequence[tuple[bytes, bytes]],
    ) -> None:
        self._inner, self._find, self._limits, self._headers = inner, find, limits, headers
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
            await _refuse(refusal, sent, told)
        except Exception as error:
            log("failure", error=type(error).__name__)
            await _refuse(failure(), sent, told)
        finally:
            route = getattr(scope.get("route"), "path", "") or "other"
            log("request", method=scope["method"], route=route, status=told["status"], user=told["user"])

    async def _guarded(self, scope: Message, receive: Receive, send: Send, told: dict[str, Any]) -> None:
        given = {name for name, _ in scope["headers"]}
        if {b"content-length", b"transfer-encoding"} <= given:
            # a proxy that ends it elsewhere would let one client's body swallow the next one's request, token and all
            raise Refusal(400, "NoRequest", "a request has one length: content-length or transfer-encoding, not both")
        if not scope["path"].startswith(GUARDED):
            await self._inner(scope, await self._read(scope, receive), send)
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
            await self._inner(scope, await self._read(scope, receive), send)
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

    async def _read(self, scope: Message, receive: Receive) -> Receive:
        """The body, all of it and in time, given on as one message."""
        most = self._limits.body_bytes
        too_large = Refusal(413, "TooLarge", f"a request has at most {most:,} bytes")
        for name, value in scope["headers"]:
            if name == b"content-length" and not (value.isdigit() and len(value) < 20 and int(value) <= most):
                raise too_large
        body = bytearray()
        try:
            async with asyncio.timeout(self._limits.slow_seconds):
                more = True
                while more:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise Refusal(400, "Gone", "the request ended before its body did")
                    body += message.get("body", b"")
                    more = message.get("more_body", False)
                    if len(body) > most:
                        raise too_large
        except TimeoutError:
            raise Refusal(408, "TooSlow", "the request took too long to arrive") from None
        whole = {"type": "http.request", "body": bytes(body), "more_body": False}
        given = False

        async def replayed() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return whole

        return replayed


async def _refuse(refusal: Refusal, send: Send, told: dict[str, Any]) -> None:
    if told["status"]:  # a response has begun: the server closes the connection, and nothing else can be said
        return
    body, given = response_parts(refusal)
    # what is left of the body is not read, so the connection cannot go on
    headers = {**given, "content-length": str(len(body)), "connection": "close"}
    coded = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": refusal.status, "headers": coded})
    await send({"type": "http.response.body", "body": body})
