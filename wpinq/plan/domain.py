"""Output domains that are public by construction: inferred from the query alone, never from data.

A constant has one value, `x % n` has n, a bool has two, a partition's key has one, a record has the product of
its fields' values. Null is left out: what is listed is asked for, the rest is simply not released.
"""

from __future__ import annotations

from itertools import product

from wpinq.expr.nodes import Call, Constant, Expr, Lambda, Variable
from wpinq.expr.types import BOOL, ListOf
from wpinq.expr.values import Value
from wpinq.plan.node import Node, topological
from wpinq.plan.operator import Operator
from wpinq.plan.operators import (
    Concat,
    Except,
    GroupBy,
    Intersect,
    Join,
    Partition,
    Select,
    SelectMany,
    Source,
    Union,
    Where,
)

DOMAIN_LIMIT = 1_000_000
"""The most values that are inferred; beyond it a domain must be given."""

Domain = tuple[Value, ...]


def infer_domain(root: Node) -> Domain | None:
    """Every record that the plan's output can hold, in canonical order of construction, or None."""
    known: dict[bytes, Domain | None] = {}
    for node in topological([root]):
        known[node.digest] = _of_operator(node.operator, [known[child.digest] for child in node.inputs])
    return known[root.digest]


def _of_operator(operator: Operator, inputs: list[Domain | None]) -> Domain | None:
    if isinstance(operator, Source):
        return (False, True) if operator.record == BOOL else None
    if isinstance(operator, Select):
        return _of_function(operator.function, inputs)
    if isinstance(operator, SelectMany):
        return _of_list(operator.function.body.core)
    if isinstance(operator, Where):
        return inputs[0]
    if isinstance(operator, Partition):
        return (operator.part.value,) if operator.key.body == operator.key.parameters[0] else inputs[0]
    if isinstance(operator, GroupBy):
        return _product([_of_function(operator.key, inputs), _of_function(operator.reduce, [])])
    if isinstance(operator, Join):
        return _of_function(operator.result, inputs)
    if isinstance(operator, Intersect):
        finite = [domain for domain in inputs if domain is not None]
        return min(finite, key=len) if finite else None
    if isinstance(operator, (Union, Concat, Except)):
        return _merge(inputs)
    return None


def _of_function(function: Lambda, inputs: list[Domain | None]) -> Domain | None:
    known = {variable.level: domain for variable, domain in zip(function.parameters, inputs, strict=False)}
    return _of(function.body.core, known)


def _of(expr: Expr, known: dict[int, Domain | None]) -> Domain | None:
    if isinstance(expr, Constant):
        return (expr.value,)
    if isinstance(expr, Variable):
        return known.get(expr.level)
    if not isinstance(expr, Call):
        return None
    arguments = expr.arguments
    if expr.name == "modulo" and isinstance(arguments[1], Constant) and (arguments[1].value or 0) > 0:
        size = arguments[1].value
        return tuple(range(size)) if size <= DOMAIN_LIMIT else None
    if expr.name == "where":
        return _merge([_of(arguments[1], known), _of(arguments[2], known)])
    if expr.name == "record":
        return _product([_of(argument, known) for argument in arguments])
    if expr.name == "field":
        whole = _of(arguments[0], known)
        (index,) = expr.attributes
        assert isinstance(index, int)
        return None if whole is None else tuple(dict.fromkeys(record[index] for record in whole if record is not None))
    return (False, True) if expr.type == BOOL else None


def _of_list(body: Expr) -> Domain | None:
    """The elements of a list written in place."""
    if not isinstance(body, Call) or not isinstance(body.type, ListOf):
        return None
    if body.name == "where":
        return _merge([_of_list(body.arguments[1]), _of_list(body.arguments[2])])
    if body.name == "list":
        return _merge([_of_element(item) for item in body.arguments])
    return None


def _of_element(item: Expr) -> Domain | None:
    if isinstance(item, Call) and item.name == "weighted":
        item = item.arguments[0]
    return _of(item, {})


def _merge(domains: list[Domain | None]) -> Domain | None:
    merged: dict[Value, None] = {}
    for domain in domains:
        if domain is None:
            return None
        merged.update(dict.fromkeys(domain))
    return tuple(merged)


def _product(domains: list[Domain | None]) -> Domain | None:
    size = 1
    for domain in domains:
        if domain is None:
            return None
        size *= len(domain)
    if size > DOMAIN_LIMIT:
        return None
    return tuple(product(*(domain for domain in domains if domain is not None)))
