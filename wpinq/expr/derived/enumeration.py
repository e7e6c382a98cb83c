"""Functions that enumerate: a range, the subsets of a list."""

from __future__ import annotations

from typing import Any

from wpinq.expr.build import call, constant, static_int
from wpinq.expr.declare import derived
from wpinq.expr.definition import LIST_LIMIT, Mistyped, list_type
from wpinq.expr.nodes import Expr, Variable, make_lambda, walk
from wpinq.expr.types import INT

SUBSET_LIMIT = 16
"""The most elements that `subsets` takes at a time: each is one more loop inside the others."""

INNER_LEVEL = 64
"""Where the variables of derived functions start: above those of any lambda that a user can nest."""


def _range(start: Expr, stop: Expr, limit: Expr) -> Expr:
    return call("range_list", start, stop, attributes=(static_int(limit, "the limit of a range"),))


def _subsets(items: Expr, size: Expr) -> Expr:
    """All ways to take `size` elements, in the order of the list, as records."""
    depth = static_int(size, "the size of the subsets", 1)
    if depth > SUBSET_LIMIT:
        raise Mistyped(f"subsets takes at most {SUBSET_LIMIT} elements at a time")
    bound = list_type(items.type).bound
    if bound is not None and bound**depth > LIST_LIMIT:
        bound = None
    count = call("length", items)
    # above every variable of the list: each element of a subset is chosen by a lambda of its own
    base = max([INNER_LEVEL, *(1 + node.level for node in walk(items) if isinstance(node, Variable))])

    def choose(chosen: list[Expr], start: Expr) -> Expr:
        level = base + len(chosen)
        index = Variable(INT, level, f"i{len(chosen)}")
        picked = [*chosen, call("element", items, index)]
        indices = call("range_list", start, count, attributes=(bound,))
        if len(picked) == depth:
            body = call("record", *picked, attributes=(None,) * depth)
            return call("map", indices, make_lambda((index,), body, level))
        rest = choose(picked, call("add", index, constant(1)))
        return call("flatten", call("map", indices, make_lambda((index,), rest, level)))

    return choose([], constant(0))


@derived(_range)
def range(start: object, stop: object, *, limit: int) -> Any:
    """The integers from `start` up to but not including `stop`, at most `limit` of them."""


@derived(_subsets)
def subsets(items: object, size: int) -> Any:
    """Every way to take `size` elements of a list, in its order, as a list of records."""
