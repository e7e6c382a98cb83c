"""A function that gives a list, of which only the first elements are wanted: no more is made of it than they take.

Engines make a list before they cut it. So a public limit is brought down to where elements come from: into the list
that is mapped, the range, the lists that are put one after another. The first elements stay what they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from wpinq.expr.build import call, constant
from wpinq.expr.nodes import Call, Expr, Lambda, Variable, make_lambda, walk
from wpinq.expr.types import INT, ListOf, Weighted

EMPTY_LAST = "empty last"
"""Said of a `flatten` of whose lists those without elements come after all others: of the first n lists it takes no
more to have the first n elements. Whoever builds the call vouches for it."""


INNER_LEVEL = 64
"""Where the variables of derived functions start: above those of any lambda that a user can nest."""

DEPTH_LIMIT = 64
"""How many choices and lists of lists inside one another a limit is brought through."""


@lru_cache(maxsize=4096)
def limited(function: Lambda, most: int) -> Lambda:
    """The function in primitives whose list has the first elements of what a function gives, at most so many of them.

    Where nothing tells how to make fewer, it is the function as it is, of longer lists too.

    Examples
    --------
    >>> import wpinq as wp
    >>> from wpinq import functions as F
    >>> from wpinq.expr.printing import show
    >>> from wpinq.expr.trace import trace
    >>> from wpinq.expr.types import INT
    >>> show(limited(trace(lambda x: F.map(F.range(0, x, limit=1000), lambda i: i * x), (INT,)), 10).body)
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
    type_ = expr.type
    if mapped and isinstance(type_, ListOf) and type_.bound is None and not isinstance(type_.element, Weighted):
        expr = first_of(expr, most)
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


def first_of(items: Expr, most: int) -> Expr:
    """The first elements of a list, in a list of a bound."""

    def taken(held: Expr, level: int) -> Expr:
        assert isinstance(held.type, ListOf)
        index = Variable(INT, level, "i")
        indices = call("range_list", constant(0), call("length", held), attributes=(most,))
        # no index is beyond the end, so the element is null only where it is null in the list
        element = Call(held.type.element, "element", (held, index))
        return call("map", indices, make_lambda((index,), element, level))

    return of_one(items, taken)


def of_one(items: Expr, function: Callable[[Expr, int], Expr]) -> Expr:
    """A function that gives a list, of a list that is computed once: engines compute anew what a map repeats."""
    # above every variable of the list: functions inside have variables of their own
    level = max([INNER_LEVEL, *(1 + node.level for node in walk(items) if isinstance(node, Variable))])
    part = items
    while isinstance(part, Call) and part.name == "field":
        (part,) = part.arguments
    if not isinstance(part, Call):
        return function(items, level)
    held = Variable(items.type, level, "items")
    lists = call("map", call("list", items), make_lambda((held,), function(held, level + 1), level))
    found = call("flatten", lists)
    if not items.type.nullable:
        return found
    return call("where", call("is_null", items), constant(None), found)
