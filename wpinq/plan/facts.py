"""What follows from a plan and its sources' declared facts about the datasets at its nodes: static, never measured.

A fact holds for every dataset that the source may hold, so a rewrite that uses it is right for all of them. The
facts are printed on every bill, because they narrow which neighbours the promise covers.
"""

from __future__ import annotations

from collections.abc import Collection

from wpinq.expr.types import ListOf, Weighted
from wpinq.plan.node import Node, topological
from wpinq.plan.operators import (
    Concat,
    GroupBy,
    Intersect,
    Join,
    Partition,
    Select,
    SelectMany,
    Shave,
    Source,
    Union,
    Where,
)


def nonnegative(root: Node, positive: Collection[str] = ()) -> dict[bytes, bool]:
    """For each node, by digest, whether no record can have a negative weight there.

    True of sources that declare it, or unit weights, or are named in `positive`; of what Shave and GroupBy give, for
    they take negative weights as 0; of a Union when it is true of a side and of an Intersect when it is of both:
    max(a, b) >= 0 needs one of them at least 0 for every record, absent ones weighing 0. Except gives anything. A Join
    needs both sides: two negative weights have a positive product, but not with every partner.

    Examples
    --------
    >>> import wpinq as wp
    >>> plan = wp.source("a", int, facts=["nonnegative"]).select(lambda x: x % 2).plan
    >>> nonnegative(plan)[plan.digest]
    True
    """
    known: dict[bytes, bool] = {}
    for node in topological([root]):
        named = isinstance(node.operator, Source) and node.operator.source in positive
        known[node.digest] = named or _holds(node, [known[child.digest] for child in node.inputs])
    return known


def _holds(node: Node, inputs: list[bool]) -> bool:
    operator = node.operator
    if isinstance(operator, Source):
        return bool({"nonnegative", "unit_weights"} & set(operator.facts))
    if isinstance(operator, (Shave, GroupBy)):
        return True
    if isinstance(operator, SelectMany):
        type_ = operator.function.type
        return inputs[0] and not (isinstance(type_, ListOf) and isinstance(type_.element, Weighted))
    if isinstance(operator, Union):
        return any(inputs)
    if isinstance(operator, (Select, Where, Partition, Join, Concat, Intersect)):
        return all(inputs)
    return False
