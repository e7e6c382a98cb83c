"""The relational engine in tests: selections of its rewrites, and evaluations in a DuckDB of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wpinq.engines.sql.duckdb.database import Database
from wpinq.engines.sql.rewrites import REWRITES
from wpinq.engines.sql.script import Rewrite
from wpinq.plan.node import Node

SWITCHES = [rewrite.name for rewrite in REWRITES]


def only(*names: str) -> tuple[Rewrite, ...]:
    """These rewrites and no others."""
    assert set(names) <= set(SWITCHES)
    return tuple(rewrite for rewrite in REWRITES if rewrite.name in names)


def without(*names: str) -> tuple[Rewrite, ...]:
    """All rewrites but these."""
    return only(*(name for name in SWITCHES if name not in names))


def evaluate(
    root: Node,
    data: Mapping[str, Any],
    *more: Any,
    rewrites: tuple[Rewrite, ...] = REWRITES,
    on_step: Any = None,
    **options: Any,
) -> dict[Any, Any]:
    """The output of a plan, in a database of its own."""
    with Database(**options) as database:
        return database.evaluate(root, data, *more, on_step=on_step, rewrites=rewrites)
