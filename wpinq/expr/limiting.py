"""A function that gives a list, of which only the first elements are wanted: no more is made of it than they take.

Engines make a list before they cut it. So a public limit is brought down to where elements come from: into the list
that is mapped, the range, the lists that are put one after another. The first elements stay what they are.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from wpinq.expr.build import call
from wpinq.expr.nodes import Call, Expr, Lambda, make_lambda
from wpinq.expr.types import ListOf

EMPTY_LAST = "empty last"
"""Said of a `flatten` of whose lists those without elements come after all others: of the first n lists it takes no
more to have the first n elements. Whoever builds the call vouches for it."""


DEPTH_LIMIT = 64
"""How many choices and lists of lists inside one another a limit is brought through."""


@lru_cache(maxsize=4096)
def limited(function: Lambda, most: int) -> Lambda:
    """The function in primitives whose list has the first elements of what a function gives, at most so many of them.

    Where nothing tells how to make fewer, it is the function as it is, of longer lists too.

    Examples
    --------
    >>> import wpinq as wp
    >>> from wpinq.expr.printing import show
    >>> from wpinq.expr.trace import trace
    >>> from wpinq.expr.types import INT
    >>> show(limited(trace(lambda x: wp.map(wp.range(0, x, limit=1000), lambda i: i * x), (INT,)), 10).body)
    'map(range_list(0, x), i => i * x)'
    """
    core = function.core
    body = _limited(core.body, most, DEPTH_LIMIT)
    return core if body == core.body else make_lambda(core.parameters, body, core.level)


def _limited(expr: Expr, most: int, depth: int) -> Expr:
    mapped = []
    while isinstance(expr, Call) and expr.name == "map":
        expr, function = expr.arguments
        mapped.append(function)
    expr = _cut(expr, most, depth)
    for function in reversed(mapped):
        expr = call("map", expr, function)
    return expr


def _cut(expr: Expr, most: int, depth: int) -> Expr:
    """A list that is made otherwise than by a function of another's elements."""
    type_ = expr.type
    if not isinstance(expr, Call) or not isinstance(type_, ListOf) or depth == 0:
        return expr
    if expr.name == "list" and len(expr.arguments) > most:
        # typed like the whole list, for whose elements the function is that is mapped over it
        return Call(replace(type_, bound=most), "list", expr.arguments[:most])
    if expr.name == "range_list":
        (limit,) = expr.attributes
        least = most if not isinstance(limit, int) else min(most, limit)
        return call("range_list", *expr.arguments, attributes=(least,))
    if expr.name == "flatten":
        (lists,) = expr.arguments
        outer = _limited(lists, most, depth - 1) if expr.attributes == (EMPTY_LAST,) else lists
        if isinstance(outer, Call) and outer.name == "map":
            items, function = outer.arguments
            assert isinstance(function, Lambda)
            body = _limited(function.body, most, depth - 1)
            outer = call("map", items, make_lambda(function.parameters, body, function.level))
        return call("flatten", outer, attributes=expr.attributes)
    if expr.name == "where":
        condition, yes, no = expr.arguments
        return call("where", condition, _limited(yes, most, depth - 1), _limited(no, most, depth - 1))
    return expr
