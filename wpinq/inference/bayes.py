"""The posterior mean of one noisy count under a binomial prior."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wpinq.errors import AnswersError
from wpinq.inference.checks import MOST_BINS, MOST_RECORDS, count_of, number, positive, vector
from wpinq.runtime.arrays import Floats


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
        raise AnswersError(f"the prior probability lies strictly between 0 and 1, not {probability!r}")
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


def out_of_range_probability(count: Any, records: int, scale: float) -> Any:
    """The chance that the noisy value of a count leaves 0 … n.

    `½ e^{−a/b} + ½ e^{−(n−a)/b}`, largest at a = 0 and a = n, `½ (1 + e^{−n/b})`, and least in the middle.

    Parameters
    ----------
    count : float or array-like
        A count a, between 0 and n; a hypothetical one: the true count is protected.
    records : int
        The number n ≥ 1 of records.
    scale : float
        The scale b of the Laplace noise.

    Notes
    -----
    Source: Naldi and D'Acquisto 2014, theorem 1.

    Examples
    --------
    >>> round(out_of_range_probability(0, records=100, scale=10.0), 5)
    0.50002
    """
    counts: Floats = vector([count] if np.isscalar(count) else count, "counts")
    count_of(records, "the number of records", 1, MOST_RECORDS)
    positive(scale, "the scale of the noise")
    if ((counts < 0) | (counts > records)).any():
        raise AnswersError(f"a count of {records} records lies between 0 and {records}")
    chance = (np.exp(-counts / scale) + np.exp(-(records - counts) / scale)) / 2
    return float(chance[0]) if np.ndim(count) == 0 else chance
