"""Functions that enumerate: a range, the subsets of a list, its first elements."""

from __future__ import annotations

from typing import Any

from wpinq.expr.build import call, constant, static_int
from wpinq.expr.declare import derived
from wpinq.expr.definition import LIST_LIMIT, Mistyped, list_type
from wpinq.expr.list_prefix import EMPTY_LAST, INNER_LEVEL, of_one
from wpinq.expr.nodes import Expr, Variable, make_lambda
from wpinq.expr.types import INT

SUBSET_LIMIT = 16
"""The most elements that `subsets` takes at a time: each is one more loop inside the others."""


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

    def choose(items: Expr, chosen: list[Expr], start: Expr, level: int) -> Expr:
        index = Variable(INT, level, f"i{len(chosen)}")
        picked = [*chosen, call("element", items, index)]
        indices = call("range_list", start, call("length", items), attributes=(bound,))
        if len(picked) == depth:
            body = call("record", *picked, attributes=(None,) * depth)
            return call("map", indices, make_lambda((index,), body, level))
        rest = choose(items, picked, call("add", index, constant(1)), level + 1)
        return call("flatten", call("map", indices, make_lambda((index,), rest, level)), attributes=(EMPTY_LAST,))

    if depth == 1:  # each element once, which takes no more than the list
        element = Variable(list_type(items.type).element, INNER_LEVEL, "x")
        maybe = call("where", constant(True), element, constant(None))  # as `element` gives it in larger subsets
        return call("map", items, make_lambda((element,), call("record", maybe, attributes=(None,)), INNER_LEVEL))
    return of_one(items, lambda held, level: choose(held, [], constant(0), level))


def _first(items: Expr, count: Expr) -> Expr:
    most = static_int(count, "the number of elements", 1, LIST_LIMIT)
    list_type(items.type)

    def taken(held: Expr, level: int) -> Expr:
        index = Variable(INT, level, "i")
        indices = call("range_list", constant(0), call("length", held), attributes=(most,))
        return call("map", indices, make_lambda((index,), call("element", held, index), level))

    return of_one(items, taken)


@derived(_range)
def range(start: object, stop: object, *, limit: int) -> Any:
    """The integers from `start` up to but not including `stop`, at most `limit` of them."""


@derived(_subsets)
def subsets(items: object, size: int) -> Any:
    """Every way to take `size` elements of a list, in its order, as a list of records."""


@derived(_first)
def first(items: object, count: int) -> Any:
    """The first elements of a list, at most so many: a list that the data bound has a bound then."""
