"""The lists that a noisy sum and a noisy average are made of: clamped values as weights of one or two records."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from numbers import Real
from typing import Any

from wpinq.errors import PlanError
from wpinq.expr import build, catalogue, infix
from wpinq.expr.nodes import Constant, Expr
from wpinq.expr.trace import RecordFunction, Symbol, UserFunction, as_function, lift, warn_about
from wpinq.expr.types import BOOL, DATE, DURATION, FLOAT, INT, STR, TIME, TIMESTAMP, DecimalOf, Type

_MADE_A_NUMBER: dict[Type, str] = {
    BOOL: "a cast to int is 1 or 0",
    STR: "a cast to float is one, and null where the text is none",
    DURATION: 'count a unit in it, value // datetime.timedelta(seconds=1), in text value / duration("PT1S")',
}
_MADE_A_NUMBER |= dict.fromkeys((DATE, TIME, TIMESTAMP), "take a part of it, year or hour, or the time since another")

Label = Callable[[Symbol, str], object]
"""The record that carries a part of a sum or an average, "sum" or "count": that word itself, or a group with it."""


def _part(record: Symbol, part: str) -> object:
    return part


def check_range(lower: object, upper: object) -> tuple[float, float]:
    """The public range as floats; PlanError where nothing could be clamped to it."""
    if not isinstance(lower, (Real, Decimal)) or not isinstance(upper, (Real, Decimal)):
        raise PlanError("the bounds lower and upper are numbers (int, float, Fraction or Decimal): pass 0 and 100, say")
    try:
        low, high = float(lower), float(upper)
    except (OverflowError, ValueError):  # beyond floats, or a nan of Decimal's that signals
        low = high = math.nan
    if not (math.isfinite(low) and math.isfinite(high) and low <= high and (low, high) != (0.0, 0.0)):
        raise PlanError(f"the range needs finite numbers lower <= upper, not both 0: not {lower!r} to {upper!r}")
    return low, high


def check_value(value: RecordFunction) -> UserFunction:
    """What gives the values, as a function; refused where it is none, with a warning of what tracing cannot see."""
    function = as_function(value)
    warn_about(function)
    return function


def sum_elements(value: RecordFunction, low: float, high: float, label: Label = _part) -> UserFunction:
    """For SelectMany: one record, "sum", of weight `clamp(value) / max(|low|, |high|)`."""
    function = check_value(value)
    magnitude = max(abs(low), abs(high))

    def elements(record: Symbol) -> Any:
        share = infix.divide(_clamped(function, record, low, high), _number(magnitude))
        return [_weighted(label(record, "sum"), share)]

    return elements


def average_elements(value: RecordFunction, low: float, high: float, label: Label = _part) -> UserFunction:
    """For SelectMany: "sum" with half the offset from the middle over half the range, "count" with a half."""
    function = check_value(value)
    middle, half = (low + high) / 2, (high - low) / 2

    def elements(record: Symbol) -> Any:
        clamped = _clamped(function, record, low, high)
        offset = infix.divide(infix.arithmetic("subtract", clamped, _number(middle)), _number(half))
        present = catalogue.apply("where", catalogue.apply("is_null", clamped), _number(0.0), _number(0.5))
        half_offset = infix.arithmetic("multiply", offset, _number(0.5))
        return [_weighted(label(record, "sum"), half_offset), _weighted(label(record, "count"), present)]

    return elements


def _weighted(item: object, weight: Expr) -> Symbol:
    return Symbol(catalogue.apply("weighted", lift(item), weight))


def _number(value: float) -> Constant:
    return build.constant(float(value))


def _clamped(value: UserFunction, record: Symbol, low: float, high: float) -> Expr:
    number = lift(value(record))
    if number.type not in (INT, FLOAT) and not isinstance(number.type, DecimalOf):
        how = _MADE_A_NUMBER.get(number.type)
        raise PlanError(
            f"a sum or an average needs a function to numbers, not to {number.type}" + (f": {how}" if how else "")
        )
    return catalogue.apply("max", catalogue.apply("min", infix.to_float(number), _number(high)), _number(low))
