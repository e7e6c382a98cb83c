"""The fluent chain: typed methods that build a plan and its measurements, and spend nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, NoReturn, overload

from wpinq.display.explanation import explain_plan, plan_html
from wpinq.engines.contract import DEFAULT_ENGINE
from wpinq.errors import PlanError, warn_of_column
from wpinq.expr.nodes import Constant, Lambda, make_lambda
from wpinq.expr.trace import RecordFunction, UserFunction, as_function, lift, trace
from wpinq.expr.types import CategoryOf, TupleOf, Type
from wpinq.expr.values import Value, presenter
from wpinq.marginals.cells import Attribute
from wpinq.marginals.planning import Objective
from wpinq.marginals.tabulation import MarginalTabulation, Views, tabulate_marginals
from wpinq.measure.accuracy import Accuracy
from wpinq.measure.bill import Bill
from wpinq.measure.measurement import ListedMeasurement, Measurement, check_domain, check_text
from wpinq.noise.epsilon import parse_epsilon
from wpinq.noise.epsilon_text import Epsilon, EpsilonLike
from wpinq.plan import operators
from wpinq.plan.construct import construct
from wpinq.plan.format import plan_from_json, plan_to_json
from wpinq.plan.node import Node, Planned
from wpinq.plan.operator import Operator
from wpinq.plan.properties import plan_properties
from wpinq.runtime.public import advice, public
from wpinq.sinks.choose import Choose
from wpinq.sinks.clamped import ENDS, NoisyAverage, NoisySum, average_elements, check_range, sum_elements
from wpinq.sinks.count_above import listing_of
from wpinq.sinks.geometric import GeometricCount
from wpinq.sinks.keys import KeyDomain
from wpinq.sinks.laplace import NoisyCount
from wpinq.sinks.sink import Sink
from wpinq.tables.aggregates import Aggregate
from wpinq.tables.choices import parse_quantile
from wpinq.tables.grouping import NO_OTHER, GroupKeys, find_groups, joined, selected, unnested, with_columns
from wpinq.tables.tabulation import Grouping, Split, Table, Tabulation


@public
class Query(Planned):
    """A query over protected sources; each method returns a new query and costs nothing.

    Queries are equal when their plans are, in any notation.
    """

    __slots__ = ("plan", "reading")
    plan: Node
    reading: str

    def __init__(self, plan: Node, reading: str = "") -> None:
        object.__setattr__(self, "plan", plan)
        object.__setattr__(self, "reading", check_text(reading, "a reading"))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("queries do not change; every method gives a new one")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Query) and self.plan == other.plan

    def __hash__(self) -> int:
        return hash(self.plan)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<Query {self.plan.operator.name}: {self.plan.type}>"

    def _repr_html_(self) -> str:
        return plan_html(self.plan, self.reading)

    def _mend_attribute(self, name: str) -> str:
        names = self.plan.type.names if isinstance(self.plan.type, TupleOf) else ()
        if name in names:
            return f'a column is written wp.col("{name}"), or lambda r: r.{name}'
        return _METHODS.get(name, "")

    def __reduce__(self) -> Any:
        return (_unpickle, (plan_to_json(self.plan), self.reading))

    def _then(self, operator: type[Operator], *others: Query, **arguments: Any) -> Query:
        for other in others:
            if not isinstance(other, Query):
                raise PlanError(
                    f"{operator.name} needs another query, not {type(other).__name__}: write a.{operator.method}(b), "
                    "and once more for a third"
                )
        inputs = (self.plan, *(other.plan for other in others))
        return Query(construct(operator, inputs, arguments, _convert))

    def read_as(self, reading: str) -> Query:
        """The same query with words for its weights, which `explain` and answers show."""
        return Query(self.plan, reading)

    # --- operators; each says what it does in its own file under plan/operators -------------------------------------

    def select(self, function: RecordFunction | None = None, *columns: RecordFunction, **named: object) -> Query:
        """Apply a function to each record, where equal results add their weights: see `Select`.

        `select("city")` gives the values of one column. Several columns, or named ones, give records: `select("city",
        decade=wp.col("age") // 10)`.
        """
        given = columns if function is None else (function, *columns)
        return self._then(operators.Select, function=selected(given, named))

    def with_columns(self, *columns: RecordFunction, **named: object) -> Query:
        """Add columns to each record, or replace columns: see `Select`.

        Parameters
        ----------
        *columns : Column
            Columns with a name of their own: `(wp.col("age") // 10).alias("decade")`.
        **named : function, Column, or constant
            The columns by their new names.

        Examples
        --------
        >>> import wpinq as wp
        >>> people = wp.source("people", city=str, age=int)
        >>> print(people.with_columns(decade=wp.col("age") // 10).plan.type)
        (city: str, age: int, decade: int)
        """
        return self._then(operators.Select, function=with_columns(columns, named, self.plan.type))

    def where(self, predicate: RecordFunction) -> Query:
        """Keep the records that satisfy a predicate: see `Where`."""
        return self._then(operators.Where, predicate=predicate)

    filter = where

    def select_many(self, function: RecordFunction, limit: int | None = None, divisor: int | None = None) -> Query:
        """Map each record to a list that shares its weight: see `SelectMany`."""
        return self._then(operators.SelectMany, function=function, limit=limit, divisor=divisor)

    def unnest(self, table: RecordFunction, **named: object) -> Query:
        """One record for each element of a list: see `SelectMany`.

        The list is the rows of a person's table, or a part of it. Each element weighs 1/b, where b is the public bound
        of the list, so one record of the query moves the result by at most 1. Counts are given in whole elements, with
        b times the noise of a count of people.

        Parameters
        ----------
        table : str, Column or function
            The list of each record: `"visits"`, or a part of it, `lambda p: F.filter(p.visits, ...)`.
        **named : str, Column, function or constant
            Columns of the record beside those of the element: `unnest("visits", region=lambda p: p.home.region)`.

        Examples
        --------
        >>> import wpinq as wp
        >>> patients = wp.people("patients", id=("who", int), visits=wp.table(ward=str, at_most=50))
        >>> wards = patients.unnest("visits").by("ward", keys=["A", "B"]).agg(rows=wp.count(), epsilon=1)
        >>> print(wards.bill())
        patients: 1
          protects one person, at most 50 of visits in one record, of weight 1
          rows (Count): NoisyCount(1), spent once: 1 x 1 = 1
        """
        function, bound = unnested(as_function(table), named, self.plan.type)
        return self._then(operators.SelectMany, function=function, divisor=bound)

    def group_by(self, key: RecordFunction, reduce: RecordFunction | None = None) -> Query:
        """Reduce the records of each key, or collect them without a reducer: see `GroupBy`."""
        return self._then(operators.GroupBy, key=key, reduce=reduce)

    def shave(self, widths: float | RecordFunction, limit: int | None = None) -> Query:
        """Cut each record into pieces of given widths: see `Shave`."""
        return self._then(operators.Shave, widths=widths, limit=limit)

    def join(
        self,
        other: Query,
        left_key: RecordFunction | None = None,
        right_key: RecordFunction | None = None,
        result: RecordFunction | None = None,
        *,
        on: RecordFunction | None = None,
    ) -> Query:
        """Pair records with equal keys, as pairs without a result function: see `Join`.

        With `on`, one or several columns of both sides, the result is a record with the columns of both. A right column
        gets the suffix `_right` if the left side has its name too.
        """
        if on is not None and isinstance(other, Query):
            if left_key is not None or right_key is not None:
                raise PlanError("join takes keys or on=..., not both")
            left_key, whole = joined(self.plan.type, other.plan.type, on)
            right_key, result = left_key, whole if result is None else result
        if left_key is None or right_key is None:
            raise PlanError('join needs a key of each side, or on="a column that both have"')
        return self._then(operators.Join, other, left_key=left_key, right_key=right_key, result=result)

    def union(self, other: Query) -> Query:
        """The larger weight of each record, not the sum as in `concat`: see `Union`."""
        return self._then(operators.Union, other)

    def intersect(self, other: Query) -> Query:
        """The smaller weight of each record: see `Intersect`."""
        return self._then(operators.Intersect, other)

    def concat(self, other: Query) -> Query:
        """The sum of the weights of each record: see `Concat`."""
        return self._then(operators.Concat, other)

    def difference(self, other: Query) -> Query:
        """The difference of the weights of each record: see `Except`."""
        return self._then(operators.Except, other)

    def partition(self, key: RecordFunction, keys: Iterable[object]) -> dict[Value, Query]:
        """One query for each public key: see `Partition`.

        Releases from several parts cost the largest, not the sum.

        Parameters
        ----------
        key : function
            From a record to its key.
        keys : iterable
            The public keys. Records with other keys are in no part.
        """
        traced = trace(key, (self.plan.type,))
        parts = {value: Constant(traced.type, value) for value in check_domain(keys, traced.type)}
        shown = presenter(traced.type)
        return {shown(value): self._then(operators.Partition, key=traced, part=part) for value, part in parts.items()}

    # --- tables -------------------------------------------------------------------------------------------------------

    @overload
    def by(
        self,
        *columns: RecordFunction,
        keys: KeyDomain | Iterable[object],
        other: object = NO_OTHER,
        above: object = None,
        **named: RecordFunction,
    ) -> Grouping[Table]: ...

    @overload
    def by(
        self,
        *columns: RecordFunction,
        keys: None = None,
        other: object = NO_OTHER,
        above: object = None,
        **named: RecordFunction,
    ) -> Grouping[Any]: ...

    def by(
        self,
        *columns: RecordFunction,
        keys: GroupKeys = None,
        other: object = NO_OTHER,
        above: object = None,
        **named: RecordFunction,
    ) -> Grouping:
        """Group the records by columns, for the aggregates of `agg`.

        For example, `by("city", keys=[...]).agg(rows=wp.count(), epsilon=1)`.

        Parameters
        ----------
        *columns, **named : str, Column or function
            The columns of the groups: `by("city", decade=wp.col("age") // 10)`.
        keys : iterable, or mapping from columns to iterables, optional
            The public groups: values of the column, tuples for several columns, or a mapping from columns to values for
            all combinations. They are optional if the query fixes them (categories, bools, `x % n`). A null is a group
            only if given. Never choose them from the data.
        other : value, optional
            The name of a further group for all records outside of `keys`. It is measured like the other groups.
        above : number, optional
            A threshold of at least 0, chosen without using the data. The groups are then those of the domain `keys`
            (`wp.digits(5)`, `wp.integers`, `wp.product`, a range or a list; also by column) with a noisy count above
            it. `agg` then takes one count, for the listing, with sums and means. See `noisy_count_above`.

        Returns
        -------
        Grouping
            The groups; the method `agg` requests aggregates.

        Examples
        --------
        >>> import wpinq as wp
        >>> people = wp.source("people", zip=str, salary=float)
        >>> print(people.by("zip", keys=wp.digits(5), above=20).agg(rows=wp.count(), epsilon=1))
        Tabulation by zip: groups selected above 20, from the texts of 5 digits, epsilon 1
          rows  count    1
        """
        return Grouping(find_groups(self.plan, columns, named, keys, other, above), self.reading)

    def agg(
        self, *unnamed: object, epsilon: EpsilonLike, split: Split = None, **aggregates: Aggregate
    ) -> Tabulation[Table]:
        """Aggregates of all records, as a table of one row: see `Grouping.agg`.

        Examples
        --------
        >>> import wpinq as wp
        >>> people = wp.source("people", city=str, age=int)
        >>> print(people.agg(rows=wp.count(), age=wp.median("age", range(100)), epsilon=1, split={"rows": 1, "age": 3}))
        Tabulation of all records, epsilon 1
          rows  count                                   0.25
          age   median of age, one of 100 candidates    0.75
        """
        return self.by().agg(*unnamed, epsilon=epsilon, split=split, **aggregates)

    def marginals(
        self,
        attributes: Iterable[RecordFunction | Attribute],
        order: int = 2,
        *,
        epsilon: EpsilonLike,
        workload: Views | None = None,
        measure: Mapping[Any, object] | None = None,
        objective: Objective = "balanced",
    ) -> MarginalTabulation:
        """Marginals of attributes: histograms that are measured together and made consistent.

        Parameters
        ----------
        attributes : sequence of str, Column, function or `wp.attribute`
            The columns, each with public cells: `wp.attribute("age", bins=[0, 18, 30, 65])`. The name of a column alone
            takes the cells that the query fixes (categories, bools, `x % n`).
        order : int
            The number of attributes of each marginal: 2 for all pairs.
        epsilon : number
            More than 0: the cost of all marginals together, for each use of a source and each unit of its weight.
        workload : list of views, optional
            The wanted marginals instead of an order, by the names of attributes: `[("age", "city"), ("sex",)]`.
        measure : mapping from views to numbers, optional
            The measured marginals with their shares, in proportion. By default they are planned for the least error of
            the wanted marginals, from the sizes of the attributes, before anything is spent.
        objective : {"balanced", "total", "max", "apart"}
            The error that the plan minimizes: of large and small marginals in balance, of all cells together, or of the
            worst cell; "apart" is "total" with every wanted marginal measured by itself.

        Returns
        -------
        MarginalTabulation
            The request, which a session releases as `MarginalTables`.

        Raises
        ------
        PlanError
            If the cells of an attribute are neither given nor public, no measured view contains a wanted one, or there
            are too many cells.

        Notes
        -----
        Privacy cost: epsilon times the uses of each source times its unit weight, once. A record divides its weight
        among the measured views, and is in one cell of each. Source: McKenna et al. (HDMM), PVLDB 11(10), 2018,
        section 6.3.

        Examples
        --------
        >>> import wpinq as wp
        >>> people = wp.source("people", sex=wp.category("f", "m"), age=int)
        >>> asked = people.marginals(["sex", wp.attribute("age", bins=[0, 18, 65], other=False)], epsilon=1)
        >>> data = {"people": [("f", age % 60) for age in range(900)]}
        >>> marginals = wp.simulate(asked, data, seed=1)
        >>> marginals.counts("sex", "age").round(-2)
        array([[300., 600.],
               [ -0.,   0.]])
        >>> round(marginals.half_width("sex", "age"), 1)
        3.0
        """
        return tabulate_marginals(self, attributes, order, epsilon, workload, measure, objective)

    # --- releases: measurements -------------------------------------------------------------------------------------

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
        500.1...
        """
        plan = self._extended(operators.Select, lambda record: "count")
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
        plan = self._extended(operators.SelectMany, sum_elements(value, low, high))
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
        plan = self._extended(operators.SelectMany, average_elements(value, sink.lower, sink.upper))
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
        return self._choose(epsilon, candidates, Choose("quantile", parse_quantile(q)))

    def median(self, epsilon: EpsilonLike, candidates: Iterable[object]) -> ListedMeasurement:
        """A noisy choice of the candidate at the median: `quantile` at 1/2."""
        return self.quantile(epsilon=epsilon, q=Fraction(1, 2), candidates=candidates)

    def _choose(self, epsilon: EpsilonLike, candidates: Iterable[object], sink: Sink) -> ListedMeasurement:
        warn_of_column(candidates, "candidates")
        domain = check_domain(candidates, self.plan.type)
        if not domain:
            raise PlanError("a choice needs at least one candidate")
        return ListedMeasurement(self.plan, sink, parse_epsilon(epsilon), domain, self.reading)

    def _extended(self, operator: type[Operator], function: UserFunction) -> Node:
        return construct(operator, (self.plan,), {"function": function}, trace)

    # --- cost and explanation -----------------------------------------------------------------------------------------

    def uses(self) -> dict[str, int]:
        """The number of uses of each source; the parts of a partition count once together."""
        return dict(plan_properties(self.plan).uses)

    def stability(self) -> dict[str, Fraction]:
        """The largest change of the output for one unit of weight in each source; bills use it.

        It is at most `uses`, and often far less: an increase on one path can be a decrease on another, and both sides
        of a Join share one scale at each key (docs/proofs/stability.md).

        Examples
        --------
        >>> import wpinq as wp
        >>> edges = wp.source("edges", src=int, dst=int)
        >>> pairs = edges.join(edges, lambda x: x.src, lambda y: y.src)
        >>> pairs.uses(), pairs.stability()
        ({'edges': 2}, {'edges': Fraction(3, 2)})
        """
        return dict(plan_properties(self.plan).stability)

    def bill(self, epsilon: EpsilonLike) -> Bill:
        """The cost of a NoisyCount of this query at this epsilon, to each source."""
        return self.noisy_count(epsilon).bill()

    def accuracy(
        self,
        epsilon: EpsilonLike,
        confidence: float = 0.95,
        *,
        half_width: float | None = None,
        count: float | None = None,
        width: float | None = None,
    ) -> Accuracy:
        """The half-width of a NoisyCount at this epsilon, and the epsilon for a wanted half-width.

        Examples
        --------
        >>> import wpinq as wp
        >>> print(wp.source("items", int, facts=["unit_weights"]).accuracy(epsilon=0.5))
        measurement      kind   epsilon  ± at 95 %  costs
        NoisyCount(0.5)  count  0.5      5.991      items 0.5
        """
        return self.noisy_count(epsilon).accuracy(confidence, half_width=half_width, count=count, width=width)

    def explain(self, epsilon: EpsilonLike | None = None, engine: str = DEFAULT_ENGINE) -> str:
        """The plan as a tree with types, costs, noise and accuracy, without data.

        It also shows uses, the weight left at each step, and the engine.
        """
        return explain_plan(self.plan, None if epsilon is None else parse_epsilon(epsilon), self.reading, engine)

    def epsilon_for(self, half_width: float, confidence: float = 0.95) -> Epsilon:
        """The epsilon at which a NoisyCount's interval has this half-width.

        `ε = (1 + η) · ln(1/(1 − confidence)) / half_width`, rounded up to a multiple of 1e-9; η is the slack for
        floating-point error.

        Parameters
        ----------
        half_width : float
            More than 0, in units of weight.
        confidence : float
            Between 0 and 1.
        """
        if not (half_width > 0 and math.isfinite(half_width) and 0 < confidence < 1):
            raise PlanError("half_width must be positive and finite, confidence between 0 and 1")
        sink = NoisyCount()
        unit = Fraction(sink.scales(self.plan, Fraction(1))[0])
        exact = unit * Fraction(sink.half_width(1.0, confidence)) / Fraction(half_width)
        return Epsilon(parse_epsilon(Fraction(math.ceil(exact * 10**9), 10**9)))


#: What to write in place of the methods of frames in other libraries.
_METHODS: dict[str, str] = advice("queries")


def _refuse(text: str) -> Callable[..., NoReturn]:
    def refuse(self: Query, *arguments: object) -> NoReturn:
        raise PlanError(text)

    return public(refuse)


for _python, _text in advice("operators").items():  # not in the class: type checkers refuse them by themselves
    setattr(Query, f"__{_python}__", _refuse(_text))


def _unpickle(data: Mapping[str, Any], reading: str) -> Query:
    return Query(plan_from_json(data), reading)


def _convert(value: Any, types: tuple[Type, ...]) -> Lambda:
    if not types and not isinstance(value, Lambda):
        return make_lambda((), lift(value))
    return trace(value, types)
