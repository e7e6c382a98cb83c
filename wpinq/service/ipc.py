"""Channels: the way of a request from the web process to a worker, and of its answer back.

For each request the web process makes a pair of sockets and sends one end over the channel, where a free worker takes
it. No address is involved, so nobody else can connect; the web process finds its end closed if the worker dies.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from wpinq.errors import LedgerError, WpinqError
from wpinq.service.errors import Refusal, busy, failure, log, refusal_of


class NoAnswer(Exception):
    """The worker died over the request, or took longer than it may."""


@dataclass(frozen=True, slots=True)
class Channel:
    """Requests on their way to the next free worker."""

    sender: socket.socket
    receiver: socket.socket

    @staticmethod
    def create() -> Channel:
        """A new channel, to be shared by forking."""
        made = Channel(*socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        made.sender.setblocking(False)  # a full channel must not hold up the web process
        return made

    async def ask(self, request: Mapping[str, Any], seconds: float) -> Any:
        """A worker's answer to a request.

        Raises
        ------
        Refusal
            When the channel is full: no worker has seen the request.
        NoAnswer
            When the worker died, or the time is over.
        """
        mine, theirs = socket.socketpair()
        with theirs:
            try:
                socket.send_fds(self.sender, [b"."], [theirs.fileno()])
            except OSError:
                mine.close()
                raise busy() from None
        mine.setblocking(False)
        reader, writer = await asyncio.open_unix_connection(sock=mine)
        try:
            async with asyncio.timeout(seconds):
                writer.write(json.dumps(request).encode())
                await writer.drain()
                writer.write_eof()
                return json.loads(await reader.read(-1))  # cut short by a death, it is no JSON
        except (OSError, ValueError, TimeoutError):
            raise NoAnswer from None
        finally:
            writer.close()

    def take(self) -> socket.socket:
        """The next request, once there is one: for one worker, which then answers it."""
        _, (descriptor,), _, _ = socket.recv_fds(self.receiver, 1, 1)
        return socket.socket(fileno=descriptor)


def serve_one(channel: Channel, work: Callable[[Any], Mapping[str, Any]]) -> None:
    """Take one request, and answer it with the outcome of some work.

    Nothing after that, such as a signal or the death of the web process, keeps the next worker from being forked: the
    web process finds its end closed.
    """
    with channel.take() as taken, suppress(BaseException):
        taken.sendall(_answer(work, json.loads(receive(taken))))


def read_answer(answer: Mapping[str, Any]) -> dict[str, Any]:
    """A worker's outcome; Refusal where it refused."""
    if "refused" in answer:
        raise Refusal(*answer["refused"])
    return dict(answer["answer"])


def receive(end: socket.socket) -> bytes:
    """All bytes until the other side closes."""
    return b"".join(iter(partial(end.recv, 1 << 16), b""))


def _answer(work: Callable[[Any], Mapping[str, Any]], request: Any) -> bytes:
    """The outcome of some work, or its refusal: every error becomes words that may be shown."""
    try:
        return json.dumps({"answer": work(request)}, allow_nan=False).encode()
    except WpinqError as error:
        if isinstance(error, LedgerError):
            log("failure", error=type(error).__name__, reason=str(error))  # for the curator alone
        refusal = refusal_of(error)
    except Exception:
        refusal = failure()
    refused = [refusal.status, refusal.kind, refusal.message, refusal.line, refusal.column]
    return json.dumps({"refused": refused}).encode()
