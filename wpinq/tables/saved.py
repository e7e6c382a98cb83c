"""What a saved table was asked for, read again: every step is built anew, as `by` and `agg` build it."""

from __future__ import annotations

import inspect
from typing import Any

from wpinq.expr.logical_values import presenter
from wpinq.expr.nodes import Lambda, check_function
from wpinq.expr.trace import Symbol, UserFunction
from wpinq.expr.types import Type
from wpinq.plan.format import expression_from_json, plan_from_json, ratio_from_json, value_from_json
from wpinq.sinks.count_above import listing_from_json
from wpinq.tables.aggregates import Aggregate
from wpinq.tables.functions import AGGREGATES
from wpinq.tables.grouping import NO_OTHER, find_groups
from wpinq.tables.released import Table as Table
from wpinq.tables.tabulation import Grouping, Tabulation


def tabulation_from_json(data: Any) -> Tabulation:
    """What `Tabulation.to_json` wrote; any error where the data are something else."""
    plan = plan_from_json(data["plan"])
    by = {name: _applied(_function(table, plan.type)) for name, table in data["by"].items()}
    groups = find_groups(plan, (), by, (), NO_OTHER)
    if by:
        type_ = groups.type
        keys: Any = None if data["keys"] is None else _presented(data["keys"], type_)
        other: Any = NO_OTHER
        if data["other"] is not None:
            (other,), keys = _presented(data["other"], type_), keys[:-1]
        listing = None if data["listing"] is None else listing_from_json(data["listing"], type_)
        if listing is None:
            groups = find_groups(plan, (), by, keys, other)
        else:
            groups = find_groups(plan, (), by, listing.domain, other, listing.above)
    epsilons = {name: ratio_from_json(epsilon) for name, epsilon in data["epsilons"].items()}
    aggregates = {name: _aggregate(written, plan.type) for name, written in data["aggregates"].items()}
    return Grouping(groups, str(data["reading"])).agg(epsilon=sum(epsilons.values()), split=epsilons, **aggregates)


def _aggregate(written: Any, type_: Type) -> Aggregate:
    made, given = AGGREGATES[written["name"]], written["arguments"]
    arguments: dict[str, Any] = {}
    for name, kind in made.parameters:
        if kind == "function":
            column = _function(given[name], type_)
            arguments[name] = _applied(column)
        elif kind == "keys":  # the column that they are values of comes first
            arguments[name] = _presented(given[name], column.type)
        else:
            arguments[name] = ratio_from_json(given[name]) if kind == "number" else float(given[name])
    return made(**arguments)


def _function(table: Any, type_: Type) -> Lambda:
    function = expression_from_json(table)
    if not isinstance(function, Lambda):
        raise TypeError
    check_function(function, (type_,))
    return function


def _applied(function: Lambda) -> UserFunction:
    """A function of a record, as a query takes it: its record is the one that queries are traced with.

    `Table.load` compares the plans that come of it with those of the answers.
    """

    def applied(record: Symbol) -> Symbol:
        return Symbol(function.body)

    (parameter,) = function.parameters  # whose name is shown
    shown = inspect.Parameter(parameter.name, inspect.Parameter.POSITIONAL_ONLY)
    vars(applied)["__signature__"] = inspect.Signature([shown])
    return applied


def _presented(values: Any, type_: Type) -> list[Any]:
    return [presenter(type_)(value_from_json(value, type_)) for value in values]


Table.read_asked = staticmethod(tabulation_from_json)
