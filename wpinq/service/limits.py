"""Limits on requests: their rate, their size, and the time of their arrival."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Hashable
from contextlib import suppress
from ipaddress import IPv6Network

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive, Scope

from wpinq.service.errors import Refusal

#: Users or addresses, of which the one that came longest ago is forgotten.
_REMEMBERED = 10_000

#: The requests of one address that are held back at a time: each holds a connection.
_HELD_BACK = 4


class Rates:
    """Rate limits: for each user or address a bucket of tries, which fills again in a minute.

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
        self._held_back: Counter[Hashable] = Counter()

    def wait(self, user: Hashable) -> float:
        """Take a try: 0, or the seconds until there is one, and then none is taken."""
        now, each = self._clock(), 60.0 / self._size
        left, then = self._left.pop(user, (self._size, now))  # and back, as the last one
        left = min(self._size, left + (now - then) / each)
        taken = left >= 1.0
        self._left[user] = (left - 1.0 if taken else left, now)
        if len(self._left) > _REMEMBERED:
            del self._left[next(iter(self._left))]
        return 0.0 if taken else (1.0 - left) * each

    async def slow(self, address: Hashable, most: float) -> float:
        """As `wait`, held back until there is a try, or for the most seconds.

        Where enough others of the address are held back, it returns at once.
        """
        seconds = self.wait(address)
        if seconds and self._held_back[address] < _HELD_BACK:
            self._held_back[address] += 1
            try:
                await asyncio.sleep(min(seconds, most))
            finally:
                self._held_back -= Counter([address])
        return seconds


def client_network(address: str) -> str:
    """The addresses that one client may have: of IPv6, as many as have the first 64 bits.

    Examples
    --------
    >>> [client_network(each) for each in ("192.0.2.1", "2001:db8::1", "unix", "no: address")]
    ['192.0.2.1', '2001:db8::/64', 'unix', 'no: address']
    """
    with suppress(ValueError):
        return str(IPv6Network((address.partition("%")[0], 64), strict=False))
    return address


async def read_body(scope: Scope, receive: Receive, most: int, seconds: float) -> Receive:
    """The body, all of it and in time, given on as one message."""
    too_large = Refusal(413, "TooLarge", f"a request has at most {most:,} bytes")
    if int(Headers(scope=scope).get("content-length", 0)) > most:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for piece in Request(scope, receive).stream():
                body += piece
                if len(body) > most:
                    raise too_large
    except ClientDisconnect:
        raise Refusal(400, "Gone", "the request ended before its body did") from None
    except TimeoutError:
        raise Refusal(408, "TooSlow", "the request took too long to arrive") from None
    whole = iter([{"type": "http.request", "body": bytes(body)}])

    async def replayed() -> Message:
        return next(whole, None) or await receive()

    return replayed
