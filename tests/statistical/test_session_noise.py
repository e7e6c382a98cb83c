"""The noise that comes out of a session, end to end.

Noise is not seeded, so each assertion fails by chance: with probability at most 1e-9, which is what ALPHA bounds.
Between them that is less than 2e-8 a run.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

import wpinq as wp

pytestmark = pytest.mark.long

ALPHA = 1e-9
NUMBERS = wp.source("numbers", int, weights=True)
SCORES = wp.source("scores", group=int, x=float, weights=True)
WIDE = range(20_000)


def release(measurement: wp.Measurement | Sequence[wp.Measurement], data: Any, *, fresh: bool = False) -> Any:
    with wp.Session() as session:
        for name in wp.bill(measurement):
            session.protect({"numbers": NUMBERS, "scores": SCORES}[name], data, budget=10**6)
        return session.release(measurement, fresh=fresh)


def farthest(values: np.ndarray[Any, Any], cdf: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]) -> float:
    """The Kolmogorov-Smirnov distance of a sample from a distribution."""
    ordered = np.sort(values)
    n = len(ordered)
    expected = cdf(ordered)
    return float(max((np.arange(1, n + 1) / n - expected).max(), (expected - np.arange(n) / n).max()))


def tolerance(n: int) -> float:
    """Dvoretzky-Kiefer-Wolfowitz-Massart: the distance of n draws is above it with probability at most ALPHA."""
    return math.sqrt(math.log(2 / ALPHA) / (2 * n))


@pytest.mark.parametrize("epsilon", ["0.1", "3"])
def test_absent_keys_have_laplace_noise_of_the_certified_scale(epsilon: str) -> None:
    answers = release(NUMBERS.noisy_count(epsilon, over=WIDE), [])
    assert answers.scale == pytest.approx(1 / float(epsilon), rel=1e-4)
    limit = tolerance(len(WIDE))
    assert farthest(answers.values, stats.laplace(0, answers.scale).cdf) <= limit
    for wrong in (0.85, 1.18):  # a scale that is off by a sixth would be found
        assert farthest(answers.values, stats.laplace(0, answers.scale * wrong).cdf) > limit


def test_present_keys_have_the_same_noise_about_their_weight() -> None:
    data = dict.fromkeys(WIDE, 0.7310585786300049)
    answers = release(NUMBERS.noisy_count(1, over=WIDE), data)
    assert farthest(answers.values, stats.laplace(0.7310585786300049, answers.scale).cdf) <= tolerance(len(WIDE))


def test_noise_of_other_keys_and_of_fresh_releases_is_independent() -> None:
    asked = NUMBERS.noisy_count(1, over=WIDE)
    first, second = (answers.values for answers in release([asked, asked], [], fresh=True))
    for left, right in ((first, second), (first[:-1], first[1:]), (first[: len(first) // 2], first[len(first) // 2 :])):
        for a, b in ((left, right), (np.abs(left) - np.median(np.abs(left)), np.abs(right) - np.median(np.abs(right)))):
            same = int((a * b > 0).sum())
            assert stats.binomtest(same, len(a), 0.5).pvalue > ALPHA


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_intervals_cover_as_often_as_they_say(confidence: float) -> None:
    data = dict.fromkeys(WIDE, 0.25)
    answers = release(NUMBERS.noisy_count("0.7", over=WIDE), data)
    half = answers.interval(0, confidence)[1] - answers[0]
    covered = int((np.abs(answers.values - 0.25) <= half).sum())
    assert stats.binomtest(covered, len(WIDE), confidence).pvalue > ALPHA


def test_intervals_of_sums_and_averages_cover() -> None:
    chance = random.Random(2)
    data = [(0, chance.uniform(-5, 15)) for _ in range(25)]
    clamped = [min(10.0, max(0.0, x)) for _, x in data]
    n = 1000
    total = SCORES.noisy_sum(1, lambda s: s.x, 0, 10)
    average = SCORES.noisy_average("0.2", lambda s: s.x, 0, 10)
    sums = release([total] * n, data, fresh=True)
    inside = sum(a.interval("sum", 0.95)[0] <= sum(clamped) <= a.interval("sum", 0.95)[1] for a in sums)
    assert stats.binomtest(inside, n, 0.95).pvalue > ALPHA
    averages = release([average] * n, data, fresh=True)
    true = sum(clamped) / len(clamped)
    inside = sum(a.value_interval(0.95)[0] <= true <= a.value_interval(0.95)[1] for a in averages)
    assert stats.binomtest(inside, n, 0.95).pvalue > ALPHA  # exact, away from the ends of the range


def excess(left: np.ndarray[Any, Any], right: np.ndarray[Any, Any], epsilon: float) -> float:
    """How far, over all events, `P_left / P_right` is above `e^epsilon` beyond doubt; above 1 refutes the promise."""
    worst = 0.0
    events = len(left)
    for a, b in zip(left, right, strict=True):
        low = stats.beta.ppf(ALPHA / (2 * events), a, left.sum() - a + 1) if a else 0.0
        high = stats.beta.ppf(1 - ALPHA / (2 * events), b + 1, right.sum() - b) if b < right.sum() else 1.0
        worst = max(worst, low / (math.exp(epsilon) * high))
    return float(worst)


def counted(values: np.ndarray[Any, Any], cuts: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """How many values lie between the cuts, and beyond them on either side."""
    return np.histogram(values, bins=np.concatenate(([-np.inf], cuts, [np.inf])))[0]


@pytest.mark.parametrize("unit_weight", ["1", "2"])
def test_the_outputs_of_neighbours_are_within_epsilon(unit_weight: str) -> None:
    """Every key holds one more unit in the second dataset: 20,000 draws of one neighbouring pair each."""
    source = wp.source("numbers", int, unit_weight=unit_weight, weights=True)
    unit, epsilon = float(unit_weight), Fraction(1)
    query = source.select(lambda x: x)
    drawn = []
    for extra in (0.0, unit):
        with wp.Session() as session:
            session.protect(source, dict.fromkeys(WIDE, extra) if extra else {}, budget=10**6)
            drawn.append(session.release(query.noisy_count(epsilon, over=WIDE)).values)
            billed = float(session.spent("numbers"))
    assert billed == unit
    cuts = np.linspace(-2 * unit, 3 * unit, 11)
    left, right = (counted(values, cuts) for values in drawn)
    for a, b in ((left, right), (right, left)):
        assert excess(a, b, billed) <= 1
        assert excess(a, b, billed * 0.5) > 1  # what is promised is what is reached


def test_a_plan_that_uses_a_source_twice_is_within_its_bill() -> None:
    """One edge more moves the weights by up to two: the bill of two epsilon covers it, and one would not."""
    drawn = []
    query = NUMBERS.concat(NUMBERS)
    for weight in (0.0, 1.0):
        drawn.append(release(query.noisy_count(1, over=WIDE), dict.fromkeys(WIDE, weight) if weight else {}).values)
    left, right = (counted(values, np.linspace(-3, 5, 9)) for values in drawn)
    assert query.bill(epsilon=1) == {"numbers": 2}
    assert max(excess(left, right, 2.0), excess(right, left, 2.0)) <= 1
    assert max(excess(left, right, 1.0), excess(right, left, 1.0)) > 1


def chosen(measurement: wp.Measurement, data: Any, n: int) -> np.ndarray[Any, Any]:
    counts = np.zeros(len(measurement.domain or ()), dtype=int)
    for answers in release([measurement] * n, data, fresh=True):
        counts[answers.keys.index(answers.value)] += 1
    return counts


def test_choices_of_neighbours_are_within_epsilon_and_follow_permute_and_flip() -> None:
    n, epsilon = 1500, 2.0
    asked = NUMBERS.most_common(epsilon, [1, 2])
    left, right = {1: 0.5, 2: -0.5}, {1: 0.0, 2: 0.0}  # at distance 1, and as far apart as scores can move
    counts = [chosen(asked, data, n) for data in (left, right)]
    # q = exp(-gap * epsilon); the better of two wins with 1 - q/2, whichever of them is looked at first
    for observed, gap in zip(counts, (1.0, 0.0), strict=True):
        better = 1 - math.exp(-gap * epsilon) / 2
        assert stats.binomtest(int(observed[0]), n, better).pvalue > ALPHA
    for a, b in ((counts[0], counts[1]), (counts[1], counts[0])):
        assert excess(a, b, epsilon) <= 1
    assert excess(counts[1], counts[0], epsilon * 0.5) > 1  # what is promised is what is reached


def test_medians_of_neighbours_are_within_epsilon() -> None:
    n, epsilon = 1200, 1.0
    asked = NUMBERS.median(epsilon, [1, 3])
    left, right = {0: 0.5, 2: -0.5, 4: 1.0}, {0: 1.0, 2: -0.5, 4: 0.5}
    counts = [chosen(asked, data, n) for data in (left, right)]
    for a, b in ((counts[0], counts[1]), (counts[1], counts[0])):
        assert excess(a, b, epsilon) <= 1
