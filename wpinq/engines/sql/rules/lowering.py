"""Primitives and functions as SQL terms: one rule a primitive, null-safe for all types.

Two lambdas that differ only in what can be null are equal, and so share their terms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce

from wpinq.columns.records import plain, type_name
from wpinq.engines.sql import terms as t
from wpinq.engines.sql.dialect import Dialect, Unsupported
from wpinq.engines.sql.script import Script
from wpinq.expr.functions import LIST_LIMIT, TEXT_LIMIT
from wpinq.expr.nodes import Call, Constant, Expr, Lambda, Variable, walk
from wpinq.expr.types import BOOL, FLOAT, INT, NULL, STR, ListOf, TupleOf, Type, is_number, unify

PrimitiveRule = Callable[[Call, tuple[t.Shape, ...]], t.Shape]
#: Primitive name to rule; `tests/engines` checks that none is missing.
RULES: dict[str, PrimitiveRule] = {}


def _rule(name: str) -> Callable[[PrimitiveRule], PrimitiveRule]:
    def enter(rule: PrimitiveRule) -> PrimitiveRule:
        RULES[name] = rule
        return rule

    return enter


def _as(node: Call, shapes: tuple[t.Shape, ...], *types: Type) -> list[t.SqlTerm]:
    """The arguments as terms of their types, or of one type: null finds its type."""
    types = types * len(shapes) if len(types) == 1 else types
    arguments = zip(shapes, node.arguments, types, strict=True)
    return [t.as_term(t.coerce(shape, argument.type, type_)) for shape, argument, type_ in arguments]


def _small_integer(node: Call) -> str | None:
    """The second argument as text, where it is a positive constant with room below 64 bits."""
    divisor = node.arguments[1]
    if isinstance(divisor, Constant) and divisor.type == INT and 0 < divisor.value < 2**62:
        return str(divisor.value)
    return None


#: A number below it is less than half of the last place of the largest float: a sum with it is finite.
MODERATE = 2.0**900


def _arithmetic(name: str) -> PrimitiveRule:
    def rule(node: Call, shapes: tuple[t.Shape, ...]) -> t.Shape:
        left, right = _as(node, shapes, node.type)
        kind = "float" if node.type == FLOAT else "int"
        found = t.call(f"{kind}_{name}", left, right)
        numbers = [each.value for each in node.arguments if isinstance(each, Constant) and each.value is not None]
        is_finite = kind == "float" and name != "multiply" and any(abs(number) < MODERATE for number in numbers)
        return found if is_finite else t.call(f"fit_{kind}", found)  # no number is -0.0, nor is then a sum of them

    return rule


def _plain(template: str, type_: Type | None = None) -> PrimitiveRule:
    """A template of the arguments, all of one type where it is named."""
    return lambda node, given: t.call(template, *(map(t.as_term, given) if type_ is None else _as(node, given, type_)))


def _conversion(wanted: Type, templates: Mapping[Type, tuple[str, ...]]) -> PrimitiveRule:
    """To a type: by templates, the inner one first, from each other type."""

    def rule(node: Call, shapes: tuple[t.Shape, ...]) -> t.Shape:
        given = node.arguments[0].type
        if given in (wanted, NULL):
            return t.coerce(shapes[0], given, wanted)
        return reduce(lambda term, template: t.call(template, term), templates[given], t.as_term(shapes[0]))

    return rule


RULES |= {name: _arithmetic(name) for name in ("add", "subtract", "multiply")}
RULES["and"] = _plain("and", BOOL)
RULES |= {name: _plain(name, STR) for name in ("find", "lower", "split")}
RULES |= {
    "to_int": _conversion(INT, {FLOAT: ("float_to_int",), BOOL: ("bool_to_int",), STR: ("str_to_int",)}),
    "to_float": _conversion(FLOAT, {INT: ("int_to_float",), STR: ("str_to_float", "fit_float")}),
    "to_str": _conversion(STR, {INT: ("to_text",), BOOL: ("to_text",)}),
    "min_list": _plain("list_min"),
    "max_list": _plain("list_max"),
    "concatenate": lambda node, shapes: t.call("concatenate", *_as(node, shapes, STR), t.literal(str(TEXT_LIMIT))),
    "length": lambda node, shapes: t.call(
        f"{'text' if node.arguments[0].type == STR else 'list'}_length", t.as_term(shapes[0])
    ),
    "is_null": lambda node, shapes: t.is_null(shapes[0]),
    "record": lambda node, shapes: t.RecordShape(None, shapes),
}


@_rule("sum_list")
def _sum_list(node: Call, shapes: tuple[t.Shape, ...]) -> t.Shape:
    """The sum, null where there is no list.

    Whether there is one is said of the list whose elements are mapped or filtered. A database computes both terms by
    themselves, and does so again at each level of lists in lists.
    """
    items = held = t.as_term(shapes[0])
    while held.text in ("map", "filter", "first"):
        held = held.arguments[0]
    there = t.call("is_present", held) if held.nullable else t.TRUE
    return t.call("float_list_sum", items) if node.type == FLOAT else t.call("int_list_sum", items, there)


@_rule("flatten")
def _flatten(node: Call, shapes: tuple[t.Shape, ...]) -> t.Shape:
    """All elements; a filter, where each list is of the one element that it comes from, or null."""
    items, limit = t.as_term(shapes[0]), t.literal(str(LIST_LIMIT))
    function = items.arguments[1].arguments[0] if items.text == "map" else items
    if function.text == "where" and isinstance(node.type, ListOf):
        condition, name = function.arguments[0], items.arguments[1].text
        one = t.call("list:1", t.pack(t.unpack(t.parameter(name), node.type.element)))
        one = t.call(f"cast:{type_name(node.type)}", one)
        if function == t.choose(condition, one, t.null(node.type)):
            return t.call("first", t.call("filter", items.arguments[0], t.function(name, condition)), limit)
    return t.call("flatten", items, limit)


@_rule("divide")
def _divide(node: Call, shapes: tuple[t.Shape, ...]) -> t.Shape:
    left, right = _as(node, shapes, FLOAT)
    by = node.arguments[1]
    if isinstance(by, Constant) and is_number(by.type) and by.value >= 1:  # finite, and of an integer no -0.0
        found = t.call("quotient", left, right)
        return found if left.text == "int_to_float" else t.call("float_add", found, t.number(0.0))
    return t.call("fit_float", t.call("divide_float", left, right))


def _division(by_constant: str, whole: Callable[[t.SqlTerm, t.SqlTerm, t.SqlTerm], t.SqlTerm]) -> PrimitiveRule:
    """A division by a small constant by a template, else from both numbers and their quotient."""

    def rule(node: Call, shapes: tuple[t.Shape, ...]) -> t.Shape:
        left, right = _as(node, shapes, INT)
        by = _small_integer(node)
        if by is not None:
            return t.call(by_constant, left, t.literal(by))
        quotient = t.call("floor_divide_128", t.call("signed_dividend", left, right), t.call("divisor", right))
        return t.call("fit_int", whole(left, right, quotient))

    return rule


RULES["floor_divide"] = _division("floor_divide_by", lambda left, right, quotient: quotient)
RULES["modulo"] = _division(
    "modulo_by", lambda left, right, quotient: t.call("int_subtract", left, t.call("int_multiply", quotient, right))
)


@_rule("equal")
def _equal(node: Call, shapes: tuple[t.Shape, ...]) -> t.Shape:
    left, right = node.arguments
    common = unify(left.type, right.type)
    assert common is not None
    if NULL in (left.type, right.type):
        return t.is_null(shapes[0] if right.type == NULL else shapes[1])
    return t.same_value(t.coerce(shapes[0], left.type, common), t.coerce(shapes[1], right.type, common))


@_rule("less")
def _less(node: Call, shapes: tuple[t.Shape, ...]) -> t.Shape:
    left, right = node.arguments
    common = unify(left.type, right.type)
    assert common is not None
    if common == NULL:
        return t.literal("CAST(NULL AS BOOLEAN)")
    return t.call("less", *_as(node, shapes, common))


@_rule("where")
def _where(node: Call, shapes: tuple[t.Shape, ...]) -> t.Shape:
    condition, yes, no = node.arguments
    when = t.as_term(t.coerce(shapes[0], condition.type, BOOL))
    chosen = t.coerce(shapes[1], yes.type, node.type), t.coerce(shapes[2], no.type, node.type)
    # networks that sort: each step of them would be written out three times in the next
    if node.type == INT and when.text == "less" and not when.nullable and set(chosen) == set(when.arguments):
        return t.call("least" if chosen == when.arguments else "greatest", *when.arguments)
    return t.choose(when, *chosen)


@_rule("not")
def _not(node: Call, shapes: tuple[t.Shape, ...]) -> t.Shape:
    """Not (a and b) is (not a) or (not b), for null too.

    Of that a database computes b only where a leaves it open.
    """
    (given,) = _as(node, shapes, BOOL)
    return t.call("or", *map(t.negated, given.arguments)) if given.text == "and" else t.negated(given)


@_rule("substring")
def _substring(node: Call, shapes: tuple[t.Shape, ...]) -> t.Shape:
    text, start, length = _as(node, shapes, STR, INT, INT)
    return t.call("text_between", text, t.call("text_start", start), t.call("text_stop", start, length), start, length)


@_rule("weighted")
def _weighted(node: Call, shapes: tuple[t.Shape, ...]) -> t.Shape:
    return t.RecordShape(None, (shapes[0], t.coerce(shapes[1], node.arguments[1].type, FLOAT)))


@_rule("field")
def _field(node: Call, shapes: tuple[t.Shape, ...]) -> t.Shape:
    (record,) = shapes
    (index,) = node.attributes
    assert isinstance(record, t.RecordShape) and isinstance(index, int)
    part = record.fields[index]
    if isinstance(part, t.RecordShape) and part.valid is None and record.valid is not None:
        return t.RecordShape(record.valid, part.fields)
    return part


@_rule("list")
def _list(node: Call, shapes: tuple[t.Shape, ...]) -> t.Shape:
    assert isinstance(node.type, ListOf)
    element = node.type.element
    pairs = zip(shapes, node.arguments, strict=True)
    items = [t.pack(t.coerce(shape, argument.type, element)) for shape, argument in pairs]
    return t.call(f"cast:{type_name(node.type)}", t.call(f"list:{len(items)}", *items))


@_rule("element")
def _element(node: Call, shapes: tuple[t.Shape, ...]) -> t.Shape:
    held = node.arguments[0]
    assert isinstance(held.type, ListOf)
    items, index = _as(node, shapes, held.type, INT)
    found = t.call("element", items, index)
    if items.kind == "literal":  # a table, which may be long: written once
        assert isinstance(held, Constant)
        found = t.call("table_element", items, index, t.literal(str(len(held.value or ()))))
    return t.unpack(found, held.type.element)


@_rule("range_list")
def _range_list(node: Call, shapes: tuple[t.Shape, ...]) -> t.Shape:
    start, stop = _as(node, shapes, INT)
    (limit,) = node.attributes
    if limit is not None:
        stop = t.call("range_stop", start, stop, t.literal(str(limit)))
    return t.call("range", start, stop)


@_rule("map")
def _map(node: Call, shapes: tuple[t.Shape, ...]) -> t.Shape:
    items, body = shapes
    inner = node.arguments[1]
    assert isinstance(inner, Lambda)
    return t.call("map", t.as_term(items), t.function(variable_name(inner.level), t.pack(body)))


@_rule("sort_list")
def _sort_list(node: Call, shapes: tuple[t.Shape, ...]) -> t.Shape:
    assert isinstance(node.type, ListOf)
    return canonical(t.as_term(shapes[0]), node.type.element)


def canonical(items: t.SqlTerm, element: Type) -> t.SqlTerm:
    """A list in canonical order, by the database's sort where that agrees.

    Else the list is sorted by a key beside each element.
    """
    if not isinstance(plain(element), (ListOf, TupleOf)):
        return t.call("sort", items)
    inside, sorted_ = t.parameter("k"), t.parameter("p")
    present = t.call("is_present", inside)
    pair = t.call("struct:3", present, t.order_term(inside, element), inside)
    pairs = t.call("sort", t.call("map", items, t.function("k", pair)))
    return t.call("map", pairs, t.function("p", t.call("struct_field:2", sorted_)))


def variable_name(level: int) -> str:
    """The name of the parameter of the list function at a level."""
    return f"v{level}"


def constant(value: object, type_: Type, dialect: Dialect) -> t.Shape:
    """A constant as a value."""
    if value is None:
        return t.null(type_)
    if isinstance(type_, TupleOf):
        assert isinstance(value, tuple)
        parts = tuple(constant(item, part, dialect) for item, part in zip(value, type_.elements, strict=True))
        return t.RecordShape(t.TRUE if type_.nullable else None, parts)
    name = type_name(type_)
    if isinstance(type_, ListOf):
        assert isinstance(value, tuple)
        if is_number(type_.element) and None not in value:
            return t.literal(dialect.table([repr(item) for item in value], name))
        items = [t.pack(constant(item, type_.element, dialect)) for item in value]
        return t.call(f"cast:{name}", t.call(f"list:{len(items)}", *items))
    if isinstance(value, str):
        return t.literal(dialect.text_literal(value))
    if isinstance(value, bool):
        return t.TRUE if value else t.FALSE
    return t.literal(f"CAST({value!r} AS {name})")


def lower(script: Script, lambda_: Lambda, *arguments: t.Shape) -> t.Shape:
    """The value of a function on arguments, as terms.

    Shared parts are lowered once, at any depth. Every term of a parameter of an inner lambda counts as able to be null:
    rules are null-safe.
    """
    core = lambda_.core
    bound = {variable.level: shape for variable, shape in zip(core.parameters, arguments, strict=True)}
    return lower_with(core, bound, {}, script.emitter.dialect)


def lower_with(core: Lambda, bound: Mapping[int, t.Shape], known: Mapping[bytes, t.Shape], dialect: Dialect) -> t.Shape:
    """The value of a function whose variables are bound by level.

    Expressions in `known`, by digest, are taken from there.
    """
    done: dict[bytes, t.Shape] = {}
    for node in walk(core.body):
        done[node.digest] = known[node.digest] if node.digest in known else _lower(node, done, bound, dialect)
    return done[core.body.digest]


def _lower(node: Expr, done: dict[bytes, t.Shape], bound: Mapping[int, t.Shape], dialect: Dialect) -> t.Shape:
    if isinstance(node, Constant):
        return constant(node.value, node.type, dialect)
    if isinstance(node, Variable):
        held = bound.get(node.level)
        return t.unpack(t.parameter(variable_name(node.level)), node.type) if held is None else held
    if isinstance(node, Lambda):
        return done[node.body.digest]
    assert isinstance(node, Call)
    rule = RULES.get(node.name)
    if rule is None:
        raise Unsupported(f"the primitive {node.name!r} has no rule in SQL")
    return rule(node, tuple(done[argument.digest] for argument in node.arguments))
