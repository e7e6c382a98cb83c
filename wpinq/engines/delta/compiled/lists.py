"""Lists of SelectMany and Shave: as loops, or one by one where they are written out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from wpinq.engines.delta.compiled import values as code
from wpinq.engines.delta.compiled.expressions import element_of, emit, length_of, shaped, truth
from wpinq.engines.delta.compiled.hash_table import clear, gathered_norm, gathering
from wpinq.engines.delta.compiled.routine import CannotCompile, call, range_end
from wpinq.engines.delta.compiled.values import ScalarCode, ValueCode, Writer, constant, from_words, to_words
from wpinq.expr import build
from wpinq.expr.compile import compile_lambda
from wpinq.expr.nodes import Call, Constant, Expr, Lambda, Variable, make_lambda, walk
from wpinq.expr.types import ListOf, Type, Weighted
from wpinq.plan.operators import SelectMany

#: An element of a list: an expression, or a value where the list is of values.
ListElement = Expr | ValueCode

_PARAMETER = "a weighted element is the parameter of a map; write F.weighted in its function"


def loop(writer: Writer, expr: Expr, body: Callable[[ListElement], None]) -> None:
    """Write the loop that runs `body` once for each element, in order; a null list has none."""
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
        outside = dict(writer.known)

        def mapped(element: ListElement) -> None:
            value, inside = value_of(writer, element), writer.known
            # without what the list was computed from: a map inside it may have a parameter of this name
            writer.known = {**outside, parameter.digest: value}
            body(function.body)
            writer.known = inside

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


def _held(writer: Writer, expr: Expr, body: Callable[[ListElement], None]) -> None:
    """Walk through a list that is a value."""
    type_ = expr.type
    assert isinstance(type_, ListOf)
    if isinstance(type_.element, Weighted):
        raise CannotCompile("it walks a weighted list of the data")
    value = emit(writer, expr)
    assert isinstance(value, ScalarCode)
    if not writer.memoizes:
        raise CannotCompile("it walks a list of the data")
    with writer.block(f"if {value.present or 'True'}:"):
        word, there = writer.bind(value.text), replace(type_, nullable=False)
        length, index = length_of(writer, there, word), writer.name("i")
        with writer.block(f"for {index} in range({length}):"):
            body(from_words(type_.element, element_of(writer, there, word, index)))


def _walk_inner(writer: Writer, inner: ListElement, body: Callable[[ListElement], None]) -> None:
    if not isinstance(inner, Expr):
        raise CannotCompile("it walks a list of lists of the data")
    loop(writer, inner, body)


def _range(writer: Writer, expr: Call, body: Callable[[ListElement], None]) -> None:
    start, stop = (emit(writer, argument) for argument in expr.arguments)
    (limit,) = expr.attributes
    limit = writer.most if limit is None else limit
    if limit is None:
        raise CannotCompile("a range has no limit")
    assert isinstance(start, ScalarCode) and isinstance(stop, ScalarCode)
    index, end = writer.name("i"), writer.bind(call(range_end, start.text, stop.text, str(limit)))
    with writer.block(f"if {code.both(start.present, stop.present) or 'True'}:"):
        first = writer.bind(start.text)
        with writer.block(f"for {index} in range({first}, {end}):"):
            body(ScalarCode("int", index))


@dataclass(frozen=True, slots=True)
class Item:
    """An element of a list that is written out, with the values of the maps' parameters over it.

    Each value is given in terms of the one before.
    """

    expr: Expr
    given: tuple[tuple[Variable, Expr], ...] = ()


def written(expr: Expr, bound: int) -> list[Item] | None:
    """The first elements of a list that is written out, or mapped over one that is, else None."""
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


def item_value(writer: Writer, item: Item) -> ValueCode:
    """The value of an item; of a weighted one, its record."""
    known = writer.known
    for parameter, expr in item.given:
        value = value_of(writer, expr)
        writer.known = {**known, parameter.digest: value}
    expr = split(item.expr)[0] if isinstance(item.expr.type, Weighted) else item.expr
    for node in walk(expr) if item.given else ():
        if isinstance(node, Call) and not isinstance(node.type, Weighted) and (same := _same(item.given, node)):
            writer.known[node.digest] = constant(writer, same[0], node.type)
    value = emit(writer, expr)
    if item.given:
        writer.known = known
    return value


def weighed(item: Item) -> Fraction | None:
    """The weight of a weighted item, 0 for a null one; None where it depends on the record."""
    same = _same(item.given, split(item.expr)[1])
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


def value_of(writer: Writer, element: ListElement) -> ValueCode:
    """The value of an element that is not weighted."""
    if isinstance(element, Expr) and isinstance(element.type, Weighted):
        raise CannotCompile(_PARAMETER)
    return emit(writer, element) if isinstance(element, Expr) else element


def split(element: Expr) -> tuple[Expr, Expr]:
    """Record and weight of a weighted element.

    Where a condition chooses the element, it chooses each of them.
    """
    parts: dict[bytes, tuple[Expr, Expr]] = {}
    for node in walk(element):  # each node once, however often it is shared
        if not isinstance(node, Call) or not isinstance(node.type, Weighted):
            continue
        if node.name == "weighted":
            record, weight = node.arguments
            parts[node.digest] = record, weight
        elif node.name == "where" and all(branch.digest in parts for branch in node.arguments[1:]):
            condition, *branches = node.arguments
            records, weights = zip(*(parts[branch.digest] for branch in branches), strict=True)
            parts[node.digest] = _chosen(condition, *records), _chosen(condition, *weights)
    if element.digest not in parts:
        raise CannotCompile(_PARAMETER)
    return parts[element.digest]


def _chosen(condition: Expr, yes: Expr, no: Expr) -> Expr:
    """The choice of a condition, or the value itself where both branches are the same.

    So one weight is known to be one.
    """
    return yes if yes == no else build.call("where", condition, yes, no)


def weighted_parts(writer: Writer, element: ListElement) -> tuple[ValueCode, ScalarCode]:
    """The values of record and weight of a weighted element."""
    assert isinstance(element, Expr)
    record, weight = split(element)
    value, share = shaped(emit(writer, record), record.type), emit(writer, weight)
    assert isinstance(share, ScalarCode)
    return value, share


def is_weighted(function: Lambda) -> bool:
    """Whether a function gives a list of weighted elements."""
    return isinstance(function.type, ListOf) and isinstance(function.type.element, Weighted)


# --- loops over the elements of a list, for all records ---------------------------------------------------------------

#: Takes the words of an output record and the code of its weight, and writes what is done with them.
EmitRecord = Callable[[Sequence[str], str], None]


@dataclass(frozen=True, slots=True)
class ListLoop:
    """A SelectMany as loops over the elements of its list.

    It takes records of one type and gives records that fit another.
    """

    operator: SelectMany
    wanted: Type
    type: Type

    def write_counted(self, writer: Writer, words: Sequence[str], weight: str, sink: EmitRecord) -> None:
        # two walks: the norm must be known before the first element is passed on
        total = writer.bind("0.0", "t")
        self._elements(writer, words, lambda out, w: writer.line(f"{total} += 1.0"))
        share = writer.bind(f"{weight} / max({self.operator.least_norm}.0, {total})")
        self._elements(writer, words, lambda out, w: sink(out, share))

    def write_merged(self, scratch: str, writer: Writer, words: Sequence[str], weight: str, sink: EmitRecord) -> None:
        # scaled by the largest weight, so that no sum overflows; repeats meet in a scratch table
        top, size = writer.bind("1.0", "t"), code.width(self.wanted)

        def gather(out: list[str], w: str) -> None:
            writer.line(call(gathering(size), scratch, *out, f"{w} / {top}"))

        self._elements(writer, words, lambda out, w: writer.line(f"{top} = max({top}, abs({w}))"))
        self._elements(writer, words, gather)
        norm = writer.bind(f"max(1.0 / {top}, {call(gathered_norm, scratch, str(size))})")
        row = writer.name("r")
        with writer.block(f"for {row} in range(1, 1 + load(state, {scratch} + COUNT)):"):
            base = writer.bind(f"load(state, {scratch} + ROWS) + {row} * load(state, {scratch} + STRIDE)")
            out = [writer.bind(f"load(state, {base} + {i})") for i in range(size)]
            sink(out, f"{weight} * (as_float(load(state, {base} + {size})) / {norm})")
        writer.line(call(clear, scratch))

    def _elements(self, writer: Writer, words: Sequence[str], body: Callable[[list[str], str], None]) -> None:
        """Write the loop over the elements that a record may have: their words and weights."""
        function, bound = self.operator.function.core, self.operator.bound
        writer.known[function.parameters[0].digest] = from_words(self.type, words)
        taken, writer.most = writer.bind("0", "n"), bound

        def element(item: ListElement) -> None:
            with writer.block(f"if {taken} < {bound}:"):
                writer.line(f"{taken} += 1")
                if is_weighted(self.operator.function):
                    record, weight = weighted_parts(writer, item)
                    with writer.block(f"if {weight.present or 'True'}:"):
                        body(to_words(record, self.wanted), weight.text)
                else:
                    body(to_words(shaped(value_of(writer, item), self.wanted), self.wanted), "1.0")

        known = dict(writer.known)
        loop(writer, function.body, element)
        writer.known = known


def loop_widths(
    function: Lambda,
    bound: int | None,
    type_: Type,
    writer: Writer,
    words: Sequence[str],
    body: Callable[[str, str], None],
) -> None:
    """Write the loop over the widths of a record in a Shave: the number and the code of each."""
    writer.known[function.parameters[0].digest] = from_words(type_, words)
    index, writer.most = writer.bind("-1", "n"), bound

    def element(item: ListElement) -> None:
        with writer.block(f"if {index} + 1 < {bound}:"):
            writer.line(f"{index} += 1")
            value = value_of(writer, item)
            if not isinstance(value, ScalarCode):
                raise CannotCompile("a width that is a record")
            with writer.block(f"if {value.present or 'True'} and {value.text} > 0:"):
                body(index, f"float({value.text})")

    loop(writer, function.body, element)
