"""Tabulations, as they are asked for, and the tables that they are released as.

A table has a row a group, and for each aggregate its estimate, its interval, and what its numbers are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

import numpy as np

from wpinq.display.html import Cell, interval_bar, interval_scale, render
from wpinq.display.plots import plain_text, plot_estimates, stamp
from wpinq.errors import AnswersError, SessionError
from wpinq.expr.nodes import Lambda, write_value
from wpinq.expr.types import Type
from wpinq.expr.values import Value
from wpinq.inference.checks import confidence_of
from wpinq.measure.answer_rows import CONFIDENCE, Framed, aligned, arrow_type, arrow_value
from wpinq.measure.answers import STAMP, Answers, Saved
from wpinq.measure.group import Compound, R, Unlisted
from wpinq.measure.measurement import Measurement, check_domain
from wpinq.noise.epsilon_text import format_epsilon
from wpinq.plan.format import expression_to_json, plan_to_json, value_from_json, value_to_json
from wpinq.plan.node import Node
from wpinq.runtime.public import public
from wpinq.sinks.answer_kinds import RESCALED, WEIGHT, Kind
from wpinq.sinks.choose import MOST_COMMON
from wpinq.sinks.count_above import Listing
from wpinq.tables.aggregates import Aggregate, Columns, Estimate
from wpinq.tables.grouping import Groups

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from matplotlib.axes import Axes


SHOWN_ROWS = 20
#: The most groups of a notebook's page; the number of groups left out is shown.
SHOWN_GROUPS = 50
FORMAT, FORMAT_VERSION = "wpinq table", 1


@public
@dataclass(frozen=True, eq=False, repr=False)
class Table(Saved, Framed):
    """A released table: noisy public aggregates of groups.

    `table[group]` is the row of a group: a mapping from aggregate to `Estimate`. `table["n"]` is the column of an
    aggregate: a mapping from group to `Estimate`, or the one `Estimate` of a table of all records. A group takes
    precedence over an aggregate of the same name. `to_pandas`, `to_polars` and `to_arrow` give all rows, and `plot`
    draws a column.

    Attributes
    ----------
    tabulation : Tabulation
        The request.
    canonical : tuple
        The groups, in canonical form.
    answers : dict
        From aggregate to its Answers.

    Notes
    -----
    Privacy cost: none. A table holds released values only.
    """

    saved_as: ClassVar[str] = "a table"
    #: How what was asked is read again: put here by `tabulation`, which knows the steps that make a table.
    read_asked: ClassVar[Callable[[Any], Any]]
    tabulation: Tabulation
    canonical: tuple[Value, ...]
    answers: Mapping[str, Sequence[Answers]]

    @property
    def keys(self) -> tuple[Value, ...]:
        """The groups, in the requested order."""
        return self.tabulation.groups.shown(self.canonical)

    @property
    def simulated(self) -> bool:
        """Whether the numbers come from `simulate`, which protects nothing."""
        return any(answers.simulated for held in self.answers.values() for answers in held)

    def __len__(self) -> int:
        return len(self.canonical)

    def __iter__(self) -> Iterator[Value]:
        return iter(self.keys)

    def __getitem__(self, key: object) -> Any:
        if not (isinstance(key, str) and key in self.tabulation.shown and key not in self.keys):
            return self.row(key)
        held = dict(zip(self.keys, self._cells(CONFIDENCE)[key], strict=True))
        return held if self.tabulation.columns else held[()]

    def _ipython_key_completions_(self) -> list[Any]:
        return [*self.tabulation.shown, *islice(self.keys, SHOWN_GROUPS)]

    def row(self, key: object = (), confidence: float = CONFIDENCE) -> dict[str, Estimate]:
        """The row of a group, from aggregate to estimate; without a key, the only row."""
        groups = self.tabulation.groups
        (known,) = check_domain([key], groups.type) if groups.columns else (key,)
        if known not in self.canonical:
            listing = self.tabulation.listing
            if listing is not None and known in listing.domain:
                raise AnswersError(
                    f"the group {key!r} was not listed: its noisy count is at most {listing.above:.12g}; by(..., "
                    "keys=[...]) gives its row and costs nothing more, the count in one table and the others in "
                    "another, each at the same epsilon"
                )
            raise AnswersError(f"the group {key!r} is not among those released; ask for it in keys=[...]")
        place = self.canonical.index(known)
        return {name: cell for name, (cell,) in self._cells(confidence, slice(place, place + 1)).items()}

    def _columns(self, confidence: float, groups: slice) -> Iterator[tuple[str, Sequence[Sequence[Any]]]]:
        """Each column of some groups: its name, its estimates, and the ends of its intervals."""
        confidence = confidence_of(confidence)
        for name, aggregate in self.tabulation.aggregates.items():
            left = iter(aggregate.columns(self.answers[name], confidence, groups))
            for suffix, shown in aggregate.shown().items():
                yield name + suffix, [next(left) for _ in range(3 if shown.has_interval else 1)]

    def _cells(self, confidence: float, groups: slice = slice(None)) -> dict[str, list[Estimate]]:
        """The estimates of each column, of all groups or of some."""
        found = self._columns(confidence, groups)
        return {name: [Estimate(*cell) for cell in zip(*map(_listed, held), strict=True)] for name, held in found}

    def to_columns(self, confidence: float = CONFIDENCE) -> dict[str, list[Any]]:
        """The table as lists: the columns of the groups, then the aggregates.

        Each aggregate has the columns `name`, `name_low` and `name_high`; a choice has only the first. `kinds` has the
        kind of number of each.

        Parameters
        ----------
        confidence : float
            Between 0 and 1: the probability that one interval contains the number without noise.
        """
        return {name: _listed(column) for name, column in self._all_columns(confidence).items()}

    def _all_columns(self, confidence: float) -> dict[str, Any]:
        """The same, with numbers in arrays where they are."""
        names, keys = tuple(self.tabulation.columns), self.keys
        fields: Any = [list(keys)] if len(names) == 1 else ([key[i] for key in keys] for i in range(len(names)))
        found: dict[str, Any] = dict(zip(names, fields, strict=True))
        for name, columns in self._columns(confidence, slice(None)):
            found |= {name + end: column for end, column in zip(("", "_low", "_high"), columns, strict=False)}
        return found

    @property
    def kinds(self) -> dict[str, str]:
        """The kind of number of each aggregate; for a listing, with its threshold."""
        kinds, listing = dict[str, str](), self.tabulation.listing
        for name, aggregate in self.tabulation.aggregates.items():
            kind = self.tabulation.kind(name).name
            kinds |= {name + end: kind if of.has_interval else MOST_COMMON for end, of in aggregate.shown().items()}
        if listing is not None and self.tabulation.lister is not None:
            kinds[self.tabulation.lister] += f", {listing.selection}"
        return kinds

    @property
    def _selected(self) -> list[str]:
        """Which intervals allow for how the groups were chosen."""
        listing, lister = self.tabulation.listing, self.tabulation.lister
        if listing is None:
            return []
        lines = [f"{lister}: {listing.words}; its intervals hold given that"]
        if others := ", ".join(name for name in self.answers if name != lister):
            lines.append(f"{others}: noise of its own, by which no group was chosen; the intervals hold as they are")
        return lines

    def to_pandas(self, confidence: float = CONFIDENCE) -> pandas.DataFrame:
        """The table as a pandas frame with the columns of `to_columns`, one row for each group.

        Its `attrs["kinds"]` are the `kinds` of the table.
        """
        import pandas

        frame = pandas.DataFrame(self._all_columns(confidence))
        frame.attrs["kinds"] = self.kinds
        return frame

    def to_arrow(self, confidence: float = CONFIDENCE) -> pyarrow.Table:
        """The table as an Arrow table with the columns of `to_columns`, one row for each group.

        The field of an aggregate has its kind as metadata.
        """
        import pyarrow

        types, kinds = self._types(), self.kinds
        arrays, fields = [], []
        for name, column in self.to_columns(confidence).items():
            arrays.append(pyarrow.array([arrow_value(value, types[name]) for value in column], arrow_type(types[name])))
            fields.append(pyarrow.field(name, arrays[-1].type, metadata={"kind": kinds[name]} if name in kinds else {}))
        return pyarrow.Table.from_arrays(arrays, schema=pyarrow.schema(fields))

    def plot(self, column: str | None = None, confidence: float = CONFIDENCE, axes: Axes | None = None) -> Axes:
        """A plot of one aggregate by group, with intervals.

        Parameters
        ----------
        column : str, optional
            The name of the aggregate; by default the first with intervals.
        confidence : float
            The confidence of the intervals.
        axes : matplotlib Axes, optional
            The axes to draw on; by default those of a new figure outside of pyplot.

        Returns
        -------
        matplotlib Axes
            `axes.figure.savefig(path)` writes it.

        Examples
        --------
        >>> import wpinq as wp
        >>> people = wp.source("people", city=str)
        >>> wanted = people.by("city", keys=["Oslo", "Rome"]).agg(n=wp.count(), epsilon=1)
        >>> wp.simulate(wanted, {"people": [("Oslo",)] * 90}, seed=1).plot().get_ylabel()
        'n: count, 95 % interval'
        """
        names = [name for name, shown in self.tabulation.shown.items() if shown.drawn]
        column = names[0] if column is None and names else column
        if column not in names:
            raise AnswersError(f"plot draws an aggregate with intervals: {', '.join(names) or 'this table has none'}")
        cells = self._cells(confidence)[column]
        held = [(key, cell) for key, cell in zip(self.keys, cells, strict=True) if cell.low is not None]
        if not held:
            raise AnswersError("there is no interval to draw: list groups above a lower threshold, or give keys")
        keys, drawn_cells = zip(*held, strict=True)
        title = plain_text(f"{column}: {self.kinds[column]}, {100 * confidence:.10g} % interval")
        by = plain_text(", ".join(self.tabulation.columns))
        drawn = plot_estimates(keys if by else None, drawn_cells, by or column, title, axes)
        drawn.set_title(f"epsilon {format_epsilon(self.tabulation.epsilon)}")
        stamp(drawn, self.simulated)
        return drawn

    def to_text(self, rows: int = SHOWN_ROWS, confidence: float = CONFIDENCE) -> str:
        """The table as text, with its intervals.

        Parameters
        ----------
        rows : int
            The most rows to show, 0 for all. The text gives the number of further rows, and the reasons for numbers
            that are not counts.
        confidence : float
            The confidence of the intervals.
        """
        shown = len(self) if rows <= 0 else min(rows, len(self))
        held, words = self.to_columns(confidence), self.kinds
        columns = [[name, *map(write_value, held[name][:shown])] for name in self.tabulation.columns]
        for name, cells in self._cells(confidence, slice(shown)).items():
            columns.append([f"{name} ({words[name]})", *map(str, cells)])
        lines = aligned(zip(*columns, strict=True))
        if shown < len(self):
            lines.append(f"… {len(self) - shown} more groups")
        kinds = {name: self.tabulation.kind(name) for name in self.answers}
        lines += [f"{name}: {kind}" for name, kind in kinds.items() if kind.name in (WEIGHT, RESCALED)]
        lines += self._selected
        return "\n".join(f"  {line}" for line in lines)

    def to_json(self) -> dict[str, Any]:
        """The table as plain data: its columns, the request, and the answers under the columns."""
        types = self._types()
        values = {
            # a low end of minus infinity, which a listed weight may have, is null: JSON has no word for it
            name: [
                value_to_json(check_domain([None if value == -math.inf else value], types[name])[0], types[name])
                for value in column
            ]
            for name, column in self.to_columns().items()
        }
        return {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "simulated": self.simulated,
            "epsilon": str(self.tabulation.epsilon),
            "columns": values,
            "kinds": self.kinds,
            "asked": self.tabulation.to_json(),
            "keys": [
                value_to_json(key, self.tabulation.groups.type) for key in self.canonical if self.tabulation.columns
            ],
            "answers": {name: [answers.to_json() for answers in held] for name, held in self.answers.items()},
        }

    @classmethod
    def _read(cls, data: Any) -> Self:
        if (data["format"], data["version"]) != (FORMAT, FORMAT_VERSION):
            raise AnswersError("this is not a file of a table that this version can read")
        asked = cls.read_asked(data["asked"])
        keys = [value_from_json(key, asked.groups.type) for key in data["keys"]] if asked.columns else asked.keys
        held = {name: tuple(map(Answers.from_json, answers)) for name, answers in data["answers"].items()}
        asked.check_answers(canonical := tuple(keys or ()), held)
        return cls(asked, canonical, held)

    def _types(self) -> dict[str, Type]:
        """The types of the columns of `to_columns`."""
        types = {name: traced.type for name, traced in self.tabulation.columns.items()}
        for name, shown in self.tabulation.shown.items():
            types[name] = types[f"{name}_low"] = types[f"{name}_high"] = shown.type
        return types

    @property
    def _head(self) -> str:
        size = f"{STAMP}; " * self.simulated + ("1 row" if len(self) == 1 else f"{len(self)} rows")
        return f"Table: {size}, epsilon {format_epsilon(self.tabulation.epsilon)}, intervals of 95 %"

    def __repr__(self) -> str:
        return f"<{self._head}>\n{self.to_text()}"

    def _repr_html_(self) -> str:
        columns, groups = self.to_columns(), tuple(self.tabulation.columns)
        none = [None] * len(self)  # of a choice
        ends = {
            name: (columns.get(f"{name}_low", none), columns.get(f"{name}_high", none)) if shown.drawn else (none, none)
            for name, shown in self.tabulation.shown.items()
        }
        scales = {name: interval_scale((*low, *high)) for name, (low, high) in ends.items()}
        rows: list[list[Cell]] = []
        for i in range(min(SHOWN_GROUPS, len(self))):
            rows.append([write_value(columns[name][i]) for name in groups])
            for name, (low, high) in ends.items():
                rows[-1] += _interval_cells(columns[name][i], low[i], high[i], scales[name])
        heads = (text for name in ends for text in (name, f"{self.kinds[name]}, 95 % interval"))
        left_out = len(self) - len(rows)
        more = [f"… {left_out} more groups: to_pandas() has all"] if left_out else []
        numbers = [len(groups) + 2 * i for i in range(len(ends))]
        return render(
            "answers.html",
            title=self._head,
            note="",
            names=[*groups, *heads],
            rows=rows,
            numbers=numbers,
            notes=[*more, *self._selected],
        )


def _listed(column: Any) -> list[Any]:
    return column.tolist() if isinstance(column, np.ndarray) else list(column)


def _interval_cells(estimate: Any, low: float | None, high: float | None, scale: tuple[float, float]) -> list[Cell]:
    if low is None or high is None:
        return [write_value(estimate), ""]
    return [f"{estimate:.6g}", interval_bar(low, float(estimate), high, scale, f"{low:.6g} to {high:.6g}")]


# --- tables without a list of groups, which are asked for groups after the release ------------------------------------


@public
class OpenTable(Unlisted):
    """A table without a list of groups, already paid for, that answers for any group.

    Every group has an answer, also without records in the data, so an OpenTable cannot list the existing groups. It
    belongs to its session, as a `Release` does.

    Examples
    --------
    >>> import wpinq as wp
    >>> people = wp.source("people", city=str, age=int)
    >>> with wp.Session() as session:
    ...     session.protect(people, [("Oslo", 30), ("Bergen", 40)], budget=1)
    ...     live = session.release(people.by("city").agg(rows=wp.count(), age=wp.mean("age", 0, 100), epsilon=1))
    ...     table = live.at(["Oslo", "Rome"])
    ...     session.remaining("people")
    0
    >>> table.keys
    ('Oslo', 'Rome')
    """

    __slots__ = ("_held", "tabulation")
    _unlisted = (
        "an OpenTable does not tell which groups there are, for that would reveal records: ask for public groups "
        "with open_table[key] or open_table.at(keys)"
    )

    def __init__(self, tabulation: Tabulation, held: Mapping[str, Sequence[Any]]) -> None:
        self.tabulation = tabulation
        self._held = held

    def at(self, keys: Iterable[object]) -> Table:
        """The rows of public groups, as a table.

        Parameters
        ----------
        keys : iterable
            Groups; never choose them from the data.

        Notes
        -----
        Privacy cost: none beyond that of the release.
        """
        groups = self.tabulation.groups
        canonical = groups.checked(keys)
        shown = groups.shown(canonical)
        answers = {}
        for name, held in self._held.items():
            labels = groups.labels(shown, self.tabulation.aggregates[name].parts)
            # by what the keys were listed is over them already
            answers[name] = tuple(one if isinstance(one, Answers) else one.at(labels) for one in held)
        return Table(self.tabulation, canonical, answers)

    def __getitem__(self, key: object) -> dict[str, Estimate]:
        return self.at([key]).row(key)

    def __repr__(self) -> str:
        return "<OpenTable: ask with open_table[key] or open_table.at(keys)>"

    def __reduce__(self) -> NoReturn:
        raise SessionError("an OpenTable belongs to its session and cannot be pickled; keep open_table.at(keys)")


# --- what is asked for -----------------------------------------------------------------------------------------------


@public
@dataclass(frozen=True, slots=True, repr=False)
class Tabulation(Compound[R]):
    """A request for aggregates of groups; a session releases it as one table under one bill.

    Tabulations are equal if their queries, groups, aggregates and epsilons are.

    Attributes
    ----------
    plan : Node
        The query whose records are grouped.
    reading : str
        The words for its weights, if the query has them.
    columns : dict
        From name to function, for each column of the groups.
    keys : tuple or None
        The groups, in canonical form; None if they are requested one by one, or listed.
    other : value or None
        The group of all other records, the last of the keys, as a tuple of one; otherwise None.
    listing : Listing or None
        The domain and the threshold of listed groups.
    aggregates : dict
        From name to aggregate.
    epsilons : dict
        From name to the epsilon of the aggregate.
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
        """The epsilon of all aggregates together."""
        return sum(self.epsilons.values(), Fraction(0))

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        return tuple(measurement for first in self.together for measurement in self.lowered[first])

    @property
    def together(self) -> dict[str, list[str]]:
        """The aggregates that one measurement serves, by the first of them."""
        found: dict[str, list[str]] = {}
        for name, each in self.aggregates.items():
            same = (first for first in found if each.ends is not None and self.aggregates[first].ends == each.ends)
            found.setdefault(next(same, name), []).append(name)
        return found

    @property
    def items(self) -> Mapping[str, Measurement]:
        """The measurements by title; one that serves several aggregates has the names of all."""
        found = {}
        for first, held in self.together.items():
            for number, measurement in enumerate(self.lowered[first]):
                found[", ".join(self._title(name, number) for name in held)] = measurement
        return found

    def _title(self, name: str, number: int) -> str:
        nth = f" {number + 1}" if len(self.lowered[name]) > 1 else ""
        return f"{name} ({self.aggregates[name].name}{nth})"

    @property
    def stand_ins(self) -> Mapping[str, tuple[Measurement, Kind]]:
        return {
            self._title(name, number): (aggregate.stand_in(measurement), self.kind(name))
            for name, aggregate in self.aggregates.items()
            for number, measurement in enumerate(self.lowered[name])
        }

    @property
    def shown(self) -> Columns:
        """The columns of the aggregates by name."""
        return {name + suffix: of for name, each in self.aggregates.items() for suffix, of in each.shown().items()}

    def scaled(self, epsilon: Callable[[Fraction], Fraction]) -> Tabulation:
        epsilons = {name: epsilon(share) for name, share in self.epsilons.items()}
        lowered = {}
        for names in self.together.values():
            whole = sum((epsilons[name] for name in names), Fraction(0))
            held = self.lowered[names[0]]
            held = tuple(replace(measurement, epsilon=whole / len(held)) for measurement in held)
            lowered.update(dict.fromkeys(names, held))
        return replace(self, epsilons=epsilons, lowered={name: lowered[name] for name in self.lowered})

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
        """The kind of number of an aggregate, from the plan and the declarations alone."""
        return self.aggregates[name].kind(self.lowered[name])

    def read(self, released: Sequence[Any]) -> Any:
        """The table, from the released answers of each measurement.

        It waits for keys where it has none.
        """
        left = iter(released)
        taken: dict[str, tuple[Any, ...]] = {}
        for first, names in self.together.items():
            taken.update(dict.fromkeys(names, tuple(next(left) for _ in self.lowered[first])))
        held = {name: taken[name] for name in self.lowered}
        if self.keys is not None:
            return Table(self, self.keys, held)
        open_table = OpenTable(self, held)
        if self.lister is None:
            return open_table
        (listed,) = held[self.lister]
        return open_table.at(listed.keys)

    def check_answers(self, keys: tuple[Value, ...], held: Mapping[str, Sequence[Answers]]) -> None:
        """Raise AnswersError for answers of other groups or aggregates."""
        for name, asked in self.lowered.items():
            found = [answers.measurement for answers in held.get(name, ())]
            domain = self.groups.labels(keys, self.aggregates[name].parts)
            if [(one.digest, one.domain) for one in found] != [(one.digest, domain) for one in asked]:
                raise AnswersError(f"these answers are not those of {name}: of another plan, epsilon or other groups")
        if set(held) != set(self.lowered):
            raise AnswersError("these answers are of other aggregates than the table")

    def to_json(self) -> dict[str, Any]:
        """The request as plain data, for `saved`."""
        type_ = self.groups.type
        listing = None if self.listing is None else self.listing.to_json(type_)
        keys = None if self.keys is None else [value_to_json(key, type_) for key in self.keys if self.columns]
        return {
            "plan": plan_to_json(self.plan),
            "reading": self.reading,
            "by": {name: expression_to_json(function) for name, function in self.columns.items()},
            "keys": keys,
            "other": None if self.other is None else [value_to_json(value, type_) for value in self.other],
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
        cells = [
            (
                name,
                f"{a.description}  ",
                format_epsilon(sum((m.epsilon for m in self.lowered[name]), Fraction(0))) + " together" * bool(a.ends),
            )
            for name, a in self.aggregates.items()
        ]
        yield from (f"  {line}" for line in aligned(cells))


def by_words(tabulation: Tabulation) -> str:
    """The columns of the groups, in words."""
    if not tabulation.columns:
        return "of all records"
    if tabulation.listing is not None:
        many = f"groups {tabulation.listing.words}"
    else:
        many = "groups requested one by one" if tabulation.keys is None else f"{len(tabulation.keys)} groups"
    return f"by {', '.join(tabulation.columns)}: {many}"
