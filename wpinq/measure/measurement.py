"""Measurements: what is to be released, with which epsilon, over which public keys. Pure data.

NoisyCount releases weights with Laplace noise, GeometricCount weights that lie on a lattice with double-geometric
noise; NoisySum and NoisyAverage release weights of a query made for them, with Laplace noise. Noisy choices by scores
that the weights determine are in `choices` and `most_distant`, counts of subgraphs in `subgraph_counts`, the
largest degree in `largest_degree`, choices of buckets in `bucket_choice`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from wpinq.errors import PlanError, WpinqError
from wpinq.expr.nodes import digest_of
from wpinq.expr.types import Type
from wpinq.expr.values import Value, canonical_bytes
from wpinq.measure.renyi import DOUBLE_GEOMETRIC, LAPLACE
from wpinq.noise.epsilon import format_epsilon, parse_epsilon
from wpinq.noise.noise_distributions import DoubleGeometric, half_width, listed_reach
from wpinq.plan.demand import charges
from wpinq.plan.format import plan_from_json, plan_to_json, value_from_json, value_to_json
from wpinq.plan.node import Node
from wpinq.plan.properties import plan_properties
from wpinq.sinks.answer_kinds import STATISTIC, Kind
from wpinq.sinks.buckets import Buckets
from wpinq.sinks.choices import Choose as Choose
from wpinq.sinks.choices import NoisyChoice as NoisyChoice
from wpinq.sinks.count_above import Listable, Listing, listing_from_json
from wpinq.sinks.graph_counts import FourCliqueCount, StarCount, TriangleCount
from wpinq.sinks.keys import check_domain as check_domain
from wpinq.sinks.largest_degree import LargestDegree
from wpinq.sinks.most_distant import MostDistant as MostDistant
from wpinq.sinks.sink import Sink as Sink
from wpinq.sinks.sink import check_text as check_text

LARGEST_BOUND = 1e100
"""The largest value that a sum or an average clamps to: noisy sums stay far within the floats."""

_WHOLE = 2.0**53  # up to here all integers are floats


class Laplace(Sink):
    """Sinks whose numbers are weights of a query plus Laplace noise: over one query, they share it."""

    __slots__ = ()

    def identity(self) -> tuple[bytes | str, ...]:
        return ("laplace",)

    @property
    def noise(self) -> str:
        return LAPLACE


@dataclass(frozen=True, slots=True)
class NoisyCount(Laplace, Listable):
    """Every weight plus Laplace noise of scale 1/ε (paper, section 2.2)."""

    name: ClassVar[str] = "NoisyCount"

    def cut(self, above: float) -> float:
        return above

    def chance_above(self, above: float, scale: float) -> float:
        return math.exp(-above / scale) / 2

    def listed_reach(self, value: float, above: float, scale: float, confidence: float) -> float:
        return scale * listed_reach((value - above) / scale, 1.0, confidence)


@dataclass(frozen=True, slots=True)
class GeometricCount(Sink, Listable):
    """Every weight plus double-geometric noise on the lattice g that the plan proves, `Pr[g·k] ∝ exp(−ε·g·|k|)`.

    Answers are multiples of g, and their error is less than Laplace noise of the same epsilon would make.
    """

    name: ClassVar[str] = "GeometricCount"
    proviso: ClassVar[str] = "the promise of GeometricCount is for neighbours whose outputs lie on the same lattice"
    step: Fraction

    def __post_init__(self) -> None:
        if not isinstance(self.step, Fraction) or self.step <= 0:
            raise PlanError("a lattice is a Fraction of more than 0: query.geometric_count(...) derives it")

    def identity(self) -> tuple[bytes | str, ...]:
        return ("geometric", str(self.step))

    @property
    def noise(self) -> str:
        return DOUBLE_GEOMETRIC

    @property
    def factor(self) -> Fraction:
        return self.step

    def half_width(self, scale: float, confidence: float) -> float:
        step = float(self.step)
        return DoubleGeometric(scale / step).interval(confidence) * step

    def cut(self, above: float) -> float:
        step = float(self.step)
        if above / step >= _WHOLE:
            raise PlanError(
                f"a threshold of {above:g} is too many steps of the lattice {self.step}: choose a lower one"
            )
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


@dataclass(frozen=True, slots=True)
class Clamped(Laplace):
    """Sinks over a query whose weights are values clamped to a public range."""

    single: ClassVar[bool] = True
    lower: float
    upper: float

    def kind(self, plan: Node) -> Kind:
        return Kind(STATISTIC, f"{self.noun} of values from {self.lower:g} to {self.upper:g}")

    def __post_init__(self) -> None:
        bounds = self.lower, self.upper
        if not all(type(bound) is float and abs(bound) <= LARGEST_BOUND for bound in bounds) or self.lower > self.upper:
            raise PlanError(
                f"values are clamped between two floats of at most {LARGEST_BOUND:g} in size, lower <= upper"
            )


@dataclass(frozen=True, slots=True)
class NoisySum(Clamped):
    """`Σ A(x) · clamp(f(x))`: the weight of one record that each x adds `clamp(f(x)) / magnitude` to."""

    name: ClassVar[str] = "NoisySum"
    noun: ClassVar[str] = "sum"

    @property
    def factor(self) -> Fraction:
        return Fraction(max(abs(self.lower), abs(self.upper)))


@dataclass(frozen=True, slots=True)
class NoisyAverage(Clamped):
    """The weighted average of clamped values, from a noisy sum about the middle of the range and a noisy count.

    Both are weights of one query, of norm at most 1 a record: each record gives half its weight to "count" and
    up to half to "sum". Answers are both noisy weights; `value` is their ratio, put back in the range.
    """

    name: ClassVar[str] = "NoisyAverage"
    noun: ClassVar[str] = "average"

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


SINKS: dict[str, type[Sink]] = {
    sink.name: sink
    for sink in (
        *(NoisyCount, GeometricCount, NoisySum, NoisyAverage, Choose, MostDistant),
        *(TriangleCount, StarCount, FourCliqueCount, LargestDegree),
        Buckets,
    )
}
"""Every sink by its name: all that a promise covers."""


@dataclass(frozen=True)
class Measurement:
    """A plan with its sink, its epsilon and, usually, its public keys. Holds no data and spends nothing.

    What follows from it is found once, however often it is released.

    Attributes
    ----------
    plan : Node
        The query.
    sink : Sink
        How its output is released.
    epsilon : Fraction
        The privacy parameter of the release, before uses and unit weight multiply it.
    domain : tuple or None
        The public keys that are released, in canonical form (`expr.values`); None where keys are asked for one by one.
    reading : str
        How to read the weights, where the query knows.
    listing : Listing or None
        Where not all keys are released but those of a public domain whose noisy value is above a threshold. The noise
        is that of the sink for every key, listed or not.
    """

    plan: Node
    sink: Sink
    epsilon: Fraction
    domain: tuple[Value, ...] | None
    reading: str = ""
    listing: Listing | None = None

    def __post_init__(self) -> None:
        check_text(self.reading, "a reading")
        if isinstance(self.epsilon, (int, Fraction)):  # others are refused where noise is scaled
            parse_epsilon(self.epsilon)
        self.sink.check(self.plan)
        if self.listing is not None:
            if not isinstance(self.sink, Listable):
                raise PlanError("only NoisyCount and GeometricCount can be listed above a threshold")
            self.sink.cut(self.listing.above)

    @property
    def key_type(self) -> Type:
        """The type of the keys: that of the plan's records, but where the sink has keys of its own."""
        return self.sink.key_type or self.plan.type

    @property
    def kind(self) -> Kind:
        """What kind of number is released: from the plan and its sources' declarations, never from data."""
        return self.sink.kind(self.plan)

    @cached_property
    def checked(self) -> Measurement:
        """The same with keys that were looked at: a Measurement can be made by hand."""
        domain, listing = self.domain, self.listing
        if listing is not None:
            domain, listing = None, listing.checked(self.key_type)
        if domain is not None:
            domain = check_domain(domain, self.key_type, canonical=True)
        return replace(self, domain=domain, listing=listing)

    @cached_property
    def moves(self) -> Mapping[str, Mapping[str, Fraction]]:
        """Account -> source -> the bound on how far one unit of weight there moves the output."""
        declared, found = plan_properties(self.plan).sources, dict[str, dict[str, Fraction]]()
        for name, moved in self.sink.stability(self.plan).items():
            found.setdefault(declared[name].account, {})[name] = moved
        return found

    @cached_property
    def costs(self) -> Mapping[str, Fraction]:
        """Account -> the epsilon that it is charged for this measurement alone, whatever of it parts are charged."""
        asked = {name: moved * self.epsilon for name, moved in self.sink.stability(self.plan).items()}
        return charges(asked, plan_properties(self.plan).sources)

    @cached_property
    def parted(self) -> bool:
        """Whether it reads parts of partitions, so that what it is charged hangs on what else was asked of these."""
        return plan_properties(self.plan).output.splits > 0

    @cached_property
    def asked(self) -> tuple[Node, Fraction]:
        """What `plan.demand` prices: a root, and the demand that flows down from it."""
        return self.sink.asked(self.plan, self.epsilon)

    @cached_property
    def digest(self) -> bytes:
        """What identifies the noise: plan, sink and epsilon. Two domains over one release share their noise."""
        return self._digest(self.sink.identity())

    @property
    def former_digest(self) -> bytes:
        """What identified the noise earlier, where another mechanism stood in for the sink's."""
        return self._digest(self.sink.former_identity())

    def ends(self, number: float, scale: float, confidence: float) -> tuple[float, float]:
        """The interval around one answer; of a listed one, that which holds given that it is listed."""
        half = self.sink.half_width(scale, confidence)
        if self.listing is None:
            return number - half, number + half
        assert isinstance(self.sink, Listable)
        low = number - self.sink.listed_reach(number, self.listing.above, scale, confidence)
        return 0.0 if low == -math.inf and plan_properties(self.plan).output.nonnegative else low, number + half

    def _digest(self, sink: tuple[bytes | str, ...]) -> bytes:
        extra: tuple[bytes | str, ...] = ()
        if isinstance(self.sink, NoisyChoice):  # a choice is made among its candidates: others, another choice
            extra = tuple(canonical_bytes(key, self.key_type) for key in self.domain or ())
        return digest_of("measurement", self.plan.digest, *sink, str(self.epsilon), *extra)

    @cached_property
    def description(self) -> str:
        """One line for bills and ledgers; no data."""
        return f"{self.sink.name}({format_epsilon(self.epsilon)})"

    def __reduce__(self) -> Any:
        return _unpickle, (plan_to_json(self.plan), self.sink, self.epsilon, self.domain, self.reading, self.listing)


if TYPE_CHECKING:

    class ListedMeasurement(Measurement):
        """A measurement that has its public keys, so that a session gives Answers: for type checkers alone."""

        domain: tuple[Value, ...]

else:
    ListedMeasurement = Measurement


def _unpickle(plan: Mapping[str, Any], *rest: Any) -> Measurement:
    return Measurement(plan_from_json(plan), *rest)


# Measurements as JSON: what travels to a service, and what answers keep of theirs.


def measurement_to_json(measurement: Measurement) -> dict[str, Any]:
    """A measurement as plain data; `keys` is null where they are asked for one by one."""
    type_, listing = measurement.key_type, measurement.listing
    keys = measurement.domain
    return {
        "sink": measurement.sink.to_json(),
        "epsilon": str(measurement.epsilon),
        "reading": measurement.reading,
        "plan": plan_to_json(measurement.plan),
        "keys": None if keys is None else [value_to_json(key, type_) for key in keys],
        **({} if listing is None else {"listing": listing.to_json(type_)}),
    }


def measurement_from_json(data: Any) -> Measurement:
    """The measurement that plain data hold; PlanError when they do not."""
    try:
        return read_measurement(data)
    except WpinqError as reason:
        message = str(reason)
    except Exception:  # data of another make can fail in any way, deep in types and plans
        message = "these data do not hold a measurement"
    raise PlanError(message)


def read_measurement(data: Mapping[str, Any]) -> Measurement:
    """The same; whatever else is wrong raises what it raises."""
    sink_data = dict(data["sink"])
    sink = SINKS[sink_data.pop("name")].from_json(sink_data)
    made = Measurement(plan_from_json(data["plan"]), sink, parse_epsilon(data["epsilon"]), None, str(data["reading"]))
    type_, keys = made.key_type, data["keys"]
    listing = listing_from_json(data["listing"], type_) if "listing" in data else None
    if keys is not None:
        keys = check_domain((value_from_json(key, type_) for key in keys), type_, canonical=True)
    return replace(made, domain=keys, listing=listing)
