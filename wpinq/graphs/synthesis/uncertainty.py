"""Intervals for the statistics of the secret graph, from answers alone.

What an interval holds is the value of the secret graph. The synthetic one has a value of its own, which may be outside:
then the graph missed what the answers tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.random import Generator

from wpinq.measure.answers import Answers
from wpinq.noise.noise_distributions import half_width
from wpinq.runtime.arrays import Floats, Integers

#: Of every interval here.
CONFIDENCE = 0.9

#: The chance of being off that an interval has on either side.
TAIL = (1 - CONFIDENCE) / 2

#: Of a statistic that nothing was asked about: it is what the graph that the walk begins from makes of it.
NOT_MEASURED = "not measured: inherited from the seed graph"

SWAMPED = "dominated by noise"

#: Of an interval for assortativity, which goes from -1 to 1: beyond, noise swamps it.
WIDE = 0.5

#: An interval whose ends are farther apart than this factor is wider than its middle.
_TOO_WIDE = 3.0


@dataclass(frozen=True, slots=True)
class Interval:
    """The interval of one statistic of the secret graph, from answers, at 90 % confidence.

    Attributes
    ----------
    low, high : float
        The ends, in the unit of the statistic; infinity where nothing bounds it.
    swamped : bool
        Whether noise is as large as what there is to see: 0 is not ruled out, or the interval is wider than its middle.
    leaves_out : str
        The errors that the interval does not cover, so that it may miss more often than stated; empty if none.
    cautious : bool
        Whether it is conservative: made of tests for all graphs, so that on most it holds more often than stated.
    public : bool
        Whether it is public knowledge, and not from answers.

    Notes
    -----
    Privacy cost: none; it follows from answers and public numbers.
    """

    low: float
    high: float
    swamped: bool
    leaves_out: str = ""
    cautious: bool = False
    public: bool = field(default=False, repr=False)

    @staticmethod
    def of_count(low: float, high: float, leaves_out: str = "", cautious: bool = False) -> Interval:
        """The interval of what is at least 0, cut off there.

        Examples
        --------
        >>> Interval.of_count(-3, 8)
        Interval(low=0.0, high=8.0, swamped=True, leaves_out='', cautious=False)
        """
        floor, ceiling = max(0.0, float(low)), max(0.0, float(high))
        return Interval(floor, ceiling, floor <= 0 or ceiling > _TOO_WIDE * floor, leaves_out, cautious)

    def holds(self, value: float) -> bool:
        """Whether a value is in the interval."""
        return self.low <= value <= self.high

    def to_json(self) -> dict[str, Any]:
        """The interval as plain data; an end that nothing bounds is null."""
        return {name: None if value == math.inf else value for name, value in asdict(self).items()}


#: From a generator, which is public, to the interval of each statistic that the answers tell of.
Intervals = Callable[[np.random.Generator], Mapping[str, Interval]]


def phrase(interval: Interval | None, value: float | None = None) -> str:
    """The words beside a statistic.

    Parameters
    ----------
    interval : Interval or None
        None where nothing was measured.
    value : float, optional
        That of the synthetic graph.

    Examples
    --------
    >>> phrase(Interval(0, 168, swamped=True), 42)
    '90 % interval 0 to 168; dominated by noise'
    >>> phrase(Interval(30, 50, swamped=False), 60)
    '90 % interval 30 to 50; the synthetic value is outside'
    >>> phrase(None)
    'not measured: inherited from the seed graph'
    """
    if interval is None:
        return NOT_MEASURED
    if interval.public:
        return "public"
    high = "any" if interval.high == math.inf else _shown(interval.high)
    words = [f"{CONFIDENCE:.0%} interval ".replace("%", " %") + f"{_shown(interval.low)} to {high}"]
    if interval.cautious:
        words.append("conservative")
    if interval.leaves_out:
        words.append(f"does not cover {interval.leaves_out}")
    if interval.swamped:
        words.append(SWAMPED)
    if value is not None and math.isfinite(value) and not interval.holds(value):
        words.append("the synthetic value is outside")
    return "; ".join(words)


def swamped(uncertainty: Mapping[str, Interval]) -> list[str]:
    """The statistics that noise swamps."""
    return [name for name, interval in uncertainty.items() if interval.swamped]


def warning(uncertainty: Mapping[str, Interval]) -> str:
    """A line that names what noise swamps; empty where that is nothing.

    Examples
    --------
    >>> warning({"nodes": Interval(9, 11, swamped=False), "largest_degree": Interval(0, 50, swamped=True)})
    'Noise dominates largest degree: do not use the synthetic value. A larger epsilon is needed.'
    """
    names = [name.replace("_", " ") for name in swamped(uncertainty)]
    if not names:
        return ""
    what = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
    return f"Noise dominates {what}: do not use the synthetic value. A larger epsilon is needed."


def uncertainty_report(uncertainty: Mapping[str, Interval], statistics: Mapping[str, float | None]) -> dict[str, Any]:
    """The interval of each statistic as plain data, with its words.

    Parameters
    ----------
    uncertainty : mapping
        The intervals.
    statistics : mapping
        The statistics, each with that of the synthetic graph, or None while there is none.
    """
    told = {}
    for name, value in statistics.items():
        interval = uncertainty.get(name)
        known = {"not_measured": True} if interval is None else interval.to_json()
        told[name] = {**known, "words": phrase(interval, value)}
    return {"confidence": CONFIDENCE, "statistics": told, "swamped": swamped(uncertainty)}


def _shown(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 10 else f"{number:.3g}"


# --- nodes, edges and the largest degree, from the answers without an estimate ----------------------------------------

# No estimate is in between: only the noise, of which all is known. So the intervals hold for every graph, however
# unlike it is to what an estimate takes for likely.

_DRAWS = 50_000
#: How many bands of degrees are looked at together, in search of what a large degree would leave there.
_WINDOW = 2
#: What each band further up counts: of bands beyond the largest degree, the lowest is the first to hold anything.
_FALL = 0.5


def nodes_interval(nodes: float, scale: float) -> Interval:
    """The number of nodes, from a noisy one with Laplace noise of that scale.

    Examples
    --------
    >>> nodes_interval(100, 10)
    Interval(low=76.97414907005954, high=123.02585092994046, swamped=False, leaves_out='', cautious=False)
    """
    off = half_width(scale, CONFIDENCE)
    return Interval.of_count(nodes - off, nodes + off)


def edges_interval(mass: Floats, scale: float, terms: Sequence[int]) -> Interval:
    """The number of edges: half the sum of all degree; see `largest_degree_interval`."""
    total, off = float(mass.sum()), scale * _quantile(sum(terms), 1 - TAIL)
    return Interval.of_count((total - off) / 2, (total + off) / 2)


def largest_degree_interval(limits: Sequence[int], mass: Floats, scale: float, terms: Sequence[int]) -> Interval:
    """The degrees of which the answers do not rule out that they are the largest one.

    Band i of degrees, between the limits C_i and C_{i+1}, holds `m_i = Σ_a clamp(d_a − C_i, 0, C_{i+1} − C_i)`. A
    largest degree d fills the bands below it and adds `d − C_i` to its own: where its own noisy band, or the sum of
    that and the one below, falls short of that by more than noise does once in forty times, d is ruled out. From the
    other side, nothing is in the bands above d: where their noisy sum, each counting half of the one below, is more
    than noise alone gives once in twenty times, d is ruled out.

    Parameters
    ----------
    limits : sequence of int
        C_0 = 0 < C_1 < …, no largest degree beyond the last.
    mass : array of shape (bands,)
        Noisy `m_i`.
    scale : float
        The scale of the Laplace noise of one released number.
    terms : sequence of int
        The number of released numbers in the sum of each band.

    Returns
    -------
    Interval
        Each side misses in at most a twentieth of runs, and in fewer where other nodes fill the bands too. Where they
        contradict each other, one of them has missed, and what is between them stands.

    Notes
    -----
    A Neyman construction: each degree is tested by itself, at its own level.

    Examples
    --------
    >>> found = largest_degree_interval([0, 2, 4, 8, 16], np.array([40.0, 25.0, 9.0, 0.0]), 0.5, [1, 1, 1, 1])
    >>> found.low, round(found.high, 2), found.swamped
    (5.0, 9.5, False)
    """
    bands, widths = len(mass), np.diff(limits)
    above, ruled_out = 0.0, []
    for i in range(bands)[::-1]:
        above = float(mass[i]) + _FALL * above
        ruled_out.append(above > scale * _quantile_above(tuple(terms[i:])))
    low = 1.0
    for i, out in enumerate(ruled_out[::-1]):  # up to the first that stands: so only the test of the true one can err
        if not out:
            break
        low = float(limits[i] + 1)
    high = 1.0
    for i in range(bands):
        top = float(limits[i + 1])
        for size in range(1, min(_WINDOW, i + 1) + 1):
            window = slice(i + 1 - size, i + 1)
            off = scale * _quantile(sum(terms[window]), 1 - TAIL / _WINDOW)
            top = min(top, float(limits[i] + mass[window].sum() + off - widths[i + 1 - size : i].sum()))
        if top > limits[i]:
            high = top
    low, high = sorted((low, high))
    return Interval.of_count(low, high, cautious=True)


@lru_cache(maxsize=256)
def _quantile(terms: int, chance: float) -> float:
    """What the sum of so many Laplace draws of scale 1 stays below with this chance."""
    return half_width(1.0, 2 * chance - 1) if terms == 1 else float(np.quantile(_noise(terms), chance))


@lru_cache(maxsize=256)
def _quantile_above(terms: tuple[int, ...]) -> float:
    """The 95 % quantile of the sum of bands of noise, each counting half of the one before."""
    noise = sum((_FALL**place * _noise(count, place) for place, count in enumerate(terms)), np.zeros(_DRAWS))
    return float(np.quantile(noise, 1 - TAIL))


def _noise(terms: int, seed: int = 0) -> Floats:
    """Draws of the sum of some Laplace variables of scale 1, a difference of gammas.

    They are the same every time.
    """
    rng = np.random.default_rng(seed)
    return np.asarray(rng.standard_gamma(terms, _DRAWS) - rng.standard_gamma(terms, _DRAWS))


# --- the paper's queries: where they leave much open, intervals are wide ----------------------------------------------

ASKED = "triangles with unreleased degrees"
FITTED = "bias of the fitted degrees"
_DRAWS_RELEASED_TRUST = 2000

#: From the answers to a query, the fitted degrees, and the most that the largest degree may be, to intervals.
Tells = Callable[[Answers, Integers, float, Generator], Mapping[str, Interval]]


def degree_intervals(ccdf: Answers) -> dict[str, Interval]:
    """Intervals of nodes, edges and the largest degree from the counts of degree above 0, 1, …."""
    values = np.asarray(ccdf.values, dtype=np.float64)
    limits = [0, *(2**k for k in range(1, len(values).bit_length() + 1) if 2**k < len(values)), len(values)]
    terms = np.diff(limits).tolist()
    mass = np.add.reduceat(values, limits[:-1])
    return {
        "nodes": nodes_interval(ccdf[0], ccdf.scale),
        "edges": edges_interval(mass, ccdf.scale, terms),
        "largest_degree": largest_degree_interval(limits, mass, ccdf.scale, terms),
    }


def by_intersect(answers: Answers, degrees: Integers, largest: float, rng: Generator) -> dict[str, Interval]:
    """Of triangles: each adds from 3/largest to 3/2, for the answer does not show their degrees."""
    (weight,) = answers.values
    off = half_width(answers.scale, CONFIDENCE)
    low, high = max(0.0, (weight - off) * 2 / 3), max(0.0, (weight + off) * max(largest, 2.0) / 3)
    return {"triangles": Interval(float(low), float(high), bool(weight <= off), cautious=True)}


def by_degree(bucket: int, answers: Answers, degrees: Integers, largest: float, rng: Generator) -> dict[str, Interval]:
    """Of triangles: one of degrees x, y, z adds `3/(x² + y² + z²)`.

    In a bucket these may be any.
    """
    places = np.array(list(answers.keys), dtype=np.float64) * bucket
    least, most = np.maximum(places, 2), np.maximum(places + bucket - 1, 2)
    ends = [_sum(answers, (degree**2).sum(axis=1) / 3, rng) for degree in (least, most)]
    return {"triangles": Interval.of_count(min(low for low, _ in ends), max(high for _, high in ends), ASKED)}


def by_joint_degrees(answers: Answers, degrees: Integers, largest: float, rng: Generator) -> dict[str, Interval]:
    """Of assortativity: a directed edge between degrees x and y adds `1/(2 + 2x + 2y)`.

    So `Σ xy` has noise alone.
    """
    x, y = np.array(list(answers.keys), dtype=np.float64).T
    fitted = degrees.astype(np.float64)
    stubs = fitted.sum()
    middle = (fitted**2).sum() / stubs
    variance = (fitted**3).sum() / stubs - middle**2
    if variance <= 0:  # of nodes that all have one degree there is none
        return {"assortativity": Interval(-1.0, 1.0, True, FITTED)}
    low, high = ((end / stubs - middle**2) / variance for end in _sum(answers, (2 + 2 * x + 2 * y) * x * y, rng))
    if low > 1 or high < -1:  # the answer contradicts the fitted degrees, so it decides nothing
        return {"assortativity": Interval(-1.0, 1.0, True, FITTED)}
    ends = np.clip([low, high], -1, 1)  # the width before this decides: noise of any size has a clipped width near 0
    return {"assortativity": Interval(float(ends[0]), float(ends[1]), bool(high - low > WIDE), FITTED)}


def _sum(answers: Answers, factors: Floats, rng: Generator) -> tuple[float, float]:
    """The interval of a sum of released weights, each times a factor."""
    noise = rng.laplace(scale=answers.scale, size=(_DRAWS_RELEASED_TRUST, len(factors))) @ factors
    middle, off = float(np.asarray(answers.values) @ factors), float(np.quantile(noise, 1 - TAIL))
    return middle - off, middle + off
