"""The noise of a strategy's answers, and intervals by parametric bootstrap."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from wpinq.errors import AnswersError
from wpinq.inference.checks import array_of, confidence_of, count_of, positive, vector
from wpinq.inference.noise_sums import geometric_half_widths, geometric_variance, linear_half_widths
from wpinq.runtime.arrays import Floats


@dataclass(frozen=True, slots=True)
class Noise:
    """Independent noise of the density, or on multiples of a step the probability, `∝ exp(−|noise|/scale)`.

    Attributes
    ----------
    scale : float
        In units of the answers, more than 0.
    step : float, optional
        In units of the answers, the lattice of double-geometric noise, more than 0; None for Laplace noise.

    Examples
    --------
    >>> Noise(10.0).variance, round(Noise(10.0, step=5.0).variance, 1)
    (200.0, 195.9)
    """

    scale: float
    step: float | None = None

    def __post_init__(self) -> None:
        positive(self.scale, "the scale of noise")
        if self.step is not None:
            positive(self.step, "the step of a lattice")

    @property
    def variance(self) -> float:
        """`2·scale²`; on a lattice of step g `2αg²/(1 − α)²` with `α = exp(−g/scale)`, which is less."""
        if self.step is None:
            return 2 * self.scale**2
        return self.step**2 * geometric_variance(self.scale / self.step)

    def draw(self, random: np.random.Generator, shape: int | tuple[int, ...]) -> Floats:
        """Reproducible noise for simulations. NOT private."""
        if self.step is None:
            return random.laplace(0.0, self.scale, shape)
        chance = -math.expm1(-self.step / self.scale)
        return self.step * (random.geometric(chance, shape) - random.geometric(chance, shape)).astype(np.float64)

    def half_widths(self, coefficients: Floats, confidence: float, repeats: Floats | None = None) -> Floats:
        """Half-widths of intervals around sums of this noise with public coefficients, a column a sum.

        `repeats`, of the same shape, are how many terms have each coefficient: one when left out. Each interval covers
        with the stated probability: exactly for Laplace noise, at least for noise on a lattice.
        """
        if self.step is None:
            return linear_half_widths(np.abs(coefficients) * self.scale, confidence, repeats)
        return self.step * geometric_half_widths(coefficients, self.scale / self.step, confidence, repeats)


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
    scale: float | Noise,
    confidence: float = 0.95,
    draws: int = 200,
    seed: int = 0,
) -> Bootstrap:
    """Intervals around an estimate that is not linear in the noisy numbers.

    The estimate is taken for the truth: noise of the same law is drawn on its answers, the inference is run
    again, and the quantiles of (re-estimate − estimate) are turned around: `estimate − q_high … estimate − q_low`.

    Parameters
    ----------
    estimate : array-like
        What the inference gave.
    answers : callable
        From an estimate to the noiseless answers it implies.
    infer : callable
        From noisy answers to an estimate: finite numbers, as many as there are.
    scale : float or Noise
        The scale of the Laplace noise in the answers, more than 0; or their noise, as `strategy.noise(answers)` says.
    confidence : float
        Strictly between 0 and 1.
    draws, seed : int
        How many re-estimates, at least 20, and the seed of their noise.

    Notes
    -----
    Approximate: shape constraints bias the estimate, and the interval inherits that; `docs/histograms.md` has measured
    coverages.

    Examples
    --------
    >>> found = bootstrap([5.0], lambda x: x, lambda y: y, scale=1.0, draws=2000)
    >>> found.label, bool(found.lower[0] < 5 < found.upper[0])
    ('parametric bootstrap', True)
    """
    confidence = confidence_of(confidence)
    noise = scale if isinstance(scale, Noise) else Noise(scale)
    count_of(draws, "the draws of a bootstrap", 20)
    count_of(seed, "a seed", 0)
    if not (callable(answers) and callable(infer)):
        raise AnswersError(
            "a bootstrap needs two functions, from an estimate to answers and from answers to an estimate"
        )
    center = vector(estimate, "the estimate")
    noiseless = array_of(answers(center), "the answers of an estimate")
    rng = np.random.default_rng(seed)
    drawn = (infer(noiseless + noise.draw(rng, noiseless.shape)) for _ in range(draws))
    again = np.array([vector(found, "every re-estimate", len(center)) for found in drawn])
    low, high = np.quantile(again - center, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
    return Bootstrap(center - high, center - low)
