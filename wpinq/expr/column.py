"""Columns by name, for whoever would rather not write a lambda: `wp.col("age") > 30` is `lambda p: p.age > 30`.

A column is a function of a record that was not told yet of which: operators and the functions of `F` make further ones
of it. So wherever a query takes a function of one record, it takes a column.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from wpinq.errors import ExpressionError
from wpinq.expr.trace import OPERATORS, REFLECTED_TOO, REFUSED, Symbol, UserFunction, as_function


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

    def __abs__(self) -> Column:
        return Column(lambda record: abs(self(record)))

    def __repr__(self) -> str:
        return f"<Column {self.column_name}>" if self.column_name else "<Column>"


def col(name: str) -> Column:
    """The column of this name: a function of a record that is written without a lambda.

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
        raise ExpressionError(f"a column is named by a string, not by {name!r}")
    return Column(as_function(name), name)


def applied(function: Callable[..., Any], *given: object) -> Column:
    """The column of what a function gives for each record, some of its arguments being columns."""

    def value(record: Symbol) -> Any:
        return function(*(item(record) if isinstance(item, Column) else item for item in given))

    return Column(value)


def _operator(python: str) -> Callable[..., Column]:
    def of_symbols(first: Symbol, *others: object) -> Any:
        return getattr(first, python)(*others)

    return lambda *operands: applied(of_symbols, *operands)


for _python in (*OPERATORS, *REFLECTED_TOO, *(f"r{name}" for name in REFLECTED_TOO)):
    setattr(Column, f"__{_python}__", _operator(f"__{_python}__"))


def _refusal(what: str, fix: str) -> Callable[..., NoReturn]:
    def refuse(self: Column, *arguments: object, **named: object) -> NoReturn:
        raise ExpressionError(f"a column {what}: {fix}")

    return refuse


for _names, _said in REFUSED.items():
    for _python in set(_names.split()) - {"setattr", "delattr", "call", "repr", "reduce", "format", "str"}:
        setattr(Column, f"__{_python}__", _refusal(*_said))
