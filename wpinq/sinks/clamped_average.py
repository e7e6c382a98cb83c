"""NoisyAverage: the ratio of two noisy weights, of a sum of clamped values and of a count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from wpinq.expr import catalogue
from wpinq.expr.trace import RecordFunction, Symbol, UserFunction
from wpinq.expr.values import Value
from wpinq.noise.noise_distributions import half_width
from wpinq.plan.domain import Counted
from wpinq.plan.node import Node
from wpinq.plan.work import counted
from wpinq.sinks import clamped_sum
from wpinq.sinks.answer_kinds import NotStated, Stated
from wpinq.sinks.clamped_sum import CLAMPED, ClampedSink, Label, clamped, number, part_of, weighted, write_clamped
from wpinq.sinks.sink import PublicKeys, register
from wpinq.sinks.syntax import SinkSyntax


def average_elements(value: RecordFunction, low: float, high: float, label: Label = part_of) -> UserFunction:
    """The SelectMany function that gives each record a weight for "sum" and one for "count".

    "sum" gets half the offset from the middle over half the range, and "count" a half.
    """
    function = clamped_sum.check_value(value)
    middle, half = (low + high) / 2, (high - low) / 2

    def elements(record: Symbol) -> Any:
        inside = clamped(function, record, low, high)
        offset = catalogue.divide(catalogue.arithmetic("subtract", inside, number(middle)), number(half))
        present = catalogue.apply("where", catalogue.apply("is_null", inside), number(0.0), number(0.5))
        half_offset = catalogue.arithmetic("multiply", offset, number(0.5))
        return [weighted(label(record, "sum"), half_offset), weighted(label(record, "count"), present)]

    return elements


@register
@dataclass(frozen=True, slots=True)
class NoisyAverage(ClampedSink):
    """The weighted average of clamped values: a noisy sum over a noisy count.

    The sum is about the middle of the range.

    Both are weights of one query, of norm at most 1 a record: each record gives half its weight to "count" and
    up to half to "sum". Answers are both noisy weights; `value` is their ratio, put back in the range.
    """

    name: ClassVar[str] = "NoisyAverage"
    noun: ClassVar[str] = "mean"
    syntax: ClassVar[tuple[SinkSyntax, ...]] = (SinkSyntax("NoisyAverage", CLAMPED, write_clamped, "noisy_average"),)
    lower: float
    upper: float

    def value(self, numbers: Mapping[Value, float]) -> Value:
        return self._average(numbers["sum"], numbers["count"])

    def _average(self, total: float, count: float) -> float:
        middle, half = (self.lower + self.upper) / 2, (self.upper - self.lower) / 2
        offset = half * total / count if count > 0 else 0.0
        return min(self.upper, max(self.lower, middle + offset))

    def value_interval(self, numbers: Mapping[Value, float], scale: float, confidence: float) -> tuple[float, float]:
        # half the chance of error for each number: the average of any pair within both intervals is covered
        reach = half_width(scale, (1 + confidence) / 2)
        total, count = numbers["sum"], numbers["count"]
        if count - reach <= 0:
            return self.lower, self.upper
        ends = [self._average(total + s, count + c) for s in (-reach, reach) for c in (-reach, reach)]
        return min(ends), max(ends)

    def error(self, plan: Node, epsilon: Fraction, keys: PublicKeys, confidence: float, stated: Stated) -> float:
        """The error bound of the clamped average, given its count.

        Of a weight of n, n/2 is released as count and t·n/2 as sum, with |t| ≤ 1, each within r. The average is
        clamped. It is off by at most `min(1 − t, r(1 + t)/(n/2 − r))` of half the range upwards. This is largest where
        both are the same, 2r/(n/2); downwards it is less.
        """
        if stated.count is None:
            raise NotStated("needs count=…")
        off = half_width(self.scales(plan, epsilon)[0], (1 + confidence) / 2)
        (averaged,) = plan.inputs
        things = counted(averaged)
        weight = stated.count * float(things.factor if isinstance(things, Counted) else 1)
        return (self.upper - self.lower) * min(1.0, 2 * off / weight)

    def explain_noise(self, plan: Node, epsilon: Fraction) -> Iterator[str]:
        (scale,) = self.scales(plan, epsilon)
        said = f"{self.called(epsilon)} adds Laplace noise of scale {scale:.9g}"
        yield f"{said} to a sum and to a count, each of half the weight,"
        yield "and returns their ratio; the error shrinks as the total weight grows."
