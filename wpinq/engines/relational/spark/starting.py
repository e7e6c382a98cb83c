"""Finding Spark: a session beside the active one, set up so that programs mean what they must and nothing is logged."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from wpinq.engines.relational import functions
from wpinq.errors import PlanError

MISSING = 'the engine "spark" needs pyspark and Java 17 or later: install wpinq[spark], and a JDK (JAVA_HOME)'

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
    """A Spark session of the engine's own: its views and settings are nobody else's."""

    session: Any


def start() -> Started:
    """A session beside the active one, or beside one that is started now."""
    problem = None
    try:
        from pyspark.sql import SparkSession

        active = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
        _silence(active)
        session = active.newSession()
        for name, value in _SETTINGS.items():
            session.conf.set(name, value)
        _register(session)
    except Exception:  # no pyspark, no Java, no cluster: the reason may quote settings and addresses
        problem = MISSING
    if problem is not None:
        raise PlanError(problem)
    return Started(session)


def _silence(active: Any) -> None:
    """Turn off what Spark and pyspark log: their errors quote rows."""
    from pyspark.logger import PySparkLogger

    active.sparkContext.setLogLevel("OFF")
    logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def _register(session: Any) -> None:
    """The two functions that SQL cannot say. They travel whole, so that workers need not have wpinq."""
    from pyspark import cloudpickle
    from pyspark.sql.types import ArrayType, DoubleType

    cloudpickle.register_pickle_by_value(functions)
    session.udf.register("wpinq_sum", functions.list_sum, DoubleType())
    session.udf.register("wpinq_share", functions.share, ArrayType(DoubleType()))
