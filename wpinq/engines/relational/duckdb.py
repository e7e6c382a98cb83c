"""The relational engine on DuckDB, in memory."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from wpinq.engines.relational.compile import Compiled, compile_plan
from wpinq.engines.relational.functions import register
from wpinq.engines.relational.loading import fetch, load
from wpinq.engines.relational.program import Rewrites
from wpinq.engines.relational.spill import SpillFolder
from wpinq.errors import EvaluationFailed, PlanError
from wpinq.expr.values import Value
from wpinq.plan.arithmetic import FLOAT, Arithmetic
from wpinq.plan.node import Node, sources
from wpinq.plan.operators.source import Source

FAILED = 'the engine "duckdb" could not evaluate the plan, perhaps for want of memory; the reason cannot be shown'

_SETTINGS = {
    "preserve_insertion_order": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    # tables are joined in the order that rewrites/table_order puts them in, the next one hashed
    "disabled_optimizers": "join_order,build_side_probe_side",
}


class Database:
    """A DuckDB that evaluates plans and keeps the datasets that it was given for the next ones.

    A dataset is loaded again when it comes as another mapping; the mapping must not change while the database is open.

    Parameters
    ----------
    memory_limit : str, optional
        As DuckDB has it, "2GB"; beyond it intermediate results spill to a private folder, removed at the end.
    threads : int, optional
        How many to use; all there are unless given.

    Examples
    --------
    >>> import wpinq as wp
    >>> numbers = wp.source("numbers", int)
    >>> data = {"numbers": {1: 0.75, 2: 2.0, 3: 1.0}}
    >>> with Database() as database:
    ...     database.evaluate(numbers.select(lambda x: x % 2).plan, data)
    {0: 2.0, 1: 1.75}
    """

    def __init__(self, memory_limit: str | None = None, threads: int | None = None) -> None:
        import duckdb

        self._folder = SpillFolder()
        config: dict[str, Any] = dict(_SETTINGS, temp_directory=self._folder.path)
        if memory_limit is not None:
            config["memory_limit"] = memory_limit
        if threads is not None:
            config["threads"] = threads
        self._held: dict[str, tuple[Source, Mapping[Value, Any]]] = {}
        self._failure = duckdb.Error
        try:
            self._connection: Any = duckdb.connect(":memory:", config=config)
        except duckdb.Error:
            self._folder.remove()
            raise PlanError("DuckDB does not understand the memory limit or the number of threads") from None
        self._close = weakref.finalize(self, _shut, self._connection, self._folder)
        register(self._connection)

    def __enter__(self) -> Database:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the data and remove the spill folder."""
        self._held.clear()
        self._close()

    def evaluate(
        self,
        root: Node,
        data: Mapping[str, Mapping[Value, Any]],
        arithmetic: Arithmetic = FLOAT,
        on_step: Callable[[str], None] | None = None,
        rewrites: Rewrites | None = None,
    ) -> dict[Value, float]:
        """The output of a plan on datasets given by source name; see the function `evaluate`."""
        if arithmetic.name != FLOAT.name:
            raise PlanError('the engine "duckdb" computes in floats; for exact=True use engine="reference"')
        declared = sources([root])
        for name in declared:
            if name not in data:
                raise PlanError(f"no data for the source {name!r}")
        compiled = compile_plan(root, rewrites)
        try:
            for name, table in compiled.sources.items():
                self._load(table, declared[name], data[name])
            return self._run(compiled, on_step or _silent)
        except (self._failure, MemoryError):
            pass
        # outside of the handler: the exception says what the data are, and must not be chained
        self._forget()
        raise EvaluationFailed(FAILED)

    def _load(self, table: str, source: Source, weights: Mapping[Value, Any]) -> None:
        held = self._held.pop(table, None)
        if held is None or held[0] != source or held[1] is not weights:
            self._connection.execute(f"DROP TABLE IF EXISTS {table}")
            load(self._connection, table, source, weights)
        self._held[table] = (source, weights)

    def _run(self, compiled: Compiled, on_step: Callable[[str], None]) -> dict[Value, float]:
        reads = [*(statement.reads for statement in compiled.statements), compiled.reads]
        last = {table: number for number, tables in enumerate(reads) for table in tables}
        steps = list(compiled.steps)
        for number, statement in enumerate(compiled.statements):
            while steps and steps[0][1] <= number:
                on_step(steps.pop(0)[0])
            self._connection.execute(statement.sql)
            for table in (*statement.reads, statement.creates):
                if last.get(table, number) == number and table not in self._held:
                    self._connection.execute(f"DROP TABLE IF EXISTS {table}")
        for name, _ in steps:
            on_step(name)
        result = fetch(self._connection, compiled.query, compiled.type)
        for table in compiled.reads:
            if table not in self._held:
                self._connection.execute(f"DROP TABLE IF EXISTS {table}")
        return result

    def _forget(self) -> None:
        """Drop every table: after a failure, nothing is left to be trusted."""
        self._held.clear()
        try:
            for (table,) in self._connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
                self._connection.execute(f'DROP TABLE IF EXISTS "{table}"')
        except self._failure:
            self._close()


def _silent(step: str) -> None:
    """Tells nobody."""


def _shut(connection: Any, folder: SpillFolder) -> None:
    connection.close()
    folder.remove()


def evaluate(
    root: Node,
    data: Mapping[str, Mapping[Value, Any]],
    arithmetic: Arithmetic = FLOAT,
    on_step: Callable[[str], None] | None = None,
    *,
    memory_limit: str | None = None,
    threads: int | None = None,
    rewrites: Rewrites | None = None,
) -> dict[Value, float]:
    """The output of a plan on datasets given by source name.

    Weights are the same to the last bit whatever the number of threads, the order of the rows and the memory, and
    within the plan's `analysis.rounding_error` of the exact ones.

    Parameters
    ----------
    root : Node
        The plan.
    data : mapping
        For each source name, record to weight.
    arithmetic : Arithmetic
        Only `FLOAT`.
    on_step : callable, optional
        Told the name of each operator before the statements that it needs run; nothing else.
    memory_limit : str, optional
        As DuckDB has it, "2GB"; beyond it intermediate results spill to a private folder, removed at the end.
    threads : int, optional
        How many to use.
    rewrites : Rewrites, optional
        Which rewrites to make; all unless given.

    Returns
    -------
    dict
        Record to weight, in canonical order.

    Raises
    ------
    PlanError
        When exact arithmetic is asked for, a source has no data, or data weigh more than the cap of their source.
    EvaluationFailed
        When DuckDB failed; with a constant message, for its own could show data.

    Examples
    --------
    >>> import wpinq as wp
    >>> numbers = wp.source("numbers", int)
    >>> evaluate(numbers.shave(1.0).plan, {"numbers": {1: 0.75, 2: 2.0}})
    {(1, 0): 0.75, (2, 0): 1.0, (2, 1): 1.0}
    """
    with Database(memory_limit, threads) as database:
        return database.evaluate(root, data, arithmetic, on_step, rewrites)
