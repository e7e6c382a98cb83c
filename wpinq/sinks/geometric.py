"""GeometricCount: weights on a lattice that the plan proves, plus double-geometric noise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from wpinq.errors import PlanError
from wpinq.expr.values import Value
from wpinq.noise.exact_bernoulli import RandomBytes
from wpinq.noise.geometric import add_geometric, lattice_scale, on_lattice
from wpinq.noise.noise_distributions import DoubleGeometric, listed_reach
from wpinq.plan.node import Node
from wpinq.plan.properties import plan_properties
from wpinq.sinks.count_above import write_above
from wpinq.sinks.laplace import ABOVE, COUNTED, write_counted
from wpinq.sinks.sink import Output, PublicKeys, Sink, gathered, register
from wpinq.sinks.syntax import SinkSyntax

_WHOLE = 2.0**53  # up to here all integers are floats


@register
@dataclass(frozen=True, slots=True)
class GeometricCount(Sink):
    """Every weight plus double-geometric noise on the lattice g that the plan proves.

    The noise has `Pr[g·k] ∝ exp(−ε·g·|k|)`.

    Answers are multiples of g, and their error is less than Laplace noise of the same epsilon would make.
    """

    name: ClassVar[str] = "GeometricCount"
    noise: ClassVar[tuple[str, str]] = ("double-geometric noise", "geometric")
    proviso: ClassVar[str] = "the guarantee of GeometricCount is for neighbours with outputs on the same lattice"
    per_key: ClassVar[bool] = True
    bounded_work: ClassVar[bool] = True
    #: 1, in weight: of steps of the lattice 1/g.
    sensitivity: ClassVar[Fraction] = Fraction(1)
    syntax: ClassVar[tuple[SinkSyntax, ...]] = (
        SinkSyntax("GeometricCount", COUNTED, write_counted, "geometric_count"),
        SinkSyntax(
            "GeometricCountAbove",
            ABOVE,
            write_above,
            "noisy_count_above",
            {"over": "domain"},
            fixed={"geometric": True},
        ),
    )
    step: Fraction

    def __post_init__(self) -> None:
        if not isinstance(self.step, Fraction) or self.step <= 0:
            raise PlanError("a lattice is a Fraction of more than 0: query.geometric_count(...) derives it")

    def identity(self) -> tuple[bytes | str, ...]:
        return ("geometric", str(self.step))

    def check_keys(self, plan: Node, keys: PublicKeys) -> None:
        if plan_properties(plan).require_lattice() != self.step:
            raise PlanError("the plan proves another lattice than the measurement's: use query.geometric_count(...)")

    def scales(self, plan: Node, epsilon: Fraction) -> tuple[float, ...]:
        return (lattice_scale(plan_properties(plan), epsilon / self.sensitivity),)

    def draw(self, output: Output, keys: Sequence[Value], scales: Sequence[float], random: RandomBytes) -> list[float]:
        return [float(steps) for steps in add_geometric(gathered(self, output, keys), scales[0], random)]

    def in_units(self, weights: Sequence[Any]) -> Sequence[Any]:
        return on_lattice(weights, self.step)

    @property
    def lattice(self) -> Fraction | None:
        return self.step

    @property
    def factor(self) -> Fraction:
        return self.step

    def half_width(self, scale: float, confidence: float) -> float:
        step = float(self.step)
        return DoubleGeometric(scale / step).interval(confidence) * step

    def cut(self, above: float) -> float:
        step = float(self.step)
        if above / step >= _WHOLE:
            raise PlanError(f"a threshold of {above:g} is too many steps of the lattice {self.step}: take a lower one")
        steps = math.floor(above / step)
        # answers are products of floats: the largest number of steps whose answer is not above the threshold
        while steps * step > above:
            steps -= 1
        while (steps + 1) * step <= above:
            steps += 1
        return float(steps)

    def chance_above(self, above: float, scale: float) -> float:
        return DoubleGeometric(scale / float(self.step)).survival(int(self.cut(above)))

    def listed_reach(self, value: float, above: float, scale: float, confidence: float) -> float:
        step = float(self.step)
        least = (self.cut(above) + 1) * step
        return scale * listed_reach((value - least) / scale, math.exp(-step / scale), confidence)

    def explain_noise(self, plan: Node, epsilon: Fraction) -> Iterator[str]:
        scale = self.answer_scale(self.scales(plan, epsilon)[0])
        said = f"{self.called(epsilon)} adds double-geometric noise of scale {scale:.9g}"
        yield f"{said}, multiples of {self.step}, to every weight,"
        yield f"so 95 % of answers lie within {self.half_width(scale, 0.95):.4g} of the weight."
