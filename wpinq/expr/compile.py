"""Lambdas as Python functions in static single assignment, with shared work done once.

The generated source has nothing but calls of primitives and constants passed by reference, so no text of a
query is ever executed. Lists are produced lazily where they are consumed once (the body of a SelectMany, the
inside of map and flatten), so that a limit also limits the work.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from wpinq.expr.build import call, constant
from wpinq.expr.definition import primitive_named
from wpinq.expr.nodes import Call, Constant, Expr, Lambda, Variable, make_lambda, walk
from wpinq.expr.types import INT, ListOf, Weighted

_EAGER, _LAZY, _LAZY_INSIDE = 0, 1, 2

_INLINE = {
    "equal": "{0} == {1}",
    "less": "{0} < {1}",
    "and": "{0} and {1}",
    "not": "not {0}",
    "is_null": "{0} is None",
    "where": "{1} if {0} else {2}",
}
"""Python that means the primitive when no argument is null: a call saved in the innermost loops."""


class _Scope:
    """A function under construction: its lines, the names of computed values, and its parent."""

    def __init__(self, parent: _Scope | None, indent: str) -> None:
        self.parent = parent
        self.indent = indent
        self.lines: list[str] = []
        self.names: dict[bytes, str] = {}

    def find(self, digest: bytes) -> str | None:
        scope: _Scope | None = self
        while scope is not None:
            if digest in scope.names:
                return scope.names[digest]
            scope = scope.parent
        return None

    def line(self, text: str) -> None:
        self.lines.append(self.indent + text)


class _FunctionWriter:
    def __init__(self) -> None:
        self.globals: dict[str, Any] = {"__builtins__": {}, "tuple": tuple}
        self.count = 0

    def fresh(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def constant(self, value: object) -> str:
        name = self.fresh("k")
        self.globals[name] = value
        return name

    def function(self, lambda_: Lambda, parent: _Scope | None, mode: int) -> tuple[str, list[str]]:
        """Emit `def`; gives its name and its lines."""
        scope = _Scope(parent, "    " if parent is None else parent.indent + "    ")
        name, parameters = self.fresh("f"), []
        for variable in lambda_.parameters:
            parameters.append(self.fresh("x"))
            scope.names[variable.digest] = parameters[-1]
        result = self.emit(lambda_.body, scope, mode)
        scope.line(f"return {result}")
        return name, [f"{scope.indent[4:]}def {name}({', '.join(parameters)}):", *scope.lines]

    def emit(self, root: Expr, scope: _Scope, root_mode: int) -> str:
        """Emit the computation of `root`, and return the name of its value.

        Iterative, so that depth is no limit.
        """
        stack: list[tuple[Expr, int, bool]] = [(root, root_mode, False)]
        results: dict[tuple[bytes, int], list[str]] = {}
        while stack:
            node, mode, ready = stack.pop()
            lazy = mode != _EAGER and isinstance(node, Call) and primitive_named(node.name).lazy
            known = None if lazy else scope.find(node.digest)
            if known is not None:
                results.setdefault((node.digest, mode), []).append(known)
            elif isinstance(node, Constant):
                name = scope.names[node.digest] = self.constant(node.value)
                results.setdefault((node.digest, mode), []).append(name)
            elif isinstance(node, Variable):  # pragma: no cover - every variable is bound by a scope
                raise AssertionError("unbound variable")
            elif ready:
                assert isinstance(node, Call)
                modes = _argument_modes(node, mode)
                arguments = [
                    self._lambda(child, scope, m) if isinstance(child, Lambda) else results[child.digest, m].pop()
                    for child, m in reversed(tuple(zip(node.arguments, modes, strict=True)))
                ][::-1]
                name = self.fresh("v")
                text = self._call(node, arguments)
                if primitive_named(node.name).lazy and not lazy:
                    held = self.fresh("v")
                    scope.line(f"{held} = {text}")
                    text = f"None if {held} is None else tuple({held})"
                scope.line(f"{name} = {text}")
                if not lazy:
                    scope.names[node.digest] = name
                results.setdefault((node.digest, mode), []).append(name)
            else:
                assert isinstance(node, Call)
                stack.append((node, mode, True))
                for child, child_mode in zip(node.arguments, _argument_modes(node, mode), strict=True):
                    if not isinstance(child, Lambda):
                        stack.append((child, child_mode, False))
        return results[root.digest, root_mode].pop()

    def _lambda(self, lambda_: Lambda, scope: _Scope, mode: int) -> str:
        name, lines = self.function(lambda_, scope, mode)
        scope.lines.extend(lines)
        return name

    def _call(self, node: Call, arguments: list[str]) -> str:
        if node.name == "record":
            return f"({', '.join(arguments)},)"
        if node.name == "field" and not node.arguments[0].type.nullable:
            return f"{arguments[0]}[{node.attributes[0]}]"
        nullable = any(argument.type.nullable for argument in node.arguments[: 1 if node.name == "where" else None])
        if node.name in _INLINE and (node.name in ("equal", "is_null") or not nullable):
            return _INLINE[node.name].format(*arguments)
        return f"{self.constant(primitive_named(node.name).implement(node.attributes))}({', '.join(arguments)})"


def _argument_modes(node: Call, mode: int) -> tuple[int, ...]:
    """The production of each argument: flatten walks its lists once, map its list once."""
    if node.name == "flatten":
        return (_LAZY_INSIDE,)
    if node.name == "map":
        return (_LAZY, _LAZY if mode == _LAZY_INSIDE else _EAGER)
    return (_EAGER,) * len(node.arguments)


@lru_cache(maxsize=4096)
def _compile(lambda_: Lambda, mode: int) -> Callable[..., Any]:
    compiler = _FunctionWriter()
    name, lines = compiler.function(lambda_.core, None, mode)
    exec("\n".join(lines), compiler.globals)
    function: Callable[..., Any] = compiler.globals[name]
    return function


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
    return _compile(lambda_, _EAGER)


def compile_iterator(lambda_: Lambda) -> Callable[..., Any]:
    """Like `compile_lambda` for a function that gives a list, which may be a lazy iterator."""
    return _compile(lambda_, _LAZY)


# A function that gives a list, of which only the first elements are wanted: no more is made of it than they take.
#
# Engines make a list before they cut it. So a public limit is brought down to where elements come from: into the list
# that is mapped, the range, the lists that are put one after another. The first elements stay what they are.

EMPTY_LAST = "empty last"
"""Said of a `flatten` of whose lists those without elements come after all others: of the first n lists it takes no
more to have the first n elements. Whoever builds the call vouches for it."""


INNER_LEVEL = 64
"""Where the variables of derived functions start: above those of any lambda that a user can nest."""

DEPTH_LIMIT = 64
"""How many choices and lists of lists inside one another a limit is brought through."""


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
