"""What comes to the driver, of all that pyspark reads, from the first look at the data to the last key."""

from __future__ import annotations

from typing import Any

import pytest

import wpinq as wp
from wpinq.graphs.recipes import degree_ccdf, symmetrize, triangles_by_intersect
from wpinq.kernel.release import Release

pytestmark = pytest.mark.long

EDGES = wp.source("edges", src=int, dst=int, facts=["unit_weights"])
FIRST, NODES = 10**12, 300
"""Names of nodes that nothing else has for a number."""


class Driver:
    """The rows that came, and how often anything did."""

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self.collected = self.opened = 0

    def arrived(self) -> list[tuple[Any, ...]]:
        """The rows since it was last asked."""
        rows, self.rows = self.rows, []
        return rows


@pytest.fixture
def driver(spark: Any, monkeypatch: pytest.MonkeyPatch) -> Driver:
    """Whatever comes from Java comes through a socket; here all of it must come by collecting a frame."""
    frames = pytest.importorskip("pyspark.sql.classic.dataframe").DataFrame
    sockets = pytest.importorskip("pyspark.util")
    seen, collect, connect = Driver(), frames.collect, sockets._create_local_socket

    def collecting(frame: Any) -> Any:
        rows = collect(frame)
        seen.rows += map(tuple, rows)
        seen.collected += 1
        return rows

    def connecting(*given: Any) -> Any:
        seen.opened += 1
        return connect(*given)

    monkeypatch.setattr(frames, "collect", collecting)
    monkeypatch.setattr(sockets, "_create_local_socket", connecting)
    return seen


def test_only_aggregates_and_asked_keys_come(spark: Any, driver: Driver) -> None:
    ends = f"{FIRST} + id AS src, {FIRST} + (id + step) % {NODES} AS dst"
    data = spark.sql(f"SELECT {ends} FROM range({NODES}) CROSS JOIN (SELECT explode(array(1, 2, 5)) AS step)")
    symmetric = symmetrize(EDGES)
    with wp.Session(engine="spark") as session:
        session.protect(EDGES, data, budget=1000)
        (checks,) = driver.arrived()
        assert checks == (3 * NODES, None), "the norm, and the first check that fails"

        session.release(degree_ccdf(symmetric).noisy_count(epsilon=1, over=range(4)))
        rows = driver.arrived()
        assert sorted(row[0] for row in rows if isinstance(row[0], int)) == [0, 1, 2, 3]
        assert len(rows) <= 4 + 3, "the keys, and ranges of weights"

        session.release(triangles_by_intersect(symmetric).noisy_count(epsilon=1, over=["triangle!"]))
        rows = driver.arrived()
        assert [row[0] for row in rows if isinstance(row[0], str)] == ["triangle!"]
        assert len(rows) <= 1 + 3

        release = session.release(EDGES.select(lambda e: e.src).noisy_count(epsilon=1))
        assert isinstance(release, Release)
        before = driver.arrived()
        assert len(before) <= 1
        assert round(release[FIRST + 7]) in range(-30, 36)
        assert (FIRST + 7, 3.0) in driver.arrived()
    assert driver.opened == driver.collected
