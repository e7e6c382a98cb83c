"""Requests, and their bills: the itemised cost of a batch to each source, from plans alone."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from numbers import Real
from typing import Any, Self, TypeVar, overload

from wpinq.display.html import render
from wpinq.errors import EpsilonError, PlanError
from wpinq.expr.declarations import FACTS
from wpinq.measure.prepaid import prepaid_charges
from wpinq.noise.epsilon import NANO, parse_epsilon
from wpinq.noise.epsilon_text import Epsilon, EpsilonLike, format_epsilon, format_factor
from wpinq.plan.demand import JOIN_OF_PEOPLE, charges, demand, joins_tables
from wpinq.plan.node import Planned, sources
from wpinq.plan.operators.source import Source
from wpinq.runtime.public import public
from wpinq.sinks.answer_kinds import Kind


class Request(ABC):
    """One measurement, or several as one: released in one batch, and read as one result.

    `measurement` has what one measurement is.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def measurements(self) -> tuple[Any, ...]:
        """The released measurements, in order."""

    @property
    @abstractmethod
    def items(self) -> Mapping[str, Any]:
        """The items of a bill by title; one for measurements that differ only in the part.

        The part is of a partition.
        """

    @property
    @abstractmethod
    def stand_ins(self) -> Mapping[str, tuple[Any, Kind]]:
        """For each item, a measurement with the accuracy of its numbers, and their kind."""

    @abstractmethod
    def scaled(self, epsilon: Callable[[Fraction], Fraction]) -> Self:
        """The same request with new epsilons: a function of the present ones."""

    @abstractmethod
    def read(self, released: Sequence[Any]) -> Any:
        """The result, from the session's result of each measurement.

        Each is Answers, or a Release where the measurement has no keys.
        """

    def labelled(self, name: str) -> Iterator[tuple[str, Any]]:
        """The items of a bill by label, where the request has a name or an empty one."""
        for title, measurement in self.items.items():
            yield ", ".join(filter(None, (name, f"{title}: {measurement.description}"))), measurement


#: One request, or several that are released together, as they are billed.
Asked = Request | Iterable[Request] | Mapping[str, Request]

_LOSSES = "over other epochs of {} the losses of one person add up"

M = TypeVar("M", bound=Request)


@public
class Bill(Mapping[str, Epsilon]):
    """The cost of measurements: a mapping from account to epsilon, with its items.

    The cost to a source is epsilon times the source's unit weight times the number of times that the plan uses
    it. Measurements of several parts of one partition cost the most expensive part, not the sum. A source is its own
    account, unless several tables of the same people share one: one person may be in all of them, so that account pays
    the sum over the tables.

    Examples
    --------
    >>> import wpinq as wp
    >>> edges = wp.source("edges", src=int, dst=int, unit="one directed edge")
    >>> paths = edges.join(edges, lambda x: x.dst, lambda y: y.src)
    >>> print(paths.bill(epsilon=0.1))
    edges: 0.2
      protects one directed edge, of weight 1
      NoisyCount(0.1), spent twice (Join uses edges twice): 0.1 x 2 = 0.2
    """

    def __init__(self, measurements: Asked, units: Mapping[str, str] | None = None, *, fresh: bool = False) -> None:
        self._units, self._fresh = dict(units or {}), fresh
        asked = named(measurements)
        self.listed = tuple(item for name, each in asked for item in each.labelled(name))
        self.measurements = tuple(measurement for _, each in asked for measurement in each.measurements)
        self.sources: dict[str, Source] = sources(measurement.plan for measurement in self.measurements)
        for source in self.sources.values():
            source.check()
        distinct = {m.digest: m for m in self.measurements}  # the same one is paid for once, unless it is drawn anew
        self._paid = self.measurements if fresh else tuple(distinct.values())
        nodes = [m for m in self._paid if m.prepaid is not None]
        self._costs = charges(demand([m.demand for m in self._paid if m.prepaid is None]).sources, self.sources)
        for account, cost in prepaid_charges(nodes, lambda share: {}, {}).items():
            self._costs[account] = self._costs.get(account, Fraction(0)) + cost

    def __getitem__(self, account: str) -> Epsilon:
        return Epsilon(self._costs[account])

    def __iter__(self) -> Iterator[str]:
        return iter(self._costs)

    def __len__(self) -> int:
        return len(self._costs)

    def times(self, budgets: Mapping[str, Fraction]) -> int:
        """The number of new releases of these measurements that the remaining budgets cover.

        Each debit is rounded up to whole billionths, as a ledger counts. 0 where an account has no entry.

        Examples
        --------
        >>> import wpinq as wp
        >>> items = wp.source("items", int)
        >>> items.bill(epsilon="0.3").times({"items": Fraction(1)})
        3
        """
        left = (math.floor(budgets.get(name, Fraction(0)) * NANO) for name in self)
        return min((held // math.ceil(cost * NANO) for held, cost in zip(left, self.values(), strict=True)), default=0)

    def __repr__(self) -> str:
        return f"Bill({dict(self)!r})"

    def __str__(self) -> str:
        return "\n".join(line for account in self._costs for line in self._lines(account))

    def _repr_html_(self) -> str:
        accounts = [(first, rest) for first, *rest in map(self._lines, self._costs)]
        return render("bill.html", accounts=accounts)

    def _lines(self, account: str) -> Iterator[str]:
        yield f"{account}: {format_epsilon(self._costs[account])}"
        tables = [name for name, source in self.sources.items() if source.account == account]
        if not tables:
            yield "  one person in all these epochs: the sum of what each of them pays"
            return
        itemised = Fraction(0)
        for name in tables:
            source = self.sources[name]
            unit = self._units.get(name, source.unit) + source.rows_of_unit
            verb = "protects" if name == account else f"{name} protects"
            yield f"  {verb} {unit}, of weight {format_epsilon(source.unit_weight)}"
            for fact in sorted({*source.facts} - {"whole_weights"}):
                yield f"  declared: {FACTS[fact]}"
            for words in () if source.sizes is None else source.sizes.words:
                yield f"  declared: {words}"
            if source.epoch is not None:
                yield f"  for the rows of {source.epoch.label} alone: {_LOSSES.format(source.epoch.series)}"
            for line, cost in self._items(name, source):
                itemised += cost
                yield line
        if len(tables) > 1:
            yield "  one person may be in each of these tables: their costs add up"
            if any(joins_tables(measurement.plan, account) for measurement in self.measurements):
                yield f"  {JOIN_OF_PEOPLE}"
        for proviso in dict.fromkeys(m.sink.proviso for m in self.measurements if m.sink.proviso):
            yield f"  {proviso}"
        if itemised < self._costs[account]:
            yield "  an epoch pays one node of each level of a running total at once: later nodes find it paid"
        elif itemised != self._costs[account]:
            yield f"  parts of one partition cost their maximum, not the sum {format_epsilon(itemised)}"

    def _items(self, name: str, source: Source) -> Iterator[tuple[str, Fraction]]:
        """The line of each measurement that uses a source, and what it costs by itself."""
        of = "" if name == source.account else f" of {name}"
        listed: set[bytes] = set()
        for label, measurement in self.listed:
            stability = measurement.sink.stability(measurement.plan)
            if name not in stability:
                continue
            if measurement.digest in listed and not self._fresh:
                yield f"  {label} is released already: no cost", Fraction(0)
                continue
            listed.add(measurement.digest)
            cost = measurement.epsilon * stability[name] * source.unit_weight
            times = f"{format_epsilon(measurement.epsilon)} x {format_factor(stability[name])}"
            if source.unit_weight != 1:
                times += f" x {format_epsilon(source.unit_weight)}"
            usage, reason = measurement.sink.usage(measurement.plan, name)
            yield f"  {label}{of}, {usage}: {times} = {format_epsilon(cost)}", cost
            if reason:
                yield f"    {reason}", Fraction(0)


def bill(measurements: Asked, *, fresh: bool = False) -> Bill:
    """The bill of measurements released together.

    Parameters
    ----------
    measurements : Measurement, Tabulation, sequence of these, or mapping from names to them
        The measurements of one batch; given names are the titles of the items.
    fresh : bool
        Whether new noise is drawn: the same measurement then costs as often as it is there.

    Returns
    -------
    Bill
        Account to cost: the name of the source, or of the account that several share.

    Notes
    -----
    Privacy cost: none; only plans are read.
    """
    return Bill(measurements, fresh=fresh)


def named(measurements: object) -> list[tuple[str, Request]]:
    """Each of one or several requests with its name, or an empty one; PlanError for others."""
    if isinstance(measurements, Mapping):
        pairs = [*measurements.items()]
    elif isinstance(measurements, Iterable) and not isinstance(measurements, (Planned, Request)):
        pairs = [("", each) for each in measurements]
    else:
        pairs = [("", measurements)]
    if not all(isinstance(each, Request) for _, each in pairs):
        raise PlanError("bills are of measurements: end the query with .noisy_count(epsilon=...) or another sink")
    return pairs


@overload
def fit_to_budget(measurements: Mapping[str, M], budgets: Mapping[str, EpsilonLike]) -> dict[str, M]: ...


@overload
def fit_to_budget(measurements: Sequence[M], budgets: Mapping[str, EpsilonLike]) -> tuple[M, ...]: ...


def fit_to_budget(
    measurements: Sequence[M] | Mapping[str, M], budgets: Mapping[str, EpsilonLike]
) -> tuple[M, ...] | dict[str, M]:
    """The measurements with epsilons scaled by one factor, so that the budgets just cover them.

    Parameters
    ----------
    measurements : Measurements and Tabulations, in a sequence or by name
        The measurements of one batch; the ratios of their epsilons are kept.
    budgets : mapping
        Account, as in the bill, to the epsilon to spend there. Those without an entry do not bind.

    Returns
    -------
    tuple of the same, or a dict where they have names
        The largest epsilons, to within one part in 10¹², whose bill exceeds no budget.

    Raises
    ------
    EpsilonError
        When no account of the measurements has a budget.

    Examples
    --------
    >>> import wpinq as wp
    >>> edges = wp.source("edges", src=int, dst=int)
    >>> batch = [edges.noisy_count(1), edges.select(lambda e: e.src).noisy_count(3)]
    >>> [float(m.epsilon) for m in wp.fit_to_budget(batch, {"edges": 2})]
    [0.5, 1.5]
    """
    if not isinstance(budgets, Mapping):
        each = budgets if isinstance(budgets, Real) else 1  # what is no number may be data
        names = ", ".join(f'"{name}": {each}' for name in bill(measurements))
        raise EpsilonError(f"budgets say which account has how much: {{{names}}}")
    if isinstance(measurements, Request):
        raise PlanError("fit_to_budget scales a batch: give a list, also of one, or a mapping from names")
    cost = bill(measurements)
    # budgets are kept in whole nano-epsilon, rounded down
    held = {name: Fraction(math.floor(parse_epsilon(budgets[name]) * NANO), NANO) for name in cost if name in budgets}
    factors = [budget / cost[name] for name, budget in held.items()]
    if not factors:
        raise EpsilonError(
            f"no budget names an account of these measurements; they use {', '.join(cost)}, so write "
            + json.dumps(dict.fromkeys(cost, 1))
        )
    factor, grain = min(factors), 10**12

    def fit(epsilon: Fraction) -> Fraction:
        left = Fraction(math.floor(epsilon * factor * grain), grain)
        if left <= 0:
            raise EpsilonError("the budget leaves some measurement less than 1e-12; drop measurements or raise it")
        return left

    if isinstance(measurements, Mapping):
        return {name: each.scaled(fit) for name, each in measurements.items()}
    return tuple(each.scaled(fit) for each in measurements)
