"""A child process under limits, which hide the time, memory and end of its work.

The parent sleeps until a moment that was fixed before, then kills the child, whatever became of it, and reads what it
left. In between it learns nothing. The child has no output but a file without a name, and dies with its parent.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import math
import os
import signal
import struct
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import NoReturn

from wpinq.errors import SessionError

#: Address space beside what is used: stacks of threads, and what allocators reserve.
OVERHEAD_BYTES = 1_500_000_000

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38

#: What asks a process that keeps it blocked to end: heard while it sleeps, and nowhere else.
ASKED_TO_END = signal.SIGUSR1


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


# Restrictions of a child by the kernel: its files (Landlock) and its calls (seccomp).
#
# A child that looks at data computes, reads them, spills to its own folder and writes its output: the kernel refuses
# all else. No restriction can be taken off again, and threads that start later have it too.

_CLONE_THREAD, _FIOCLEX = 0x10000, 0x5451
#: The first of three calls, of the same numbers on every architecture: rules are made, added to, and put in force.
_LANDLOCK = 444

#: Rights on files: to read one, to list a folder, to write, remove and make a regular file.
_READ, _LIST, _OVERWRITE, _REMOVE, _CREATE = 1 << 2, 1 << 3, 1 << 1, 1 << 5, 1 << 8

#: Of shared libraries, which modules that are imported late may load; and of the limits that DuckDB looks up.
_FOLDERS = "/usr/lib", "/lib", "/lib64", "/sys/fs/cgroup"

#: The calls that compute, read and write; to every other one the kernel answers that it has no such call.
_CALLS = """
read readv pread64 write writev pwrite64 lseek close fcntl ioctl open openat unlink unlinkat fsync fdatasync
stat lstat fstat newfstatat statx statfs fstatfs access faccessat faccessat2 readlink readlinkat getcwd getdents64
mmap munmap mremap mprotect madvise brk futex clone set_robust_list rseq exit exit_group sched_yield sched_getaffinity
rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack restart_syscall clock_gettime clock_getres clock_nanosleep
nanosleep gettimeofday time times getrusage getrandom getpid gettid getuid geteuid getgid getegid getcpu sysinfo uname
prlimit64 landlock_create_ruleset landlock_add_rule landlock_restrict_self
"""

_ALLOW, _REFUSE, _EQUAL, _MASKED_EQUAL = 0x7FFF0000, 0x00050000 | errno.ENOSYS, 4, 7
_CONDITIONS: Mapping[str, bytes] = {  # on an argument, by its place: how it is compared, a mask if any, and with what
    "clone": struct.pack("IIQQ", 0, _MASKED_EQUAL, _CLONE_THREAD, _CLONE_THREAD),  # threads, and no processes
    "open": struct.pack("IIQQ", 1, _MASKED_EQUAL, os.O_TRUNC, 0),  # Landlock of Linux 5.13 takes it for reading
    "openat": struct.pack("IIQQ", 2, _MASKED_EQUAL, os.O_TRUNC, 0),
    "fcntl": struct.pack("IIQQ", 1, _MASKED_EQUAL, 2**64 - 8, 0),  # what comes before F_SETOWN: no signal, no lease
    "ioctl": struct.pack("IIQQ", 1, _EQUAL, _FIOCLEX, 0),  # as Python marks each file that it opens
    "prlimit64": struct.pack("IIQQ", 2, _EQUAL, 0, 0),  # limits are read, and not set
}


def restrict(files: Collection[int], folder: str, *, required: bool) -> None:
    """Restrict this process, which has one thread, for ever.

    Parameters
    ----------
    files : collection of int
        The open files that it may read, and open again.
    folder : str
        The folder in which it may make files: that of its temporary files from here on.
    required : bool
        Whether OSError is raised where the kernel cannot do all of it.
    """
    tempfile.tempdir = folder
    for number in files:  # what its parent wrote to
        os.dup2(os.open(f"/dev/fd/{number}", os.O_RDONLY), number)
    set_attribute(_PR_SET_NO_NEW_PRIVS, 1)
    for restriction in (_restrict_calls, partial(_restrict_files, files, folder)):
        with contextlib.suppress(*(() if required else (OSError,))):
            restriction()


def set_attribute(option: int, value: int) -> None:
    """Set an attribute of this process, as prctl has them."""
    if ctypes.CDLL(None).prctl(option, value, 0, 0, 0) != 0:
        raise OSError


def _restrict_files(files: Collection[int], folder: str) -> None:
    system = ctypes.CDLL(None)
    all_rights = struct.pack("Q", 2 ** min(12 + system.syscall(_LANDLOCK, None, 0, 1), 15) - 1)  # of this version
    rules = system.syscall(_LANDLOCK, all_rights, len(all_rights), 0)
    modules = {*sys.path[not sys.flags.safe_path :], *_FOLDERS, str(Path(__file__).parents[2])} - {""}
    readable = ["/proc/self/cgroup", *(f"/dev/fd/{number}" for number in files)]
    granted = dict.fromkeys(modules, _READ | _LIST) | dict.fromkeys(readable, _READ)
    for path, rights in (granted | {folder: _READ | _LIST | _OVERWRITE | _REMOVE | _CREATE}).items():
        with contextlib.suppress(OSError):  # where there is no such folder
            system.syscall(_LANDLOCK + 1, rules, 1, struct.pack("=Qi", rights, os.open(path, os.O_PATH)), 0)
    if system.syscall(_LANDLOCK + 2, rules, 0) != 0:
        raise OSError


def _restrict_calls() -> None:
    library = ctypes.CDLL("libseccomp.so.2")
    library.seccomp_init.restype = ctypes.c_void_p
    rules = ctypes.c_void_p(library.seccomp_init(_REFUSE))
    for name in _CALLS.split():
        condition = _CONDITIONS.get(name, b"")
        number = library.seccomp_syscall_resolve_name(name.encode())
        library.seccomp_rule_add_array(rules, _ALLOW, number, bool(condition), condition)
    if library.seccomp_load(rules) != 0:
        raise OSError
