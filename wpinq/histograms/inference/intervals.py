"""Intervals: exact for sums of Laplace noise, by parametric bootstrap for everything else."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from wpinq.errors import AnswersError
from wpinq.histograms.inference.arrays import Floats, vector

_NEGLIGIBLE = 1e-9


def laplace_sum_survival(scales: Any, threshold: float) -> float:
    """`Pr[Σ_i X_i > t]` for independent Laplace X_i of given scales.

    By inversion of the characteristic function `Π_i 1/(1 + (b_i u)²)`:
    `½ − (1/π) ∫_0^∞ sin(t u) / u · Π_i 1/(1 + (b_i u)²) du`; in closed form for one term.

    Parameters
    ----------
    scales : array-like
        The scale of each term, at least 0; one at least more than 0.
    threshold : float
        The number t.

    Returns
    -------
    float
        The probability, within about 1e-9.

    Raises
    ------
    AnswersError
        When no scale is positive, or one is negative.

    Notes
    -----
    Privacy cost: none. It is about the noise, not the data.

    Examples
    --------
    >>> round(laplace_sum_survival([1.0], 2.0), 6), round(math.exp(-2) / 2, 6)
    (0.067668, 0.067668)
    >>> round(laplace_sum_survival([1.0, 1.0], 2.0), 6), round(math.exp(-2) * (2 + 2) / 4, 6)
    (0.135335, 0.135335)
    """
    sizes = np.abs(vector(scales, "scales"))
    largest = float(sizes.max(initial=0.0))
    if largest <= 0 or (vector(scales, "scales") < 0).any():
        raise AnswersError("a sum of noise needs scales of at least 0, one of them more")
    if threshold < 0:
        return 1.0 - laplace_sum_survival(scales, -threshold)
    sizes = sizes[sizes > _NEGLIGIBLE * largest]
    if len(sizes) == 1:
        return 0.5 * math.exp(-threshold / largest)
    deviation = math.sqrt(2 * float((sizes**2).sum()))
    squares, t = np.sort((sizes / deviation) ** 2)[::-1], threshold / deviation
    # in units of the deviation the integrand falls off as exp(-u²/2) at first, and at least as 1/(1 + b²u²)²
    total, start, width = 0.0, 0.0, min(1.0, math.pi / (4 * t)) if t > 0 else 1.0
    nodes, weights = np.polynomial.legendre.leggauss(16)
    for _ in range(4000):
        u = start + width * (nodes + 1) / 2
        transform = np.exp(-np.log1p(np.outer(u**2, squares)).sum(axis=1))
        total += float((weights * np.sin(t * u) / u * transform).sum()) * width / 2
        start += width
        if transform[-1] * width < 1e-12:
            break
        width *= 1.0 if t * width > 2 else 1.1
    return 0.5 - total / math.pi


def linear_half_width(scales: Any, confidence: float) -> float:
    """The half-width of the exact interval around a sum of independent Laplace terms.

    The number t with `Pr[|Σ_i X_i| ≤ t] = confidence`. For one term, `b · ln(1/(1 − confidence))`.

    Parameters
    ----------
    scales : array-like
        The scale of each term: for an estimate `Σ_i c_i y_i`, `|c_i|` times the scale of the noise in y_i.
    confidence : float
        Strictly between 0 and 1.

    Returns
    -------
    float
        The half-width.

    Raises
    ------
    AnswersError
        When a parameter is out of range.

    Notes
    -----
    Privacy cost: none. Exact: the interval covers with this probability, whatever the data.

    Examples
    --------
    >>> round(linear_half_width([1.0], 0.9), 4), round(linear_half_width([1.0, 1.0], 0.9), 4)
    (2.3026, 3.2718)
    """
    if not 0 < confidence < 1:
        raise AnswersError(f"a confidence lies between 0 and 1, not {confidence!r}")
    sizes = vector(scales, "scales")
    tail = (1 - confidence) / 2
    if len(sizes[sizes > _NEGLIGIBLE * sizes.max(initial=0.0)]) == 1:
        return -float(sizes.max()) * math.log1p(-confidence)
    low, high = 0.0, math.sqrt(2 * float((sizes**2).sum()) / (1 - confidence))  # Chebyshev
    while high - low > 1e-7 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if laplace_sum_survival(sizes, middle) > tail else (low, middle)
    return high


@dataclass(frozen=True, slots=True, eq=False)
class Bootstrap:
    """Intervals by parametric bootstrap: approximate, their coverage is not guaranteed.

    Attributes
    ----------
    lower, upper : numpy arrays of float64
        The ends for each estimated number.
    label : str
        "parametric bootstrap", to be shown with the intervals.
    """

    lower: Floats
    upper: Floats
    label: str = "parametric bootstrap"


def bootstrap(
    estimate: Any,
    answers: Callable[[Floats], Floats],
    infer: Callable[[Floats], Any],
    scale: float,
    confidence: float = 0.95,
    draws: int = 200,
    seed: int = 0,
) -> Bootstrap:
    """Intervals around an estimate that is not linear in the noisy numbers.

    The estimate is taken for the truth: noise of the same scale is drawn on its answers, the inference is run
    again, and the quantiles of (re-estimate − estimate) are turned around: `estimate − q_high … estimate − q_low`.

    Parameters
    ----------
    estimate : array-like
        What the inference gave.
    answers : callable
        From an estimate to the noiseless answers it implies.
    infer : callable
        From noisy answers to an estimate.
    scale : float
        The scale of the Laplace noise in the answers, more than 0.
    confidence : float
        Strictly between 0 and 1.
    draws, seed : int
        How many re-estimates, at least 20, and the seed of their noise.

    Returns
    -------
    Bootstrap
        The intervals, labelled.

    Raises
    ------
    AnswersError
        When a parameter is out of range.

    Notes
    -----
    Privacy cost: none: it reads the released estimate only. Approximate: shape constraints bias the estimate, and
    the interval inherits that; `docs/histograms.md` has measured coverages.

    Examples
    --------
    >>> found = bootstrap([5.0], lambda x: x, lambda y: y, scale=1.0, draws=2000)
    >>> found.label, bool(found.lower[0] < 5 < found.upper[0])
    ('parametric bootstrap', True)
    """
    if not 0 < confidence < 1:
        raise AnswersError(f"a confidence lies between 0 and 1, not {confidence!r}")
    if not (scale > 0 and math.isfinite(scale)) or draws < 20:
        raise AnswersError("a bootstrap needs a positive finite scale and at least 20 draws")
    center = vector(estimate, "the estimate")
    noiseless = np.asarray(answers(center), dtype=np.float64)
    rng = np.random.default_rng(seed)
    again = np.array([infer(noiseless + rng.laplace(0.0, scale, noiseless.shape)) for _ in range(draws)])
    low, high = np.quantile(again - center, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
    return Bootstrap(center - high, center - low)
