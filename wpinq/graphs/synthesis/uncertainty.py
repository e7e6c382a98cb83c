"""How far a statistic of a synthetic graph can be trusted: an interval for the secret one's, or that there is none.

What an interval holds is the value of the secret graph. The synthetic one has a value of its own, which may be outside:
then the graph missed what the answers tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

CONFIDENCE = 0.9
"""Of every interval here."""

TAIL = (1 - CONFIDENCE) / 2
"""The chance of being off that an interval has on either side."""

NOT_MEASURED = "not measured: follows from the start"
"""Of a statistic that nothing was asked about: it is what the graph that the walk begins from makes of it."""

SWAMPED = "noise swamps this"

WIDE = 0.5
"""Of an interval for assortativity, which goes from -1 to 1: beyond, noise swamps it."""

_TOO_WIDE = 3.0
"""An interval whose ends are farther apart than this factor is wider than its middle."""


@dataclass(frozen=True, slots=True)
class Interval:
    """What answers tell of one statistic of the secret graph, with a confidence of 90 %.

    Attributes
    ----------
    low, high : float
        The ends, in the unit of the statistic; infinity where nothing bounds it.
    swamped : bool
        Whether noise is as large as what there is to see: 0 is not ruled out, or the interval is wider than its middle.
    leaves_out : str
        What the interval takes for granted, so that it may miss more often than it says; empty where that is nothing.
    cautious : bool
        Whether it is made of tests that must not fail on any graph, so that on most it holds more often than it says.

    Notes
    -----
    Privacy cost: none; it follows from answers and public numbers.
    """

    low: float
    high: float
    swamped: bool
    leaves_out: str = ""
    cautious: bool = False

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


Intervals = Callable[[np.random.Generator], Mapping[str, Interval]]
"""From a generator, which is public, to the interval of each statistic that the answers tell of."""


def no_intervals(rng: np.random.Generator) -> Mapping[str, Interval]:
    """Of a method that does not say what its answers tell."""
    return {}


def phrase(interval: Interval | None, value: float | None = None) -> str:
    """What is to stand beside a statistic, in words.

    Parameters
    ----------
    interval : Interval or None
        None where nothing was measured.
    value : float, optional
        That of the synthetic graph.

    Examples
    --------
    >>> phrase(Interval(0, 168, swamped=True), 42)
    '90 % interval 0 to 168; noise swamps this'
    >>> phrase(Interval(30, 50, swamped=False), 60)
    '90 % interval 30 to 50; the synthetic graph is outside'
    >>> phrase(None)
    'not measured: follows from the start'
    """
    if interval is None:
        return NOT_MEASURED
    high = "any" if interval.high == math.inf else _shown(interval.high)
    words = [f"{CONFIDENCE:.0%} interval ".replace("%", " %") + f"{_shown(interval.low)} to {high}"]
    if interval.cautious:
        words.append("holds more often than that")
    if interval.leaves_out:
        words.append(f"leaves out {interval.leaves_out}")
    if interval.swamped:
        words.append(SWAMPED)
    if value is not None and math.isfinite(value) and not interval.holds(value):
        words.append("the synthetic graph is outside")
    return "; ".join(words)


def swamped(trust: Mapping[str, Interval]) -> list[str]:
    """The statistics that noise swamps."""
    return [name for name, interval in trust.items() if interval.swamped]


def warning(trust: Mapping[str, Interval]) -> str:
    """A line that names what noise swamps; empty where that is nothing.

    Examples
    --------
    >>> warning({"nodes": Interval(9, 11, swamped=False), "largest_degree": Interval(0, 50, swamped=True)})
    'Noise swamps largest degree: do not read that off the synthetic graph. It takes more epsilon.'
    """
    names = [name.replace("_", " ") for name in swamped(trust)]
    if not names:
        return ""
    what = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
    return f"Noise swamps {what}: do not read that off the synthetic graph. It takes more epsilon."


def trust_report(trust: Mapping[str, Interval], statistics: Mapping[str, float | None]) -> dict[str, Any]:
    """What answers tell of each statistic, as plain data, with the words that stand beside it.

    Parameters
    ----------
    trust : mapping
        The intervals.
    statistics : mapping
        The statistics, each with that of the synthetic graph, or None while there is none.
    """
    told = {}
    for name, value in statistics.items():
        interval = trust.get(name)
        known = {"not_measured": True} if interval is None else interval.to_json()
        told[name] = {**known, "words": phrase(interval, value)}
    return {"confidence": CONFIDENCE, "statistics": told, "swamped": swamped(trust)}


def _shown(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 10 else f"{number:.3g}"
