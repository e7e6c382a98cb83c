"""The tables that statements make in DuckDB, small ones kept for the next plan over the same data.

The name of such a table is the digest of its query and of all that it comes from (see `script.Script.table`).
While its sources stand in their tables unchanged, the table of that name is what the statement would make: equal
rows, equal bits. So a statement that several plans have in common, or one plan asked twice, is run once. A table goes
with the first of its sources that goes.

Results, outputs that are asked for key by key, are tables like others, except that the last one stays whatever its
size.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from wpinq.dataset import WeightRange
from wpinq.engines.relational.compiler import Compiled
from wpinq.engines.relational.rewrites.equal_weights import weights_sql
from wpinq.engines.relational.sql.script import SqlStatement, table_name

_NUMBERS = frozenset(("BIGINT", "DOUBLE", "BOOLEAN", "HUGEINT", "INTEGER"))
"""The types of columns of which a value takes 16 bytes at most. A table with any other is not kept."""

KEPT_VALUES = 2**21
"""How many values are kept at most, rows times columns, in tables that no running plan reads: 32 MB."""


@dataclass(slots=True)
class _WarmTable:
    sources: frozenset[str]
    values: int | None
    """Rows times columns; None where it is not to be kept."""


@dataclass(slots=True)
class WarmTables:
    """What stands in an open DuckDB but for its sources: what `running.run` asks of it, and what stays afterwards.

    Attributes
    ----------
    connection : duckdb.DuckDBPyConnection
        To where they stand.
    tables : dict of str to _WarmTable
        All of them.
    idle : dict of str to None
        Those that no running plan reads, in the order of their last use.
    found : dict of str to WeightRange
        The least and the greatest weight of tables, sources among them.
    results : dict of tuple to (str, str)
        For what was asked for by keys, what to read it from, and the table that this reads.
    last : str
        The table of the last of them.
    """

    connection: Any
    tables: dict[str, _WarmTable] = field(default_factory=dict)
    idle: dict[str, None] = field(default_factory=dict)
    found: dict[str, WeightRange] = field(default_factory=dict)
    results: dict[Hashable, tuple[str, str]] = field(default_factory=dict)
    last: str = ""

    def create(self, statement: SqlStatement, shared: bool) -> None:
        """Run one statement of a program, unless its table is there."""
        name, tables = statement.creates, self.tables
        if name in tables:
            self.idle.pop(name, None)
            return
        (rows,) = self.connection.execute(statement.sql).fetchone()
        above = (tables[read].sources if read in tables else frozenset((read,)) for read in statement.reads)
        tables[name] = _WarmTable(frozenset[str]().union(*above), self._values(name, rows))

    def drop(self, table: str) -> None:
        """A table is read no more: it is kept while there is room, those used last before others."""
        if table == self.last:
            return
        if self.tables[table].values is None:
            self._remove(table)
        else:
            self.idle[table] = None
        total = sum(self.tables[name].values or 0 for name in self.idle)
        for name in list(self.idle):
            if total <= KEPT_VALUES:
                break
            total -= self.tables[name].values or 0
            self._remove(name)

    def release(self, tables: Sequence[str]) -> None:
        """The query of an output was run, or is not to be: it reads these no more."""
        for table in tables:
            if table in self.tables:
                self.drop(table)

    def forget(self, source: str) -> None:
        """Drop what was made of a source, which goes next."""
        for name in [name for name, table in self.tables.items() if source in table.sources]:
            self._remove(name)
        self.found.pop(source, None)

    def _remove(self, table: str) -> None:
        self.tables.pop(table, None)
        self.idle.pop(table, None)
        self.found.pop(table, None)
        self.results = {of_plan: held for of_plan, held in self.results.items() if held[1] != table}
        self.connection.execute(f"DROP TABLE IF EXISTS {table}")

    # --- results ------------------------------------------------------------------------------------------------------

    def result(self, of_plan: Hashable) -> str | None:
        """What to read a result from, where it stands; it is now the last one."""
        if of_plan not in self.results:
            return None
        read_from, table = self.results[of_plan]
        self._set_last(table)
        return read_from

    def keep_result(self, of_plan: Hashable, compiled: Compiled) -> str:
        """Store the output of a program whose tables were made, unless it is one of them; what to read it from."""
        if compiled.table is None:
            table = read_from = table_name(compiled.output)
            self.create(SqlStatement(compiled.steps[-1][0], compiled.output, table, compiled.reads), True)
        else:
            table, read_from = compiled.table, f"({compiled.output})"
        self.results[of_plan] = read_from, table
        self._set_last(table)
        return read_from

    def _set_last(self, table: str) -> None:
        """Keep the table of a result whatever its size, and the one before no longer."""
        self.idle.pop(table, None)
        before, self.last = self.last, table
        if before != table and before in self.tables:
            self.drop(before)

    def weights(self, table: str) -> WeightRange:
        """The least and the greatest weight in a table."""
        if table not in self.found:
            least, greatest = self.connection.execute(weights_sql(table)).fetchone()
            self.found[table] = (least, greatest)
        return self.found[table]

    def _values(self, table: str, rows: int) -> int | None:
        if rows > KEPT_VALUES:
            return None
        columns = self.connection.execute(f"SELECT * FROM {table} LIMIT 0").description
        values = rows * len(columns)
        numbers = all(str(type_) in _NUMBERS for _, type_, *_ in columns)
        return values if numbers and values <= KEPT_VALUES else None
