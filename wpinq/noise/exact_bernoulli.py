"""Exact Bernoulli draws: `Pr[heads]` is `exp(-t)` or `1/(1 + exp(t))` for a rational t.

It is not a float near it.

A uniform real U, its binary digits drawn one word after another, is below p with probability p. It is compared with p
word by word: the first word that differs decides. Words of p come from integer arithmetic with proven bounds, as
many as are requested, so nothing is ever rounded. p is irrational (e to a rational power other than 0 is
transcendental, Lindemann 1882): words that are equal for ever have probability 0, and every word of p is decided by
bounds that are close enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from wpinq.runtime.arrays import Floats, Integers

#: A source of independent, uniform bytes, as many as requested: the operating system's for releases.
RandomBytes = Callable[[int], bytes]

#: Bits of a word. The first decides all but one flip in 2**16; of Laplace noise, all of 999 values in a thousand.
WORD = 16

_WORD_TYPE = np.dtype("<u2")


class Coin:
    """A coin with a real chance of heads, known to as many binary digits as are needed.

    Parameters
    ----------
    exponent : Fraction
        t, with 0 < t ≤ 2.
    logistic : bool
        Whether `Pr[heads] = 1/(1 + exp(t))`; otherwise it is `exp(-t)`.

    Examples
    --------
    >>> coin = Coin(Fraction(1), logistic=False)
    >>> coin.leading(20) / 2**20
    0.36787891387939453
    """

    def __init__(self, exponent: Fraction, *, logistic: bool) -> None:
        if not 0 < exponent <= 2:
            raise ValueError("the exponent of a coin lies above 0, and at 2 or below")
        self._exponent = exponent
        self._logistic = logistic
        self.leading = lru_cache(maxsize=8)(self._leading)  # its own cache, freed with it

    def _leading(self, bits: int) -> int:
        """The first binary digits of the chance of heads, as an integer: `floor(2**bits * p)`.

        Notes
        -----
        With `S_n = Σ_{k ≤ n} (-t)^k / k!`, whose terms alternate and, as t ≤ 2, do not grow from k = 1 on:
        `S_n ≤ exp(-t) ≤ S_(n+1)` for odd n. `x / (1 + x)` rises with x, so the bounds hold through it, and where
        both have the same floor, p has it.
        """
        terms = 3
        while True:
            low, high = (self._floor(*_partial_sum(self._exponent, terms + more), bits) for more in (0, 1))
            if low == high:
                return low
            terms = 2 * terms + 1

    def _floor(self, top: int, bottom: int, bits: int) -> int:
        return (top << bits) // (top + bottom if self._logistic else bottom)

    def flip(self, random: RandomBytes) -> bool:
        """One flip."""
        return self.decide(0, random)

    def decide(self, equal: int, random: RandomBytes) -> bool:
        """The flip whose first `equal` words are those of p."""
        while True:
            equal += 1
            word = int.from_bytes(random(WORD // 8), "little")
            expected = self.leading(equal * WORD) & ((1 << WORD) - 1)
            if word != expected:
                return word < expected


class Coins:
    """Several coins, each to be flipped many times at once.

    Parameters
    ----------
    coins : list of Coin
        At least one.
    """

    def __init__(self, coins: list[Coin]) -> None:
        self._coins = coins
        self._first = np.array([coin.leading(WORD) for coin in coins], dtype=_WORD_TYPE)[:, np.newaxis]

    def flip(self, times: int, random: RandomBytes) -> NDArray[np.bool_]:
        """Independent flips of every coin: True for heads, shape (coins, times)."""
        drawn = random(len(self._coins) * times * _WORD_TYPE.itemsize)
        words = np.frombuffer(drawn, dtype=_WORD_TYPE).reshape(len(self._coins), times)
        heads = words < self._first
        for tied in np.flatnonzero(words == self._first):
            heads.flat[tied] = self._coins[tied // times].decide(1, random)
        return heads


def _partial_sum(t: Fraction, terms: int) -> tuple[int, int]:
    """`Σ_{k ≤ terms} (-t)^k / k!` as a quotient of integers, by Horner's rule."""
    top, bottom = 1, 1
    for k in range(terms, 0, -1):
        below = bottom * t.denominator * k
        top, bottom = below - t.numerator * top, below
    return top, bottom


_TWO = Coin(Fraction(2), logistic=False)
_TWO_FIRST = _TWO.leading(WORD)


def exponential_coin(top: int, bottom: int, random: RandomBytes) -> bool:
    """One flip of a coin with `Pr[heads] = exp(-top/bottom)`, for any quotient of at least 0.

    Most coins fall on tails by a word or two, so a quotient is brought to lowest terms only where more is needed.

    Examples
    --------
    >>> import os
    >>> exponential_coin(0, 1, os.urandom), exponential_coin(10**6, 1, os.urandom)
    (True, False)
    """
    while top > 2 * bottom:  # exp(-t) is exp(-2), over and over, times the rest: the first tails decides
        word = int.from_bytes(random(WORD // 8), "little")
        if word > _TWO_FIRST or (word == _TWO_FIRST and not _TWO.decide(1, random)):
            return False
        top -= 2 * bottom
    return top == 0 or Coin(Fraction(top, bottom), logistic=False).flip(random)


def exponential_bounds(t: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Rationals on either side of `exp(-t)`, t > 0, some `2**-bits` apart.

    Examples
    --------
    >>> low, high = exponential_bounds(Fraction(3), 64)
    >>> low < high, round(float(low), 12) == round(float(high), 12) == round(math.exp(-3), 12)
    (True, True)
    """
    if t >= bits:
        return Fraction(0), Fraction(1, 2**bits)
    powers = max(1, math.ceil(t / 2))  # exp(-t) as a power of a chance that a coin has
    leading = Coin(t / powers, logistic=False).leading(bits)
    return Fraction(leading, 2**bits) ** powers, Fraction(leading + 1, 2**bits) ** powers


def below(bound: int, random: RandomBytes) -> int:
    """A uniform integer from 0 to `bound - 1`."""
    bits = (bound - 1).bit_length()
    while True:
        drawn = int.from_bytes(random((bits + 7) // 8), "little") & ((1 << bits) - 1)
        if drawn < bound:
            return drawn


# Exponential noise by its binary digits, as many as are requested, none of them approximated.
#
# Let E be exponential with mean b, and c a power of two. The digits of E/c are independent: with `q = exp(-1/b)`,
#
#     Pr[floor(E/c) ≥ k + 1 | floor(E/c) ≥ k] = q^c          (memorylessness)
#     Pr[digit j after the point is 1] = q^(c/2^j) / (1 + q^(c/2^j)) = 1 / (1 + exp(c / (2^j · b)))
#
# because the density of E on `[0, c)` is proportional to `q^x = Π_j q^(d_j · c/2^j)`, a product over the digits d_j of
# x/c. Each digit is the flip of an exact coin (`exact_bernoulli`), and digits are drawn as they are needed. With a fair
# sign in front, E is Laplace noise of scale b (`laplace`), and its whole part, `Pr[floor(E) ≥ n] = q^n`, is geometric
# (`geometric`).
#
# Source: Marsaglia, "Random variables with independent binary digits", Annals of Mathematical Statistics 42, 1971.

#: Digits after the point that are drawn at once.
DIGITS = 64

#: Coins of the whole part that are flipped at once. Those after one on tails decide nothing, and are forgotten.
AHEAD = 6

#: Draws at once: their random words fit into the processor's cache.
AT_ONCE = 2**12

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

    def draw(self, count: int, random: RandomBytes) -> tuple[Floats, Integers, NDArray[np.uint64]]:
        """Independent draws: a fair sign, the whole part of E/c, and its first 64 binary digits."""
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


#: The same, prepared once for each scale.
exponential = lru_cache(maxsize=256)(Exponential)
