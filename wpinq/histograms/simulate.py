"""Errors by simulation on a public guess: for what has no error that is the same for all data."""

from __future__ import annotations

from typing import Any

import numpy as np

from wpinq.arrays import Floats, Integers
from wpinq.errors import AnswersError, PlanError
from wpinq.histograms.inference.arrays import count_of, vector
from wpinq.histograms.strategies.count_of_counts import CountOfCounts, earth_movers_distance
from wpinq.histograms.strategies.linear import LinearStrategy
from wpinq.histograms.strategies.sorted import Sorted
from wpinq.histograms.workload import as_workload


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
        The strategy.
    workload : Workload or matrix
        The queries.
    epsilon : number or Measurement
        More than 0, for Laplace noise; or what `strategy.measure` gave, for its noise.
    guess : array-like
        A public histogram, one count of at least 0 a bin: an earlier release, another place, an assumed shape. Never
        the protected data: the choice that follows would tell of them.
    nonnegative : str, optional
        As for `strategy.infer`.
    draws, seed : int
        How many simulated releases, at least 1, and the seed of their noise.

    Returns
    -------
    float
        Approximate; about the guess. `strategy.expected_error` is exact for unbiased estimates and all data.

    Raises
    ------
    PlanError
        When the shapes do not agree or a parameter is out of range.

    Notes
    -----
    Privacy cost: none: nothing protected is read.

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
    _check_draws(draws, seed)
    rng = np.random.default_rng(seed)
    noiseless, true = strategy.apply(truth), wanted.answer(truth)
    total = 0.0
    for _ in range(draws):
        estimate = strategy.infer(noiseless + noise.draw(rng, len(noiseless)), nonnegative)  # type: ignore[arg-type]
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

    Returns
    -------
    float
        Approximate; about the guess.

    Raises
    ------
    PlanError
        When the guess is not that.

    Notes
    -----
    Privacy cost: none.

    Examples
    --------
    >>> even = simulated_sorted_error(Sorted(100), 1, guess=[5] * 100)
    >>> uneven = simulated_sorted_error(Sorted(100), 1, guess=range(0, 1000, 10))
    >>> even < uneven < Sorted(100).error_bound(1) * 1.2
    True
    """
    _check_strategy(strategy, Sorted)
    truth = np.sort(_guess(guess, strategy.domain))
    noise = strategy.noise(epsilon=epsilon)
    _check_draws(draws, seed)
    rng = np.random.default_rng(seed)
    fits = (strategy.infer(truth + noise.draw(rng, len(truth))) for _ in range(draws))
    return float(np.mean([((fit - truth) ** 2).sum() for fit in fits]))


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

    Returns
    -------
    float
        Approximate; about the guess.

    Raises
    ------
    PlanError
        When the guess is not that.

    Notes
    -----
    Privacy cost: none.

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
    noise = strategy.noise(epsilon=epsilon)
    _check_draws(draws, seed)
    rng = np.random.default_rng(seed)
    noiseless = strategy.answers_from(truth)
    found = (strategy.infer(noiseless + noise.draw(rng, len(noiseless))) for _ in range(draws))
    return float(np.mean([earth_movers_distance(histogram, truth) for histogram in found]))


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


def _check_draws(draws: int, seed: int) -> None:
    count_of(draws, "the number of draws", 1, error=PlanError)
    count_of(seed, "a seed", 0, error=PlanError)
