"""Epsilon as an exact number: read, and counted.

Budgets are sums of many small charges, and a guarantee about a sum must not depend on the order of rounding. So an
epsilon is a `Fraction` from the moment it is read, and the ledger counts integers.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache

from wpinq.errors import EpsilonError
from wpinq.noise.epsilon_text import Epsilon

#: The largest epsilon that is read: far beyond any meaningful guarantee.
MAX_EPSILON = 2**31

#: The largest denominator, in lowest terms, of an epsilon that is read: no epsilon is finer than 1e-30.
MAX_DENOMINATOR = 10**30

#: Nano-epsilon in one unit of epsilon.
NANO = 10**9

_MAX_DIGITS = 1000
_DECIMAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_RATIO = re.compile(r"([+-]?\d+)/(\d+)", re.ASCII)
_ADVICE = 'pass a positive number such as 0.1, Fraction(1, 3), "0.1" or "1/3"'
_NOT_POSITIVE = f"epsilon must be more than 0 (a budget may be 0): {_ADVICE}"
_TOO_LARGE = "epsilon must be at most 2**31: take a smaller one, 0.01 to 10 being usual"
_TOO_FINE = "epsilon is finer than 1e-30: round it to at most 30 decimals"


def parse_epsilon(value: object) -> Fraction:
    """The epsilon that a number or a text means, exactly.

    A float stands for the shortest decimal that names it, so `0.1` is 1/10 and not the nearest binary
    fraction.

    Parameters
    ----------
    value : int, float, Fraction, Decimal or str
        More than 0, at most 2**31, and in lowest terms over a denominator of at most 10**30. A text is a
        decimal (`"0.1"`, `"1e-3"`) or a ratio of integers (`"1/3"`).

    Returns
    -------
    Fraction
        The epsilon, without rounding.

    Raises
    ------
    EpsilonError
        When the value is no such number: booleans, nan, infinity, zero, negative numbers, other types,
        numbers beyond the range. The time taken is bounded, whatever the exponent.

    Notes
    -----
    Privacy cost: none. An epsilon is public.

    Examples
    --------
    >>> parse_epsilon(0.1), parse_epsilon("1/3"), parse_epsilon("1e-3")
    (Fraction(1, 10), Fraction(1, 3), Fraction(1, 1000))
    """
    if isinstance(value, bool):
        raise EpsilonError(f"epsilon cannot be a boolean: {_ADVICE}")
    if isinstance(value, (int, Fraction)):
        epsilon = Fraction(value)
    elif isinstance(value, float):
        # float.__repr__ and not repr: subclasses, such as numpy's, write their own name.
        epsilon = _from_decimal(Decimal(float.__repr__(value)))
    elif isinstance(value, Decimal):
        epsilon = _from_decimal(value)
    elif isinstance(value, str):
        epsilon = _from_text(value)
    else:
        raise EpsilonError(f"epsilon cannot be of type {type(value).__name__}: {_ADVICE}")
    if epsilon <= 0:
        raise EpsilonError(_NOT_POSITIVE)
    if epsilon > MAX_EPSILON:
        raise EpsilonError(_TOO_LARGE)
    if epsilon.denominator > MAX_DENOMINATOR:
        raise EpsilonError(_TOO_FINE)
    return epsilon


def _from_decimal(value: Decimal) -> Fraction:
    if not value.is_finite():
        raise EpsilonError(f"epsilon must be finite: {_ADVICE}")
    if value.is_signed() or value.is_zero():
        raise EpsilonError(_NOT_POSITIVE)
    # Before any power of ten is computed: an exponent can take gigabytes.
    if value.adjusted() > 10:
        raise EpsilonError(_TOO_LARGE)
    if value.adjusted() < -31:
        raise EpsilonError(_TOO_FINE)
    if len(value.as_tuple().digits) > _MAX_DIGITS:
        raise EpsilonError(f"epsilon has more than {_MAX_DIGITS} digits: round it to at most 30 decimals")
    return Fraction(value)


def _from_text(text: str) -> Fraction:
    if len(text) > _MAX_DIGITS:
        raise EpsilonError(f"epsilon is a text of more than {_MAX_DIGITS} characters: {_ADVICE}")
    text = text.strip()
    if _RATIO.fullmatch(text) is not None:
        try:
            return Fraction(text)
        except ZeroDivisionError:
            raise EpsilonError(f"epsilon {text[:40]!r} divides by zero: {_ADVICE}") from None
    if _DECIMAL.fullmatch(text) is None:
        raise EpsilonError(f"epsilon {text[:40]!r} is not a number: {_ADVICE}")
    try:
        return _from_decimal(Decimal(text))
    except InvalidOperation:  # an exponent out of the range of Decimal itself
        raise EpsilonError(f"epsilon has an exponent out of range: {_ADVICE}") from None


# Epsilon as a ledger counts it: whole nano-epsilon, charges rounded up and budgets rounded down.


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


def parse_budget(value: object) -> int:
    """A budget in whole nano-epsilon, rounded down; at least 1 unless 0 was given.

    Examples
    --------
    >>> parse_budget("1/3"), parse_budget(0)
    (333333333, 0)
    """
    if str(value) in ("0", "0.0"):
        return 0
    nano = math.floor(parse_epsilon(value) * NANO)
    if nano < 1:
        raise EpsilonError("a budget is kept in whole nano-epsilon: give 0 or at least 1e-9")
    return nano


@lru_cache(maxsize=1024)
def from_nano(nano: int) -> Epsilon:
    """The exact epsilon of a whole number of nano-epsilon.

    Examples
    --------
    >>> from_nano(100_000_000)
    0.1
    """
    if nano < 0:
        raise EpsilonError("a balance cannot be negative: give nano-epsilon of at least 0")
    return Epsilon(nano, NANO)


def decimal_epsilon(nano: int) -> str:
    """An amount in nano-epsilon as an exact decimal epsilon.

    Examples
    --------
    >>> decimal_epsilon(1_500_000_000)
    '1.5'
    """
    whole, rest = divmod(nano, NANO)
    return f"{whole}.{rest:09d}".rstrip("0").rstrip(".")
