"""Variances, covariances, correlations and slopes of groups, from products of shares.

A value is a share of its range, u, and the rest of it, l (`sinks.clamped`). Products of these are the entries of the
upper triangle of the moments, and the parts of one record sum to at most 1: one unit moves all of them by 1.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from wpinq.errors import PlanError
from wpinq.expr.nodes import Lambda
from wpinq.expr.trace import RecordFunction, Symbol, lift
from wpinq.measure.answers import Answers
from wpinq.measure.measurement import Measurement
from wpinq.plan.node import Node
from wpinq.plan.operators import SelectMany
from wpinq.runtime.arrays import Floats
from wpinq.sinks.answer_kinds import Kind, NotStated
from wpinq.sinks.clamped import NoisyAverage, check_range, check_value, clamped, end_shares, weighted
from wpinq.tables.aggregates import AdditiveAggregate, Columns, OfColumn, Parameters, ReadOff, extended, words_of
from wpinq.tables.grouping import Groups

#: How many draws of noise an interval is from, and for how many groups at once.
_DRAWS, _GROUPS = 2048, 256


@dataclass(frozen=True, slots=True)
class Moment(OfColumn, AdditiveAggregate):
    """Aggregates of second moments: shares of a record, and a statistic of their totals.

    The interval is of the statistic of the clamped values. It holds the middle share of `statistic(noisy − noise)`
    over draws of the noise. For a ratio of linear forms that is the test that `clamped` inverts, which is exact; here
    its coverage is measured (`benchmarks/moments.py`). A draw without a positive variance counts as both ends, and so
    do all draws where they are too few for the confidence.

    A total is at least 0. For a slope, a drawn total that is further below 0 than one scale of the noise is taken at
    that place: it stays below the true one, so of this part it stays on its side (`docs/proofs/means.md`).

    Attributes
    ----------
    limits : (float, float)
        The least and the largest it can be, in units of the ranges.
    powers : tuple of int
        Of the length of each range, in the unit of the statistic.
    offset : float
        What is added to it in this unit.
    floor : float
        The least that a drawn total is taken for, in scales of the noise.
    """

    parameters: ClassVar[Parameters] = (("column", "function"), ("lower", "real"), ("upper", "real"))
    noun: ClassVar[str]
    limits: ClassVar[tuple[float, float]]
    powers: ClassVar[tuple[int, ...]]
    offset: ClassVar[float] = 0.0
    floor: ClassVar[float] = -math.inf
    lower: float
    upper: float

    def __post_init__(self) -> None:
        names = [name for name, _ in self.parameters]
        for low, high in zip(names[1::3], names[2::3], strict=True):
            sink = NoisyAverage(*check_range(getattr(self, low), getattr(self, high)))  # refused as those of a mean are
            object.__setattr__(self, low, sink.lower)
            object.__setattr__(self, high, sink.upper)
        if self.unit > 1e300:
            raise PlanError(f"{self.noun}: the first range is over 1e300 times as wide as the other: widen that")

    @property
    def ranges(self) -> list[tuple[Any, float, float]]:
        """Each column with its range."""
        values = [getattr(self, name) for name, _ in self.parameters]
        return list(zip(values[::3], values[1::3], values[2::3], strict=True))

    @property
    def unit(self) -> float:
        """What the statistic is multiplied by."""
        by = [(high - low, power) for (_, low, high), power in zip(self.ranges, self.powers, strict=True)]
        return math.prod(size**power for size, power in by if power > 0) / math.prod(s**-p for s, p in by if p < 0)

    @staticmethod
    @abstractmethod
    def shares(*ends: tuple[Any, Any]) -> list[Any]:
        """The parts of a record, which sum to at most 1, from u and l of each column."""

    @staticmethod
    @abstractmethod
    def statistic(*parts: Floats) -> Floats:
        """The statistic from the totals of the parts, in units of the ranges, or nan."""

    def own_plan(self, groups: Groups) -> Node:
        columns = [(check_value(column), low, high) for column, low, high in self.ranges]

        def elements(record: Symbol) -> Any:
            ends = [end_shares(clamped(function, record, low, high), low, high) for function, low, high in columns]
            shares = self.shares(*((Symbol(u), Symbol(low)) for u, low in ends))
            parts = zip(self.own_parts, shares, strict=True)
            return [weighted(groups.label(record, part), lift(share)) for part, share in parts]

        return extended(groups.plan, SelectMany, function=elements)

    def columns(self, answers: Sequence[Answers], confidence: float, groups: slice) -> tuple[Any, ...]:
        found = AdditiveAggregate.columns(self, answers, confidence, groups)
        return tuple([None if number != number else number for number in column.tolist()] for column in found)

    def estimates(self, parts: Floats, weights: Answers, confidence: float) -> tuple[Floats, Floats, Floats]:
        draws = weights.scale * _draws(len(parts))
        rank = int(_DRAWS * (1 - confidence) / 2)
        found = np.empty((3, parts.shape[1]))
        for start in range(0, parts.shape[1], _GROUPS):
            noisy = parts[:, start : start + _GROUPS, None]
            with np.errstate(all="ignore"):  # of what is none
                drawn = self.statistic(*np.maximum(noisy - draws[:, None, :], self.floor * weights.scale))
                number, none = self.statistic(*noisy)[:, 0], np.isnan(drawn) | (rank < 1)
            low, up = (np.partition(np.where(none, -np.inf, end), rank)[:, rank] for end in (drawn, -drawn))
            ends = np.clip([number, np.fmin(low, number), np.fmax(-up, number)], *self.limits) * self.unit + self.offset
            ends[1:, ~np.isfinite(ends).all(axis=0)] = np.nan
            found[:, start : start + _GROUPS] = ends
        return found[0], found[1], found[2]

    def stand_in(self, measurement: Measurement) -> Measurement:
        return replace(measurement, sink=ReadOff(_unforeseen))

    def kind(self, measurements: Sequence[Measurement]) -> Kind:
        return Kind(self.noun, self.description)

    @property
    def description(self) -> str:
        of = (f"{words_of(column)}, clamped to {low:g} to {high:g}" for column, low, high in self.ranges)
        return f"{self.noun} of {' and '.join(of)}"


def _unforeseen(confidence: float) -> float:
    raise NotStated("depends on the data: see wp.simulate")


@lru_cache(maxsize=8)
def _draws(parts: int) -> Floats:
    """Points that fill the law of some Laplace draws evenly, of scale 1: the same each time."""
    from scipy.stats import qmc

    uniform = qmc.Sobol(parts, scramble=False).random(_DRAWS).T + 0.5 / _DRAWS
    drawn: Floats = -np.sign(uniform - 0.5) * np.log1p(-np.abs(2 * uniform - 1))
    return drawn


def _table(weight: float, first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
    return [weight * (one * other) for one in first for other in second]


def _covariance(both: Floats, first: Floats, second: Floats, neither: Floats) -> Floats:
    count = both + first + second + neither
    return np.where(count > 0, (both * neither - first * second) / count**2, np.nan)


def _variance(table: Sequence[Floats], product: Floats, margin: int) -> Floats:
    """The variance of a column, if positive: its share is in two cells, `u·l` in the product."""
    count = sum(table)
    share = (table[0] + table[margin]) / count
    found = share * (1 - share) - product / count
    return np.where((count > 0) & (found > 0), found, np.nan)


@dataclass(frozen=True, slots=True)
class Var(Moment):
    """The variance: `(H·L − M²/4)/n²` of the parts `u²`, `2·u·l` and `l²`."""

    name: ClassVar[str] = "Var"
    own_parts: ClassVar[tuple[str, ...]] = ("high", "middle", "low")
    noun: ClassVar[str] = "variance"
    limits: ClassVar[tuple[float, float]] = (0.0, 0.25)
    powers: ClassVar[tuple[int, ...]] = (2,)

    @staticmethod
    def shares(*ends: tuple[Any, Any]) -> list[Any]:
        ((u, low),) = ends
        return [u * u, 2.0 * (u * low), low * low]

    @staticmethod
    def statistic(*parts: Floats) -> Floats:
        high, middle, low = parts
        return _covariance(high, middle / 2, middle / 2, low)


@dataclass(frozen=True, slots=True)
class Std(Var):
    """The standard deviation: the root of the variance."""

    name: ClassVar[str] = "Std"
    noun: ClassVar[str] = "standard deviation"
    limits: ClassVar[tuple[float, float]] = (0.0, 0.5)
    powers: ClassVar[tuple[int, ...]] = (1,)

    @staticmethod
    def statistic(*parts: Floats) -> Floats:
        return np.asarray(np.sqrt(np.maximum(Var.statistic(*parts), 0.0)))


@dataclass(frozen=True, slots=True)
class Cov(Moment):
    """The covariance: `(A·D − B·C)/n²` of the table of `u·u′`, `u·l′`, `l·u′` and `l·l′`."""

    name: ClassVar[str] = "Cov"
    parameters: ClassVar[Parameters] = (
        *Moment.parameters,
        ("other", "function"),
        ("other_lower", "real"),
        ("other_upper", "real"),
    )
    own_parts: ClassVar[tuple[str, ...]] = ("both", "first", "second", "neither")
    noun: ClassVar[str] = "covariance"
    limits: ClassVar[tuple[float, float]] = (-0.25, 0.25)
    powers: ClassVar[tuple[int, ...]] = (1, 1)
    other: RecordFunction | Lambda
    other_lower: float
    other_upper: float

    @staticmethod
    def shares(*ends: tuple[Any, Any]) -> list[Any]:
        return _table(1.0, *ends)

    @staticmethod
    def statistic(*parts: Floats) -> Floats:
        return _covariance(*parts)


@dataclass(frozen=True, slots=True)
class Corr(Cov):
    """The correlation: half of a record is the table, at most a quarter `u·l`, and `u′·l′`."""

    name: ClassVar[str] = "Corr"
    own_parts: ClassVar[tuple[str, ...]] = (*Cov.own_parts, "spread", "other spread")
    noun: ClassVar[str] = "correlation"
    limits: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    powers: ClassVar[tuple[int, ...]] = (0, 0)

    @staticmethod
    def shares(*ends: tuple[Any, Any]) -> list[Any]:
        return [*_table(0.5, *ends), *(u * low for u, low in ends)]

    @staticmethod
    def statistic(*parts: Floats) -> Floats:
        *table, first, second = parts
        variances = _variance(table, first / 2, 1) * _variance(table, second / 2, 2)
        return np.asarray(_covariance(*table) / np.sqrt(variances))


@dataclass(frozen=True, slots=True)
class Ols(Cov):
    """The least-squares line: two thirds are the table, at most a third is `4/3·u′·l′`."""

    name: ClassVar[str] = "Ols"
    own_parts: ClassVar[tuple[str, ...]] = (*Cov.own_parts, "spread")
    noun: ClassVar[str] = "slope and intercept"
    floor: ClassVar[float] = -1.0
    limits: ClassVar[tuple[float, float]] = (-np.inf, np.inf)
    powers: ClassVar[tuple[int, ...]] = (1, -1)

    @staticmethod
    def shares(*ends: tuple[Any, Any]) -> list[Any]:
        u, low = ends[1]
        return [*_table(2 / 3, *ends), 4 / 3 * (u * low)]

    @staticmethod
    def statistic(*parts: Floats) -> Floats:
        *table, product = parts
        return _covariance(*table) / _variance(table, product / 2, 2)

    def shown(self) -> Columns:
        return {end: Cov.shown(self)[""] for end in ("", "_intercept")}

    def columns(self, answers: Sequence[Answers], confidence: float, groups: slice) -> tuple[Any, ...]:
        intercept = Intercept(*(getattr(self, name) for name, _ in self.parameters))
        return (*Cov.columns(self, answers, confidence, groups), *intercept.columns(answers, confidence, groups))


@dataclass(frozen=True, slots=True)
class Intercept(Ols):
    """The height of a least-squares line at 0, from the parts of the line."""

    powers: ClassVar[tuple[int, ...]] = (1, 0)
    columns = Cov.columns

    @property
    def offset(self) -> float:  # type: ignore[override]
        return self.lower

    def statistic(self, *parts: Floats) -> Floats:  # type: ignore[override]
        count, start = sum(parts[:4]), self.other_lower / (self.other_upper - self.other_lower)
        mean, other = ((parts[0] + parts[margin]) / count for margin in (1, 2))
        return np.asarray(mean - Ols.statistic(*parts) * (other + start))
