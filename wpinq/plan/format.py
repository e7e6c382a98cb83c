"""Plans as JSON: what answers keep of their query, and what travels between processes.

A table of nodes, inputs before users, each expression a table of its own, so that shared parts are written
once and depth is no limit. Reading rebuilds and so re-checks every step; the digest is compared with the one
written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from fractions import Fraction
from typing import Any

from wpinq.errors import PlanError, WpinqError
from wpinq.expr import catalogue, types
from wpinq.expr.declarations import Person, check_facts
from wpinq.expr.epochs import Epoch
from wpinq.expr.nodes import Call, Constant, Expr, Lambda, Variable, make_lambda, walk
from wpinq.expr.person_tables import PersonTable, PersonTables
from wpinq.expr.values import Value, normalize, parse, to_text
from wpinq.plan.domain import Sizes
from wpinq.plan.node import Node, topological
from wpinq.plan.operator import REGISTRY
from wpinq.plan.operators import Source

Json = Any
_SCALARS = {type_.name: type_ for type_ in vars(types).values() if isinstance(type_, types.Scalar)}


_RATIO = re.compile(r"-?[0-9]{1,4000}(/[1-9][0-9]{0,3999})?", re.ASCII)


def plan_to_json(root: Node) -> dict[str, Json]:
    """A plan as plain data."""
    nodes: list[Json] = []
    places: dict[bytes, int] = {}
    for node in topological([root]):
        arguments = {name: _argument_to_json(value) for name, value in node.operator.arguments()}
        places[node.digest] = len(nodes)
        inputs = [places[child.digest] for child in node.inputs]
        nodes.append({"operator": node.operator.name, "arguments": arguments, "inputs": inputs})
    return {"nodes": nodes, "digest": root.digest.hex()}


def plan_from_json(data: Mapping[str, Json]) -> Node:
    """The plan, rebuilt and checked; PlanError when the data are not a plan of this version."""
    try:
        nodes: list[Node] = []
        for item in data["nodes"]:
            operator = Source if item["operator"] == Source.name else REGISTRY[item["operator"]]
            built = operator(**{name: _argument_from_json(value) for name, value in item["arguments"].items()})
            if isinstance(built, Source):
                _check_source(built)
            nodes.append(Node(built, tuple(nodes[_place(i)] for i in item["inputs"])))
        root = nodes[-1]
        written = data["digest"]
    except WpinqError as error:
        raise PlanError(f"these data do not hold a sound plan: {error}") from None
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError):
        raise PlanError("these data do not hold a plan that this version can read") from None
    if root.digest.hex() != written:
        raise PlanError("this plan was written by another version or changed since: it does not match its digest")
    return root


def _check_source(source: Source) -> None:
    if not all(isinstance(text, str) for text in (source.source, source.unit, *source.facts)):
        raise TypeError
    if source.schema != repr(source.record):
        raise PlanError(f"the schema of the source {source.source!r} is not that of its records")
    kinds = (Fraction, Fraction, Person | None, Sizes | None, tuple | None, Epoch | None)
    given = (source.unit_weight, source.cap, source.person, source.sizes, source.columns, source.epoch)
    if not all(map(isinstance, given, kinds)):
        raise TypeError
    if min(source.unit_weight, source.cap) <= 0:
        raise PlanError(f"the declaration of the source {source.source!r} makes no sense")
    # Answers were saved with `symmetric` when it had any unit weight. They can be read; `Source.check` refuses to bill,
    # evaluate or protect such a source.
    check_facts(source.facts, source.record, max(source.unit_weight, Fraction(2)))


def _place(index: Json) -> int:
    """An index into what was read before: never counted from the end, as Python would."""
    if type(index) is not int or index < 0:
        raise TypeError
    return index


def type_to_json(type_: types.Type) -> Json:
    """A record type as plain data, with nullability and bounds."""
    if isinstance(type_, types.ListOf):
        shape: Json = {"list": type_to_json(type_.element), "bound": type_.bound}
    elif isinstance(type_, types.TupleOf):
        elements = [type_to_json(element) for element in type_.elements]
        shape = {"fields": [list(pair) for pair in zip(type_.names, elements, strict=True)]}
    elif isinstance(type_, types.DecimalOf):
        shape = {"decimal": type_.scale}
    elif isinstance(type_, types.CategoryOf):
        shape = {"category": list(type_.listed)}
    else:
        assert isinstance(type_, types.Scalar)
        shape = {"scalar": type_.name}
    return {**shape, "nullable": True} if type_.nullable else shape


def type_from_json(data: Json) -> types.Type:
    """The record type."""
    nullable = bool(data.get("nullable", False))
    if "list" in data:
        bound = None if data["bound"] is None else _place(data["bound"])
        return types.ListOf(type_from_json(data["list"]), bound=bound, nullable=nullable)
    if "fields" in data:
        names, elements = zip(*data["fields"], strict=True) if data["fields"] else ((), ())
        for name in names:
            if name is not None:
                types.check_field_name(name)
        return types.TupleOf(tuple(names), tuple(type_from_json(element) for element in elements), nullable=nullable)
    if "decimal" in data:
        return types.decimal(data["decimal"]).with_nullable(nullable)
    if "category" in data:
        return types.category(*data["category"]).with_nullable(nullable)
    return _SCALARS[data["scalar"]].with_nullable(nullable)


def value_to_json(value: Value, type_: types.Type) -> Json:
    """A value as plain data: records and lists as arrays, logical values as text.

    Logical values are dates, decimals and their like.
    """
    if value is None:
        return None
    if isinstance(type_, types.Logical):
        return to_text(value, type_)
    if isinstance(type_, types.ListOf):
        return [value_to_json(item, type_.element) for item in value]
    if isinstance(type_, types.TupleOf):
        return [value_to_json(item, element) for item, element in zip(value, type_.elements, strict=True)]
    return value


def values_to_json(values: Iterable[Value], type_: types.Type) -> list[Json]:
    """Values of one type as plain data."""
    return list(values) if type(type_) is types.Scalar else [value_to_json(value, type_) for value in values]


def value_from_json(data: Json, type_: types.Type) -> Value:
    """The value of a type, checked."""
    return normalize(data, type_.with_nullable(), _from_text)


def _from_text(data: Json, type_: types.Logical) -> Value:
    return parse(normalize(data, types.STR), type_)


def _argument_to_json(value: Any) -> Json:
    if isinstance(value, Expr):
        return {"expression": expression_to_json(value)}
    if isinstance(value, types.Type):
        return {"type": type_to_json(value)}
    if isinstance(value, Fraction):
        return {"fraction": str(value)}
    if isinstance(value, Person):
        return {"people" if isinstance(value, PersonTables) else "person": asdict(value)}
    if isinstance(value, Epoch):
        return {"epoch": {name: part for name, part in asdict(value).items() if name not in ("each", "total")}}
    if isinstance(value, Sizes):
        return {"sizes": {"records": value.records, "keys": [[list(names), most] for names, most in value.keys]}}
    return {"texts": list(value)} if isinstance(value, tuple) else {"value": value}


def ratio_from_json(data: Json) -> Fraction:
    """An exact number as `str(Fraction)` writes it; ValueError for others.

    A power of ten could take gigabytes.
    """
    if not isinstance(data, str) or _RATIO.fullmatch(data) is None:
        raise ValueError("an exact number is a ratio of integers, as text")
    return Fraction(data)


def _argument_from_json(data: Json) -> Any:
    ((kind, content),) = data.items()
    if kind == "expression":
        return expression_from_json(content)
    if kind == "type":
        return type_from_json(content)
    if kind == "fraction":
        return ratio_from_json(content)
    if kind == "person":
        return Person(**content)
    if kind == "people":
        tables = ({**table, "columns": tuple(map(tuple, table.get("columns", ())))} for table in content["tables"])
        return PersonTables(**{**content, "tables": tuple(PersonTable(**table) for table in tables)})
    if kind == "epoch":
        every = content["every"]
        return Epoch(**{**content, "every": every if isinstance(every, str) else tuple(every)})
    if kind == "sizes":
        return Sizes(content["records"], tuple((tuple(names), most) for names, most in content["keys"]))
    return tuple(content) if kind == "texts" else content


def expression_to_json(root: Expr) -> list[Json]:
    """An expression as plain data: a table, its parts before what they are part of."""
    table: list[Json] = []
    places: dict[bytes, int] = {}
    for expr in walk(root):
        places[expr.digest] = len(table)
        if isinstance(expr, Constant):
            table.append({"constant": value_to_json(expr.value, expr.type), "type": type_to_json(expr.type)})
        elif isinstance(expr, Variable):
            table.append({"variable": expr.level, "name": expr.name, "type": type_to_json(expr.type)})
        elif isinstance(expr, Lambda):
            parameters = [[v.name, type_to_json(v.type)] for v in expr.parameters]
            table.append({"lambda": parameters, "level": expr.level, "body": places[expr.body.digest]})
        else:
            assert isinstance(expr, Call)
            arguments = [places[argument.digest] for argument in expr.arguments]
            table.append({"call": expr.name, "arguments": arguments, "attributes": list(expr.attributes)})
    return table


def expression_from_json(table: list[Json]) -> Expr:
    """The expression, built and typed anew."""
    built: list[Expr] = []
    for item in table:
        if "constant" in item:
            type_ = type_from_json(item["type"])
            built.append(Constant(type_, normalize(item["constant"], type_, _from_text)))
        elif "variable" in item:
            built.append(_variable(item["type"], item["variable"], item["name"]))
        elif "lambda" in item:
            level = _place(item["level"])
            variables = tuple(_variable(type_, level + i, name) for i, (name, type_) in enumerate(item["lambda"]))
            built.append(make_lambda(variables, built[_place(item["body"])], level))
        else:
            arguments = tuple(built[_place(i)] for i in item["arguments"])
            built.append(catalogue.rebuild(item["call"], arguments, tuple(item["attributes"])))
    return built[-1]


def _variable(type_: Json, level: Json, name: Json) -> Variable:
    if not isinstance(name, str):
        raise TypeError
    return Variable(type_from_json(type_), _place(level), name)
