"""The laws of the noise that a release adds: how far it reaches, and how often. Public arithmetic, no draws."""

from __future__ import annotations

import math
from dataclasses import dataclass

from wpinq.errors import AnswersError, EpsilonError


def half_width(scale: float, confidence: float) -> float:
    """The half-width of the interval that holds Laplace noise of this scale with this probability."""
    if not 0 < confidence < 1:
        raise AnswersError(f"a confidence lies between 0 and 1, not {confidence!r}: write 0.95 for 95 %")
    return -scale * math.log1p(-confidence)


@dataclass(frozen=True, slots=True)
class DoubleGeometric:
    """Double-geometric noise on the integers: `Pr[k] = (1 − a)/(1 + a) · a^|k|` with `a = exp(−1/scale)`.

    Parameters
    ----------
    scale : float
        In steps, positive and at most 2⁶⁰: `geometric_scale` gives it.

    Raises
    ------
    EpsilonError
        When the scale is not such a float.

    Examples
    --------
    >>> DoubleGeometric(1.0).interval(0.95)
    3
    """

    scale: float

    def __post_init__(self) -> None:
        if not isinstance(self.scale, float) or not 0 < self.scale <= 2.0**60:
            raise EpsilonError("the scale of noise must be a float above 0, at most 2^60: take it from geometric_scale")

    @property
    def ratio(self) -> float:
        """`a = exp(−1/scale)`."""
        return math.exp(-1 / self.scale)

    @property
    def variance(self) -> float:
        """`2a / (1 − a)²`, always less than the `2·scale²` of Laplace noise."""
        return 2 * self.ratio / math.expm1(-1 / self.scale) ** 2

    def survival(self, threshold: int) -> float:
        """The probability that a draw is more than an integer t: `a^(t+1)/(1 + a)` for t ≥ −1.

        Examples
        --------
        >>> round(DoubleGeometric(1.0).survival(0), 6)
        0.268941
        """
        if threshold < -1:
            return 1 - self.survival(-threshold - 1)
        return math.exp(-(threshold + 1) / self.scale) / (1 + self.ratio)

    def interval(self, confidence: float) -> int:
        """The least m with `Pr[|noise| ≤ m] ≥ confidence`, in steps.

        Raises
        ------
        AnswersError
            When the confidence is not between 0 and 1.
        """
        if not 0 < confidence < 1:
            raise AnswersError("a confidence lies strictly between 0 and 1: give for example 0.95")
        # 2 a^(m+1) / (1 + a) ≤ 1 − confidence
        steps = -self.scale * (math.log1p(-confidence) + math.log1p(self.ratio) - math.log(2)) - 1
        m = max(0, math.ceil(steps))
        return m - 1 if m and 2 * self.survival(m - 1) <= 1 - confidence else m
