"""The noise of a strategy's answers, and intervals by parametric bootstrap."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from wpinq.errors import AnswersError, described
from wpinq.inference.checks import MOST_BINS, array_of, confidence_of, count_of, number, positive, vector
from wpinq.inference.noise_sums import geometric_half_widths, geometric_variance, linear_half_widths
from wpinq.runtime.arrays import Floats


@dataclass(frozen=True, slots=True)
class Noise:
    """Independent noise of the density or probability `∝ exp(−|noise|/scale)`.

    With a step it is a probability on the step's multiples.

    It is a probability on multiples of a step.

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
        """`2·scale²`, or less on a lattice.

        On one of step g it is `2αg²/(1 − α)²` with `α = exp(−g/scale)`.
        """
        if self.step is None:
            return 2 * self.scale**2
        return self.step**2 * geometric_variance(self.scale / self.step)

    def draw(self, random: np.random.Generator, shape: int | tuple[int, ...]) -> Floats:
        """Reproducible noise for simulations, which is NOT private."""
        if self.step is None:
            return random.laplace(0.0, self.scale, shape)
        chance = -math.expm1(-self.step / self.scale)
        return self.step * (random.geometric(chance, shape) - random.geometric(chance, shape)).astype(np.float64)

    def half_widths(self, coefficients: Floats, confidence: float, repeats: Floats | None = None) -> Floats:
        """Half-widths of intervals around sums of this noise with public coefficients.

        Each column is a sum.

        `repeats`, of the same shape, are how many terms have each coefficient: one when left out. Each interval covers
        with the stated probability: exactly for Laplace noise, at least for noise on a lattice.
        """
        if self.step is None:
            return linear_half_widths(np.abs(coefficients) * self.scale, confidence, repeats)
        return self.step * geometric_half_widths(coefficients, self.scale / self.step, confidence, repeats)


@dataclass(frozen=True, slots=True, eq=False)
class Bootstrap:
    """Approximate intervals by parametric bootstrap, without a guaranteed coverage.

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
        raise AnswersError("a bootstrap needs two functions, from an estimate to answers and back")
    center = vector(estimate, "the estimate")
    noiseless = array_of(answers(center), "the answers of an estimate")
    rng = np.random.default_rng(seed)
    drawn = (infer(noiseless + noise.draw(rng, noiseless.shape)) for _ in range(draws))
    again = np.array([vector(found, "every re-estimate", len(center)) for found in drawn])
    low, high = np.quantile(again - center, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
    return Bootstrap(center - high, center - low)


# The posterior mean of one noisy count under a binomial prior.


def bayes_count(noisy: Any, records: int, probability: float, scale: float) -> Any:
    """The posterior mean of a count, given its noisy value.

    `Σ_j j·C(n,j) p^j (1−p)^{n−j} e^{−|y−j|/b} / Σ_j C(n,j) p^j (1−p)^{n−j} e^{−|y−j|/b}`

    Parameters
    ----------
    noisy : float or array-like
        The released value y, or several, each estimated by itself.
    records : int
        The public number n ≥ 1 of records.
    probability : float
        The prior chance p that a record counts, strictly between 0 and 1.
    scale : float
        The scale b of the Laplace noise: `answers.scale`.

    Returns
    -------
    float, or numpy array of float64
        Between 0 and n.

    Notes
    -----
    The estimate is as good as the prior: with a wrong p it is biased. Time `O(n)` once and `O(1)` a value: on either
    side of y the weights are prefix sums of `C(n,j) p^j (1−p)^{n−j} e^{±j/b}`, in logs.

    Source: Naldi and D'Acquisto, *Differential privacy for counting queries: can Bayes estimation help uncover the
    true value?*, 2014.

    Examples
    --------
    >>> round(bayes_count(45.0, records=100, probability=0.3, scale=10.0), 3)
    32.128
    """
    values = vector([noisy] if np.isscalar(noisy) else noisy, "noisy counts")
    count_of(records, "the number of records", 1, MOST_BINS)
    positive(scale, "the scale of the noise")
    if not 0 < number(probability, "the prior probability") < 1:
        raise AnswersError(f"the prior probability lies strictly between 0 and 1, not {described(probability)}")
    from scipy.special import gammaln

    j = np.arange(records + 1, dtype=np.float64)
    prior = gammaln(records + 1) - gammaln(j + 1) - gammaln(records - j + 1)
    prior += j * math.log(probability) + (records - j) * math.log1p(-probability)
    with np.errstate(divide="ignore"):
        log_j = np.log(j)
    split = np.clip(np.floor(values), -1, records).astype(np.int64) + 1  # how many j are at most y
    logs = []
    for extra in (log_j, 0.0):
        below = np.concatenate(([-np.inf], np.logaddexp.accumulate(prior + extra + j / scale)))
        above = np.concatenate((np.logaddexp.accumulate((prior + extra - j / scale)[::-1])[::-1], [-np.inf]))
        logs.append(np.logaddexp(below[split] - values / scale, above[split] + values / scale))
    estimate = np.clip(np.exp(logs[0] - logs[1]), 0.0, records)
    return float(estimate[0]) if np.ndim(noisy) == 0 else estimate
