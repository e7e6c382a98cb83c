"""One Spark in local mode for all tests that need one, started by the first: fixtures for `tests/conftest.py`."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.io.encryption.enabled": "true",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.buffer.pageSize": "256k",
    "spark.rdd.compress": "false",
    "spark.shuffle.compress": "false",
    # for plans of a few rows: to compile them to Java takes longer than to run them
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # nor does Java run anything often enough to win back what its second compiler, and collecting in parallel, take
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed: pip install wpinq[spark]")
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java") is None and not (home and (Path(home) / "bin" / "java").exists()):
        pytest.skip("Spark needs Java 17 or later, and none is found")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = sql.SparkSession.builder.master("local[2]").appName("wpinq tests")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    builder = builder.config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # pyspark on pandas 3, which the engine does not use
        warnings.simplefilter("ignore", ResourceWarning)  # pyspark's own sockets
        session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def database(spark: Any) -> Iterator[Any]:
    from wpinq.engines.sql.spark.cluster import SparkDatabase

    with SparkDatabase() as opened:
        yield opened
