"""The run of a program: its statements in order, and the nesting that DuckDB can plan."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Protocol

from wpinq.engines.sql.compile import PLANS_LIMIT, Compiled, Plan
from wpinq.engines.sql.script import SqlStatement
from wpinq.errors import PlanError

NESTING_LIMIT = 8
"""How deep functions of lists may nest: DuckDB takes twice as long to plan one for each function around it.

8 are planned in a quarter of a second; 14 take half a minute, and 16 may end the process.
"""

_MARKS = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\blambda\b|[()]")


def nesting(sql: str) -> int:
    """How many functions of lists stand inside one another.

    Examples
    --------
    >>> nesting("list_transform(a, lambda x: list_transform(b, lambda y: 'lambda'))")
    2
    """
    depth, most = 0, 0
    inside: list[int] = []
    for mark in _MARKS.findall(sql):
        if mark == "(":
            depth += 1
        elif mark == ")":
            depth -= 1
            while inside and inside[-1] > depth:
                inside.pop()
        elif mark == "lambda":
            inside.append(depth)
            most = max(most, len(inside))
    return most


@lru_cache(maxsize=PLANS_LIMIT)
def check_nesting(plan: Plan) -> None:
    """Refuse a plan whose program DuckDB would not plan in reasonable time."""
    for step, sql in plan.program().queries:
        if nesting(sql) > NESTING_LIMIT:
            raise PlanError(
                f"{step}: functions of lists stand more than {NESTING_LIMIT} deep inside one another, as those of "
                f"subsets of more than {NESTING_LIMIT} elements do, and planning them takes too long"
            )


class TableStore(Protocol):
    """What a database must do: make tables, and drop them."""

    def stands(self, table: str) -> bool:
        """Whether a table is there from before. It then stays until it is dropped."""

    def create(self, statement: SqlStatement, shared: bool) -> None:
        """Run a statement. Its table is read more than once if it is shared, as far as can be told by now."""

    def drop(self, table: str) -> None:
        """Let go of a table that a statement made."""


def run(compiled: Compiled, tables: TableStore, on_step: Callable[[str], None] | None) -> None:
    """Make the tables that the query of a plan's output reads. The sources stand in their tables already.

    What nobody reads, because what is made of it stands, is not made.
    """
    running = _Execution(compiled, tables)
    steps, announced = compiled.steps, 0
    for number in range(len(compiled.statements) + 1):
        last = number == len(compiled.statements)
        while announced < len(steps) and (steps[announced][1] <= number or last):
            if on_step is not None:
                on_step(steps[announced][0])
            announced += 1
        if not last:
            table = compiled.statements[number].creates
            if table in running.needed:
                running.make(table)
            running.drop_unread(number + 1)


def unmade(reads: Iterable[str], statements: Mapping[str, SqlStatement], stands: Callable[[str], bool]) -> set[str]:
    """The tables that statements must make so that some can be read: none that stands, nor what only those read."""
    found: set[str] = set()
    stack = list(reads)
    while stack:
        table = stack.pop()
        if table in statements and table not in found and not stands(table):
            found.add(table)
            stack += statements[table].reads
    return found


class _Execution:
    """A program under way: which tables there are, and which it needs."""

    def __init__(self, compiled: Compiled, tables: TableStore) -> None:
        self.compiled, self.tables = compiled, tables
        self.live: set[str] = set()
        self.statements = {statement.creates: statement for statement in self.compiled.statements}
        self.needed = unmade(self.compiled.reads, self.statements, self.there)
        self.made_last = {statement.creates: number for number, statement in enumerate(self.compiled.statements)}
        self.read_last: dict[str, int] = {}
        """The last statement that makes what is needed and reads a table, by its number."""
        self.readers = Counter(set(self.compiled.reads))
        for number, statement in enumerate(self.compiled.statements):
            self.readers.update(set(statement.reads))
            if statement.creates in self.needed:
                self.read_last.update(dict.fromkeys(statement.reads, number))
        self.read_last.update(dict.fromkeys(self.compiled.reads, len(self.compiled.statements)))

    def there(self, table: str) -> bool:
        """Whether a table stands."""
        if table not in self.live and self.tables.stands(table):
            self.live.add(table)
        return table in self.live

    def make(self, table: str) -> None:
        """Make a table that a statement creates, and first what that reads."""
        stack = [table]
        while stack:
            statement = self.statements.get(stack[-1])
            if statement is None or self.there(stack[-1]):
                stack.pop()
                continue
            missing = [name for name in statement.reads if name in self.statements and not self.there(name)]
            if missing:
                stack += missing
            else:
                self.tables.create(statement, self.shared(statement.creates))
                self.live.add(stack.pop())

    def shared(self, table: str) -> bool:
        """Whether a table is read more than once."""
        return self.readers[table] > 1

    def drop_unread(self, number: int) -> None:
        """Drop what no statement from here on reads that makes a table which is needed, nor the query."""
        unread = {table for table in self.live if max(self._last(table)) < number}
        for table in unread:
            self.tables.drop(table)
        self.live -= unread

    def _last(self, table: str) -> tuple[int, int]:
        return self.made_last.get(table, -1), self.read_last.get(table, -1)
