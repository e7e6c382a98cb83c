"""The Spark session beside the active one, with settings that keep programs exact and quiet."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np

from wpinq.columns.dataset import EngineDataset, let_go, stored
from wpinq.columns.records import column_names, column_types, leaf_columns, leaf_types, plain, read_rows
from wpinq.columns.storage import StoredColumns
from wpinq.engines.contract import RankWeights, WantedRanges, at_keys
from wpinq.engines.sql import sums
from wpinq.engines.sql.compile import Compiled
from wpinq.engines.sql.emit import in_ranges
from wpinq.engines.sql.script import SqlStatement
from wpinq.engines.sql.spark.dialect import type_in_spark
from wpinq.errors import PlanError, install
from wpinq.expr.types import ListOf, Scalar, TupleOf, Type
from wpinq.expr.values import Value, order_key
from wpinq.plan.arithmetic import Weights
from wpinq.plan.operators.source import Source

MISSING = f'the engine "spark" needs pyspark and Java 17 or later: {install("spark")}, and a JDK (JAVA_HOME)'
STOPPED = "Spark was stopped, and its data are gone: protect them again in a new session of wpinq"
SHOWN = (
    "Spark shows the progress of its work in the console, numbers of tasks of protected work, and cannot be told to "
    "stop: start it with spark.ui.showConsoleProgress=false"
)

CONNECT = (
    "Spark Connect has no Java in this process, and the engine needs it: use a classic session, as spark-submit and "
    "SparkSession.builder make it without remote(), SPARK_REMOTE and SPARK_API_MODE"
)

_PROGRESS = "spark.ui.showConsoleProgress"

#: What may show data outside of the guarantee, by the word that accepts it: a setting, Spark's default, the safe value.
EXPOSURES = {
    "ui": ("spark.ui.enabled", "true", "false"),
    "event_log": ("spark.eventLog.enabled", "false", "false"),
    # rows that Spark writes to local disks, where others may read, and its Python to a file on the way to Java
    "shuffle": ("spark.io.encryption.enabled", "false", "true"),
    "network": ("spark.network.crypto.enabled", "false", "true"),
    # no setting of Spark's: 4.3 starts executors that ignore the level of the driver (syncLogLevel)
    "executor_log": ("a log4j2 file of the executors with rootLogger.level", "", "off"),
}

#: Of these, the ones that concern several processes.
_BETWEEN = ("network", "executor_log")

#: Of a Spark that is started here.
_OWN = {_PROGRESS: "false", "spark.api.mode": "classic", "spark.sql.codegen.cache.maxEntries": "1000"} | {
    name: safe for word, (name, _, safe) in EXPOSURES.items() if word not in _BETWEEN
}

_SETTINGS = {
    "spark.sql.ansi.enabled": "true",  # no overflow is silent
    "spark.sql.caseSensitive": "true",
    # Spark 4.3 fails on a union of tables whose rows it keeps ("key not found", in rewriting constraints)
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.legacy.parser.havingWithoutGroupByAsWhere": "false",
    "spark.sql.legacy.sizeOfNull": "false",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.pythonUDF.arrow.enabled": "false",
}


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Started:
    """Two Spark sessions of the engine's own, with their own views and settings.

    One of them is for no data.
    """

    session: Any
    dry_run: Any

    def check(self) -> None:
        """Refuse a Spark that was stopped, and silence again what was made to speak since.

        Raises
        ------
        PlanError
            When it was stopped.
        """
        stopped = True
        with suppress(Exception):  # of a Java that is gone
            stopped = self.session._jsparkSession.sparkContext().isStopped()
            if not stopped:
                _silence(self.session.sparkContext)
        if stopped:
            raise PlanError(STOPPED)


def start(accepted: Collection[str] = tuple(EXPOSURES)) -> Started:
    """Sessions beside the active one, or beside one that is started now.

    Raises
    ------
    PlanError
        When pyspark or Java is missing, Spark is elsewhere, or it shows what is not accepted.
    """
    problem = MISSING
    with suppress(Exception):  # no pyspark, no Java, no cluster: the reason may quote settings and addresses
        active = _active()
        problem = CONNECT if active is None else _shown(active.sparkContext, accepted) or MISSING
        if problem is MISSING:
            return Started(_beside(active), _beside(active))
    raise PlanError(problem)


def _shown(context: Any, accepted: Collection[str]) -> str:
    """The refusal of a Spark that shows what is not accepted; else an empty text."""
    _silence(context)
    if not _progress_is_off(context):
        return SHOWN
    conf, shown = context.getConf(), dict[str, str]()
    inside = conf.get("spark.master").partition("[")[0] == "local"  # one process
    for word, (name, default, safe) in EXPOSURES.items():
        if word not in accepted and not (inside and word in _BETWEEN) and conf.get(name, default).lower() != safe:
            shown[word] = f"{name}={safe}"
    if not shown:
        return ""
    settings = ", ".join(shown.values())
    return (
        f"Spark may show protected data: start it with {settings}, or restrict that and say Session(accept={[*shown]})"
    )


def _beside(active: Any) -> Any:
    session = active.newSession()
    for name, value in _SETTINGS.items():
        session.conf.set(name, value)
    context = session.sparkContext
    if _leaves_open(context, "spark.sql.shuffle.partitions"):
        session.conf.set("spark.sql.shuffle.partitions", 2 * context.defaultParallelism)
    _register(session)
    return session


def adapt(spark: Any, joins: bool) -> None:
    """Have a local Spark plan joins anew as it sees sizes; others would take a job a shuffle."""
    if _leaves_open(spark.sparkContext, "spark.sql.adaptive.enabled"):
        spark.conf.set("spark.sql.adaptive.enabled", joins)


def _leaves_open(context: Any, name: str) -> bool:
    """Whether Spark is one process, and started without a setting."""
    return context._jsc.isLocal() and not context.getConf().contains(name)


def _active() -> Any:
    """The active session, or one that is started now; None for Spark Connect."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession
    from pyspark.sql.utils import is_remote

    if is_remote() or "SPARK_REMOTE" in os.environ:
        return None

    builder = SparkSession.builder
    if SparkContext._active_spark_context is None:
        for name, value in _OWN.items():
            builder = builder.config(name, value)
    return SparkSession.getActiveSession() or builder.getOrCreate()


def _silence(context: Any) -> None:
    """Turn off what Spark and pyspark log: their errors quote rows."""
    from pyspark.logger import PySparkLogger

    context.setLogLevel("OFF")
    log4j = context._jvm.org.apache.logging.log4j
    log4j.core.config.Configurator.setAllLevels("", log4j.Level.OFF)  # loggers with a level of their own, too
    for name in [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == "py4j"]:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def _progress_is_off(context: Any) -> bool:
    """Stop the progress bar in the console, and return whether that worked.

    Spark has it on wherever Python started it. The setting is read when Spark starts, and the bar is no part of its
    public interface.
    """
    try:
        bar = context._jsc.sc().progressBar()
        if bar.isDefined():
            bar.get().stop()
    except Exception:
        return str(context.getConf().get(_PROGRESS, "")).lower() == "false"
    return True


def _register(session: Any) -> None:
    """Register the two functions that SQL cannot express.

    They travel whole, so that workers need not have wpinq.
    """
    from pyspark import cloudpickle
    from pyspark.sql.types import ArrayType, DoubleType

    cloudpickle.register_pickle_by_value(sums)
    session.udf.register("wpinq_sum", sums.list_sum, DoubleType())
    session.udf.register("wpinq_share", sums.share, ArrayType(DoubleType()))


# Data into Spark, the tables of statements there, and results from it.


def frame_of(spark: Any, source: Source, weights: object) -> Any:
    """A source's dataset as a frame: `c0`, `c1`, …, `w`, without records of weight 0."""
    if isinstance(weights, EngineDataset):
        return _adopted(spark, weights.frame)
    if isinstance(weights, StoredColumns):
        sums.check_norm(source, weights.norm)
        return _made(spark, weights.arrow().cast(_schema(source.record)))  # no row becomes a Python object
    assert isinstance(weights, Mapping)
    numbers = np.fromiter(map(float, weights.values()), dtype=np.float64, count=len(weights))
    sums.check_weights(source, numbers)
    there = numbers != 0
    records = [record for record, held in zip(weights, there.tolist(), strict=True) if held]
    return _frame(spark, source.record, records, numbers[there].tolist())


def no_rows(spark: Any, source: Source) -> Any:
    """A frame like that of a source's dataset, without rows.

    Spark cannot tell beforehand that it has none.
    """
    kinds = [*zip(column_names(source.record), map(type_in_spark, column_types(source.record)), strict=True)]
    columns = ", ".join(f"CAST(NULL AS {kind}) AS {name}" for name, kind in [*kinds, ("w", "DOUBLE")])
    return _adopted(spark, spark.sql(f"SELECT {columns} FROM range(0, 1, 1, 1) WHERE id < 0"))


def _adopted(spark: Any, frame: Any) -> Any:
    """A frame of another session as one of this: none of its rows becomes an object of Java's."""
    rows = frame._jdf.queryExecution().toRdd()
    return type(frame)(spark._jsparkSession.internalCreateDataFrame(rows, frame._jdf.schema(), False), spark)


def _frame(spark: Any, type_: Type, records: Sequence[Value], weights: Sequence[float]) -> Any:
    import pyarrow as pa

    schema, columns = _schema(type_), leaf_columns(type_, records)
    arrays = [pa.array(column, kind) for column, kind in zip([*columns, weights], schema.types, strict=True)]
    return _made(spark, pa.table(arrays, schema=schema))


def _made(spark: Any, table: Any) -> Any:
    """A frame of an Arrow table, made without changing the user's active session.

    Else the engine's session, and its views, would become the active one.
    """
    class_ = type(spark)
    java, active = class_._get_j_spark_session_class(spark._jvm), class_.getActiveSession()
    try:
        return spark.createDataFrame(table)
    finally:
        if active is None:
            java.clearActiveSession()
        else:
            java.setActiveSession(active._jsparkSession)
        class_._activeSession = active


def _schema(type_: Type) -> Any:
    """The columns of a dataset's frame, in Arrow."""
    import pyarrow as pa

    kinds = [pa.bool_() if leaf is None else _arrow_type(leaf) for leaf, _ in leaf_types(type_)]
    return pa.schema([*zip(column_names(type_), kinds, strict=True), ("w", pa.float64())])


def _arrow_type(type_: Type) -> Any:
    import pyarrow as pa

    type_ = plain(type_)
    if isinstance(type_, ListOf):
        return pa.list_(_arrow_type(type_.element))
    if isinstance(type_, TupleOf):
        fields = [pa.field(f"f{i}", _arrow_type(element)) for i, element in enumerate(type_.elements)]
        return pa.struct(fields or [pa.field("f", pa.bool_())])
    assert isinstance(type_, Scalar)
    kinds = {"int": pa.int64, "float": pa.float64, "bool": pa.bool_, "str": pa.string, "null": pa.int32}
    return kinds[type_.name]()


# --- tables of statements ---------------------------------------------------------------------------------------------


class SparkViews(ExitStack):
    """What `running.run` asks of Spark, for one plan or for several together.

    A table is a view; its rows are kept if they are read more than once.

    At its end it lets go of all of them.
    """

    def __init__(self, spark: Any) -> None:
        super().__init__()
        self._spark = spark
        self._made: set[str] = set()
        #: Tables that several plans read.
        self.kept: frozenset[str] = frozenset()

    def stands(self, table: str) -> bool:
        """Whether a plan that is evaluated together with this one made it."""
        return table in self._made

    def create(self, statement: SqlStatement, shared: bool) -> None:
        """Name the query of a statement, whose rows are made on first use."""
        frame = self._spark.sql(statement.query)
        self._made.add(statement.creates)
        if shared or statement.creates in self.kept:
            frame = stored(frame, eager=False)
            self.callback(let_go, frame)
        frame.createOrReplaceTempView(statement.creates)
        self.callback(self._spark.catalog.dropTempView, statement.creates)

    def drop(self, table: str) -> None:
        """Nothing yet: rows that are made late may come from it."""


class DryRunViews(SparkViews):
    """The views of a plan over tables without rows, of which no query is run."""


# --- from Spark to the driver -----------------------------------------------------------------------------------------

_KEYS = "wpinq_keys"


def fetch_all(spark: Any, compiled: Compiled, within: WantedRanges = ()) -> Weights:
    """The whole output, or what of it is wanted: record to weight, in canonical order."""
    return _read(spark, compiled.type, in_ranges(compiled.query, compiled.type, within))


def fetch_keys(spark: Any, compiled: Compiled, keys: Sequence[Value]) -> Weights:
    """The weights of some records: no other record leaves the cluster."""
    _frame(spark, compiled.type, keys, [1.0] * len(keys)).createOrReplaceTempView(_KEYS)
    names = column_names(compiled.type)
    on = " AND ".join(f"q.{name} <=> k.{name}" for name in names) or "TRUE"
    try:
        semi_join = f"SELECT q.* FROM ({compiled.query}) AS q LEFT SEMI JOIN {_KEYS} AS k ON {on}"
        return at_keys(_read(spark, compiled.type, semi_join), keys)
    finally:
        spark.catalog.dropTempView(_KEYS)


def _read(spark: Any, type_: Type, query: str) -> Weights:
    output = read_rows(type_, spark.sql(query).collect())
    return {record: output[record] for record in sorted(output, key=order_key)}


def fetch_rank_weights(spark: Any, compiled: Compiled, candidates: Sequence[Value]) -> RankWeights:
    """The weight of the records before, at and after each candidate, without rounding.

    Null records and weights below 0 do not count. Spark adds up the weights at each candidate and between neighbours,
    and no record leaves the cluster. Sums are exact. A weight is an integer of at most 55 bits, scaled by a power of
    two that its size tells. Integers are added by power.
    """
    found = {order_key(candidate): candidate for candidate in candidates if candidate is not None}
    places = [found[key] for key in sorted(found)]
    sums = [Fraction(0)] * (2 * len(places) + 1)  # before the first, at the first, between it and the second, ...
    for slot, power, total in spark.sql(_sums(compiled, places)).collect():
        sums[slot] += int(total) * Fraction(2) ** power
    before = [Fraction(0), *accumulate(sums)]
    slots = {order_key(place): 2 * number + 1 for number, place in enumerate(places)}
    at = [slots.get(order_key(candidate), -1) for candidate in candidates]  # null comes before all
    ends = [(before[max(slot, 0)], before[slot + 1]) for slot in at]
    return [(low, upto - low, before[-1] - upto) for low, upto in ends]


def _sums(compiled: Compiled, places: Sequence[Value]) -> str:
    """The query of the sums by slot and by power of two.

    Spark orders structs and lists as the canonical order does.
    """
    kinds = [type_in_spark(generic) for generic in column_types(compiled.type)]
    struct = ", ".join(f"k{i}: {kind}" for i, kind in enumerate(kinds))
    key = ", ".join(f"'k{i}', c{i}" for i, _ in enumerate(kinds))
    columns = zip(*leaf_columns(compiled.type, places), strict=True)
    rows = [{f"k{i}": value for i, value in enumerate(row)} for row in columns] or [{}] * len(places)
    text = json.dumps(rows, allow_nan=False)
    table = f"from_json(CAST(X'{text.encode().hex()}' AS STRING), 'ARRAY<STRUCT<{struct}>>')"  # read once: a constant
    steps = ", ".join(str(2**bit) for bit in reversed(range(len(places).bit_length() or 1)))
    there = "c0" if isinstance(plain(compiled.type), TupleOf) else "c0 IS NOT NULL"
    present = there if compiled.type.nullable else "TRUE"
    keyed = f"SELECT w, named_struct({key}) AS k FROM ({compiled.query}) WHERE w > 0 AND {present}"
    placed = (
        f"SELECT w, k, 53 - CAST(floor(log2(w)) AS INT) AS up, aggregate(array({steps}), 0, "
        f"(p, s) -> CASE WHEN get({table}, p + s - 1) < k THEN p + s ELSE p END) AS place FROM ({keyed})"
    )
    scaled = "w * pow(2D, up div 2) * pow(2D, up - up div 2)"  # in two steps, for 2^up may be no float
    slotted = (
        f"SELECT 2 * place + CAST(get({table}, place) <=> k AS INT) AS slot, -up AS power, "
        f"CAST(CAST({scaled} AS BIGINT) AS DECIMAL(20, 0)) AS m FROM ({placed})"
    )
    return f"SELECT slot, power, sum(m) FROM ({slotted}) GROUP BY slot, power"
