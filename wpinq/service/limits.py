"""Limits on requests: how often they come, how large they are, and how long they take to arrive."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable, MutableMapping
from typing import Any

from wpinq.service.config import ServiceLimits
from wpinq.service.errors import Refusal, response_parts

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]


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


async def read_body(scope: Message, receive: Receive, limits: ServiceLimits) -> Receive:
    """The body, all of it and in time, given on as one message."""
    most = limits.body_bytes
    too_large = Refusal(413, "TooLarge", f"a request has at most {most:,} bytes")
    for name, value in scope["headers"]:
        if name == b"content-length" and not (value.isdigit() and len(value) < 20 and int(value) <= most):
            raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(limits.slow_seconds):
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


async def refuse(refusal: Refusal, send: Send, begun: int) -> None:
    """Answer by a refusal, unless a response has begun: the server closes the connection then."""
    if begun:
        return
    body, given = response_parts(refusal)
    # what is left of the body is not read, so the connection cannot go on
    headers = {**given, "content-length": str(len(body)), "connection": "close"}
    coded = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": refusal.status, "headers": coded})
    await send({"type": "http.response.body", "body": body})
