"""The choice of a strategy by its expected error, known before anything is spent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from wpinq.api.query import Query
from wpinq.display.html import Cell, render, share_bar
from wpinq.errors import AnswersError, PlanError, described
from wpinq.expr.trace import UserFunction
from wpinq.histograms.attributes import Marginals, Product
from wpinq.histograms.matrices import optimise
from wpinq.histograms.strategy import (
    Identity,
    LinearStrategy,
    Mechanism,
    Nonnegative,
    check_mechanism,
    declared_or,
    proves_nonnegative,
)
from wpinq.histograms.trees import Hierarchical, Wavelet
from wpinq.histograms.unattributed import CountOfCounts, Sorted, earth_movers_distance
from wpinq.histograms.workload import Kronecker, Matrix, Stacked, Workload, as_workload, check_domain_size, flattened
from wpinq.inference.checks import count_of, vector
from wpinq.inference.intervals import Noise
from wpinq.measure.measurement import Measurement
from wpinq.noise.epsilon import parse_epsilon
from wpinq.noise.epsilon_text import EpsilonLike
from wpinq.runtime.arrays import Floats, Integers

# --- errors by simulation on a public guess ---------------------------------------------------------------------------

# A guess is a public histogram: an earlier release, another place, an assumed shape. Never the protected data: the
# choice
# that follows would tell of them. `draws` says how many releases are simulated, at least 1, and `seed` with what noise.
# What is given back is approximate, and about the guess. PlanError when the shapes do not agree or a parameter is out
# of range.


def simulated_error(
    strategy: LinearStrategy,
    workload: Any,
    epsilon: object,
    guess: Any,
    nonnegative: str | None = "top down",
    draws: int = 20,
    seed: int = 0,
) -> float:
    """The mean total squared error of a workload, simulated on a public guess.

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
        The number of simulated releases, and the seed of their noise.

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
    """The mean total squared error of sorted counts, simulated on a public guess.

    `Sorted.error_bound` bounds it for all data.

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
    """The mean earth mover's distance of a count of counts, simulated on a public guess.

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
            f"this simulates a {kind.__name__}, not {described(strategy)}: simulated_error is for linear strategies, "
            "simulated_sorted_error for Sorted and simulated_distance for CountOfCounts"
        )


EXACT = "exact, for every dataset alike"


@dataclass(frozen=True, slots=True)
class Choice:
    """A strategy with its expected error.

    Attributes
    ----------
    strategy : LinearStrategy or Marginals
        The strategy.
    error : float
        The expected total squared error of the workload.
    mean : float
        The same for each query.
    reason : str
        The composition of the strategy.
    """

    strategy: LinearStrategy | Marginals
    error: float
    mean: float
    reason: str


@dataclass(frozen=True, slots=True)
class Ranking:
    """Strategies from the least expected error to the largest; `best` is the first.

    `str()` says why.

    Attributes
    ----------
    choices : tuple of Choice
        All candidates.
    basis : str
        The basis of the errors: exact for every dataset, or simulated on a guess.
    nonnegative : bool
        Whether the plan of the `source` that was given proves that no bin weighs less than 0.
    """

    choices: tuple[Choice, ...]
    basis: str = EXACT
    nonnegative: bool = False

    @property
    def best(self) -> LinearStrategy | Any:
        """The strategy of least expected error: linear, or `Marginals`."""
        return self.choices[0].strategy

    def measure(
        self, source: Query, epsilon: EpsilonLike, bin: UserFunction | None = None, mechanism: Mechanism = "laplace"
    ) -> Measurement:
        """The measurement of the best strategy: as its own `measure`."""
        return self.best.measure(source, epsilon, bin, mechanism)

    def infer(self, answers: Any, nonnegative: Nonnegative = "declared") -> Floats | Any:
        """The histogram by the best strategy; non-negative if the plan proves it.

        Where that is `Marginals`, consistent marginals, which stay unbiased whatever is declared.

        Parameters
        ----------
        answers : Answers or array-like
            Of `measure`, or noisy answers in the order of the strategy's keys.
        nonnegative : {"declared", "top down"}, optional
            "declared" is "top down" where the plan of the answers proves, from what its sources declare (rows, or the
            fact "nonnegative"), that no bin weighs less than 0; of numbers without a plan, where that of the `source`
            given to `choose` proves it. None for the unbiased estimate.

        Notes
        -----
        Privacy cost: none. Which way is taken follows from the plan, and never from data. The errors of the ranking are
        those of unbiased estimates unless it was simulated on a guess; top down mostly lowers them
        (docs/histograms.md).

        Examples
        --------
        >>> import wpinq as wp
        >>> from wpinq.histograms import AllRanges
        >>> ages = wp.source("ages", int)
        >>> ranking = choose(AllRanges(8), epsilon=0.5)
        >>> answers = wp.simulate(ranking.measure(ages, 0.5), {"ages": [1, 1, 3]}, seed=3)
        >>> bool((ranking.infer(answers) >= 0).all()), bool((ranking.infer(answers, nonnegative=None) >= 0).all())
        (True, False)
        """
        if isinstance(self.best, Marginals):
            if nonnegative not in ("declared", None):
                raise AnswersError(f"marginals are not made non-negative by {nonnegative!r}: leave nonnegative= out")
            return self.best.infer(answers)
        plain = "top down" if self.nonnegative else None
        return self.best.infer(answers, declared_or(self.best, answers, nonnegative, plain))

    def __str__(self) -> str:
        least = self.choices[0].error
        lines = [f"{c.error / least:8.2f} × the least   {c.strategy}: {c.reason}" for c in self.choices]
        return "\n".join([f"expected squared error, {self.basis}:", *lines])

    def __repr__(self) -> str:
        return f"<Ranking of {len(self.choices)}, the best {self.best}>"

    def _repr_html_(self) -> str:
        least, most = self.choices[0].error, self.choices[-1].error
        rows: list[list[Cell]] = [
            [str(c.strategy), f"{c.error / least:.2f} ×", share_bar(c.error / most, ""), f"{c.mean:.4g}", c.reason]
            for c in self.choices
        ]
        names = ["strategy", "of the least", "", "a query", "made of"]
        return render("ranking.html", basis=self.basis, names=names, rows=rows)


def choose(
    workload: Any,
    epsilon: EpsilonLike,
    domain: int | Sequence[int] | None = None,
    candidates: Iterable[LinearStrategy | Marginals] | None = None,
    nonnegative: str | None = None,
    guess: Any = None,
    draws: int = 100,
    mechanism: Mechanism = "laplace",
    source: Query | None = None,
) -> Ranking:
    """Rank strategies by their expected error on a workload: exactly, or on a public guess.

    No data are used.

    Parameters
    ----------
    workload : Workload or matrix
        The queries.
    epsilon : number
        More than 0. With Laplace noise it scales all errors of unbiased estimates alike: their order does not depend on
        it. With double-geometric noise it does, where epsilon times the lattices is not far below 1.
    domain : int or sequence of int, optional
        The number of bins, or of each attribute's bins; the workload's when left out.
    candidates : iterable of LinearStrategy and Marginals, optional
        What to rank. When left out: Identity, Wavelet, Hierarchical with every power of two as branching factor and
        the tree of one root, and the optimised strategy; for several attributes, products of one kind each, of
        what suits each factor of a Kronecker workload best, and the optimised strategy of a `Stacked` one: where that
        is a stack of products of bins and totals, `Marginals`, whose errors are not simulated on a guess.
    nonnegative : str, optional
        The `nonnegative` that `infer` will be called with, where it will be. Needs a guess: such errors depend on the
        data, by more than strategies differ.
    guess : array-like, optional
        A public histogram to simulate such errors on: an earlier release, another place, an assumed shape. Never the
        protected data.
    draws : int
        The number of simulated releases of each; with few, similar strategies may be in the wrong order.
    mechanism : {"laplace", "geometric", "automatic"}
        As `strategy.measure` will be called with: errors are those of each candidate's own noise. Other than "laplace"
        it needs a source, whose plan decides the lattice.
    source : Query, optional
        The query that will be measured, its records bins: nothing but its plan is looked at. Where that proves that
        no bin weighs less than 0, `infer` of the ranking is non-negative for numbers without a plan too.

    Raises
    ------
    PlanError
        When these do not agree; when a candidate is no linear strategy, whose error on queries is not known beforehand;
        when a candidate has no lattice for "geometric".

    Notes
    -----
    Time at 4096 bins: about ten seconds for all ranges, half of them for the optimised strategy, the rest for
    the errors of trees; fewer `candidates` take less. A guess adds about 0.1 s a candidate.

    Examples
    --------
    >>> from wpinq.histograms import AllRanges, Bins
    >>> choose(Bins(16), epsilon=1).best
    Identity(domain=16)
    >>> ranking = choose(AllRanges(16), 1, candidates=[Identity(16), Hierarchical(16, 4), Wavelet(16)])
    >>> print(ranking)
    expected squared error, exact, for every dataset alike:
        1.00 × the least   Identity(domain=16): sensitivity 1, a query combines noise of 6.00 answers
        2.39 × the least   Hierarchical(domain=16, branching=4): sensitivity 3, a query combines noise of 1.60 answers
        3.15 × the least   Wavelet(domain=16): sensitivity 5, a query combines noise of 0.76 answers
    >>> both = [Identity(16), Hierarchical(16, 4)]
    >>> choose(AllRanges(16), 0.1, candidates=both, nonnegative="top down", guess=[50] + 15 * [0]).best
    Hierarchical(domain=16, branching=4)
    >>> import wpinq as wp
    >>> bins = wp.source("bins", int, facts=["unit_weights"])
    >>> ranking = choose(AllRanges(16), 4, candidates=both, mechanism="geometric", source=bins)
    >>> [(choice.strategy, round(choice.error)) for choice in ranking.choices]
    [(Identity(domain=16), 31), (Hierarchical(domain=16, branching=4), 211)]
    """
    spent = parse_epsilon(epsilon)
    wanted = workload if isinstance(workload, Workload) else Matrix(workload)
    sizes = _sizes(wanted, domain)
    wanted = as_workload(wanted, prod(sizes))
    if (nonnegative is None) != (guess is None):
        raise PlanError(
            "errors of non-negative estimates depend on the data: give both nonnegative= and guess=, a public "
            "histogram to simulate them on, or neither for unbiased estimates"
        )
    check_mechanism(mechanism)
    if mechanism != "laplace" and source is None:
        raise PlanError(
            "a lattice depends on the source: give source=, the query that will be measured, its records bins; or "
            "leave mechanism= out for Laplace noise"
        )
    if not isinstance(candidates, (Iterable, type(None))):
        raise PlanError(f"candidates are a list of strategies, not a {type(candidates).__name__}")
    given = list(_default(wanted, sizes) if candidates is None else candidates)
    if candidates is None and guess is not None:
        given = [strategy for strategy in given if not isinstance(strategy, Marginals)]
    if not given:
        raise PlanError("give one candidate at least")
    for strategy in given:
        if isinstance(strategy, Marginals):
            if guess is not None:
                raise PlanError(f"errors of {strategy} are not simulated: leave nonnegative= and guess= out")
        elif not isinstance(strategy, LinearStrategy):
            raise PlanError(
                f"{strategy!r} answers no linear queries: its error depends on the data; see simulated_sorted_error "
                "and simulated_distance"
            )
        if strategy.domain != wanted.domain:
            raise PlanError(f"candidates are to be over the {wanted.domain} bins of the workload, unlike {strategy!r}")
    choices = []
    for strategy in given:
        known = spent if source is None else strategy.measure(source, spent, mechanism=mechanism)
        noise, norm = strategy.noise(epsilon=known), strategy.squared_norm(wanted)
        error = noise.variance * norm
        combined = f"a query combines noise of {norm / wanted.queries:.2f} answers"
        reason = f"sensitivity {float(strategy.sensitivity):g}, {combined}"
        if noise.step is not None:
            reason += f", on multiples of {noise.step:g}"
        if guess is not None and isinstance(strategy, LinearStrategy):
            error = simulated_error(strategy, wanted, known, guess, nonnegative, draws)
        choices.append(Choice(strategy, error, error / wanted.queries, reason))
    basis = EXACT if guess is None else f"simulated on the guess, {draws} draws, nonnegative={nonnegative!r}"
    declared = source is not None and proves_nonnegative(source.plan)
    return Ranking(tuple(sorted(choices, key=lambda choice: choice.error)), basis, declared)


def _sizes(workload: Workload, domain: int | Sequence[int] | None) -> tuple[int, ...]:
    if domain is None:
        whole = next(flattened(workload))
        return whole.sizes if isinstance(whole, Kronecker) else (whole.domain,)
    return tuple(map(check_domain_size, domain if isinstance(domain, (list, tuple)) else (domain,)))


def _default(workload: Workload, sizes: tuple[int, ...]) -> list[LinearStrategy | Marginals]:
    if len(sizes) == 1:
        return [*_fixed(sizes[0]), optimise(workload)]
    columns = [[Identity(size), Hierarchical(size), Wavelet(size)] for size in sizes]
    found: list[LinearStrategy | Marginals] = [Product(*kind) for kind in zip(*columns, strict=True)]
    if isinstance(workload, Kronecker) and workload.sizes == sizes:
        best = [choose(factor, 1).best for factor in workload.factors]
        found.append(Product(*(one for one in best if isinstance(one, LinearStrategy))))
    if isinstance(workload, Stacked):
        found.append(optimise(workload))
    return found


def _fixed(size: int) -> list[LinearStrategy]:
    trees: dict[tuple[int, ...], LinearStrategy] = {}
    for i in range(1, (2 * size - 1).bit_length()):
        tree = Hierarchical(size, 2**i)
        trees.setdefault(tree.tree.sizes, tree)
    return [Identity(size), Wavelet(size), *trees.values()]
