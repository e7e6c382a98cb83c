"""The fluent chain: explicit, typed methods that build a plan, and sinks that turn it into measurements."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from numbers import Integral, Number
from typing import Any, overload

from wpinq.display.explanation import explain_plan
from wpinq.engines.contract import DEFAULT_ENGINE
from wpinq.errors import EpsilonError, PlanError
from wpinq.expr.facts import check_facts, check_listed
from wpinq.expr.library import count
from wpinq.expr.logical_values import presenter
from wpinq.expr.nodes import Constant, Lambda, make_lambda
from wpinq.expr.person import Person
from wpinq.expr.trace import UserFunction, lift, trace
from wpinq.expr.types import CategoryOf, Type, type_from_annotation
from wpinq.expr.values import Value
from wpinq.habits import QUERY_CALLS, NoTable, methods_told, told
from wpinq.measure.bill import Bill
from wpinq.measure.clamped import average_elements, check_range, sum_elements
from wpinq.measure.epsilon import parse_epsilon
from wpinq.measure.key_domains import KeyDomain
from wpinq.measure.listing import listing_of
from wpinq.measure.measurement import (
    Choose,
    GeometricCount,
    ListedMeasurement,
    Measurement,
    NoisyAverage,
    NoisyCount,
    NoisySum,
    Sink,
    check_domain,
    check_text,
)
from wpinq.plan.certify import certify
from wpinq.plan.format import plan_from_json, plan_to_json
from wpinq.plan.node import Node, Planned, construct
from wpinq.plan.operator import Operator
from wpinq.plan.operators import (
    Concat,
    Except,
    GroupBy,
    Intersect,
    Join,
    Partition,
    Select,
    SelectMany,
    Shave,
    Source,
    Union,
    Where,
)

DEFAULT_CAP = 2**30
"""The bound on a source's norm unless one is declared: public, never computed from data."""

DEFAULT_UNIT, DEFAULT_PERSON = "one record", "one person"
"""What is protected unless it is said, without and with a declared person."""

_OF_PERSONS = ("person", "at_most", "nested", "account")


@told('source("people", city=str, age=int)')
def source(
    name: str,
    schema: object = None,
    /,
    *,
    unit: str | None = None,
    unit_weight: object = None,
    cap: object = DEFAULT_CAP,
    facts: Iterable[str] = (),
    **fields: object,
) -> Query:
    """A protected dataset by name: an unbound query, pure data. `Session.protect` gives it data.

    Parameters
    ----------
    name : str
        Its name in bills, ledgers and text programs.
    schema : type, optional
        The type of a record: `int`, `str`, `list[str]`, or a mapping from field names to types. Instead, fields
        can be given as keywords: `source("edges", src=int, dst=int)`.
    unit : str
        What one protected unit is, in words; every bill prints it. "one record" unless told, or "one person".
    unit_weight : number
        The total weight by which one protected unit can change the dataset; more than 0, and 1 unless told. Where the
        unit is a person it follows, and is not to be given.
    cap : number
        A public bound on the total weight of the dataset. It sets the slack that covers floating-point error, and
        data beyond it are refused.
    facts : iterable of str
        What all data for this source must satisfy: "nonnegative", "whole_weights", "unit_weights", "symmetric",
        "simple". Enforced when data are protected; each narrows the neighbours that the promise covers.
    person : str
        The column with the ids of people, int or str and never null: one person, with all rows, is then the protected
        unit. Ids are in the records only where a field has this name, too.
    at_most : int
        How many rows of one person count, which must be told with `person`. Further rows are left out, by a fixed rule
        that reads the declared fields of that person's rows alone. One person then weighs up to `at_most`, the unit
        weight. Choose it by public knowledge, or buy it (`rows_a_person`), never by looking.
    nested : bool
        Whether a record is one person: the list of its rows, in canonical order, of weight 1, the unit weight.
    account : str
        The account that several tables of the same people share; a release pays there for all of them, in sum.
    **fields : type
        The fields. The four names above are fields where a type stands after them, as in `account=int`.

    Returns
    -------
    Query
        The dataset as it is.

    Raises
    ------
    ExpressionError, PlanError
        When the schema or a declaration makes no sense.

    Examples
    --------
    >>> import wpinq as wp
    >>> edges = wp.source("edges", src=int, dst=int, unit="one directed edge")
    >>> edges.uses()
    {'edges': 1}
    >>> purchases = wp.source("purchases", shop=str, price=float, person="customer_id", at_most=20)
    >>> print(purchases.bill(epsilon="1/100"))
    purchases: 0.2
      protects one person, at most 20 rows, of weight 20
      NoisyCount(0.01) uses it once: 0.01 x 1 x 20 = 0.2
    """
    told = {key: fields.pop(key) for key in _OF_PERSONS if isinstance(fields.get(key), (str, Number))}
    if (schema is None) == (not fields):
        raise PlanError(f"source {name!r}: give a schema or fields such as src=int, dst=int, one of the two")
    record = type_from_annotation(fields if schema is None else schema)
    person, bound = _person(name, told), _positive(cap, f"source {name!r}: cap")
    record = record if person is None else person.record(record)
    implied = Fraction(1 if person is None else person.weight)
    weight = implied if unit_weight is None else _positive(unit_weight, f"source {name!r}: unit_weight")
    words = unit if unit is not None else DEFAULT_UNIT if person is None else DEFAULT_PERSON
    declared = tuple(sorted(set(check_listed(facts))))
    try:
        check_facts(declared, record, weight)
    except PlanError as error:
        raise PlanError(f"source {name!r}: {error}") from None
    declaration = Source(name, record, repr(record), words, weight, bound, declared, person)
    declaration.check_size()
    return Query(Node(declaration))


def _positive(number: object, what: str) -> Fraction:
    try:
        return parse_epsilon(number)
    except EpsilonError:
        raise PlanError(f'{what} is a number of more than 0, such as 1 or "1/2", not {number!r}') from None


def _person(name: str, told: Mapping[str, Any]) -> Person | None:
    if not told:
        return None
    if "person" not in told or "at_most" not in told:
        raise PlanError(
            f"source {name!r}: where a person is the unit, name the column of the ids and how many rows of one person "
            'count, together: person="customer_id", at_most=20'
        )
    at_most = told["at_most"]
    if isinstance(at_most, Integral) and not isinstance(at_most, bool):  # numpy's too
        at_most = int(at_most)
    return Person(told["person"], at_most, told.get("nested", False), told.get("account", ""))


def rows_a_person(source: Query, epsilon: object, quantile: object = "0.95") -> ListedMeasurement:
    """A quantile of how many rows a person has, to choose `at_most` by: bought, never looked up.

    Parameters
    ----------
    source : Query
        A source of people in nested form, `wp.source(..., person=..., at_most=..., nested=True)`. Its `at_most`, of
        public knowledge, is the most that can come out: people with more rows count as having so many. A large one
        costs nothing, for a person is one record of weight 1.
    epsilon : number
        More than 0: what it costs, once.
    quantile : number
        Between 0 and 1: the share of people who are to keep all their rows.

    Returns
    -------
    Measurement
        A choice (permute-and-flip) among 1, …, `at_most`; its answer's `value` is the number.

    Raises
    ------
    PlanError
        When the source is not of people in nested form.

    Notes
    -----
    Privacy cost: epsilon. Declare the source under the `account` of the tables whose `at_most` is to be chosen.

    Examples
    --------
    >>> import wpinq as wp
    >>> visits = wp.source("visits", page=str, person="user", at_most=1000, nested=True)
    >>> print(wp.bill(wp.rows_a_person(visits, epsilon=0.1)))
    visits: 0.1
      protects one person, at most 1,000 rows in one record, of weight 1
      Choose(0.1) uses it once: 0.1 x 1 = 0.1
    """
    declared = source.plan.operator if isinstance(source, Query) else None
    person = declared.person if isinstance(declared, Source) else None
    if person is None or not person.nested:
        raise PlanError(
            "rows_a_person takes a source of people in nested form: declare the data with person=..., nested=True, "
            "and for at_most a public bound that hardly anybody exceeds"
        )
    rows = source.select(lambda rows: count(rows))
    return rows.quantile(epsilon=epsilon, q=quantile, candidates=range(1, person.at_most + 1))


@methods_told(QUERY_CALLS)
class Query(NoTable, Planned):
    """A plan under construction. Every method gives a new query; nothing is evaluated, nothing is spent.

    Queries are equal when their plans are, whichever notation they were written in.
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

    def __repr__(self) -> str:
        return f"<Query {self.plan.operator.name}: {self.plan.type}>"

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
        """The same query with a note on how to read its weights, which explain and answers show."""
        return Query(self.plan, reading)

    # --- operators; each says what it does in its own file under plan/operators -------------------------------------

    def select(self, function: UserFunction) -> Query:
        """Apply a function to each record; equal results add their weights. See `Select`."""
        return self._then(Select, function=function)

    def where(self, predicate: UserFunction) -> Query:
        """Keep the records that satisfy a predicate. See `Where`."""
        return self._then(Where, predicate=predicate)

    filter = where

    def select_many(self, function: UserFunction, limit: int | None = None) -> Query:
        """Map each record to a list and share its weight out. See `SelectMany`."""
        return self._then(SelectMany, function=function, limit=limit)

    def group_by(self, key: UserFunction, reduce: UserFunction | None = None) -> Query:
        """Reduce the records of each key; without a reducer, collect them. See `GroupBy`."""
        return self._then(GroupBy, key=key, reduce=reduce)

    def shave(self, widths: float | UserFunction, limit: int | None = None) -> Query:
        """Cut each record into pieces of given widths. See `Shave`."""
        return self._then(Shave, widths=widths, limit=limit)

    def join(
        self, other: Query, left_key: UserFunction, right_key: UserFunction, result: UserFunction | None = None
    ) -> Query:
        """Pair records with equal keys; without a result function, as pairs. See `Join`."""
        return self._then(Join, other, left_key=left_key, right_key=right_key, result=result)

    def union(self, other: Query) -> Query:
        """The larger weight of each record, not the sum; for that use `concat`. See `Union`."""
        return self._then(Union, other)

    def intersect(self, other: Query) -> Query:
        """The smaller weight of each record. See `Intersect`."""
        return self._then(Intersect, other)

    def concat(self, other: Query) -> Query:
        """The sum of the weights of each record. See `Concat`."""
        return self._then(Concat, other)

    def difference(self, other: Query) -> Query:
        """The difference of the weights of each record. See `Except`."""
        return self._then(Except, other)

    def partition(self, key: UserFunction, keys: Iterable[object]) -> dict[Value, Query]:
        """One query for each public key; releases from several parts cost the largest, not the sum. See `Partition`.

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
        return {shown(value): self._then(Partition, key=traced, part=part) for value, part in parts.items()}

    # --- sinks ------------------------------------------------------------------------------------------------------

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
        domain = certify(self.plan).domain if over is None else check_domain(over, self.plan.type)
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
        domain = certify(self.plan).domain if over is None else check_domain(over, self.plan.type)
        sink = GeometricCount(certify(self.plan).require_lattice())
        return Measurement(self.plan, sink, parse_epsilon(epsilon), domain, self.reading)

    def noisy_listing(
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
        >>> print(wp.bill([zips.noisy_listing(1, wp.digits(5), above=20), zips.noisy_count(1)]))
        people: 1
          protects one record, of weight 1
          NoisyCount(1) uses it once: 1 x 1 = 1
          NoisyCount(1) is released already: no cost
        """
        counted = self.geometric_count(epsilon, ()) if geometric else self.noisy_count(epsilon, ())
        return replace(counted, domain=None, listing=listing_of(domain, above, self.plan.type))

    def noisy_sum(self, epsilon: object, value: UserFunction, lower: float, upper: float) -> ListedMeasurement:
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
        plan = self.select_many(sum_elements(value, low, high)).plan
        return ListedMeasurement(plan, NoisySum(low, high), parse_epsilon(epsilon), ("sum",), self.reading)

    def noisy_average(self, epsilon: object, value: UserFunction, lower: float, upper: float) -> ListedMeasurement:
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
        plan = self.select_many(average_elements(value, low, high)).plan
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

    def _choose(self, epsilon: object, candidates: Iterable[object], sink: Sink) -> ListedMeasurement:
        domain = check_domain(candidates, self.plan.type)
        if not domain:
            raise PlanError("a choice needs at least one candidate")
        return ListedMeasurement(self.plan, sink, parse_epsilon(epsilon), domain, self.reading)

    # --- cost and explanation -----------------------------------------------------------------------------------------

    def uses(self) -> dict[str, int]:
        """How often the plan uses each source: paths from the root, parts of one partition counted once."""
        return dict(certify(self.plan).uses)

    def stability(self) -> dict[str, Fraction]:
        """How far one unit of weight in each source moves the output, at most: what a release is billed for.

        Never more than `uses`, and often far less, for increases of one path can be decreases of another, and at one
        key of a Join both sides share one scale: docs/proofs/stability.md.

        Examples
        --------
        >>> import wpinq as wp
        >>> edges = wp.source("edges", src=int, dst=int)
        >>> pairs = edges.join(edges, lambda x: x.src, lambda y: y.src)
        >>> pairs.uses(), pairs.stability()
        ({'edges': 2}, {'edges': Fraction(3, 2)})
        """
        return dict(certify(self.plan).stability)

    def bill(self, epsilon: object) -> Bill:
        """What a NoisyCount of this query at this epsilon costs each source."""
        return Bill([self.noisy_count(epsilon)])

    def explain(self, epsilon: object | None = None, engine: str = DEFAULT_ENGINE) -> str:
        """The plan as a tree, with types, uses, weights left, noise, expected accuracy, and its engine. No data."""
        return explain_plan(self.plan, None if epsilon is None else parse_epsilon(epsilon), self.reading, engine)

    def epsilon_for(self, half_width: float, confidence: float = 0.95) -> Fraction:
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
        exact = (1 + certify(self.plan).slack()) * Fraction(-math.log1p(-confidence)) / Fraction(half_width)
        return parse_epsilon(Fraction(math.ceil(exact * 10**9), 10**9))


def _unpickle(data: Mapping[str, Any], reading: str) -> Query:
    return Query(plan_from_json(data), reading)


def _convert(value: Any, types: tuple[Type, ...]) -> Lambda:
    if not types and not isinstance(value, Lambda):
        return make_lambda((), lift(value))
    return trace(value, types)
