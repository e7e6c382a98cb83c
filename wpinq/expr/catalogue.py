"""The functions that queries can name, in Python and in text, and the infix operators.

Each takes expressions and gives an expression. Functions enter themselves where they are defined, with `declare`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import ModuleType

from wpinq.errors import ExpressionError
from wpinq.expr import decimals, temporal, types
from wpinq.expr.build import call, constant, derived, fields, record
from wpinq.expr.definition import CallAttributes, Mistyped
from wpinq.expr.nodes import Constant, Expr, show
from wpinq.expr.values import UnfitValue, fit

# What stands between two values or before one: arithmetic, comparisons, logic, for every type that has them.


def promote(*values: Expr) -> tuple[Expr, ...]:
    """The values as one type, as far as that is meant without saying so.

    An int becomes a float with a float and a decimal with a decimal; decimals get the most decimals of all; a string
    written in the query is a category with a category.
    """
    if any(isinstance(value.type, types.DecimalOf) for value in values):
        return decimals.aligned(*values)
    return _plain(values)


def _met(left: Expr, right: Expr) -> tuple[Expr, Expr]:
    """Two values to be compared: decimals keep their scales, for no comparison overflows."""
    if isinstance(left.type, types.DecimalOf) or isinstance(right.type, types.DecimalOf):
        return decimals.met(left, right)
    one, other = _plain((left, right))
    return one, other


def _plain(values: tuple[Expr, ...]) -> tuple[Expr, ...]:
    category = next((value.type for value in values if isinstance(value.type, types.CategoryOf)), None)
    if category is not None:
        return tuple(_categorized(value, category) for value in values)
    return tuple(map(widened, values)) if any(value.type == types.FLOAT for value in values) else values


def _categorized(value: Expr, category: types.CategoryOf) -> Expr:
    """A string of the query as the category that it is; all else as it is."""
    if not (isinstance(value, Constant) and value.type == types.STR):
        return value
    try:
        return Constant(category, fit(value.value, category))
    except UnfitValue:
        raise ExpressionError(f"`{show(value)}` is none of the values of {category}") from None


def to_float(value: Expr) -> Expr:
    """The number as a float."""
    if isinstance(value.type, types.DecimalOf):
        return decimals.to_float(value)
    if isinstance(value, Constant) and value.type == types.INT:
        return constant(float(value.value))
    return value if value.type == types.FLOAT else call("to_float", value)


def widened(value: Expr) -> Expr:
    """An int as a float; all else as it is."""
    return to_float(value) if value.type == types.INT else value


def arithmetic(name: str, left: Expr, right: Expr) -> Expr:
    """`+ - *` on numbers, decimals, dates and durations, and `+` on strings.

    An int with a float becomes a float.
    """
    kind = _kind(left, right)
    if kind is decimals:
        return decimals.arithmetic(name, left, right)
    if kind is temporal:
        return temporal.arithmetic(name, left, right)
    if name == "add" and types.STR in (left.type, right.type):
        for side in (left, right):
            if side.type not in (types.STR, types.NULL):
                raise ExpressionError(
                    f"text is added to text, and `{show(side)}` is of type {side.type}, "
                    f"in `{show(left)} + {show(right)}`: F.cast(x, str) is its text"
                )
        return call("concatenate", left, right)
    return call(name, *promote(left, right))


def _kind(left: Expr, right: Expr) -> ModuleType | None:
    """The arithmetic that two values call for, where it is not that of ints, floats and strings."""
    for side in (left, right):
        if isinstance(side.type, types.CategoryOf):
            raise ExpressionError(f"a category has no arithmetic: take its text, F.cast(x, str), in `{show(side)}`")
    if any(side.type in temporal.MOMENTS for side in (left, right)):
        return temporal
    return decimals if any(isinstance(side.type, types.DecimalOf) for side in (left, right)) else None


def _of_kind(operation: str, left: Expr, right: Expr) -> Expr | None:
    """An operation in the arithmetic of two values; None where that is of numbers."""
    kind = _kind(left, right)
    found: Expr | None = None if kind is None else getattr(kind, operation)(left, right)
    return found


def divide(left: Expr, right: Expr) -> Expr:
    """`/`: always a float; null on division by zero."""
    kind = _kind(left, right)
    if kind is temporal:
        raise temporal.refused("divide", left, right)
    if kind is decimals:
        raise ExpressionError(
            "how many decimals has a quotient of decimals? Say it with F.quotient(a, b, 2), which rounds half to "
            f"even; or take floats with F.cast(x, float), in `{show(left)}`"
        )
    for side in (left, right):
        if not (types.is_number(side.type) or side.type == types.NULL):
            raise ExpressionError(f"/ takes numbers, not {side.type}, in `{show(side)}`")
    return call("divide", to_float(left), to_float(right))


def floor_divide(left: Expr, right: Expr) -> Expr:
    """`//`, rounded down; null on division by zero."""
    return _of_kind("floor_quotient", left, right) or call("floor_divide", left, right)


def modulo(left: Expr, right: Expr) -> Expr:
    """`%`, with the sign of the divisor; null on division by zero."""
    return _of_kind("remainder", left, right) or call("modulo", left, right)


def negate(value: Expr) -> Expr:
    """`-x`, as `0 - x`; of a literal, the literal."""
    kind = _kind(value, value)
    if kind is not None:
        negated = decimals.negated(value) if kind is decimals else temporal.negated(value)
        if isinstance(value, Constant) and value.value not in (None, types.INT_MIN):
            return Constant(value.type, -value.value)
        return negated
    if isinstance(value, Constant) and types.is_number(value.type):
        return constant(-value.value)
    zero = constant(0.0) if value.type == types.FLOAT else constant(0)
    return derived("negate", lambda x: call("subtract", zero, x), value)


def less(left: Expr, right: Expr) -> Expr:
    """`<`: null when a side is null; records compare field by field in canonical order."""
    left, right = _met(left, right)
    if isinstance(left.type, types.DecimalOf) or isinstance(right.type, types.DecimalOf):
        return decimals.less(left, right)
    if isinstance(left.type, types.TupleOf) and isinstance(right.type, types.TupleOf):
        return derived("less_record", precedes, left, right)
    return call("less", left, right)


def equal(left: Expr, right: Expr) -> Expr:
    """`==`, where null equals itself."""
    if isinstance(left.type, types.DecimalOf) or isinstance(right.type, types.DecimalOf):
        return decimals.equal(left, right)
    return call("equal", left, right)


_COMPARISONS: dict[str, Callable[[Expr, Expr], Expr]] = {
    "not_equal": lambda a, b: call("not", equal(a, b)),
    "greater": lambda a, b: less(b, a),
    "less_equal": lambda a, b: call("not", less(b, a)),
    "greater_equal": lambda a, b: call("not", less(a, b)),
}


def compare(name: str, left: Expr, right: Expr) -> Expr:
    """`==`, never null because null equals itself, and `!= > <= >=`, from `==`, `<` and not."""
    sides = _met(left, right)
    return equal(*sides) if name == "equal" else derived(name, _COMPARISONS[name], *sides)


def either(left: Expr, right: Expr) -> Expr:
    """`|`, by De Morgan, which holds for null too."""
    return derived("or", lambda a, b: call("not", call("and", call("not", a), call("not", b))), left, right)


def precedes(left: Expr, right: Expr) -> Expr:
    """Whether `left` comes before `right` in canonical order: null first, records by field."""
    if isinstance(left.type, types.TupleOf) and isinstance(right.type, types.TupleOf):
        result = _precedes_by_field(left, right)
    elif isinstance(left.type, types.CategoryOf) and left.type == right.type:
        result = call("less", left.core, right.core)  # categories have an order in records only: that of their text
    elif isinstance(left.type, types.Scalar):
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
    if types.unify(left.type, right.type) is None or not pairs:
        raise Mistyped(f"cannot order {left.type} and {right.type}")
    result = precedes(*pairs[-1])
    for a, b in reversed(pairs[:-1]):
        result = call("where", call("equal", a, b), result, precedes(a, b))
    return result


@dataclass(frozen=True, slots=True)
class Function:
    """A named function: its construction, its arity, and whether an argument is a function.

    A function argument is always the second and is applied to the elements of the first, a list.
    """

    build: Callable[..., Expr]
    least: int
    most: int
    takes_function: bool = False


#: Every function that a query can name, besides operators, records and field access.
FUNCTIONS: dict[str, Function] = {}


_BETWEEN: dict[str, Callable[..., Expr]] = {
    "and": partial(call, "and"),
    "floor_divide": floor_divide,
    "modulo": modulo,
    **{name: partial(arithmetic, name) for name in ("add", "subtract", "multiply")},
    **{name: partial(compare, name) for name in ("equal", "not_equal", "greater", "less_equal", "greater_equal")},
    "divide": divide,
    "less": less,
    "less_record": less,
    "or": either,
}
_BEFORE: dict[str, Callable[..., Expr]] = {"not": partial(call, "not"), "negate": negate}
#: What is written between two values, or before one.
OPERATORS: dict[str, Function] = {
    **{name: Function(build, 2, 2) for name, build in _BETWEEN.items()},
    **{name: Function(build, 1, 1) for name, build in _BEFORE.items()},
}


def apply(name: str, *arguments: Expr) -> Expr:
    """The function or operator of this name on these arguments, or ExpressionError."""
    function = FUNCTIONS.get(name) or OPERATORS[name]
    if not function.least <= len(arguments) <= function.most:
        wanted = str(function.least) if function.least == function.most else f"{function.least} to {function.most}"
        raise ExpressionError(f"{name} takes {wanted} argument(s), not {len(arguments)}")
    return function.build(*arguments)


def rebuild(name: str, arguments: tuple[Expr, ...], attributes: CallAttributes = ()) -> Expr:
    """The call of this name on these arguments, however it was written first."""
    if name == "record":
        return record(tuple(None if n is None else str(n) for n in attributes), arguments)
    if name == "field":
        return call(name, *arguments, attributes=attributes)
    if name not in FUNCTIONS and name not in OPERATORS:
        raise ExpressionError(f"there is no function {name!r}")
    return apply(name, *arguments)
