"""Products: a strategy for each attribute, over the histogram of their combinations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

import numpy as np

from wpinq.arrays import Floats
from wpinq.errors import PlanError
from wpinq.expr.trace import UserFunction
from wpinq.expr.types import INT, TupleOf
from wpinq.expr.values import Value
from wpinq.histograms.composite import Kronecker
from wpinq.histograms.strategies.linear import Coefficient, LinearStrategy, listed
from wpinq.histograms.strategies.strategy import checked_query
from wpinq.histograms.workload import Workload, check_domain_size
from wpinq.inference.axes import along_axes
from wpinq.query import Query

_LONGEST = 300
"""The longest list of a record: longer ones take an engine more time than another SelectMany."""


class Product(LinearStrategy):
    """The Kronecker product `A_1 ⊗ A_2 ⊗ …` of a linear strategy for each attribute. Sensitivity: the product.

    One SelectMany exchanges the bins of a record for the product of their columns; a record has one key of each
    strategy. Bins are numbered with the last attribute fastest: `estimate.reshape(sizes)` is the table. Where the
    product of a record's columns would be longer than 300, further attributes take a SelectMany of their own, which
    widens the noise by 7.2e-7 for rounding at the default cap.

    Parameters
    ----------
    *strategies : LinearStrategy
        One for each attribute, two or more.

    Notes
    -----
    Source: McKenna et al. (HDMM), PVLDB 11(10), 2018, section 6.

    Examples
    --------
    >>> import wpinq as wp
    >>> from wpinq.histograms import Hierarchical, Identity
    >>> people = wp.source("people", age=int, region=int)
    >>> strategy = Product(Hierarchical(64), Identity(3))
    >>> strategy.sensitivity, len(strategy.keys)
    (Fraction(7, 1), 381)
    >>> strategy.query(people, bin=lambda p: (p.age, p.region)).uses()
    {'people': 1}
    """

    def __init__(self, *strategies: LinearStrategy) -> None:
        if len(strategies) < 2 or not all(isinstance(strategy, LinearStrategy) for strategy in strategies):
            raise PlanError("a product needs two linear strategies or more, one for each attribute")
        self.strategies = strategies
        self.domain = check_domain_size(prod(strategy.domain for strategy in strategies))

    def __repr__(self) -> str:
        return f"<Product: {' ⊗ '.join(map(repr, self.strategies))}>"

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of bins of each attribute."""
        return tuple(strategy.domain for strategy in self.strategies)

    @property
    def complete(self) -> bool:
        return all(strategy.complete for strategy in self.strategies)

    @property
    def sensitivity(self) -> Fraction:
        return prod((strategy.sensitivity for strategy in self.strategies), start=Fraction(1))

    @property
    def size(self) -> int:
        return prod(strategy.size for strategy in self.strategies)

    @cached_property
    def keys(self) -> tuple[Value, ...]:
        return tuple(product(*(strategy.keys for strategy in self.strategies)))

    def query(self, source: Query, bin: UserFunction | None = None) -> Query:
        """The query program: a SelectMany over the product of the columns. `bin` gives a record of bins."""
        current = attributes_of(source, bin, self.sizes)
        for group in grouped([self.strategies]):
            current = current.select_many(
                lambda r, group=group: listed(
                    [
                        (replaced(r, group, keys, len(self.sizes)), weight)
                        for keys, weight in combined([self.strategies[i].elements(r[i]) for i in group])
                    ]
                )
            )
        return current

    @property
    def passes(self) -> int:
        return len(grouped([self.strategies]))

    def elements(self, bin: Any) -> list[Coefficient]:
        raise PlanError("a product has no single column: nest no product in a product, list all its strategies")

    def apply(self, histogram: Floats) -> Floats:
        return along_axes(histogram, ((strategy.domain, strategy.apply) for strategy in self.strategies))

    def coefficients(self, queries: Floats) -> Floats:
        return along_axes(queries, ((strategy.domain, strategy.coefficients) for strategy in self.strategies))

    def transpose(self, answers: Floats) -> Floats:
        return along_axes(answers, ((strategy.size, strategy.transpose) for strategy in self.strategies))

    def estimate(self, answers: Floats) -> Floats:
        return along_axes(np.asarray(answers), ((strategy.size, strategy.estimate) for strategy in self.strategies))

    def squared_norm(self, workload: Workload) -> float:
        if isinstance(workload, Kronecker) and workload.sizes == self.sizes:
            pairs = zip(self.strategies, workload.factors, strict=True)
            return prod(strategy.squared_norm(factor) for strategy, factor in pairs)
        return super().squared_norm(workload)


def combined(columns: Sequence[list[Coefficient]]) -> list[tuple[tuple[Any, ...], Any]]:
    """The Kronecker product of columns: records of keys, and the products of their weights."""
    return [(tuple(key for key, _ in each), times(weight for _, weight in each)) for each in product(*columns)]


def times(weights: Iterable[Any]) -> Any:
    """A product of weights, constants and others."""
    found: Any = 1.0
    for weight in weights:
        one = isinstance(found, float) and found == 1
        found = weight if one else found if isinstance(weight, float) and weight == 1 else found * weight
    return found


def replaced(record: Any, group: range, keys: tuple[Any, ...], count: int) -> tuple[Any, ...]:
    """The fields of a record of `count`, those of a group replaced by keys."""
    return (*(record[i] for i in range(group.start)), *keys, *(record[i] for i in range(group.stop, count)))


def grouped(products: Sequence[Sequence[LinearStrategy]]) -> list[range]:
    """The attributes, as many at a time as keep the elements of all products below `_LONGEST`; one at least."""
    lengths = [[len(strategy.elements(0)) for strategy in strategies] for strategies in products]
    count, groups, start = len(products[0]), [], 0
    for i in range(1, count + 1):
        if i == count or sum(prod(one[start : i + 1]) for one in lengths) > _LONGEST:
            groups.append(range(start, i))
            start = i
    return groups


def attributes_of(source: Query, bin: UserFunction | None, sizes: tuple[int, ...]) -> Query:
    """The query of each record's bins, one an attribute, those outside of the domain left out."""
    current = checked_query(source) if bin is None else checked_query(source).select(bin)
    type_, count = current.plan.type, len(sizes)
    if not isinstance(type_, TupleOf) or type_.elements != (INT,) * count:
        raise PlanError(f"bins must be a record of {count} integers, not {type_}: give bin=lambda r: (…, …)")
    for i, size in enumerate(sizes):
        current = current.where(lambda r, i=i, size=size: (r[i] >= 0) & (r[i] < size))
    return current
