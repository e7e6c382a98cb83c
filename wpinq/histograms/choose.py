"""Choosing a strategy: every candidate's expected error, known before anything is spent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from wpinq.errors import PlanError
from wpinq.histograms.inference.tree import Tree
from wpinq.histograms.strategies.hierarchical import Hierarchical
from wpinq.histograms.strategies.identity import Identity
from wpinq.histograms.strategies.optimised import optimise
from wpinq.histograms.strategies.product import Product
from wpinq.histograms.strategies.strategy import LinearStrategy
from wpinq.histograms.strategies.wavelet import Wavelet
from wpinq.histograms.workload import Kronecker, Matrix, Workload, as_workload, check_domain_size
from wpinq.privacy.epsilon import parse_epsilon


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
    """

    choices: tuple[Choice, ...]

    @property
    def best(self) -> LinearStrategy:
        """The strategy of least expected error."""
        return self.choices[0].strategy

    def __str__(self) -> str:
        least = self.choices[0].error
        lines = [f"{c.error / least:8.2f} × the least   {c.strategy!r}: {c.reason}" for c in self.choices]
        return "\n".join(["expected squared error, for every dataset alike:", *lines])


def choose(
    workload: Any,
    epsilon: object,
    domain: int | Sequence[int] | None = None,
    candidates: Iterable[LinearStrategy] | None = None,
) -> Ranking:
    """Rank strategies by their expected error on a workload, exactly, without data.

    Parameters
    ----------
    workload : Workload or matrix
        The queries.
    epsilon : number
        More than 0. It scales all errors alike: the order does not depend on it.
    domain : int or sequence of int, optional
        The number of bins, or of each attribute's bins; the workload's when left out.
    candidates : iterable of LinearStrategy, optional
        What to rank. When left out: Identity, Wavelet, Hierarchical with every power of two as branching factor and
        the tree of one root, and the optimised strategy; for several attributes, products of one kind each, and
        of what suits each factor of a Kronecker workload best.

    Returns
    -------
    Ranking
        All of them, best first.

    Raises
    ------
    PlanError
        When workload, domain and candidates do not agree.

    Notes
    -----
    Privacy cost: none: it depends on the workload alone. Errors are those of the unbiased estimates; keeping counts
    non-negative lowers them on sparse data, by an amount that only the data know. Time at 4096 bins: about ten
    seconds, most of it for the optimised strategy; give `candidates` to leave that out.

    Examples
    --------
    >>> from wpinq.histograms import AllRanges, Bins
    >>> choose(Bins(16), epsilon=1).best
    Identity(domain=16)
    >>> ranking = choose(AllRanges(16), 1, candidates=[Identity(16), Hierarchical(16, 4), Wavelet(16)])
    >>> print(ranking)
    expected squared error, for every dataset alike:
        1.00 × the least   Identity(domain=16): sensitivity 1, a query combines noise of 6.00 answers
        2.39 × the least   Hierarchical(domain=16, branching=4): sensitivity 3, a query combines noise of 1.60 answers
        3.15 × the least   Wavelet(domain=16): sensitivity 5, a query combines noise of 0.76 answers
    """
    spent = float(parse_epsilon(epsilon))
    wanted = workload if isinstance(workload, Workload) else Matrix(workload)
    sizes = _sizes(wanted, domain)
    wanted = as_workload(wanted, prod(sizes))
    given = list(_default(wanted, sizes) if candidates is None else candidates)
    if not given or any(strategy.domain != wanted.domain for strategy in given):
        raise PlanError(f"give one candidate at least, all over the {wanted.domain} bins of the workload")
    choices = []
    for strategy in given:
        norm = strategy.squared_norm(wanted)
        error = 2 * (float(strategy.sensitivity) / spent) ** 2 * norm
        combined = f"a query combines noise of {norm / wanted.queries:.2f} answers"
        reason = f"sensitivity {float(strategy.sensitivity):g}, {combined}"
        choices.append(Choice(strategy, error, error / wanted.queries, reason))
    return Ranking(tuple(sorted(choices, key=lambda choice: choice.error)))


def _sizes(workload: Workload, domain: int | Sequence[int] | None) -> tuple[int, ...]:
    if domain is None:
        factors = workload.factors if isinstance(workload, Kronecker) else (workload,)
        return tuple(factor.domain for factor in factors)
    if isinstance(domain, int):
        return (check_domain_size(domain),)
    return tuple(check_domain_size(size) for size in domain)


def _default(workload: Workload, sizes: tuple[int, ...]) -> list[LinearStrategy]:
    if len(sizes) == 1:
        return [*_fixed(sizes[0]), optimise(workload)]
    columns = [[Identity(size), Hierarchical(size), Wavelet(size)] for size in sizes]
    found: list[LinearStrategy] = [Product(*kind) for kind in zip(*columns, strict=True)]
    if isinstance(workload, Kronecker) and tuple(factor.domain for factor in workload.factors) == sizes:
        found.append(Product(*(choose(factor, 1).best for factor in workload.factors)))
    return found


def _fixed(size: int) -> list[LinearStrategy]:
    trees: dict[tuple[int, ...], LinearStrategy] = {}
    k = 2
    while k < 2 * size:
        trees.setdefault(Tree.uniform(size, k).sizes, Hierarchical(size, k))
        k *= 2
    return [Identity(size), Wavelet(size), *trees.values()]
