"""Products: a strategy for each attribute, over the histogram of their combinations."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

import numpy as np

from wpinq.errors import PlanError
from wpinq.expr import functions as wp
from wpinq.expr.types import INT, TupleOf
from wpinq.expr.values import Value
from wpinq.histograms.inference.arrays import Floats
from wpinq.histograms.strategies.strategy import Element, Function, LinearStrategy
from wpinq.histograms.workload import Kronecker, Workload, along_axes
from wpinq.query import Query


class Product(LinearStrategy):
    """The Kronecker product `A_1 ⊗ A_2 ⊗ …` of a linear strategy for each attribute. Sensitivity: the product.

    One SelectMany after another, each exchanging one attribute's bin for its column; a record has one key of each
    strategy. Bins are numbered with the last attribute fastest: `estimate.reshape(sizes)` is the table.

    Parameters
    ----------
    *strategies : LinearStrategy
        One for each attribute, two or more.

    Raises
    ------
    PlanError
        When they are not that.

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
        self.domain = prod(strategy.domain for strategy in strategies)

    def __repr__(self) -> str:
        return f"<Product: {' ⊗ '.join(map(repr, self.strategies))}>"

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of bins of each attribute."""
        return tuple(strategy.domain for strategy in self.strategies)

    @property
    def sensitivity(self) -> Fraction:
        return prod((strategy.sensitivity for strategy in self.strategies), start=Fraction(1))

    @cached_property
    def keys(self) -> tuple[Value, ...]:
        return tuple(product(*(strategy.keys for strategy in self.strategies)))

    def query(self, source: Query, bin: Function | None = None) -> Query:
        """The query program: a SelectMany for each attribute. `bin` gives a record of one bin an attribute."""
        if not isinstance(source, Query):
            raise PlanError(f"a strategy is a program over a query, not over a {type(source).__name__}")
        current = source if bin is None else source.select(bin)
        type_, count = current.plan.type, len(self.strategies)
        if not isinstance(type_, TupleOf) or type_.elements != (INT,) * count:
            raise PlanError(f"bins must be a record of {count} integers, not {type_}: give bin=lambda r: (…, …)")
        for i, size in enumerate(self.sizes):
            current = current.where(lambda r, i=i, size=size: (r[i] >= 0) & (r[i] < size))
        for i, strategy in enumerate(self.strategies):
            current = current.select_many(
                lambda r, i=i, strategy=strategy: [
                    wp.weighted(tuple(key if j == i else r[j] for j in range(count)), weight)
                    for key, weight in strategy.elements(r[i])
                ]
            )
        return current

    def elements(self, bin: Any) -> list[Element]:
        raise PlanError("a product has no single column: nest no product in a product, list all its strategies")

    def _along(self, values: Floats, sizes: list[int], method: str) -> Floats:
        return along_axes(values, sizes, [getattr(strategy, method) for strategy in self.strategies])

    def apply(self, histogram: Floats) -> Floats:
        return self._along(histogram, list(self.sizes), "apply")

    def coefficients(self, queries: Floats) -> Floats:
        return self._along(queries, list(self.sizes), "coefficients")

    def transpose(self, answers: Floats) -> Floats:
        return self._along(answers, [strategy.size for strategy in self.strategies], "transpose")

    def estimate(self, answers: Floats) -> Floats:
        return self._along(np.asarray(answers), [strategy.size for strategy in self.strategies], "estimate")

    def squared_norm(self, workload: Workload) -> float:
        if isinstance(workload, Kronecker) and tuple(factor.domain for factor in workload.factors) == self.sizes:
            pairs = zip(self.strategies, workload.factors, strict=True)
            return prod(strategy.squared_norm(factor) for strategy, factor in pairs)
        return super().squared_norm(workload)
