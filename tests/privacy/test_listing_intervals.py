"""Intervals of listed keys hold given that the key is listed: their coverage, by the law of the noise and no draws."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import wpinq as wp
from tests.support.parameters import sizes
from wpinq.measure.measurement import Measurement
from wpinq.noise.noise_distributions import DoubleGeometric
from wpinq.sinks.count_above import Listing
from wpinq.sinks.geometric import GeometricCount

people = wp.source("people", zip=str, facts=["unit_weights"])
zips = people.select(lambda p: p.zip)


def listed(measurement: Measurement, above: float) -> Measurement:
    return Measurement(measurement.plan, measurement.sink, measurement.epsilon, None, "", Listing(wp.digits(5), above))


@pytest.mark.parametrize("above", sizes(10.0, 0.0))
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_laplace_intervals_cover_given_that_the_key_is_listed(above: float, confidence: float) -> None:
    scale, measurement = 1.4, listed(zips.noisy_count("5/7"), above)
    shares = (np.arange(20_000) + 0.5) / 20_000
    for excess in (-50.0, -above, 0.0, 0.3, 1.0, 2.0, 4.0, 8.0, 30.0):
        weight = max(0.0, above + excess)  # the plan proves that none is below
        law = stats.laplace(loc=weight, scale=scale)
        values = law.isf(shares * law.sf(above))  # quantiles of the noisy value, given that it is above
        ends = [measurement.ends(float(x), scale, confidence) for x in values]
        below = np.mean([weight < low for low, _ in ends])
        beyond = np.mean([weight > high for _, high in ends])
        error = (1 - confidence) / 2
        assert below <= error + 1e-4
        assert beyond <= error + 1e-4
        if excess >= 0.3:  # and no wider than it must be: exact, where a weight is above the threshold
            assert below >= error - 1e-4
        ordinary = np.mean([abs(x - weight) > measurement.sink.half_width(scale, confidence) for x in values])
        if weight <= above - 2:
            assert ordinary > 3 * error, "the interval that forgets how the key was chosen is wrong far too often"


@pytest.mark.parametrize("step", [Fraction(1), Fraction(1, 2)])
@pytest.mark.parametrize("above", [0.0, 7.3])
def test_geometric_intervals_cover_given_that_the_key_is_listed(step: Fraction, above: float) -> None:
    sink, width, confidence = GeometricCount(step), float(step), 0.9
    scale = 2.3  # of answers
    noise, cut = DoubleGeometric(scale / width), int(sink.cut(above))
    assert cut * width <= above < (cut + 1) * width
    for weight in range(0, cut + 60, 1):
        steps = np.arange(cut + 1, cut + 400)
        chances = np.array([noise.survival(int(x) - 1 - weight) - noise.survival(int(x) - weight) for x in steps])
        chances /= noise.survival(cut - weight)
        lows = np.array([x * width - sink.listed_reach(x * width, above, scale, confidence) for x in steps])
        highs = steps * width + sink.half_width(scale, confidence)
        held = (lows <= weight * width + 1e-9) & (weight * width <= highs + 1e-9)
        assert chances.sum() == pytest.approx(1)
        assert chances[held].sum() >= confidence - 1e-9
        assert chances[lows > weight * width + 1e-9].sum() <= (1 - confidence) / 2 + 1e-9


def test_without_a_lower_end_it_is_zero_where_no_weight_is_below() -> None:
    measurement = listed(zips.noisy_count(1), 10.0)
    assert measurement.ends(10.5, 1.0, 0.95)[0] == 0
    other = listed(zips.difference(zips.where(lambda z: z == "00001")).noisy_count(1), 10.0)
    assert other.ends(10.5, 1.0, 0.95)[0] == -math.inf
    for shown in (measurement, other):
        far = shown.ends(60.0, 1.0, 0.95)
        assert far == pytest.approx((60 - math.log(20), 60 + math.log(20)), abs=1e-9)
        assert shown.ends(15.0, 1.0, 0.95)[0] < 15 - math.log(20)
    with pytest.raises(wp.AnswersError, match="between 0 and 1"):
        measurement.ends(15.0, 1.0, 1.0)


def test_thresholds_are_those_of_what_is_released() -> None:
    """Answers are products of floats: three tenths of a count are released as 0.30000000000000004, above 0.3."""
    tenths = GeometricCount(Fraction(1, 10))
    assert 3 * 0.1 > 0.3
    assert [tenths.cut(x) for x in (0.0, 0.09, 0.1, 0.3, 0.30000000000000004)] == [0, 0, 1, 2, 3]
    assert [GeometricCount(Fraction(1)).cut(x) for x in (0.0, 2.0, 2.5)] == [0, 2, 2]
    with pytest.raises(wp.PlanError, match="too many steps"):
        tenths.cut(1e16)
