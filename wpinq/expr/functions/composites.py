"""Functions that make lists and records, and take them apart."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from functools import partial
from itertools import chain, islice
from typing import Any

from wpinq.expr import build, catalogue, definition
from wpinq.expr.build import call, constant, fields, static_int
from wpinq.expr.compile import EMPTY_LAST, INNER_LEVEL, first_of, of_one
from wpinq.expr.declare import Column, applied, derived, in_python, primitive
from wpinq.expr.definition import Amounts, CallAttributes, Mistyped, Types, handled, list_type, most, moved, strict
from wpinq.expr.nodes import Expr, Lambda, Variable, make_lambda
from wpinq.expr.trace import Symbol, lift
from wpinq.expr.types import FLOAT, INT, NULL, STR, ListOf, TupleOf, Type, Weighted, is_record_type, unify
from wpinq.expr.values import Value


def _list(types: Types, attributes: CallAttributes) -> Type:
    element: Type = types[0] if types else NULL
    for type_ in types[1:]:
        common = unify(element, type_)
        if common is None:
            raise Mistyped(f"a list has one element type, got {element} and {type_}")
        element = common
    return ListOf(element, bound=len(types))


def _element(types: Types, attributes: CallAttributes) -> Type:
    definition.expect(types[1:], INT, what="an index must be int")
    if types[0] == STR:
        raise Mistyped("a string has no elements: use F.substring(text, start, length)")
    element = list_type(types[0]).element
    if isinstance(element, Weighted):
        raise Mistyped("a weighted element cannot be taken out of its list: weigh it after taking it")
    return element.with_nullable()


def _get_element(items: tuple[Value, ...] | None, index: int | None) -> Value:
    if items is None or index is None or not 0 <= index < len(items):
        return None
    return items[index]


def _length(types: Types, attributes: CallAttributes) -> Type:
    if types[0] != STR:
        list_type(types[0])
    return INT.with_nullable(definition.any_null(types))


def _range_type(types: Types, attributes: CallAttributes) -> Type:
    definition.expect(types, INT, what="a range takes integers")
    (limit,) = attributes
    if limit is not None and not (type(limit) is int and 0 <= limit <= definition.LIST_LIMIT):
        raise Mistyped(f"the limit of a range must lie between 0 and {definition.LIST_LIMIT:,}")
    return ListOf(INT, bound=limit, nullable=definition.any_null(types))


def _limited_range(attributes: CallAttributes) -> definition.Meaning:
    limit: Any = attributes[0]  # a number or nothing, as its typing rule has seen
    if limit is None:
        return strict(lambda start, stop: tuple(builtins.range(start, stop)))
    return strict(lambda start, stop: tuple(builtins.range(start, min(stop, start + limit))))


def _counted(sizes: Amounts, texts: Amounts, given: Type) -> tuple[definition.Amount, definition.Amount]:
    steps, text = handled(sizes, texts, given)
    return steps + (list_type(given).bound or 0), text


def _map(types: Types, attributes: CallAttributes) -> Type:
    source = list_type(types[0])
    return ListOf(types[1], bound=source.bound, nullable=source.nullable)


def _each(items: tuple[Value, ...] | None, function: Callable[[Value], Value]) -> Value:
    return None if items is None else tuple(builtins.map(function, items))


def _as_often(sizes: Amounts, texts: Amounts, given: Type) -> tuple[definition.Amount, definition.Amount]:
    elements, steps = sizes
    return 1 + elements + steps, most(*texts)


def _flatten(types: Types, attributes: CallAttributes) -> Type:
    outer = list_type(types[0])
    inner = list_type(outer.element)
    bound = (
        None if outer.bound is None or inner.bound is None else min(outer.bound * inner.bound, definition.LIST_LIMIT)
    )
    return ListOf(inner.element, bound=bound, nullable=outer.nullable)


def _one_after_another(lists: tuple[Value, ...]) -> Value:
    return tuple(islice(chain.from_iterable(items or () for items in lists), definition.LIST_LIMIT))


def _weighted(types: Types, attributes: CallAttributes) -> Type:
    record, weight = types
    definition.expect((weight,), FLOAT, what="a weight must be a number")
    if not is_record_type(record):
        raise Mistyped(f"a record cannot hold {record}")
    return Weighted(record)


def _weigh(value: Expr, weight: Expr) -> Expr:
    return build.call("weighted", value, catalogue.widened(weight))


definition.define("list", None, _list, lambda *values: values, work=moved)
definition.define("range_list", 2, _range_type, implement=_limited_range, work=_counted)


@primitive(_element, _get_element, work=moved)
def element(items: object, index: object) -> Any:
    """Element `index` of a list, from 0; null beyond its ends."""


@primitive(_length, strict(len), work=handled)
def length(value: object) -> Any:
    """The number of code points of a string, or of elements of a list."""


@primitive(_map, _each, work=_as_often, takes_function=True)
def map(items: object, function: Callable[..., Any]) -> Any:
    """A function of each element of a list, in order."""


@primitive(_flatten, strict(_one_after_another), work=handled)
def flatten(lists: object) -> Any:
    """The elements of a list of lists, in order; null lists are empty."""


@primitive(_weighted, lambda record, weight: (record, weight), work=moved, call=_weigh)
def weighted(value: object, weight: object) -> Any:
    """An element of a SelectMany list with its own weight, of either sign."""


#: The most elements that `subsets` takes at a time: each is one more loop inside the others.
SUBSET_LIMIT = 16


def _range(start: Expr, stop: Expr, limit: Expr) -> Expr:
    return call("range_list", start, stop, attributes=(static_int(limit, "the limit of a range"),))


def _subsets(items: Expr, size: Expr) -> Expr:
    """All ways to take `size` elements, in the order of the list, as records."""
    depth = static_int(size, "the size of the subsets", 1)
    if depth > SUBSET_LIMIT:
        raise Mistyped(f"subsets takes at most {SUBSET_LIMIT} elements at a time")
    bound = list_type(items.type).bound
    if bound is not None and bound**depth > definition.LIST_LIMIT:
        bound = None

    def choose(items: Expr, chosen: builtins.list[Expr], start: Expr, level: int) -> Expr:
        index = Variable(INT, level, f"i{len(chosen)}")
        picked = [*chosen, call("element", items, index)]
        indices = call("range_list", start, call("length", items), attributes=(bound,))
        if len(picked) == depth:
            body = call("record", *picked, attributes=(None,) * depth)
            return call("map", indices, make_lambda((index,), body, level))
        rest = choose(items, picked, call("add", index, constant(1)), level + 1)
        return call("flatten", call("map", indices, make_lambda((index,), rest, level)), attributes=(EMPTY_LAST,))

    if depth == 1:  # each element once, which takes no more than the list
        element = Variable(list_type(items.type).element, INNER_LEVEL, "x")
        maybe = call("where", constant(True), element, constant(None))  # as `element` gives it in larger subsets
        return call("map", items, make_lambda((element,), call("record", maybe, attributes=(None,)), INNER_LEVEL))
    return of_one(items, lambda held, level: choose(held, [], constant(0), level))


def _first(items: Expr, count: Expr) -> Expr:
    most = static_int(count, "the number of elements", 1, definition.LIST_LIMIT)
    list_type(items.type)
    return first_of(items, most, partial(call, "element"))


@derived(_range)
def range(start: object, stop: object, *, limit: int) -> Any:
    """The integers from `start` up to but not including `stop`, at most `limit` of them."""


@derived(_subsets)
def subsets(items: object, size: int) -> Any:
    """All choices of `size` elements of a list, in its order, as a list of records."""


def _filter(items: Expr, predicate: Expr) -> Expr:
    """The kept elements in lists of one, the others in null lists, side by side."""
    assert isinstance(predicate, Lambda)
    kept = call("where", predicate.body, call("list", *predicate.parameters), constant(None))
    return call("flatten", call("map", items, make_lambda(predicate.parameters, kept, predicate.level)))


def _pairwise(items: Expr) -> Expr:
    bound = list_type(items.type).bound

    def pairs(held: Expr, level: int) -> Expr:
        index = Variable(INT, level, "i")
        before = call("element", held, call("subtract", index, constant(1)))
        both = call("record", before, call("element", held, index), attributes=("before", "after"))
        indices = call("range_list", constant(1), call("length", held), attributes=(bound,))
        return call("map", indices, make_lambda((index,), both, level))

    return of_one(items, pairs)


def _sort_by(items: Expr, key: Expr) -> Expr:
    assert isinstance(key, Lambda)
    (element,) = key.parameters
    keyed = call("record", key.body, element, attributes=(None, None))
    ordered = call("sort_list", call("map", items, make_lambda((element,), keyed, key.level)))
    pair = Variable(keyed.type, key.level, "pair")
    return call("map", ordered, make_lambda((pair,), build.field(pair, 1), key.level))


@derived(_filter, takes_function=True)
def filter(items: object, predicate: Callable[..., Any]) -> Any:
    """The elements of a list for which a predicate is true, in order."""


@derived(_pairwise)
def pairwise(items: object) -> Any:
    """Neighbours in a list, as records `before`, `after`."""


@derived(_sort_by, takes_function=True)
def sort_by(items: object, key: Callable[..., Any]) -> Any:
    """The elements of a list in the order of a key, null first; equal keys in canonical order."""


@derived(_first)
def first(items: object, count: int) -> Any:
    """The first elements of a list, at most `count`, which bounds its length."""


# Records: their fields, and these in another order.


def _record(types: Types, attributes: CallAttributes) -> Type:
    for type_ in types:
        if not is_record_type(type_):
            raise Mistyped(f"a record cannot hold {type_}")
    if not types:
        raise Mistyped('a record needs a field; for one record in all write a constant, such as "all"')
    if len(attributes) != len(types):
        raise Mistyped(f"a record of {len(types)} fields cannot have {len(attributes)} names")
    names = tuple(name for name in attributes if name is not None)
    if len(set(names)) != len(names):
        raise Mistyped("two fields of one record share a name; name them apart")
    return TupleOf(tuple(None if n is None else str(n) for n in attributes), types)


def _field(types: Types, attributes: CallAttributes) -> Type:
    (record,), (index,) = types, attributes
    if not isinstance(record, TupleOf) or type(index) is not int or not 0 <= index < len(record.elements):
        raise Mistyped(f"{record} has no field number {index}")
    element = record.elements[index]
    return element.with_nullable(element.nullable or record.nullable)


def _get_field(attributes: CallAttributes) -> definition.Meaning:
    index: Any = attributes[0]  # a number, as its typing rule has seen
    return lambda record: None if record is None else record[index]


definition.define("record", None, _record, lambda *values: values, work=moved)
definition.define("field", 1, _field, implement=_get_field, work=moved)


@in_python
def record(**fields: object) -> Any:
    """A record with named fields: `F.record(src=e.dst, dst=e.src)`."""
    if any(isinstance(value, Column) for value in fields.values()):
        return applied(lambda *values: record(**dict(zip(fields, values, strict=True))), *fields.values())
    return Symbol(build.record(tuple(fields), tuple(lift(value) for value in fields.values())))


#: The most fields that `sort` orders in a record: its network has n(n-1)/2 exchanges.
SORT_LIMIT = 8


def _arranged(value: Expr, arranged: builtins.list[Expr]) -> Expr:
    """The same record with its fields rearranged.

    Names stay in place where all fields have one type.
    """
    assert isinstance(value.type, TupleOf)
    same = all(element == value.type.elements[0] for element in value.type.elements)
    names = value.type.names if same else (None,) * len(arranged)
    return call("record", *arranged, attributes=names)


def _sorted(value: Expr) -> Expr:
    if isinstance(value.type, ListOf):
        return call("sort_list", value)
    parts = fields(value)
    if any(part.type != parts[0].type for part in parts):
        raise Mistyped(f"sort takes a record whose fields have one type, not {value.type}")
    if len(parts) > SORT_LIMIT:
        raise Mistyped(f"sort takes a record of at most {SORT_LIMIT} fields, or a list")
    for end in builtins.range(len(parts) - 1, 0, -1):  # bubble sort as a network: no data-dependent control flow
        for i in builtins.range(end):
            a, b = parts[i], parts[i + 1]
            swap = catalogue.precedes(b, a)
            parts[i], parts[i + 1] = call("where", swap, b, a), call("where", swap, a, b)
    return _arranged(value, parts)


@derived(_sorted)
def sort(value: object) -> Any:
    """A list in canonical order, or a record with its fields in order; null first.

    The fields are all of one type, at most 8.
    """


@derived(lambda value: _arranged(value, fields(value)[1:] + fields(value)[:1]))
def rotate(value: object) -> Any:
    """The record with its fields moved one place to the left: `(a, b, c)` gives `(b, c, a)`."""


@derived(lambda value: _arranged(value, fields(value)[::-1]))
def reverse(value: object) -> Any:
    """The record with its fields in reverse: `(a, b)` gives `(b, a)`."""
