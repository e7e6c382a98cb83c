"""How a request gets from the front to a process that works on it, and how what comes of it gets back.

For each request the front makes a pair of sockets and sends one end to a desk, from where a free worker takes it. No
address is involved, so nobody else can connect; and where the worker dies, the front finds its end closed.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_PIECE = 1 << 16


class NobodyAnswered(Exception):
    """The worker died over the request, or took longer than it may."""


class NobodyThere(Exception):
    """The request was not handed over: no worker has seen it."""


@dataclass(frozen=True, slots=True)
class Desk:
    """Where requests are left, and taken by whoever is free."""

    front: socket.socket
    back: socket.socket

    @staticmethod
    def made() -> Desk:
        """A new one, to be shared by forking."""
        return Desk(*socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET))

    async def ask(self, request: Mapping[str, Any], seconds: float) -> Any:
        """What a worker makes of a request.

        Raises
        ------
        NobodyThere
            When the desk is full.
        NobodyAnswered
            When it died, or the time is over.
        """
        mine, theirs = socket.socketpair()
        with theirs:
            try:
                socket.send_fds(self.front, [b"."], [theirs.fileno()], socket.MSG_DONTWAIT)
            except OSError:
                mine.close()
                raise NobodyThere from None
        mine.setblocking(False)
        reader, writer = await asyncio.open_unix_connection(sock=mine)
        try:
            async with asyncio.timeout(seconds):
                writer.write(json.dumps(request).encode())
                await writer.drain()
                writer.write_eof()
                return json.loads(await reader.read(-1))  # cut short by a death, it is no JSON
        except (OSError, ValueError, TimeoutError):
            raise NobodyAnswered from None
        finally:
            writer.close()

    def take(self) -> socket.socket:
        """Wait for a request, and take it: for one worker, which then answers it."""
        _, (descriptor,), _, _ = socket.recv_fds(self.back, 1, 1)
        return socket.socket(fileno=descriptor)


def taken_request(asked: socket.socket) -> Any:
    """What is asked for at a socket that was taken."""
    pieces = []
    while piece := asked.recv(_PIECE):
        pieces.append(piece)
    return json.loads(b"".join(pieces))


def give_back(asked: socket.socket, answer: Mapping[str, Any]) -> None:
    """Answer it; where nobody waits any more, what was paid for stands in the ledger."""
    try:
        asked.sendall(json.dumps(answer, allow_nan=False).encode())
    except OSError:
        return
