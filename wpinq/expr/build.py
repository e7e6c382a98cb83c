"""Construction of typed expressions: constants, calls of primitives, derived calls, records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

from wpinq.errors import ExpressionError, nearest
from wpinq.expr import types
from wpinq.expr.definition import CallAttributes, Mistyped, list_type, primitive_named, typed
from wpinq.expr.nodes import Call, Constant, Expr, Lambda, show
from wpinq.expr.values import UnfitValue, normalize


def constant(value: object) -> Constant:
    """A public value as an expression."""
    if value is None:
        return Constant(types.NULL, None)
    for python, type_ in types.PYTHON_TYPES.items():
        if isinstance(value, python):
            return _checked(value, type_)
    if isinstance(value, Decimal):
        exponent = value.as_tuple().exponent
        if not isinstance(exponent, int) or exponent < -types.SCALE_LIMIT:
            raise ExpressionError(f"a decimal constant is finite, with at most {types.SCALE_LIMIT} decimals")
        return _checked(value, types.decimal(max(0, -exponent)))
    raise ExpressionError(
        f"a {type(value).__name__} cannot stand in an expression: use int, float, bool, str, None, Decimal, date, "
        "datetime, time, timedelta, tuples, lists, or F.record(...)"
    )


def _checked(value: object, type_: types.Type) -> Constant:
    try:
        return Constant(type_, normalize(value, type_))
    except UnfitValue as reason:
        raise ExpressionError(f"a constant cannot be {reason}") from None


def numbers(values: Sequence[object]) -> Constant | None:
    """Python ints and floats as a constant list, of floats where one is; else None."""
    kinds = set(map(type, values))
    if not kinds or not kinds <= {int, float}:
        return None
    if len(kinds) == 2:
        values = [value if type(value) is float else float(_checked(value, types.INT).value) for value in values]
    return _checked(values, types.ListOf(types.INT if kinds == {int} else types.FLOAT, bound=len(values)))


def listed(*items: Expr) -> Expr:
    """A list written in place, which is one constant where all its items are.

    So a table is one value, however long.
    """
    constants = [item.value for item in items if isinstance(item, Constant)]
    if len(constants) < len(items):
        return call("list", *items)
    try:
        return Constant(typed("list", tuple(item.type for item in items), ()), tuple(constants))
    except Mistyped:
        return call("list", *items)  # names the expression that does not fit


def call(name: str, *arguments: Expr, attributes: CallAttributes = ()) -> Expr:
    """A call of a primitive, typed; ExpressionError names the expression that does not fit."""
    arity = primitive_named(name).arity
    if arity is not None and len(arguments) != arity:
        raise ExpressionError(f"{name} takes {arity} argument(s), not {len(arguments)}")
    if name == "field" and len(attributes) != 1:
        raise ExpressionError("a field has one number")
    try:
        _check_functions(name, arguments)
        type_ = typed(name, tuple(argument.type for argument in arguments), attributes)
    except Mistyped as reason:
        shown = show(Call(types.NULL, name, arguments, attributes))
        raise ExpressionError(f"{reason}, in `{shown}`") from None
    cores = tuple(argument.core for argument in arguments)
    lowered = None
    if any(core is not argument for core, argument in zip(cores, arguments, strict=True)):
        lowered = Call(types.physical(type_), name, cores, attributes)
    return Call(type_, name, arguments, attributes, lowered)


def _check_functions(name: str, arguments: tuple[Expr, ...]) -> None:
    """Refuse functions as values, except in `map`.

    `map` takes one, of one parameter that can be any element of its list.
    """
    for position, argument in enumerate(arguments):
        if isinstance(argument, Lambda) != (name == "map" and position == 1):
            raise Mistyped(
                "a function stands where a value should" if name != "map" else "map takes a list and a function"
            )
    if name == "map" and isinstance(function := arguments[1], Lambda):
        element = list_type(arguments[0].type).element
        if [types.signature(parameter.type) for parameter in function.parameters] != [types.signature(element)]:
            raise Mistyped(f"the function must take one {element}")


def derived(name: str, rule: Callable[..., Expr], *arguments: Expr) -> Expr:
    """A call that prints under `name` and means `rule(*arguments)`."""
    plain = all(types.physical(argument.type) is argument.type for argument in arguments)
    try:
        meaning = rule(*(argument.core for argument in arguments) if plain else arguments)
    except Mistyped as reason:
        raise ExpressionError(f"{reason}, in `{show(Call(types.NULL, name, arguments))}`") from None
    return Call(meaning.type, name, arguments, (), meaning.core)


def stored(name: str, type_: types.Type, rule: Callable[..., Expr], *arguments: Expr) -> Expr:
    """A call of a logical type, or over one.

    `rule` gives the physical result from the physical arguments.
    """
    meaning = rule(*(argument.core for argument in arguments)).core
    return Call(type_.with_nullable(meaning.type.nullable), name, arguments, (), meaning)


def static_int(value: Expr, what: str, least: int = 0, most: int = types.INT_MAX) -> int:
    """A public integer written in the query, from `least` to `most`."""
    if not isinstance(value, Constant) or value.type != types.INT or not least <= value.value <= most:
        limits = f"at least {least}" if most == types.INT_MAX else f"from {least} to {most}"
        raise Mistyped(f"{what} must be an integer written in the query, {limits}")
    assert isinstance(value.value, int)
    return value.value


def static_text(value: Expr, what: str) -> str:
    """A public string written in the query."""
    if not isinstance(value, Constant) or value.type != types.STR:
        raise Mistyped(f"{what} must be a string written in the query")
    assert isinstance(value.value, str)
    return value.value


# --- records ----------------------------------------------------------------------------------------------------


def record(names: tuple[str | None, ...], values: tuple[Expr, ...]) -> Expr:
    """A record of the values, with these field names."""
    for name in names:
        if name is not None:
            types.check_field_name(name)
    return call("record", *values, attributes=names)


def field(value: Expr, index: int) -> Expr:
    """Field number `index` of a record; of a record written in place, the field itself."""
    if isinstance(value, Call) and value.name == "record":
        return value.arguments[index]
    return call("field", value, attributes=(index,))


_DATED = (types.DATE, types.TIMESTAMP)


def field_named(value: Expr, name: str) -> Expr:
    """The field of this name; the error lists the fields there are, and says which may be meant."""
    if not isinstance(value.type, types.TupleOf):
        such = "F.year(x) and F.weekday(x)" if value.type.with_nullable(False) in _DATED else "F.lower(x)"
        raise ExpressionError(
            f"`{show(value)}` is of type {value.type}, which has no field {name!r}: its functions are those of F, "
            f"such as {such} and F.cast(x, str)"
        )
    if name not in value.type.names:
        named = [n for n in value.type.names if n is not None]
        there = ", ".join(named) or "only unnamed fields: use [0], [1], …"
        near = nearest(name, named)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ExpressionError(f"`{show(value)}` has no field {name!r}; it has {there}{hint}")
    return field(value, value.type.names.index(name))


def fields(value: Expr) -> list[Expr]:
    """Every field of a record."""
    if not isinstance(value.type, types.TupleOf):
        raise Mistyped(f"expected a record, not {value.type}")
    return [field(value, i) for i in range(len(value.type.elements))]
