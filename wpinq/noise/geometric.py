"""Double-geometric noise: whole steps of a lattice, where the plan proves that all weights lie on it.

`Pr[noise = g·k] ∝ exp(−ε·g·|k|)`. The values are integers (weights over g) and so is the noise: the whole part of
exponential noise whose digits are drawn exactly. The promise is for neighbours whose outputs lie on the same lattice.
"""

from __future__ import annotations

from collections.abc import Sequence

from wpinq.noise.exact_bernoulli import AT_ONCE, DIGITS, RandomBytes, exponential

_LARGEST = 2**62


def add_geometric(values: Sequence[int], scale: float, random: RandomBytes) -> list[int]:
    """Each integer, below 2⁶² in size, plus an independent draw of double-geometric noise."""
    if not all(-_LARGEST < value < _LARGEST for value in values):
        raise OverflowError("weights are below 2^62 steps: the plan's bound on their norm does not hold")
    draws = double_geometric(len(values), scale, random)
    return [value + draw for value, draw in zip(values, draws, strict=True)]


def double_geometric(count: int, scale: float, random: RandomBytes) -> list[int]:
    """Independent draws of `Pr[k] = (1 − a)/(1 + a) · a^|k|` with `a = exp(−1/scale)`, exactly.

    Parameters
    ----------
    count : int
        How many.
    scale : float
        At most 2⁶⁰, taken for the rational that it is.
    random : callable
        The source of random bytes.

    Notes
    -----
    With a fair sign and `Pr[n] = (1 − a) a^n` for the size n, −0 is refused and drawn again: what is left of 0 has
    `(1 − a)/2`, every other number `(1 − a) a^|k| / 2`, and all together `(1 + a)/2`.

    Examples
    --------
    >>> import os
    >>> len(double_geometric(3, 10.0, os.urandom))
    3
    """
    drawn: list[int] = []
    while len(drawn) < count:
        pairs = geometric(min(count - len(drawn), AT_ONCE), scale, random)
        drawn += [size if sign > 0 else -size for sign, size in pairs if sign > 0 or size]
    return drawn


def geometric(count: int, scale: float, random: RandomBytes) -> list[tuple[float, int]]:
    """Independent draws of a fair sign, and of `Pr[n] = (1 − a) · a^n`, n ≥ 0, with `a = exp(−1/scale)`, exactly.

    Parameters
    ----------
    count, scale, random
        As for `double_geometric`.

    Examples
    --------
    >>> import os
    >>> all(abs(sign) == 1 and size >= 0 for sign, size in geometric(3, 10.0, os.urandom))
    True
    """
    law = exponential(scale)
    signs, whole, digits = law.draw(count, random)
    # E = c · (whole + digits), and c = 2^exponent: its whole part is what is before the point after a shift.
    shift = DIGITS - law.exponent
    sizes = [(k << DIGITS | d) >> shift for k, d in zip(whole.tolist(), digits.tolist(), strict=True)]
    return list(zip(signs.tolist(), sizes, strict=True))
