"""One unit more, as bad as its type allows, on Spark: no more processor time than the plan's bound says, and an answer.

As in `test_one_unit.py`, for every function and operator; memory is that of the shared local Spark, a gigabyte.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.attacks.test_one_unit import A_STEP, LISTS, OPERATORS, PLAIN, QUERIES, ROWS, VALUES, WORST, allowed
from wpinq.api.query import Query
from wpinq.display.explanation import gap

pytestmark = pytest.mark.long

SECONDS = 20.0
"""Of all cores, for what any plan may take: Spark compiles each anew."""

BUNDLE = 4
"""Functions that give no list are tried so many at a time, as fields of one record: Spark takes long to plan."""


def together(names: tuple[str, ...]) -> Query:
    """The query of one function or operator, or of several functions."""
    return QUERIES[names[0]]() if len(names) == 1 else ROWS.select(lambda r: tuple(VALUES[name](r) for name in names))


def bundles() -> list[tuple[str, ...]]:
    values = tuple(VALUES)
    alone = [(name,) for name in (*LISTS, *OPERATORS)]
    return [*alone, *(values[start : start + BUNDLE] for start in range(0, len(values), BUNDLE))]


def processor_seconds(spark: Any) -> float:
    """What the JVM took so far."""
    pid = spark._jvm.java.lang.ProcessHandle.current().pid()
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_every_function_and_operator_is_tried() -> None:
    assert {name for names in bundles() for name in names} == set(QUERIES)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processor time of another process is read from /proc")
@pytest.mark.parametrize("names", bundles(), ids="-".join)
def test_spark_takes_no_more_time_for_a_bad_unit_than_its_plan_allows(
    spark: Any, database: Any, names: tuple[str, ...]
) -> None:
    """The worst unit beside plain ones: Spark ends, without running out of memory."""
    plan = together(names).plan
    assert not gap(plan, "spark"), "refused before anything is spent, so this case tries nothing"
    began = processor_seconds(spark)
    database.evaluate(plan, {"rows": {**PLAIN, WORST: 1.0}})
    assert processor_seconds(spark) - began <= SECONDS + A_STEP * allowed(plan)
