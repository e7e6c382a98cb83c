"""Tabulations: aggregates by group as they are asked for, with one epsilon and the share of each. Pure data."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from wpinq.errors import AnswersError, PlanError, suggest
from wpinq.expr.nodes import Lambda, check_function
from wpinq.expr.trace import RecordFunction, Symbol, UserFunction
from wpinq.expr.types import Type
from wpinq.expr.values import Value, presenter
from wpinq.measure.answers import Answers
from wpinq.measure.group import Compound
from wpinq.measure.measurement import Measurement
from wpinq.noise.epsilon import format_epsilon, parse_epsilon
from wpinq.plan import format
from wpinq.plan.node import Node, Planned
from wpinq.sinks.answer_kinds import Kind
from wpinq.sinks.count_above import Listing, listing_from_json
from wpinq.tables.additive import AGGREGATES
from wpinq.tables.aggregates import Aggregate
from wpinq.tables.grouping import NO_OTHER, GroupKeys, Groups, find_groups
from wpinq.tables.released import OpenTable
from wpinq.tables.released import Table as Table


@dataclass(frozen=True, slots=True, repr=False)
class Tabulation(Compound):
    """Aggregates of groups, asked for together: what a session releases as one table, under one bill.

    Equal where what is asked for is: the query, the groups, the aggregates, and the epsilon of each.

    Attributes
    ----------
    plan : Node
        The query whose records are grouped.
    reading : str
        How to read its weights, where the query knows.
    columns : dict
        Name to function, for each column that they are grouped by.
    keys : tuple or None
        The groups, in canonical form; None where they are asked for one by one, or listed.
    other : value or None
        The group of all other records, the last of the keys, as a tuple of one; None where there is none.
    listing : Listing or None
        Out of which domain the groups are listed, and above which noisy count.
    aggregates : dict
        Name to aggregate.
    epsilons : dict
        Name to the epsilon that the aggregate gets.
    """

    plan: Node
    reading: str
    columns: dict[str, Lambda]
    keys: tuple[Value, ...] | None
    other: tuple[Value] | None
    listing: Listing | None
    aggregates: dict[str, Aggregate]
    epsilons: dict[str, Fraction]
    groups: Groups = field(compare=False)
    lowered: dict[str, tuple[Measurement, ...]] = field(compare=False)

    @property
    def epsilon(self) -> Fraction:
        """Of all aggregates together."""
        return sum(self.epsilons.values(), Fraction(0))

    @property
    def key_type(self) -> Type:
        """Of a key: that of the column, a record where there are several."""
        return self.groups.type

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        return tuple(measurement for held in self.lowered.values() for measurement in held)

    @property
    def items(self) -> Mapping[str, Measurement]:
        """One measurement an aggregate: the parts of a partition cost the largest of them, and all are alike."""
        found = {}
        for name, (first, *others) in self.lowered.items():
            each = f", in each of {len(others) + 1} groups" if others else ""
            found[f"{name} ({self.aggregates[name].name}{each})"] = first
        return found

    @property
    def stand_ins(self) -> Mapping[str, tuple[Measurement, Kind]]:
        titled = zip(self.items.items(), self.aggregates.items(), strict=True)
        return {title: (asked.stand_in(first), self.kind(name)) for (title, first), (name, asked) in titled}

    def scaled(self, epsilon: Callable[[Fraction], Fraction]) -> Tabulation:
        epsilons = {name: epsilon(share) for name, share in self.epsilons.items()}
        lowered = {
            name: tuple(replace(measurement, epsilon=epsilons[name]) for measurement in held)
            for name, held in self.lowered.items()
        }
        return replace(self, epsilons=epsilons, lowered=lowered)

    def over(self, redeclared: Callable[[Node], Node]) -> Tabulation:
        """The same over the sources of other plans."""
        lowered = {
            name: tuple(replace(measurement, plan=redeclared(measurement.plan)) for measurement in held)
            for name, held in self.lowered.items()
        }
        plan = redeclared(self.plan)
        return replace(self, plan=plan, groups=replace(self.groups, plan=plan), lowered=lowered)

    @property
    def lister(self) -> str | None:
        """The aggregate that the groups are listed by."""
        return None if self.listing is None else next(name for name, one in self.aggregates.items() if one.lists)

    def kind(self, name: str) -> Kind:
        """What the numbers of an aggregate are: from the plan and the declarations, never from data."""
        return self.aggregates[name].kind(self.lowered[name])

    def read(self, released: Sequence[Any]) -> Table | OpenTable:
        """The table, from what was released for each measurement; one that waits for keys where it has none."""
        left = iter(released)
        held = {name: tuple(next(left) for _ in asked) for name, asked in self.lowered.items()}
        if self.keys is not None:
            return Table(self, self.keys, held)
        open_table = OpenTable(self, held)
        if self.lister is None:
            return open_table
        (listed,) = held[self.lister]
        return open_table.at(listed.keys)

    def check_answers(self, keys: tuple[Value, ...], held: Mapping[str, Sequence[Answers]]) -> None:
        """Refuse, with AnswersError, answers that are not those of these groups and aggregates."""
        for name, asked in self.lowered.items():
            found = [answers.measurement for answers in held.get(name, ())]
            domains = self.aggregates[name].domains(self.groups, keys, asked)
            same = [(one.digest, domain) for one, domain in zip(asked, domains, strict=True)]
            if [(one.digest, one.domain) for one in found] != same:
                raise AnswersError(f"these answers are not those of {name}: of another plan, epsilon or other groups")
        if set(held) != set(self.lowered):
            raise AnswersError("these answers are of other aggregates than the table")

    def to_json(self) -> dict[str, Any]:
        """What is asked for as plain data, for `saved`."""
        type_ = self.groups.type
        listing = None if self.listing is None else self.listing.to_json(type_)
        keys = None if self.keys is None else [format.value_to_json(key, type_) for key in self.keys if self.columns]
        return {
            "plan": format.plan_to_json(self.plan),
            "reading": self.reading,
            "by": {name: format.expression_to_json(function) for name, function in self.columns.items()},
            "keys": keys,
            "other": None if self.other is None else [format.value_to_json(value, type_) for value in self.other],
            "listing": listing,
            "aggregates": {name: aggregate.to_json() for name, aggregate in self.aggregates.items()},
            "epsilons": {name: str(epsilon) for name, epsilon in self.epsilons.items()},
        }

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def __repr__(self) -> str:
        return f"<{self}>"

    def _lines(self) -> Iterator[str]:
        yield f"Tabulation {by_words(self)}, epsilon {format_epsilon(self.epsilon)}"
        cells = [(name, a.description, format_epsilon(self.epsilons[name])) for name, a in self.aggregates.items()]
        widths = [max(len(row[i]) for row in cells) for i in range(2)]
        for name, words, epsilon in cells:
            yield f"  {name:<{widths[0]}}  {words:<{widths[1]}}    {epsilon}"


def by_words(tabulation: Tabulation) -> str:
    """What it is grouped by."""
    if not tabulation.columns:
        return "of all records"
    if tabulation.listing is not None:
        many = f"groups {tabulation.listing.words}"
    else:
        many = "groups asked for one by one" if tabulation.keys is None else f"{len(tabulation.keys)} groups"
    return f"by {', '.join(tabulation.columns)}: {many}"


# --- groupings, from which `agg` makes a tabulation -------------------------------------------------------------------

Split = Mapping[str, object] | None
"""The share of epsilon that each aggregate gets, as numbers in proportion; equal ones unless given."""


class Grouping:
    """The records of a query in groups: what `by` gives."""

    __slots__ = ("_groups", "_reading")

    def __init__(self, groups: Groups, reading: str) -> None:
        self._groups = groups
        self._reading = reading

    def agg(self, *unnamed: object, epsilon: object, split: Split = None, **aggregates: Aggregate) -> Tabulation:
        """Aggregates of each group, by the names that they are to have.

        Parameters
        ----------
        epsilon : number
            More than 0: what all of them cost together, for each use of a source and each unit of its weight.
        split : mapping, optional
            The share of each, as numbers in proportion, `{"rows": 1, "salary": 3}`: the larger, the less noise. Equal
            shares unless given.
        **aggregates : Aggregate
            `wp.count()`, `wp.sum`, `wp.mean`, `wp.median`, `wp.quantile`, `wp.most_common`, `wp.count_distinct`.

        Returns
        -------
        Tabulation
            What a session releases as a table, a row a group.

        Raises
        ------
        PlanError
            When there is no such column, a name is taken, the split does not name each aggregate, or a choice is asked
            of groups that are asked for one by one or listed; or groups are to be listed, and not by one count.

        Notes
        -----
        Privacy cost: epsilon times the uses of each source times its unit weight, once, however many groups there are:
        a record is in one group.

        Examples
        --------
        >>> import wpinq as wp
        >>> people = wp.source("people", city=str, age=int, salary=float, unit="one person")
        >>> wanted = people.by("city", keys=["Oslo", "Bergen"]).agg(
        ...     rows=wp.count(), salary=wp.mean("salary", 0, 200_000), epsilon=1, split={"rows": 1, "salary": 3}
        ... )
        >>> print(wanted)
        Tabulation by city: 2 groups, epsilon 1
          rows    count                                     0.25
          salary  mean of salary, clamped to 0 to 200000    0.75
        """
        if unnamed:
            raise PlanError("agg: give each aggregate the name of its column: agg(rows=wp.count(), epsilon=1)")
        for name, aggregate in aggregates.items():
            if not isinstance(aggregate, Aggregate):
                raise PlanError(
                    f"agg: {name} is no aggregate: write wp.count(), wp.mean(column, lower, upper), "
                    "wp.median(column, candidates) and the like"
                )
        if not aggregates:
            raise PlanError("agg: there is nothing to ask for: agg(rows=wp.count(), epsilon=1)")
        groups = self._groups
        _check_names([*groups.columns], [*aggregates])
        if groups.listing is not None:
            _check_lister(aggregates)
        bound = {name: aggregate.bound(groups.plan.type) for name, aggregate in aggregates.items()}
        epsilons = _shares(parse_epsilon(epsilon), split, list(aggregates))
        lowered = {
            name: aggregate.measurements(groups, epsilons[name], self._reading)
            for name, aggregate in aggregates.items()
        }
        other = None if groups.other is NO_OTHER else (groups.other,)
        return Tabulation(
            groups.plan,
            self._reading,
            groups.traced,
            groups.keys,
            other,
            groups.listing,
            bound,
            epsilons,
            groups,
            lowered,
        )

    def __repr__(self) -> str:
        return (
            f"<Grouping by {', '.join(self._groups.names) or 'nothing'}: ask with .agg(rows=wp.count(), epsilon=...)>"
        )


def grouping(
    query: Planned,
    columns: Sequence[RecordFunction],
    named: Mapping[str, RecordFunction],
    keys: GroupKeys,
    other: object,
    above: object = None,
) -> Grouping:
    """The records of a query in groups: see `Query.by`."""
    return Grouping(find_groups(query.plan, columns, named, keys, other, above), getattr(query, "reading", ""))


def _check_lister(aggregates: Mapping[str, Aggregate]) -> None:
    many = len([aggregate for aggregate in aggregates.values() if aggregate.lists])
    if many != 1:
        raise PlanError(
            f"agg: groups are listed by their noisy count, so ask for one wp.count(), not {many}: "
            "agg(rows=wp.count(), epsilon=1)"
        )


SUFFIXES = ("_low", "_high", "_kind")
"""What a frame calls the further columns of an aggregate."""


def _check_names(columns: list[str], aggregates: list[str]) -> None:
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
            raise PlanError(f"agg: split gives no share to {name!r}, and each aggregate needs one")
    shares = {name: parse_epsilon(split[name]) for name in names}
    whole = sum(shares.values(), Fraction(0))
    return {name: epsilon * share / whole for name, share in shares.items()}


# What a saved table was asked for, read again: every step is built anew, as `by` and `agg` build it.


def tabulation_from_json(data: Any) -> Tabulation:
    """What `Tabulation.to_json` wrote; any error where the data are something else."""
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
        else:
            arguments[name] = format.ratio_from_json(given[name]) if kind == "number" else float(given[name])
    return made(**arguments)


def _function(table: Any, type_: Type) -> Lambda:
    function = format.expression_from_json(table)
    if not isinstance(function, Lambda):
        raise TypeError
    check_function(function, (type_,))
    return function


def _applied(function: Lambda) -> UserFunction:
    """A function of a record, as a query takes it: its record is the one that queries are traced with.

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
