"""Errors by simulation on a public guess: for what has no error that is the same for all data.

A guess is a public histogram: an earlier release, another place, an assumed shape. Never the protected data: the choice
that follows would tell of them. `draws` says how many releases are simulated, at least 1, and `seed` with what noise.
What is given back is approximate, and about the guess. PlanError when the shapes do not agree or a parameter is out of
range.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from wpinq.arrays import Floats, Integers
from wpinq.errors import AnswersError, PlanError
from wpinq.histograms.strategies.count_of_counts import CountOfCounts, earth_movers_distance
from wpinq.histograms.strategies.linear import LinearStrategy
from wpinq.histograms.strategies.sorted import Sorted
from wpinq.histograms.workload import as_workload
from wpinq.inference.checks import count_of, vector
from wpinq.inference.noise_law import Noise


def simulated_error(
    strategy: LinearStrategy,
    workload: Any,
    epsilon: object,
    guess: Any,
    nonnegative: str | None = "top down",
    draws: int = 20,
    seed: int = 0,
) -> float:
    """The mean total squared error of a workload, were the guess the data.

    Parameters
    ----------
    strategy : LinearStrategy
        The strategy. Its `expected_error` is exact for unbiased estimates and all data.
    workload : Workload or matrix
        The queries.
    epsilon : number or Measurement
        More than 0, for Laplace noise; or what `strategy.measure` gave, for its noise.
    guess : array-like
        Public: one count of at least 0 a bin.
    nonnegative : str, optional
        As for `strategy.infer`.
    draws, seed : int
        How many simulated releases, and the seed of their noise.

    Examples
    --------
    >>> from wpinq.histograms import Bins, Identity
    >>> empty = simulated_error(Identity(64), Bins(64), epsilon=1, guess=[0] * 64)
    >>> empty < Identity(64).expected_error(Bins(64), epsilon=1) / 2
    True
    """
    _check_strategy(strategy, LinearStrategy)
    noise, wanted = strategy.noise(epsilon=epsilon), as_workload(workload, strategy.domain)
    truth = _guess(guess, strategy.domain)
    true, total = wanted.answer(truth), 0.0
    for noisy in _released(strategy.apply(truth), noise, draws, seed):
        estimate = strategy.infer(noisy, nonnegative)  # type: ignore[arg-type]
        total += float(((wanted.answer(estimate) - true) ** 2).sum()) / draws
    return total


def simulated_sorted_error(strategy: Sorted, epsilon: object, guess: Any, draws: int = 20, seed: int = 0) -> float:
    """The mean total squared error of sorted counts, were the guess the data; `Sorted.error_bound` bounds it for all.

    Parameters
    ----------
    strategy : Sorted
        The strategy.
    guess : array-like
        Public counts of at least 0, one a bin, in any order.
    epsilon, draws, seed
        As for `simulated_error`.

    Examples
    --------
    >>> even = simulated_sorted_error(Sorted(100), 1, guess=[5] * 100)
    >>> uneven = simulated_sorted_error(Sorted(100), 1, guess=range(0, 1000, 10))
    >>> even < uneven < Sorted(100).error_bound(1) * 1.2
    True
    """
    _check_strategy(strategy, Sorted)
    truth = np.sort(_guess(guess, strategy.domain))
    released = _released(truth, strategy.noise(epsilon=epsilon), draws, seed)
    return float(np.mean([((strategy.infer(noisy) - truth) ** 2).sum() for noisy in released]))


def simulated_distance(strategy: CountOfCounts, epsilon: object, guess: Any, draws: int = 20, seed: int = 0) -> float:
    """The mean earth mover's distance of a count of counts from the truth, were the guess the data.

    Parameters
    ----------
    strategy : CountOfCounts
        The strategy.
    guess : array-like of int
        A public number of groups of each size from 0 to `strategy.largest`, of sum `strategy.groups`.
    epsilon, draws, seed
        As for `simulated_error`.

    Examples
    --------
    >>> guess = [0, 50, 30, 20]
    >>> naive, cumulative = (CountOfCounts(100, 3, method) for method in ("naive", "cumulative"))
    >>> simulated_distance(cumulative, 1, guess) < simulated_distance(naive, 1, guess)
    True
    """
    _check_strategy(strategy, CountOfCounts)
    counts = _guess(guess, strategy.domain)
    truth: Integers = np.rint(counts).astype(np.int64)
    if (truth != counts).any() or truth.sum() != strategy.groups:
        raise PlanError(f"a guess of group sizes holds whole numbers that sum to the {strategy.groups} groups")
    released = _released(strategy.answers_from(truth), strategy.noise(epsilon=epsilon), draws, seed)
    return float(np.mean([earth_movers_distance(strategy.infer(noisy), truth) for noisy in released]))


def _released(noiseless: Floats, noise: Noise, draws: int, seed: int) -> Iterator[Floats]:
    """Simulated releases of the answers; PlanError at once when draws or seed are none."""
    count_of(draws, "the number of draws", 1, error=PlanError)
    count_of(seed, "a seed", 0, error=PlanError)
    rng = np.random.default_rng(seed)
    return (noiseless + noise.draw(rng, len(noiseless)) for _ in range(draws))


def _guess(guess: Any, domain: int) -> Floats:
    try:
        counts = vector(guess, "the guess", domain)
    except AnswersError as reason:
        raise PlanError(f"a guess is a public histogram: {reason}") from None
    if (counts < 0).any():
        raise PlanError("a guess is a public histogram: counts are at least 0")
    return counts


def _check_strategy(strategy: object, kind: type[Any]) -> None:
    if not isinstance(strategy, kind):
        raise PlanError(
            f"this simulates a {kind.__name__}, not {strategy!r}: simulated_error is for linear strategies, "
            "simulated_sorted_error for Sorted and simulated_distance for CountOfCounts"
        )
