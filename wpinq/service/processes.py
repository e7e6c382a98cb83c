"""Processes of the service: supervised children, and channels of requests to them.

The supervisor forks a child for each task, and replaces each child that ends. It has no threads and has seen no
request, so each child starts from clean memory, also after kill -9. Children die with their parent.

For each request the web process makes a pair of sockets and sends one end over a channel, where a free worker takes
it. No address is involved, so nobody else can connect; the web process finds its end closed if the worker dies.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

from wpinq.kernel.sandbox.process import ASKED_TO_END
from wpinq.runtime.signals import let_signals_go, signals_held
from wpinq.service.errors import Refusal, busy, log, refusal_of

_PR_SET_PDEATHSIG, _PR_SET_NAME = 1, 15
_STOPS = signal.SIGTERM, signal.SIGINT, ASKED_TO_END
#: The niceness of processes that no release waits for in its time.
NICENESS = 5
#: The exit code of a child that could not begin: another would fare no better.
UNFIT = 3
#: Seconds after which a parent sees a stop at the latest.
_LOOK = 1.0


@dataclass(frozen=True, slots=True)
class Role:
    """The task of a child.

    Attributes
    ----------
    name : str
        In the log.
    work : callable
        The task. The child ends when it returns.
    again : bool
        Whether another is forked when it ends, or its end is the end of all.
    without : tuple of sockets and channels
        What the child closes first, because it is for others.
    """

    name: str
    work: Callable[[], None]
    again: bool
    without: tuple[socket.socket | Channel, ...] = ()


class StopAsked(BaseException):
    """A signal asks this process to stop."""


class Supervisor:
    """The children of this process; an end with an error is logged."""

    def __init__(self) -> None:
        self._roles: dict[int, Role] = {}

    def fork(self, role: Role, number: int = 1) -> None:
        """Fork another child, or several."""
        parent = os.getpid()
        with _stops_wait():  # a child would lose one that comes before it has done with what its parent does on it
            for _ in range(number):
                pid = os.fork()
                if pid == 0:
                    _live(role, parent)
                self._roles[pid] = role

    def tend(self) -> Role:
        """Fork anew whatever ends, until a child ends without which nothing goes on: its role."""
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
        while True:
            while os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
                # not for ever: a stop that came just before, or to another thread, breaks off no wait
                signal.sigtimedwait([signal.SIGCHLD], _LOOK)
            with _stops_wait():  # one that came between would find a child that is no more
                pid, status = os.wait()
                role, unfit = self._roles.pop(pid, None), os.waitstatus_to_exitcode(status) == UNFIT
                if role is None:  # an orphan, which the first process of a container is given to wait for
                    continue
                if status:
                    log("process ended", role=role.name, unfit=int(unfit))
                if unfit or not role.again:
                    return role
                self.fork(role)

    def send(self, name: str, number: int) -> list[int]:
        """Send a signal to the children of a name; their process ids."""
        found = [pid for pid, role in self._roles.items() if role.name == name]
        for pid in found:
            os.kill(pid, number)
        return found

    def stop(self, name: str, number: int) -> None:
        """Send a signal to the children of a name, and wait for their end."""
        for pid in self.send(name, number):
            del self._roles[pid]  # first: a signal handler must not send to a number that may be another's
            os.waitpid(pid, 0)


@contextmanager
def _stops_wait() -> Iterator[None]:
    """Hear of stops that come in this context at its end.

    They are held, for what this thread masks another takes; and masked, for Python forgets in a child what came to it
    before it had seen that it was forked.
    """
    with signals_held():
        held = signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, held)


def stop_on_signals(*numbers: int) -> None:
    """Let signals raise StopAsked in this process, the first time that one of them comes."""

    def stop(number: int, frame: object) -> None:
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)
        raise StopAsked

    for each in numbers:
        signal.signal(each, stop)


def _live(role: Role, parent: int) -> NoReturn:
    """A child's whole life: nothing that it raises gets back into the code of its parent."""
    code = UNFIT
    try:
        logging.disable(logging.CRITICAL)  # of libraries: what is logged is ours to say, in one form
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all of a terminal: the parent decides
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # of a terminal too; the web process is told by its parent
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(ASKED_TO_END, signal.SIG_DFL)
        let_signals_go(wholly=True)  # this one may have been forked in place of another, within what sees to that
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        system = ctypes.CDLL(None)
        system.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        system.prctl(_PR_SET_NAME, f"wpinq-{role.name}".encode(), 0, 0, 0)  # so that ps tells them apart
        for each in role.without:
            each.close()
        if os.getppid() == parent:
            role.work()
            code = 0
    finally:
        os._exit(code)  # before a traceback, which may quote what was asked, or data


# Channels.


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

    def close(self) -> None:
        """Close both ends, in this process."""
        self.sender.close()
        self.receiver.close()

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
        raise Refusal(**answer["refused"])
    return dict(answer["answer"])


def receive(end: socket.socket) -> bytes:
    """All bytes until the other side closes."""
    return b"".join(iter(partial(end.recv, 1 << 16), b""))


def _answer(work: Callable[[Any], Mapping[str, Any]], request: Any) -> bytes:
    """The outcome of some work, or its refusal: every error becomes words that may be shown."""
    try:
        return json.dumps({"answer": work(request)}, allow_nan=False).encode()
    except Exception as error:
        return json.dumps({"refused": vars(refusal_of(error))}).encode()
