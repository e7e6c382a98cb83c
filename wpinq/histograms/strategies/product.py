"""Products: a strategy for each attribute, over the histogram of their combinations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

import numpy as np

from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.errors import PlanError
from wpinq.expr.trace import UserFunction
from wpinq.expr.types import INT, TupleOf
from wpinq.expr.values import Value
from wpinq.histograms.strategies.linear import Coefficient, LinearStrategy, listed
from wpinq.histograms.strategies.strategy import checked_query
from wpinq.histograms.workload import Bins, Kronecker, Stacked, Workload, as_workload, check_domain_size
from wpinq.inference.checks import along, along_axes, flat_product
from wpinq.runtime.arrays import Floats

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

    def check(self, workload: Any) -> Workload:
        wanted = as_workload(workload, self.domain)
        if self.complete or not isinstance(wanted, Kronecker) or wanted.sizes != self.sizes:
            return super().check(wanted)
        if all(factor.gram_diagonal().any() for factor in wanted.factors):  # a product with 0 is 0
            for strategy, factor in zip(self.strategies, wanted.factors, strict=True):
                strategy.check(factor)
        return wanted

    def squared_norm(self, workload: Workload) -> float:
        if isinstance(workload, Bins):
            workload = Kronecker(*map(Bins, self.sizes))
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


# --- unions of products -----------------------------------------------------------------------------------------------

_SHARE_BITS = 12  # few enough for products of a share and two coefficients of a PIdentity to round nothing


class UnionOfProducts(LinearStrategy):
    """Two products over the same attributes, with a share of the weight each. Sensitivity 1.

    One SelectMany exchanges the bins of a record for its columns in both products, with `share` of its weight for the
    first and the rest for the second. So the plan bills one use, and the shares are the split of its budget. The
    estimate is least squares over both. Long columns are split up as in `Product`.

    Parameters
    ----------
    first, second : Product
        Of strategies over the same numbers of bins; all of the first's determine every bin.
    share : float
        The first's share of the weight, strictly between 0 and 1, rounded to 12 bits.

    Notes
    -----
    `AᵀA = a²·⊗G_i + b²·⊗H_i` becomes diagonal by one generalised eigenproblem an attribute, so that estimate and error
    are exact, in memory of the square of each attribute's size and linear in the domain.

    Source: McKenna et al. (HDMM), PVLDB 11(10), 2018, section 6.2 (OPT₊).

    Examples
    --------
    >>> import wpinq as wp
    >>> from wpinq.histograms import Hierarchical, Identity
    >>> people = wp.source("people", age=int, region=int)
    >>> coarse = Hierarchical(4, 4)
    >>> strategy = UnionOfProducts(Product(coarse, Identity(3)), Product(Identity(4), Identity(3)))
    >>> strategy.sensitivity, strategy.size
    (Fraction(1, 1), 27)
    >>> strategy.query(people, bin=lambda p: (p.age, p.region)).uses()
    {'people': 1}
    """

    def __init__(self, first: Product, second: Product, share: float = 0.5) -> None:
        if not (isinstance(first, Product) and isinstance(second, Product)) or first.sizes != second.sizes:
            raise PlanError("a union needs two products of strategies over the same attributes")
        if not isinstance(share, (int, float)) or not 0 < share < 1:
            raise PlanError(f"a share lies strictly between 0 and 1, not {share!r}")
        self.products = (first, second)
        self.share = min(max(round(share * 2**_SHARE_BITS), 1), 2**_SHARE_BITS - 1) / 2**_SHARE_BITS
        self.domain = first.domain
        self._factors = self._factors_of(self.share)

    def __repr__(self) -> str:
        first, second = self.products
        return f"<UnionOfProducts: {self.share:.3f} {first!r}, {1 - self.share:.3f} {second!r}>"

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of bins of each attribute."""
        return self.products[0].sizes

    @property
    def size(self) -> int:
        return sum(part.size for part in self.products)

    @cached_property
    def keys(self) -> tuple[Value, ...]:
        return tuple(
            (number, *places)
            for number, part in enumerate(self.products)
            for places in product(*(range(strategy.size) for strategy in part.strategies))
        )

    def query(self, source: Query, bin: UserFunction | None = None) -> Query:
        """The query program: a SelectMany over both columns. `bin` gives a record of bins."""
        current = attributes_of(source, bin, self.sizes)
        for group in grouped([part.strategies for part in self.products]):
            current = current.select_many(lambda r, group=group: listed(self._exchanged(r, group)))
        return current

    @property
    def passes(self) -> int:
        return len(grouped([part.strategies for part in self.products]))

    def _exchanged(self, record: Any, group: range) -> list[Coefficient]:
        """The elements of both products for a group of attributes; from the second group on, of the record's own."""
        first, count, found = group.start == 0, len(self.sizes), []
        norms = [prod((part.strategies[i].norm for i in group), start=Fraction(1)) for part in self.products]
        # times the norm of the other product: so lists of unlike norms share out a record as they should
        shares = (Fraction(self.share) * norms[1], (1 - Fraction(self.share)) * norms[0])
        bins = [record[i if first else i + 1] for i in range(count)]
        for number, part in enumerate(self.products):
            for keys, weight in combined([part.strategies[i].places(bins[i]) for i in group]):
                fields = replaced(bins, group, keys, count)
                if first:
                    found.append(((number, *fields), times((float(shares[number]), weight))))
                else:
                    found.append(((record[0], *fields), F.where(record[0] == number, weight, 0.0)))
        return found

    def elements(self, bin: Any) -> list[Coefficient]:
        raise PlanError("a union has no single column: list its products instead")

    def apply(self, histogram: Floats) -> Floats:
        pairs = zip(self._factors, self.products, strict=True)
        return np.concatenate([factor * part.apply(histogram) for factor, part in pairs])

    def transpose(self, answers: Floats) -> Floats:
        parts = np.split(np.asarray(answers), [self.products[0].size])
        first, second = (one.transpose(part) for one, part in zip(self.products, parts, strict=True))
        return np.asarray(self._factors[0] * first + self._factors[1] * second)

    @cached_property
    def _eigen(self) -> tuple[list[Floats], Floats]:
        """For each attribute the T with `Tᵀ G T = I` and `Tᵀ H T` diagonal; and the product of these diagonals."""
        from scipy.linalg import LinAlgError, eigh

        vectors, values = [], []
        for one, other in zip(*(part.strategies for part in self.products), strict=True):
            unit = np.eye(one.domain)
            try:
                found, t = eigh(other.transpose(other.apply(unit)), one.transpose(one.apply(unit)))
            except LinAlgError:
                raise PlanError(f"{one!r} does not determine every bin: put it in the second product") from None
            vectors.append(t)
            values.append(np.maximum(found, 0.0))
        return vectors, flat_product(values)

    def _factors_of(self, share: float) -> tuple[float, float]:
        first, second = self.products
        return share / float(first.sensitivity), (1 - share) / float(second.sensitivity)

    def _diagonal(self, share: float) -> Floats:
        a, b = self._factors_of(share)
        return np.asarray(1 / (a**2 + b**2 * self._eigen[1]))

    def _solve(self, vectors: Floats) -> Floats:
        """`(AᵀA)⁻¹ v`."""
        turns = self._eigen[0]
        inner = along_axes(np.asarray(vectors), ((len(t), t.T.__matmul__) for t in turns))
        inner = inner * along(self._diagonal(self.share), inner)
        return along_axes(inner, ((len(t), t.__matmul__) for t in turns))

    def estimate(self, answers: Floats) -> Floats:
        return self._solve(self.transpose(answers))

    def coefficients(self, queries: Floats) -> Floats:
        return self.apply(self._solve(queries))

    def squared_norm(self, workload: Workload) -> float:
        asked = self._asked(workload)
        return super().squared_norm(workload) if asked is None else float((asked * self._diagonal(self.share)).sum())

    def _asked(self, workload: Workload) -> Floats | None:
        """The diagonal of `Tᵀ WᵀW T` for a union of Kronecker workloads; None for others."""
        parts = workload.workloads if isinstance(workload, Stacked) else (workload,)
        total = np.zeros(self.domain)
        for part in parts:
            if not isinstance(part, Kronecker) or part.sizes != self.sizes:
                return None
            pairs = zip(part.factors, self._eigen[0], strict=True)
            total += flat_product((t * factor.gram(t)).sum(axis=0) for factor, t in pairs)
        return total

    def with_best_share(self, workload: Workload) -> UnionOfProducts:
        """The same products with the share of least expected error, for a union of Kronecker workloads.

        Examples
        --------
        >>> from wpinq.histograms import Bins, Identity
        >>> same = Product(Identity(2), Identity(2))
        >>> UnionOfProducts(same, same, 0.2).with_best_share(Kronecker(Bins(2), Bins(2))).share > 0.9
        True
        """
        from scipy.optimize import minimize_scalar

        asked = self._asked(workload)
        if asked is None:
            raise PlanError("the best share is found for a Kronecker workload, or a Stacked one of several")
        found = minimize_scalar(
            lambda share: float((asked * self._diagonal(share)).sum()), bounds=(0.0, 1.0), method="bounded"
        )
        return UnionOfProducts(*self.products, float(found.x))
