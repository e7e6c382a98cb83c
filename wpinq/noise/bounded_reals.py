"""Positive reals between rational bounds, as close as is asked for: sums, products and powers of e, no float anywhere.

A real is known by two integers and a power of two, `low · 2^exponent ≤ x ≤ high · 2^exponent`. Every operation rounds
the lower bound down and the upper one up, so what is between the bounds stays between them. Exponents are integers of
any size: nothing underflows to 0 or overflows. How many digits are kept decides how close the bounds are, and never
whether they hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True, repr=False)
class BoundedReal:
    """A real x > 0 with `low · 2^exponent ≤ x ≤ high · 2^exponent`."""

    low: int
    high: int
    exponent: int

    def rounded(self, bits: int) -> BoundedReal:
        """The same with an upper bound of at most so many digits, and one more where it is rounded up to it."""
        extra = self.high.bit_length() - bits
        if extra <= 0:
            return self
        return BoundedReal(self.low >> extra, -(-self.high >> extra), self.exponent + extra)

    def times(self, other: BoundedReal, bits: int) -> BoundedReal:
        """The product."""
        exponent = self.exponent + other.exponent
        return BoundedReal(self.low * other.low, self.high * other.high, exponent).rounded(bits)

    def plus(self, other: BoundedReal, bits: int) -> BoundedReal:
        """The sum: of the one with the lesser exponent, digits far below the other's last are rounded away."""
        fine, coarse = (self, other) if self.exponent <= other.exponent else (other, self)
        exponent = max(fine.exponent, coarse.exponent - bits)
        up, down = coarse.exponent - exponent, exponent - fine.exponent
        low = (coarse.low << up) + (fine.low >> down)
        return BoundedReal(low, (coarse.high << up) - (-fine.high >> down), exponent).rounded(bits)

    def inverse(self, bits: int) -> BoundedReal:
        """One over it, where the lower bound is above 0."""
        places = self.high.bit_length() + bits
        whole = 1 << places
        return BoundedReal(whole // self.high, -(-whole // self.low), -self.exponent - places).rounded(bits)

    def surely_at_least(self, factor: int, places: int) -> bool:
        """Whether `factor · x ≥ 2^places` for every x between the bounds."""
        least = factor * self.low
        return least > 0 and least.bit_length() - 1 >= places - self.exponent

    def surely_below(self, factor: int, places: int) -> bool:
        """Whether `factor · x < 2^places` for every x between the bounds."""
        return (factor * self.high).bit_length() <= places - self.exponent


def rational(number: Fraction, bits: int) -> BoundedReal:
    """A rational of more than 0, between bounds of so many digits."""
    top, bottom = number.numerator, number.denominator
    places = max(0, bits + bottom.bit_length() - top.bit_length())
    return BoundedReal((top << places) // bottom, -(-(top << places) // bottom), -places).rounded(bits)


def exponential_of(top: int, bottom: int, bits: int) -> BoundedReal:
    """`exp(top/bottom)` for integers, the second above 0.

    Notes
    -----
    With r = |top/bottom| / 2^m ≤ 1/2, `exp(r)` is bounded by its Taylor sum, of terms `t_k = t_(k−1) · r / k`: from
    below by terms rounded down; from above by terms rounded up, until one is the unit of the last digit, which the
    rest does not exceed, as each term is at most half of the one before. It is squared m times, which doubles the
    relative distance of the bounds each time, and inverted where top is below 0.

    Examples
    --------
    >>> found = exponential_of(-1, 1, 64)
    >>> found.low / 2**-found.exponent, found.high / 2**-found.exponent
    (0.36787944117144233, 0.36787944117144233)
    """
    halvings = max(0, abs(top).bit_length() - bottom.bit_length() + 2)
    work = bits + halvings + 16
    scaled, bottom = abs(top) << work, bottom << halvings
    under, over = scaled // bottom, -(-scaled // bottom)
    low = term = 1 << work
    place = 1
    while term:
        term = (term * under >> work) // place
        low, place = low + term, place + 1
    high = term = 1 << work
    place = 1
    while term > 1:
        term = -(-(term * over) // (place << work))
        high, place = high + term, place + 1
    found = BoundedReal(low, high + 1, -work)
    for _ in range(halvings):
        found = found.times(found, work)
    return (found.inverse(work) if top < 0 else found).rounded(bits)
