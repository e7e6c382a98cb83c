"""What numbers with noise tell of a pair, each key by itself, and whether the noise has its law.

The noise of keys is independent (the fit of noise tries that), so losses add up over keys. Keys that move equally far
are pooled: one bound for each distance, times the number of its keys. Draws are of `Sink.draw`, as of a release of
many keys.
"""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from tests.audit.pairs import ALPHA, Measured, Pair, Ready, told
from wpinq.api.simulate import PublicOutput
from wpinq.sinks.sink import gathered

AT_ONCE = 200_000
CELLS = 64
BEYOND = (0.0, 1.0, 2.0, 4.0)
"""Thresholds beyond the weights of a pair, in scales: far ones find tails that end, near ones are the surest."""

Floats = np.ndarray[Any, np.dtype[np.float64]]


def centres(ready: Ready) -> Floats:
    """The weights, in the units of the noise."""
    sink, domain = ready.order.measurement.sink, ready.order.measurement.domain
    assert domain is not None
    return np.array(gathered(sink, PublicOutput(ready.outputs), domain), dtype=float)


def draws(ready: Ready, count: int) -> Floats:
    """So many releases of the keys of an order, a row each, in one call."""
    domain = ready.order.measurement.domain
    assert domain is not None
    drawn = ready.order.measurement.sink.draw(
        PublicOutput(ready.outputs), domain * count, ready.order.scales, os.urandom
    )
    return np.array(drawn).reshape(count, len(domain))


class Fit:
    """A histogram of the noise over cells of known chances."""

    def __init__(self, scale: float, whole: bool) -> None:
        self.scale, self.whole = scale, whole
        self.reach = max(3, math.ceil(4 * scale)) if whole else 0
        self.seen = np.zeros(2 * self.reach + 1 if whole else CELLS, dtype=np.int64)

    def take(self, noise: Floats) -> None:
        if self.whole:
            cells = np.clip(noise, -self.reach, self.reach).astype(np.int64) + self.reach
        else:
            half = np.exp(-np.abs(noise) / self.scale) / 2
            cells = (np.where(noise < 0, half, 1 - half) * CELLS).astype(np.int64).clip(0, CELLS - 1)
        self.seen += np.bincount(cells.ravel(), minlength=len(self.seen))

    def p_value(self) -> float:
        if not self.whole:
            return float(stats.chisquare(self.seen).pvalue)
        a = math.exp(-1 / self.scale)
        chances = (1 - a) / (1 + a) * a ** np.abs(np.arange(-self.reach, self.reach + 1.0))
        chances[[0, -1]] = a**self.reach / (1 + a)
        return float(stats.chisquare(self.seen, chances / chances.sum() * self.seen.sum()).pvalue)


@dataclass
class Group:
    """Keys that move equally far: how far, which columns with which weights and signs, and counts of events."""

    moved: float
    scale: float
    places: list[tuple[int, int, float, float]]
    counts: dict[str, np.ndarray[Any, np.dtype[np.int64]]]

    def thresholds(self) -> list[float]:
        beyond = [reach * self.scale for reach in BEYOND]
        return [*(self.moved + x for x in beyond), *(-x for x in beyond), self.moved / 2]

    def take(self, side: str, tables: Sequence[Floats]) -> None:
        for order, key, start, sign in self.places:
            column = tables[order][:, key]
            shifted = sign * (column - start)
            near = np.abs(column) < 2.0**-6  # floats this small have digits that sums of floats near 1 never reach
            coarse = near & (column * 2.0**53 == np.floor(column * 2.0**53))
            events = [*((shifted >= at) for at in self.thresholds()), *((shifted <= at) for at in self.thresholds())]
            self.counts[side] += np.array([event.sum() for event in (*events, coarse)])


def _groups(before: list[Ready], after: list[Ready]) -> list[Group]:
    places: dict[tuple[float, float], list[tuple[int, int, float, float]]] = defaultdict(list)
    for order, (one, other) in enumerate(zip(before, after, strict=True)):
        for key, (start, end) in enumerate(zip(centres(one), centres(other), strict=True)):
            if start != end:
                moved = float(f"{abs(end - start):.9g}")
                places[moved, one.order.scale].append((order, key, float(start), math.copysign(1.0, end - start)))
    events = 2 * (2 * len(BEYOND) + 1) + 1
    return [
        Group(moved, scale, found, {side: np.zeros(events, dtype=np.int64) for side in ("before", "after")})
        for (moved, scale), found in sorted(places.items())
    ]


def measure(pair: Pair, noise: float, size: int, over: Callable[[], bool]) -> Measured:
    """Draw so many releases of either side, fewer where time is over, and bound what they tell."""
    sides = {"before": pair.ready(pair.before, noise), "after": pair.ready(pair.after, noise)}
    groups = _groups(sides["before"], sides["after"])
    fits: dict[tuple[float, bool], Fit] = {}
    width = max(len(one.order.measurement.domain or ()) for one in sides["before"])
    drawn, step = 0, max(1, AT_ONCE // width)
    while drawn < size and not (drawn and over()):
        count = min(step, size - drawn)
        for side, orders in sides.items():
            tables = [draws(one, count) for one in orders]
            for group in groups:
                group.take(side, tables)
            for one, table in zip(orders, tables, strict=True):
                law = one.order.scale, one.order.measurement.sink.lattice is not None
                fits.setdefault(law, Fit(*law)).take(table - centres(one))
        drawn += count
    losses = {("after", "before"): 0.0, ("before", "after"): 0.0}
    for likely, rare in losses:
        for group in groups:
            number = len(group.places)
            error = ALPHA / (2 * len(groups) * len(group.counts[likely]))
            pairs = zip(group.counts[likely].tolist(), group.counts[rare].tolist(), strict=True)
            tried = drawn * number
            losses[likely, rare] += number * max(told(high, low, tried, tried, error) for high, low in pairs)
    exact = sum(len(group.places) * group.moved / group.scale for group in groups)
    return Measured(exact, max(losses.values()), min(fit.p_value() for fit in fits.values()), drawn)
