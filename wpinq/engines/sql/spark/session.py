"""The Spark session beside the active one, with settings that keep programs exact and quiet."""

from __future__ import annotations

import contextlib
import logging
from dataclasses import dataclass
from typing import Any

from wpinq.engines.sql import exact_sums
from wpinq.errors import PlanError
from wpinq.runtime.optional_imports import install

MISSING = f'the engine "spark" needs pyspark and Java 17 or later: {install("spark")}, and a JDK (JAVA_HOME)'
STOPPED = "Spark was stopped, and the data that it held are gone: protect them in another session of wpinq"
SHOWN = (
    "Spark shows the progress of its work in the console, numbers of tasks of protected work, and cannot be told to "
    "stop: start it with spark.ui.showConsoleProgress=false"
)

_PROGRESS = "spark.ui.showConsoleProgress"

_OWN = {
    _PROGRESS: "false",
    "spark.ui.enabled": "false",
    "spark.eventLog.enabled": "false",
    # rows that Spark writes to local disks, where others may read, and its Python to a file on the way to Java
    "spark.io.encryption.enabled": "true",
}
"""Of a Spark that is started here: nothing that shows or writes how many rows and tasks there are, no rows in clear."""

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
    """Two Spark sessions of the engine's own, one of them for no data: their views and settings are nobody else's."""

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
        with contextlib.suppress(Exception):  # of a Java that is gone
            stopped = self.session._jsparkSession.sparkContext().isStopped()
            if not stopped:
                _silence(self.session.sparkContext)
        if stopped:
            raise PlanError(STOPPED)


def start() -> Started:
    """Sessions beside the active one, or beside one that is started now.

    Raises
    ------
    PlanError
        When pyspark or Java is missing, or Spark shows progress and cannot be told not to.
    """
    sessions, problem = [], MISSING
    try:
        active = _active()
        _silence(active.sparkContext)
        problem = "" if _progress_is_off(active.sparkContext) else SHOWN
        sessions = [_beside(active), _beside(active)]
    except Exception:  # no pyspark, no Java, no cluster: the reason may quote settings and addresses
        problem = problem or MISSING
    if problem:
        raise PlanError(problem)
    return Started(*sessions)


def _beside(active: Any) -> Any:
    session = active.newSession()
    for name, value in _SETTINGS.items():
        session.conf.set(name, value)
    _register(session)
    return session


def _active() -> Any:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

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
    """Stop the progress bar in the console, which Spark has on wherever Python started it; and whether that worked.

    The setting is read when Spark starts, and the bar is no part of its public interface.
    """
    try:
        bar = context._jsc.sc().progressBar()
        if bar.isDefined():
            bar.get().stop()
    except Exception:
        return str(context.getConf().get(_PROGRESS, "")).lower() == "false"
    return True


def _register(session: Any) -> None:
    """The two functions that SQL cannot say. They travel whole, so that workers need not have wpinq."""
    from pyspark import cloudpickle
    from pyspark.sql.types import ArrayType, DoubleType

    cloudpickle.register_pickle_by_value(exact_sums)
    session.udf.register("wpinq_sum", exact_sums.list_sum, DoubleType())
    session.udf.register("wpinq_share", exact_sums.share, ArrayType(DoubleType()))
