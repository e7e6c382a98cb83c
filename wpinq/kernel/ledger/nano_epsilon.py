"""Epsilon as the ledger counts it: whole nano-epsilon, charges rounded up and budgets rounded down."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from wpinq.errors import EpsilonError
from wpinq.noise.epsilon import NANO


def to_nano(epsilon: Fraction) -> int:
    """A charge in whole nano-epsilon, rounded up: a ledger never records less than was lost.

    Examples
    --------
    >>> to_nano(Fraction(1, 10)), to_nano(Fraction(1, 3))
    (100000000, 333333334)
    """
    if epsilon.numerator < 0:
        raise EpsilonError("a charge cannot be negative: bill uses × unit weight × epsilon")
    return -(-epsilon.numerator * NANO // epsilon.denominator)


def budget_to_nano(epsilon: Fraction) -> int:
    """A budget in whole nano-epsilon, rounded down: never more than was given, and at least 1.

    Examples
    --------
    >>> budget_to_nano(Fraction(1, 3))
    333333333
    """
    nano = math.floor(epsilon * NANO)
    if nano < 1:
        raise EpsilonError("a budget is kept in whole nano-epsilon: give at least 1e-9")
    return nano


@lru_cache(maxsize=1024)
def from_nano(nano: int) -> Fraction:
    """The exact epsilon of a whole number of nano-epsilon.

    Examples
    --------
    >>> from_nano(100_000_000)
    Fraction(1, 10)
    """
    if nano < 0:
        raise EpsilonError("a balance cannot be negative: give nano-epsilon of at least 0")
    return Fraction(nano, NANO)


def decimal_epsilon(nano: int) -> str:
    """An amount in nano-epsilon as an exact decimal epsilon.

    Examples
    --------
    >>> decimal_epsilon(1_500_000_000)
    '1.5'
    """
    whole, rest = divmod(nano, NANO)
    return f"{whole}.{rest:09d}".rstrip("0").rstrip(".")
