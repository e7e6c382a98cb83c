"""NoisySum: the sum of clamped values, as the weight of one record plus Laplace noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import Any, ClassVar

from wpinq.errors import PlanError, described
from wpinq.expr import build, catalogue
from wpinq.expr.nodes import Call, Constant, Expr, Lambda, make_lambda, write
from wpinq.expr.trace import RecordFunction, Symbol, UserFunction, as_function, lift, warn_about
from wpinq.expr.types import BOOL, DATE, DURATION, FLOAT, INT, STR, TIME, TIMESTAMP, DecimalOf, Type
from wpinq.plan.node import Node
from wpinq.plan.work import counted
from wpinq.sinks.answer_kinds import Kind
from wpinq.sinks.laplace import LaplaceSink
from wpinq.sinks.sink import register
from wpinq.sinks.syntax import EPSILON, Measured, SinkParameter, SinkSyntax, Written

LARGEST_BOUND = 1e100
"""The largest value that a sum or an average clamps to: noisy sums stay far within the floats."""

CLAMPED = (EPSILON, SinkParameter("value", "function"), SinkParameter("lower", "real"), SinkParameter("upper", "real"))
"""The arguments of a sum and of an average in text."""

_MADE_A_NUMBER: dict[Type, str] = {
    BOOL: "a cast to int is 1 or 0",
    STR: "a cast to float is one, and null where the text is none",
    DURATION: 'count a unit in it, value // datetime.timedelta(seconds=1), in text value / duration("PT1S")',
}
_MADE_A_NUMBER |= dict.fromkeys((DATE, TIME, TIMESTAMP), "take a part of it, year or hour, or the time since another")

Label = Callable[[Symbol, str], object]
"""The record that carries a part of a sum or an average, "sum" or "count": that word itself, or a group with it."""


def part_of(record: Symbol, part: str) -> object:
    """The part itself, as the record that carries it."""
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
        raise PlanError(f"a range has numbers lower <= upper, not both 0: not {described(lower)} to {described(upper)}")
    return low, high


def check_value(value: RecordFunction) -> UserFunction:
    """The function of the values; refused where it is none.

    It warns of content that tracing cannot see.
    """
    function = as_function(value)
    warn_about(function)
    return function


def sum_elements(value: RecordFunction, low: float, high: float, label: Label = part_of) -> UserFunction:
    """For SelectMany: one record, "sum", of weight `clamp(value) / max(|low|, |high|)`."""
    function = check_value(value)
    magnitude = max(abs(low), abs(high))

    def elements(record: Symbol) -> Any:
        share = catalogue.divide(clamped(function, record, low, high), number(magnitude))
        return [weighted(label(record, "sum"), share)]

    return elements


def weighted(item: object, weight: Expr) -> Symbol:
    """An element with its weight."""
    return Symbol(catalogue.apply("weighted", lift(item), weight))


def number(value: float) -> Constant:
    return build.constant(float(value))


def clamped(value: UserFunction, record: Symbol, low: float, high: float) -> Expr:
    given = lift(value(record))
    if given.type not in (INT, FLOAT) and not isinstance(given.type, DecimalOf):
        how = _MADE_A_NUMBER.get(given.type)
        raise PlanError(
            f"a sum or an average needs a function to numbers, not to {given.type}" + (f": {how}" if how else "")
        )
    return catalogue.apply("max", catalogue.apply("min", catalogue.to_float(given), number(high)), number(low))


class ClampedSink(LaplaceSink):
    """Sinks over a query whose weights are values clamped to a public range."""

    __slots__ = ()
    single: ClassVar[bool] = True
    lower: float
    upper: float

    def kind(self, plan: Node) -> Kind:
        return Kind(self.noun, f"{self.noun} of values from {self.lower:g} to {self.upper:g}")

    def __post_init__(self) -> None:
        bounds = self.lower, self.upper
        if not all(type(bound) is float and abs(bound) <= LARGEST_BOUND for bound in bounds) or self.lower > self.upper:
            raise PlanError(f"values are clamped between floats of at most {LARGEST_BOUND:g} in size, lower <= upper")


def write_clamped(m: Measured) -> Written | None:
    """The text form of a sum or an average: its query and the function of its values."""
    function = getattr(m.plan.operator, "function", None)
    value = _clamped_value(function) if isinstance(function, Lambda) else None
    if value is None:
        return None
    return m.plan.inputs[0], [write(value), f"lower: {m.sink.lower!r}", f"upper: {m.sink.upper!r}"]


def _clamped_value(function: Lambda) -> Lambda | None:
    """The function with clamped values in a sum or an average: the `·` of max(min(·, b), a)."""
    stack = [function.body]
    while stack:
        expr = stack.pop()
        if isinstance(expr, Call) and expr.name == "max":
            inner = expr.arguments[0]
            if not (isinstance(inner, Call) and inner.name == "min"):
                return None
            value = inner.arguments[0]
            if isinstance(value, Call) and value.name == "to_float" and _widened(value.arguments[0].type):
                (value,) = value.arguments
            return make_lambda(function.parameters, value, function.level)
        if isinstance(expr, Call):
            stack.extend(reversed(expr.arguments))
    return None


def _widened(type_: Type) -> bool:
    """Whether a sum makes floats of such values by itself."""
    return type_ == INT or isinstance(type_, DecimalOf)


@register
@dataclass(frozen=True, slots=True)
class NoisySum(ClampedSink):
    """`Σ A(x) · clamp(f(x))`: a noisy sum of clamped values.

    It is the weight of one record, to which each x adds `clamp(f(x)) / magnitude`.
    """

    name: ClassVar[str] = "NoisySum"
    noun: ClassVar[str] = "sum"
    syntax: ClassVar[tuple[SinkSyntax, ...]] = (SinkSyntax("NoisySum", CLAMPED, write_clamped, "noisy_sum"),)
    lower: float
    upper: float

    @property
    def factor(self) -> Fraction:
        return Fraction(max(abs(self.lower), abs(self.upper)))

    def kind(self, plan: Node) -> Kind:
        kind, factor = ClampedSink.kind(self, plan), getattr(counted(plan.inputs[0]), "factor", 1)
        return kind if factor == 1 else replace(kind, words=f"{kind.words}, each times the weight {factor} of its row")

    def explain_noise(self, plan: Node, epsilon: Fraction) -> Iterator[str]:
        scale = self.answer_scale(self.scales(plan, epsilon)[0])
        yield f"{self.called(epsilon)} adds Laplace noise of scale {scale:.9g} to the sum of the clamped values,"
        yield f"so 95 % of answers lie within {self.half_width(scale, 0.95):.4g} of it."
