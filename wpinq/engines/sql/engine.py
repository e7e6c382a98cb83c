"""The base of engines that run SQL: the data that they hold, turns, and batches of plans."""

from __future__ import annotations

import re
import threading
from abc import abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from typing import Any, ClassVar, Literal, Protocol, TypeVar

from wpinq.engines.contract import Engine
from wpinq.engines.sql.compile import PLANS_LIMIT, Compiled, Plan, parts_of
from wpinq.engines.sql.dialect import Dialect
from wpinq.engines.sql.script import SqlStatement
from wpinq.errors import EvaluationFailed, PlanError
from wpinq.expr.values import Value
from wpinq.plan.arithmetic import FLOAT, Arithmetic, Weights
from wpinq.plan.lowering import physical_plan
from wpinq.plan.node import Node, sources, topological
from wpinq.plan.operators.source import Source
from wpinq.runtime.signals import interruptible

# The run of a program: its statements in order, and the nesting that DuckDB can plan.

#: How deep functions of lists may nest: DuckDB takes twice as long to plan one for each function around it.
#: 8 are planned in a quarter of a second; 14 take half a minute, and 16 may end the process.
NESTING_LIMIT = 8

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
        if "lambda" in sql and nesting(sql) > NESTING_LIMIT:
            raise PlanError(
                f"{step}: functions of lists stand more than {NESTING_LIMIT} deep inside one another, as those of "
                f"subsets of more than {NESTING_LIMIT} elements do, and planning them takes too long"
            )


def untranslated(root: Node) -> str:
    """The reason why a plan has no program, step by step; empty where it has one.

    No database is opened.
    """
    try:
        check_nesting(Plan(physical_plan(root), ()))
    except PlanError as error:
        return str(error)
    except RecursionError:
        return "its program is too much for the database"
    return ""


class TableStore(Protocol):
    """What a database must do: make tables, and drop them."""

    def stands(self, table: str) -> bool:
        """Whether a table is there from before; it then stays until it is dropped."""

    def create(self, statement: SqlStatement, shared: bool) -> None:
        """Run a statement, whose table is read more than once if it is shared.

        That is as far as can be seen by now.
        """

    def drop(self, table: str) -> None:
        """Let go of a table that a statement made."""


def run(compiled: Compiled, tables: TableStore, on_step: Callable[[str], None] | None) -> None:
    """Make the tables that the query of a plan's output reads, from those of the sources.

    A table without a reader, because its users are there already, is not made. Each is dropped after its last reader.
    """
    live, steps, announced = set[str](), compiled.steps, 0

    def there(table: str) -> bool:
        if table not in live and tables.stands(table):
            live.add(table)
        return table in live

    needed = unmade(compiled.reads, {statement.creates: statement for statement in compiled.statements}, there)
    readers = Counter(set(compiled.reads))
    last: dict[str, int] = {}  # statement that makes a table, or that makes what is needed and reads it
    for number, statement in enumerate(compiled.statements):
        reads = set(statement.reads)
        readers.update(reads)
        last |= {statement.creates: number} | (dict.fromkeys(reads, number) if statement.creates in needed else {})
    last |= dict.fromkeys(compiled.reads, len(compiled.statements))
    for number, made in enumerate([*compiled.statements, None]):
        while announced < len(steps) and (steps[announced][1] <= number or made is None):
            if on_step is not None:
                on_step(steps[announced][0])
            announced += 1
        if made is not None and made.creates in needed:
            tables.create(made, readers[made.creates] > 1)
            live.add(made.creates)
        unread = {table for table in live if last.get(table, -1) <= number} if made is not None else ()
        for table in unread:
            tables.drop(table)
        live.difference_update(unread)


def unmade(reads: Iterable[str], statements: Mapping[str, SqlStatement], stands: Callable[[str], bool]) -> set[str]:
    """The tables that must be made so that some can be read.

    Tables that are there are left out, and so are those that only they read.
    """
    found: set[str] = set()
    stack = list(reads)
    while stack:
        table = stack.pop()
        if table in statements and table not in found and not stands(table):
            found.add(table)
            stack += statements[table].reads
    return found


#: How many must read a step for it to be partly summed: two may each be better off with what their filters leave.
SHARED_USES = 3

#: How many plans are added up in one statement.
AT_ONCE = 64


def shared_steps(roots: Sequence[Node]) -> frozenset[bytes]:
    """The steps, by digest, that several other steps or outputs of some plans read."""
    users: dict[bytes, set[bytes]] = {root.digest: {b"output"} for root in roots}
    for node in topological(roots):
        for child in node.inputs:
            users.setdefault(child.digest, set()).add(node.digest)
    return frozenset(digest for digest, by in users.items() if len(by) >= SHARED_USES)


class Batch:
    """Plans that are evaluated together, with the tables that they share and those to keep.

    The batch ends with its last plan. Each plan keeps its own program, so that its weights have the bits that they have
    when it is evaluated alone. They depend on the plan and on the data, never on the other plans. That leaves to share
    tables of equal names. Partial sums (`Script.partly_summed`), which are exact, are shared of every step that several
    steps or outputs read.
    """

    def __init__(self, roots: Sequence[Node], split: bool = False) -> None:
        self.parts = parts_of(roots) if split else {}
        #: Of the plans of all parts, the output of each part by its key.
        self.outputs: dict[Node, dict[Value, Weights]] = {}
        wholes = dict.fromkeys(whole for whole, _ in self.parts.values())
        self._take([*wholes, *(physical_plan(root) for root in roots if root not in self.parts)])

    def _take(self, roots: Sequence[Node]) -> None:
        self._waiting = Counter(roots)
        shared = shared_steps(roots)
        steps = {root: [node.digest for node in topological([root]) if node.inputs] for root in self._waiting}
        self._plans = {root: Plan(root, shared=shared.intersection(held)) for root, held in steps.items()}
        self._wants: dict[Node, frozenset[str]] = {}
        self._wanted: Counter[str] | None = None
        self._alike: dict[str, defaultdict[object, list[Node]]] = {}

    def apart(self) -> None:
        """Have the plans over parts evaluated one by one."""
        wholes = {whole for whole, _ in self.parts.values()}
        roots = [root for root in self._waiting.elements() if root not in wholes]
        parts, self.parts = self.parts, {}
        self._take([*roots, *map(physical_plan, parts)])

    def __contains__(self, root: Node) -> bool:
        return root in self._waiting

    def plan(self, root: Node) -> Plan:
        """One of the plans, with the steps that it shares."""
        return self._plans[root]

    def read_often(self, dialect: Dialect) -> frozenset[str]:
        """The tables that several statements or outputs of these plans read."""
        readers: dict[str, set[object]] = {}
        for root in self._plans:
            compiled = self.plan(root).program(dialect)
            reading = [(statement.creates, statement.reads) for statement in compiled.statements]
            for reader, tables in [*reading, (root, compiled.reads)]:
                for table in tables:
                    readers.setdefault(table, set()).add(reader)
        return frozenset(table for table, by in readers.items() if len(by) > 1)

    def alike(self, root: Node, trait: Literal["rows", "similar"]) -> tuple[Plan, ...]:
        """One of the plans, and some to come whose programs have a trait in common."""
        if trait not in self._alike:
            self._alike[trait] = defaultdict(list)
            for other in self._plans:
                self._alike[trait][getattr(self.plan(other).program(), trait)].append(other)
        mine = getattr(self.plan(root).program(), trait)
        roots = [] if mine is None else self._alike[trait][mine]
        others = [other for other in roots if other != root and other in self._waiting]
        return (self.plan(root), *map(self.plan, others[: AT_ONCE - 1]))

    def begin(self, root: Node) -> None:
        """Begin the evaluation of one of the plans."""
        self._waiting[root] -= 1
        if not self._waiting[root]:
            del self._waiting[root]
            if self._wanted is not None:
                self._wanted.subtract(self._wants.pop(root))

    def end(self, stands: Callable[[str], bool]) -> None:
        """After the first of them it is known what the others read of what stands."""
        if self._wanted is not None:
            return
        self._wanted = Counter()
        for root in self._waiting:
            compiled = self.plan(root).program()
            statements = {statement.creates: statement for statement in compiled.statements}
            needed = unmade(compiled.reads, statements, stands)
            self._wants[root] = frozenset(compiled.reads).union(*(statements[name].reads for name in needed))
            self._wanted.update(self._wants[root])

    def wants(self, table: str) -> bool:
        """Whether a table stays that nobody reads now; until the first plan ends, every one."""
        return self._wanted is None or self._wanted[table] > 0


T = TypeVar("T")


class SqlEngine(Engine):
    """The common part of the databases, with a table for each given dataset.

    One evaluation runs at a time: threads take turns.

    Attributes
    ----------
    failed : str
        What is said of an evaluation that failed, whatever the reason: a database's own words could show data.
    splits : bool
        Whether plans over parts of one partition are read from an output of all parts.
    """

    failed: ClassVar[str]
    splits: ClassVar[bool] = False

    def __init__(self) -> None:
        self._held: dict[str, tuple[Source, object]] = {}
        self._batches: list[Batch] = []
        self._closed = False
        self._lock = threading.RLock()

    def batch(self, roots: Sequence[Node]) -> AbstractContextManager[None]:
        """What several of these plans make is made once, and kept for the others: see `Batch`."""
        return self._together(roots) if len(set(roots)) > 1 else nullcontext()

    @contextmanager
    def _together(self, roots: Sequence[Node]) -> Iterator[None]:
        batch = Batch(roots, self.splits)
        with self._lock:
            self._batches.append(batch)
        try:
            yield
        finally:
            with self._lock:
                self._batches.remove(batch)
                self._apart()

    def _apart(self) -> None:
        """Plans that were to be evaluated together were, or will not be."""

    def _wanted(self, table: str) -> bool:
        """Whether plans are to come that read a table."""
        return any(batch.wants(table) for batch in self._batches)

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
            output = interruptible(attempt)
        if output is None:
            raise EvaluationFailed(self.failed)
        return output


def check_given(engine: str, root: Node, data: Mapping[str, Any], arithmetic: Arithmetic = FLOAT) -> dict[str, Source]:
    """The sources of a plan, each of which must have data.

    Arithmetic other than floats is refused, too.
    """
    if arithmetic.name != FLOAT.name:
        raise PlanError(f'the engine "{engine}" computes in floats; for exact=True use engine="reference"')
    declared = sources([root])
    for name in declared:
        if name not in data:
            raise PlanError(f"no data for the source {name!r}")
    return declared
