"""One DuckDB in memory with its spill files: settings, closing, and forks."""

from __future__ import annotations

import ctypes
import datetime
import os
import re
import shutil
import tempfile
import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import IO, Any

from fsspec import AbstractFileSystem

from wpinq.columns.records import LOADING, create, insert
from wpinq.columns.storage import SETTINGS_OF_ALL, StoredColumns
from wpinq.columns.unlinked_file import stop_progress_bar
from wpinq.engines.sql.compile import Plan, source_tables
from wpinq.engines.sql.duckdb.table_cache import ANY_THREADS, SMALL, TableCache, query_keys
from wpinq.engines.sql.engine import Batch, check_nesting
from wpinq.engines.sql.rewrites import REWRITES
from wpinq.engines.sql.script import Rewrite
from wpinq.engines.sql.sums import FUNCTIONS, check_norm, check_weights, register
from wpinq.errors import PlanError
from wpinq.expr.values import Value
from wpinq.plan.lowering import physical_plan
from wpinq.plan.node import Node, sources
from wpinq.plan.operators.source import Source

# A connection to DuckDB on which no two threads can wait for each other for ever.


@dataclass(slots=True)
class _State:
    """What all connections to one DuckDB have in common.

    Attributes
    ----------
    threads, now : int
        On how many threads a statement may run, and on how many the next one will.
    registered : bool
        Whether it knows the functions that run in Python. It is told of them by the first statement that calls one:
        most plans call none.
    """

    threads: int
    now: int
    registered: bool = False


class Connection:
    """A connection to DuckDB that runs a statement on one thread if it uses Python.

    Such a statement calls Python or reads its objects. Its thread holds Python's global lock while it asks for memory.
    Where memory has to be spilled, it waits for locks of DuckDB's. Another thread may hold these while it spills, and
    wait for the global lock (see `spill`). The calls of Python take turns on any number of threads.
    """

    def __init__(self, connection: Any, state: _State | None = None) -> None:
        self._connection = connection
        stop_progress_bar(connection)
        if state is None:
            ((threads,),) = connection.execute("SELECT current_setting('threads')").fetchall()
            state = _State(threads, threads)
        self._state = state
        #: What stands for the name of a source without a table of that name: DuckDB plans it faster than a view.
        self.columns: dict[str, str] = {}

    def beside(self) -> Connection:
        """Another connection to the same DuckDB, with temporary tables and views of its own.

        One of them runs at a time.
        """
        return Connection(self._connection.cursor(), self._state)

    def execute(self, sql: str, given: Sequence[Any] | Mapping[str, Any] | None = ()) -> Any:
        """Run a statement with some parameters, on as many threads as it may have."""
        calls = any(name in sql for name in FUNCTIONS)
        if calls and not self._state.registered:
            register(self._connection)
            self._state.registered = True
        threads = 1 if calls or LOADING in sql or SMALL in sql else self._state.threads
        if threads != self._state.now and (threads == 1 or ANY_THREADS not in sql):
            self._connection.execute(f"SET threads = {threads}")
            self._state.now = threads
        return self._connection.execute(_REWRITTEN.sub(self._rewritten, sql), given)

    def _rewritten(self, found: re.Match[str]) -> str:
        """A float as a number with an exponent, or what stands for a source.

        DuckDB binds and folds no cast of such a number.
        """
        return f"{found[1]}{found[2] or 'e0'}" if found[1] else self.columns.get(found[0], found[0])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


_REWRITTEN = re.compile(r"""'[^']*'|"[^"]*"|\bCAST\(([0-9][0-9.]*)(e[-+]?[0-9]+)? AS DOUBLE\)|\bsourcex?_\w+""")


# --- data into DuckDB: a source becomes a table or a view -------------------------------------------------------------


def load(connection: Any, table: str, source: Source, weights: Mapping[Value, Any]) -> None:
    """Provide a source's dataset under a table's name.

    Stored columns are read where they are, and Python rows become a table. Records of weight 0 are left out.
    """
    import numpy as np

    if isinstance(weights, StoredColumns):
        check_norm(source, weights.norm)
        connection.columns[table] = weights.attach(connection, _held(table))
        return
    numbers = np.fromiter(map(float, weights.values()), dtype=np.float64, count=len(weights))
    check_weights(source, numbers)
    create(connection, table, source.record)
    if weights:  # there are none where a plan is tried
        insert(connection, table, source.record, weights, numbers)
        connection.execute(f"DELETE FROM {table} WHERE w = 0")


def unload(connection: Any, table: str, weights: object) -> None:
    """Let go of a source's dataset."""
    if isinstance(weights, StoredColumns):
        del connection.columns[table]
        weights.detach(connection, _held(table))
    else:
        connection.execute(f"DROP TABLE {table}")


def _held(table: str) -> str:
    return f"held_{table}"


# Dry runs: plans run on no data, on empty tables of a connection of their own.
#
# What fails here is refused by nobody, for it may have failed for want of the memory that data take (see
# `Database.admit`).

#: The data of every source on which a plan is tried.
NOTHING: Mapping[Value, float] = MappingProxyType({})


class DryRun:
    """A place for plans to be tried in.

    Parameters
    ----------
    connection : Connection
        Its temporary tables are nobody else's.
    """

    def __init__(self, connection: Connection) -> None:
        self._tables = TableCache(connection)
        self._standing: dict[str, Source] = {}

    def run(self, roots: Sequence[Node], rewrites: tuple[Rewrite, ...]) -> bool:
        """Run the programs of plans as they are run together; False where one has none."""
        roots = [*dict.fromkeys(map(physical_plan, roots))]
        batch = Batch(roots) if len(roots) > 1 and rewrites is REWRITES else None
        try:
            for root in roots:
                plan = Plan(root, rewrites, alone=True) if batch is None else batch.plan(root)
                check_nesting(plan)
                declared = sources([root])
                for name, table in source_tables(root).items():
                    self._stand(table, declared[name])
                if batch is not None:
                    batch.begin(root)
                query_keys(self._tables, plan, (), None, batch, False)
        except PlanError:
            return False
        finally:
            self._tables.forget_queries()
        return True

    def _stand(self, table: str, source: Source) -> None:
        """Have an empty table for a source, in place of one of another declaration."""
        if self._standing.get(table) == source:
            return
        if self._standing.pop(table, None) is not None:
            self._tables.forget(table)
            unload(self._tables.connection, table, NOTHING)
        load(self._tables.connection, table, source, NOTHING)
        self._standing[table] = source


_SETTINGS = {
    **SETTINGS_OF_ALL,
    "preserve_insertion_order": "false",
    # DuckDB 2.0.0 fails in long chains of joins: "dict-surviving cache: global dictionary column changed identity"
    "enable_caching_operators": "false",
}
_DISABLED = (
    # tables are joined in the order that rewrites/table_order puts them in, the next one hashed
    "join_order",
    "build_side_probe_side",
    # DuckDB 2.0.0 can lose rows by it, where a join spills and where threads race (its issues 25702 and 22075)
    "join_filter_pushdown",
    # takes time and memory exponential in the depth of the terms that records are grouped by: 20 GB on no data at all
    "partial_aggregate_pushdown",
)
#: The optimizers without which a join by a condition is a product of tables, or all columns are carried along.
_NEEDED = ("expression_rewriter", "filter_pushdown", "unused_columns")

_MEMORY = re.compile(r"\d+(\.\d+)?\s*([KMGT]i?B|B|%)", re.IGNORECASE)


class Instance:
    """An open DuckDB.

    Parameters
    ----------
    memory_limit, threads
        As `check_options` takes them.
    cautious : bool
        Whether to leave out every optimizer that the engine can do without, and threads: slower, and off the paths
        on which DuckDB itself fails. The weights have the same bits.
    """

    def __init__(self, memory_limit: str | None, threads: int | None, cautious: bool = False) -> None:
        import duckdb

        try:
            self.spill = SpillFiles()
            spilling = {"temp_directory": self.spill.path, "max_temp_directory_size": self.spill.limit}
        except OSError:
            raise PlanError("DuckDB needs a folder for temporary files: set TMPDIR to a writable one") from None
        config: dict[str, Any] = dict(_SETTINGS, disabled_optimizers=",".join(_DISABLED), **spilling)
        if memory_limit is not None:
            config["memory_limit"] = memory_limit
        if cautious or threads is not None:
            config["threads"] = 1 if cautious else threads
        try:
            self._opened: Any = duckdb.connect(":memory:", config=config)
        except duckdb.Error:
            raise PlanError("DuckDB does not understand the memory limit or the number of threads") from None
        self._opened.register_filesystem(self.spill)
        self.close = weakref.finalize(self, _shut, self._opened, self.spill)
        self.connection, self.locked = Connection(self._opened), False
        if cautious:
            self._leave_out_optimizers()

    @cached_property
    def dry_run(self) -> DryRun:
        """Where plans are tried on no data, out of sight of what stands in it."""
        return DryRun(self.connection.beside())

    @cached_property
    def tables(self) -> TableCache:
        """The tables that statements made in it: they go with it."""
        return TableCache(self.connection)

    def lock(self) -> None:
        """Limit statements to attached files and spill files, and lock all options."""
        if not self.locked:
            self.connection.execute("SET enable_external_access = false")
            self.connection.execute("SET lock_configuration = true")
            self.locked = True

    def _leave_out_optimizers(self) -> None:
        names = [name for (name,) in self.connection.execute("SELECT name FROM duckdb_optimizers()").fetchall()]
        left_out = ",".join(name for name in names if name not in _NEEDED)
        self.connection.execute(f"SET disabled_optimizers = '{left_out}'")

    def abandon(self) -> None:
        """Forget the instance in a forked child, where closing it would crash.

        Its threads are gone there.

        Its connections are never destroyed; the parent keeps its files, of which the child had a handle each.
        """
        self.close.detach()
        for connection in (self._opened, self.__dict__.get("dry_run")):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
        self.spill.close()


def check_options(memory_limit: str | None, threads: int | None) -> None:
    """Refuse an invalid memory limit ("2GB", "500 MiB", "50%") or number of threads (1 or more)."""
    if memory_limit is not None and not (isinstance(memory_limit, str) and _MEMORY.fullmatch(memory_limit.strip())):
        raise PlanError('a memory limit is a text such as "2GB" or "500MiB"')
    if threads is not None and (type(threads) is not int or threads < 1):
        raise PlanError("the number of threads is a whole number, 1 or more")


def _shut(connection: Any, spill: SpillFiles) -> None:
    connection.close()
    spill.close()


#: Of what is free when a database opens: as DuckDB has it by default for a folder.
_SHARE_OF_DISK = 0.9


class SpillFiles(AbstractFileSystem):  # type: ignore[misc]
    """The files that one DuckDB spills to, none of which has a name on the disk.

    DuckDB would name the files that it spills to and write records into them in clear. Whoever may read the folder, or
    finds it after `kill -9`, would read them; encryption needs an extension that has to be downloaded. So DuckDB gets a
    file system here, which it calls instead of the operating system's. `tempfile.TemporaryFile` makes each file
    unlinked where the operating system can (O_TMPFILE), and elsewhere unlinks it before anything is written. Nobody but
    its owner may open it (mode 0600), and nothing is left of it once the process ends, however it ends.

    Threads of DuckDB wait for Python's global lock here while they hold DuckDB's own. So a statement that holds the
    global lock while it asks DuckDB for memory must not have other threads: see `connection`. DuckDB calls what is
    defined here, and no more.

    Raises
    ------
    OSError
        Where no folder for temporary files can be written.
    """

    protocol = "wpinq-spill"
    cachable = False  # fsspec would give all databases the same one
    path = f"{protocol}://files"

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.gettempdir()
        self._files: dict[str, IO[bytes]] = {}

    @property
    def limit(self) -> str:
        """How much DuckDB may spill, as it reads sizes."""
        return f"{int(shutil.disk_usage(self._folder).free * _SHARE_OF_DISK)}B"

    def close(self) -> None:
        """Let go of all files, and so of what is in them."""
        for name in list(self._files):
            self.rm(name)

    def open(self, path: str, mode: str) -> _Opened:
        """The file of a name; a new one where there is none, unless it is only to be read."""
        if mode.startswith("w"):
            self.rm(path)
        if path not in self._files:
            if mode == "rb":
                raise FileNotFoundError(path)
            self._files[path] = tempfile.TemporaryFile(buffering=0, dir=self._folder)  # noqa: SIM115
        return _Opened(self._files[path].fileno())

    def rm(self, path: str, recursive: bool = False) -> None:
        """Let go of a file, if it is there: DuckDB would not survive an error when it closes."""
        file = self._files.pop(path, None)
        if file is not None:
            file.close()

    def ls(self, path: str) -> list[dict[str, str]]:
        """The files, without the folder's path, as DuckDB lists those of the operating system."""
        return [{"name": name.rpartition("/")[2], "type": "file"} for name in list(self._files)]

    def isfile(self, path: str) -> bool:
        """Whether there is a file of this name."""
        return path in self._files

    def isdir(self, path: str) -> bool:
        """There is one folder, always."""
        return True

    def size(self, path: str) -> int:
        """In bytes."""
        return os.fstat(self._files[path].fileno()).st_size

    def modified(self, path: str) -> datetime.datetime:
        """DuckDB asks it of every file that it opens, and makes no use of it for spilled ones."""
        return datetime.datetime.fromtimestamp(0, datetime.UTC)

    def touch(self, path: str, truncate: bool = True) -> None:
        """Ignore DuckDB's note that the end of a file is free.

        The note does not have the place where the end begins. The file stays, and is written again.
        """


class _Opened:
    """An open file of DuckDB's, with a position for each thread.

    DuckDB seeks before each reading and writing, and several threads may have one under way. Closing does nothing, for
    DuckDB opens the file again by its name.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        self._places: dict[int, int] = {}

    def seek(self, place: int) -> int:
        self._places[threading.get_ident()] = place
        return place

    def read(self, size: int) -> bytes:
        return os.pread(self._number, size, self._places.pop(threading.get_ident()))

    def write(self, data: bytes) -> int:
        place, left = self._places.pop(threading.get_ident()), memoryview(data)
        while left:
            written = os.pwrite(self._number, left, place)
            place, left = place + written, left[written:]
        return len(data)

    def flush(self) -> None:
        """Nothing waits to be written."""

    def close(self) -> None:
        """The file stays, until it is removed by its name."""
