"""Programs while they run: every table is there when it is read, and none stays that is not."""

from __future__ import annotations

import pytest

import wpinq as wp
from wpinq import functions as F
from wpinq.engines.sql.compile import Plan
from wpinq.engines.sql.engine import run
from wpinq.engines.sql.script import SqlStatement
from wpinq.graphs import symmetrize, triangles_by_degree
from wpinq.plan.node import topological

EDGES = wp.source("edges", src=int, dst=int)
QUERIES = {
    "triangles": triangles_by_degree(symmetrize(EDGES)),
    "groups": symmetrize(EDGES)
    .group_by(lambda e: e.src, lambda g: F.count(g))
    .shave(0.25)
    .concat(EDGES.select(lambda e: F.record(key=e.src, val=e.dst)).shave(0.5)),
}


class Recorded:
    """A database without rows."""

    def __init__(self) -> None:
        self.live = {"source_edges"}

    def stands(self, table: str) -> bool:
        return False

    def create(self, statement: SqlStatement, shared: bool) -> None:
        assert set(statement.reads) <= self.live
        assert statement.creates not in self.live
        self.live.add(statement.creates)

    def drop(self, table: str) -> None:
        self.live.remove(table)


@pytest.mark.parametrize("name", QUERIES)
def test_tables_are_there_when_they_are_read(name: str) -> None:
    plan, steps = QUERIES[name].plan, list[str]()
    tables, compiled = Recorded(), Plan(QUERIES[name].plan).program()
    run(compiled, tables, steps.append)
    assert set(compiled.reads) <= tables.live
    assert tables.live - {"source_edges"} <= set(compiled.reads)
    assert steps == [node.operator.name for node in topological([plan])], "each step once, in order"
