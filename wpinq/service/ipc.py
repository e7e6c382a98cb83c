"""How a request gets from the front to a process that works on it, and how what comes of it gets back.

For each request the front makes a pair of sockets and sends one end to a desk, from where a free worker takes it. No
address is involved, so nobody else can connect; and where the worker dies, the front finds its end closed.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from wpinq.errors import WpinqError
from wpinq.service.errors import Refusal, failure, refusal_of

_PIECE = 1 << 16


class NoAnswer(Exception):
    """The worker died over the request, or took longer than it may."""


class NoWorker(Exception):
    """The request was not handed over: no worker has seen it."""


@dataclass(frozen=True, slots=True)
class Desk:
    """Where requests are left, and taken by whoever is free."""

    front: socket.socket
    back: socket.socket

    @staticmethod
    def made() -> Desk:
        """A new one, to be shared by forking."""
        made = Desk(*socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        made.front.setblocking(False)  # a full desk must not hold up all that the front does
        return made

    async def ask(self, request: Mapping[str, Any], seconds: float) -> Any:
        """What a worker makes of a request.

        Raises
        ------
        NoWorker
            When the desk is full.
        NoAnswer
            When it died, or the time is over.
        """
        mine, theirs = socket.socketpair()
        with theirs:
            try:
                socket.send_fds(self.front, [b"."], [theirs.fileno()])
            except OSError:
                mine.close()
                raise NoWorker from None
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
        """Wait for a request, and take it: for one worker, which then answers it."""
        _, (descriptor,), _, _ = socket.recv_fds(self.back, 1, 1)
        return socket.socket(fileno=descriptor)


def serve_one(desk: Desk, work: Callable[[Any], Mapping[str, Any]]) -> None:
    """Take one request, and answer it with what some work makes of it.

    What fails from when it was taken on, such as a front that died over it, is no reason to fork no other worker: the
    front finds its end closed.
    """
    with desk.take() as asked, suppress(Exception):
        request = json.loads(received(asked))
        asked.sendall(_answered(lambda: work(request)))


def read_answer(answer: Mapping[str, Any]) -> dict[str, Any]:
    """What a worker gave; Refusal where it refused."""
    if "refused" in answer:
        raise Refusal(*answer["refused"])
    told: dict[str, Any] = answer["told"]
    return told


def received(end: socket.socket) -> bytes:
    """All that comes until the other side closes."""
    pieces = []
    while piece := end.recv(_PIECE):
        pieces.append(piece)
    return b"".join(pieces)


def _answered(work: Callable[[], Mapping[str, Any]]) -> bytes:
    """What some work gives, or why it is refused: whatever is raised becomes words that may be told."""
    try:
        return json.dumps({"told": work()}, allow_nan=False).encode()
    except WpinqError as error:
        refusal = refusal_of(error)
    except Exception:
        refusal = failure()
    told = [refusal.status, refusal.kind, refusal.message, refusal.line, refusal.column]
    return json.dumps({"refused": told}).encode()
