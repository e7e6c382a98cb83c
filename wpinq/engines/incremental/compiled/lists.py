"""Lists that are walked once, those of SelectMany and Shave: as loops, or one by one where they are written out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from wpinq.engines.incremental.compiled.code import Held, Term, Writer, both, constant, from_words
from wpinq.engines.incremental.compiled.errors import CannotCompile
from wpinq.engines.incremental.compiled.remembered import (
    element_of,
    length_of,
)
from wpinq.engines.incremental.compiled.scalars import emit, shaped, truth
from wpinq.expr.compile import compile_lambda
from wpinq.expr.nodes import Call, Constant, Expr, Lambda, Variable, make_lambda, walk
from wpinq.expr.types import ListOf, Weighted

Element = Expr | Held
"""An element of a list: an expression, or a value where the list is of values."""


def loop(writer: Writer, expr: Expr, body: Callable[[Element], None]) -> None:
    """Write the loop that runs `body` once for each element, in order. A null list has none."""
    if isinstance(expr, Constant):
        assert isinstance(expr.type, ListOf)
        for item in expr.value or ():
            body(constant(writer, item, expr.type.element))
    elif not isinstance(expr, Call) or expr.digest in writer.known:
        _held(writer, expr, body)
    elif expr.name == "list":
        for argument in expr.arguments:
            body(argument)
    elif expr.name == "range_list":
        _range(writer, expr, body)
    elif expr.name == "map":
        function = expr.arguments[1]
        assert isinstance(function, Lambda)
        (parameter,) = function.parameters

        def mapped(element: Element) -> None:
            writer.known[parameter.digest] = value_of(writer, element)
            body(function.body)
            for node in walk(function.body):  # what depends on the parameter is computed anew for each element
                writer.known.pop(node.digest, None)
            writer.known.pop(parameter.digest, None)

        loop(writer, expr.arguments[0], mapped)
    elif expr.name == "flatten":
        loop(writer, expr.arguments[0], lambda inner: _walk_inner(writer, inner, body))
    elif expr.name == "where":
        condition = writer.bind(truth(emit(writer, expr.arguments[0])))
        for test, branch in ((condition, expr.arguments[1]), (f"not {condition}", expr.arguments[2])):
            with writer.block(f"if {test}:"):
                writer.line("pass")
                if isinstance(branch.type, ListOf):
                    loop(writer, branch, body)
    else:
        _held(writer, expr, body)


def _held(writer: Writer, expr: Expr, body: Callable[[Element], None]) -> None:
    """Walk through a list that is a value."""
    type_ = expr.type
    assert isinstance(type_, ListOf)
    if isinstance(type_.element, Weighted):
        raise CannotCompile("it walks a weighted list of the data")
    value = emit(writer, expr)
    assert isinstance(value, Term)
    if not writer.remembers:
        raise CannotCompile("it walks a list of the data")
    with writer.block(f"if {value.present or 'True'}:"):
        word, there = writer.bind(value.text), replace(type_, nullable=False)
        length, index = length_of(writer, there, word), writer.name("i")
        with writer.block(f"for {index} in range({length}):"):
            body(from_words(type_.element, element_of(writer, there, word, index)))


def _walk_inner(writer: Writer, inner: Element, body: Callable[[Element], None]) -> None:
    if not isinstance(inner, Expr):
        raise CannotCompile("it walks a list of lists of the data")
    loop(writer, inner, body)


def _range(writer: Writer, expr: Call, body: Callable[[Element], None]) -> None:
    start, stop = (emit(writer, argument) for argument in expr.arguments)
    (limit,) = expr.attributes
    limit = writer.most if limit is None else limit
    if limit is None:
        raise CannotCompile("a range has no limit")
    assert isinstance(start, Term)
    assert isinstance(stop, Term)
    index, end = writer.name("i"), writer.bind(f"range_end({start.text}, {stop.text}, {limit})")
    with writer.block(f"if {both(start.present, stop.present) or 'True'}:"):
        first = writer.bind(start.text)
        with writer.block(f"for {index} in range({first}, {end}):"):
            body(Term("int", index))


@dataclass(frozen=True, slots=True)
class Item:
    """An element of a list that is written out, and what the parameters of maps over it are, each by the last."""

    expr: Expr
    given: tuple[tuple[Variable, Expr], ...] = ()


def written(expr: Expr, bound: int) -> list[Item] | None:
    """The first elements of a list that is written out, or mapped over one that is; None where it is another list."""
    if isinstance(expr, Constant) and isinstance(expr.type, ListOf):
        return [Item(Constant(expr.type.element, item)) for item in (expr.value or ())[:bound]]
    if not isinstance(expr, Call) or expr.name not in ("list", "map"):
        return None
    if expr.name == "list":
        return [Item(argument) for argument in expr.arguments[:bound]]
    items, function = written(expr.arguments[0], bound), expr.arguments[1]
    assert isinstance(function, Lambda)
    (parameter,) = function.parameters
    return items and [Item(function.body, (*item.given, (parameter, item.expr))) for item in items]


def item_value(writer: Writer, item: Item) -> Held:
    """The value of an item; of a weighted one, its record."""
    known = writer.known
    for parameter, expr in item.given:
        value = emit(writer, expr)
        writer.known = {**known, parameter.digest: value}
    expr = item.expr
    for node in walk(expr) if item.given else ():
        if isinstance(node, Call) and not isinstance(node.type, Weighted) and (same := _same(item.given, node)):
            writer.known[node.digest] = constant(writer, same[0], node.type)
    value = emit(writer, expr.arguments[0] if isinstance(expr, Call) and expr.name == "weighted" else expr)
    if item.given:
        writer.known = known
    return value


def weighed(item: Item) -> Fraction | None:
    """The weight of a weighted item, 0 for a null one; None where it depends on the record."""
    if not isinstance(item.expr, Call) or item.expr.name != "weighted":
        return None
    same = _same(item.given, item.expr.arguments[1])
    return same and Fraction(same[0] or 0)


def _same(given: tuple[tuple[Variable, Expr], ...], expr: Expr) -> tuple[Any] | None:
    """The value of an expression where it is the same for all records."""
    parameters: tuple[Variable, ...] = ()
    value: tuple[Any, ...] = ()
    for parameter, part in (*given, (None, expr)):
        if any(isinstance(node, Variable) and node not in parameters for node in walk(part)):
            return None
        value = (compile_lambda(make_lambda(parameters, part))(*value),)
        parameters = (parameter,) if parameter is not None else ()
    return value


def value_of(writer: Writer, element: Element) -> Held:
    """The value of an element."""
    return emit(writer, element) if isinstance(element, Expr) else element


def weighted_parts(writer: Writer, element: Element) -> tuple[Held, Term]:
    """Record and weight of a weighted element, through the choices it is made by."""
    if not isinstance(element, Call) or element.name not in ("weighted", "where"):
        raise CannotCompile("a weighted element is no plain call of wp.weighted")
    if element.name == "weighted":
        record, weight = (emit(writer, argument) for argument in element.arguments)
        assert isinstance(weight, Term)
        type_ = element.arguments[0].type
        return shaped(record, type_), weight
    raise CannotCompile("weighted elements are chosen by a condition; choose the weights instead")


def is_weighted(function: Lambda) -> bool:
    """Whether a function gives a list of weighted elements."""
    return isinstance(function.type, ListOf) and isinstance(function.type.element, Weighted)
