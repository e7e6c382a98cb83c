"""The ways to release a query: each turns it into a measurement, which is data, and spends nothing by itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from operator import index
from typing import overload

from wpinq.errors import PlanError
from wpinq.expr.trace import RecordFunction, UserFunction, trace
from wpinq.expr.types import CategoryOf
from wpinq.measure.measurement import (
    Choose,
    GeometricCount,
    ListedMeasurement,
    Measurement,
    MostDistant,
    NoisyAverage,
    NoisyCount,
    NoisySum,
    Sink,
    check_domain,
)
from wpinq.noise.epsilon import parse_epsilon
from wpinq.plan.node import Node, Planned, construct
from wpinq.plan.operators import Select, SelectMany
from wpinq.plan.properties import plan_properties
from wpinq.sinks.buckets import Buckets
from wpinq.sinks.clamped_sum import average_elements, check_range, sum_elements
from wpinq.sinks.compared_marginals import ComparedMarginal
from wpinq.sinks.count_above import listing_of
from wpinq.sinks.keys import KeyDomain


class Releasable(Planned):
    """What can be released: the methods of a query that give a measurement.

    Where one takes a function, the name of a column stands for it.
    """

    __slots__ = ()
    reading: str

    def count(self, epsilon: object) -> ListedMeasurement:
        """The total weight, plus Laplace noise of scale 1/ε: of a table, its number of rows.

        Parameters
        ----------
        epsilon : number
            More than 0.

        Returns
        -------
        Measurement
            Of one number, the answers' `value`. Privacy cost: as for `noisy_count`.

        Examples
        --------
        >>> import wpinq as wp
        >>> people = wp.source("people", city=str, age=int)
        >>> grown = people.where(wp.col("age") >= 18).count(epsilon=1)
        >>> wp.simulate(grown, {"people": [("Oslo", 30), ("Bergen", 9)] * 500}, seed=1).value
        500.0...
        """
        plan = self._extended(Select, lambda record: "count")
        return ListedMeasurement(plan, NoisyCount(), parse_epsilon(epsilon), ("count",), self.reading)

    @overload
    def noisy_count(self, epsilon: object, over: Iterable[object]) -> ListedMeasurement: ...

    @overload
    def noisy_count(self, epsilon: object, over: None = None) -> Measurement: ...

    def noisy_count(self, epsilon: object, over: Iterable[object] | None = None) -> Measurement:
        """Every weight plus Laplace noise of scale 1/ε.

        `out(x) = A(x) + Lap(1/ε)` for every x of the domain, present or not   (paper, section 2.2)

        Parameters
        ----------
        epsilon : number
            More than 0; exact, so that 0.1 is 1/10.
        over : iterable, optional
            The public keys to release. Where the query fixes them (constants, `x % n`, bools, partition keys)
            they are inferred; otherwise a session gives a Release, which answers for keys as they are asked.

        Returns
        -------
        Measurement
            What a session releases. Privacy cost: ε times the uses of each source times its unit weight.
        """
        domain = plan_properties(self.plan).domain if over is None else check_domain(over, self.plan.type)
        return Measurement(self.plan, NoisyCount(), parse_epsilon(epsilon), domain, self.reading)

    @overload
    def geometric_count(self, epsilon: object, over: Iterable[object]) -> ListedMeasurement: ...

    @overload
    def geometric_count(self, epsilon: object, over: None = None) -> Measurement: ...

    def geometric_count(self, epsilon: object, over: Iterable[object] | None = None) -> Measurement:
        """Every weight plus double-geometric noise, where the plan proves that all weights lie on a lattice.

        `out(x) = A(x) + g·k` with `Pr[k] ∝ exp(−ε·g·|k|)`, g the largest rational that the plan and the facts of its
        sources prove to divide every weight (Ghosh, Roughgarden, Sundararajan 2009).

        Parameters
        ----------
        epsilon : number
            More than 0.
        over : iterable, optional
            The public keys, as for `noisy_count`.

        Returns
        -------
        Measurement
            Privacy cost: as for `noisy_count`; the promise is for neighbours whose outputs lie on the same lattice.

        Raises
        ------
        PlanError
            When the plan proves no lattice; it names the step that breaks it.

        Examples
        --------
        >>> import wpinq as wp
        >>> people = wp.source("people", age=int, facts=["unit_weights"])
        >>> people.select(lambda p: p.age // 10).geometric_count(epsilon=0.5, over=range(10)).sink.factor
        Fraction(1, 1)
        """
        domain = plan_properties(self.plan).domain if over is None else check_domain(over, self.plan.type)
        sink = GeometricCount(plan_properties(self.plan).require_lattice())
        return Measurement(self.plan, sink, parse_epsilon(epsilon), domain, self.reading)

    def noisy_count_above(
        self, epsilon: object, domain: KeyDomain | Iterable[object], *, above: object, geometric: bool = False
    ) -> Measurement:
        """The keys of a public domain whose noisy weight is above a threshold, however large the domain.

        The noise is that of `noisy_count`, drawn for every key of the domain; shown are the keys above. So a count over
        some of these keys, at the same ε, gives the same values, and is paid for.

        Parameters
        ----------
        epsilon : number
            More than 0.
        domain : KeyDomain, range or iterable
            The public keys, up to 10¹²: `wp.integers`, `wp.digits`, `wp.product`, a range, or a list.
        above : number
            The threshold, at least 0, chosen without looking at the data. Noise alone brings `exp(−above·ε)/2` of the
            absent keys above it: where that is more than a million keys, a session refuses before it debits.
        geometric : bool
            Whether noise is that of `geometric_count` instead.

        Returns
        -------
        Measurement
            Privacy cost: that of `noisy_count` (`geometric_count`), once for all listings and counts.

        Examples
        --------
        >>> import wpinq as wp
        >>> zips = wp.source("people", zip=str).select(lambda p: p.zip)
        >>> print(wp.bill([zips.noisy_count_above(1, wp.digits(5), above=20), zips.noisy_count(1)]))
        people: 1
          protects one record, of weight 1
          NoisyCount(1) uses it once: 1 x 1 = 1
          NoisyCount(1) is released already: no cost
        """
        counted = self.geometric_count(epsilon, ()) if geometric else self.noisy_count(epsilon, ())
        return replace(counted, domain=None, listing=listing_of(domain, above, self.plan.type))

    def noisy_sum(self, epsilon: object, value: RecordFunction, lower: float, upper: float) -> ListedMeasurement:
        """The sum over records of weight times clamped value, plus noise.

        `Σ_x A(x) · min(upper, max(lower, value(x))) + Lap(max(|lower|, |upper|)/ε)`; a null value adds 0.

        Parameters
        ----------
        epsilon : number
            More than 0.
        value : function
            From a record to a number.
        lower, upper : float
            The public range that values are clamped to.
        """
        low, high = check_range(lower, upper)
        plan = self._extended(SelectMany, sum_elements(value, low, high))
        return ListedMeasurement(plan, NoisySum(low, high), parse_epsilon(epsilon), ("sum",), self.reading)

    def noisy_average(self, epsilon: object, value: RecordFunction, lower: float, upper: float) -> ListedMeasurement:
        """The average of clamped values, each record counting by its weight.

        A noisy sum about the middle of the range over a noisy count, both from one query whose records give half
        their weight to each: noise of scale 2/ε on the count, `(upper − lower)/ε` on the sum.

        Parameters
        ----------
        epsilon : number
            More than 0.
        value : function
            From a record to a number; records where it is null are left out.
        lower, upper : float
            The public range that values are clamped to; upper > lower.
        """
        low, high = check_range(lower, upper)
        if low == high:
            raise PlanError("noisy_average needs lower < upper")
        plan = self._extended(SelectMany, average_elements(value, low, high))
        return ListedMeasurement(plan, NoisyAverage(low, high), parse_epsilon(epsilon), ("sum", "count"), self.reading)

    def most_common(self, epsilon: object, candidates: Iterable[object]) -> ListedMeasurement:
        """The heaviest of public candidates, as far as noise lets it be told, with the weight as score.

        Parameters
        ----------
        epsilon : number
            More than 0. Of two candidates that differ by a weight of w, the lighter is chosen with a chance of
            `exp(−ε·w) / 2`.
        candidates : iterable
            The public records to choose from.
        """
        return self._choose(epsilon, candidates, Choose("weight"))

    def most_distant(
        self, epsilon: object, sizes: Iterable[int], candidates: Iterable[ComparedMarginal]
    ) -> ListedMeasurement:
        """The view whose marginal is farthest from a public one, less a penalty, as far as noise lets it be told.

        `score(r) = ‖m_r − p_r‖₁ − c_r`, with m_r the histogram of the attributes in r, p_r what it is compared with and
        c_r the penalty; noise of scale 2/ε. The records are codes, an integer an attribute, from 0 to size − 1. A
        record that has another code, or null, in an attribute of r is in no cell of r, and counts in the other views.

        Parameters
        ----------
        epsilon : number
            More than 0. Of two views whose scores differ by s, the lower is chosen with a chance of `exp(−ε·s/2) / 2`.
        sizes : iterable of int
            How many codes each attribute has: as many sizes as a record has fields.
        candidates : iterable of ComparedMarginal
            The public views with what each is compared with, known beforehand or made of answers. At most 10,000 views,
            of at most 2²⁰ cells together.

        Returns
        -------
        Measurement
            Its answers' `value` is a view, the places of its attributes. Privacy cost: ε times the uses of each source
            times its unit weight, for a unit of weight moves no score by more than 1, one up and another down.

        Raises
        ------
        PlanError
            Where records are no codes, sizes no sizes, or candidates no views of these attributes.

        Notes
        -----
        Source: McKenna, Miklau, Sheldon, "Winning the NIST contest", Journal of Privacy and Confidentiality 2021, for
        the score; permute-and-flip by McKenna, Sheldon, NeurIPS 2020. `docs/proofs/most_distant.md`.

        Examples
        --------
        >>> import wpinq as wp
        >>> people = wp.source("people", town=int, job=int, sex=int)
        >>> even = [wp.ComparedMarginal(r, ([100, 100], [0.5, 0.5])) for r in ((0, 1), (0, 2), (1, 2))]
        >>> asked = people.most_distant(1, sizes=(2, 2, 2), candidates=even)
        >>> rows = [(i % 2, i % 2, i // 100) for i in range(200)]
        >>> wp.simulate(asked, {"people": rows}, seed=1).value
        (0, 1)
        """
        try:
            many = tuple(map(index, sizes))
        except TypeError:
            raise PlanError(f"sizes are how many codes each attribute has, a list of integers, not {sizes!r}") from None
        sink = MostDistant(many, tuple(candidates))
        return ListedMeasurement(self.plan, sink, parse_epsilon(epsilon), sink.keys, self.reading)

    def quantile(self, *, epsilon: object, q: object, candidates: Iterable[object]) -> ListedMeasurement:
        """The candidate that best cuts the weight at quantile q, as far as noise lets it be told.

        `score(c) = min(0, q·(M+R) − (1−q)·L, (1−q)·(L+M) − q·R)`, with L, M and R the weight before, at and after c.
        It is 0 where c is the quantile. Null records are nowhere, and records of a weight below 0 weigh nothing.

        Parameters
        ----------
        epsilon : number
            More than 0. Noise has a scale of `2·max(q, 1−q)/ε`: 1/ε, in weight, for the median.
        q : number
            Between 0 and 1; 0.5 for the median.
        candidates : iterable
            The public records to choose from.
        """
        if isinstance(self.plan.type, CategoryOf):
            raise PlanError(
                "categories are in no order, so they have no quantile: number them first, or use most_common"
            )
        exact = parse_epsilon(q)
        if not exact < 1:
            raise PlanError(f"a quantile lies between 0 and 1, not {q!r}: write q=0.9 for nine in ten")
        return self._choose(epsilon, candidates, Choose("quantile", exact))

    def median(self, epsilon: object, candidates: Iterable[object]) -> ListedMeasurement:
        """The candidate that best halves the weight: `quantile` at 1/2."""
        return self.quantile(epsilon=epsilon, q=Fraction(1, 2), candidates=candidates)

    def buckets(self, epsilon: object, bins: int, penalty: object, split: object = Fraction(1, 2)) -> ListedMeasurement:
        """Which neighbouring bins are alike: a partition of bins 0 … bins − 1 into buckets, as noise lets it be told.

        `Pr[B] ∝ prior(B) · exp(−ε · C(B) / 2)`, with `C(B) = Σ_{I in B} (min_c Σ_{i in I} |A(i) − c| + penalty)`.
        Buckets are nodes of the tree of halves over the bins.

        Parameters
        ----------
        epsilon : number
            More than 0.
        bins : int
            The number of bins, at most 2²⁰. Records that are no bin are left out.
        penalty : number
            What a bucket costs, in weight, more than 0, chosen without looking at the data: the larger, the fewer
            buckets. For counts of the buckets at ε₂ it is about 1/ε₂.
        split : number
            The chance with which a node of the tree is split before anything is known, between 0 and 1.

        Returns
        -------
        Measurement
            Of one draw over all bins: 1 where a bucket begins and 0 elsewhere; the answers' `value` lists the
            bins where buckets begin. Privacy cost: as for `noisy_count`. C(B) is the L1 distance of the weights
            from a set, plus what is public, so a unit of weight moves it by at most 1.

        Notes
        -----
        Source: McSherry, Talwar, FOCS 2007, for the law; docs/proofs/buckets.md proves it and how it is drawn.

        Examples
        --------
        >>> import wpinq as wp
        >>> ages = wp.source("ages", int)
        >>> asked = ages.buckets(epsilon=1, bins=8, penalty=5)
        >>> wp.simulate(asked, {"ages": [5] * 80 + [6] * 80}, seed=1).value
        (0, 4, 5, 6, 7)
        """
        sink = Buckets(bins, parse_epsilon(penalty), parse_epsilon(split))
        return ListedMeasurement(self.plan, sink, parse_epsilon(epsilon), sink.keys, self.reading)

    def _choose(self, epsilon: object, candidates: Iterable[object], sink: Sink) -> ListedMeasurement:
        domain = check_domain(candidates, self.plan.type)
        if not domain:
            raise PlanError("a choice needs at least one candidate")
        return ListedMeasurement(self.plan, sink, parse_epsilon(epsilon), domain, self.reading)

    def _extended(self, operator: type[Select | SelectMany], function: UserFunction) -> Node:
        return construct(operator, (self.plan,), {"function": function}, trace)
