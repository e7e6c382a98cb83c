"""Plans on Spark: what a session holds, and one evaluation of public data."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any

from wpinq.engines.relational.compile import Compiled, compile_plan
from wpinq.engines.relational.layout import reader
from wpinq.engines.relational.nesting import check_nesting
from wpinq.engines.relational.program import Rewrites, Statement, column_names
from wpinq.engines.relational.rewrites.equal_weights import weights_sql
from wpinq.engines.relational.running import run
from wpinq.engines.relational.spark.dialect import SPARK
from wpinq.engines.relational.spark.frames import Bounds, SparkData, frame_of, key_frame
from wpinq.engines.relational.spark.starting import Started, start
from wpinq.errors import EvaluationFailed, PlanError, SourceRejected
from wpinq.expr.values import Value, order_key
from wpinq.plan.arithmetic import FLOAT, Arithmetic
from wpinq.plan.node import Node, sources
from wpinq.plan.operators.source import Source

FAILED = 'the engine "spark" could not evaluate the plan; the reason cannot be shown'

_KEYS = "wpinq_keys"

DEPTH_LIMIT = 100
"""Spark 4.3 reads 200 parentheses inside one another, and 100 queries, with the stack that Java gives it."""


class SparkDatabase:
    """A Spark session of its own that evaluates plans and keeps the datasets that it was given for the next ones.

    It is made from the active Spark session when it is first used; where none is active, one is started as
    `spark-submit` or the environment says. Threads take turns.

    Examples
    --------
    Needs Java and pyspark:

    >>> import wpinq as wp
    >>> numbers = wp.source("numbers", int)
    >>> with SparkDatabase() as database:  # doctest: +SKIP
    ...     database.evaluate(numbers.select(lambda x: x % 2).plan, {"numbers": {1: 0.75, 2: 2.0, 3: 1.0}})
    {0: 2.0, 1: 1.75}
    """

    def __init__(self) -> None:
        self._started: Started | None = None
        self._held: dict[str, tuple[Source, object, Any, tuple[float | None, float | None]]] = {}
        self._closed = False
        self._lock = threading.RLock()

    def __enter__(self) -> SparkDatabase:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def open(self) -> Started:
        """Find Spark now rather than when it is first used, so that what is missing shows."""
        with self._lock:
            if self._started is None:
                self._started = start()
            return self._started

    def close(self) -> None:
        """Let go of all data. The Spark session that was there before goes on."""
        with self._lock:
            self._closed = True
            for table in list(self._held):
                self._drop(table)
            self._started = None

    def forget(self, name: str) -> None:
        """Let go of the dataset of a source."""
        with self._lock:
            for table in [table for table, (source, *_) in self._held.items() if source.source == name]:
                self._drop(table)

    def evaluate(
        self,
        root: Node,
        data: Mapping[str, Mapping[Value, Any]],
        arithmetic: Arithmetic = FLOAT,
        on_step: Callable[[str], None] | None = None,
        rewrites: Rewrites | None = None,
    ) -> dict[Value, float]:
        """The output of a plan on datasets given by source name; see the function `evaluate`."""
        return self._evaluate(root, data, arithmetic, on_step, rewrites, None)

    def evaluate_keys(
        self,
        root: Node,
        data: Mapping[str, Any],
        keys: Sequence[Value],
        on_step: Callable[[str], None] | None = None,
    ) -> dict[Value, float]:
        """The weights that the output of a plan gives to some records: no other record leaves the cluster."""
        return self._evaluate(root, data, FLOAT, on_step, None, keys)

    def frame(self, data: object) -> Any:
        """A Spark frame: the data if they are one, or what Spark reads from a path that ends in .parquet; else None."""
        if isinstance(data, (str, os.PathLike)):
            path = os.fspath(data)
            return self._parquet(path) if path.rstrip("/").endswith(".parquet") else None
        from_spark = any(base.__module__.partition(".")[0] == "pyspark" for base in type(data).__mro__)
        if not (from_spark and hasattr(data, "toDF")):
            return None
        self.open()  # what Spark logs when the frame is checked quotes rows too: off before that
        return data

    def keep(self, frame: Any, bounds: Bounds) -> SparkData:
        """A checked frame as a dataset."""
        return SparkData(frame, bounds)

    def _parquet(self, path: str) -> Any:
        spark, found = self.open().session, None
        with contextlib.suppress(Exception):  # Spark's own quote settings and addresses
            found = spark.read.parquet(path)
        if found is None:
            raise SourceRejected("Spark cannot read the parquet at this path: read it yourself to see why")
        return found

    def _evaluate(
        self,
        root: Node,
        data: Mapping[str, Any],
        arithmetic: Arithmetic,
        on_step: Callable[[str], None] | None,
        rewrites: Rewrites | None,
        keys: Sequence[Value] | None,
    ) -> dict[Value, float]:
        if arithmetic.name != FLOAT.name:
            raise PlanError('the engine "spark" computes in floats; for exact=True use engine="reference"')
        declared = sources([root])
        for name in declared:
            if name not in data:
                raise PlanError(f"no data for the source {name!r}")
        check(root)
        chosen = rewrites or Rewrites()
        tables = compile_plan(root, chosen, dialect=SPARK).sources
        with self._lock:
            if self._closed:
                raise PlanError("this database is closed")
            spark = self.open().session
            output = None
            try:
                for name, table in tables.items():
                    self._load(table, declared[name], data[name])
                output = self._run(spark, root, chosen, on_step or _silent, keys)
            except PlanError:
                raise  # of the caps: it names the source
            except Exception:  # Spark's own say what the data are
                pass
        if output is None:
            raise EvaluationFailed(FAILED)
        return output

    def _run(
        self, spark: Any, root: Node, rewrites: Rewrites, on_step: Callable[[str], None], keys: Sequence[Value] | None
    ) -> dict[Value, float]:
        made = _Tables(spark, {table: held[3] for table, held in self._held.items()})
        try:
            compiled = run(root, rewrites, made, on_step, SPARK)
            rows = spark.sql(self._final(spark, compiled, keys)).collect()
        finally:
            made.drop_all()
            spark.catalog.dropTempView(_KEYS)
        read = reader(compiled.type)
        output = {read(row): row[-1] for row in rows}
        return {record: output[record] for record in sorted(output, key=order_key)}

    def _final(self, spark: Any, compiled: Compiled, keys: Sequence[Value] | None) -> str:
        if keys is None:
            return compiled.query
        key_frame(spark, compiled.type, keys).createOrReplaceTempView(_KEYS)
        names = column_names(compiled.type)
        on = " AND ".join(f"q.{name} <=> k.{name}" for name in names) or "TRUE"
        return f"SELECT q.* FROM ({compiled.query}) AS q LEFT SEMI JOIN {_KEYS} AS k ON {on}"

    def _load(self, table: str, source: Source, weights: object) -> None:
        held = self._held.get(table)
        if held is not None and held[0] == source and held[1] is weights:
            return
        self._drop(table)
        frame, bounds = frame_of(self.open().session, source, weights)
        frame.createOrReplaceTempView(table)
        self._held[table] = (source, weights, frame, bounds)

    def _drop(self, table: str) -> None:
        held = self._held.pop(table, None)
        if held is not None and self._started is not None:
            self._started.session.catalog.dropTempView(table)
            held[2].unpersist()


class _Tables:
    """What `running.run` asks of Spark. A table is a view; its rows are kept if they are read more than once."""

    def __init__(self, spark: Any, weights: Mapping[str, tuple[float | None, float | None]]) -> None:
        self._spark, self._weights = spark, weights
        self._made: dict[str, Any] = {}
        self._kept: list[Any] = []

    def create(self, statement: Statement, shared: bool) -> None:
        """Name the query of a statement. Its rows are made when they are first asked for."""
        frame = self._spark.sql(statement.query)
        if shared:
            frame = frame.localCheckpoint(eager=False)
            self._kept.append(frame)
        frame.createOrReplaceTempView(statement.creates)
        self._made[statement.creates] = frame

    def drop(self, table: str) -> None:
        """Nothing yet: rows that are made late may come from it."""

    def drop_all(self) -> None:
        """Let go of all tables."""
        for table in self._made:
            self._spark.catalog.dropTempView(table)
        for frame in self._kept:
            frame._jdf.queryExecution().analyzed().rdd().unpersist(False)
        self._made.clear()
        self._kept.clear()

    def weights(self, table: str) -> tuple[float | None, float | None]:
        """The least and the greatest weight in a table."""
        if table in self._weights:
            return self._weights[table]
        (row,) = self._spark.sql(weights_sql(table)).collect()
        return row[0], row[1]


def _silent(step: str) -> None:
    """Tells nobody."""


@lru_cache(maxsize=1024)
def check(root: Node) -> None:
    """Refuse a plan that the engine cannot run on Spark, from the plan alone.

    Raises
    ------
    PlanError
        Saying which step, and what to do.

    Examples
    --------
    >>> import wpinq as wp
    >>> lists = wp.source("lists", list[list[float]])
    >>> check(lists.select(lambda xs: wp.map(xs, lambda x: wp.sum(x))).plan)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    wpinq.errors.PlanError: the engine "spark" cannot run this plan: Select: a sum of floats, inside of a function ...
    """
    problem = None
    try:
        check_nesting(root, Rewrites())
        compiled = compile_plan(root, dialect=SPARK)
    except PlanError as error:
        problem = str(error)
    except RecursionError:
        problem = "its program is too much for the database"
    else:
        programs = [(statement.step, statement.query) for statement in compiled.statements]
        for step, sql in [*programs, (compiled.steps[-1][0], compiled.query)]:
            if _depth(sql) > DEPTH_LIMIT:
                problem = f"{step}: its query nests more than {DEPTH_LIMIT} deep, and Spark might not read it"
                break
    if problem is not None:
        raise PlanError(f'the engine "spark" cannot run this plan: {problem}; or use engine="reference"')


def _depth(sql: str) -> int:
    """How many parentheses stand inside one another; strings, which are written as hexadecimals, have none."""
    return max(accumulate((sign == "(") - (sign == ")") for sign in sql if sign in "()"), default=0)


def evaluate(
    root: Node,
    data: Mapping[str, Mapping[Value, Any] | SparkData],
    arithmetic: Arithmetic = FLOAT,
    on_step: Callable[[str], None] | None = None,
    rewrites: Rewrites | None = None,
) -> dict[Value, float]:
    """The output of a plan on datasets given by source name: the weights, to the last bit, that DuckDB gives.

    Parameters
    ----------
    root, data, arithmetic, on_step, rewrites
        As for `wpinq.engines.relational.duckdb.evaluate`; the data of a source may also be a `SparkData`.

    Returns
    -------
    dict
        Record to weight, in canonical order.

    Raises
    ------
    PlanError
        As there, and when the plan has a step that Spark cannot run, or pyspark or Java is missing.
    EvaluationFailed
        When Spark failed; with a constant message, for its own could show data.
    """
    with SparkDatabase() as database:
        return database.evaluate(root, data, arithmetic, on_step, rewrites)  # type: ignore[arg-type]
