"""Plans over physical types: what engines run where a plan speaks of dates, decimals and their like."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import lru_cache
from typing import Any

from wpinq.expr.nodes import Call, Constant, Lambda
from wpinq.expr.types import Type, physical
from wpinq.plan.node import Node, upward
from wpinq.plan.operators.source import Source


@lru_cache(maxsize=1024)
def physical_plan(root: Node) -> Node:
    """The plan that gives the same records as ints and strings; the plan itself where they are nothing else.

    The sources keep their names: what stands for a
    record stands for it in the data too.

    Examples
    --------
    >>> import datetime
    >>> import wpinq as wp
    >>> from wpinq import functions as F
    >>> visits = wp.source("visits", day=datetime.date)
    >>> print(physical_plan(visits.select(lambda v: F.truncate(v.day, "month")).plan).type)
    int
    """
    return upward(root, _erased)[root.digest]


def _erased(node: Node, inputs: list[Node]) -> Node:
    operator = node.operator
    changed: dict[str, Any] = {}
    for item in fields(operator):  # type: ignore[arg-type]  # every operator is a dataclass
        value = getattr(operator, item.name)
        plain = _plain(value)
        if plain is not value:
            changed[item.name] = plain
    if isinstance(operator, Source) and changed:
        changed["schema"] = repr(changed["record"])
    if not changed and all(one is other for one, other in zip(inputs, node.inputs, strict=True)):
        return node
    return Node(replace(operator, **changed), tuple(inputs))  # type: ignore[type-var]


def _plain(value: Any) -> Any:
    if isinstance(value, Lambda):
        return _plain_function(value)
    if isinstance(value, Constant):
        return value.core
    return physical(value) if isinstance(value, Type) else value


def _plain_function(function: Lambda) -> Lambda:
    """The function from what stands for records to what stands for what it gives: known by its core only."""
    core = function.core
    same = all(one is other for one, other in zip(core.parameters, function.parameters, strict=True))
    if same and physical(function.type) is function.type:
        return function
    body = Call(core.type, "core", core.parameters, (function.digest.hex(),), core.body)
    return Lambda(core.type, core.level, core.parameters, body)
