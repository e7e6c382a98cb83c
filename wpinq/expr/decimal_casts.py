"""Decimals from and to other numbers and text: exact where that can be, else rounded once, to the nearest."""

from __future__ import annotations

from wpinq.expr.build import call, constant, stored
from wpinq.expr.decimals import scale_of
from wpinq.expr.integers import below, both, choose, even_quotient, minus, no, over, plus, rest, same, times, within
from wpinq.expr.nodes import Expr
from wpinq.expr.types import FLOAT, INT, STR, decimal

_EXACT = 2**53
"""Up to here every integer is a float."""

_WHOLE = float(2**52)
"""From here on every float is an integer."""

_SPLIT = 134217729.0
"""`2**27 + 1`, which cuts a float in halves."""


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
        digits = call("to_float", call("concatenate", call("to_str", units), constant(f"e-{scale}")))
        return call("where", call("is_null", within(units, -_EXACT, _EXACT)), digits, small)

    return stored("to_float", FLOAT, nearest, value)


def to_str(value: Expr) -> Expr:
    """The digits, with a point before the decimals."""
    scale = scale_of(value)

    def written(units: Expr) -> Expr:
        if scale == 0:
            return call("to_str", units)
        negative = below(units, 0)
        text = call("to_str", units)
        digits = call("substring", text, choose(negative, 1, 0), constant(20))
        zeros = call("substring", constant("0" * (scale + 1)), call("length", digits), constant(scale + 1))
        digits = call("concatenate", zeros, digits)
        point = minus(call("length", digits), scale)
        whole = call("substring", digits, constant(0), point)
        decimals = call("substring", digits, point, constant(scale))
        sign = call("where", negative, constant("-"), constant(""))
        return _joined(sign, whole, constant("."), decimals)

    return stored("to_str", STR, written, value)


def _joined(*texts: Expr) -> Expr:
    joined = texts[0]
    for text in texts[1:]:
        joined = call("concatenate", joined, text)
    return joined


def floor(value: Expr) -> Expr:
    """The greatest integer not above a decimal."""
    factor = 10 ** scale_of(value)
    return stored("floor", INT, lambda units: over(units, factor), value)
