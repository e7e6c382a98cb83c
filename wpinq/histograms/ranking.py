"""Choosing a strategy: every candidate's expected error, known before anything is spent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any
from xml.etree.ElementTree import Element

from wpinq.arrays import Floats
from wpinq.errors import PlanError
from wpinq.expr.trace import UserFunction
from wpinq.histograms.composite import Kronecker, Stacked
from wpinq.histograms.simulate import simulated_error
from wpinq.histograms.strategies.hierarchical import Hierarchical
from wpinq.histograms.strategies.identity import Identity
from wpinq.histograms.strategies.linear import LinearStrategy, Nonnegative, declared_or, proves_nonnegative
from wpinq.histograms.strategies.noise_choice import Mechanism, check_mechanism
from wpinq.histograms.strategies.optimised import optimise
from wpinq.histograms.strategies.product import Product
from wpinq.histograms.strategies.wavelet import Wavelet
from wpinq.histograms.workload import Matrix, Workload, as_workload, check_domain_size
from wpinq.markup import block, share_bar, table, title
from wpinq.measure.epsilon import parse_epsilon
from wpinq.measure.measurement import Measurement
from wpinq.query import Query

EXACT = "exact, for every dataset alike"


@dataclass(frozen=True, slots=True)
class Choice:
    """A strategy with its expected error.

    Attributes
    ----------
    strategy : LinearStrategy
        The strategy.
    error : float
        The expected total squared error of the workload.
    mean : float
        The same for each query.
    reason : str
        What it is made of.
    """

    strategy: LinearStrategy
    error: float
    mean: float
    reason: str


@dataclass(frozen=True, slots=True)
class Ranking:
    """Strategies from the least expected error to the largest; `best` is the first, `str()` says why.

    Attributes
    ----------
    choices : tuple of Choice
        All candidates.
    basis : str
        What the errors are: exact for every dataset alike, or simulated on a guess.
    nonnegative : bool
        Whether the plan of the `source` that was given proves that no bin weighs less than 0.
    """

    choices: tuple[Choice, ...]
    basis: str = EXACT
    nonnegative: bool = False

    @property
    def best(self) -> LinearStrategy:
        """The strategy of least expected error."""
        return self.choices[0].strategy

    def measure(
        self, source: Query, epsilon: object, bin: UserFunction | None = None, mechanism: Mechanism = "laplace"
    ) -> Measurement:
        """The measurement of the best strategy: as its own `measure`."""
        return self.best.measure(source, epsilon, bin, mechanism)

    def infer(self, answers: Any, nonnegative: Nonnegative = "declared") -> Floats:
        """The histogram by the best strategy, non-negative where the data are declared to be.

        Parameters
        ----------
        answers : Answers or array-like
            Of `measure`, or noisy answers in the order of the strategy's keys.
        nonnegative : {"declared", "top down", "least squares"}, optional
            "declared" is "top down" where the plan of the answers proves, from what its sources declare (the facts
            "nonnegative", "whole_weights" or "unit_weights"), that no bin weighs less than 0; of numbers without a
            plan, where that of the `source` given to `choose` proves it. None for the unbiased estimate.

        Notes
        -----
        Privacy cost: none. Which way is taken follows from the plan, and never from data. The errors of the ranking are
        those of unbiased estimates unless it was simulated on a guess; top down mostly lowers them
        (docs/histograms.md).

        Examples
        --------
        >>> import wpinq as wp
        >>> from wpinq.histograms import AllRanges
        >>> ages = wp.source("ages", int, facts=["whole_weights"])
        >>> ranking = choose(AllRanges(8), epsilon=0.5)
        >>> answers = wp.simulate(ranking.measure(ages, 0.5), {"ages": [1, 1, 3]}, seed=3)
        >>> bool((ranking.infer(answers) >= 0).all()), bool((ranking.infer(answers, nonnegative=None) >= 0).all())
        (True, False)
        """
        plain = "top down" if self.nonnegative else None
        return self.best.infer(answers, declared_or(self.best, answers, nonnegative, plain))

    def __str__(self) -> str:
        least = self.choices[0].error
        lines = [f"{c.error / least:8.2f} × the least   {c.strategy!r}: {c.reason}" for c in self.choices]
        return "\n".join([f"expected squared error, {self.basis}:", *lines])

    def __repr__(self) -> str:
        return f"<Ranking of {len(self.choices)}, the best {self.best!r}>"

    def _repr_html_(self) -> str:
        least, most = self.choices[0].error, self.choices[-1].error
        rows: list[list[str | Element]] = [
            [repr(c.strategy), f"{c.error / least:.2f} ×", share_bar(c.error / most, ""), f"{c.mean:.4g}", c.reason]
            for c in self.choices
        ]
        names = ["strategy", "of the least", "", "a query", "made of"]
        return block(title("Expected squared error", self.basis), table(names, rows, numbers={1, 3}))


def choose(
    workload: Any,
    epsilon: object,
    domain: int | Sequence[int] | None = None,
    candidates: Iterable[LinearStrategy] | None = None,
    nonnegative: str | None = None,
    guess: Any = None,
    draws: int = 100,
    mechanism: Mechanism = "laplace",
    source: Query | None = None,
) -> Ranking:
    """Rank strategies by their expected error on a workload, without data: exactly, or on a public guess.

    Parameters
    ----------
    workload : Workload or matrix
        The queries.
    epsilon : number
        More than 0. With Laplace noise it scales all errors of unbiased estimates alike: their order does not depend on
        it. With double-geometric noise it does, where epsilon times the lattices is not far below 1.
    domain : int or sequence of int, optional
        The number of bins, or of each attribute's bins; the workload's when left out.
    candidates : iterable of LinearStrategy, optional
        What to rank. When left out: Identity, Wavelet, Hierarchical with every power of two as branching factor and
        the tree of one root, and the optimised strategy; for several attributes, products of one kind each, of
        what suits each factor of a Kronecker workload best, and the optimised strategy of a `Stacked` one.
    nonnegative : str, optional
        The `nonnegative` that `infer` will be called with, where it will be. Needs a guess: such errors depend on the
        data, by more than strategies differ.
    guess : array-like, optional
        A public histogram to simulate such errors on: an earlier release, another place, an assumed shape. Never the
        protected data.
    draws : int
        How many simulated releases each; few of them leave near strategies in the wrong order.
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
    Time at 4096 bins: about twelve seconds for all ranges, a third of them for the optimised strategy, the rest for
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
    if not given:
        raise PlanError("give one candidate at least")
    for strategy in given:
        if not isinstance(strategy, LinearStrategy):
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
        if guess is not None:
            error = simulated_error(strategy, wanted, known, guess, nonnegative, draws)
        choices.append(Choice(strategy, error, error / wanted.queries, reason))
    basis = EXACT if guess is None else f"simulated on the guess, {draws} draws, nonnegative={nonnegative!r}"
    declared = source is not None and proves_nonnegative(source.plan)
    return Ranking(tuple(sorted(choices, key=lambda choice: choice.error)), basis, declared)


def _sizes(workload: Workload, domain: int | Sequence[int] | None) -> tuple[int, ...]:
    if domain is None:
        whole = workload.workloads[0] if isinstance(workload, Stacked) else workload
        return whole.sizes if isinstance(whole, Kronecker) else (whole.domain,)
    return tuple(map(check_domain_size, domain if isinstance(domain, (list, tuple)) else (domain,)))


def _default(workload: Workload, sizes: tuple[int, ...]) -> list[LinearStrategy]:
    if len(sizes) == 1:
        return [*_fixed(sizes[0]), optimise(workload)]
    columns = [[Identity(size), Hierarchical(size), Wavelet(size)] for size in sizes]
    found: list[LinearStrategy] = [Product(*kind) for kind in zip(*columns, strict=True)]
    if isinstance(workload, Kronecker) and workload.sizes == sizes:
        found.append(Product(*(choose(factor, 1).best for factor in workload.factors)))
    if isinstance(workload, Stacked):
        found.append(optimise(workload))
    return found


def _fixed(size: int) -> list[LinearStrategy]:
    trees: dict[tuple[int, ...], LinearStrategy] = {}
    for i in range(1, (2 * size - 1).bit_length()):
        tree = Hierarchical(size, 2**i)
        trees.setdefault(tree.tree.sizes, tree)
    return [Identity(size), Wavelet(size), *trees.values()]
