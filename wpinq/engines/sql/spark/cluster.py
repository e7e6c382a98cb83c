"""Plans on Spark: what a session holds."""

from __future__ import annotations

import contextlib
import os
import re
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import accumulate
from typing import Any, TypeVar

from wpinq.columns.dataset import EngineDataset, let_go
from wpinq.engines.contract import OnStep, RankWeights, WantedRanges
from wpinq.engines.sql.compile import Compiled, Plan, source_tables
from wpinq.engines.sql.engine import SqlEngine, check_given, check_nesting, run
from wpinq.engines.sql.rewrites import REWRITES
from wpinq.engines.sql.script import Rewrite
from wpinq.engines.sql.spark import session
from wpinq.engines.sql.spark.dialect import SPARK
from wpinq.errors import PlanError, SourceRejected
from wpinq.expr.values import Value
from wpinq.plan.arithmetic import FLOAT, Arithmetic, Weights
from wpinq.plan.lowering import physical_plan
from wpinq.plan.node import Node, sources, topological
from wpinq.plan.operators.source import Source

FAILED = 'the engine "spark" could not evaluate the plan; the reason cannot be shown'

T = TypeVar("T")
D = TypeVar("D")

#: How many programs are remembered that Spark can plan.
PLANNED_LIMIT = 1024

#: Sources and programs of them that the Java of this process can plan.
_planned: set[tuple[object, ...]] = set()

#: How much deeper than it is a program is planned without data: what asks for keys, or for sides, adds less.
MARGIN = 8

#: Whole numbers that make no difference to whether Spark can plan a program.
_NUMBERS = re.compile(r"CAST\(-?[0-9]{1,9} AS BIGINT\)")

#: Spark 4.3 reads 200 parentheses inside one another, and 100 queries, with the stack that Java gives it.
DEPTH_LIMIT = 100


class SparkDatabase(SqlEngine):
    """A Spark session of its own that evaluates plans and keeps its datasets for the next ones.

    It is made from the active Spark session when it is first used. Where none is active, one is started as
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

    name = "spark"
    failed = FAILED

    def __init__(self, memory_limit: str | None = None, threads: int | None = None) -> None:
        if memory_limit is not None or threads is not None:
            raise PlanError('the engine "spark" takes memory and threads from the Spark session, not from this one')
        super().__init__()
        self._accepted: Sequence[str] = tuple(session.EXPOSURES)  # public data may be shown
        self._started: session.Started | None = None
        self._views: session.SparkViews | None = None
        self._dry_run_sources: dict[str, Source] = {}
        self._kept: list[tuple[weakref.ref[EngineDataset], Any]] = []

    @staticmethod
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
        >>> from wpinq import functions as F
        >>> lists = wp.source("lists", list[list[float]])
        >>> SparkDatabase.check(lists.select(lambda xs: F.map(xs, lambda x: F.sum(x))).plan)
        ... # doctest: +ELLIPSIS
        Traceback (most recent call last):
        wpinq.errors.PlanError: the engine "spark" cannot run this plan: Select: a sum of floats, inside ...
        """
        problem, root = "", physical_plan(root)
        try:
            check_nesting(Plan(root))
            deep = [step for step, sql in Plan(root).program(SPARK).queries if _depth(sql) > DEPTH_LIMIT]
            if deep:
                problem = f"{deep[0]}: its query nests more than {DEPTH_LIMIT} deep, and Spark might not read it"
        except PlanError as error:
            problem = str(error)
        except RecursionError:
            problem = "its program is too much for the database"
        if problem:
            raise PlanError(f'the engine "spark" cannot run this plan: {problem}; or use engine="reference"')

    def accept(self, exposures: Sequence[str]) -> None:
        """Refuse a Spark that shows data by a way that is not one of these."""
        unknown = [word for word in exposures if word not in session.EXPOSURES]
        if unknown or isinstance(exposures, str):
            raise PlanError(f"accept takes a list of {', '.join(session.EXPOSURES)}")
        self._accepted = tuple(exposures)

    def open(self) -> session.Started:
        """Find Spark now rather than on its first use, so that a missing or stopped one shows."""
        with self._lock:
            self._started = self._started or session.start(self._accepted)
            self._started.check()
            return self._started

    def close(self) -> None:
        """Drop all data, and leave a Spark session that was there before running.

        A session that was stopped is no error.
        """
        with self._lock:
            self._closed = True
            self._shut()
            for table in list(self._held):
                self._let_go(table)
            for _, frame in self._kept:
                let_go(frame)
            self._kept.clear()
            self._started = None

    def evaluate(
        self,
        root: Node,
        data: Mapping[str, Any],
        arithmetic: Arithmetic = FLOAT,
        on_step: OnStep = None,
        keys: Sequence[Value] | None = None,
        within: WantedRanges = (),
        *,
        rewrites: tuple[Rewrite, ...] = REWRITES,
    ) -> Weights:
        """The output of a plan, in canonical order: the weights, to the last bit, that DuckDB gives.

        With keys, no other record leaves the cluster, and nothing is kept of the output for the next.

        Raises
        ------
        PlanError
            As DuckDB does, and when the plan has a step that Spark cannot run, or pyspark or Java is missing.
        EvaluationFailed
            When Spark failed; with a constant message, for its own could show data.
        """
        fetch = partial(session.fetch_all, within=within) if keys is None else partial(session.fetch_keys, keys=keys)
        return self._fetched(root, data, on_step, fetch, arithmetic, rewrites)

    def rank_weights(
        self, root: Node, data: Mapping[str, Any], candidates: Sequence[Value], on_step: OnStep = None
    ) -> RankWeights:
        """The weight of the output before, at and after some records; added up in the cluster."""
        return self._fetched(root, data, on_step, partial(session.fetch_rank_weights, candidates=candidates))

    def attach(self, data: object) -> object:
        """A Spark frame, or what Spark reads from a path that ends in .parquet, as it is there."""
        if isinstance(data, (str, os.PathLike)):
            path = os.fspath(data)
            return self._parquet(path) if path.rstrip("/").endswith(".parquet") else data
        if not any(base.__module__.partition(".")[0] == "pyspark" for base in type(data).__mro__):
            return data
        if not (hasattr(data, "toDF") and hasattr(data, "dtypes")):
            raise SourceRejected(
                "of what pyspark has, a DataFrame can be read: offer one (rdd.toDF(), frame.to_spark())"
            )
        self.open()  # what Spark logs when the frame is checked quotes rows too: off before that
        return EngineDataset(data)

    def keep(self, checked: D) -> D:
        """A checked dataset; rows that Spark holds are let go when nobody has it any more."""
        if isinstance(checked, EngineDataset):
            with self._lock:
                self._sweep()
                self._kept.append((weakref.ref(checked), checked.frame))
        return checked

    def _sweep(self) -> None:
        """Drop the rows of datasets that are gone.

        It never runs while a release that began before may still read them.
        """
        for data, frame in self._kept:
            if data() is None:
                let_go(frame)
        self._kept = [kept for kept in self._kept if kept[0]() is not None]

    def _parquet(self, path: str) -> EngineDataset:
        spark = self.open().session
        session.adapt(spark, joins=False)
        with contextlib.suppress(Exception):  # Spark's own quote settings and addresses
            return EngineDataset(spark.read.parquet(path))
        raise SourceRejected("Spark cannot read the parquet at this path: read it yourself to see why")

    def _fetched(
        self,
        root: Node,
        data: Mapping[str, Any],
        on_step: OnStep,
        fetch: Callable[[Any, Compiled], T],
        arithmetic: Arithmetic = FLOAT,
        rewrites: tuple[Rewrite, ...] = REWRITES,
    ) -> T:
        root = physical_plan(root)
        declared = check_given(self.name, root, data, arithmetic)
        self.check(root)
        tables = source_tables(root)

        def attempt() -> T | None:
            spark = self.open().session
            joins = any(len(node.inputs) > 1 and node.operator.name != "Concat" for node in topological([root]))
            session.adapt(spark, joins)
            self._sweep()
            output = None
            try:
                for name, table in tables.items():
                    self._hold(table, declared[name], data[name])
                output = fetch(spark, self._run(Plan(root, rewrites), on_step))
            except PlanError:
                raise  # of the caps: it names the source
            except Exception:  # Spark's own say what the data are
                pass
            finally:
                if output is None or not self._batches:
                    self._shut()
            return output

        return self._in_turn(attempt)

    def _run(self, plan: Plan, on_step: OnStep) -> Compiled:
        """Make the tables of a plan's output, in the views that its batch shares."""
        if self._views is None:
            self._views = session.SparkViews(self.open().session)
        views = self._views
        batch = next((one for one in self._batches if plan.rewrites is REWRITES and plan.root in one), None)
        if batch is not None:
            plan = batch.plan(plan.root)
            views.kept |= batch.read_often(SPARK)
        compiled = plan.program(SPARK)
        run(compiled, views, on_step)
        return compiled

    def _shut(self) -> None:
        """Let go of what plans made of the data."""
        views, self._views = self._views, None
        if views is not None:
            with contextlib.suppress(Exception):  # Spark may be gone, and the views with it
                views.close()

    def _apart(self) -> None:
        if not self._batches:
            self._shut()

    def dry_run(self, root: Node) -> None:
        """Refuse a plan whose program is too much for Spark, by planning it over empty tables.

        It is not run. Spark reads, analyses, optimises and plans a query by functions that call themselves once a step,
        and once a function inside another. Their possible depth is a matter of its Java. The Java code that it makes of
        the plan then is optional: Spark does without it where it fails.

        Raises
        ------
        PlanError
            Saying what to do.
        """
        root = physical_plan(root)
        with self._lock:
            declared = sources([root])
            queries = (_NUMBERS.sub("0", sql) for _, sql in Plan(root).program(SPARK).queries)
            shape = (*declared.values(), *queries)
            if shape in _planned:
                return
            spark, failed = self.open().dry_run, True
            with contextlib.suppress(Exception), session.DryRunViews(spark) as views:
                tables = source_tables(root)
                for name, source in declared.items():
                    if self._dry_run_sources.get(name) != source:
                        session.no_rows(spark, source).createOrReplaceTempView(tables[name])
                        self._dry_run_sources[name] = source
                compiled = Plan(root).program(SPARK)
                run(compiled, views, None)
                spark.sql(_enclosed(compiled.query))._jdf.queryExecution().executedPlan()
                failed = False
            if failed:
                raise PlanError(
                    'the engine "spark" cannot run this plan: its program is too much for this Spark to plan, on no '
                    'data at all: break it up, or use engine="reference"'
                )
            if len(_planned) >= PLANNED_LIMIT:
                _planned.clear()
            _planned.add(shape)

    def _load(self, table: str, source: Source, weights: object) -> None:
        session.frame_of(self.open().session, source, weights).createOrReplaceTempView(table)

    def _drop(self, table: str, weights: object) -> None:
        self._shut()
        with contextlib.suppress(Exception):  # Spark may be gone, and the view with it
            self.open().session.catalog.dropTempView(table)


def _enclosed(query: str) -> str:
    """A query with the margin around it."""
    for _ in range(MARGIN):
        query = f"SELECT * FROM ({query}) WHERE w <> 0"
    return query


def _depth(sql: str) -> int:
    """The depth of nested parentheses in SQL.

    Strings are written as hexadecimals, and so have none.
    """
    return max(accumulate((sign == "(") - (sign == ")") for sign in sql if sign in "()"), default=0)
