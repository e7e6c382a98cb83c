"""Exponential noise by its binary digits, as many as are asked for, none of them approximated.

Let E be exponential with mean b, and c a power of two. The digits of E/c are independent: with `q = exp(-1/b)`,

    Pr[floor(E/c) ≥ k + 1 | floor(E/c) ≥ k] = q^c          (memorylessness)
    Pr[digit j after the point is 1] = q^(c/2^j) / (1 + q^(c/2^j)) = 1 / (1 + exp(c / (2^j · b)))

because the density of E on `[0, c)` is proportional to `q^x = Π_j q^(d_j · c/2^j)`, a product over the digits d_j of
x/c. Each digit is the flip of an exact coin (`exact_bernoulli`), and digits are drawn as they are needed. With a fair
sign in front, E is Laplace noise of scale b (`laplace`), and its whole part, `Pr[floor(E) ≥ n] = q^n`, is geometric
(`geometric`).

Source: Marsaglia, "Random variables with independent binary digits", Annals of Mathematical Statistics 42, 1971.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from wpinq.noise.exact_bernoulli import Coin, Coins, RandomBytes

DIGITS = 64
"""Digits after the point that are drawn at once."""

AHEAD = 6
"""Coins of the whole part that are flipped at once. Those after one on tails decide nothing, and are forgotten."""

AT_ONCE = 2**12
"""Draws at once: their random words fit into the processor's cache."""

_OF_A_BYTE = (128 >> np.arange(8)).astype(np.uint8)[:, np.newaxis]  # what its binary digits are worth


class Exponential:
    """The digits of E/c, for E exponential with mean b, and c the power of two in `[b, 2b)`.

    Parameters
    ----------
    scale : float
        b, positive and finite, taken for the rational that it is.
    """

    def __init__(self, scale: float) -> None:
        mantissa, exponent = math.frexp(scale)
        self.exponent = exponent - 1 if mantissa == 0.5 else exponent  # of c
        self._relative = Fraction(2) ** self.exponent / Fraction(scale)  # c/b, in [1, 2)
        self._onward = Coins([Coin(self._relative, logistic=False)] * AHEAD)
        self.digit = lru_cache(maxsize=2**10)(self._digit)  # what is flipped again keeps the words that it found
        self._digits = Coins([self.digit(place) for place in range(1, DIGITS + 1)])

    def _digit(self, place: int) -> Coin:
        """The coin that is the digit of E/c at this place after the point."""
        return Coin(self._relative / 2**place, logistic=True)

    def draw(
        self, count: int, random: RandomBytes
    ) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.uint64]]:
        """Independent draws: a fair sign, the whole part of E/c, and its first 64 digits after the point, of each."""
        signs = np.where(np.frombuffer(random(count), dtype=np.uint8) & 1, -1.0, 1.0)
        whole = np.zeros(count, dtype=np.int64)
        going = np.arange(count)
        while len(going):
            heads = np.add.reduce(np.logical_and.accumulate(self._onward.flip(len(going), random)))
            whole[going] += heads
            going = going[heads == AHEAD]
        # `packbits` takes eight times as long
        digits = np.bitwise_or.reduce(self._digits.flip(count, random).reshape(8, 8, count) * _OF_A_BYTE, axis=1)
        return signs, whole, np.ascontiguousarray(digits.T).view(">u8")[:, 0].astype(np.uint64)


exponential = lru_cache(maxsize=256)(Exponential)
"""The same, prepared once for each scale."""
