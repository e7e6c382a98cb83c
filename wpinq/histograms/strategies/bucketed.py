"""Bucketed: a histogram that is taken for constant on public buckets of neighbouring bins."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from types import FunctionType
from typing import Any, Literal

import numpy as np

from wpinq.api.query import Query
from wpinq.errors import PlanError
from wpinq.expr import library as wp
from wpinq.expr.trace import UserFunction
from wpinq.expr.values import Value
from wpinq.histograms.strategies.hierarchical import Hierarchical
from wpinq.histograms.strategies.identity import Identity
from wpinq.histograms.strategies.linear import LinearStrategy, declared_or
from wpinq.histograms.strategies.strategy import Strategy, bins_of
from wpinq.histograms.workload import AllRanges, Workload, as_workload
from wpinq.inference.checks import along, blocks, units
from wpinq.inference.tree import workload_variance
from wpinq.runtime.arrays import Floats, Integers

_EXACT = 2**24
"""Buckets times bins up to which errors are computed; beyond it they are estimated."""
_PROBES = 64


class OverBuckets(Workload):
    """A workload over bins as one over buckets, each bucket's count spread evenly over its bins: `W S`.

    Parameters
    ----------
    workload : Workload
        Over the bins.
    starts : sequence of int
        The bins where buckets begin, the first 0, rising.

    Examples
    --------
    >>> from wpinq.histograms import Prefixes
    >>> OverBuckets(Prefixes(4), [0, 1]).answer(np.array([5.0, 3.0]))
    array([5., 6., 7., 8.])
    """

    def __init__(self, workload: Workload, starts: Sequence[int]) -> None:
        self.workload = workload
        self.starts = _checked(starts, workload.domain)
        self.lengths = np.diff(self.starts, append=workload.domain)
        self.domain, self.queries = len(self.starts), workload.queries

    def spread(self, buckets: Floats) -> Floats:
        """`S x`: every bin's share of its bucket, along the first axis."""
        return np.asarray(np.repeat(buckets / along(self.lengths, buckets), self.lengths, axis=0))

    def _gathered(self, bins: Floats) -> Floats:
        """`Sᵀ y`."""
        return np.asarray(np.add.reduceat(bins, self.starts, axis=0) / along(self.lengths, bins))

    def answer(self, histogram: Floats) -> Floats:
        return self.workload.answer(self.spread(histogram))

    def transpose(self, answers: Floats) -> Floats:
        return self._gathered(self.workload.transpose(answers))

    def gram(self, vectors: Floats) -> Floats:
        return self._gathered(self.workload.gram(self.spread(vectors)))

    def gram_diagonal(self) -> Floats:
        found = np.empty(self.domain)
        for start, stop in blocks(self.domain):
            unit = units(self.domain, start, stop)
            found[start:stop] = (unit * self.gram(unit)).sum(axis=0)
        return found


class Bucketed(Strategy):
    """A linear strategy over buckets of neighbouring bins, whose counts are spread evenly over their bins.

    One estimate for many bins: much less noise, and what is uneven inside of a bucket is lost. Errors therefore depend
    on the data, and nothing here is unbiased but sums of whole buckets.

    Parameters
    ----------
    domain : int
        The number of bins.
    starts : sequence of int
        The bins where buckets begin: public, or released by `query.buckets`.
    strategy : LinearStrategy, optional
        Over the buckets; when left out, that of the least expected error of Identity and the trees with powers of two
        as branching factors. (Beyond 2²⁴ buckets times bins these errors are estimated, with 64 vectors of random
        signs that are the same for all: Hutchinson 1990.)
    workload : Workload or matrix, optional
        Over the bins, what the strategy is chosen for; all ranges when left out.

    Examples
    --------
    >>> import wpinq as wp
    >>> people = wp.source("people", age=int)
    >>> strategy = Bucketed(6, [0, 4])
    >>> strategy.strategy, strategy.measure(people, 0.1, bin=lambda p: p.age).domain
    (Identity(domain=2), (0, 1))
    >>> strategy.infer([8.0, 6.0])
    array([2., 2., 2., 2., 3., 3.])
    """

    def __init__(
        self, domain: int, starts: Sequence[int], strategy: LinearStrategy | None = None, workload: Any = None
    ) -> None:
        self.domain = domain
        self.__post_init__()
        wanted = AllRanges(domain) if workload is None else as_workload(workload, domain)
        self.workload = OverBuckets(wanted, starts)
        buckets = self.workload.domain
        if strategy is not None and not (isinstance(strategy, LinearStrategy) and strategy.domain == buckets):
            raise PlanError(f"the strategy must be a linear one over the {buckets} buckets, not {strategy!r}")
        self.strategy = _best(self.workload) if strategy is None else strategy

    def __repr__(self) -> str:
        return f"<Bucketed: {self.domain} bins in {self.workload.domain} buckets, by {self.strategy!r}>"

    @property
    def starts(self) -> tuple[int, ...]:
        """The bins where buckets begin."""
        return tuple(self.workload.starts.tolist())

    @property
    def sensitivity(self) -> Fraction:
        return self.strategy.sensitivity

    @property
    def keys(self) -> tuple[Value, ...]:
        return self.strategy.keys

    @cached_property
    def _places(self) -> list[int]:
        return np.repeat(np.arange(self.workload.domain), self.workload.lengths).tolist()

    def query(self, source: Query, bin: UserFunction | None = None) -> Query:
        """The query program: that of the strategy, over each record's bucket. Uses of the source: 1."""
        places, bins = self._places, bins_of(source, bin, self.domain)
        if isinstance(bin, FunctionType):  # one Select less, and what it rounds
            return self.strategy.query(source, lambda record: wp.element(places, bin(record)))
        return self.strategy.query(bins.select(lambda x: wp.element(places, x)))

    def infer(
        self, answers: Any, nonnegative: Literal["declared", "top down", "least squares"] | None = "declared"
    ) -> Floats:
        """The histogram, one count a bin: the buckets' estimate, spread evenly.

        Parameters
        ----------
        answers : Answers or array-like
            Of `measure`, or noisy answers in the order of `keys`.
        nonnegative : {"declared", "top down", "least squares"}, optional
            Of the buckets, as for `infer` of their strategy; "declared", and so top down, where the plan of the answers
            proves that no bin has a weight below 0. Numbers without a plan are left as they are.
        """
        chosen = declared_or(self.strategy, answers, nonnegative, None)
        return self.workload.spread(self.strategy.infer(answers, chosen))


def _best(workload: OverBuckets) -> LinearStrategy:
    """Of Identity and the k-ary trees over the buckets that of the least expected error, by its closed form."""
    count = workload.domain
    trees: dict[tuple[int, ...], Hierarchical] = {}
    for power in range(1, (2 * count - 1).bit_length()):
        tree = Hierarchical(count, 2**power)
        trees.setdefault(tree.tree.sizes, tree)
    candidates: list[LinearStrategy] = [Identity(count), *trees.values()]
    if count * workload.workload.domain <= _EXACT:
        gram = np.concatenate([workload.gram(units(count, *block)) for block in blocks(count)], axis=1)
        norms = [float(np.trace(gram)), *(workload_variance(one.tree, gram) for one in trees.values())]
    else:  # the same signs for all of them
        signs = np.random.default_rng(0).choice([-1.0, 1.0], (count, _PROBES))
        products = workload.gram(signs)
        norms = [float((products * one.solve(signs)).sum()) for one in candidates]
    errors = [float(one.sensitivity) ** 2 * norm for one, norm in zip(candidates, norms, strict=True)]
    return candidates[errors.index(min(errors))]


def _checked(starts: Sequence[int], domain: int) -> Integers:
    listed = isinstance(starts, Sequence) and all(type(start) is int for start in starts)
    row = np.array(starts if listed else [], dtype=np.int64)
    if not len(row) or row[0] != 0 or (np.diff(row) <= 0).any() or row[-1] >= domain:
        raise PlanError(f"buckets begin at bins from 0 to {domain - 1}: a list of rising ints, the first 0")
    return row
