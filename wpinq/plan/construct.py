"""Nodes of operators from the arguments of a notation: Python functions or program text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from wpinq.errors import ExpressionError, PlanError
from wpinq.expr.compile import compile_lambda
from wpinq.expr.nodes import Constant, Lambda
from wpinq.expr.types import Type, is_record_type
from wpinq.plan.domain import Counted
from wpinq.plan.node import Node, topological
from wpinq.plan.operator import Operator, Parameter
from wpinq.plan.operators import Intersect, Union
from wpinq.plan.work import counted

#: How a front end turns what its user wrote for a function into a Lambda over records of these types.
Convert = Callable[[Any, tuple[Type, ...]], Lambda]


def construct(
    operator: type[Operator], inputs: tuple[Node, ...], arguments: Mapping[str, Any], convert: Convert
) -> Node:
    """The node that applies an operator of the registry, for arguments of any notation.

    Parameters
    ----------
    operator : type of Operator
        The operator.
    inputs : tuple of Node
        Its datasets, the one it is called on first.
    arguments : mapping
        Its other arguments by parameter name, as written by the user; absent or None where optional.
    convert : callable
        The front end's way from a function as written to a Lambda.
    """
    types = tuple(node.type for node in inputs)
    values: dict[str, Any] = {}
    for parameter in operator.parameters:
        if parameter.kind == "query":
            continue
        given = arguments.get(parameter.name)
        null = parameter.kind == "constant" and parameter.name in arguments
        if given is None and not (parameter.optional or null):
            raise PlanError(f"{operator.name} needs {parameter.name}")
        values[parameter.name] = _argument(operator, parameter, given, types, convert)
    if operator in (Union, Intersect):
        _check_rows(operator.name, inputs)
    return Node(operator(**values), inputs)


def _check_rows(name: str, inputs: tuple[Node, ...]) -> None:
    """Refuse to compare the weights of records with those of rows that weigh less."""
    weights = {found.factor for found in map(counted, inputs) if isinstance(found, Counted)}
    if len(weights) > 1 and any(getattr(node.operator, "divisor", None) for node in topological(inputs)):
        each = " and ".join(map(str, sorted(weights)))
        raise PlanError(f"{name} compares weights, and its rows weigh {each}: compare lists within a record instead")


def _argument(
    operator: type[Operator], parameter: Parameter, given: Any, types: tuple[Type, ...], convert: Convert
) -> Any:
    bound = parameter.record_types(types)
    try:
        if parameter.kind == "limit":
            return given
        if parameter.kind == "constant":
            return fold(convert(given, ()))
        if parameter.kind == "widths" and isinstance(given, (int, float)) and not isinstance(given, bool):
            return float(given)
        if given is None:
            given = (lambda value: value) if len(bound) == 1 else (lambda left, right: (left, right))
        return convert(given, bound)
    except ExpressionError as error:
        raise type(error)(f"{operator.name}, {parameter.name}: {error}") from None


def fold(function: Lambda) -> Constant:
    """A function of nothing as the constant that it gives."""
    if not is_record_type(function.type):
        raise ExpressionError(f"a constant cannot be {function.type}")
    return Constant(function.type, compile_lambda(function)())
