"""Buckets: the law of the draw by definition, its loss on all partitions of eight bins, and coins to any digit."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from scipy import stats

from tests.support.partitions import (
    DIGITS,
    Partition,
    cost,
    decimal,
    dyadic,
    gibbs,
    largest_loss,
    log_ratios,
    mean_deviation,
    median_deviation,
)
from wpinq.errors import EvaluationFailed
from wpinq.noise.bounded_reals import BoundedReal, exponential_of, rational
from wpinq.noise.bucket_draws import draw_buckets, split_gains, split_odds
from wpinq.noise.permute_and_flip import selection_scale

HALF = Fraction(1, 2)
EXACT = Decimal(10) ** (6 - DIGITS)
CLOSE = Decimal(10) ** -25
"""Where numbers of sixty digits are compared in decimals of twenty-eight."""


def bounds(found: BoundedReal) -> tuple[Fraction, Fraction]:
    unit = Fraction(2) ** found.exponent
    return found.low * unit, found.high * unit


def kernel_law(
    weights: Sequence[float], scale: Fraction, penalty: Fraction, split: Fraction, bits: int = 300
) -> dict[Partition, tuple[Fraction, Fraction]]:
    """Bounds on the chance of every partition, from the coins that the kernel flips."""
    gains = split_gains(weights)
    odds = split_odds(gains, scale, penalty, split, bits)

    def below(height: int, place: int) -> dict[Partition, tuple[Fraction, Fraction]]:
        if height == 0:
            return {(place,): (Fraction(1), Fraction(1))}
        odd = odds[height - 1][place]
        if odd is None:
            return below(height - 1, 2 * place)
        low, high = bounds(odd)
        found = {(place << height,): (1 / (1 + high), 1 / (1 + low))}
        for left, (a, b) in below(height - 1, 2 * place).items():
            for right, (c, d) in below(height - 1, 2 * place + 1).items():
                found[left + right] = (a * c * low / (1 + low), b * d * high / (1 + high))
        return found

    return below(len(gains), 0)


def some_weights(chance: random.Random, bins: int) -> list[float]:
    kind = chance.randrange(3)
    if kind == 0:
        return [float(chance.randint(0, 6)) for _ in range(bins)]
    if kind == 1:
        return [chance.choice([0.0, 0.0, 0.0, 7.5]) for _ in range(bins)]
    return [chance.uniform(-3, 9) for _ in range(bins)]


def neighbour(chance: random.Random, weights: Sequence[float], unit: Fraction = Fraction(1)) -> list[Fraction]:
    """At an L1 distance of one unit: one record, or a unit that is spread over several."""
    shares = [chance.randint(0, 3) * chance.randint(0, 1) for _ in weights]
    shares[chance.randrange(len(weights))] += 1
    signs = [chance.choice([-1, 1]) for _ in weights]
    moved = [unit * sign * share / sum(shares) for sign, share in zip(signs, shares, strict=True)]
    return [Fraction(weight) + move for weight, move in zip(weights, moved, strict=True)]


# --- the law ----------------------------------------------------------------------------------------------------------


def test_there_are_26_partitions_of_eight_bins() -> None:
    assert [len(dyadic(bins)) for bins in (1, 2, 3, 4, 8, 16)] == [1, 2, 3, 5, 26, 677]
    for bins in (3, 5, 7):
        assert set(dyadic(bins)) == {tuple(s for s in starts if s < bins) for starts in dyadic(8 if bins > 4 else 4)}


def test_what_a_split_gains_is_the_difference_of_deviations() -> None:
    chance = random.Random(1)
    for bins in [*range(1, 14), 32, 33]:
        weights = some_weights(chance, bins)
        exact = [Fraction(weight) for weight in weights]
        for height, level in enumerate(split_gains(weights), start=1):
            assert len(level) == -(-bins // 2**height)
            for place, gain in enumerate(level):
                first, middle, last = (place << height) + np.array([0, 2 ** (height - 1), 2**height])
                whole, left, right = exact[first:last], exact[first:middle], exact[middle:last]
                if not right:
                    assert gain is None
                else:
                    assert gain == median_deviation(whole) - median_deviation(left) - median_deviation(right)


def test_weights_of_all_sizes_are_taken_for_the_rationals_they_are() -> None:
    tiny, huge = 5e-324, 1.5e308
    assert split_gains([tiny, huge]) == [[Fraction(huge) - Fraction(tiny)]]


@pytest.mark.parametrize("bins", [1, 2, 4, 5, 7, 8])
def test_the_kernel_has_the_law_of_the_definition(bins: int) -> None:
    """Every chance to 60 digits, by the sum over all partitions."""
    chance = random.Random(bins)
    for _ in range(12):
        weights, scale = some_weights(chance, bins), Fraction(chance.choice([0.3, 2.0, 19.7]))
        penalty, split = Fraction(chance.randint(1, 40), 8), Fraction(chance.randint(1, 9), 10)
        expected = gibbs(weights, scale, penalty, split)
        found = kernel_law(weights, scale, penalty, split)
        assert found.keys() == expected.keys()
        with localcontext() as context:
            context.prec = DIGITS
            for starts, (low, high) in found.items():
                assert decimal(low) * (1 - EXACT) <= expected[starts] <= decimal(high) * (1 + EXACT)
                assert high - low <= high / 2**200


def test_the_example() -> None:
    law = gibbs([0, 0, 5, 5], Fraction(2), Fraction(1), HALF)
    told = {(0,): 0.0169, (0, 2): 0.3809, (0, 2, 3): 0.2310, (0, 1, 2): 0.2310, (0, 1, 2, 3): 0.1401}
    assert {starts: round(float(chance), 4) for starts, chance in law.items()} == told
    with localcontext() as context:
        context.prec = DIGITS
        weights = dyadic(4)
        z = sum(
            decimal(HALF ** sum(weights[starts])) * (-decimal(cost([0, 0, 5, 5], starts, Fraction(1)) / 2)).exp()
            for starts in weights
        )
    assert round(float(z), 5) == 0.12073


@pytest.mark.parametrize("weights", [[0.0, 0.0, 5.0, 5.0], [1.0, 4.0, 0.5, 3.0, 3.0, 9.0, 0.0, 2.0], [2.0, 2.0, 8.0]])
def test_draws_have_the_law(weights: list[float]) -> None:
    """A chi-square over all partitions that are not too rare; always the same draws."""
    size, penalty, bytes_of = 20_000, Fraction(1), random.Random(len(weights)).randbytes
    law = gibbs(weights, Fraction(2), penalty, HALF)
    seen = Counter(tuple(draw_buckets(weights, 2.0, penalty, HALF, bytes_of)) for _ in range(size))
    assert seen.keys() <= law.keys()
    often = [starts for starts, chance in law.items() if chance * size > 10]
    expected = np.array([float(law[starts]) for starts in often] + [0.0])
    expected[-1] = 1 - expected.sum()
    found = np.array([seen[starts] for starts in often] + [size - sum(seen[starts] for starts in often)])
    if expected[-1] * size < 10:  # what is left goes to the last of the others
        expected = np.array([*expected[:-2], expected[-2] + expected[-1]])
        found = np.array([*found[:-2], found[-2] + found[-1]])
    assert stats.chisquare(found, expected * size).pvalue > 1e-4
    wrong = gibbs(weights, Fraction(3), penalty, HALF)
    off = np.array([float(wrong[starts]) for starts in often])
    assert stats.chisquare(found[: len(off)], off * found[: len(off)].sum() / off.sum()).pvalue < 1e-6


# --- the loss ---------------------------------------------------------------------------------------------------------


def test_the_cost_moves_no_further_than_the_weights() -> None:
    chance = random.Random(3)
    for _ in range(300):
        bins = chance.randint(1, 8)
        weights = some_weights(chance, bins)
        moved = neighbour(chance, weights)
        for starts in dyadic(bins):
            assert abs(cost(weights, starts, HALF) - cost(moved, starts, HALF)) <= 1


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(4)])
def test_no_partition_of_eight_bins_tells_neighbours_apart_by_more_than_epsilon(epsilon: Fraction) -> None:
    """All 26 partitions, exactly, for 150 pairs of neighbours; and log-ratios within an interval of length epsilon."""
    chance, worst, widest = random.Random(8), Decimal(0), Decimal(0)
    scale = Fraction(selection_scale(epsilon, Fraction(0), Fraction(2)))
    assert scale >= 2 / epsilon
    for _ in range(150):
        weights = some_weights(chance, 8)
        penalty, split = Fraction(chance.randint(1, 24), 8), Fraction(chance.randint(1, 9), 10)
        laws = (gibbs(one, scale, penalty, split) for one in (weights, neighbour(chance, weights)))
        ratios = log_ratios(*laws)
        worst, widest = max(worst, *map(abs, ratios)), max(widest, max(ratios) - min(ratios))
    assert worst <= decimal(epsilon) + CLOSE
    assert widest <= decimal(epsilon) + CLOSE
    assert widest > decimal(epsilon) * Decimal("0.9"), "the audit looks where the loss is"
    assert worst > decimal(epsilon) / 2


def test_a_neighbour_further_away_loses_as_much_more() -> None:
    """A unit of weight 3 is billed 3 epsilon."""
    chance, scale = random.Random(9), Fraction(2)
    for _ in range(40):
        weights = some_weights(chance, 8)
        one, other = (gibbs(x, scale, HALF, HALF) for x in (weights, neighbour(chance, weights, Fraction(3))))
        assert largest_loss(one, other) <= 3 + CLOSE


@pytest.mark.parametrize(("scale", "deviation"), [(Fraction(1), median_deviation), (Fraction(2), mean_deviation)])
def test_the_auditor_finds_half_the_noise_and_deviations_from_the_mean(
    scale: Fraction, deviation: Callable[[Sequence[Fraction]], Fraction]
) -> None:
    """Of all eight bins, of a mean below 5, and of the first two, of one above, one cost rises and one falls."""
    one, other = (gibbs([first, 30, 0, 0, 0, 0, 0, 0], scale, HALF, HALF, deviation) for first in (5, 6))
    ratios = log_ratios(one, other)
    assert max(ratios) - min(ratios) > Decimal("1.2")
    sound = log_ratios(*(gibbs([first, 30, 0, 0, 0, 0, 0, 0], Fraction(2), HALF, HALF) for first in (5, 6)))
    assert max(sound) - min(sound) <= 1 + CLOSE


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


# --- the coins --------------------------------------------------------------------------------------------------------


def fed(words: Iterable[int], then: int) -> Callable[[int], bytes]:
    """Bytes of some words, and then of one over and over."""
    left = list(words)
    return lambda count: (left.pop(0) if left else then).to_bytes(count, "little")


def stop_words(weights: Sequence[float], scale: Fraction, penalty: Fraction, count: int) -> list[int]:
    """The first words of the chance that two bins are one bucket."""
    ((odd,),) = split_odds(split_gains(weights), scale, penalty, HALF, 64 * count + 200)
    assert odd is not None
    low, high = bounds(odd)
    digits = math.floor(2 ** (64 * count) / (1 + low))
    assert digits == math.floor(2 ** (64 * count) / (1 + high))
    return [digits >> 64 * (count - 1 - place) & (2**64 - 1) for place in range(count)]


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_coin_is_decided_by_the_first_digit_that_differs_however_late(count: int) -> None:
    weights, penalty = [1.0, 4.0], Fraction(2)
    words = stop_words(weights, Fraction(3), penalty, count)
    for given, then, expected in (
        (words, 0, [0]),  # just below the chance
        (words, 2**64 - 1, [0, 1]),  # just above it
        ([*words[:-1], words[-1] - 1], 2**64 - 1, [0]),
        ([*words[:-1], words[-1] + 1], 0, [0, 1]),
    ):
        assert draw_buckets(weights, 3.0, penalty, HALF, fed(given, then)) == expected


def test_no_chance_is_rounded_to_nothing_or_to_one() -> None:
    """Two bins that differ by 4000 noise scales are one bucket with a chance that no float holds; and it is theirs."""
    weights, penalty = [0.0, 1000.0], Fraction(1)
    words = stop_words(weights, Fraction(1), penalty, 24)
    zeros = next(place for place, word in enumerate(words) if word)
    assert zeros > 20, "below 2 ** -1280"
    assert math.exp(-700) > 0 and math.exp(-999) == 0.0
    assert draw_buckets(weights, 1.0, penalty, HALF, fed(words[:zeros], 0)) == [0]
    assert draw_buckets(weights, 1.0, penalty, HALF, fed(words, 2**64 - 1)) == [0, 1]
    # and apart with a chance that is as little, where a bucket costs as much
    assert draw_buckets([0.0, 0.0], 1.0, Fraction(1000), HALF, fed([2**64 - 1] * 25, 2**64 - 1)) == [0, 1]
    assert draw_buckets([0.0, 0.0], 1.0, Fraction(1000), HALF, fed([2**64 - 1] * 20, 0)) == [0]


@pytest.mark.parametrize("bits", [64, 200])
def test_powers_of_e_lie_between_their_bounds_and_the_bounds_are_close(bits: int) -> None:
    chance = random.Random(bits)
    with localcontext() as context:
        context.prec = 400
        for exponent in (Fraction(0), Fraction(1, 10**30), *(Fraction(chance.uniform(-1, 1)) for _ in range(50))):
            for factor in (1, 30, 4000):
                power = exponent * factor
                low, high = bounds(exponential_of(power.numerator, power.denominator, bits))
                assert decimal(low) <= decimal(power).exp() <= decimal(high)
                assert high - low <= high / 2 ** (bits - 3)


def test_sums_products_and_inverses_lie_between_their_bounds() -> None:
    chance = random.Random(2)
    for _ in range(400):
        a, b = (Fraction(chance.randint(1, 10**9), chance.randint(1, 10**9)) ** chance.choice([1, 9, 40]) for _ in "ab")
        bits = chance.choice([16, 70])
        one, other = rational(a, bits), rational(b, bits)
        for found, exact in (
            (one, a),
            (one.plus(other, bits), a + b),
            (one.times(other, bits), a * b),
            (one.inverse(bits), 1 / a),
        ):
            low, high = bounds(found)
            assert low <= exact <= high <= exact * (1 + Fraction(16, 2**bits))
        places, factor = chance.randint(-80, 80), chance.randint(1, 2**20)
        if one.surely_below(factor, places):
            assert factor * a < Fraction(2) ** places
        if one.surely_at_least(factor, places):
            assert factor * a >= Fraction(2) ** places
        near = [place for place in range(-400, 400) if one.surely_below(1, place)]
        assert Fraction(2) ** (near[0] - 2) <= a or bits == 16


def test_of_what_goes_wrong_nothing_is_told() -> None:
    for weights in ([1.0, math.inf], [math.nan]):
        with pytest.raises(EvaluationFailed) as caught:
            draw_buckets(weights, 1.0, Fraction(1), HALF)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None


def test_long_trees_are_drawn() -> None:
    """One bin, and as many as are no power of two: buckets are nodes of the tree, each once."""
    assert draw_buckets([3.0], 1.0, Fraction(1), HALF) == [0]
    weights = list(accumulate([1.0] * 300, lambda a, _: (a * 7 + 3) % 11))
    starts = draw_buckets(weights, 1.0, Fraction(1, 8), HALF, random.Random(1).randbytes)
    assert starts == sorted(set(starts))
    assert len(starts) > 100
