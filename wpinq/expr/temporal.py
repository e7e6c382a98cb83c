"""Arithmetic of dates, timestamps, times of day and durations, said in integers; beyond the years 1 to 9999, null."""

from __future__ import annotations

from wpinq.errors import ExpressionError
from wpinq.expr.build import call, stored
from wpinq.expr.integers import minus, over, rest, times, within
from wpinq.expr.logical_values import DAY, RANGES
from wpinq.expr.nodes import Expr
from wpinq.expr.printing import show
from wpinq.expr.types import DATE, DURATION, INT, NULL, TIME, TIMESTAMP, Logical, Type

MOMENTS: tuple[Logical, ...] = (DATE, TIMESTAMP, TIME, DURATION)

_HINT = (
    "the difference of two dates or timestamps is a duration, a duration can be added (datetime.timedelta(days=7), in "
    'text duration("P7D")) or cut to a date, wp.offset(x, n, "month") goes by the calendar, and wp.cast(x, int) counts'
)


def kept(moment: Expr, type_: Type) -> Expr:
    """What stands for a moment where it lies within the type's range; else null."""
    return within(moment, *RANGES[type_])


def arithmetic(name: str, left: Expr, right: Expr) -> Expr:
    """`+ - *` of what counts time: the duration between two moments, a moment and a duration, durations."""
    one, other = left.type, right.type
    if name == "add" and one == DURATION and other in (DATE, TIMESTAMP):
        return _moved(name, right, left, left, right)
    if name in ("add", "subtract") and one in (DATE, TIMESTAMP) and other == DURATION:
        return _moved(name, left, right, left, right)
    if name == "subtract" and one == other and one in (DATE, TIMESTAMP, TIME):
        unit = DAY if one == DATE else 1
        return stored(name, DURATION, lambda a, b: times(minus(a, b), unit), left, right)
    if name in ("add", "subtract") and one in (DURATION, NULL) and other in (DURATION, NULL):
        return stored(name, DURATION, lambda a, b: call(name, a, b), left, right)
    if name == "multiply" and {one, other} <= {DURATION, INT, NULL} and one != other:
        return stored(name, DURATION, times, left, right)
    raise refused(name, left, right)


def _moved(name: str, moment: Expr, length: Expr, *written: Expr) -> Expr:
    """A moment a duration later or earlier; a date by the whole days of it, rounded down, as in Python."""
    type_ = moment.type
    first = written[0] is moment

    def moved(a: Expr, b: Expr) -> Expr:
        at, by = (a, b) if first else (b, a)
        return kept(call(name, at, over(by, DAY) if type_ == DATE else by), type_)

    return stored(name, type_, moved, *written)


def floor_quotient(left: Expr, right: Expr) -> Expr:
    """`//`: of two durations an int, of a duration and an int a duration."""
    if left.type == DURATION and right.type in (DURATION, INT):
        given = INT if right.type == DURATION else DURATION
        return stored("floor_divide", given, over, left, right)
    raise refused("floor_divide", left, right)


def remainder(left: Expr, right: Expr) -> Expr:
    """`%`: what is left of a duration."""
    if left.type == right.type == DURATION:
        return stored("modulo", DURATION, rest, left, right)
    raise refused("modulo", left, right)


def negated(value: Expr) -> Expr:
    """`-value` of a duration."""
    if value.type != DURATION:
        raise ExpressionError(f"- takes numbers and durations, not {value.type}, in `{show(value)}`")
    return stored("negate", DURATION, lambda length: minus(0, length), value)


def refused(name: str, left: Expr, right: Expr) -> ExpressionError:
    """What to say of an operation that times do not have."""
    words = {"floor_divide": "//", "modulo": "%", "divide": "/", "add": "+", "subtract": "-", "multiply": "*"}
    advice = f"; // counts how often one duration goes into another, {_HINT}"
    return ExpressionError(f"there is no {left.type} {words[name]} {right.type}{advice}, in `{show(left)}`")
