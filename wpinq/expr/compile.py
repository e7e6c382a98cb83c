"""Lambdas as Python functions in static single assignment, with shared work done once.

The generated source has nothing but calls of primitives and constants passed by reference, so no text of a
query is ever executed.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from wpinq.expr.build import call, constant
from wpinq.expr.definition import primitive_named
from wpinq.expr.nodes import Call, Constant, Expr, Lambda, Variable, below_first, make_lambda, walk
from wpinq.expr.types import INT, ListOf, Weighted

#: Python that means the primitive when no argument is null: a call saved in the innermost loops.
_INLINE = {
    "equal": "{0} == {1}",
    "less": "{0} < {1}",
    "and": "{0} and {1}",
    "not": "not {0}",
    "is_null": "{0} is None",
    "where": "{1} if {0} else {2}",
}


class _FunctionWriter:
    def __init__(self) -> None:
        self.globals: dict[str, Any] = {"__builtins__": {}}
        self.count = 0

    def fresh(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def constant(self, value: object) -> str:
        name = self.fresh("k")
        self.globals[name] = value
        return name

    def function(self, lambda_: Lambda, outer: ChainMap[bytes, str], indent: str = "") -> tuple[str, list[str]]:
        """Emit `def`; gives its name and its lines.

        `outer` has the names of what is computed outside.
        """
        names, lines = outer.new_child(), list[str]()
        name, parameters = self.fresh("f"), [self.fresh("x") for _ in lambda_.parameters]
        names.update(zip((variable.digest for variable in lambda_.parameters), parameters, strict=True))
        for node in below_first(
            [lambda_.body], lambda each: [c for c in each.children if not isinstance(c, Lambda)], names
        ):
            if isinstance(node, Constant):
                names[node.digest] = self.constant(node.value)
                continue
            assert isinstance(node, Call)
            arguments = []
            for child in node.arguments:
                if isinstance(child, Lambda):
                    inner, body = self.function(child, names, indent + "    ")
                    lines += body
                arguments.append(inner if isinstance(child, Lambda) else names[child.digest])
            names[node.digest] = self.fresh("v")
            lines.append(f"{indent}    {names[node.digest]} = {self._call(node, arguments)}")
        result = f"{indent}    return {names[lambda_.body.digest]}"
        return name, [f"{indent}def {name}({', '.join(parameters)}):", *lines, result]

    def _call(self, node: Call, arguments: list[str]) -> str:
        if node.name == "record":
            return f"({', '.join(arguments)},)"
        if node.name == "field" and not node.arguments[0].type.nullable:
            return f"{arguments[0]}[{node.attributes[0]}]"
        nullable = any(argument.type.nullable for argument in node.arguments[: 1 if node.name == "where" else None])
        if node.name in _INLINE and (node.name in ("equal", "is_null") or not nullable):
            return _INLINE[node.name].format(*arguments)
        return f"{self.constant(primitive_named(node.name).implement(node.attributes))}({', '.join(arguments)})"


@lru_cache(maxsize=4096)
def compile_lambda(lambda_: Lambda) -> Callable[..., Any]:
    """The function as plain Python, from values to a value.

    It is total: it never raises on values of its types.

    Examples
    --------
    >>> from wpinq.expr.trace import trace
    >>> from wpinq.expr.types import INT, record_type
    >>> edge = record_type({"src": INT, "dst": INT})
    >>> compile_lambda(trace(lambda e: (e.dst, e.src // 2), (edge,)))((7, 3))
    (3, 3)
    """
    compiler = _FunctionWriter()
    name, lines = compiler.function(lambda_.core, ChainMap())
    exec("\n".join(lines), compiler.globals)
    function: Callable[..., Any] = compiler.globals[name]
    return function


# A function that gives a list, of which only the first elements are wanted: no more is made of it than they take.
#
# Engines make a list before they cut it. So a public limit is brought down to where elements come from: into the list
# that is mapped, the range, the lists that are put one after another. The first elements stay what they are.

#: Said of a `flatten` of whose lists those without elements come after all others: of the first n lists it takes no
#: more to have the first n elements. Whoever builds the call vouches for it.
EMPTY_LAST = "empty last"


#: Where the variables of derived functions start: above those of any lambda that a user can nest.
INNER_LEVEL = 64

#: How many choices and lists of lists inside one another a limit is brought through.
DEPTH_LIMIT = 64


@lru_cache(maxsize=4096)
def limited(function: Lambda, most: int) -> Lambda:
    """The function in primitives, with at most the first `most` elements of its list.

    Where no rule makes fewer elements, it is the function as it is, also of longer lists.

    Examples
    --------
    >>> import wpinq as wp
    >>> from wpinq import functions as F
    >>> from wpinq.expr.nodes import show
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


def _there(held: Expr, index: Expr) -> Expr:
    """An element that is there: it is null only where it is null in the list."""
    assert isinstance(held.type, ListOf)
    return Call(held.type.element, "element", (held, index))


def first_of(items: Expr, most: int, element: Callable[[Expr, Expr], Expr] = _there) -> Expr:
    """The first elements of a list, in a list of a bound."""

    def taken(held: Expr, level: int) -> Expr:
        index = Variable(INT, level, "i")
        indices = call("range_list", constant(0), call("length", held), attributes=(most,))
        return call("map", indices, make_lambda((index,), element(held, index), level))

    return of_one(items, taken)


def of_one(items: Expr, function: Callable[[Expr, int], Expr]) -> Expr:
    """A function that gives a list, over a list that is computed once.

    Engines compute repeated parts of a map anew.
    """
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
