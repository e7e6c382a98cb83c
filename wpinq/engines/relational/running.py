"""The statements of a plan, run one after the other; what a table turns out to be says how to go on."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol, TypeVar

from wpinq.dataset import WeightRange
from wpinq.engines.contract import Engine
from wpinq.engines.relational.compiler import Compiled, compile_anew, compile_plan
from wpinq.engines.relational.sql.dialect import DUCKDB, Dialect
from wpinq.engines.relational.sql.script import Equal, Rewrite, SqlStatement
from wpinq.errors import EvaluationFailed, PlanError
from wpinq.plan.arithmetic import FLOAT, Arithmetic
from wpinq.plan.node import Node, sources
from wpinq.plan.operators.source import Source

T = TypeVar("T")

Compile = Callable[[Node, tuple[Rewrite, ...], Equal, Dialect], Compiled]
"""What compiles with found weights. Whoever remembers programs with them forgets them with the data."""


class TableStore(Protocol):
    """What a database must do: make tables, drop them, and say whether all rows of one weigh the same."""

    def create(self, statement: SqlStatement, shared: bool) -> None:
        """Run a statement. Its table is read more than once if it is shared, as far as can be told by now."""

    def drop(self, table: str) -> None:
        """Let go of a table that a statement made."""

    def weights(self, table: str) -> WeightRange:
        """The least and the greatest weight in a table; None where it has no rows."""


class RelationalEngine(Engine):
    """What the databases have in common: a table for each dataset that they were given, and one evaluation at a time.

    Threads take turns.
    """

    failed: ClassVar[str]
    """What is said of an evaluation that failed, whatever the reason: a database's own words could show data."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[Source, object]] = {}
        self._closed = False
        self._lock = threading.RLock()

    def forget(self, name: str) -> None:
        """Let go of the dataset of a source."""
        with self._lock:
            for table in [table for table, (source, _) in self._held.items() if source.source == name]:
                self._let_go(table)

    def _hold(self, table: str, source: Source, weights: Any) -> None:
        """Load a dataset, unless it is the one that the table of its source has."""
        held = self._held.get(table)
        if held is None or held[0] != source or held[1] is not weights:
            self._let_go(table)
            self._load(table, source, weights)
            self._held[table] = (source, weights)

    def _let_go(self, table: str) -> None:
        """Drop the table of a source, and all that was made of it, where there is one."""
        source, weights = self._held.pop(table, (None, None))
        if source is not None:
            self._drop(table, weights)

    @abstractmethod
    def _load(self, table: str, source: Source, weights: Any) -> None: ...

    @abstractmethod
    def _drop(self, table: str, weights: object) -> None: ...

    def _in_turn(self, attempt: Callable[[], T | None]) -> T:
        """What an evaluation gives; where it gives nothing, it failed."""
        with self._lock:
            if self._closed:
                raise PlanError("this database is closed")
            output = attempt()
        if output is None:
            raise EvaluationFailed(self.failed)
        return output


def check_given(engine: str, root: Node, data: Mapping[str, Any], arithmetic: Arithmetic = FLOAT) -> dict[str, Source]:
    """The sources of a plan, each of which must have data; refused too is what is not computed in floats."""
    if arithmetic.name != FLOAT.name:
        raise PlanError(f'the engine "{engine}" computes in floats; for exact=True use engine="reference"')
    declared = sources([root])
    for name in declared:
        if name not in data:
            raise PlanError(f"no data for the source {name!r}")
    return declared


def run(
    root: Node,
    rewrites: tuple[Rewrite, ...],
    tables: TableStore,
    on_step: Callable[[str], None] | None,
    dialect: Dialect = DUCKDB,
    compile_found: Compile = compile_anew,
) -> Compiled:
    """Make the tables that the query of a plan's output reads. The sources stand in their tables already.

    After each table of weights that the plan leaves open, the rest is compiled anew if all of them are equal (see
    `rewrites.equal_weights`). Statements up to there stay as they are, for a table is read only after it is named. One
    that was dropped and is asked for again after all is made again.
    """
    running = _Execution(root, rewrites, tables, dialect, compile_found)
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
        statement = running.compiled.statements[number]
        running.make(statement.creates)
        running.look(statement.creates)
        number += 1
        running.drop_unread(number)
    for table in running.compiled.reads:
        running.make(table)
    return running.compiled


class _Execution:
    """A program under way: which tables there are, and what is known of their weights."""

    def __init__(
        self, root: Node, rewrites: tuple[Rewrite, ...], tables: TableStore, dialect: Dialect, compile_found: Compile
    ) -> None:
        self.root, self.rewrites, self.tables, self.dialect = root, rewrites, tables, dialect
        self.compile_found = compile_found
        self.compiled = compile_plan(root, rewrites, dialect=dialect)
        self.equal: Equal = frozenset()
        self.live: set[str] = set()

    def make(self, table: str) -> None:
        """Make a table that a statement creates, and first what that reads."""
        statements = {statement.creates: statement for statement in self.compiled.statements}
        stack = [table]
        while stack:
            statement = statements.get(stack[-1])
            if statement is None or stack[-1] in self.live:
                stack.pop()
                continue
            missing = [name for name in statement.reads if name in statements and name not in self.live]
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
        if table not in self.compiled.open:
            return
        least, greatest = self.tables.weights(table)
        if least is None or least != greatest:
            return
        equal = self.equal | {(table, least)}
        try:
            self.compiled = self.compile_found(self.root, self.rewrites, equal, self.dialect)
            self.equal = equal
        except PlanError:  # only the plan may be refused, never what the data are
            pass

    def drop_unread(self, number: int) -> None:
        """Drop what no statement from here on reads, nor the query."""
        later = {table for statement in self.compiled.statements[number:] for table in statement.reads}
        later.update(self.compiled.reads)
        for table in self.live - later:
            self.tables.drop(table)
        self.live &= later
