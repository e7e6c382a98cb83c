"""Intervals by parametric bootstrap, for what is not linear; `laplace_sums` and `geometric_sums` have the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from wpinq.arrays import Floats
from wpinq.errors import AnswersError
from wpinq.inference.checks import array_of, confidence_of, count_of, vector
from wpinq.inference.noise_law import Noise


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
