"""A DuckDB that takes the steps of a plan one by one, as the plan has them: bounds on rows of steps hold for its rows.

The rewrites choose another order of joins, and leave out or put together what they can: mostly fewer rows, which no
declaration bounds. Without them each step's output is a table of its own. The weights are the same to the last bit.
"""

from __future__ import annotations

from functools import lru_cache

from wpinq.engines.relational.duckdb.database import Database, check_with
from wpinq.plan.node import Node


class StepwiseDatabase(Database):
    """A DuckDB on one thread that makes no rewrites."""

    rewrites = ()

    def __init__(self, memory_limit: str | None = None, threads: int | None = 1) -> None:
        super().__init__(memory_limit, threads)

    @staticmethod
    @lru_cache(maxsize=1024)
    def check(root: Node) -> None:
        """Refuse a plan whose steps DuckDB cannot run one by one, from the plan alone."""
        check_with(root, ())
