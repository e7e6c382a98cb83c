"""Building typed expressions: constants, calls of primitives, what is derived from these, operators, records."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wpinq.errors import ExpressionError
from wpinq.expr.definition import Attributes, Mistyped, list_type, primitive_named, typed
from wpinq.expr.nodes import Call, Constant, Expr, Lambda
from wpinq.expr.printing import show
from wpinq.expr.types import (
    BOOL,
    FLOAT,
    INT,
    NULL,
    STR,
    ListOf,
    Scalar,
    TupleOf,
    Type,
    check_field_name,
    is_number,
    signature,
    unify,
)
from wpinq.expr.values import UnfitValue, normalize


def constant(value: object) -> Constant:
    """A public value as an expression."""
    if value is None:
        return Constant(NULL, None)
    for python, type_ in ((bool, BOOL), (int, INT), (float, FLOAT), (str, STR)):
        if isinstance(value, python):
            return _checked(value, type_)
    raise ExpressionError(
        f"a {type(value).__name__} cannot stand in an expression: use int, float, bool, str, None, "
        "tuples, lists, or wp.record(...)"
    )


def _checked(value: object, type_: Type) -> Constant:
    try:
        return Constant(type_, normalize(value, type_))
    except UnfitValue as reason:
        raise ExpressionError(f"a constant cannot be {reason}") from None


def numbers(values: Sequence[object]) -> Constant | None:
    """A row of Python ints and floats as a constant list, of floats where one is; None for any other sequence."""
    kinds = set(map(type, values))
    if not kinds or not kinds <= {int, float}:
        return None
    if len(kinds) == 2:
        values = [value if type(value) is float else float(_checked(value, INT).value) for value in values]
    return _checked(values, ListOf(INT if kinds == {int} else FLOAT, bound=len(values)))


def listed(*items: Expr) -> Expr:
    """A list written in place. Of constants it is a constant: a table is one value, however long."""
    constants = [item.value for item in items if isinstance(item, Constant)]
    if len(constants) < len(items):
        return call("list", *items)
    try:
        return Constant(typed("list", tuple(item.type for item in items), ()), tuple(constants))
    except Mistyped:
        return call("list", *items)  # names the expression that does not fit


def call(name: str, *arguments: Expr, attributes: Attributes = ()) -> Expr:
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
        shown = show(Call(NULL, name, arguments, attributes))
        raise ExpressionError(f"{reason}, in `{shown}`") from None
    cores = tuple(argument.core for argument in arguments)
    lowered = None
    if any(core is not argument for core, argument in zip(cores, arguments, strict=True)):
        lowered = Call(type_, name, cores, attributes)
    return Call(type_, name, arguments, attributes, lowered)


def _check_functions(name: str, arguments: tuple[Expr, ...]) -> None:
    """Functions are no values: only `map` takes one, of one parameter that can be any element of its list."""
    for position, argument in enumerate(arguments):
        if isinstance(argument, Lambda) != (name == "map" and position == 1):
            raise Mistyped(
                "a function stands where a value should" if name != "map" else "map takes a list and a function"
            )
    if name == "map" and isinstance(function := arguments[1], Lambda):
        element = list_type(arguments[0].type).element
        if [signature(parameter.type) for parameter in function.parameters] != [signature(element)]:
            raise Mistyped(f"the function must take one {element}")


def derived(name: str, rule: Callable[..., Expr], *arguments: Expr) -> Expr:
    """A call that prints under `name` and means `rule(*arguments)`."""
    try:
        meaning = rule(*(argument.core for argument in arguments)).core
    except Mistyped as reason:
        raise ExpressionError(f"{reason}, in `{show(Call(NULL, name, arguments))}`") from None
    return Call(meaning.type, name, arguments, (), meaning)


# --- operators --------------------------------------------------------------------------------------------------


def promote(left: Expr, right: Expr) -> tuple[Expr, Expr]:
    """Both sides as float when one is float and the other int: the only implicit conversion there is."""
    if left.type == INT and right.type == FLOAT:
        return to_float(left), right
    if left.type == FLOAT and right.type == INT:
        return left, to_float(right)
    return left, right


def to_float(value: Expr) -> Expr:
    """The number as a float."""
    if isinstance(value, Constant) and value.type == INT:
        return constant(float(value.value))
    return value if value.type == FLOAT else call("to_float", value)


def widened(value: Expr) -> Expr:
    """An int as a float; all else as it is."""
    return to_float(value) if value.type == INT else value


def arithmetic(name: str, left: Expr, right: Expr) -> Expr:
    """`+ - *` on numbers (an int meets a float as a float), and `+` on strings."""
    if name == "add" and STR in (left.type, right.type):
        return call("concatenate", left, right)
    return call(name, *promote(left, right))


def divide(left: Expr, right: Expr) -> Expr:
    """`/`: always a float; null on division by zero."""
    for side in (left, right):
        if not (is_number(side.type) or side.type == NULL):
            raise ExpressionError(f"/ takes numbers, not {side.type}, in `{show(side)}`")
    return call("divide", to_float(left), to_float(right))


def negate(value: Expr) -> Expr:
    """`-x`, as `0 - x`; of a literal, the literal."""
    if isinstance(value, Constant) and is_number(value.type):
        return constant(-value.value)
    zero = constant(0.0) if value.type == FLOAT else constant(0)
    return derived("negate", lambda x: call("subtract", zero, x), value)


def equal(left: Expr, right: Expr) -> Expr:
    """`==`: null equals itself, so the result is never null."""
    return call("equal", *promote(left, right))


def not_equal(left: Expr, right: Expr) -> Expr:
    """`!=`."""
    return derived("not_equal", lambda a, b: call("not", call("equal", a, b)), *promote(left, right))


def less(left: Expr, right: Expr) -> Expr:
    """`<`: null when a side is null; records compare field by field in canonical order."""
    left, right = promote(left, right)
    if isinstance(left.type, TupleOf) and isinstance(right.type, TupleOf):
        return derived("less_record", precedes, left, right)
    return call("less", left, right)


def compare(name: str, left: Expr, right: Expr) -> Expr:
    """`> <= >=`, said with `<` and not."""
    rules: dict[str, Callable[[Expr, Expr], Expr]] = {
        "greater": lambda a, b: less(b, a),
        "less_equal": lambda a, b: call("not", less(b, a)),
        "greater_equal": lambda a, b: call("not", less(a, b)),
    }
    return derived(name, rules[name], *promote(left, right))


def either(left: Expr, right: Expr) -> Expr:
    """`|`, by De Morgan, which holds for null too."""
    return derived("or", lambda a, b: call("not", call("and", call("not", a), call("not", b))), left, right)


def precedes(left: Expr, right: Expr) -> Expr:
    """Whether `left` comes before `right` in canonical order: null first, records field by field."""
    if isinstance(left.type, TupleOf) and isinstance(right.type, TupleOf):
        result = _precedes_by_field(left, right)
    elif isinstance(left.type, Scalar):
        result = call("less", left, right)
    else:
        raise Mistyped(f"cannot order {left.type}")
    if left.type.nullable or right.type.nullable:
        result = call("where", call("is_null", right), constant(False), result)
        result = call("where", call("is_null", left), call("not", call("is_null", right)), result)
    return result


def null_if_any(values: tuple[Expr, ...], result: Expr) -> Expr:
    """The result, or null where one of the values is."""
    for value in values:
        if value.type.nullable:
            result = call("where", call("is_null", value), constant(None), result)
    return result


def _precedes_by_field(left: Expr, right: Expr) -> Expr:
    pairs = list(zip(fields(left), fields(right), strict=False))
    if unify(left.type, right.type) is None or not pairs:
        raise Mistyped(f"cannot order {left.type} and {right.type}")
    result = precedes(*pairs[-1])
    for a, b in reversed(pairs[:-1]):
        result = call("where", call("equal", a, b), result, precedes(a, b))
    return result


# --- records ----------------------------------------------------------------------------------------------------


def record(names: tuple[str | None, ...], values: tuple[Expr, ...]) -> Expr:
    """A record of the values, with these field names."""
    for name in names:
        if name is not None:
            check_field_name(name)
    return call("record", *values, attributes=names)


def field(value: Expr, index: int) -> Expr:
    """Field number `index` of a record; of a record written in place, the field itself."""
    if isinstance(value, Call) and value.name == "record":
        return value.arguments[index]
    return call("field", value, attributes=(index,))


def field_named(value: Expr, name: str) -> Expr:
    """The field of this name; the error lists the fields there are."""
    if not isinstance(value.type, TupleOf):
        raise ExpressionError(f"`{show(value)}` is of type {value.type}, which has no field {name!r}")
    if name not in value.type.names:
        there = ", ".join(n for n in value.type.names if n is not None) or "only unnamed fields: use [0], [1], …"
        raise ExpressionError(f"`{show(value)}` has no field {name!r}; it has {there}")
    return field(value, value.type.names.index(name))


def fields(value: Expr) -> list[Expr]:
    """Every field of a record."""
    if not isinstance(value.type, TupleOf):
        raise Mistyped(f"expected a record, not {value.type}")
    return [field(value, i) for i in range(len(value.type.elements))]
