"""Lambdas to terms: the body of a function over the columns of the records it is applied to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce

from wpinq.columns.records import plain, type_name
from wpinq.engines.sql.dialect import Dialect, Unsupported
from wpinq.engines.sql.script import Script
from wpinq.engines.sql.terms import (
    FALSE,
    TRUE,
    RecordShape,
    Shape,
    SqlTerm,
    as_term,
    call,
    choose,
    coerce,
    function,
    is_null,
    literal,
    negated,
    null,
    order_term,
    pack,
    parameter,
    same_value,
    unpack,
)
from wpinq.expr.functions import LIST_LIMIT, TEXT_LIMIT
from wpinq.expr.nodes import Call, Constant, Expr, Lambda, Variable, walk
from wpinq.expr.types import BOOL, FLOAT, INT, NULL, STR, ListOf, TupleOf, Type, is_number, unify

# What each primitive of the expression language is in SQL terms: one rule each, null-safe whatever the types say.
#
# Null-safe, because two lambdas that differ only in what can be null are equal, and so share their terms.

PrimitiveRule = Callable[[Call, tuple[Shape, ...]], Shape]
RULES: dict[str, PrimitiveRule] = {}
"""Primitive name to rule; `tests/engines` checks that none is missing."""


def _rule(name: str) -> Callable[[PrimitiveRule], PrimitiveRule]:
    def enter(rule: PrimitiveRule) -> PrimitiveRule:
        RULES[name] = rule
        return rule

    return enter


def _as(node: Call, shapes: tuple[Shape, ...], *types: Type) -> list[SqlTerm]:
    """The arguments as terms of their types, or of one type: null finds its type."""
    types = types * len(shapes) if len(types) == 1 else types
    arguments = zip(shapes, node.arguments, types, strict=True)
    return [as_term(coerce(shape, argument.type, type_)) for shape, argument, type_ in arguments]


def _small_integer(node: Call) -> str | None:
    """The second argument as text, where it is a positive constant that leaves room below 64 bits."""
    divisor = node.arguments[1]
    if isinstance(divisor, Constant) and divisor.type == INT and 0 < divisor.value < 2**62:
        return str(divisor.value)
    return None


def _arithmetic(name: str) -> PrimitiveRule:
    def rule(node: Call, shapes: tuple[Shape, ...]) -> Shape:
        left, right = _as(node, shapes, node.type)
        kind = "float" if node.type == FLOAT else "int"
        return call(f"fit_{kind}", call(f"{kind}_{name}", left, right))

    return rule


def _plain(template: str, type_: Type | None = None) -> PrimitiveRule:
    """A template of the arguments, all of one type where it is named."""
    return lambda node, shapes: call(template, *(map(as_term, shapes) if type_ is None else _as(node, shapes, type_)))


def _conversion(wanted: Type, templates: Mapping[Type, tuple[str, ...]]) -> PrimitiveRule:
    """To a type: by templates, the inner one first, from each other type."""

    def rule(node: Call, shapes: tuple[Shape, ...]) -> Shape:
        given = node.arguments[0].type
        if given in (wanted, NULL):
            return coerce(shapes[0], given, wanted)
        return reduce(lambda term, template: call(template, term), templates[given], as_term(shapes[0]))

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
    "concatenate": lambda node, shapes: call("concatenate", *_as(node, shapes, STR), literal(str(TEXT_LIMIT))),
    "flatten": lambda node, shapes: call("flatten", as_term(shapes[0]), literal(str(LIST_LIMIT))),
    "length": lambda node, shapes: call(
        f"{'text' if node.arguments[0].type == STR else 'list'}_length", as_term(shapes[0])
    ),
    "sum_list": lambda node, shapes: call(f"{'float' if node.type == FLOAT else 'int'}_list_sum", as_term(shapes[0])),
    "is_null": lambda node, shapes: is_null(shapes[0]),
    "record": lambda node, shapes: RecordShape(None, shapes),
}


@_rule("divide")
def _divide(node: Call, shapes: tuple[Shape, ...]) -> Shape:
    left, right = _as(node, shapes, FLOAT)
    by = node.arguments[1]
    if left.text == "int_to_float" and isinstance(by, Constant) and is_number(by.type) and by.value >= 1:
        return call("quotient", left, right)  # finite, and no -0.0
    return call("fit_float", call("divide_float", left, right))


@_rule("floor_divide")
def _floor_divide(node: Call, shapes: tuple[Shape, ...]) -> Shape:
    left, right = _as(node, shapes, INT)
    by = _small_integer(node)
    if by is not None:
        return call("floor_divide_by", left, literal(by))
    return call("fit_int", _floor_quotient(left, right))


def _floor_quotient(left: SqlTerm, right: SqlTerm) -> SqlTerm:
    return call("floor_divide_128", call("signed_dividend", left, right), call("divisor", right))


@_rule("modulo")
def _modulo(node: Call, shapes: tuple[Shape, ...]) -> Shape:
    left, right = _as(node, shapes, INT)
    by = _small_integer(node)
    if by is not None:
        return call("modulo_by", left, literal(by))
    whole = call("int_multiply", _floor_quotient(left, right), right)
    return call("fit_int", call("int_subtract", left, whole))


@_rule("equal")
def _equal(node: Call, shapes: tuple[Shape, ...]) -> Shape:
    left, right = node.arguments
    common = unify(left.type, right.type)
    assert common is not None
    if NULL in (left.type, right.type):
        return is_null(shapes[0] if right.type == NULL else shapes[1])
    return same_value(coerce(shapes[0], left.type, common), coerce(shapes[1], right.type, common))


@_rule("less")
def _less(node: Call, shapes: tuple[Shape, ...]) -> Shape:
    left, right = node.arguments
    common = unify(left.type, right.type)
    assert common is not None
    if common == NULL:
        return literal("CAST(NULL AS BOOLEAN)")
    return call("less", *_as(node, shapes, common))


@_rule("where")
def _where(node: Call, shapes: tuple[Shape, ...]) -> Shape:
    condition, yes, no = node.arguments
    when = as_term(coerce(shapes[0], condition.type, BOOL))
    chosen = coerce(shapes[1], yes.type, node.type), coerce(shapes[2], no.type, node.type)
    # networks that sort: each step of them would be written out three times in the next
    if node.type == INT and when.text == "less" and not when.nullable and set(chosen) == set(when.arguments):
        return call("least" if chosen == when.arguments else "greatest", *when.arguments)
    return choose(when, *chosen)


@_rule("not")
def _not(node: Call, shapes: tuple[Shape, ...]) -> Shape:
    """Not (a and b) is (not a) or (not b), for null too. Of that a database computes b only where a leaves it open."""
    (given,) = _as(node, shapes, BOOL)
    return call("or", *map(negated, given.arguments)) if given.text == "and" else negated(given)


@_rule("substring")
def _substring(node: Call, shapes: tuple[Shape, ...]) -> Shape:
    text, start, length = _as(node, shapes, STR, INT, INT)
    return call("text_between", text, call("text_start", start), call("text_stop", start, length), start, length)


@_rule("weighted")
def _weighted(node: Call, shapes: tuple[Shape, ...]) -> Shape:
    return RecordShape(None, (shapes[0], coerce(shapes[1], node.arguments[1].type, FLOAT)))


@_rule("field")
def _field(node: Call, shapes: tuple[Shape, ...]) -> Shape:
    (record,) = shapes
    (index,) = node.attributes
    assert isinstance(record, RecordShape)
    assert isinstance(index, int)
    part = record.fields[index]
    if isinstance(part, RecordShape) and part.valid is None and record.valid is not None:
        return RecordShape(record.valid, part.fields)
    return part


@_rule("list")
def _list(node: Call, shapes: tuple[Shape, ...]) -> Shape:
    assert isinstance(node.type, ListOf)
    element = node.type.element
    pairs = zip(shapes, node.arguments, strict=True)
    items = [pack(coerce(shape, argument.type, element)) for shape, argument in pairs]
    return call(f"cast:{type_name(node.type)}", call(f"list:{len(items)}", *items))


@_rule("element")
def _element(node: Call, shapes: tuple[Shape, ...]) -> Shape:
    held = node.arguments[0]
    assert isinstance(held.type, ListOf)
    items, index = _as(node, shapes, held.type, INT)
    found = call("element", items, index)
    if items.kind == "literal":  # a table, which may be long: written once
        assert isinstance(held, Constant)
        found = call("table_element", items, index, literal(str(len(held.value or ()))))
    return unpack(found, held.type.element)


@_rule("range_list")
def _range_list(node: Call, shapes: tuple[Shape, ...]) -> Shape:
    start, stop = _as(node, shapes, INT)
    (limit,) = node.attributes
    if limit is not None:
        stop = call("range_stop", start, stop, literal(str(limit)))
    return call("range", start, stop)


@_rule("map")
def _map(node: Call, shapes: tuple[Shape, ...]) -> Shape:
    items, body = shapes
    inner = node.arguments[1]
    assert isinstance(inner, Lambda)
    return call("map", as_term(items), function(variable_name(inner.level), pack(body)))


@_rule("sort_list")
def _sort_list(node: Call, shapes: tuple[Shape, ...]) -> Shape:
    assert isinstance(node.type, ListOf)
    return canonical(as_term(shapes[0]), node.type.element)


def canonical(items: SqlTerm, element: Type) -> SqlTerm:
    """A list in canonical order: as the database sorts, where it sorts so, else by a key beside each element."""
    if not isinstance(plain(element), (ListOf, TupleOf)):
        return call("sort", items)
    inside, sorted_ = parameter("k"), parameter("p")
    present = call("is_present", inside)
    pair = call("struct:3", present, order_term(inside, element), inside)
    pairs = call("sort", call("map", items, function("k", pair)))
    return call("map", pairs, function("p", call("struct_field:2", sorted_)))


def variable_name(level: int) -> str:
    """The name of the parameter of the list function at a level."""
    return f"v{level}"


def constant(value: object, type_: Type, dialect: Dialect) -> Shape:
    """A constant as a value."""
    if value is None:
        return null(type_)
    if isinstance(type_, TupleOf):
        assert isinstance(value, tuple)
        parts = tuple(constant(item, part, dialect) for item, part in zip(value, type_.elements, strict=True))
        return RecordShape(TRUE if type_.nullable else None, parts)
    name = type_name(type_)
    if isinstance(type_, ListOf):
        assert isinstance(value, tuple)
        if is_number(type_.element) and None not in value:
            return literal(dialect.table([repr(item) for item in value], name))
        items = [pack(constant(item, type_.element, dialect)) for item in value]
        return call(f"cast:{name}", call(f"list:{len(items)}", *items))
    if isinstance(value, str):
        return literal(dialect.text_literal(value))
    if isinstance(value, bool):
        return TRUE if value else FALSE
    return literal(f"CAST({value!r} AS {name})")


def lower(script: Script, lambda_: Lambda, *arguments: Shape) -> Shape:
    """The value of a function on arguments, as terms. Shared parts are lowered once, at any depth.

    Every term of a parameter of an inner lambda counts as able to be null: see `primitives`.
    """
    core = lambda_.core
    bound = {variable.level: shape for variable, shape in zip(core.parameters, arguments, strict=True)}
    return lower_with(core, bound, {}, script.emitter.dialect)


def lower_with(core: Lambda, bound: Mapping[int, Shape], known: Mapping[bytes, Shape], dialect: Dialect) -> Shape:
    """The value of a function whose variables are bound by level; what `known` has, by digest, is taken from there."""
    done: dict[bytes, Shape] = {}
    for node in walk(core.body):
        done[node.digest] = known[node.digest] if node.digest in known else _lower(node, done, bound, dialect)
    return done[core.body.digest]


def _lower(node: Expr, done: dict[bytes, Shape], bound: Mapping[int, Shape], dialect: Dialect) -> Shape:
    if isinstance(node, Constant):
        return constant(node.value, node.type, dialect)
    if isinstance(node, Variable):
        held = bound.get(node.level)
        return unpack(parameter(variable_name(node.level)), node.type) if held is None else held
    if isinstance(node, Lambda):
        return done[node.body.digest]
    assert isinstance(node, Call)
    rule = RULES.get(node.name)
    if rule is None:
        raise Unsupported(f"the primitive {node.name!r} has no rule in SQL")
    return rule(node, tuple(done[argument.digest] for argument in node.arguments))
