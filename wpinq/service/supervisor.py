"""The supervisor: forks a child for each task, and replaces each child that ends.

The parent has no threads and has seen no request, so each child starts from clean memory, also after kill -9. Children
die with their parent.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn

from wpinq.runtime.signals import let_signals_go, signals_held
from wpinq.service.errors import log

_PR_SET_PDEATHSIG, _PR_SET_NAME = 1, 15
_STOPS = signal.SIGTERM, signal.SIGINT
UNFIT = 3
"""The exit code of a child that could not begin: another would fare no better."""


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
    """

    name: str
    work: Callable[[], None]
    again: bool


class StopAsked(BaseException):
    """A signal asks this process to stop."""


class Supervisor:
    """The children of this process; an end with an error is logged."""

    def __init__(self) -> None:
        self._roles: dict[int, Role] = {}

    def fork(self, role: Role) -> int:
        """Another child; its process id."""
        parent = os.getpid()
        with _stops_wait():  # a child would lose one that comes before it has done with what its parent does on it
            pid = os.fork()
            if pid == 0:
                _live(role, parent)
            self._roles[pid] = role
        return pid

    def tend(self) -> Role:
        """Fork anew whatever ends, until a child ends without which nothing goes on: its role."""
        while True:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
            with _stops_wait():  # one that came between would find a child that is no more
                role = self._seen_to(*os.wait())
            if role is not None:
                return role

    def tend_until(self, number: int) -> Role | None:
        """As `tend`, until a blocked signal of this process comes: then None.

        No fork is interrupted.
        """
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
        asked = False
        while not asked:
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:  # also before the signal of an end was kept
                if (role := self._seen_to(*ended)) is not None:
                    return role
            asked = signal.sigwait([signal.SIGCHLD, number]) == number
        return None

    def _seen_to(self, pid: int, status: int) -> Role | None:
        """Fork anew what ended; its role where nothing goes on without it."""
        role, unfit = self._roles.pop(pid, None), os.waitstatus_to_exitcode(status) == UNFIT
        if role is None:  # an orphan, which the first process of a container is given to wait for
            return None
        if status:
            log("process ended", role=role.name, unfit=int(unfit))
        if unfit or not role.again:
            return role
        self.fork(role)
        return None

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


def stop_on_signals() -> None:
    """Let SIGTERM and Ctrl-C raise StopAsked in this process."""

    def stop(number: int, frame: object) -> None:
        for each in _STOPS:
            signal.signal(each, signal.SIG_IGN)
        raise StopAsked

    for each in _STOPS:
        signal.signal(each, stop)


def _live(role: Role, parent: int) -> NoReturn:
    """A child's whole life: nothing that it raises gets back into the code of its parent."""
    code = UNFIT
    try:
        logging.disable(logging.CRITICAL)  # of libraries: what is logged is ours to say, in one form
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all of a terminal: the parent decides
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # of a terminal too; the web process is told by its parent
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        let_signals_go(wholly=True)  # this one may have been forked in place of another, within what sees to that
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        system = ctypes.CDLL(None)
        system.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        system.prctl(_PR_SET_NAME, f"wpinq-{role.name}".encode(), 0, 0, 0)  # so that ps tells them apart
        if os.getppid() == parent:
            role.work()
            code = 0
    except BaseException:
        pass  # a traceback may quote what was asked, or data
    finally:
        os._exit(code)
    raise AssertionError
