"""A child that looks at data computes and answers: other files, connections, programs and processes are refused."""

from __future__ import annotations

import ctypes
import sys
from ctypes.util import find_library
from pathlib import Path

import pytest

import wpinq as wp
from tests.support.confined import breaking, told
from wpinq.engines.sql.duckdb.database import UnoptimisedDatabase

LANDLOCK = sys.platform.startswith("linux") and ctypes.CDLL(None).syscall(444, None, 0, 1) > 0
pytestmark = [
    pytest.mark.skipif(not LANDLOCK, reason="children are restricted by Landlock, which this kernel lacks"),
    pytest.mark.skipif(find_library("seccomp") is None, reason="children are restricted by libseccomp"),
]

ATTEMPTS = {
    "a connection": "socket.socket()",
    "two ends of one": "socket.socketpair()",
    "a process": "os.fork() or os._exit(0)",
    "a program": "os.execv('/no/such/program', ['x'])",
    "to be traced": "call(system.ptrace(0, 0, 0, 0))",
    "what another process was started with": "open(f'/proc/{PARENT}/environ', 'rb')",
    "the files of another process": "os.listdir(f'/proc/{PARENT}/fd')",
    "a signal to another process": "os.kill(PARENT, 0)",
    "limits of another process": "resource.prlimit(PARENT, resource.RLIMIT_CORE, (0, 0))",
    "limits of its own": "resource.setrlimit(resource.RLIMIT_NOFILE, resource.getrlimit(resource.RLIMIT_NOFILE))",
    "to be dumped": "call(system.prctl(4, 1, 0, 0, 0))",
    "another priority": "os.nice(0)",
    "other processors": "os.sched_setaffinity(0, os.sched_getaffinity(0))",
    "memory that processes share": "call(system.shmget(0, 4096, 0o600))",
    "a file that signals another process": "own(fcntl.F_SETOWN, PARENT)",
    "a file that signals its thread": "own(15, bytes(8))",
    "which signal that is": "own(fcntl.F_SETSIG, signal.SIGKILL)",
    "a signal for a change in a folder": "own(fcntl.F_NOTIFY, 0)",
    "a signal for a use of a file": "own(fcntl.F_SETLEASE, fcntl.F_UNLCK)",
    "the same, by a command to a device": "fcntl.ioctl(file(), 0x8901, bytes(4))",
    "the same, by one to a socket": "fcntl.ioctl(file(), 0x8902, bytes(4))",
    "a signal for each input": "fcntl.ioctl(file(), 0x5452, bytes(4))",
    "words in the place of who types": "fcntl.ioctl(file(), 0x5412, bytes(1))",
    "settings of a device": "fcntl.ioctl(0, 0x5401, bytes(60))",
    "a file to write": "open(FOLDER + '/new', 'x')",
    "a file to add to": "open(FOLDER + '/kept', 'a')",
    "a file to overwrite": "open(FOLDER + '/kept', 'w')",
    "a file to change": "open(FOLDER + '/kept', 'r+')",
    "a file to cut, by its name": "os.truncate(FOLDER + '/kept', 0)",
    "a file to cut, as if to read it": "os.open(FOLDER + '/kept', os.O_RDONLY | os.O_TRUNC)",
    "a file to read": "open(FOLDER + '/kept')",
    "a system's file to read": "open('/etc/passwd')",
    "a folder to list": "os.listdir(FOLDER)",
    "a new folder": "os.mkdir(FOLDER + '/folder')",
    "a link": "os.link(FOLDER + '/kept', FOLDER + '/link')",
    "a symbolic link": "os.symlink('kept', FOLDER + '/symbolic')",
    "a pipe with a name": "os.mkfifo(FOLDER + '/pipe')",
    "another mode": "os.chmod(FOLDER + '/kept', 0o644)",
    "another time": "os.utime(FOLDER + '/kept')",
    "another name": "os.rename(FOLDER + '/kept', FOLDER + '/kept')",
    "no file": "os.unlink(FOLDER + '/gone')",
    "a file of the libraries to write": "open(os.path.dirname(wp.__file__) + f'/{os.path.basename(FOLDER)}.pyc', 'x')",
}
"""Each goes on where nobody restricts it."""

TRIED = """
import ctypes, errno, fcntl, resource, socket, tempfile, threading
file = tempfile.TemporaryFile
system = ctypes.CDLL(None, use_errno=True)
PARENT = os.getpid()
REFUSED = {errno.EPERM, errno.EACCES, errno.ENOSYS}

def call(result):
    if result == -1:
        raise OSError(ctypes.get_errno(), "")

def own(command, argument):
    fcntl.fcntl(file(), command, argument)

def refused(attempt):
    try:
        eval(attempt)
    except OSError as error:
        return error.errno in REFUSED
    return False

asked = numbers.noisy_count(1, over=range(len(ATTEMPTS)))
"""


def attempts(folder: Path) -> str:
    """Two sources, and a look that tries everything, in its first thread and in another."""
    for name in ("kept", "gone"):
        (folder / name).write_text("kept")
    return (
        breaking(
            """
    held = [*map(refused, ATTEMPTS)]
    others = []
    thread = threading.Thread(target=lambda: others.extend(map(refused, ATTEMPTS)))
    thread.start()
    thread.join()
    tempfile.TemporaryFile().write(b"spilled")
    return [float(one and other) for one, other in zip(held, others, strict=True)]
"""
        )
        + f"FOLDER, ATTEMPTS = {str(folder)!r}, {[*ATTEMPTS.values()]!r}\n"
        + TRIED
    )


def test_a_look_that_tries_everything_is_refused_everything_and_answers(tmp_path: Path) -> None:
    found = told(
        attempts(tmp_path)
        + """
with opened(FOLDER + "/ledger") as session:
    protected(session)
    LaplaceSink.draw = broken
    tell(values=list(session.release(asked).values), left=sorted(os.listdir(FOLDER)))
"""
    )
    assert [name for name, value in zip(ATTEMPTS, found["values"], strict=True) if not value] == []
    assert {"gone", "kept", "ledger"} <= set(found["left"]) <= {"gone", "kept", "ledger", "ledger-head", *SQLITE}
    assert (tmp_path / "kept").read_text() == "kept"


SQLITE = "ledger-shm", "ledger-wal"


def test_without_restrictions_each_attempt_goes_on(tmp_path: Path) -> None:
    """Or the test above would pass for another reason."""
    found = told(
        attempts(tmp_path)
        + """
seen = []
for attempt in ATTEMPTS:
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os._exit(refused(attempt))
    seen.append(os.waitpid(child, 0)[1])
tell(seen=seen)
"""
    )
    (Path(wp.__file__).parent / f"{tmp_path.name}.pyc").unlink(missing_ok=True)
    assert [name for name, status in zip(ATTEMPTS, found["seen"], strict=True) if status] == []


def test_a_look_cannot_change_the_data_by_the_file_that_it_reads() -> None:
    found = told(
        breaking(
            """
    def held(number):
        try:
            return "held" in os.readlink(f"/proc/self/fd/{number}")
        except OSError:
            return False

    files, written = [*filter(held, range(1024))], 0
    for number in files:
        for write in (lambda: os.pwrite(number, bytes(4096), 4096), lambda: open(f"/proc/self/fd/{number}", "r+b")):
            try:
                write()
                written += 1
            except OSError:
                pass
    return [float(len(files)), float(written)]
"""
        )
        + """
with opened() as session:
    protected(session)
    honest, LaplaceSink.draw = LaplaceSink.draw, broken
    tried = list(session.release(asked).values)
    LaplaceSink.draw = honest
    tell(tried=tried, after=outcome(lambda: session.release(before)))
"""
    )
    files, written = found["tried"]
    assert files >= 1
    assert not written
    assert found["after"][0] == "answers"


def test_a_look_spills_to_a_folder_of_its_own_of_which_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    found = told(
        breaking(
            """
    folder = tempfile.gettempdir()
    open(folder + "/named", "x").write("left behind")
    return [float(os.path.dirname(folder) == os.environ["TMPDIR"]), float(os.stat(folder).st_mode & 0o777 == 0o700)]
"""
        )
        + """
import tempfile
with opened() as session:
    session.protect(numbers, [1, 2, 3], budget=100)
    before = os.listdir(os.environ["TMPDIR"])
    LaplaceSink.draw = broken
    values = list(session.release(asked).values)
    tell(values=values, left=os.listdir(os.environ["TMPDIR"]) == before)
"""
    )
    assert found == {"values": [1.0, 1.0], "left": True}


LACKING = """
import ctypes, errno, struct
seccomp = ctypes.CDLL("libseccomp.so.2")
seccomp.seccomp_init.restype = ctypes.c_void_p
rules = ctypes.c_void_p(seccomp.seccomp_init(0x7FFF0000))

def lacks(name, *only):
    number = seccomp.seccomp_syscall_resolve_name(name)
    seccomp.seccomp_rule_add_array(rules, 0x00050000 | errno.ENOSYS, number, len(only), *only)
"""
"""A kernel that lacks a call, as a process under it sees it."""

KERNELS = {
    "Landlock": 'lacks(b"landlock_create_ruleset"); seccomp.seccomp_load(rules)',
    "seccomp": 'lacks(b"seccomp"); lacks(b"prctl", struct.pack("IIQQ", 0, 4, 22, 0)); seccomp.seccomp_load(rules)',
    "libseccomp": (
        "class Missing(ctypes.CDLL):\n"
        "    def __init__(self, name, **options):\n"
        "        if name == 'libseccomp.so.2':\n"
        "            raise OSError('libseccomp.so.2: cannot open shared object file')\n"
        "        super().__init__(name, **options)\n"
        "ctypes.CDLL = Missing"
    ),
}


@pytest.mark.parametrize("lacking", ["Landlock", pytest.param("seccomp", marks=pytest.mark.long), "libseccomp"])
def test_a_kernel_that_lacks_one_of_them_is_refused_unless_configured_and_the_other_holds(
    lacking: str, tmp_path: Path
) -> None:
    (tmp_path / "kept").write_text("kept")
    found = told(
        breaking(
            """
    import socket
    seen = []
    for attempt in (lambda: open("/etc/passwd"), socket.socket, lambda: os.open(FILE, os.O_RDONLY | os.O_TRUNC)):
        try:
            attempt()
            seen.append(0.0)
        except OSError:
            seen.append(1.0)
    return seen
"""
        )
        + f"FILE = {str(tmp_path / 'kept')!r}\nasked = numbers.noisy_count(1, over=range(3))\n"
        + LACKING
        + KERNELS[lacking]
        + """
refused = outcome(opened)
with opened(limits=wp.Limits(require_restrictions=False)) as session:
    protected(session)
    LaplaceSink.draw = broken
    tell(refused=refused, values=list(session.release(asked).values))
"""
    )
    assert found["refused"][0] == "SessionError"
    assert "require_restrictions=False" in found["refused"][1]
    assert found["values"] == ([0.0, 1.0, 1.0] if lacking == "Landlock" else [1.0, 0.0, 1.0])


REACHED = (
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM glob('/etc/*')",
    "ATTACH '/tmp/other.db'",
    "COPY (SELECT 1) TO '/tmp/other.csv'",
    "INSTALL httpfs",
    "SET enable_external_access = true",
    "RESET enable_external_access",
    "SET threads = 2",
    "SET temp_directory = '/tmp'",
)


def test_once_data_are_attached_the_database_of_a_child_reaches_no_file_and_keeps_its_options() -> None:
    import duckdb

    source, other = wp.source("numbers", int), wp.source("others", int)
    data = {"numbers": {1: 1.0, 2: 1.0}, "others": {1: 1.0}}
    with UnoptimisedDatabase() as database:
        connection = database.open().connection
        connection.execute("SELECT * FROM glob('/etc/*')")
        for _ in range(2):
            assert database.evaluate(source.plan, data) == {1: 1.0, 2: 1.0}
        for statement in REACHED:
            with pytest.raises(duckdb.Error):
                connection.execute(statement)
        with pytest.raises(wp.PlanError, match="takes the data of one plan"):
            database.evaluate(other.plan, data)
        assert database.evaluate(source.plan, data, keys=[2]) == {2: 1.0}


def test_a_database_that_is_locked_still_spills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with UnoptimisedDatabase("40MB") as database:
        instance = database.open()
        instance.lock()
        instance.connection.execute("CREATE TEMP TABLE t AS SELECT 'some text ' || i AS s FROM range(3000000) AS x(i)")
        assert instance.connection.execute("SELECT count(*) FROM duckdb_temporary_files()").fetchone() != (0,)
        assert instance.connection.execute("SELECT count(s) FROM t").fetchone() == (3_000_000,)
