"""The statements of a plan, run one after the other; what a table turns out to be says how to go on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from wpinq.dataset import WeightRange
from wpinq.engines.relational.compiler import Compiled
from wpinq.engines.relational.programs import Found, Plan, Programs
from wpinq.engines.relational.sql.script import SqlStatement


class TableStore(Protocol):
    """What a database must do: make tables, drop them, and say whether all rows of one weigh the same."""

    @property
    def found(self) -> Found:
        """The least and the greatest weight of the tables of which that is known, of some that are gone too."""

    def stands(self, table: str) -> bool:
        """Whether a table is there from before. It then stays until it is dropped."""

    def create(self, statement: SqlStatement, shared: bool) -> None:
        """Run a statement. Its table is read more than once if it is shared, as far as can be told by now."""

    def drop(self, table: str) -> None:
        """Let go of a table that a statement made."""

    def weights(self, table: str) -> WeightRange:
        """The least and the greatest weight in a table; None where it has no rows. It is in `found` from now on."""


def run(plan: Plan, tables: TableStore, on_step: Callable[[str], None] | None, programs: Programs) -> Compiled:
    """Make the tables that the query of a plan's output reads. The sources stand in their tables already.

    After each table of weights that the plan leaves open, the rest is compiled anew if all of them are equal (see
    `rewrites.equal_weights`). Statements up to there stay as they are, for a table is read only after it is named. What
    nobody reads, because what is made of it stands, is not made. What was dropped and is asked for again after all is
    made again.
    """
    running = _Execution(plan, tables, programs)
    for table in running.compiled.sources.values():
        running.look(table)
    number = announced = 0
    while True:
        steps = running.compiled.steps
        while announced < len(steps) and (steps[announced][1] <= number or number == len(running.compiled.statements)):
            if on_step is not None:
                on_step(steps[announced][0])
            announced += 1
        if number == len(running.compiled.statements):
            break
        table = running.compiled.statements[number].creates
        if table in running.needed:
            running.make(table)
        running.look(table)
        number += 1
        running.drop_unread(number)
    for table in running.compiled.reads:
        running.make(table)
    return running.compiled


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
    """A program under way: which tables there are, which it needs, and what is known of their weights."""

    def __init__(self, plan: Plan, tables: TableStore, programs: Programs) -> None:
        self.plan, self.tables, self.programs = plan, tables, programs
        self.live: set[str] = set()
        self.settle()

    def settle(self) -> None:
        """Go on with the program as far as it is known."""
        self.compiled = self.programs.settled(self.plan, self.tables.found)
        self.statements = {statement.creates: statement for statement in self.compiled.statements}
        self.needed = unmade(self.compiled.reads, self.statements, self.there)

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
        """Whether a table is read more than once, its weights included."""
        readers = [statement.reads for statement in self.compiled.statements] + [self.compiled.reads]
        return sum(table in reads for reads in readers) + (table in self.compiled.open) > 1

    def look(self, table: str) -> None:
        """Compile with the weight of a table's rows, where it is open and all are equal."""
        if table in self.compiled.open and table not in self.tables.found:
            self.make(table)
            self.tables.weights(table)
            self.settle()

    def drop_unread(self, number: int) -> None:
        """Drop what no statement from here on reads that makes a table which is needed, nor the query."""
        kept = set(self.compiled.reads)
        for statement in self.compiled.statements[number:]:
            kept.add(statement.creates)
            if statement.creates in self.needed:
                kept.update(statement.reads)
        for table in self.live - kept:
            self.tables.drop(table)
        self.live &= kept
