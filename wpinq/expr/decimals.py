"""Exact arithmetic of decimals, said in integers: a decimal of scale s is its count of 10⁻ˢ.

Sums, differences and products are exact or, beyond 64 bits, null. Comparisons are exact whatever the scales.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce

from wpinq.errors import ExpressionError
from wpinq.expr.build import call, constant, stored
from wpinq.expr.nodes import Constant, Expr, show
from wpinq.expr.types import BOOL, FLOAT, INT, INT_MAX, INT_MIN, NULL, SCALE_LIMIT, STR, DecimalOf, decimal

# Arithmetic on expressions, as rules of derived functions write it: Python numbers stand for constants.


def _expr(value: Expr | float | str | None) -> Expr:
    return value if isinstance(value, Expr) else constant(value)


def _named(name: str) -> Callable[..., Expr]:
    """The call of this name, null beyond 64 bits."""

    def called(*sides: Expr | float | str | None) -> Expr:
        return call(name, *map(_expr, sides))

    return called


plus, minus, times = map(_named, ("add", "subtract", "multiply"))
#: `⌊a / b⌋`, and `a - b * ⌊a / b⌋`.
over, rest = map(_named, ("floor_divide", "modulo"))
#: `a < b`, `a == b`, whether two conditions are true, whether one is not, and a choice by one.
below, same, both, no, choose = map(_named, ("less", "equal", "and", "not", "where"))
#: At most so many characters of a text, from a place.
part = _named("substring")


def joined(*texts: Expr | str) -> Expr:
    """The texts, one after the other."""
    return reduce(partial(call, "concatenate"), map(_expr, texts))


def least(a: Expr | float, b: Expr | float) -> Expr:
    """The smaller of two numbers of which neither is null."""
    return choose(below(a, b), a, b)


def within(value: Expr, low: int, high: int) -> Expr:
    """The number where it lies between two others, these included; else null."""
    return choose(both(no(below(value, low)), no(below(high, value))), value, None)


def even_quotient(a: Expr | float, b: Expr | float) -> Expr:
    """The integer nearest to `a / b`, half to even; null where b is 0 or -2⁶³."""
    a, b = _expr(a), _expr(b)
    quotient, left = over(a, b), rest(a, b)
    # left has the sign of b and is less than it: the halves are compared without doubling, which could overflow
    missing = minus(b, left)
    negative = below(b, 0)
    nearer = choose(negative, below(left, missing), below(missing, left))
    odd = same(rest(quotient, 2), 1)
    up = choose(same(left, missing), odd, nearer)
    return choose(call("is_null", missing), None, choose(up, plus(quotient, 1), quotient))


def scale_of(value: Expr) -> int:
    """The number of decimals; 0 of an int."""
    return value.type.scale if isinstance(value.type, DecimalOf) else 0


def _check_exact(*values: Expr) -> None:
    for value in values:
        if not (isinstance(value.type, DecimalOf) or value.type in (INT, NULL)):
            fix = "F.cast(x, float) of the decimal, or F.cast(y, wp.decimal(2)) of the float, chooses which is meant"
            why = fix if value.type == FLOAT else "take decimals and ints"
            raise ExpressionError(f"a decimal cannot be combined with {value.type}: {why}; in `{show(value)}`")


def rescaled(value: Expr, scale: int) -> Expr:
    """The number with more decimals: exact, or null beyond 64 bits.

    A constant stays one where it can.
    """
    if value.type == NULL or (scale_of(value) == scale and value.type != INT):
        return value
    factor = 10 ** (scale - scale_of(value))
    if isinstance(value, Constant) and INT_MIN <= value.value * factor <= INT_MAX:
        return Constant(decimal(scale), value.value * factor)
    return stored("to_decimal", decimal(scale), lambda units, _: times(units, factor), value, constant(scale))


def aligned(*values: Expr) -> tuple[Expr, ...]:
    """The numbers at the largest scale of them."""
    _check_exact(*values)
    scale = max(map(scale_of, values))
    return tuple(rescaled(value, scale) for value in values)


def met(left: Expr, right: Expr) -> tuple[Expr, Expr]:
    """Two numbers to combine, with constants at the scale of the other where that is exact."""
    _check_exact(left, right)
    scale = max(scale_of(left), scale_of(right))
    first, second = (rescaled(side, scale) if isinstance(side, Constant) else side for side in (left, right))
    return first, second


def arithmetic(name: str, left: Expr, right: Expr) -> Expr:
    """`+ - *`: the larger scale, or the sum of both."""
    if NULL in (left.type, right.type):
        left, right = aligned(left, right)
        return stored(name, decimal(max(scale_of(left), scale_of(right))), lambda a, b: call(name, a, b), left, right)
    if name == "multiply":
        _check_exact(left, right)
        scale = scale_of(left) + scale_of(right)
        if scale > SCALE_LIMIT:
            raise ExpressionError(
                f"the product of {left.type} and {right.type} has {scale} decimals, more than {SCALE_LIMIT}: cast a "
                f"side to fewer with F.cast(x, wp.decimal(n)), in `{show(left)}`"
            )
        return stored(name, decimal(scale), times, left, right)
    left, right = met(left, right)
    scale = max(scale_of(left), scale_of(right))
    return stored(name, decimal(scale), lambda *sides: call(name, *_in_units(left, right, *sides)), left, right)


def _times(units: Expr, factor: int) -> Expr:
    return units if factor == 1 else times(units, factor)


def floor_quotient(left: Expr, right: Expr) -> Expr:
    """`⌊left / right⌋` as an int."""
    return stored("bucket", INT, lambda *sides: over(*_in_units(left, right, *sides)), left, right)


def remainder(left: Expr, right: Expr) -> Expr:
    """`left - right * ⌊left / right⌋`."""
    scale = max(scale_of(left), scale_of(right))
    return stored("modulo", decimal(scale), lambda *sides: rest(*_in_units(left, right, *sides)), left, right)


def _in_units(left: Expr, right: Expr, a: Expr, b: Expr) -> tuple[Expr, Expr]:
    _check_exact(left, right)
    scale = max(scale_of(left), scale_of(right))
    return _times(a, 10 ** (scale - scale_of(left))), _times(b, 10 ** (scale - scale_of(right)))


def quotient(left: Expr, right: Expr, scale: int) -> Expr:
    """`left / right` with `scale` decimals, half to even; null on division by 0 or overflow."""
    _check_exact(left, right)
    shift = scale - scale_of(left) + scale_of(right)
    if shift > SCALE_LIMIT:  # 64 bits have no such power of ten, and no multiple of it but 0
        raise ExpressionError(
            f"a quotient of {scale} decimals of {left.type} by {right.type} counts {scale} - {scale_of(left)} + "
            f"{scale_of(right)} = {shift} decimals of the dividend, more than {SCALE_LIMIT}: take at most "
            f"{scale - shift + SCALE_LIMIT} decimals, or cast the divisor to fewer with F.cast(y, wp.decimal(n)), in "
            f"`{show(left)}`"
        )

    def divided(a: Expr, b: Expr, _: Expr) -> Expr:
        return even_quotient(_times(a, 10 ** max(0, shift)), _times(b, 10 ** max(0, -shift)))

    return stored("quotient", decimal(scale), divided, left, right, constant(scale))


def negated(value: Expr) -> Expr:
    """`-value`."""
    return stored("negate", value.type, lambda units: minus(0, units), value)


def equal(left: Expr, right: Expr) -> Expr:
    """Whether two numbers are the same, null and null too; exact at any scale."""
    left, right = met(left, right)
    if left.type == right.type or NULL in (left.type, right.type):
        return call("equal", left, right)
    if scale_of(left) > scale_of(right):
        left, right = right, left
    factor = 10 ** (scale_of(right) - scale_of(left))

    def same_number(coarse: Expr, fine: Expr) -> Expr:
        # null where both are null, as the quotient and the rest are then; never by overflow
        whole = call("where", call("is_null", fine), constant(True), same(rest(fine, factor), 0))
        return both(whole, same(coarse, over(fine, factor)))

    return stored("equal", BOOL, same_number, left, right)


def less(left: Expr, right: Expr) -> Expr:
    """Whether `left < right`; exact at any scale."""
    left, right = met(left, right)
    if left.type == right.type or NULL in (left.type, right.type):
        return call("less", left, right)
    factor = 10 ** abs(scale_of(left) - scale_of(right))
    finer = scale_of(left) > scale_of(right)

    def before(a: Expr, b: Expr) -> Expr:
        if finer:  # a < b·k where ⌊a / k⌋ < b
            return below(over(a, factor), b)
        # a·k < b where a < ⌈b / k⌉
        return below(a, plus(over(b, factor), choose(same(rest(b, factor), 0), 0, 1)))

    return stored("less", BOOL, before, left, right)


# Decimals from and to other numbers and text: exact where that can be, else rounded once, to the nearest.

#: Up to here every integer is a float.
_EXACT = 2**53

#: From here on every float is an integer.
_WHOLE = float(2**52)

#: `2**27 + 1`, which cuts a float in halves.
_SPLIT = 134217729.0


def from_decimal(value: Expr, scale: int) -> Expr:
    """With other decimals: more exactly, fewer half to even."""
    given = scale_of(value)

    def units(count: Expr, _: Expr) -> Expr:
        return times(count, 10 ** (scale - given)) if given <= scale else even_quotient(count, 10 ** (given - scale))

    return stored("to_decimal", decimal(scale), units, value, constant(scale))


def from_float(value: Expr, scale: int) -> Expr:
    """The decimal nearest to the float's exact value, half to even; null beyond 64 bits."""

    def units(x: Expr, _: Expr) -> Expr:
        # Dekker: product + error is exactly x·10ˢ
        power = float(10**scale)
        product = times(x, power)
        (x_high, x_low), (power_high, power_low) = _halves(x), _constant_halves(power)
        error = minus(times(x_high, power_high), product)
        for one, other in ((x_high, power_low), (x_low, power_high), (x_low, power_low)):
            error = plus(error, times(one, other))
        whole, part = _floor_and_part(product)
        small = both(below(-_WHOLE, product), below(product, _WHOLE))
        # below 2⁵² the error is a small part of a unit; above, the product is whole and the error counts in units
        step, error_part = _floor_and_part(error)
        distance = plus(minus(part, 0.5), error)
        near = _rounded(whole, below(0.0, distance), same(distance, 0.0))
        far = plus(whole, step)
        far = _rounded(far, below(0.5, error_part), same(error_part, 0.5))
        return call("where", small, near, far)

    return stored("to_decimal", decimal(scale), units, value, constant(scale))


def _rounded(whole: Expr, up: Expr, tie: Expr) -> Expr:
    return choose(up, plus(whole, 1), choose(tie, plus(whole, rest(whole, 2)), whole))


def _halves(x: Expr) -> tuple[Expr, Expr]:
    """Two floats of 26 bits that add up to a float (Veltkamp)."""
    shifted = times(x, _SPLIT)
    high = minus(shifted, minus(shifted, x))
    return high, minus(x, high)


def _constant_halves(x: float) -> tuple[float, float]:
    shifted = x * _SPLIT
    high = shifted - (shifted - x)
    return high, x - high


def _floor_and_part(x: Expr) -> tuple[Expr, Expr]:
    whole = call("to_int", x)
    whole = choose(below(x, call("to_float", whole)), minus(whole, 1), whole)
    return whole, minus(x, call("to_float", whole))


def to_int(value: Expr) -> Expr:
    """Cut toward zero."""
    factor = 10 ** scale_of(value)

    def cut(units: Expr) -> Expr:
        down = over(units, factor)
        inexact = no(same(rest(units, factor), 0))
        return choose(both(below(units, 0), inexact), plus(down, 1), down)

    return stored("to_int", INT, cut, value)


def to_float(value: Expr) -> Expr:
    """The nearest float."""
    scale = scale_of(value)

    def nearest(units: Expr) -> Expr:
        # both sides of the quotient are floats without rounding up to 2⁵³; beyond, the digits are read as a float
        small = call("divide", call("to_float", units), constant(float(10**scale)))
        digits = call("to_float", joined(call("to_str", units), f"e-{scale}"))
        return call("where", call("is_null", within(units, -_EXACT, _EXACT)), digits, small)

    return stored("to_float", FLOAT, nearest, value)


def to_str(value: Expr) -> Expr:
    """The digits, with a point before the decimals."""
    scale = scale_of(value)

    def written(units: Expr) -> Expr:
        if scale == 0:
            return call("to_str", units)
        negative = below(units, 0)
        digits = part(call("to_str", units), choose(negative, 1, 0), 20)
        digits = joined(part("0" * (scale + 1), call("length", digits), scale + 1), digits)
        point = minus(call("length", digits), scale)
        return joined(choose(negative, "-", ""), part(digits, 0, point), ".", part(digits, point, scale))

    return stored("to_str", STR, written, value)


def floor(value: Expr) -> Expr:
    """The greatest integer not above a decimal."""
    factor = 10 ** scale_of(value)
    return stored("floor", INT, lambda units: over(units, factor), value)
