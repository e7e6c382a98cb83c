"""How deep functions of lists may nest: DuckDB takes twice as long to plan one for each function around it."""

from __future__ import annotations

import re
from functools import lru_cache

from wpinq.engines.relational.compiler import PLANS_LIMIT
from wpinq.engines.relational.programs import Plan
from wpinq.errors import PlanError

NESTING_LIMIT = 8
"""Planned in a quarter of a second; 14 take half a minute, and 16 may end the process."""

_MARKS = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\blambda\b|[()]")


def nesting(sql: str) -> int:
    """How many functions of lists stand inside one another.

    Examples
    --------
    >>> nesting("list_transform(a, lambda x: list_transform(b, lambda y: 'lambda'))")
    2
    """
    depth, most = 0, 0
    inside: list[int] = []
    for mark in _MARKS.findall(sql):
        if mark == "(":
            depth += 1
        elif mark == ")":
            depth -= 1
            while inside and inside[-1] > depth:
                inside.pop()
        elif mark == "lambda":
            inside.append(depth)
            most = max(most, len(inside))
    return most


@lru_cache(maxsize=PLANS_LIMIT)
def check_nesting(plan: Plan) -> None:
    """Refuse a plan whose program DuckDB would not plan in reasonable time."""
    for step, sql in plan.program().queries:
        if nesting(sql) > NESTING_LIMIT:
            raise PlanError(
                f"{step}: functions of lists stand more than {NESTING_LIMIT} deep inside one another, as those of "
                f"subsets of more than {NESTING_LIMIT} elements do, and planning them takes too long"
            )
