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

#: Bits of a word. The first decides all but one flip in 2**16.
WORD = 16


class Coin:
    """A coin with a real chance of heads, known to as many binary digits as are needed.

    Parameters
    ----------
    exponent : Fraction
        t ≥ 0, and at most 2 where it is logistic.
    logistic : bool
        Whether `Pr[heads] = 1/(1 + exp(t))`; otherwise it is `exp(-t)`.

    Examples
    --------
    >>> coin = Coin(Fraction(1), logistic=False)
    >>> coin.leading(20) / 2**20
    0.36787891387939453
    """

    def __init__(self, exponent: Fraction, *, logistic: bool) -> None:
        if exponent < 0:
            raise ValueError("the exponent of a coin is at least 0")
        self._exponent = exponent
        self._logistic = logistic
        self.leading = lru_cache(maxsize=8)(self._leading)  # its own cache, freed with it

    def _leading(self, bits: int) -> int:
        """The first binary digits of the chance of heads, as an integer: `floor(2**bits * p)`.

        Notes
        -----
        With `S_n = Σ_{k ≤ n} (-t)^k / k!`, whose terms alternate and do not grow from k = n + 1 ≥ t on:
        `S_n ≤ exp(-t) ≤ S_(n+1)` for odd n. `x / (1 + x)` rises with x, so the bounds hold through it, and where
        both have the same floor, p has it.
        """
        if 10 * self._exponent > 7 * bits:  # exp(-0.7) < 1/2
            return 0
        terms = 2 * math.ceil(self._exponent / 2) + 1
        while True:
            low, high = (self._floor(*_partial_sum(self._exponent, terms + more), bits) for more in (0, 1))
            if low == high:
                return low
            terms = 2 * terms + 1

    def _floor(self, top: int, bottom: int, bits: int) -> int:
        return (top << bits) // (top + bottom if self._logistic else bottom)

    def flip(self, random: RandomBytes) -> bool:
        """One flip."""
        return self.decide(_word(random), WORD, random)

    def decide(self, known: int, bits: int, random: RandomBytes) -> bool:
        """The flip by a uniform real of which some binary digits are known."""
        while known == (expected := self.leading(bits)):
            known, bits = known << WORD | _word(random), bits + WORD
        return known < expected


def _word(random: RandomBytes) -> int:
    return int.from_bytes(random(WORD // 8), "little")


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
        word = _word(random)
        if word > _TWO_FIRST or (word == _TWO_FIRST and not _TWO.decide(word, WORD, random)):
            return False
        top -= 2 * bottom
    return top == 0 or Coin(Fraction(top, bottom), logistic=False).flip(random)


def exponential_bounds(t: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Rationals on either side of `exp(-t)`, t > 0, `2**-bits` apart.

    Examples
    --------
    >>> low, high = exponential_bounds(Fraction(3), 64)
    >>> low < high, round(float(low), 12) == round(float(high), 12) == round(math.exp(-3), 12)
    (True, True)
    """
    leading = Coin(t, logistic=False).leading(bits)
    return Fraction(leading, 2**bits), Fraction(leading + 1, 2**bits)


# Exponential noise by its binary digits, as many as are requested, none of them approximated.
#
# Let E be exponential with mean b, and c a power of two. With `q = exp(-1/b)`, `Pr[E ≥ x] = q^x`. A cell has the width
# `c/2^CELL_DIGITS`, and r is q to its power. For a uniform U, `N = #{i ≥ 1: U < r^i}` has the law of the cell that E is
# in: `Pr[N ≥ i] = r^i`. The place of E in its cell is independent of it, with a density proportional to `q^x`: a
# product over the binary digits of x/c. So these are independent,
#
#     Pr[digit j after the point is 1] = q^(c/2^j) / (1 + q^(c/2^j)) = 1 / (1 + exp(c / (2^j · b)))
#
# and the digits of a cell up to a place are together f, a multiple of what that place is worth, with a chance
# proportional to `q^(c·f)`. They are drawn uniform, and kept with the chance `exp(-c·f/b)`, or all drawn again. The
# word that has them has the first digits of this flip, too. Further digits are flips of exact coins (`Coin`). With a
# fair sign in front, E is Laplace noise of scale b (`laplace`), and its whole part, `Pr[floor(E) ≥ n] = q^n`, is
# geometric (`geometric`).
#
# Source: Marsaglia, "Random variables with independent binary digits", Annals of Mathematical Statistics 42, 1971.

#: Digits after the point that are drawn at once.
DIGITS = 64

#: Digits after the point by which cells are told apart.
CELL_DIGITS = 6

#: Draws at once: their random words fit into the processor's cache.
AT_ONCE = 2**14

#: Bits of the words that tell the cell, and of the numbers by which the ends of cells are found.
_CELL_WORD, _CUT = 2 * WORD, 64

#: The digits of a flip in the word of its number, between the sign and digits of E; further ones count where all are 1.
_FLIP_DIGITS, _FLIP = 5, np.uint64(0b111110)


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
        # the coin of the digit of E/c at a place after the point: one flipped again keeps the words that it found
        self.digit = lru_cache(maxsize=2**10)(lambda place: Coin(self._relative / 2**place, logistic=True))
        step, power, cuts = self._end(1).leading(_CUT), 1 << _CUT, [0]
        while power >> _CUT - _CELL_WORD:
            power = power * step >> _CUT  # r^i, less by at most 2i / 2**64
            cuts.append(power >> _CUT - _CELL_WORD)
        self._cuts = np.array(cuts[:0:-1], dtype=np.uint32)  # from 0 on
        # the cell by the first word; -1 where a cut is among the numbers that begin with it, or just below them
        spans = np.diff((self._cuts + 2**WORD - 1) >> WORD, append=2**WORD)
        self._by_first = np.repeat(np.arange(len(spans), dtype=np.int16)[::-1], spans)
        self._by_first[self._cuts >> WORD] = self._by_first[(self._cuts + 1) >> WORD] = -1

    def _end(self, cell: int) -> Coin:
        """The coin of E in this cell or beyond."""
        return Coin(self._relative * cell / 2**CELL_DIGITS, logistic=False)

    def draw(self, count: int, random: RandomBytes) -> tuple[Floats, Integers, NDArray[np.uint64]]:
        """Independent draws: a fair sign, the whole part of E/c, and its first 64 binary digits."""
        cells, drawn = self._cells(count, random), np.frombuffer(bytearray(random(8 * count)), dtype="<u8")
        left = (drawn & _FLIP == _FLIP).nonzero()[0]
        while len(left):
            left = left[~self._kept(drawn[left] >> np.uint64(CELL_DIGITS), random)]
            drawn[left] = np.frombuffer(random(8 * len(left)), dtype="<u8")
            left = left[drawn[left] & _FLIP == _FLIP]
        digits = cells.astype(np.uint64) << np.uint64(DIGITS - CELL_DIGITS) | drawn >> np.uint64(CELL_DIGITS)
        # a sign by a bit that is no other digit
        return np.where(drawn & np.uint64(1), -1.0, 1.0), cells >> CELL_DIGITS, digits

    def _cells(self, count: int, random: RandomBytes) -> Integers:
        """The cells of independent draws.

        Notes
        -----
        The floor of `2^32 · r^i` is the cut of i or 1 more. So U, of which 32 digits are drawn, is surely below r^i
        where their number is below the cut, and surely not where it is above by 2. Else further words are drawn. Most
        first words of 16 digits decide alone: whatever follows, no cut is at the number or just below it.
        """
        first = np.frombuffer(random(WORD // 8 * count), dtype="<u2")
        cells: Integers = self._by_first.take(first).astype(np.int64)
        near = (cells < 0).nonzero()[0]
        words = first[near].astype(np.uint32) << WORD | np.frombuffer(random(WORD // 8 * len(near)), dtype="<u2")
        cells[near] = len(self._cuts) - np.searchsorted(self._cuts, words, side="right")
        for i in (words - self._cuts[~cells[near]] < 2).nonzero()[0]:
            known, bits = int(words[i]), _CELL_WORD
            while known <= (end := self._end(int(cells[near[i]]) + 1).leading(bits)):
                if known < end:
                    cells[near[i]] += 1
                else:
                    known, bits = known << WORD | _word(random), bits + WORD
        return cells

    def _kept(self, digits: NDArray[np.uint64], random: RandomBytes) -> NDArray[np.bool_]:
        """Flips of coins of `exp(-t)`, `t = digits · 2^-64 · c/b`, whose first five digits were 1.

        Notes
        -----
        t is less than 1/32, and `exp(-t)` more than 31/32: a number is below it if one of its first five digits is 0.
        Otherwise a word of 16 further digits is drawn, in units of 2^-21. `1 - exp(-t)` is `t - t²/2 + t³/6` less at
        most t⁴/24, which is less than 1/12 of a unit. Roundings of floats are far less. A word that is 1/8 of a unit
        from the chance, or further, decides.
        """
        words = np.frombuffer(random(WORD // 8 * len(digits)), dtype="<u2")
        t = digits.astype(np.float64) * (float(self._relative) * 2.0**-DIGITS)
        over = words - 2.0**WORD * (1 - 2**_FLIP_DIGITS * t * (1 - t / 2 * (1 - t / 3)))
        kept: NDArray[np.bool_] = over <= -1 - 1 / 8
        for i in (~kept & (over < 1 / 8)).nonzero()[0]:
            coin = Coin(self._relative * int(digits[i]) / 2**DIGITS, logistic=False)
            kept[i] = coin.decide((2**_FLIP_DIGITS - 1 << WORD) + int(words[i]), _FLIP_DIGITS + WORD, random)
        return kept


#: The same, prepared once for each scale.
exponential = lru_cache(maxsize=256)(Exponential)
