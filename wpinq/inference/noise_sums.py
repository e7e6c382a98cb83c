"""Half-widths of sums of independent double-geometric noise with public coefficients.

A sum `S = Σ_i c_i K_i` is discrete: its tail is a step function, and its transform
`M(s) = Π_i 1/(1 − sinh²(c_i s/2)/q)`, `q = sinh²(1/(2b))`, does not fall off along the imaginary direction. Tails are
integrals of M along a line Re s = s₀ between 0 and the first pole, `1/(b max c)`, by the trapezoidal rule, whose error
is known: nodes a distance 2π/P apart mix up S > t with S > t + kP, times `exp(−k s₀ P)`, for all whole numbers k.

Where all coefficients are multiples of one number η, so is S, and one period of the line gives its tails exactly:
`Pr[S ≥ kη] = 1/(2πi) ∫ e^{−skη} M(s) η/(1 − e^{−sη}) ds`, `|Im s| ≤ π/η`. Elsewhere S is smoothed by normal noise V of
deviation τ: for every t, as V is independent of S,

    Pr[S > t] · Pr[V ≥ −3.5τ] ≤ Pr[S + V > t − 3.5τ] = 1/(2πi) ∫ e^{−s(t − 3.5τ)} M(s) e^{τ²s²/2}/s ds

so the t where the right side is small enough is one that the left side allows: too wide, by little, never too narrow.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from wpinq.inference.checks import confidence_of, positive
from wpinq.runtime.arrays import Floats

_SMOOTHING = 1e-3
"""τ, in sizes of the sum: its deviation, or its largest coefficient if that is more."""
_SHIFT = 3.5
"""How far S is shifted, in τ; the chance of V below that is `Φ(−3.5)`, 0.023 %."""
_SMOOTHED_REACH = 8.0
"""In 1/τ: beyond, `exp(τ²s²/2)` is below 2e-14, and what is left of M besides."""
_LEAST_SCALE = 1 / 200
"""Below, noise is 0 but for one draw in 10⁸⁶."""
_MOST_NODES = 2**16
_DIGITS = 21.0
"""The natural logarithm of the precision of the trapezoidal rule: 1e-9."""
_NEGLIGIBLE = 1e-13
_SAME = 1e-11
"""Coefficients this close, in the largest, are one; those below that are left out."""
_WHOLE = 1e-11
"""Ratios this close to whole numbers are those."""
_OUTWARD = 1e-8
"""Half-widths are made this much wider, beyond what floats and `_SAME` and `_WHOLE` lose."""


def geometric_half_widths(
    coefficients: Floats, scale: float, confidence: float, repeats: Floats | None = None
) -> Floats:
    """Half-widths of intervals around many sums of independent double-geometric noise.

    For each column c a number t with `Pr[|Σ_i c_i K_i| ≤ t] ≥ confidence`, K_i of `Pr[k] ∝ exp(−|k|/scale)`. The
    least one where the smallest coefficient divides the others, and the sum spreads over some thousand times it at most
    (a bin, a sum of bins). Elsewhere at most the least one that leaves out 0.03 % less of what may be left out, and a
    hundredth of the sum's standard deviation, or of its largest coefficient if that is more.

    `coefficients` are of any sign, a column a sum; one whose coefficients are all 0 has a half-width of 0. `repeats`,
    of the same shape, are how many terms there are of each, one when left out. `scale` is that of the noise in steps
    of its lattice. Half-widths are in steps, and wider by 1e-8 of themselves and of the largest coefficient, against
    rounding. Time: 1 to 25 ms a sum, at most 60 of 784 measured ones.

    Examples
    --------
    >>> geometric_half_widths(np.array([[1.0, 1.0, 0.3], [0.0, 1.0, 0.7]]), scale=10.0, confidence=0.9).round(1)
    array([23. , 33. , 17.5])
    """
    confidence = confidence_of(confidence)
    scale = positive(scale, "the scale of noise")
    known: dict[bytes, float] = {}
    found = np.empty(coefficients.shape[1])
    counts = np.ones(coefficients.shape) if repeats is None else np.asarray(repeats, dtype=np.float64)
    for column, given in enumerate(np.where(counts > 0, np.abs(coefficients), 0.0).T):
        largest = float(given.max(initial=0.0))
        kept = np.flatnonzero(given > _SAME * largest)
        kept = kept[np.argsort(-given[kept], kind="stable")]
        terms, often = given[kept], counts[kept, column]
        code = terms.tobytes() + often.tobytes()  # ranges of one length, for one, have sums of one law
        if code not in known:
            known[code] = _half_width(terms, often, scale, confidence) * (1 + _OUTWARD) + _OUTWARD * largest
        found[column] = known[code]
    return found


def geometric_variance(scale: float) -> float:
    """`2α/(1 − α)² = 1/(2 sinh²(1/(2b)))`, `α = exp(−1/b)`: the variance of `Pr[k] ∝ α^|k|`, less than Laplace's 2b².

    At least 3e-87, that of b = 1/200, so that estimates can be weighed by its inverse.

    Examples
    --------
    >>> round(geometric_variance(1.0), 4)
    1.8413
    """
    return 0.5 / math.sinh(0.5 / max(scale, _LEAST_SCALE)) ** 2


def _half_width(terms: Floats, often: Floats, scale: float, confidence: float) -> float:
    """For positive coefficients in descending order."""
    ratio, outside = math.exp(-1 / scale), 1 - confidence
    if float(often.sum()) * 2 * ratio / (1 + ratio) <= outside:  # all terms are 0 as often as that
        return 0.0
    if float(often.sum()) == 1:  # the least m with 2 α^(m+1) / (1 + α) ≤ outside
        return float(terms[0]) * (math.ceil(-scale * (math.log(outside / 2) + math.log1p(ratio))) - 1)
    size = max(math.sqrt(geometric_variance(scale) * float((often * terms**2).sum())), float(terms[0]))
    scaled, repeats = _distinct(terms / size, often)
    return size * _LatticeTails(scaled, repeats, scale, outside / 2).half_width()


def _distinct(terms: Floats, often: Floats) -> tuple[Floats, Floats]:
    """Every coefficient once, in descending order, and how often it occurs."""
    places = np.floor(terms / (_SAME * terms[0]))  # by places, not by gaps: many small gaps are a large one
    first = np.flatnonzero(np.diff(places, prepend=np.inf) < 0)
    return terms[first], np.add.reduceat(often, first)


class _LatticeTails:
    """Upper tails of a sum of size 1, as a function of the threshold."""

    def __init__(self, terms: Floats, repeats: Floats, scale: float, tail: float) -> None:
        from scipy.special import ndtr, ndtri

        self.tail, self.step = tail, 0.0
        pole = 1 / (scale * float(terms[0]))
        normal = max(0.0, float(-ndtri(tail)))
        self.guess = max(normal, 1.0)
        saddle = (normal + math.sqrt(normal**2 + 4)) / 2  # that of the normal law
        self.line = min(saddle, 0.45 * pole)
        period = _period(self.line, pole, terms, repeats, scale, _DIGITS - math.log(tail))
        unit = float(terms[-1])
        whole = np.rint(terms / unit)
        nodes = math.ceil(period / unit / 2)  # half of one period of the line: the other half is its mirror
        if nodes <= _MOST_NODES and (np.abs(terms / unit - whole) <= _WHOLE * whole).all():
            self.step, spacing = unit, math.pi / (unit * nodes)
        else:
            spacing = 2 * math.pi / period
            nodes = math.ceil(_SMOOTHED_REACH / _SMOOTHING / spacing)
            self.tail *= float(ndtr(_SHIFT))
        s = self.line + 1j * spacing * (np.arange(nodes) + 0.5)
        if self.step:
            logarithm = -np.log(-np.expm1(-s * unit)) + math.log(unit)
        else:
            logarithm = (_SMOOTHING * s) ** 2 / 2 - np.log(s)
        self.s, logarithm = _transform(s, logarithm, terms, repeats, scale)
        self.size = float(logarithm.real.max())
        self.weights = np.exp(logarithm - self.size) * (spacing / math.pi)

    def beyond(self, threshold: float) -> float:
        """`Pr[S ≥ threshold]` on the lattice, and `Pr[S + V > threshold]` elsewhere."""
        along = np.exp(-1j * self.s.imag * threshold)
        return float((self.weights * along).real.sum()) * math.exp(self.size - self.line * threshold)

    def half_width(self) -> float:
        """The least t that the tails allow; elsewhere than on a lattice within 1e-4 above it."""
        step, shift = (self.step, self.step) if self.step else (_SMOOTHING / 10, -_SHIFT * _SMOOTHING)
        low, high = -1, max(1, math.ceil(self.guess / step))  # in steps: low is not enough
        while self.beyond(high * step + shift) > self.tail:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.beyond(middle * step + shift) > self.tail else (low, middle)
        return high * step


def _period(line: float, pole: float, terms: Floats, repeats: Floats, scale: float, digits: float) -> float:
    """The least P known for which what the rule mixes in is below `exp(−digits)`, at every t of at least 0.

    Of k < 0 that is at most `exp(−line P)`, tails being at most 1; of k > 0 `M(s) exp(−(s − line) P)` by Chernoff's
    bound, for every s between the line and the pole.
    """
    q = math.sinh(0.5 / scale) ** 2
    beyond = line * (pole / line) ** np.linspace(0.1, 0.9, 9)
    logarithm = -(repeats @ np.log1p(-(np.sinh(terms[:, None] * beyond / 2) ** 2) / q))
    logarithm += (_SMOOTHING * beyond) ** 2 / 2
    return max(digits / line, float(((digits + logarithm) / (beyond - line)).min()))


def _transform(s: Any, logarithm: Any, terms: Floats, repeats: Floats, scale: float) -> tuple[Any, Any]:
    """The nodes where it is not negligible, and there the logarithm of M times what is given.

    Every factor of |M| is largest on the real axis, so a node is left out once the factors so far make it small.
    """
    q, line = math.sinh(0.5 / scale) ** 2, float(s[0].real)
    least = float(logarithm.real.max()) + math.log(_NEGLIGIBLE)
    for some in _batches(len(terms)):
        part, often = terms[some, None], repeats[some, None]
        across, along = np.sinh(part * line / 2) ** 2 / q, np.sin(part * s.imag / 2) ** 2
        # 1 − sinh²(c s/2)/q, by products that lose no digits near 0
        real = 1 - across + (1 + 2 * q * across) * along / q
        turn = np.sinh(part * line) * np.sin(part * s.imag) / (2 * q)
        logarithm = logarithm - (often * np.log(real - 1j * turn)).sum(axis=0)
        least -= float((often * np.log1p(-across)).sum())
        kept = logarithm.real > least
        s, logarithm = s[kept], logarithm[kept]
    return s, logarithm


def _batches(count: int) -> Iterator[slice]:
    """1, 1, 2, 4, 8, 16, 16, … at a time: the first leave the fewest nodes to the others."""
    start = 0
    while start < count:
        yield slice(start, start + min(max(start, 1), 16))
        start += min(max(start, 1), 16)
