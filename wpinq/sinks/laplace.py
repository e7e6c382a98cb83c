"""NoisyCount: weights plus Laplace noise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from wpinq.expr.values import Value
from wpinq.noise.exact_bernoulli import RandomBytes
from wpinq.noise.laplace import add_laplace, laplace_scale
from wpinq.noise.noise_distributions import listed_reach
from wpinq.plan.node import Node
from wpinq.plan.properties import plan_properties
from wpinq.sinks.count_above import write_above
from wpinq.sinks.sink import Output, Sink, gathered, register
from wpinq.sinks.syntax import EPSILON, Measured, SinkParameter, SinkSyntax, Written, write_keys

COUNTED = (EPSILON, SinkParameter("over", "keys", optional=True))
ABOVE = (EPSILON, SinkParameter("over", "key_domain"), SinkParameter("above", "number"))


class LaplaceSink(Sink):
    """Sinks that add Laplace noise to the weights of a query: over one query, they share it."""

    __slots__ = ()
    noise: ClassVar[tuple[str, str]] = ("Laplace noise", "laplace")
    bounded_work: ClassVar[bool] = True
    #: 1: the scores are the weights themselves.
    sensitivity: ClassVar[Fraction] = Fraction(1)

    def identity(self) -> tuple[bytes | str, ...]:
        return ("laplace",)

    def scales(self, plan: Node, epsilon: Fraction) -> tuple[float, ...]:
        return (laplace_scale(epsilon, plan_properties(plan).slack(), self.sensitivity),)

    def draw(self, output: Output, keys: Sequence[Value], scales: Sequence[float], random: RandomBytes) -> Any:
        return add_laplace(np.asarray(gathered(self, output, keys), dtype=np.float64), scales[0], random)


@register
@dataclass(frozen=True, slots=True)
class NoisyCount(LaplaceSink):
    """Every weight plus Laplace noise of scale 1/ε (paper, section 2.2)."""

    name: ClassVar[str] = "NoisyCount"
    per_key: ClassVar[bool] = True
    syntax: ClassVar[tuple[SinkSyntax, ...]] = (
        SinkSyntax("NoisyCount", COUNTED, lambda m: write_counted(m), "noisy_count"),
        SinkSyntax("NoisyCountAbove", ABOVE, write_above, "noisy_count_above", renamed={"over": "domain"}),
    )

    def cut(self, above: float) -> float:
        return above

    def chance_above(self, above: float, scale: float) -> float:
        return math.exp(-above / scale) / 2

    def listed_reach(self, value: float, above: float, scale: float, confidence: float) -> float:
        return scale * listed_reach((value - above) / scale, 1.0, confidence)

    def explain_noise(self, plan: Node, epsilon: Fraction) -> Iterator[str]:
        (scale,) = self.scales(plan, epsilon)
        yield f"{self.called(epsilon)} adds Laplace noise of scale {scale:.9g} to every weight,"
        yield f"so 95 % of answers lie within {self.half_width(scale, 0.95):.4g} of the weight."


def write_counted(m: Measured) -> Written | None:
    """The text form of a count over keys, which are left out where the plan gives them."""
    if m.listing is not None:
        return None
    inferred = m.domain is None or m.domain == plan_properties(m.plan).domain
    return m.plan, [] if inferred else [f"over: {write_keys(m.domain or (), m.plan.type)}"]
