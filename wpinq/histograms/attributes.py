"""Strategies over several attributes: products, unions of products, and marginals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property, partial
from itertools import product
from math import prod
from typing import Any

import numpy as np

from wpinq.api.query import Query
from wpinq.errors import PlanError
from wpinq.expr.trace import UserFunction
from wpinq.expr.types import INT, TupleOf
from wpinq.expr.values import Value
from wpinq.histograms.strategy import Coefficient, LinearStrategy, Strategy, checked_query, listed
from wpinq.histograms.workload import Bins, Kronecker, Workload, as_workload, check_domain_size, flattened
from wpinq.inference.checks import along_axes
from wpinq.marginals.cells import MeasuredView, View, weight_of
from wpinq.marginals.planning import MarginalPlan, Objective, plan_marginals
from wpinq.marginals.residual_basis import ConsistentMarginals, outer
from wpinq.runtime.arrays import Floats

#: The longest list of a record: longer ones take an engine more time than another SelectMany.
_LONGEST = 300


class Product(LinearStrategy):
    """The Kronecker product `A_1 ⊗ A_2 ⊗ …` of a linear strategy for each attribute.

    Sensitivity: the product.

    One SelectMany exchanges the bins of a record for the product of their columns; a record has one key of each
    strategy. Bins are numbered with the last attribute fastest: `estimate.reshape(sizes)` is the table. Where the
    product of a record's columns would be longer than 300, further attributes take a SelectMany of their own. That
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
        """The query program: a SelectMany over the product of the columns.

        `bin` gives a record of bins.
        """
        current = attributes_of(source, bin, self.sizes)
        for group in grouped(self.strategies):
            current = current.select_many(partial(self._elements, group))
        return current

    def _elements(self, group: range, record: Any) -> Any:
        """The elements of a record, over the columns of one group of attributes."""
        found = combined([self.strategies[i].elements(record[i]) for i in group])
        return listed([(replaced(record, group, keys, len(self.sizes)), weight) for keys, weight in found])

    @property
    def passes(self) -> int:
        return len(grouped(self.strategies))

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


def grouped(strategies: Sequence[LinearStrategy]) -> list[range]:
    """The attributes in groups whose elements stay below `_LONGEST`.

    Each group has one attribute at least.
    """
    lengths = [len(strategy.elements(0)) for strategy in strategies]
    count, groups, start = len(strategies), [], 0
    for i in range(1, count + 1):
        if i == count or prod(lengths[start : i + 1]) > _LONGEST:
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


# --- marginals: histograms of some attributes, measured together with a share of one use each -------------------------

#: Below this share of a trace, what is left of it in an eigenspace is rounding.
_NOTHING = 1e-12


class Marginals(Strategy):
    """Views of a table, each with a share of every record's weight.

    Sensitivity 1.

    Parameters
    ----------
    attributes : sequence of int, or dict from names to sizes
        The public number of values of each attribute; values are 0 … size − 1.
    views : "singles", "all pairs", "all triples", sequence of views, or dict from views to weights, optional
        What is wanted: "all pairs" when left out, or where shares are given what these measure. A view is a tuple of
        attributes, by place or by name; () is the total. Weights, more than 0, multiply the variances of a view's
        cells in what is made small.
    objective : {"balanced", "total", "max", "apart"}
        The error to minimize, as for `plan_marginals`.
    most_cells : int
        The most cells of a measured view that is not wanted.
    shares : mapping from views to numbers, optional
        What is measured, and with which share of the weight: more than 0, divided by their sum, and rounded to
        multiples of 2⁻³⁰ so that they sum to 1 exactly. When left out they are planned, once and without data, in about
        a second at most; `repr` has them, so that a strategy that is read back is never planned again.

    Notes
    -----
    One SelectMany gives each record to its cell of every view, with the view's share θ of its weight: one use of
    the source. A cell is then a count after division by its share, with Laplace noise of scale `1/(θε)`. Records with a
    value outside of the sizes are in no cell.

    Source: McKenna et al. (HDMM), PVLDB 11(10), 2018, section 6.3 (OPT_M), for strategies made of marginals.

    Examples
    --------
    >>> import wpinq as wp
    >>> people = wp.source("people", age=int, city=int)
    >>> Marginals({"age": 3, "city": 2}, ["age", "city"])
    Marginals({'age': 3, 'city': 2}, [('age',), ('city',)], shares={('age', 'city'): 1.0})
    >>> strategy = Marginals({"age": 3, "city": 2}, shares={("age", "city"): 3, ("age",): 1})
    >>> strategy
    Marginals({'age': 3, 'city': 2}, [('age',), ('age', 'city')], shares={('age',): 0.25, ('age', 'city'): 0.75})
    >>> measurement = strategy.measure(people, 0.5)
    >>> wp.bill(measurement)["people"]
    0.5
    >>> data = [(0, 1)] * 5 + [(2, 0)] * 7
    >>> answers = wp.simulate(measurement, {"people": data}, seed=0)
    >>> strategy.infer(answers)[("age",)].shape
    (3,)
    """

    def __init__(
        self,
        attributes: Any,
        views: Any = None,
        objective: Objective = "balanced",
        most_cells: int = 10**6,
        *,
        shares: Mapping[Any, float] | None = None,
    ) -> None:
        if shares is None:
            self.plan = plan_marginals(attributes, "all pairs" if views is None else views, objective, most_cells)
        else:
            self.plan = MarginalPlan.of(attributes, shares, views)
        self.attributes = self.plan.attributes
        self.domain = prod(self.attributes.sizes)

    def __repr__(self) -> str:
        named, names = self.attributes.named, self.attributes.names
        sizes = self.attributes.sizes
        given = sizes if names is None else dict(zip(names, sizes, strict=True))
        shares = {named(view): share for view, share in self.shares.items()}
        return f"Marginals({given!r}, {[named(view) for view in self.views]!r}, shares={shares!r})"

    def __str__(self) -> str:
        wanted, measured = len(self.views), len(self.shares)
        return f"<Marginals: {measured} views measured for {wanted}, of {len(self.attributes.sizes)} attributes>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Marginals) and self.plan == other.plan

    def __hash__(self) -> int:
        return hash(self.plan)

    @property
    def views(self) -> tuple[View, ...]:
        """The wanted views."""
        return self.plan.wanted

    @property
    def shares(self) -> dict[View, float]:
        """The measured views, each with its share of the weight."""
        return dict(zip(self.plan.measured, self.plan.shares, strict=True))

    @property
    def size(self) -> int:
        return self.plan.cells

    @cached_property
    def keys(self) -> tuple[Value, ...]:
        """The public records (number of the view, number of the cell), last attribute fastest."""
        return self.plan.keys

    def query(self, source: Query, bin: UserFunction | None = None) -> Query:
        """The query program: a SelectMany over the measured views.

        Uses of the source: 1.

        Parameters
        ----------
        source : Query
            Any query.
        bin : function, optional
            From a record to its value of each attribute, a record of ints from 0; left out, the fields that the
            attributes are named after, or where they have no names the record itself. Values outside of the sizes, and
            null, leave a record out.

        Raises
        ------
        PlanError
            When values are not integers.
        """
        names, pairs = self.attributes.names or (), list(enumerate(self.shares.items()))
        by_name = (lambda record: tuple(getattr(record, name) for name in names)) if names else None
        values = attributes_of(source, by_name if bin is None else bin, self.attributes.sizes)
        return values.select_many(
            lambda r: listed([((number, self.plan.cell(r, view)), share) for number, (view, share) in pairs])
        )

    def measured(self, answers: Any, epsilon: object = None) -> tuple[MeasuredView, ...]:
        """The measured views as unbiased counts, each with the scale of its noise.

        Parameters
        ----------
        answers : Answers or array-like
            Answers of `measure`, or noisy weights in the order of `keys`.
        epsilon : number or Measurement, optional
            Where the answers are a vector.

        Notes
        -----
        For double-geometric noise the scale is that of the tail, and a little more noise than there is.
        """
        return self.plan.measured_views(self.answers_of(answers), self.noise(answers, epsilon).scale)

    def infer(self, answers: Any) -> ConsistentMarginals:
        """Consistent marginals, the best linear unbiased estimates of all wanted views.

        They give any other view inside a wanted or measured one, too.

        Parameters
        ----------
        answers : Answers or array-like
            Answers of `measure`, or noisy weights in the order of `keys`.
        """
        return ConsistentMarginals(self.plan.measured_views(self.answers_of(answers), 1.0), self.attributes, self.views)

    def variance(self, view: Any, epsilon: object) -> float:
        """The variance of each cell of a view after `infer`, exact and known before.

        All cells of a view are alike.

        Parameters
        ----------
        view : tuple
            Any view that a measured one holds; PlanError for others.
        epsilon : number, Measurement or Answers
            The noise: more than 0, for Laplace noise, or what was or will be released.

        Examples
        --------
        >>> pairs = {(0, 1): 1, (0, 2): 1, (1, 2): 1}
        >>> round(Marginals((2, 2, 2), shares=pairs).variance((0, 1), epsilon=1), 6)
        10.5
        """
        return self.plan.algebra.variance(self.attributes.view(view)) * self.noise(epsilon=epsilon).variance / 2

    def half_width(self, view: Any, confidence: float = 0.95, *, epsilon: object) -> float:
        """Half the width of the interval around each estimated count of a view.

        It is the same for all cells and data. For Laplace noise it is exact: by Fourier inversion, from the kinds of
        noise in a cell and how often each is in it. For double-geometric noise it is never too narrow (see
        `LinearStrategy.intervals`).

        Parameters
        ----------
        view : tuple
            Any view that a measured one holds; PlanError for others.
        confidence : float
            Strictly between 0 and 1; of each cell by itself.
        epsilon : number, Measurement or Answers
            As for `variance`.

        Notes
        -----
        It holds for what `infer` gives. Estimates that were made non-negative or fitted otherwise have no exact one.

        Examples
        --------
        >>> round(Marginals((4,), shares={(0,): 1}).half_width((0,), 0.9, epsilon=1), 4)
        2.3026
        """
        scales, repeats = self.plan.algebra.kinds(self.attributes.view(view))
        return float(self.noise(epsilon=epsilon).half_widths(scales[:, None], confidence, repeats[:, None])[0])

    def expected_error(self, workload: Any, epsilon: object) -> float:
        """The expected total squared error of a workload, exact and known before anything is spent.

        Parameters
        ----------
        workload : Workload, sequence of views, dict from views to weights, or None
            The queries: a `Kronecker` of a workload for each attribute, of any kind, or a stack of such; or views, each
            with a weight that its cells' variances are multiplied by, 1 when left out. None for the wanted views.
        epsilon : number, Measurement or Answers
            As for `variance`.

        Raises
        ------
        PlanError
            When the measured views do not determine the workload.

        Examples
        --------
        >>> from wpinq.histograms import Bins, Kronecker
        >>> strategy = Marginals((2, 3), shares={(0, 1): 1})
        >>> strategy.expected_error(None, 1), strategy.expected_error(Kronecker(Bins(2), Bins(3)), 1)
        (12.0, 12.0)
        """
        variance = self.noise(epsilon=epsilon).variance
        if isinstance(workload, Workload):
            return variance * self.squared_norm(workload)
        weights = dict(workload) if isinstance(workload, Mapping) else None
        views = self.views if workload is None else self.attributes.views(workload if weights is None else [*weights])
        given = {self.attributes.view(view): weight_of(each, "a weight") for view, each in (weights or {}).items()}
        of_view = {v: float(self.attributes.cells(v)) * self.plan.algebra.variance(v) / 2 for v in views}
        return float(sum(given.get(view, 1.0) * norm for view, norm in of_view.items())) * variance

    def squared_norm(self, workload: Workload) -> float:
        """`‖W A⁺‖_F²` of a workload over the table, by traces of Gram matrices in each eigenspace."""
        return sum(self._product_norm(part) for part in flattened(workload))

    def _product_norm(self, workload: Workload) -> float:
        sizes = self.attributes.sizes
        factors = (workload,) if len(sizes) == 1 else workload.factors if isinstance(workload, Kronecker) else ()
        if isinstance(workload, Bins) and workload.domain == self.domain:
            factors = tuple(map(Bins, sizes))
        if tuple(factor.domain for factor in factors) != sizes:
            raise PlanError(
                f"marginals of {len(sizes)} attributes answer a Kronecker of a workload for each, over {sizes} bins, "
                "or a stack of such"
            )
        inside, pairs, outside = [], [], 1.0
        for i, factor in enumerate(factors):
            every = np.ones(factor.domain)
            total, trace = float(every @ factor.gram(every)) / factor.domain, float(factor.gram_diagonal().sum())
            if trace - total > _NOTHING * trace:
                inside.append(i)
                pairs.append((total if total > _NOTHING * trace else 0.0, trace - total))
            else:
                outside *= total
        found = outer([outside / float(self.domain), *pairs])
        return float((found / self.plan.algebra.precisions(tuple(inside))).sum())
