"""Marginals: histograms of some of a table's attributes, measured together with a share of one use each."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from wpinq.api.query import Query
from wpinq.errors import PlanError
from wpinq.expr.trace import UserFunction
from wpinq.expr.values import Value
from wpinq.histograms.strategies.linear import listed
from wpinq.histograms.strategies.product import attributes_of
from wpinq.histograms.strategies.strategy import Strategy
from wpinq.histograms.workload import Bins, Kronecker, Workload, flattened
from wpinq.marginals.cells import Attributes, MeasuredView, View, weight_of
from wpinq.marginals.planning import MarginalPlan, Objective, plan_marginals
from wpinq.marginals.residual_basis import ConsistentMarginals

_NOTHING = 1e-12
"""Below this share of a trace, what is left of it in an eigenspace is rounding."""


class Marginals(Strategy):
    """Views of a table, each with a share of every record's weight. Sensitivity 1.

    Parameters
    ----------
    attributes : sequence of int, or dict from names to sizes
        The public number of values of each attribute; values are 0 … size − 1.
    views : "singles", "all pairs", "all triples", sequence of views, or dict from views to weights, optional
        What is wanted: "all pairs" when left out, or where shares are given what these measure. A view is a tuple of
        attributes, by place or by name; () is the total. Weights, more than 0, multiply the variances of a view's
        cells in what is made small.
    objective : {"balanced", "total", "max", "apart"}
        What is made small, as for `plan_marginals`.
    most_cells : int
        Of a view that is measured and not wanted itself.
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
    Fraction(1, 2)
    >>> data = wp.WeightedDataset({(0, 1): 5.0, (2, 0): 7.0})
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
        """What is wanted."""
        return self.plan.wanted

    @property
    def shares(self) -> dict[View, float]:
        """What is measured, and with which share of the weight."""
        return dict(zip(self.plan.measured, self.plan.shares, strict=True))

    @property
    def size(self) -> int:
        return self.plan.cells

    @cached_property
    def keys(self) -> tuple[Value, ...]:
        """The public records (number of the view, number of the cell), the last attribute of a view fastest."""
        pairs = enumerate(map(self.attributes.cells, self.plan.measured))
        return tuple((number, cell) for number, cells in pairs for cell in range(cells))

    def query(self, source: Query, bin: UserFunction | None = None) -> Query:
        """The query program: a SelectMany over the measured views. Uses of the source: 1.

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
        values = codes_of(source, bin, self.attributes)
        pairs = list(enumerate(self.shares.items()))
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
        """Consistent marginals: the best linear unbiased estimates of all wanted views, and of any other in them.

        Parameters
        ----------
        answers : Answers or array-like
            Answers of `measure`, or noisy weights in the order of `keys`.
        """
        return ConsistentMarginals(self.plan.measured_views(self.answers_of(answers), 1.0), self.attributes, self.views)

    def variance(self, view: Any, epsilon: object) -> float:
        """The variance of each cell of a view after `infer`, all cells alike, exact and known before.

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
        """Half the width of the interval around each estimated count of a view, the same for all cells and data.

        Exact for Laplace noise: by Fourier inversion, from the kinds of noise in a cell and how often each is in it.
        For double-geometric noise never too narrow (see `LinearStrategy.intervals`).

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
        found = self.noise(epsilon=epsilon).half_widths(scales[:, None], confidence, repeats[:, None])
        return float(found[0])

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
        given = (
            {} if weights is None else {self.attributes.view(v): weight_of(w, "a weight") for v, w in weights.items()}
        )
        return float(sum(given.get(view, 1.0) * self._squared_norm(view) for view in views)) * variance

    def _squared_norm(self, view: View) -> float:
        return float(self.attributes.cells(view)) * self.plan.algebra.variance(view) / 2

    def squared_norm(self, workload: Workload) -> float:
        """`‖W A⁺‖_F²` of a workload over the table, by the traces of its Gram matrices in each eigenspace."""
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
        found = np.full((), outside / float(self.domain))
        for pair in pairs:
            found = np.multiply.outer(found, np.asarray(pair))
        return float((found / self.plan.algebra.precisions(tuple(inside))).sum())


def codes_of(source: Query, bin: UserFunction | None, attributes: Attributes) -> Query:
    """The query of each record's codes: what a function gives, or the fields that the attributes are named after."""
    names = attributes.names or ()

    def named(record: Any) -> Any:
        return tuple(getattr(record, name) for name in names)

    return attributes_of(source, named if bin is None and names else bin, attributes.sizes)
