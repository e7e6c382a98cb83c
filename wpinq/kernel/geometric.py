"""Double-geometric noise: whole steps of a lattice, where the plan proves that all weights lie on it.

`Pr[noise = g·k] ∝ exp(−ε·g·|k|)`. The values are integers (weights over g) and so is the noise: the whole part of
exponential noise whose digits are drawn exactly. The promise is for neighbours whose outputs lie on the same lattice.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from wpinq.errors import EvaluationFailed
from wpinq.kernel.coins import RandomBytes
from wpinq.kernel.exponential import AT_ONCE, DIGITS, exponential
from wpinq.kernel.mechanism import FAILED
from wpinq.measure.laws import DoubleGeometric

_LARGEST = 2**62


@dataclass(frozen=True, slots=True)
class GeometricNoise(DoubleGeometric):
    """Double-geometric noise on the integers, drawn exactly."""

    def add(self, values: Sequence[int]) -> list[int]:
        """Each integer plus a fresh, independent draw.

        Parameters
        ----------
        values : sequence of int
            Protected weights over g, below 2⁶² in size.

        Returns
        -------
        list of int
            As many noisy numbers of steps.

        Raises
        ------
        EvaluationFailed
            When anything fails. The message is constant.

        Notes
        -----
        Privacy cost: a source whose changes move `values` by n steps in L1 loses `n / scale`. Randomness comes from
        the operating system.

        Examples
        --------
        >>> len(GeometricNoise(2.0).add([3, 4]))
        2
        """
        try:
            release = _add(values, self.scale)
        except Exception:
            release = None
        if release is None:  # outside of the handler, where no cause and no context is attached
            raise EvaluationFailed(FAILED)
        return release


def _add(values: Sequence[int], scale: float) -> list[int] | None:
    numbers = [int(value) for value in values]
    if not all(-_LARGEST < number < _LARGEST for number in numbers):
        return None
    return [number + noise for number, noise in zip(numbers, double_geometric(len(numbers), scale), strict=True)]


def double_geometric(count: int, scale: float, random: RandomBytes = os.urandom) -> list[int]:
    """Independent draws of `Pr[k] = (1 − a)/(1 + a) · a^|k|` with `a = exp(−1/scale)`, exactly.

    Parameters
    ----------
    count : int
        How many.
    scale : float
        At most 2⁶⁰, taken for the rational that it is.
    random : callable
        Where random bytes come from: the operating system, but for tests.

    Notes
    -----
    With a fair sign and `Pr[n] = (1 − a) a^n` for the size n, −0 is refused and drawn again: what is left of 0 has
    `(1 − a)/2`, every other number `(1 − a) a^|k| / 2`, and all together `(1 + a)/2`.

    Examples
    --------
    >>> len(double_geometric(3, 10.0))
    3
    """
    law, drawn = exponential(scale), list[int]()
    while len(drawn) < count:
        signs, whole, digits = law.draw(min(count - len(drawn), AT_ONCE), random)
        # E = c · (whole + digits), and c = 2^exponent: its whole part is what is before the point after a shift.
        shift = DIGITS - law.exponent
        sizes = [(k << DIGITS | d) >> shift for k, d in zip(whole.tolist(), digits.tolist(), strict=True)]
        pairs = zip(signs.tolist(), sizes, strict=True)
        drawn += [size if sign > 0 else -size for sign, size in pairs if sign > 0 or size]
    return drawn
