"""A child process under limits, which hide the time, memory and end of its work.

The parent sleeps until a moment that was fixed before, then kills the child, whatever became of it, and reads what it
left. In between it learns nothing. The child has no output but a file without a name, and dies with its parent.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Collection
from typing import NoReturn

from wpinq.errors import SessionError
from wpinq.kernel.sandbox.restrictions import restrict, set_attribute

OVERHEAD_BYTES = 1_500_000_000
"""Address space beside what is used: stacks of threads, and what allocators reserve."""

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4

ASKED_TO_END = signal.SIGUSR1
"""What asks a process that keeps it blocked to end: heard while it sleeps, and nowhere else."""


class Clock:
    """The clock that askings are held by."""

    _asked = False

    def now(self) -> float:
        """Seconds, on a clock that is never set."""
        return time.monotonic()

    def sleep_until(self, moment: float) -> None:
        """Return at a moment, or at once where it has passed.

        Where this process is asked to end, SystemExit; from then on nobody waits, and neither does it.
        """
        stoppable = ASKED_TO_END in signal.pthread_sigmask(signal.SIG_BLOCK, ())
        while not self._asked and (left := moment - time.monotonic()) > 0:
            if not stoppable:
                time.sleep(left)
            elif signal.sigtimedwait([ASKED_TO_END], left) is not None:
                self._asked = True
                raise SystemExit


def check_platform() -> None:
    """Refuse where children cannot be confined, or not waited for."""
    if not sys.platform.startswith("linux"):
        raise SessionError("untrusted mode isolates its child processes by means of Linux: run it there")
    if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
        raise SessionError("untrusted mode waits for its child processes: do not ignore SIGCHLD in this process")


def check_restrictions(work: Callable[[], object]) -> None:
    """Refuse, after a trial, where the kernel cannot restrict a child that does some work."""

    def tried() -> None:
        restrict((), tempfile.gettempdir(), required=True)
        work()

    if not _forked(tried):
        raise SessionError(
            "untrusted mode restricts its children by Landlock (Linux 5.13 or later) and seccomp (libseccomp.so.2); "
            "this machine or container lacks one of them: provide it, or accept the risk described in docs/service.md "
            "with Limits(require_restrictions=False), for a service under [sandbox]"
        )


def check_alone(rest: Callable[[], None]) -> None:
    """Refuse where the process has other threads: a child could wait for their locks for ever.

    Parameters
    ----------
    rest : callable
        Lets go of the threads that engines have.
    """
    check_platform()
    rest()
    if _threads() > 1 and threading.active_count() == 1:
        _forked(lambda: None)  # numpy's algebra ends its threads before a fork, and starts them when it needs them
    if _threads() > 1:
        raise SessionError(
            "untrusted mode forks and needs a process without other threads: release in a process of its own, started "
            "before any thread. Set OPENBLAS_NUM_THREADS=1 if numpy starts threads, and "
            "JE_ARROW_MALLOC_CONF=background_thread:false if pyarrow does, which reads relations of DuckDB"
        )


def run_in_child(
    work: Callable[[], bytes],
    seconds: float,
    size: int,
    until: float,
    clock: Clock,
    kept: Collection[int],
    broken_off: Callable[[bytes | None], object] = lambda left: None,
    required: bool = True,
) -> bytes | None:
    """The output of some work in a child under limits; None where there is none in time.

    Parameters
    ----------
    work : callable
        The work.
    seconds : float
        Processor time.
    size : int
        Bytes of memory beyond what the process has.
    until : float
        The moment of return, by the clock: never before, and right after.
    clock : Clock
        The clock to sleep by.
    kept : collection of int
        The files that the work reads.
    broken_off : callable
        Called with the output of a child that had ended, when the wait is interrupted, before the error is raised.
    required : bool
        Whether it fails where the kernel cannot restrict the child.
    """
    parent = os.getpid()

    def restricted() -> bytes:
        _die_with(parent)
        _be_quiet({file, *kept})
        _limit(seconds, size)
        set_attribute(_PR_SET_DUMPABLE, 0)  # no process of the same user looks in, and there is no core: a limit of 0
        restrict(kept, folder, required=required)  # does not hold for those that go to a program
        return work()

    with contextlib.ExitStack() as held:
        try:
            file = os.memfd_create("wpinq")
            held.callback(os.close, file)
            folder = held.enter_context(tempfile.TemporaryDirectory(prefix="wpinq-", ignore_cleanup_errors=True))
            child = os.fork()
        except OSError:  # as the machine is: other children took what there is, so that it is told as theirs
            clock.sleep_until(until)
            return None
        if child == 0:
            _be_child(restricted, file)
        ended = status = 0
        try:
            clock.sleep_until(until)
        except BaseException:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                broken_off(_left(file, status))
            raise
        finally:
            if not ended:
                os.kill(child, signal.SIGKILL)  # which is no more than to fetch it, where it has ended
                _, status = os.waitpid(child, 0)
        return _left(file, status)


def _left(file: int, status: int) -> bytes | None:
    """What a child left that ended with this status."""
    length = os.fstat(file).st_size
    return os.pread(file, length, 0) if length and status == 0 else None


def _be_child(work: Callable[[], bytes | None], file: int) -> NoReturn:
    ended = 1
    try:
        written = work()
        while written:
            written = written[os.write(file, written) :]
        ended = 0
    except BaseException:
        pass
    finally:
        os._exit(ended)


def _die_with(parent: int) -> None:
    set_attribute(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before it was asked
        os._exit(1)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGXCPU):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, which then kills the child
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:
        score.write("1000")  # rather than a process that could not close its sources any more


def _be_quiet(kept: Collection[int]) -> None:
    """Let go of all files but those that the work needs: sockets, locks, what is printed to."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    before = 2
    for number in sorted(number for number in kept if number > 2):
        os.closerange(before + 1, number)
        before = number
    # files stay open above a limit on their number that was lowered later
    os.closerange(before + 1, max(os.sysconf("SC_OPEN_MAX"), *map(int, os.listdir("/proc/self/fd"))) + 1)


def _limit(seconds: float, size: int) -> None:
    import resource

    with open("/proc/self/statm", encoding="ascii") as statm:
        mapped = int(statm.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    for what, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, math.ceil(seconds) + 1),
        (resource.RLIMIT_FSIZE, size),
        (resource.RLIMIT_AS, mapped + size + OVERHEAD_BYTES),
    ):
        most = min(most, resource.getrlimit(what)[1] % 2**64)  # infinity is -1
        resource.setrlimit(what, (most, most))


def _threads() -> int:
    return len(os.listdir("/proc/self/task"))


def _forked(work: Callable[[], bytes | None]) -> bool:
    """Whether some work ends without an error in a child, of which nothing else is left."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads: this child does little
        child = os.fork()
    if child == 0:
        _be_child(work, -1)
    return os.waitpid(child, 0)[1] == 0
