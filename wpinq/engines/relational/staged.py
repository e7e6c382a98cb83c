"""The tables that statements make in DuckDB, small ones kept for the next plan over the same data.

The name of such a table is the digest of its query and of all that it comes from (see `program.Program.table`).
While its sources stand in their tables unchanged, the table of that name is what the statement would make: equal
rows, equal bits. So a statement that several plans have in common, or one plan asked twice, is run once. A table goes
with the first of its sources that goes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from wpinq.engines.relational.program import Statement
from wpinq.engines.relational.rewrites.equal_weights import weights_sql

_NUMBERS = frozenset(("BIGINT", "DOUBLE", "BOOLEAN", "HUGEINT", "INTEGER"))
"""The types of columns of which a value takes 16 bytes at most. A table with any other is not kept."""

KEPT_VALUES = 2**21
"""How many values are kept at most, rows times columns, in tables that no running plan reads: 32 MB."""


@dataclass(slots=True)
class _Table:
    sources: frozenset[str]
    values: int | None
    """Rows times columns; None where it is not to be kept."""


@dataclass(slots=True)
class Staged:
    """What stands in a database but for its sources.

    Attributes
    ----------
    tables : dict of str to _Table
        All of them.
    idle : dict of str to None
        Those that no running plan reads, in the order of their last use.
    found : dict of str to (float, float)
        The least and the greatest weight of tables, sources among them.
    """

    tables: dict[str, _Table] = field(default_factory=dict)
    idle: dict[str, None] = field(default_factory=dict)
    found: dict[str, tuple[float | None, float | None]] = field(default_factory=dict)

    def on(self, connection: Any) -> Tables:
        """For one evaluation."""
        return Tables(self, connection)

    def forget(self, connection: Any, source: str) -> None:
        """Drop what was made of the table of a source, before that goes."""
        self.found.pop(source, None)
        for name in [name for name, table in self.tables.items() if source in table.sources]:
            self.remove(connection, name)

    def remove(self, connection: Any, name: str) -> None:
        """Drop a table."""
        del self.tables[name]
        self.idle.pop(name, None)
        self.found.pop(name, None)
        connection.execute(f"DROP TABLE IF EXISTS {name}")


class Tables:
    """What `running.run` asks of DuckDB."""

    def __init__(self, staged: Staged, connection: Any) -> None:
        self._staged, self._connection = staged, connection

    def create(self, statement: Statement, shared: bool) -> None:
        """Run one statement of a program, unless its table is there."""
        name, tables = statement.creates, self._staged.tables
        if name in tables:
            self._staged.idle.pop(name, None)
            return
        (rows,) = self._connection.execute(statement.sql).fetchone()
        above = (tables[read].sources if read in tables else frozenset((read,)) for read in statement.reads)
        tables[name] = _Table(frozenset[str]().union(*above), self._values(name, rows))

    def drop(self, table: str) -> None:
        """A plan reads a table no more: it is kept while there is room, those used last before others."""
        staged = self._staged
        if staged.tables[table].values is None:
            staged.remove(self._connection, table)
        else:
            staged.idle[table] = None
        total = sum(staged.tables[name].values or 0 for name in staged.idle)
        for name in list(staged.idle):
            if total <= KEPT_VALUES:
                break
            total -= staged.tables[name].values or 0
            staged.remove(self._connection, name)

    def weights(self, table: str) -> tuple[float | None, float | None]:
        """The least and the greatest weight in a table."""
        found = self._staged.found.get(table)
        if found is None:
            least, greatest = self._connection.execute(weights_sql(table)).fetchone()
            found = self._staged.found[table] = (least, greatest)
        return found

    def _values(self, table: str, rows: int) -> int | None:
        if rows > KEPT_VALUES:
            return None
        columns = self._connection.execute(f"SELECT * FROM {table} LIMIT 0").description
        values = rows * len(columns)
        numbers = all(str(type_) in _NUMBERS for _, type_, *_ in columns)
        return values if numbers and values <= KEPT_VALUES else None
