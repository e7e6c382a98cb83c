"""Releases of a query: methods that turn it into a measurement, and spend nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from typing import overload

from wpinq.errors import PlanError, described, warn_of_column
from wpinq.expr.trace import RecordFunction, UserFunction, trace
from wpinq.expr.types import CategoryOf
from wpinq.measure.measurement import ListedMeasurement, Measurement, check_domain
from wpinq.noise.epsilon import parse_epsilon
from wpinq.noise.epsilon_text import EpsilonLike
from wpinq.plan.construct import construct
from wpinq.plan.node import Node, Planned
from wpinq.plan.operators import Select, SelectMany
from wpinq.plan.properties import plan_properties
from wpinq.sinks.choose import Choose
from wpinq.sinks.clamped import ENDS, NoisyAverage, NoisySum, average_elements, check_range, sum_elements
from wpinq.sinks.count_above import listing_of
from wpinq.sinks.geometric import GeometricCount
from wpinq.sinks.keys import KeyDomain
from wpinq.sinks.laplace import NoisyCount
from wpinq.sinks.sink import Sink


class Releasable(Planned):
    """Things that can be released: the methods of a query that give a measurement.

    The name of a column may replace a function of a record.
    """

    __slots__ = ()
    reading: str

    def measure(self, sink: Sink, epsilon: EpsilonLike, over: Iterable[object] | None = None) -> Measurement:
        """A measurement of the query by any sink; the methods below are for the usual sinks.

        Parameters
        ----------
        sink : Sink
            Of `wpinq.sinks`.
        epsilon : number
            More than 0.
        over : iterable, optional
            The public keys, unless the sink fixes them; inferred as for `noisy_count`.

        Returns
        -------
        Measurement
            A measurement. Privacy cost: ε times the stability of each source times its unit weight, unless the sink has
            its own price.

        Examples
        --------
        >>> import wpinq as wp
        >>> from wpinq.sinks.graph_counts import TriangleCount
        >>> friends = wp.source("friends", one=int, other=int, facts=["unit_weights"])
        >>> friends.measure(TriangleCount(), epsilon=1).domain
        ('count',)
        """
        domain = sink.own_keys
        if domain is None:
            warn_of_column(over, "over")
            domain = plan_properties(self.plan).domain if over is None else check_domain(over, sink.key_of(self.plan))
        return Measurement(self.plan, sink, parse_epsilon(epsilon), domain, self.reading)

    def count(self, epsilon: EpsilonLike) -> ListedMeasurement:
        """The total weight, for a table the number of rows, plus Laplace noise of scale 1/ε.

        Parameters
        ----------
        epsilon : number
            More than 0.

        Returns
        -------
        Measurement
            A measurement of one number, the answers' `value`. Privacy cost: as for `noisy_count`.

        Examples
        --------
        >>> import wpinq as wp
        >>> people = wp.source("people", city=str, age=int)
        >>> grown = people.where(wp.col("age") >= 18).count(epsilon=1)
        >>> wp.simulate(grown, {"people": [("Oslo", 30), ("Bergen", 9)] * 500}, seed=1).value
        498.3...
        """
        plan = self._extended(Select, lambda record: "count")
        return ListedMeasurement(plan, NoisyCount(), parse_epsilon(epsilon), ("count",), self.reading)

    @overload
    def noisy_count(self, epsilon: EpsilonLike, over: Iterable[object]) -> ListedMeasurement: ...

    @overload
    def noisy_count(self, epsilon: EpsilonLike, over: None = None) -> Measurement: ...

    def noisy_count(self, epsilon: EpsilonLike, over: Iterable[object] | None = None) -> Measurement:
        """Every weight plus Laplace noise of scale 1/ε.

        `out(x) = A(x) + Lap(1/ε)` for every x of the domain, present or not   (paper, section 2.2)

        Parameters
        ----------
        epsilon : number
            More than 0; read exactly, so 0.1 is 1/10.
        over : iterable, optional
            The public keys to release. They are inferred if the query fixes them (constants, `x % n`, bools, partition
            keys). Otherwise the session gives a Release, which answers requested keys.

        Returns
        -------
        Measurement
            A measurement for `session.release`. Privacy cost: ε times the stability of each source times its unit
            weight.
        """
        return self.measure(NoisyCount(), epsilon, over)

    @overload
    def geometric_count(self, epsilon: EpsilonLike, over: Iterable[object]) -> ListedMeasurement: ...

    @overload
    def geometric_count(self, epsilon: EpsilonLike, over: None = None) -> Measurement: ...

    def geometric_count(self, epsilon: EpsilonLike, over: Iterable[object] | None = None) -> Measurement:
        """Every weight plus double-geometric noise, where the plan proves a lattice of weights.

        `out(x) = A(x) + g·k` with `Pr[k] ∝ exp(−ε·g·|k|)`. The plan and the facts of its sources prove that the
        rational g divides every weight (Ghosh, Roughgarden, Sundararajan 2009).

        Parameters
        ----------
        epsilon : number
            More than 0.
        over : iterable, optional
            The public keys, as for `noisy_count`.

        Returns
        -------
        Measurement
            A measurement. Privacy cost: as for `noisy_count`; the guarantee is for neighbours with outputs on the same
            lattice.

        Raises
        ------
        PlanError
            If the plan proves no lattice; the message names the step.

        Examples
        --------
        >>> import wpinq as wp
        >>> people = wp.source("people", age=int, facts=["unit_weights"])
        >>> people.select(lambda p: p.age // 10).geometric_count(epsilon=0.5, over=range(10)).sink.factor
        Fraction(1, 1)
        """
        return self.measure(GeometricCount(plan_properties(self.plan).require_lattice()), epsilon, over)

    def noisy_count_above(
        self, epsilon: EpsilonLike, domain: KeyDomain | Iterable[object], *, above: object, geometric: bool = False
    ) -> Measurement:
        """The keys of a large public domain with a noisy weight above a threshold.

        Every key of the domain has the noise of `noisy_count`, and the keys above the threshold are shown. So a later
        count over some of these keys, at the same ε, gives the same values and costs nothing.

        Parameters
        ----------
        epsilon : number
            More than 0.
        domain : KeyDomain, range or iterable
            The public keys, up to 10¹²: `wp.integers`, `wp.digits`, `wp.product`, a range, or a list.
        above : number
            The threshold, at least 0, chosen without using the data. Noise alone lifts a share `exp(−above·ε)/2` of the
            absent keys above it. If that is more than a million keys, the session refuses before the debit.
        geometric : bool
            Whether to use the noise of `geometric_count`.

        Returns
        -------
        Measurement
            A measurement. Privacy cost: that of `noisy_count` (`geometric_count`), once for all listings and counts.

        Examples
        --------
        >>> import wpinq as wp
        >>> zips = wp.source("people", zip=str).select(lambda p: p.zip)
        >>> print(wp.bill([zips.noisy_count_above(1, wp.digits(5), above=20), zips.noisy_count(1)]))
        people: 1
          protects one record, of weight 1
          NoisyCount(1), spent once: 1 x 1 = 1
          NoisyCount(1) is released already: no cost
        """
        counted = self.geometric_count(epsilon, ()) if geometric else self.noisy_count(epsilon, ())
        return replace(counted, domain=None, listing=listing_of(domain, above, self.plan.type))

    def noisy_sum(self, epsilon: EpsilonLike, value: RecordFunction, lower: float, upper: float) -> ListedMeasurement:
        """The sum of weight times clamped value over all records, plus Laplace noise.

        `Σ_x A(x) · min(upper, max(lower, value(x))) + Lap(max(|lower|, |upper|)/ε)`; a null value adds 0.

        Parameters
        ----------
        epsilon : number
            More than 0.
        value : function
            From a record to a number.
        lower, upper : float
            The public range to which values are clamped.
        """
        low, high = check_range(lower, upper)
        plan = self._extended(SelectMany, sum_elements(value, low, high))
        return ListedMeasurement(plan, NoisySum(low, high), parse_epsilon(epsilon), ("sum",), self.reading)

    def noisy_average(
        self, epsilon: EpsilonLike, value: RecordFunction, lower: float, upper: float
    ) -> ListedMeasurement:
        """The noisy average of clamped values, weighted by the weights of records.

        `lower + (upper − lower) · U / (U + L)`: a record at a share p of the range gives p of its weight to U and 1 − p
        to L, each with noise of scale 1/ε. `U + L` is the noisy weight of all.

        Parameters
        ----------
        epsilon : number
            More than 0.
        value : function
            From a record to a number; records with a null value are left out.
        lower, upper : float
            The public range to which values are clamped; upper > lower.
        """
        sink = NoisyAverage(*check_range(lower, upper))
        plan = self._extended(SelectMany, average_elements(value, sink.lower, sink.upper))
        return ListedMeasurement(plan, sink, parse_epsilon(epsilon), ENDS, self.reading)

    def most_common(self, epsilon: EpsilonLike, candidates: Iterable[object]) -> ListedMeasurement:
        """A noisy choice of the public candidate with the most weight.

        Parameters
        ----------
        epsilon : number
            More than 0. The lighter of two candidates that differ by a weight of w is chosen with probability
            `exp(−ε·w) / 2`.
        candidates : iterable
            The public records to choose from.
        """
        return self._choose(epsilon, candidates, Choose("weight"))

    def quantile(self, *, epsilon: EpsilonLike, q: object, candidates: Iterable[object]) -> ListedMeasurement:
        """A noisy choice of the candidate at quantile q of the weight.

        `score(c) = min(0, q·(M+R) − (1−q)·L, (1−q)·(L+M) − q·R)`, with L, M and R the weight before, at and after c.
        It is 0 if c is the quantile. Null records and negative weights do not count.

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
            raise PlanError("categories are in no order, so they have no quantile: number them first, or most_common")
        exact = parse_epsilon(q)
        if not exact < 1:
            raise PlanError(f"a quantile lies between 0 and 1, not {described(q)}: write q=0.9 for nine in ten")
        return self._choose(epsilon, candidates, Choose("quantile", exact))

    def median(self, epsilon: EpsilonLike, candidates: Iterable[object]) -> ListedMeasurement:
        """A noisy choice of the candidate at the median: `quantile` at 1/2."""
        return self.quantile(epsilon=epsilon, q=Fraction(1, 2), candidates=candidates)

    def _choose(self, epsilon: EpsilonLike, candidates: Iterable[object], sink: Sink) -> ListedMeasurement:
        warn_of_column(candidates, "candidates")
        domain = check_domain(candidates, self.plan.type)
        if not domain:
            raise PlanError("a choice needs at least one candidate")
        return ListedMeasurement(self.plan, sink, parse_epsilon(epsilon), domain, self.reading)

    def _extended(self, operator: type[Select | SelectMany], function: UserFunction) -> Node:
        return construct(operator, (self.plan,), {"function": function}, trace)
