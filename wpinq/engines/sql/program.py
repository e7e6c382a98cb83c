"""The programs of plans: functions of the plan, and of what it shares with those evaluated together with it."""

from __future__ import annotations

from dataclasses import dataclass

from wpinq.engines.relational.compiler import Compiled, compile_plan
from wpinq.engines.relational.rewrites import REWRITES
from wpinq.engines.relational.sql.dialect import DUCKDB, Dialect
from wpinq.engines.relational.sql.script import Rewrite
from wpinq.plan.node import Node


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan, the rewrites to make, its steps that others share, by digest, and whether it is asked for keys."""

    root: Node
    rewrites: tuple[Rewrite, ...] = REWRITES
    shared: frozenset[bytes] = frozenset()
    asked: bool = False

    def program(self, dialect: Dialect = DUCKDB) -> Compiled:
        """Its program, for a database."""
        return compile_plan(self.root, self.rewrites, dialect, self.shared, self.asked)
