"""Programs that are compiled anew while they run: every table is there when it is read, and none stays that is not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import wpinq as wp
from tests.support.relational import without
from wpinq.engines.relational.compiler import compile_plan
from wpinq.engines.relational.programs import Plan, Programs
from wpinq.engines.relational.rewrites import REWRITES
from wpinq.engines.relational.running import run
from wpinq.engines.relational.sql.script import SqlStatement
from wpinq.graphs import symmetrize, triangles_by_degree
from wpinq.plan.node import topological

EDGES = wp.source("edges", src=int, dst=int)
QUERIES = {
    "triangles": triangles_by_degree(symmetrize(EDGES)),
    "groups": symmetrize(EDGES)
    .group_by(lambda e: e.src, lambda g: wp.count(g))
    .shave(0.25)
    .concat(EDGES.select(lambda e: wp.record(key=e.src, val=e.dst)).shave(0.5)),
}


class Recorded:
    """A database without rows, which says of every table what it is told to."""

    def __init__(self, equal: Callable[[str], bool]) -> None:
        self.equal = equal
        self.live = {"source_edges"}
        self.asked: list[str] = []
        self.found: dict[str, tuple[float | None, float | None]] = {}

    def stands(self, table: str) -> bool:
        return False

    def create(self, statement: SqlStatement, shared: bool) -> None:
        assert set(statement.reads) <= self.live
        assert statement.creates not in self.live
        self.live.add(statement.creates)

    def drop(self, table: str) -> None:
        self.live.remove(table)

    def weights(self, table: str) -> tuple[float | None, float | None]:
        assert table in self.live
        self.asked.append(table)
        self.found[table] = (1.0, 1.0) if self.equal(table) else (0.5, 1.0)
        return self.found[table]


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("equal", [lambda t: True, lambda t: False, lambda t: t != "source_edges"])
def test_tables_are_there_when_they_are_read(name: str, equal: Callable[[str], bool]) -> None:
    plan, steps = QUERIES[name].plan, list[str]()
    tables = Recorded(equal)
    compiled = run(Plan(plan), tables, steps.append, Programs())
    assert set(compiled.reads) <= tables.live
    assert tables.live - {"source_edges"} <= set(compiled.reads)
    assert steps == [node.operator.name for node in topological([plan])], "each step once, in order"
    assert len(tables.asked) == len(set(tables.asked)), "a table is asked once"


def test_what_is_known_changes_nothing_before_it() -> None:
    plan = QUERIES["triangles"].plan
    before = compile_plan(plan, REWRITES)
    equal: frozenset[tuple[str, float]] = frozenset()
    for made in (0, 1):
        table = before.statements[made - 1].creates if made else "source_edges"
        assert table in before.open
        equal |= {(table, 1.0)}
        after = compile_plan(plan, REWRITES, equal)
        assert after.statements[:made] == before.statements[:made]
        assert after != before
        before = after
    assert not before.open


def test_without_the_rewrite_no_table_is_asked() -> None:
    tables = Recorded(lambda table: True)
    run(Plan(QUERIES["triangles"].plan, without("equal_weights")), tables, None, Programs())
    assert tables.asked == []


def test_an_empty_table_says_nothing() -> None:
    class Empty(Recorded):
        def weights(self, table: str) -> tuple[float | None, float | None]:
            self.found[table] = None, None
            return self.found[table]

    tables = Empty(lambda table: True)
    compiled = run(Plan(QUERIES["groups"].plan), tables, None, Programs())
    assert compiled == compile_plan(QUERIES["groups"].plan, REWRITES)
