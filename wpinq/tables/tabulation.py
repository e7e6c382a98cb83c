"""Building a tabulation: groups of a query's records, and aggregates that share an epsilon."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, Generic

from wpinq.errors import PlanError, described, suggest
from wpinq.expr.nodes import Lambda, check_function
from wpinq.expr.trace import Symbol, UserFunction
from wpinq.expr.types import Type
from wpinq.expr.values import presenter
from wpinq.measure.group import R
from wpinq.measure.measurement import Measurement
from wpinq.noise.epsilon import parse_epsilon
from wpinq.noise.epsilon_text import EpsilonLike
from wpinq.plan import format
from wpinq.runtime.public import NO_ARGUMENTS, public
from wpinq.sinks.count_above import listing_from_json
from wpinq.tables.agg import AGGREGATES
from wpinq.tables.aggregates import Aggregate, ends_of, measured_together
from wpinq.tables.grouping import NO_OTHER, Groups, find_groups
from wpinq.tables.released import Table as Table, Tabulation as Tabulation

#: The share of epsilon that each aggregate gets, as numbers in proportion; equal ones unless given.
Split = Mapping[str, object] | None


@public
class Grouping(Generic[R]):
    """The records of a query in groups: what `by` gives."""

    __slots__ = ("_groups", "_reading")

    def __init__(self, groups: Groups, reading: str) -> None:
        self._groups = groups
        self._reading = reading

    def agg(
        self,
        *unnamed: object,
        epsilon: EpsilonLike,
        split: Split = None,
        k_rule: object = None,
        **aggregates: Aggregate,
    ) -> Tabulation[R]:
        """Aggregates of each group, by the names that they are to have.

        Parameters
        ----------
        epsilon : number
            More than 0: what all of them cost together, for each use of a source and each unit of its weight.
        split : mapping, optional
            The share of each, as numbers in proportion, `{"rows": 1, "salary": 3}`: the larger, the less noise. Equal
            shares unless given.
        k_rule : number, optional
            The least noisy count of a group that is shown; all aggregates of others are hidden. It is a policy and no
            guarantee: a group of fewer may be shown. The groups are listed out of their keys, as by `above`.
        **aggregates : Aggregate
            `wp.count()`, `wp.sum`, `wp.mean`, `wp.median`, `wp.quantile`, `wp.most_common`, `wp.count_distinct`, or one
            of `wp.stats`.

        Returns
        -------
        Tabulation
            The request, which a session releases as a table with a row for each group.

        Raises
        ------
        PlanError
            When there is no such column, a name is taken, the split does not name each aggregate, or groups are to be
            listed, and not by one count.

        Notes
        -----
        Privacy cost: epsilon times the uses of each source times its unit weight, once, however many groups there are:
        a record is in one group. A count, a sum and a mean of one range are read off one measurement with all of their
        epsilon, where each is expected to be off by less.

        Examples
        --------
        >>> import wpinq as wp
        >>> people = wp.source("people", city=str, age=int, salary=float, unit="one person")
        >>> wanted = people.by("city", keys=["Oslo", "Bergen"]).agg(
        ...     rows=wp.count(), salary=wp.mean("salary", 0, 200_000), epsilon=1, split={"rows": 1, "salary": 3}
        ... )
        >>> print(wanted)
        Tabulation by city: 2 groups, epsilon 1
          rows    count                                     1 together
          salary  mean of salary, clamped to 0 to 200000    1 together
        """
        if unnamed:
            raise PlanError(
                "agg: give each aggregate the name of its column: agg(rows=wp.count(), salary=wp.mean('salary', 0, "
                "100_000), epsilon=1)"
            )
        for name, aggregate in aggregates.items():
            if not isinstance(aggregate, Aggregate):
                if name in NO_ARGUMENTS:
                    raise PlanError(f"agg has no argument {name!r}: {NO_ARGUMENTS[name]}")
                raise PlanError(
                    f"agg: {name} is no aggregate: write wp.count(), wp.mean(column, lower, upper), "
                    "wp.median(column, candidates) and the like"
                )
        if not aggregates:
            raise PlanError("agg: there is nothing to ask for: agg(rows=wp.count(), epsilon=1)")
        by = self._groups
        if k_rule is not None:
            by = by.listed(k_rule)
        if by.listing is not None:
            _check_lister(aggregates)
        bound = {name: aggregate.bound(by.plan.type) for name, aggregate in aggregates.items()}
        _check_names([*by.columns], (name + end for name, aggregate in bound.items() for end in aggregate.shown()))
        epsilons = _shares(parse_epsilon(epsilon), split, list(aggregates))
        lowered: dict[str, tuple[Measurement, ...]] = dict.fromkeys(aggregates, ())
        for first, names in measured_together(bound, epsilons, by.listing is not None).items():
            whole = sum((epsilons[name] for name in names), Fraction(0))
            asked = ends_of(aggregates[first]).measurements(by, whole, self._reading)
            lowered.update(dict.fromkeys(names, asked))
            bound.update({name: replace(bound[name], ends=ends_of(bound[first])) for name in names})
        for name, each in aggregates.items():
            lowered[name] = lowered[name] or each.measurements(by, epsilons[name], self._reading)
        other = None if by.other is NO_OTHER else (by.other,)
        return Tabulation(by.plan, self._reading, by.traced, by.keys, other, by.listing, bound, epsilons, by, lowered)

    def __repr__(self) -> str:
        columns = ", ".join(self._groups.columns) or "nothing"
        return f"<Grouping by {columns}: ask with .agg(rows=wp.count(), epsilon=...)>"


def _check_lister(aggregates: Mapping[str, Aggregate]) -> None:
    many = len([aggregate for aggregate in aggregates.values() if aggregate.lists])
    if many != 1:
        raise PlanError(
            f"agg: groups are listed by their noisy count, so ask for one wp.count(), not {many}: "
            "agg(rows=wp.count(), epsilon=1)"
        )


#: What frames and csv files call the further columns of an aggregate.
SUFFIXES = ("_low", "_high", "_kind")


def _check_names(columns: list[str], aggregates: Iterable[str]) -> None:
    taken = set(columns)
    for name in aggregates:
        for shown in (name, *(name + suffix for suffix in SUFFIXES)):
            if shown in taken:
                raise PlanError(f"agg: the table would have two columns {shown!r}; give {name!r} another name")
            taken.add(shown)


def _shares(epsilon: Fraction, split: Split, names: list[str]) -> dict[str, Fraction]:
    """The epsilon of each aggregate: exact, and epsilon together."""
    if split is None:
        return dict.fromkeys(names, epsilon / len(names))
    if not isinstance(split, Mapping):
        raise PlanError(f'agg: split gives a share to each aggregate by name: split={{"{names[0]}": 1, ...}}')
    for name in split:
        if name not in names:
            raise PlanError(f"agg: split names {name!r}, which is no aggregate; {suggest(str(name), names)}")
    for name in names:
        if name not in split:
            raise PlanError(f"agg: split gives no share to {described(name)}, and each aggregate needs one")
    shares = {name: parse_epsilon(split[name]) for name in names}
    whole = sum(shares.values(), Fraction(0))
    return {name: epsilon * share / whole for name, share in shares.items()}


# What a saved table was asked for, read again: every step is built anew, as `by` and `agg` build it.


def tabulation_from_json(data: Any) -> Tabulation:
    """Read the data of `Tabulation.to_json`; any error for other data."""
    plan = format.plan_from_json(data["plan"])
    by = {name: _applied(_function(table, plan.type)) for name, table in data["by"].items()}
    groups = find_groups(plan, (), by, (), NO_OTHER)
    if by:
        type_ = groups.type
        keys: Any = None if data["keys"] is None else _presented(data["keys"], type_)
        other: Any = NO_OTHER
        if data["other"] is not None:
            (other,), keys = _presented(data["other"], type_), keys[:-1]
        listing = None if data["listing"] is None else listing_from_json(data["listing"], type_)
        if listing is None:
            groups = find_groups(plan, (), by, keys, other)
        else:
            groups = find_groups(plan, (), by, listing.domain, other, listing.above)
    epsilons = {name: format.ratio_from_json(epsilon) for name, epsilon in data["epsilons"].items()}
    aggregates = {name: _aggregate(written, plan.type) for name, written in data["aggregates"].items()}
    return Grouping(groups, str(data["reading"])).agg(epsilon=sum(epsilons.values()), split=epsilons, **aggregates)


def _aggregate(written: Any, type_: Type) -> Aggregate:
    made, given = AGGREGATES[written["name"]], written["arguments"]
    arguments: dict[str, Any] = {}
    for name, kind in made.parameters:
        if kind == "function":
            column = _function(given[name], type_)
            arguments[name] = _applied(column)
        elif kind == "keys":  # the column that they are values of comes first
            arguments[name] = _presented(given[name], column.type)
        elif kind == "numbers":
            arguments[name] = [*map(format.ratio_from_json, given[name])]
        else:
            read: Any = {"number": format.ratio_from_json, "integer": int}.get(kind, float)
            arguments[name] = read(given[name])
    return made(**arguments)


def _function(table: Any, type_: Type) -> Lambda:
    function = format.expression_from_json(table)
    if not isinstance(function, Lambda):
        raise TypeError
    check_function(function, (type_,))
    return function


def _applied(function: Lambda) -> UserFunction:
    """A function of a record, as a query takes it, on the record of tracing.

    `Table.load` compares the plans that come of it with those of the answers.
    """

    def applied(record: Symbol) -> Symbol:
        return Symbol(function.body)

    (parameter,) = function.parameters  # whose name is shown
    shown = inspect.Parameter(parameter.name, inspect.Parameter.POSITIONAL_ONLY)
    vars(applied)["__signature__"] = inspect.Signature([shown])
    return applied


def _presented(values: Any, type_: Type) -> list[Any]:
    return [presenter(type_)(format.value_from_json(value, type_)) for value in values]


Table.read_asked = staticmethod(tabulation_from_json)
