"""The functions that users can name, in Python and in text alike.

Each takes expressions and gives an expression. Most are derived: they print under their own name and carry their
meaning in primitives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from wpinq.errors import ExpressionError
from wpinq.expr.build import (
    arithmetic,
    call,
    compare,
    constant,
    derived,
    divide,
    either,
    equal,
    fields,
    less,
    listed,
    negate,
    not_equal,
    precedes,
    promote,
    record,
    to_float,
)
from wpinq.expr.format import show
from wpinq.expr.nodes import Constant, Expr, Lambda, Variable, make_lambda, walk
from wpinq.expr.primitives import LIST_LIMIT, Attributes, Mistyped, list_type
from wpinq.expr.types import FLOAT, INT, ListOf, TupleOf

SORT_LIMIT = 8
"""The most fields that `sort` orders in a record: its network has n(n-1)/2 exchanges."""

SUBSET_LIMIT = 16
"""The most elements that `subsets` takes at a time: each is one more loop inside the others."""

INNER_LEVEL = 64
"""Where the variables of derived functions start: above those of any lambda that a user can nest."""


def _arranged(value: Expr, arranged: list[Expr]) -> Expr:
    """The same record with its fields rearranged. Names stay in place where all fields have one type."""
    assert isinstance(value.type, TupleOf)
    same = all(element == value.type.elements[0] for element in value.type.elements)
    names = value.type.names if same else (None,) * len(arranged)
    return call("record", *arranged, attributes=names)


def _rotated(value: Expr) -> Expr:
    parts = fields(value)
    return _arranged(value, parts[1:] + parts[:1])


def _reversed(value: Expr) -> Expr:
    return _arranged(value, fields(value)[::-1])


def _sorted(value: Expr) -> Expr:
    if isinstance(value.type, ListOf):
        return call("sort_list", value)
    parts = fields(value)
    if any(part.type != parts[0].type for part in parts):
        raise Mistyped(f"sort takes a record whose fields have one type, not {value.type}")
    if len(parts) > SORT_LIMIT:
        raise Mistyped(f"sort takes a record of at most {SORT_LIMIT} fields, or a list")
    for end in range(len(parts) - 1, 0, -1):  # bubble sort as a network: no data-dependent control flow
        for i in range(end):
            a, b = parts[i], parts[i + 1]
            swap = precedes(b, a)
            parts[i], parts[i + 1] = call("where", swap, b, a), call("where", swap, a, b)
    return _arranged(value, parts)


def _smaller(a: Expr, b: Expr) -> Expr:
    return _null_if_any((a, b), call("where", less(b, a), b, a))


def _larger(a: Expr, b: Expr) -> Expr:
    return _null_if_any((a, b), call("where", less(a, b), b, a))


def _null_if_any(values: tuple[Expr, ...], result: Expr) -> Expr:
    for value in values:
        if value.type.nullable:
            result = call("where", call("is_null", value), constant(None), result)
    return result


def _absolute(value: Expr) -> Expr:
    zero = constant(0.0) if value.type == FLOAT else constant(0)
    return call("where", less(value, zero), call("subtract", zero, value), value)


def _floor(value: Expr) -> Expr:
    if value.type != FLOAT:
        raise Mistyped(f"floor takes a float, not {value.type}")
    whole = call("to_int", value)
    below = call("less", value, call("to_float", whole))
    return call("where", below, call("subtract", whole, constant(1)), whole)


def _bucket(value: Expr, width: Expr) -> Expr:
    if FLOAT not in (value.type, width.type):
        return call("floor_divide", value, width)
    return _floor(divide(value, width).core)


def _contains(text: Expr, part: Expr) -> Expr:
    return call("not", call("less", call("find", text, part), constant(0)))


def _starts_with(text: Expr, prefix: Expr) -> Expr:
    head = call("substring", text, constant(0), call("length", prefix))
    return _null_if_any((text, prefix), call("equal", head, prefix))


def static_int(value: Expr, what: str, least: int = 0) -> int:
    """A public integer written in the query, at least `least`."""
    if not isinstance(value, Constant) or value.type != INT or value.value < least:
        raise Mistyped(f"{what} must be an integer written in the query, at least {least}")
    assert isinstance(value.value, int)
    return value.value


def _range(start: Expr, stop: Expr, limit: Expr) -> Expr:
    return call("range_list", start, stop, attributes=(static_int(limit, "the limit of a range"),))


def _subsets(items: Expr, size: Expr) -> Expr:
    """All ways to take `size` elements, in the order of the list, as records."""
    depth = static_int(size, "the size of the subsets", 1)
    if depth > SUBSET_LIMIT:
        raise Mistyped(f"subsets takes at most {SUBSET_LIMIT} elements at a time")
    bound = list_type(items.type).bound
    if bound is not None and bound**depth > LIST_LIMIT:
        bound = None
    count = call("length", items)
    base = max(INNER_LEVEL, next_level(items))

    def choose(chosen: list[Expr], start: Expr) -> Expr:
        level = base + len(chosen)
        index = Variable(INT, level, f"i{len(chosen)}")
        picked = [*chosen, call("element", items, index)]
        indices = call("range_list", start, count, attributes=(bound,))
        if len(picked) == depth:
            body = call("record", *picked, attributes=(None,) * depth)
            return call("map", indices, make_lambda((index,), body, level))
        rest = choose(picked, call("add", index, constant(1)))
        return call("flatten", call("map", indices, make_lambda((index,), rest, level)))

    return choose([], constant(0))


def next_level(*expressions: Expr) -> int:
    """A level above every variable of the expressions: what an inner lambda must start at."""
    levels = [node.level for e in expressions for node in walk(e) if isinstance(node, Variable)]
    return 1 + max(levels, default=-1)


def map_list(items: Expr, function: Expr) -> Expr:
    """`function` of every element, in order."""
    return call("map", items, function)


def _reduced(name: str, items: Expr, function: Expr | None) -> Expr:
    values = items if function is None else call("map", items, function)
    # a sum of nothing is 0 or 0.0: the primitive cannot tell which from the values
    return call(name, values, attributes=(str(list_type(values.type).element),) if name == "sum_list" else ())


def _reducer(name: str, primitive: str, pair: Callable[[Expr, Expr], Expr] | None) -> Callable[..., Expr]:
    """min, max or sum: of a list, of a function over a list, or of two or more values side by side."""

    def build(first: Expr, *rest: Expr) -> Expr:
        if isinstance(first.type, ListOf) or pair is None:
            if len(rest) > 1 or (rest and not isinstance(rest[0], Lambda)):
                raise ExpressionError(f"{name} of a list takes the list and, at most, a function of its elements")
            return derived(name, lambda items, f=None: _reduced(primitive, items, f), first, *rest)
        if not rest:
            raise ExpressionError(f"{name} takes a list, or two values or more, in `{show(first)}`")
        result = first
        for value in rest:
            result = derived(name, pair, *promote(result, value))
        return result

    return build


def _collect(items: Expr, function: Expr | None = None) -> Expr:
    if function is None:
        return derived("collect", lambda group: call("sort_list", group), items)
    return derived("collect", lambda group, f: call("sort_list", call("map", group, f)), items, function)


def _list_of(*items: Expr) -> Expr:
    widened = any(item.type == FLOAT for item in items)
    return listed(*(_widened(item) if widened else item for item in items))


def _widened(value: Expr) -> Expr:
    return to_float(value) if value.type == INT else value


def _where(condition: Expr, yes: Expr, no: Expr) -> Expr:
    return call("where", condition, *promote(yes, no))


def _one(name: str, rule: Callable[..., Expr]) -> Callable[..., Expr]:
    return lambda *arguments: derived(name, rule, *arguments)


def _primitive(name: str) -> Callable[..., Expr]:
    return lambda *arguments: call(name, *arguments)


@dataclass(frozen=True, slots=True)
class Function:
    """What a name means: how to build it, how many arguments it takes, and which of them is a function.

    A function argument is always the second and is applied to the elements of the first, a list.
    """

    build: Callable[..., Expr]
    least: int
    most: int
    takes_function: bool = False


FUNCTIONS: dict[str, Function] = {
    "where": Function(_where, 3, 3),
    "is_null": Function(_primitive("is_null"), 1, 1),
    "to_int": Function(_primitive("to_int"), 1, 1),
    "to_float": Function(to_float, 1, 1),
    "to_str": Function(_primitive("to_str"), 1, 1),
    "concatenate": Function(_primitive("concatenate"), 2, 2),
    "find": Function(_primitive("find"), 2, 2),
    "lower": Function(_primitive("lower"), 1, 1),
    "substring": Function(_primitive("substring"), 3, 3),
    "split": Function(_primitive("split"), 2, 2),
    "contains": Function(_one("contains", _contains), 2, 2),
    "starts_with": Function(_one("starts_with", _starts_with), 2, 2),
    "length": Function(_primitive("length"), 1, 1),
    "count": Function(_one("count", lambda items: call("length", items)), 1, 1),
    "element": Function(_primitive("element"), 2, 2),
    "range": Function(_one("range", _range), 3, 3),
    "map": Function(map_list, 2, 2, takes_function=True),
    "flatten": Function(_primitive("flatten"), 1, 1),
    "collect": Function(_collect, 1, 2, takes_function=True),
    "sum": Function(_reducer("sum", "sum_list", None), 1, 2, takes_function=True),
    "min": Function(_reducer("min", "min_list", _smaller), 1, 64, takes_function=True),
    "max": Function(_reducer("max", "max_list", _larger), 1, 64, takes_function=True),
    "absolute": Function(_one("absolute", _absolute), 1, 1),
    "floor": Function(_one("floor", _floor), 1, 1),
    "bucket": Function(_one("bucket", _bucket), 2, 2),
    "sort": Function(_one("sort", _sorted), 1, 1),
    "rotate": Function(_one("rotate", _rotated), 1, 1),
    "reverse": Function(_one("reverse", _reversed), 1, 1),
    "subsets": Function(_one("subsets", _subsets), 2, 2),
    "weighted": Function(lambda item, weight: call("weighted", item, _widened(weight)), 2, 2),
    "list": Function(_list_of, 0, 1_000_000),
}
"""Every function that a query can name, besides operators, records and field access."""


def apply(name: str, *arguments: Expr) -> Expr:
    """The function of this name on these arguments, or ExpressionError."""
    function = FUNCTIONS[name]
    if not function.least <= len(arguments) <= function.most:
        wanted = str(function.least) if function.least == function.most else f"{function.least} to {function.most}"
        raise ExpressionError(f"{name} takes {wanted} argument(s), not {len(arguments)}")
    return function.build(*arguments)


_OPERATORS: dict[str, Callable[..., Expr]] = {
    **{name: _primitive(name) for name in ("and", "not", "floor_divide", "modulo")},
    **{name: partial(arithmetic, name) for name in ("add", "subtract", "multiply")},
    **{name: partial(compare, name) for name in ("greater", "less_equal", "greater_equal")},
    "divide": divide,
    "negate": negate,
    "equal": equal,
    "not_equal": not_equal,
    "less": less,
    "less_record": less,
    "or": either,
}


def rebuild(name: str, arguments: tuple[Expr, ...], attributes: Attributes = ()) -> Expr:
    """The call of this name on these arguments, however it was written first."""
    if name == "record":
        return record(tuple(None if n is None else str(n) for n in attributes), arguments)
    if name == "field":
        return call(name, *arguments, attributes=attributes)
    if name in FUNCTIONS:
        return apply(name, *arguments)
    if name in _OPERATORS:
        wanted = 1 if name in ("not", "negate") else 2
        if len(arguments) != wanted:
            raise ExpressionError(f"{name} takes {wanted} argument(s), not {len(arguments)}")
        return _OPERATORS[name](*arguments)
    raise ExpressionError(f"there is no function {name!r}")
