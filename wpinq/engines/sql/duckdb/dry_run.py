"""Dry runs: plans run on no data, on empty tables of a connection of their own.

What fails here is refused by nobody, for it may have failed for want of the memory that data take (see
`Database.admit`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from wpinq.engines.sql.compile import Plan, source_tables
from wpinq.engines.sql.duckdb.connection import Connection, load, unload
from wpinq.engines.sql.duckdb.key_query import query_keys
from wpinq.engines.sql.duckdb.table_cache import TableCache
from wpinq.engines.sql.engine import Batch
from wpinq.engines.sql.program import check_nesting
from wpinq.engines.sql.rewrites import REWRITES
from wpinq.engines.sql.script import Rewrite
from wpinq.expr.values import Value
from wpinq.plan.lowering import physical_plan
from wpinq.plan.node import Node, sources
from wpinq.plan.operators.source import Source

NOTHING: Mapping[Value, float] = MappingProxyType({})
"""The data of every source on which a plan is tried."""


class DryRun:
    """A place for plans to be tried in.

    Parameters
    ----------
    connection : Connection
        Its temporary tables are nobody else's.
    """

    def __init__(self, connection: Connection) -> None:
        self._tables = TableCache(connection)
        self._standing: dict[str, Source] = {}

    def run(self, roots: Sequence[Node], rewrites: tuple[Rewrite, ...]) -> bool:
        """Run the programs of plans as they are run together; any error where they cannot be."""
        roots = [*dict.fromkeys(map(physical_plan, roots))]
        batch = Batch(roots) if len(roots) > 1 and rewrites is REWRITES else None
        try:
            for root in roots:
                plan = Plan(root, rewrites) if batch is None else batch.plan(root)
                check_nesting(plan)
                declared = sources([root])
                for name, table in source_tables(root).items():
                    self._stand(table, declared[name])
                if batch is not None:
                    batch.begin(root)
                query_keys(self._tables, plan, (), _untold, batch)
        finally:
            self._tables.results.clear()
        return True

    def _stand(self, table: str, source: Source) -> None:
        """Have an empty table for a source, in place of one of another declaration."""
        if self._standing.get(table) == source:
            return
        if self._standing.pop(table, None) is not None:
            self._tables.forget(table)
            unload(self._tables.connection, table, NOTHING)
        load(self._tables.connection, table, source, NOTHING)
        self._standing[table] = source


def _untold(step: str) -> None:
    """Nobody is told the steps."""
