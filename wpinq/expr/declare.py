"""Definition of a function in one place: a Python `def` with a decorator.

The `def` gives its name, parameters and docstring, and the decorator the rest.

The `def` has no body. Calling it in a lambda makes the expression; text programs and plan files find the same
function in the catalogue, and `wpinq.functions` has its Python form.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NoReturn, ParamSpec, Protocol

from wpinq.errors import ExpressionError, described, nearest
from wpinq.expr import build
from wpinq.expr.catalogue import FUNCTIONS, Function, apply
from wpinq.expr.definition import Meaning, TypingRule, WorkRule, define
from wpinq.expr.nodes import Expr
from wpinq.expr.trace import REFUSED, Symbol, UserFunction, as_function, lift, trace
from wpinq.expr.types import ListOf
from wpinq.runtime.public import advice, public

# Columns by name, for whoever would rather not write a lambda: `wp.col("age") > 30` is `lambda p: p.age > 30`.
#
# A column is a function of a record of a type that is not known yet: operators and the functions of `F` make further
# ones of it. So wherever a query takes a function of one record, it takes a column.


def _operators(*names: str) -> tuple[Callable[..., Column], ...]:
    """The methods of a column for some of Python's operators."""

    def method(name: str) -> Callable[..., Column]:
        def of_symbols(first: Symbol, *others: object) -> Any:
            return getattr(first, f"__{name}__")(*others)

        return lambda *operands: applied(of_symbols, *operands)

    return tuple(map(method, names))


#: What to write in place of the methods of columns in other libraries.
_METHODS: dict[str, str] = advice("columns")
_AGGREGATES: dict[str, str] = advice("aggregates")


@public
class Column:
    """A value of each record, by the name of its column: see `col`."""

    __slots__ = ("_value", "column_name")

    def __init__(self, value: UserFunction, name: str | None = None) -> None:
        self._value = value
        self.column_name = name

    def __call__(self, record: Symbol) -> Any:
        """The value for a record, which is a symbol."""
        return self._value(record)

    def alias(self, name: str) -> Column:
        """The same column under another name, in the records and tables that it goes into."""
        return Column(self._value, name)

    def __getitem__(self, index: int | str) -> Column:
        return Column(lambda record: self(record)[index])

    # in the class, where type checkers and editors see them
    __abs__, __neg__, __invert__ = _operators("abs", "neg", "invert")
    __eq__, __ne__ = _operators("eq", "ne")  # type: ignore[assignment]
    __lt__, __le__, __gt__, __ge__ = _operators("lt", "le", "gt", "ge")
    __add__, __sub__, __mul__, __truediv__ = _operators("add", "sub", "mul", "truediv")
    __radd__, __rsub__, __rmul__, __rtruediv__ = _operators("radd", "rsub", "rmul", "rtruediv")
    __floordiv__, __mod__, __and__, __or__ = _operators("floordiv", "mod", "and", "or")
    __rfloordiv__, __rmod__, __rand__, __ror__ = _operators("rfloordiv", "rmod", "rand", "ror")

    def __repr__(self) -> str:
        return f"<Column {self.column_name}>" if self.column_name else "<Column>"

    def _mend_attribute(self, name: str) -> str:
        shown = f'wp.col("{self.column_name}")' if self.column_name else "column"
        if name in _AGGREGATES:
            return f"an aggregate belongs to a query: people.agg(x=wp.{_AGGREGATES[name]}, epsilon=0.1)"
        if name in _METHODS:
            return _METHODS[name].format(shown)
        near = nearest(name, [*IN_PYTHON, "alias"])
        if near and near[0] != "alias":
            return f"the functions of values are those of F: F.{near[0]}({shown})"
        return "" if near else f"the functions of values are those of F, such as F.lower({shown}) and F.year({shown})"


def col(name: str) -> Column:
    """The column of this name, for expressions without a lambda.

    Parameters
    ----------
    name : str
        A field of the records of the query that it is used in.

    Returns
    -------
    Column
        `+ - * / // % & | ~ == != < <= > >=`, `[index]` and the functions of `F` make further columns of it.

    Examples
    --------
    >>> import wpinq as wp
    >>> from wpinq import functions as F
    >>> people = wp.source("people", name=str, age=int)
    >>> people.where(wp.col("age") > 30) == people.where(lambda p: p.age > 30)
    True
    >>> people.select(F.lower(wp.col("name"))) == people.select(lambda p: F.lower(p.name))
    True
    """
    if not isinstance(name, str):
        raise ExpressionError(f"a column is named by a string, not by {described(name)}")
    return Column(as_function(name), name)


def applied(function: Callable[..., Any], *given: object) -> Column:
    """The column of what a function gives for each record, some of its arguments being columns."""

    def value(record: Symbol) -> Any:
        return function(*(item(record) if isinstance(item, Column) else item for item in given))

    return Column(value)


def _refusal(what: str, fix: str) -> Callable[..., NoReturn]:
    def refuse(self: Column, *arguments: object, **named: object) -> NoReturn:
        raise ExpressionError(f"a column {what}: {fix}")

    return public(refuse)


for _python in REFUSED.keys() - {"setattr", "delattr", "call", "repr", "reduce", "format", "str"}:
    setattr(Column, f"__{_python}__", _refusal(*REFUSED[_python]))


P = ParamSpec("P")


class Decorator(Protocol):
    """A decorator of a `def`, which keeps its signature."""

    def __call__(self, declared: Callable[P, Any], /) -> Callable[P, Any]: ...


#: The functions that lambdas call, by name: `F.where`, `F.count`, `F.sort` and their like.
IN_PYTHON: dict[str, Callable[..., Any]] = {}


def primitive(
    typing: TypingRule | None = None,
    meaning: Meaning | None = None,
    *,
    work: WorkRule | None = None,
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
        define(name, arity, typing, meaning, work=work, place=declared.__module__)
        made = call or functools.partial(build.call, name)
        return function(made, takes_function=takes_function, in_python=in_python)(declared)

    return declare


def derived(rule: Callable[..., Expr], *, takes_function: bool = False, in_python: bool = True) -> Decorator:
    """A function that prints under its own name, with a meaning in primitives from `rule`.

    No engine has to know it.
    """

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
    IN_PYTHON[declared.__name__] = marked = public(declared)
    return marked


def _symbolic(declared: Callable[P, Any], name: str, takes_function: bool, variadic: bool) -> Callable[P, Any]:
    """The Python form: a symbol of the result, from arguments lifted to expressions in order."""
    signature = inspect.signature(declared)

    @functools.wraps(declared)
    def symbolic(*given: P.args, **named: P.kwargs) -> Any:
        bound = signature.bind(*given, **named)
        values = [*bound.args, *bound.kwargs.values()]
        if any(isinstance(value, Column) for value in values):
            return applied(symbolic, *values)
        if takes_function and len(values) == 2 and (not variadic or _is_function(values[1])):
            return Symbol(apply(name, *over_elements(name, *values)))
        return Symbol(apply(name, *map(lift, values)))

    return public(symbolic)


def _is_function(value: object) -> bool:
    return callable(value) and not isinstance(value, (Symbol, Expr))


def over_elements(name: str, items: object, function: UserFunction | None) -> tuple[Expr, ...]:
    """The arguments of a function: a list, and a function of its elements where there is one."""
    expr = lift(items)
    if function is None:
        return (expr,)
    if not isinstance(expr.type, ListOf):
        raise ExpressionError(f"{name} with a function takes a list, not {expr.type}")
    return expr, trace(function, (expr.type.element,))
