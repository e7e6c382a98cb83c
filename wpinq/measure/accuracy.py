"""The expected accuracy of answers, and the epsilon for a wanted one, from plans alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from wpinq.display.html import ShownAsText
from wpinq.errors import AnswersError, EpsilonError, PlanError, described
from wpinq.measure.answer_rows import aligned
from wpinq.measure.bill import Asked, bill, named
from wpinq.noise.epsilon import NANO
from wpinq.noise.epsilon_text import format_epsilon
from wpinq.runtime.public import public
from wpinq.sinks.answer_kinds import WEIGHT, Kind, NotStated, Stated

#: The largest epsilon of the search, in billionths: beyond it nothing is protected.
LARGEST = 10**6 * NANO


@dataclass(frozen=True, slots=True)
class Expected:
    """The expected accuracy of one measurement.

    Attributes
    ----------
    name : str
        Its name in the batch, or its description.
    measurement : Measurement
        The measurement; for an aggregate of a table, one that represents each of its numbers.
    kind : Kind
        The kind of number, which gives the units of the half-width. For a choice the unit is weight: the chosen
        candidate may be this much lighter, or further from the quantile, than the best one.
    half_width : float or None
        With the confidence of the table, an answer is no further from its value; over keys whose factors differ, the
        largest. None where something must be stated first.
    missing : str
        The quantity to state, or the reason why there is no half-width.
    epsilon_for : Fraction or None
        The least epsilon, to 1e-9, for the half-width that is wanted; None where none is wanted or none suffices.
    cost : mapping
        The cost of the measurement to each account, at its own epsilon.
    """

    name: str
    measurement: Any
    kind: Kind
    half_width: float | None
    missing: str
    epsilon_for: Fraction | None
    cost: Mapping[str, Fraction]


@public
@dataclass(frozen=True, slots=True, repr=False)
class Accuracy(ShownAsText):
    """The expected accuracy of a batch of measurements: a row each.

    Its text is the table.
    """

    rows: tuple[Expected, ...]
    confidence: float
    wanted: float | None

    def __getitem__(self, place: int) -> Expected:
        return self.rows[place]

    def __iter__(self) -> Iterator[Expected]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        share = f"{100 * self.confidence:.10g} %"
        wanted = self.wanted is not None
        heads = ["measurement", "kind", "epsilon", f"± at {share}", "costs", f"epsilon for ± {self.wanted}"]
        return "\n".join(aligned(cells[: 5 + wanted] for cells in (heads, *map(_cells, self))))

    __repr__ = __str__


def accuracy(
    measurements: Asked,
    confidence: float = 0.95,
    *,
    half_width: float | None = None,
    count: float | None = None,
    width: float | None = None,
) -> Accuracy:
    """The expected accuracy of measurements, and the epsilon for a wanted accuracy.

    It is known before anything is spent.

    Parameters
    ----------
    measurements : Measurement, Tabulation, sequence of these, or mapping from names to them
        The batch.
    confidence : float
        The confidence of each interval by itself, between 0 and 1.
    half_width : float, optional
        The half-width that is wanted, more than 0, in the units of each measurement's kind: counts, weights, sums.
    count : float, optional
        The assumed number of rows or groups of an average; in a table, of each group. For weights that are not counts,
        their total. It is a guess or public knowledge, because the data are not read.
    width : float, optional
        The width of the ladder of a count of subgraphs: the most common neighbours of two vertices; for stars the
        highest degree.

    Returns
    -------
    Accuracy
        A row for each measurement: kind, epsilon, half-width, cost, and the epsilon for the wanted half-width.

    Raises
    ------
    PlanError
        For a number out of range.
    AnswersError
        When the confidence does not lie between 0 and 1.

    Notes
    -----
    Privacy cost: none; only plans are read. Counts, weights and sums have the half-width of their intervals.
    For an average over a weight of n it is at most `(upper − lower) r / n`, r that of each of its two weights. A
    choice among m candidates is at most `s · ln((m − 1) / (2 (1 − confidence)))` of weight off the best, s the scale of
    its noise. A count of subgraphs lies so far from the true one in a graph whose ladder is of the stated width. The
    accuracy of a listing is not known before: the listed keys depend on the noise, and so do their errors.

    Examples
    --------
    >>> import wpinq as wp
    >>> people = wp.source("people", city=str, age=int, facts=["unit_weights"])
    >>> batch = {
    ...     "cities": people.select(lambda p: p.city).noisy_count(epsilon=0.5),
    ...     "age": people.noisy_average(0.5, lambda p: p.age, lower=0, upper=100),
    ... }
    >>> print(wp.accuracy(batch, half_width=2, count=1000))
    measurement  kind   epsilon  ± at 95 %  costs       epsilon for ± 2
    cities       count  0.5      5.991      people 0.5  1.497866506
    age          mean   0.5      0.5991     people 0.5  0.149786722
    """
    if not 0 < confidence < 1:
        raise AnswersError(f"a confidence lies between 0 and 1, not {described(confidence)}")
    if half_width is not None and not (half_width > 0 and math.isfinite(half_width)):
        raise PlanError("half_width is the largest error of an answer: a finite number above 0")
    for name, value in (("count", count), ("width", width)):
        if value is not None and not (value > 0 and math.isfinite(value)):
            raise PlanError(
                f"{name} is a finite number of more than 0, known publicly or guessed; not {described(value)}"
            )
    stated = Stated(count, width)
    rows = (_expected(*named, confidence, half_width, stated) for named in _stand_ins(measurements))
    return Accuracy(tuple(rows), confidence, half_width)


def _stand_ins(measurements: Asked) -> Iterator[tuple[str, Any, Kind]]:
    """Each measurement with its title and kind; of a table what stands for each aggregate."""
    for name, asked in named(measurements):
        for label, (measurement, kind) in asked.stand_ins.items():
            yield ", ".join(filter(None, (name, label))) or measurement.description, measurement, kind


def _expected(
    name: str, measurement: Any, kind: Kind, confidence: float, wanted: float | None, stated: Stated
) -> Expected:
    cost = bill(measurement)
    spread, missing = _least_factor(measurement, kind)

    def error(epsilon: Fraction) -> float:
        found: float = measurement.sink.error(measurement.plan, epsilon, measurement.domain, confidence, stated)
        return found

    def within(epsilon: Fraction) -> float:
        try:
            return error(epsilon) / float(spread)
        except (EpsilonError, AnswersError):  # out of the range of floats: no accuracy
            return math.inf

    try:
        error(measurement.epsilon)
    except NotStated as reason:
        missing = str(reason)
    if measurement.listing is not None:
        missing = "see the interval of each listed key"
    if missing:
        return Expected(name, measurement, kind, None, missing, None, cost)
    least = None if wanted is None else _least_epsilon(lambda epsilon: within(epsilon) <= wanted)
    return Expected(name, measurement, kind, within(measurement.epsilon), "", least, cost)


def _least_factor(measurement: Any, kind: Kind) -> tuple[Fraction, str]:
    """The least divisor of an answer, or why it is not known."""
    if kind.form is None:
        return kind.factor, ""
    if measurement.domain is None:
        return Fraction(1), "give keys: over=…"
    found = [factor for name, factor in map(kind.at, measurement.domain) if name != WEIGHT]
    return (min(found), "") if found else (Fraction(1), "no key is of an item")


def _least_epsilon(suffices: Callable[[Fraction], bool]) -> Fraction | None:
    """The least epsilon in whole billionths that suffices, by bisection.

    An epsilon suffices if a smaller one does.
    """
    high = 1
    while not suffices(Fraction(high, NANO)):
        high *= 2
        if high > LARGEST:
            return None
    low = high // 2  # does not suffice, or is 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(Fraction(middle, NANO)) else (middle, high)
    return Fraction(high, NANO)


def _cells(row: Expected) -> list[str]:
    within = row.missing if row.half_width is None else f"{row.half_width:.4g}"
    costs = ", ".join(f"{account} {format_epsilon(cost)}" for account, cost in row.cost.items())
    least = "none" if row.epsilon_for is None else format_epsilon(row.epsilon_for)
    return [row.name, row.kind.name, format_epsilon(row.measurement.epsilon), within, costs, least]
