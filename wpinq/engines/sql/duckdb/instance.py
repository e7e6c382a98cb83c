"""One DuckDB in memory with the files that it spills to: how it is set up, closed, and left alone after a fork."""

from __future__ import annotations

import ctypes
import re
import weakref
from functools import cached_property
from typing import TYPE_CHECKING, Any

from wpinq.columns.held import SETTINGS_OF_ALL
from wpinq.engines.relational.duckdb.connection import Connection
from wpinq.engines.relational.duckdb.rehearsals import Rehearsals
from wpinq.engines.relational.duckdb.warm_tables import WarmTables
from wpinq.errors import PlanError

if TYPE_CHECKING:
    from wpinq.engines.relational.duckdb.spill import SpillFiles

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
_NEEDED = ("expression_rewriter", "filter_pushdown", "unused_columns")
"""The optimizers without which a join by a condition is a product of tables, or all columns are carried along."""

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

        from wpinq.engines.relational.duckdb.spill import SpillFiles

        try:
            self.spill = SpillFiles()
            spilling = {"temp_directory": self.spill.path, "max_temp_directory_size": self.spill.limit}
        except OSError:
            raise PlanError(
                "DuckDB needs a folder for temporary files: set TMPDIR to one that can be written"
            ) from None
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
        self.connection = Connection(self._opened)
        if cautious:
            self._leave_out_optimizers()

    @cached_property
    def rehearsals(self) -> Rehearsals:
        """Where plans are tried on no data, out of sight of what stands in it."""
        return Rehearsals(self.connection.beside())

    @cached_property
    def tables(self) -> WarmTables:
        """The tables that statements made in it: they go with it."""
        return WarmTables(self.connection)

    def _leave_out_optimizers(self) -> None:
        names = [name for (name,) in self.connection.execute("SELECT name FROM duckdb_optimizers()").fetchall()]
        left_out = ",".join(name for name in names if name not in _NEEDED)
        self.connection.execute(f"SET disabled_optimizers = '{left_out}'")

    def abandon(self) -> None:
        """Forget it in a forked child, where its threads are gone: closing it there would crash the child.

        Its connections are never destroyed; the parent keeps its files, of which the child had a handle each.
        """
        self.close.detach()
        for connection in (self._opened, self.__dict__.get("rehearsals")):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
        self.spill.close()


def check_options(memory_limit: str | None, threads: int | None) -> None:
    """Refuse what cannot be a memory limit ("2GB", "500 MiB", "50%") or a number of threads (1 or more)."""
    if memory_limit is not None and not (isinstance(memory_limit, str) and _MEMORY.fullmatch(memory_limit.strip())):
        raise PlanError('a memory limit is a text such as "2GB" or "500MiB"')
    if threads is not None and (type(threads) is not int or threads < 1):
        raise PlanError("the number of threads is a whole number, 1 or more")


def _shut(connection: Any, spill: SpillFiles) -> None:
    connection.close()
    spill.close()
