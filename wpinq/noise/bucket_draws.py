"""Which neighbouring bins are alike enough to be one bucket, chosen privately: a Gibbs law over dyadic partitions.

For a partition B of the bins into buckets I, let `D(I) = min_c Σ_{i in I} |x_i − c|` be the deviation from the median,
and `C(B) = Σ_{I in B} (D(I) + penalty)`. `Σ_I D(I)` is the least L1 distance between x and a histogram that is constant
on the buckets, so C(B) moves by no more than x does. B is drawn with

    Pr[B] = prior(B) · exp(−C(B) / scale) / Z,   where every node of the tree of halves splits with probability `split`

*How it is drawn.* The tree is a tree, so Z is a product of sums. With `e(v)` the sum of the weights of all partitions
below node v over that of v as one bucket without its prior, `e(leaf) = 1` and

    odds(v) = split / (1 − split) · e(left) · e(right) · exp((D(v) − D(left) − D(right) − penalty) / scale)
    e(v) = (1 − split) · (1 + odds(v))

and, from the root on, v is one bucket with probability `1 / (1 + odds(v))`. Each such coin is flipped exactly: a
uniform number, digit by digit, against rational bounds on the odds (`bounded_reals`), which are made closer until they
decide. No chance is ever rounded to 0 or 1: that would be an infinite loss. `docs/proofs/buckets.md` has the whole
argument.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from fractions import Fraction

from wpinq.noise.bounded_reals import BoundedReal, exponential_of, rational
from wpinq.noise.exact_bernoulli import RandomBytes
from wpinq.noise.guard import silently

_WORD = 64
_SPARE = 64
"""Digits beyond those that are compared: what the bounds of the odds lose on the way up the tree."""

_ONE = BoundedReal(1, 1, 0)


def draw_buckets(
    weights: Sequence[float], scale: float, penalty: Fraction, split: Fraction, random: RandomBytes = os.urandom
) -> list[int]:
    """The bins at which buckets begin, in order: the first is 0.

    Parameters
    ----------
    weights : sequence of float
        Of the bins, finite and protected; taken for the rationals that they are. Their number is public.
    scale : float
        `selection_scale(epsilon, slack, 2)`: 2/ε, but for the slack.
    penalty : Fraction
        What a bucket costs, public, at least 0.
    split : Fraction
        The probability with which the public prior splits a node, between 0 and 1.
    random : callable
        Where random bytes come from: the operating system, but for tests.

    Raises
    ------
    EvaluationFailed
        When anything fails. The message is constant.

    Notes
    -----
    Privacy cost: a source whose changes move `weights` by x in L1 loses `2x / scale`: the weight of every partition
    moves by a factor of at most `exp(x / scale)`, and so does Z. How long a draw takes depends on the weights.

    Source of the law: McSherry, Talwar, "Mechanism design via differential privacy", FOCS 2007. Of the idea to choose
    buckets first: Li, Hay, Miklau, Wang, "A data- and workload-aware algorithm for range queries under differential
    privacy" (DAWA), PVLDB 7(5), 2014, whose own first stage leaves single bins without noise and is not private.

    Examples
    --------
    >>> draw_buckets([0.0, 0.0, 9e9, 9e9], 2.0, Fraction(1000), Fraction(1, 2))
    [0, 2]
    """
    return silently(lambda given: _BucketDraw(given, scale, penalty, split, random).starts(), weights)


class _BucketDraw:
    """One draw: the tree of deviations, its odds to as many digits as were needed so far, and the way down."""

    def __init__(
        self, weights: Sequence[float], scale: float, penalty: Fraction, split: Fraction, random: RandomBytes
    ) -> None:
        self._gains = split_gains(weights)
        self._law = (Fraction(scale), penalty, split)
        self._random = random
        self._height = len(self._gains)
        self._bits = 0
        self._odds: list[list[BoundedReal | None]] = []

    def starts(self) -> list[int]:
        found, waiting = [], [(self._height, 0)]
        while waiting:
            height, place = waiting.pop()
            if height == 0 or (self._gains[height - 1][place] is not None and self._stops(height, place)):
                found.append(place << height)
                continue
            if self._gains[height - 1][place] is not None:
                waiting.append((height - 1, 2 * place + 1))
            waiting.append((height - 1, 2 * place))
        return found

    def _stops(self, height: int, place: int) -> bool:
        """One flip: whether a uniform number is below `1 / (1 + odds)`: whether it times `1 + odds` is below 1."""
        digits, drawn = 0, 0
        while True:
            digits, drawn = digits + _WORD, drawn << _WORD | int.from_bytes(self._random(_WORD // 8), "little")
            if digits + _SPARE > self._bits:
                self._bits = digits + _SPARE
                self._odds = split_odds(self._gains, *self._law, self._bits)
            odds = self._odds[height - 1][place]
            assert odds is not None
            whole = odds.plus(_ONE, self._bits)
            if whole.surely_below(drawn + 1, digits):
                return True
            if whole.surely_at_least(drawn, digits):
                return False


Gains = list[list[Fraction | None]]
"""For the nodes of each level above the bins, the lowest first, what a split gains; None of a node of one half."""


def split_gains(weights: Sequence[float]) -> Gains:
    """`D(v) − D(left) − D(right)` for every node of the tree of halves, exactly.

    Node i of height h holds the bins from `i · 2^h` to `(i + 1) · 2^h − 1`, as far as there are any. One whose right
    half is empty is its left half.

    Examples
    --------
    >>> split_gains([0.0, 0.0, 5.0, 5.0])
    [[Fraction(0, 1), Fraction(0, 1)], [Fraction(10, 1)]]
    >>> split_gains([1.0, 0.5, 2.0])
    [[Fraction(1, 2), None], [Fraction(1, 1)]]
    """
    ratios = [Fraction(weight) for weight in weights]
    common = max((ratio.denominator for ratio in ratios), default=1)  # powers of two: the largest is a multiple of all
    held = [[ratio.numerator * (common // ratio.denominator)] for ratio in ratios]
    deviations = [0] * len(held)
    gains: Gains = []
    while len(held) > 1:
        level: list[Fraction | None] = []
        above, above_deviations = [], []
        for place in range(0, len(held), 2):
            if place + 1 == len(held):
                level.append(None)
                above.append(held[place])
                above_deviations.append(deviations[place])
                continue
            merged = sorted(held[place] + held[place + 1])  # two sorted runs: linear time
            half = len(merged) // 2
            deviation = sum(merged[-half:]) - sum(merged[:half])
            level.append(Fraction(deviation - deviations[place] - deviations[place + 1], common))
            above.append(merged)
            above_deviations.append(deviation)
        held, deviations = above, above_deviations
        gains.append(level)
    return gains


def split_odds(
    gains: Gains, scale: Fraction, penalty: Fraction, split: Fraction, bits: int
) -> list[list[BoundedReal | None]]:
    """Bounds on the odds with which every node splits, level by level as the gains; None where it cannot.

    Examples
    --------
    >>> gains = split_gains([0.0, 0.0, 5.0, 5.0])
    >>> (root,) = split_odds(gains, Fraction(2), Fraction(1), Fraction(1, 2), 64)[1]
    >>> round(1 / (1 + root.low * 2.0**root.exponent), 4)       # all four bins as one bucket
    0.0169
    """
    stay, prior = rational(1 - split, bits), rational(split / (1 - split), bits)
    below: list[BoundedReal] = []
    found: list[list[BoundedReal | None]] = []
    for height, level in enumerate(gains):
        above: list[BoundedReal] = []
        odds: list[BoundedReal | None] = []
        for place, gain in enumerate(level):
            left = below[2 * place] if height else _ONE
            if gain is None:
                odds.append(None)
                above.append(left)
                continue
            right = below[2 * place + 1] if height else _ONE
            power = (gain - penalty) / scale
            ways = left.times(right, bits).times(prior, bits)
            odd = ways.times(exponential_of(power.numerator, power.denominator, bits), bits)
            odds.append(odd)
            above.append(odd.plus(_ONE, bits).times(stay, bits))
        below = above
        found.append(odds)
    return found
