"""What each operator rounds on Spark, on data made for it: never more than its constant."""

from __future__ import annotations

import pytest

from tests.support.roundings import ATTACKS, worst
from wpinq.engines.sql.spark.cluster import SparkDatabase

pytestmark = pytest.mark.long


@pytest.mark.parametrize("name", ATTACKS)
def test_no_data_make_spark_round_more_than_the_constant(name: str, database: SparkDatabase) -> None:
    found = worst(name, database.evaluate, 1)
    assert 0.5 * ATTACKS[name].reached["duckdb"] <= found <= ATTACKS[name].query.plan.operator.rounding_units()
