"""Functions of records that are said by the names of columns: what is selected, what is added, what is joined."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wpinq.errors import ExpressionError, PlanError
from wpinq.expr import build
from wpinq.expr.column import Column
from wpinq.expr.nodes import Lambda
from wpinq.expr.trace import RecordFunction, Symbol, UserFunction, as_function, lift
from wpinq.expr.types import TupleOf, Type

NamedColumns = Mapping[str, UserFunction]
"""Columns by the names that they are to have."""


def named_columns(columns: Sequence[RecordFunction], named: Mapping[str, object], where: str) -> NamedColumns:
    """Columns with their names: those that have one, then those that are given one.

    A constant may be given a name, too.

    Raises
    ------
    PlanError
        When a function comes without a name, or two columns have the same.
    """
    found: dict[str, UserFunction] = {}
    for column in columns:
        name = column if isinstance(column, str) else column.column_name if isinstance(column, Column) else None
        if name is None:
            raise PlanError(f"{where}: give each function a name, as in {where}(decade=lambda p: p.age // 10)")
        if name in found or name in named:
            raise PlanError(f"{where}: there are two columns {name!r}; name them apart, with .alias(...) or name=...")
        found[name] = as_function(column)
    for name, given in named.items():
        found[name] = as_function(given) if isinstance(given, str) or callable(given) else _constant(given)
    return found


def _constant(value: object) -> UserFunction:
    return lambda record: value


def record_of(columns: NamedColumns) -> UserFunction:
    """The function to a record of these columns."""

    def function(record: Symbol) -> Any:
        values = tuple(lift(value(record)) for value in columns.values())
        return Symbol(build.record(tuple(columns), values))

    return function


def selected(columns: Sequence[RecordFunction], named: Mapping[str, object]) -> UserFunction | Lambda:
    """What a select gives: one column or function by itself, several as a record of them."""
    if not columns and not named:
        raise PlanError('select needs a function or columns: select("city"), select("city", "age")')
    if len(columns) == 1 and not named:
        return columns[0] if isinstance(columns[0], Lambda) else as_function(columns[0])
    return record_of(named_columns(columns, named, "select"))


def with_columns(columns: Sequence[RecordFunction], named: Mapping[str, object], type_: Type) -> UserFunction:
    """The function to the same record with further columns, or others under the same names."""
    return record_of({**_fields(type_, "with_columns"), **named_columns(columns, named, "with_columns")})


def joined(left: Type, right: Type, on: RecordFunction) -> tuple[UserFunction, UserFunction]:
    """The key of a join on columns that both sides have, and its result: the columns of both.

    Those that it is joined on are there once; others of the right side whose names the left side has, too, end in
    `_right`.
    """
    names = [on] if isinstance(on, str) else on
    if not isinstance(names, Sequence) or not names or not all(isinstance(name, str) for name in names):
        raise PlanError('join: on is the name of a column that both sides have, or a list of names: on="city"')
    here, there = _fields(left, "join"), _fields(right, "join")
    added: dict[str, UserFunction] = {}
    for name, value in there.items():
        if name not in names:
            shown = f"{name}_right" if name in here else name
            if shown in added or (shown in here and shown != name):
                raise PlanError(f"join: both sides would give a column {shown!r}; rename one with select(...) first")
            added[shown] = value

    def result(one: Symbol, other: Symbol) -> Any:
        values = [*(value(one) for value in here.values()), *(value(other) for value in added.values())]
        return Symbol(build.record((*here, *added), tuple(map(lift, values))))

    return as_function(names[0] if len(names) == 1 else list(names)), result


def _fields(type_: Type, where: str) -> dict[str, Callable[..., Any]]:
    """Every column of a record by its name."""
    if not isinstance(type_, TupleOf) or None in type_.names:
        raise ExpressionError(f"{where}: the records are of type {type_}, and need columns with names")
    return {str(name): as_function(str(name)) for name in type_.names}
