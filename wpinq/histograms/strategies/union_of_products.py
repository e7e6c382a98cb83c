"""Unions of products: two products side by side, for workloads that are unions of products themselves."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

import numpy as np

from wpinq.arrays import Floats
from wpinq.errors import PlanError
from wpinq.expr import library as wp
from wpinq.expr.trace import UserFunction
from wpinq.expr.values import Value
from wpinq.histograms.composite import Kronecker, Stacked
from wpinq.histograms.strategies.linear import Coefficient, LinearStrategy, listed
from wpinq.histograms.strategies.product import Product, attributes_of, combined, grouped, replaced, times
from wpinq.histograms.workload import Workload
from wpinq.inference.axes import along, along_axes, flat_product
from wpinq.query import Query

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
                    found.append(((record[0], *fields), wp.where(record[0] == number, weight, 0.0)))
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
