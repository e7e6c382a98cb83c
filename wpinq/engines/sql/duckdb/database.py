"""The DuckDB engine: a database that evaluates plans in turn and keeps their data."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count
from typing import Any, ClassVar

from wpinq.columns.records import fetch, fetch_rows, leaf_types
from wpinq.engines.contract import OnStep, RankWeights, WantedRanges, at_keys, rank_weights_of
from wpinq.engines.sql.compile import Plan, parts_of, source_tables
from wpinq.engines.sql.duckdb.instance import NOTHING, Instance, check_options, load, unload
from wpinq.engines.sql.duckdb.table_cache import are_small, query_keys
from wpinq.engines.sql.emit import in_ranges
from wpinq.engines.sql.engine import Batch, SqlEngine, T, check_given, check_nesting, run
from wpinq.engines.sql.rewrites import REWRITES
from wpinq.engines.sql.script import Rewrite, SqlStatement, table_name
from wpinq.errors import EvaluationFailed, PlanError
from wpinq.expr.types import INT
from wpinq.expr.values import Value
from wpinq.plan.arithmetic import FLOAT, Arithmetic, Weights
from wpinq.plan.lowering import physical_plan
from wpinq.plan.node import Node, sources
from wpinq.plan.operators.source import Source
from wpinq.runtime.arrays import Integers
from wpinq.runtime.signals import interruptible


@dataclass(slots=True)
class Work:
    """One evaluation of a plan, which may be attempted again, with its data and options.

    `plain` is whether its statements are those that were tried. `plan` is that of all parts where `root` is over one of
    many.
    """

    root: Node
    plan: Plan
    batch: Batch | None
    data: Mapping[str, Any]
    on_step: OnStep
    keys: Sequence[Value] | None
    within: WantedRanges
    in_rows: bool = False
    in_order: bool = True
    plain: bool = False
    announced: int = 0

    def announcer(self) -> Callable[[str], None]:
        """What to announce the steps to: each is announced once, also when the work is done again."""
        numbers = count()

        def announce(step: str) -> None:
            if next(numbers) == self.announced:
                self.announced += 1
                if self.on_step is not None:
                    self.on_step(step)

        return announce


FAILED = 'the engine "duckdb" could not evaluate the plan, perhaps for want of memory; the reason cannot be shown'

#: How many plans are remembered that were admitted.
ADMITTED = 1024

#: The most records of all parts of a partition that are held at a time.
MOST_OF_PARTS = 2**20

_databases: weakref.WeakSet[Database] = weakref.WeakSet()


class Database(SqlEngine):
    """A DuckDB that evaluates plans and keeps the datasets that it was given for the next ones.

    It opens when it is first used. A dataset is loaded again when it comes as another mapping; the mapping must not
    change while the database is open. Threads take turns. A forked child opens a database of its own.

    Parameters
    ----------
    memory_limit : str, optional
        As DuckDB has it, "2GB"; beyond it intermediate results spill to files without a name, in the folder for
        temporary files; nothing is left of them when the process ends.
    threads : int, optional
        How many to use; all there are unless given.

    Raises
    ------
    PlanError
        When DuckDB could not read the memory limit or the number of threads.

    Examples
    --------
    >>> import wpinq as wp
    >>> numbers = wp.source("numbers", int)
    >>> data = {"numbers": {1: 0.75, 2: 2.0, 3: 1.0}}
    >>> with Database() as database:
    ...     database.evaluate(numbers.select(lambda x: x % 2).plan, data)
    {0: 2.0, 1: 1.75}
    """

    name = "duckdb"
    failed = FAILED
    splits = True
    rewrites: ClassVar[tuple[Rewrite, ...]] = REWRITES

    def __init__(self, memory_limit: str | None = None, threads: int | None = None) -> None:
        check_options(memory_limit, threads)
        super().__init__()
        self._options = (memory_limit, threads)
        self._instance: Instance | None = None
        self._admitted: set[Node] = set()
        _databases.add(self)

    @classmethod
    @lru_cache(maxsize=1024)
    def check(cls, root: Node) -> None:
        """Refuse a plan that DuckDB cannot run, from the plan alone.

        Its program is run on no data at all.

        Raises
        ------
        PlanError
            Saying which step, where that is known, and what to do.

        Examples
        --------
        >>> import wpinq as wp
        >>> light, heavy = wp.source("light", int, cap="1e-25"), wp.source("heavy", int)
        >>> Database.check(light.join(heavy, lambda x: x % 2, lambda y: y % 2, lambda x, y: x).plan)
        ... # doctest: +ELLIPSIS
        Traceback (most recent call last):
        wpinq.errors.PlanError: the engine "duckdb" cannot run this plan: Join: the caps of its sides differ by ...
        """
        try:
            _drafts.evaluate(root, dict.fromkeys(sources([root]), NOTHING), keys=(), rewrites=cls.rewrites)
            return
        except PlanError as error:
            reason = str(error)
        except (EvaluationFailed, RecursionError):
            reason = "its program is too much for the database"
        raise PlanError(f'the engine "duckdb" cannot run this plan: {reason}; or use engine="reference"')

    def admit(self, plans: Sequence[tuple[Node, bool]]) -> None:
        """Refuse plans that DuckDB cannot run, by running their programs on no data.

        Plans that are run together are tried together. Refusals never depend on data: what is refused was refused in a
        DuckDB that has none, together and then one by one.

        Plans that run on no data beside other data would run there, too. Statements and settings are the same, and both
        may take as much memory. Data leave less of it, and threads take more. So that other DuckDB opens only where
        something fails, or under a limit of this one's own.
        """
        self._admit(_tried([root for root, together in plans if together]))
        for root in [root for root, together in plans if not together]:
            self._admit([root])

    def _admit(self, roots: Sequence[Node]) -> None:
        new = [root for root in dict.fromkeys(roots) if root not in self._admitted]
        if not new:
            return
        ran = self._options[0] is None and self._ran(new, self.rewrites)
        if not ran and not (len(new) > 1 and _drafts._ran(new, self.rewrites)):
            for root in new:
                self.check(root)
        if len(self._admitted) + len(new) > ADMITTED:
            self._admitted.clear()
        self._admitted.update(new)

    def _ran(self, roots: Sequence[Node], rewrites: tuple[Rewrite, ...]) -> bool:
        """Whether the programs of plans run here on no data, with no data in sight.

        After a failure the database is shut.
        """
        with self._lock:
            if self._closed:
                return False
            ran, _ = interruptible(lambda: self._attempt(lambda instance: instance.dry_run.run(roots, rewrites)))
        return bool(ran)

    @staticmethod
    def rest() -> None:
        """Shut every DuckDB of the process, and so its threads; each opens again on its next use."""
        for database in list(_databases):
            with database._lock:
                database._shut()

    @classmethod
    def evaluate_public(cls, root: Node, data: Mapping[str, Any], arithmetic: Arithmetic = FLOAT) -> Weights:
        """The output of a plan on public data, which are not kept.

        One database serves all of them.
        """
        try:
            output: Weights = _public.evaluate(root, data, arithmetic)
            return output
        finally:
            for name in data:
                _public.forget(name)

    def close(self) -> None:
        """Delete the data and the spilled files after the running evaluation, and stay closed."""
        with self._lock:
            self._closed = True
            self._shut()

    def lose(self) -> None:
        """Start anew in a forked child, where neither locks nor the instance are of any use."""
        self._lock = threading.RLock()
        self._shut(abandoned=True)

    def evaluate(
        self,
        root: Node,
        data: Mapping[str, Any],
        arithmetic: Arithmetic = FLOAT,
        on_step: OnStep = None,
        keys: Sequence[Value] | None = None,
        within: WantedRanges = (),
        *,
        rewrites: tuple[Rewrite, ...] | None = None,
        in_rows: bool = False,
        in_order: bool = True,
    ) -> Any:
        """The output of a plan, in canonical order; or what some keys weigh.

        Weights are the same to the last bit whatever the number of threads, the order of the rows and the memory, and
        within the plan's `PlanProperties.rounding_error` of the exact ones.

        Parameters
        ----------
        root, data, arithmetic, on_step, keys, within
            As the contract has them; only `FLOAT`. What it keeps when it is asked for keys: see `key_query`.
        rewrites : tuple of Rewrite, optional
            Which rewrites to make, where not those of the database.
        in_rows : bool
            Whether to give what `integer_rows` does instead of weights, without keys.
        in_order : bool
            Without it, a small output has any order, and records of weight 0.

        Raises
        ------
        PlanError
            When exact arithmetic is asked for, a source has no data, or data weigh more than the cap of their source.
        EvaluationFailed
            When DuckDB failed; with a constant message, for its own could show data.
        """
        check_given(self.name, root, data, arithmetic)
        rewrites = self.rewrites if rewrites is None else rewrites

        def attempt() -> Any:
            batches = self._batches if rewrites is REWRITES else []
            batch, whole = next(((one, one.parts[root][0]) for one in batches if root in one.parts), (None, None))
            step = physical_plan(root) if whole is None else whole
            batch = batch or next((one for one in batches if step in one), None)
            plan = Plan(step, rewrites, alone=True) if batch is None else batch.plan(step)
            check_nesting(plan)
            plain = keys is None or rewrites is not REWRITES or not are_small(data[name] for name in sources([step]))
            work = Work(root, plan, batch, data, on_step, keys, within, in_rows, in_order, plain)
            output, fault = self._attempt(lambda instance: self._run(instance, work))
            if output is None and (fault or not work.plain):
                work.plain = True
                output, _ = self._attempt(lambda instance: self._run(instance, work), cautious=fault)
            return output

        return self._in_turn(attempt)

    def integer_rows(self, root: Node, data: Mapping[str, Any], on_step: OnStep = None) -> Integers | None:
        """The records that weigh more than 1/2, as rows of integers that are never null."""
        plain = all(leaf == INT and not nullable for leaf, nullable in leaf_types(root.type))
        return self.evaluate(root, data, on_step=on_step, in_rows=True) if plain else None

    def rank_weights(
        self, root: Node, data: Mapping[str, Any], candidates: Sequence[Value], on_step: OnStep = None
    ) -> RankWeights:
        """The weight of the output before, at and after some records, for a quantile."""
        return rank_weights_of(self.evaluate(root, data, on_step=on_step, in_order=False), candidates)

    def open(self) -> Instance:
        """Open it now rather than on its first use, so that faults of its options show."""
        with self._lock:
            return self._opened()

    def _opened(self, cautious: bool = False) -> Instance:
        if self._instance is None:
            self._instance = Instance(*self._options, cautious=cautious)
            self._instance.tables.wanted = self._wanted
        return self._instance

    def _shut(self, abandoned: bool = False) -> None:
        self._held.clear()
        if self._instance is not None:
            (self._instance.abandon if abandoned else self._instance.close)()
            self._instance = None

    def _attempt(self, work: Callable[[Instance], T], cautious: bool = False) -> tuple[T | None, bool]:
        """The result of some work in the instance, or None, and whether DuckDB's own fault is why.

        What DuckDB says of a failure says what the data are: it ends here. So does the instance, for after a failure
        nothing in it is left to be trusted, and after such a fault it takes no more statements.
        """
        import duckdb

        result, fault = None, False
        try:
            if cautious:
                self._shut()
            result = work(self._opened(cautious))
        except (duckdb.InternalError, duckdb.FatalException):
            fault = True
        except (duckdb.Error, MemoryError, RecursionError):
            pass
        finally:
            if result is None or cautious:
                self._shut()
        return result, fault

    def _run(self, instance: Instance, work: Work) -> Any:
        connection, tables = instance.connection, instance.tables
        plan, batch = work.plan, work.batch
        self._hold_all(instance, work)
        if batch is not None and work.root in batch.parts:
            return self._part(instance, work, batch)
        if batch is not None:
            batch.begin(plan.root)
        if work.keys is None:
            compiled = plan.program()
            run(compiled, tables, work.announcer())
            query = in_ranges(compiled.output if work.in_rows else compiled.query, compiled.type, work.within)
            query = query if work.in_order else tables.small_output(compiled) or query
            output: Any = (fetch_rows if work.in_rows else fetch)(connection, query, compiled.type)
            tables.release(compiled.reads)
        else:
            output = query_keys(tables, plan, work.keys, work.announcer(), batch, work.plain)
        if batch is not None:
            batch.end(tables.tables.__contains__)
            tables.trim()
        return output

    def _part(self, instance: Instance, work: Work, batch: Batch) -> Any:
        """The output over a part, from one output of all parts unless that is too large."""
        (whole, key), plan, tables = batch.parts[work.root], work.plan, instance.tables
        if whole not in batch.outputs:
            compiled = plan.program()
            batch.begin(whole)
            run(compiled, tables, work.announcer())
            table, output = table_name(compiled.output), None
            tables.create(SqlStatement(compiled.steps[-1][0], compiled.output, table, compiled.reads), True)
            most = MOST_OF_PARTS if work.keys is None else 4 * len(work.keys) * len(batch.parts)
            if tables.tables[table].rows <= most:
                output = fetch(instance.connection, f"SELECT * FROM {table}{compiled.order}", compiled.type)
            tables.release([*compiled.reads, table])
            batch.end(tables.tables.__contains__)
            if output is None:
                batch.apart()
                return self._run(instance, replace(work, plan=batch.plan(physical_plan(work.root))))
            found = batch.outputs[whole] = defaultdict(dict)
            for (part, record), weight in output.items():
                found[part][record] = weight
        weights = batch.outputs[whole].get(key, {})
        return weights if work.keys is None else at_keys(weights, work.keys)

    def _hold_all(self, instance: Instance, work: Work) -> None:
        """Load the datasets of a plan that are not there."""
        declared = sources([work.plan.root])
        for name, table in source_tables(work.plan.root).items():
            self._hold(table, declared[name], work.data[name])

    def _apart(self) -> None:
        if self._instance is not None:
            self._instance.tables.trim()

    def _load(self, table: str, source: Source, weights: Mapping[Value, Any]) -> None:
        instance = self._opened()
        load(instance.connection, table, source, weights)
        instance.tables.source_rows[table] = len(weights)

    def _drop(self, table: str, weights: object) -> None:
        instance = self._opened()
        instance.tables.forget(table)
        for batch in self._batches:
            batch.outputs.clear()
        unload(instance.connection, table, weights)

    def forget(self, name: str) -> None:
        """Forget the dataset of a source.

        Where that fails, or Ctrl-C leaves half of it, the instance is shut.
        """
        try:
            super().forget(name)
        except BaseException:
            with self._lock:
                self._shut()
            raise

    @contextlib.contextmanager
    def connection(self) -> Iterator[Any]:
        """Its own DuckDB, which is thrown away where anything fails in it."""
        with self._lock:
            try:
                yield self._opened().connection
            except BaseException:
                self._shut()
                raise


def _tried(roots: Sequence[Node]) -> list[Node]:
    """The plans that are tried for some: over parts, that of all parts and one of them."""
    parts = parts_of(roots)
    some = {whole: root for root, (whole, _) in parts.items()}
    return [*(root for root in roots if root not in parts), *some, *some.values()]


#: For public data: opening DuckDB takes longer than evaluating a small plan. Keeps no data.
_public = Database()

#: For no data at all, on which plans are checked: what one of them made is there for the next.
_drafts = Database(threads=1)


def _left_behind() -> None:
    """In a forked child: no thread holds a lock any more, and no instance can be used."""
    for database in _databases:
        database.lose()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_left_behind)


class UnoptimisedDatabase(Database):
    """A DuckDB on one thread without rewrites, whose rows are within the bounds of the steps.

    The rewrites choose another order of joins, and leave steps out or merge them. That mostly makes fewer rows, which
    no declaration bounds. Without them each step's output is a table of its own. The weights are the same to the last
    bit.

    It takes the data of one plan. Once they are attached, its statements reach no file and set no option.
    """

    rewrites, splits = (), False

    def __init__(self, memory_limit: str | None = None, threads: int | None = 1) -> None:
        import duckdb  # noqa: F401  # here, and not in each child that opens it

        super().__init__(memory_limit, threads)

    def _hold_all(self, instance: Instance, work: Work) -> None:
        super()._hold_all(instance, work)
        instance.lock()

    def _load(self, table: str, source: Source, weights: Mapping[Value, Any]) -> None:
        if self._opened().locked:
            raise PlanError("this database takes the data of one plan: open another for other data")
        super()._load(table, source, weights)
