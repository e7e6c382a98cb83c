"""The auditor finds that a published mechanism leaks: the first stage of DAWA, on partitions of a few bins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

from tests.support.partitions import DIGITS, Partition, decimal, gibbs, largest_loss, mean_deviation

HALF = Fraction(1, 2)
CLOSE = Decimal(10) ** -25
"""Where numbers of sixty digits are compared in decimals of twenty-eight."""


def published_windows(bins: int) -> list[tuple[int, int, Fraction]]:
    """The windows of dyadic lengths of the published first stage, with what its noise is a multiple of 1/ε₁ of."""
    lengths = [2**power for power in range(1, bins.bit_length())]
    return [
        (start, length, 2 - Fraction(1, length) - Fraction(1, bins))
        for length in lengths
        for start in range(bins - length + 1)
    ]


def published_law_of_all_apart(weights: Sequence[int], first: Fraction, second: Fraction) -> dict[Partition, Decimal]:
    """The chance that the published first stage leaves every bin by itself.

    A window of length L has its deviation from the mean plus Laplace noise and a bar of 1/ε₂; a single bin has the bar
    and no noise. All are apart where every window costs more than its bins: independent tails.
    """
    with localcontext() as context:
        context.prec = DIGITS
        apart = Decimal(1)
        for start, length, factor in published_windows(len(weights)):
            held = [Fraction(weight) for weight in weights[start : start + length]]
            over = (length - 1) / second - mean_deviation(held)
            assert over >= 0, "the closed form of the tail"
            apart *= (-decimal(over * first / factor)).exp() / 2
        return {tuple(range(len(weights))): apart, (): 1 - apart}


def test_the_auditor_finds_the_loss_of_the_published_first_stage() -> None:
    """On four bins with one record it loses 2.6 times the epsilon that it claims: single bins have no noise."""
    for first in (Fraction(1, 10), HALF, Fraction(1)):
        laws = [published_law_of_all_apart(x, first, HALF) for x in ([0, 1, 0, 0], [0, 0, 0, 0])]
        found = largest_loss(*laws)
        assert abs(found - decimal(Fraction(13, 5) * first)) < CLOSE
        assert found > decimal(first)
        ours = [gibbs(x, 2 / first, Fraction(2), HALF) for x in ([0, 1, 0, 0], [0, 0, 0, 0])]
        assert largest_loss(*ours) <= decimal(first)
    assert [round(float(law[0, 1, 2, 3]), 5) for law in laws_at_a_half()] == [0.00282, 0.00077]
    for bins, times in ((64, 61), (1024, 1019)):  # a record in the middle bin, in multiples of epsilon
        hold = [(n, f) for start, n, f in published_windows(bins) if start <= bins // 2 < start + n]
        assert round(sum(float(2 * (1 - Fraction(1, n)) / factor) for n, factor in hold)) == times


def laws_at_a_half() -> list[dict[Partition, Decimal]]:
    return [published_law_of_all_apart(x, HALF, HALF) for x in ([0, 1, 0, 0], [0, 0, 0, 0])]


def test_the_closed_form_of_the_published_first_stage_is_what_it_does() -> None:
    """Its least-cost partition over 400,000 draws of its own noise, with a fixed seed, against the chances audited."""
    rng, size, second = np.random.default_rng(1), 400_000, 0.5
    for weights, law in zip(([0, 1, 0, 0], [0, 0, 0, 0]), laws_at_a_half(), strict=True):
        held = {(start, 1): np.full(size, 1 / second) for start in range(4)}
        for start, length, factor in published_windows(4):
            exact = float(mean_deviation([Fraction(w) for w in weights[start : start + length]]))
            noisy = exact + rng.laplace(0, float(factor) / 0.5, size)
            held[start, length] = np.maximum(noisy, 0.0) + 1 / second
        least: list[np.ndarray] = [np.zeros(size)]
        apart: list[np.ndarray] = [np.ones(size, dtype=bool)]
        for stop in range(1, 5):
            ways = [least[stop - length] + held[stop - length, length] for length in (1, 2, 4) if length <= stop]
            best = np.minimum.reduce(ways)
            apart.append(apart[stop - 1] & (ways[0] <= best))
            least.append(best)
        chance = float(law[0, 1, 2, 3])
        assert abs(apart[4].mean() - chance) < 4 * math.sqrt(chance / size)
