"""Defining a function in one place: a Python `def` gives name, parameters and docstring, a decorator the rest.

The `def` has no body. Calling it in a lambda makes the expression; text programs and plan files find the same
function in the catalogue, and `wpinq.functions` holds its Python form.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, Protocol

from wpinq.errors import ExpressionError
from wpinq.expr import build
from wpinq.expr.catalogue import FUNCTIONS, Function, apply
from wpinq.expr.column import Column, applied
from wpinq.expr.definition import Meaning, TypingRule, WorkRule, define
from wpinq.expr.nodes import Expr
from wpinq.expr.trace import Symbol, UserFunction, lift, trace
from wpinq.expr.types import ListOf

P = ParamSpec("P")


class Decorator(Protocol):
    """What is done to a `def`: its signature stays."""

    def __call__(self, declared: Callable[P, Any], /) -> Callable[P, Any]: ...


IN_PYTHON: dict[str, Callable[..., Any]] = {}
"""The functions that lambdas call, by name: `F.where`, `F.count`, `F.sort` and their like."""


def primitive(
    typing: TypingRule | None = None,
    meaning: Meaning | None = None,
    *,
    work: WorkRule | None = None,
    lazy: bool = False,
    call: Callable[..., Expr] | None = None,
    takes_function: bool = False,
    in_python: bool = True,
) -> Decorator:
    """A primitive that queries can name: see `definition.define` for what it must say.

    `call` makes the call where arguments have to be converted first; for the rest, see `function`.
    """

    def declare(declared: Callable[P, Any]) -> Callable[P, Any]:
        name = declared.__name__
        arity = len(inspect.signature(declared).parameters)
        define(name, arity, typing, meaning, work=work, lazy=lazy, place=declared.__module__)
        made = call or functools.partial(build.call, name)
        return function(made, takes_function=takes_function, in_python=in_python)(declared)

    return declare


def derived(rule: Callable[..., Expr], *, takes_function: bool = False, in_python: bool = True) -> Decorator:
    """A function that prints under its own name and means what `rule` gives in primitives: no engine has to know."""

    def declare(declared: Callable[P, Any]) -> Callable[P, Any]:
        made = functools.partial(build.derived, declared.__name__, rule)
        return function(made, takes_function=takes_function, in_python=in_python)(declared)

    return declare


def function(
    made: Callable[..., Expr],
    *,
    counts: tuple[int, int] | None = None,
    takes_function: bool = False,
    in_python: bool = True,
) -> Decorator:
    """A function that `made` makes, from expressions to an expression.

    `counts` are the least and the most arguments of one that takes any number; where it `takes_function`, the second
    argument is, or may be, a function of the elements of the first. One that is not `in_python` is for text and files.
    """

    def declare(declared: Callable[P, Any]) -> Callable[P, Any]:
        name = declared.__name__
        parameters = inspect.signature(declared).parameters.values()
        if not declared.__doc__:
            raise ExpressionError(f"the function {name!r} of {declared.__module__} has no docstring")
        if name in FUNCTIONS:
            raise ExpressionError(f"the function {name!r} is defined twice, the second time in {declared.__module__}")
        required = sum(parameter.default is inspect.Parameter.empty for parameter in parameters)
        least, most = counts or (required, len(parameters))
        FUNCTIONS[name] = Function(made, least, most, takes_function)
        symbolic = _symbolic(declared, name, takes_function, variadic=counts is not None)
        if in_python:
            IN_PYTHON[name] = symbolic
        return symbolic

    return declare


def in_python(declared: Callable[P, Any]) -> Callable[P, Any]:
    """A function of lambdas alone: what it makes is written otherwise in text."""
    IN_PYTHON[declared.__name__] = declared
    return declared


def _symbolic(declared: Callable[P, Any], name: str, takes_function: bool, variadic: bool) -> Callable[P, Any]:
    """The Python form: arguments lifted to expressions, in the order of the parameters, and a symbol of the result."""
    signature = inspect.signature(declared)

    @functools.wraps(declared)
    def symbolic(*given: P.args, **named: P.kwargs) -> Any:
        try:
            bound = signature.bind(*given, **named)
        except TypeError as reason:
            raise TypeError(f"{name}() {reason}") from None
        values = [*bound.args, *bound.kwargs.values()]
        if any(isinstance(value, Column) for value in values):
            return applied(symbolic, *values)
        if takes_function and len(values) == 2 and (not variadic or _is_function(values[1])):
            return Symbol(apply(name, *_over_elements(name, *values)))
        return Symbol(apply(name, *map(lift, values)))

    return symbolic


def _is_function(value: object) -> bool:
    return callable(value) and not isinstance(value, (Symbol, Expr))


def _over_elements(name: str, items: object, function: UserFunction | None) -> tuple[Expr, ...]:
    expr = lift(items)
    if function is None:
        return (expr,)
    if not isinstance(expr.type, ListOf):
        raise ExpressionError(f"{name} with a function takes a list, not {expr.type}")
    return expr, trace(function, (expr.type.element,))
