"""The two ends of a range: shares that sum to 1 in floats, one unit's change, and the law of the interval."""

from __future__ import annotations

import math
from fractions import Fraction
from random import Random

import numpy as np
import pytest

import wpinq as wp
from wpinq.noise.noise_distributions import half_width_of_two
from wpinq.sinks.clamped import ENDS, average_elements, interval_of_ends, mean_of_ends

VALUES = wp.source("values", group=str, x=float)
RANGES = [(0.0, 1.0), (-3.0, 7.0), (-1e100, 1e100), (0.0, 5e-324), (1.0, 1.0 + 2**-52), (-1e100, -1e-100), (0.1, 0.3)]


def inputs(low: float, high: float, random: Random) -> list[float]:
    """Values at the bounds, next to them, beyond them, and between; some far nearer to an end than a float tells."""
    ends = [at for end in (low, high) for at in (end, math.nextafter(end, -math.inf), math.nextafter(end, math.inf))]
    near = [low + (high - low) * 2.0**-k for k in (1, 53, 54, 55, 60, 400)]
    return [*ends, *near, -1e308, 1e308, 0.0, *(low + (high - low) * random.random() for _ in range(200))]


@pytest.mark.parametrize("engine", ["reference", "duckdb"])
@pytest.mark.parametrize(("low", "high"), RANGES)
def test_one_unit_moves_the_two_ends_by_itself_and_no_more(low: float, high: float, engine: str) -> None:
    """One record at a time is a neighbour of none: its two weights sum to its own, exactly."""
    random = Random(3)
    found = inputs(low, high, random)
    rows = [(str(i), x) for i, x in enumerate(found)]
    ends = VALUES.select_many(average_elements("x", low, high, lambda record, end: (record.group, end)))
    weights = wp.evaluate(ends, {"values": rows}, engine)
    for i, x in enumerate(found):
        upper, lower = (Fraction(weights[(str(i), end)]) for end in ENDS)
        assert min(upper, lower) >= 0
        assert upper + lower == 1
        share = (Fraction(min(high, max(low, x))) - Fraction(low)) / (Fraction(high) - Fraction(low))
        assert abs(upper - share) <= Fraction(1, 2**51)


@pytest.mark.parametrize("engine", ["reference", "duckdb"])
def test_neighbours_are_as_far_apart_in_the_ends_as_in_the_data(engine: str) -> None:
    random = Random(4)
    for low, high in RANGES:
        ends = VALUES.select_many(average_elements("x", low, high))
        for _ in range(2):
            rows = [("g", x) for x in random.sample(inputs(low, high, random), 20)]
            more = [*rows, random.choice([*rows, *(("g", x) for x in (low, high, -1e308, 1e308))])]
            first, second = (wp.evaluate(ends, {"values": each}, engine) for each in (rows, more))
            assert first.distance(second) <= 1 + 1e-12


def test_the_interval_of_a_ratio_covers_exactly_as_often_as_it_says() -> None:
    """Away from the ends; at them more often, because no mean is beyond. False alarms below 1e-6 each."""
    noise, draws = np.random.default_rng(1).laplace(size=(2, 100_000)), 100_000
    for confidence in (0.5, 0.95):
        spread = 5 * math.sqrt(confidence * (1 - confidence) / draws)
        for count, share in ((0.5, 0.3), (3, 0.5), (30, 0.2), (500, 0.999), (500, 1.0)):
            upper, lower = count * share + noise[0], count * (1 - share) + noise[1]
            low, high = interval_of_ends(upper, lower, 1.0, confidence)
            middle = mean_of_ends(upper, lower)
            assert ((low <= middle + 1e-12) & (middle <= high + 1e-12)).all()
            covered = np.mean((low <= share) & (share <= high))
            assert covered > confidence - spread
            assert covered < confidence + spread or count < 30 or share == 1


@pytest.mark.parametrize(("first", "second"), [(1, 0), (1, 0.3), (-2, 0.5), (1, 1 - 1e-12), (3, 3), (5, -4)])
def test_the_law_of_two_draws(first: float, second: float) -> None:
    """Against the draws, and convex in the factors, which the interval of a mean needs."""
    noise = np.random.default_rng(2).laplace(size=(2, 200_000))
    for confidence in (0.1, 0.9, 0.999):
        half = half_width_of_two(first, second, 1.0, confidence)
        covered = np.mean(np.abs(first * noise[0] + second * noise[1]) <= half)
        assert abs(covered - confidence) < 5 * math.sqrt(confidence * (1 - confidence) / 200_000)
        bounds = np.array([half_width_of_two(1 - p, p, 1.0, confidence) for p in np.linspace(0, 1, 101)])
        assert (np.diff(bounds, 2) > -1e-9).all()
