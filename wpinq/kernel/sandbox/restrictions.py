"""Restrictions of a child by the kernel: its files (Landlock) and its calls (seccomp).

A child that looks at data computes, reads them, spills to its own folder and writes its output: the kernel refuses all
else. No restriction can be taken off again, and threads that start later have it too.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
import tempfile
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

_PR_SET_NO_NEW_PRIVS, _CLONE_THREAD, _FIOCLEX = 38, 0x10000, 0x5451
_LANDLOCK = 444
"""The first of three calls, of the same numbers on every architecture: rules are made, added to, and put in force."""

_READ, _LIST, _OVERWRITE, _REMOVE, _CREATE = 1 << 2, 1 << 3, 1 << 1, 1 << 5, 1 << 8
"""Rights on files: to read one, to list a folder, to write, remove and make a regular file."""

_FOLDERS = "/usr/lib", "/lib", "/lib64", "/sys/fs/cgroup"
"""Of shared libraries, which modules that are imported late may load; and of the limits that DuckDB looks up."""

_CALLS = """
read readv pread64 write writev pwrite64 lseek close fcntl ioctl open openat unlink unlinkat fsync fdatasync
stat lstat fstat newfstatat statx statfs fstatfs access faccessat faccessat2 readlink readlinkat getcwd getdents64
mmap munmap mremap mprotect madvise brk futex clone set_robust_list rseq exit exit_group sched_yield sched_getaffinity
rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack restart_syscall clock_gettime clock_getres clock_nanosleep
nanosleep gettimeofday time times getrusage getrandom getpid gettid getuid geteuid getgid getegid getcpu sysinfo uname
prlimit64 landlock_create_ruleset landlock_add_rule landlock_restrict_self
"""
"""The calls that compute, read and write; to every other one the kernel answers that it has no such call."""

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
        with suppress(*(() if required else (OSError,))):
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
        with suppress(OSError):  # where there is no such folder
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
