"""Epsilon, and other exact numbers of bills, as text and as numbers that print as text."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from decimal import Context, Decimal, Inexact
from fractions import Fraction
from typing import Any

_SEVENTEEN_DIGITS = Context(prec=17, traps=[Inexact])

#: What `parse_epsilon` reads; a float stands for the shortest decimal that names it.
EpsilonLike = float | str | Fraction | Decimal


def _read(other: object) -> object:
    """A finite float as the shortest decimal that names it, exactly; anything else as it is."""
    if isinstance(other, float) and math.isfinite(other):
        return Fraction(float.__repr__(other))  # subclasses, such as numpy's, write their own name
    return other


def _compared(name: str) -> Callable[[Fraction, object], bool]:
    compare = getattr(operator, name)

    def method(self: Fraction, other: object) -> Any:
        try:
            if isinstance(other, str):
                other = Fraction(other) if "/" in other else Decimal(other)  # of which any exponent is cheap
            return compare(Fraction(self), _read(other))
        except (ArithmeticError, ValueError):  # a text that is no number, a Decimal that is none
            return NotImplemented

    return method


def _computed(name: str) -> Callable[[Fraction, Any], Any]:
    compute = getattr(Fraction, f"__{name}__")

    def method(self: Fraction, other: object) -> Any:
        found = compute(self, _read(other))
        return Epsilon(found) if isinstance(found, Fraction) else found

    return method


class Epsilon(Fraction):
    """An exact epsilon that prints as a decimal, and computes and compares with floats.

    A float stands for the shortest decimal that names it, and a text can be compared, as for `parse_epsilon`. The
    hash is that of the fraction.

    Examples
    --------
    >>> left = Epsilon(1, 10)
    >>> left, left == 0.1, left < "1/3", f"{left:.3f}", Epsilon(1, 3), 1 - left, 3 * left - 0.1
    (0.1, True, True, '0.100', 1/3, 0.9, 0.2)
    """

    __slots__ = ()
    __hash__ = Fraction.__hash__
    __eq__ = _compared("eq")
    __lt__, __le__, __gt__, __ge__ = map(_compared, ("lt", "le", "gt", "ge"))
    __add__, __sub__, __mul__, __truediv__ = map(_computed, ("add", "sub", "mul", "truediv"))
    __radd__, __rsub__, __rmul__, __rtruediv__ = map(_computed, ("radd", "rsub", "rmul", "rtruediv"))

    def __repr__(self) -> str:
        return format_epsilon(self)

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(float(self), spec) if spec else str(self)

    def __reduce__(self) -> Any:
        return Epsilon, (self.numerator, self.denominator)


def format_epsilon(epsilon: Fraction) -> str:
    """An epsilon, or a bill, as text: a short exact decimal, else a ratio.

    A decimal has at most 17 digits.

    Parameters
    ----------
    epsilon : Fraction
        Any rational number.

    Returns
    -------
    str
        Text that reads back as the same number. Only a number of more than 4,096 bits, such as the bill of a
        plan with thousands of doublings, is named by its size instead: `"about 2**5000"`.

    Notes
    -----
    Privacy cost: none. Bills are public.

    Examples
    --------
    >>> format_epsilon(Fraction(1, 10)), format_epsilon(Fraction(1, 3)), format_epsilon(Fraction(1, 10**9))
    ('0.1', '1/3', '1e-9')
    """
    return _size(epsilon) or _exact_decimal(epsilon) or Fraction.__str__(epsilon)


def format_factor(factor: Fraction | int) -> str:
    """The uses of a source, or a move of a plan, as text: a whole number or a ratio.

    Parameters
    ----------
    factor : Fraction or int
        Any rational number.

    Returns
    -------
    str
        As `str` writes it; where that is of more than 4,096 bits, as `format_epsilon` does.

    Notes
    -----
    Privacy cost: none. It follows from the plan.

    Examples
    --------
    >>> format_factor(Fraction(8, 3)), format_factor(2**5000)
    ('8/3', 'about 2**5000')
    """
    return _size(Fraction(factor)) or str(factor)


def format_times(factor: Fraction | int) -> str:
    """How often, in words: once, twice, or a factor.

    Examples
    --------
    >>> format_times(1), format_times(2), format_times(Fraction(8, 3))
    ('once', 'twice', '8/3 times')
    """
    return {Fraction(1): "once", Fraction(2): "twice"}.get(Fraction(factor)) or f"{format_factor(factor)} times"


def _size(number: Fraction) -> str | None:
    """The power of two near a number that is too long to write.

    Python raises an error for such numbers.
    """
    bits = number.numerator.bit_length(), number.denominator.bit_length()
    return f"about {'-' if number < 0 else ''}2**{bits[0] - bits[1]}" if max(bits) > 4096 else None


def _exact_decimal(number: Fraction) -> str | None:
    try:
        decimal = _SEVENTEEN_DIGITS.divide(Decimal(number.numerator), Decimal(number.denominator))
    except Inexact:
        return None
    decimal = decimal.normalize(_SEVENTEEN_DIGITS)
    return f"{decimal:f}" if -7 < decimal.adjusted() < 17 else f"{decimal:e}".replace("e+", "e")
