"""A DuckDB that takes the steps of a plan one by one, as the plan has them: bounds on rows of steps hold for its rows.

The rewrites choose another order of joins, and leave out or put together what they can: mostly fewer rows, which no
declaration bounds. Without them each step's output is a table of its own. The weights are the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from wpinq.engines.contract import WantedRanges
from wpinq.engines.relational.duckdb.database import Database, check_with
from wpinq.engines.relational.sql.script import Rewrite
from wpinq.expr.values import Value
from wpinq.plan.arithmetic import FLOAT, Arithmetic, Weights
from wpinq.plan.node import Node


class StepwiseDatabase(Database):
    """A DuckDB on one thread that makes no rewrites."""

    def __init__(self, memory_limit: str | None = None, threads: int | None = 1) -> None:
        super().__init__(memory_limit, threads)

    @staticmethod
    @lru_cache(maxsize=1024)
    def check(root: Node) -> None:
        """Refuse a plan whose steps DuckDB cannot run one by one, from the plan alone."""
        check_with(root, ())

    def evaluate(
        self,
        root: Node,
        data: Mapping[str, Any],
        arithmetic: Arithmetic = FLOAT,
        on_step: Callable[[str], None] | None = None,
        keys: Sequence[Value] | None = None,
        within: WantedRanges = (),
        *,
        rewrites: tuple[Rewrite, ...] = (),
    ) -> Weights:
        """As `Database.evaluate`."""
        return super().evaluate(root, data, arithmetic, on_step, keys, within, rewrites=rewrites)
