"""NoisySum and NoisyAverage: values clamped to a public range, as weights of records."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from wpinq.errors import PlanError, described
from wpinq.expr import build, catalogue
from wpinq.expr.nodes import Call, Constant, Expr, Lambda, make_lambda, write
from wpinq.expr.trace import RecordFunction, Symbol, UserFunction, as_function, lift, warn_about
from wpinq.expr.types import BOOL, DATE, DURATION, FLOAT, INT, STR, TIME, TIMESTAMP, DecimalOf, Type
from wpinq.expr.values import Value
from wpinq.noise.noise_distributions import half_width, half_width_of_two
from wpinq.plan.domain import Counted
from wpinq.plan.node import Node
from wpinq.plan.work import counted
from wpinq.runtime.arrays import Floats
from wpinq.sinks.answer_kinds import Kind, NotStated, Stated
from wpinq.sinks.laplace import LaplaceSink
from wpinq.sinks.sink import PublicKeys, register
from wpinq.sinks.syntax import EPSILON, Measured, SinkParameter, SinkSyntax, Written

#: The largest value that a sum or an average clamps to: noisy sums stay far within the floats.
LARGEST_BOUND = 1e100

#: The arguments of a sum and of an average in text.
CLAMPED = (EPSILON, SinkParameter("value", "function"), SinkParameter("lower", "real"), SinkParameter("upper", "real"))

_MADE_A_NUMBER: dict[Type, str] = {
    BOOL: "a cast to int is 1 or 0",
    STR: "a cast to float is one, and null where the text is none",
    DURATION: 'count a unit in it, value // datetime.timedelta(seconds=1), in text value / duration("PT1S")',
}
_MADE_A_NUMBER |= dict.fromkeys((DATE, TIME, TIMESTAMP), "take a part of it, year or hour, or the time since another")

#: The record that carries a part of a sum or an average, "sum" or "count": that word itself, or a group with it.
Label = Callable[[Symbol, str], object]


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


@dataclass(frozen=True, slots=True)
class ClampedSink(LaplaceSink):
    """Sinks over a query whose weights are values clamped to a public range."""

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


# The average, from noisy weights of both ends of the range of values.
#
# A record of weight w gives `w·p` to the upper end and `w·(1 − p)` to the lower, `p = (x − lower)/(upper − lower)`. The
# two sum to w, so all of epsilon serves the count, which is their sum, and the mean, which is by their ratio.

#: The records that carry the two shares.
ENDS = ("upper", "lower")

#: Into how many cells, a power of two, the means are cut, where an interval ends: between them its bound is a chord.
_CELLS = 1024

#: The number of groups whose intervals are best found at once: their numbers fit into the processor's cache.
AT_ONCE = 2**13


def average_elements(value: RecordFunction, low: float, high: float, label: Label = part_of) -> UserFunction:
    """The SelectMany function that gives each record a weight for each end: see `end_shares`."""
    function = check_value(value)

    def elements(record: Symbol) -> Any:
        shares = end_shares(clamped(function, record, low, high), low, high)
        return [weighted(label(record, end), share) for end, share in zip(ENDS, shares, strict=True)]

    return elements


def end_shares(inside: Any, low: float, high: float) -> tuple[Any, Any]:
    """The shares of the upper and the lower end of a clamped value: they sum to 1 in floats.

    With s the float of `(x − low)/(high − low)`, they are `u = fl(1 − l)` and `l = fl(1 − s)`.

    Notes
    -----
    s lies in [0, 1]: rounding is monotone, so `fl(x − low) ≤ fl(high − low)`, and their quotient is at most 1. l is a
    float in [0, 1]. If l ≥ 1/2, then `1 − l` is a float (Sterbenz: l/1 lies between 1/2 and 2), so u is `1 − l`
    exactly. If l < 1/2, then s ≥ 1/2, `1 − s` was exact for the same reason, and `u = s`. So `u + l = 1` without
    rounding, and SelectMany divides by 1. It would divide by any larger norm: the guarantee does not rest on this.
    """
    share = catalogue.divide(catalogue.arithmetic("subtract", inside, number(low)), number(high - low))
    lower = catalogue.arithmetic("subtract", number(1.0), share)
    return catalogue.arithmetic("subtract", number(1.0), lower), lower


def mean_of_ends(upper: Floats, lower: Floats) -> Floats:
    """The mean as a share of the range: `u / (u + l)` of noisy weights.

    A negative weight counts as 0; without any, the mean is the middle.

    Examples
    --------
    >>> mean_of_ends(np.array([30.0, 5.0, -1.0]), np.array([10.0, -2.0, -3.0])).tolist()
    [0.75, 1.0, 0.5]
    """
    first, second = np.maximum(upper, 0.0), np.maximum(lower, 0.0)
    total = first + second
    return np.where(total > 0, first / np.maximum(total, 5e-324), 0.5)


def interval_of_ends(upper: Floats, lower: Floats, scale: float, confidence: float) -> tuple[Floats, Floats]:
    """The interval of the mean, as shares of the range: an exact test of each share, inverted.

    Notes
    -----
    Of a mean p, the true ends satisfy `(1 − p)·u = p·l`. So for the noisy ones `(1 − p)·U − p·L` is `(1 − p)·X − p·Y`,
    of two independent Laplace draws, whatever the count: its size exceeds q(p), by `half_width_of_two`, with the chance
    of error exactly. The interval holds all p that pass (Fieller). q is convex in p: it is a quantile of a linear
    form of a symmetric log-concave law, which is a norm of its coefficients (Meyer, Reisner 1991). So the p with
    `(1 − p)·U − p·L > q(p)` are an interval: the low end is 0 if 0 is not among them, else where it ends. A chord is
    above a convex function: q is taken as such between nodes, and the interval only grows.
    """
    low, high = _low_ends(np.concatenate((upper, lower)), np.tile(upper + lower, 2), scale, confidence).reshape(2, -1)
    return low, 1.0 - high


def _low_ends(tops: Floats, falls: Floats, scale: float, confidence: float) -> Floats:
    """The least share that passes on its upper side, for each weight of an end and that of both.

    By Newton's method: a concave function is below the line of each of its chords, whose zero is no less than its own.
    """
    starts, slopes = _chords(confidence) * scale
    found, rows = np.zeros(len(tops)), (tops > starts[0]).nonzero()[0]  # where 0 does not pass
    top, fall, least = tops.take(rows), falls.take(rows), scale * 2.0**-60  # a line that does not fall has no zero

    def zeros(cells: Any) -> Any:
        return ((top - starts.take(cells)) / np.maximum(fall + slopes.take(cells), least)).clip(0.0, 1.0)

    cells: Any = _CELLS // 4
    for _ in range(2):
        cells = (zeros(cells) * _CELLS).astype(np.int64)
    while len(rows):
        found[rows] = shares = zeros(cells)
        after = (shares * _CELLS).astype(np.int64)
        left = (after < cells).nonzero()[0]
        rows, top, fall, cells = (each.take(left) for each in (rows, top, fall, after))
    return found


@lru_cache(maxsize=16)
def _chords(confidence: float) -> Floats:
    """q(p) between nodes, in scales: its values at 0 along each chord, and their slopes."""
    nodes = np.arange(_CELLS + 1) / _CELLS
    ends = np.array([half_width_of_two(1 - node, node, 1.0, confidence) for node in nodes.tolist()])
    slopes = np.diff(ends) * _CELLS
    slopes = np.append(slopes, slopes[-1])
    return np.array([ends - slopes * nodes, slopes])


@register
@dataclass(frozen=True, slots=True)
class NoisyAverage(ClampedSink):
    """The weighted average of clamped values, by the noisy weights of the two ends of the range.

    Each record gives its weight to both, in shares that sum to 1. Answers are the two noisy weights; `value` is their
    ratio, put back in the range, and their sum is the noisy count.
    """

    name: ClassVar[str] = "NoisyAverage"
    noun: ClassVar[str] = "mean"
    syntax: ClassVar[tuple[SinkSyntax, ...]] = (SinkSyntax("NoisyAverage", CLAMPED, write_clamped, "noisy_average"),)

    def value(self, numbers: Mapping[Value, float]) -> Value:
        return float(self.within(mean_of_ends(*_both(numbers)))[0])

    def value_interval(self, numbers: Mapping[Value, float], scale: float, confidence: float) -> tuple[float, float]:
        low, high = interval_of_ends(*_both(numbers), scale, confidence)
        return float(self.within(low)[0]), float(self.within(high)[0])

    def within(self, share: Floats) -> Floats:
        """The values at shares of the range."""
        return np.clip(self.lower + (self.upper - self.lower) * share, self.lower, self.upper)

    def error(self, plan: Node, epsilon: Fraction, keys: PublicKeys, confidence: float, stated: Stated) -> float:
        """The error bound of the clamped average, given its count.

        Of a weight of n, the average of a true share p is above `p' = p + e` only where `(1 − p')·X − p'·Y > n·e`, of
        the noise of both ends. This is at most as likely as for one draw, so `e = r/n` is enough, r its half-width.
        """
        if stated.count is None:
            raise NotStated("needs count=…")
        off = half_width(self.scales(plan, epsilon)[0], confidence)
        (averaged,) = plan.inputs
        things = counted(averaged)
        weight = stated.count * float(things.factor if isinstance(things, Counted) else 1)
        return (self.upper - self.lower) * min(1.0, off / weight)

    def explain_noise(self, plan: Node, epsilon: Fraction) -> Iterator[str]:
        (scale,) = self.scales(plan, epsilon)
        said = f"{self.called(epsilon)} adds Laplace noise of scale {scale:.9g}"
        yield f"{said} to the weight at each end of the range, which every record shares between them,"
        yield "and returns their ratio; the error shrinks as the total weight grows."

    def __post_init__(self) -> None:
        ClampedSink.__post_init__(self)
        if self.lower == self.upper:
            raise PlanError("a mean or a moment needs lower < upper")


def _both(numbers: Mapping[Value, float]) -> tuple[Floats, Floats]:
    first, second = (np.array([numbers[end]]) for end in ENDS)
    return first, second
