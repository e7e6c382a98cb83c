"""Released tables: a row a group, and for each aggregate its estimate, its interval, and what its numbers are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Protocol, Self

from wpinq.display.html import Cell, interval_bar, interval_scale, render
from wpinq.errors import AnswersError, SessionError
from wpinq.expr.nodes import Lambda, write_value
from wpinq.expr.types import FLOAT, STR, Type
from wpinq.expr.values import Value
from wpinq.measure.answer_rows import CONFIDENCE, aligned, arrow_type, arrow_value, polars_frame
from wpinq.measure.answers import STAMP, Answers, Saved
from wpinq.measure.bill import Bill
from wpinq.measure.measurement import check_domain
from wpinq.noise.epsilon import format_epsilon
from wpinq.plan.format import value_from_json, value_to_json
from wpinq.sinks.answer_kinds import RESCALED, WEIGHT, Kind
from wpinq.sinks.count_above import Listing
from wpinq.tables.aggregates import Aggregate, Estimate
from wpinq.tables.grouping import Groups

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


SHOWN_ROWS = 20
SHOWN_GROUPS = 50
"""The most groups of a notebook's page; the number of groups left out is shown."""
FORMAT, FORMAT_VERSION = "wpinq table", 1


class TableRequest(Protocol):
    """What a table answers: a `Tabulation`."""

    @property
    def columns(self) -> Mapping[str, Lambda]: ...

    @property
    def aggregates(self) -> Mapping[str, Aggregate]: ...

    @property
    def groups(self) -> Groups: ...

    @property
    def epsilon(self) -> Any: ...

    @property
    def listing(self) -> Listing | None: ...

    @property
    def lister(self) -> str | None: ...

    def kind(self, name: str) -> Kind: ...

    def bill(self) -> Bill: ...

    def to_json(self) -> dict[str, Any]: ...


@dataclass(frozen=True, eq=False, repr=False)
class Table(Saved):
    """Aggregates of groups that were released: frozen, public, noisy numbers only.

    `table[key]` is the row of a group, aggregate to `Estimate`; `to_pandas`, `to_polars` and `to_arrow` give all rows.

    Attributes
    ----------
    tabulation : Tabulation
        What was asked for.
    canonical : tuple
        The groups, in canonical form.
    answers : dict
        Aggregate to the Answers that it is read off: one of all groups, or one a group where it is a choice.

    Notes
    -----
    Privacy cost: none. A table holds nothing that was not released.
    """

    saved_as: ClassVar[str] = "a table"
    read_asked: ClassVar[Callable[[Any], Any]]
    """How what was asked is read again: put here by `saved`, which knows the steps that make a table."""
    tabulation: TableRequest
    canonical: tuple[Value, ...]
    answers: Mapping[str, Sequence[Answers]]

    @property
    def keys(self) -> tuple[Value, ...]:
        """The groups, in the order in which they were asked for."""
        return self.tabulation.groups.shown(self.canonical)

    @property
    def simulated(self) -> bool:
        """Whether these numbers come from `simulate`, which protects nothing."""
        return any(answers.simulated for held in self.answers.values() for answers in held)

    def __len__(self) -> int:
        return len(self.canonical)

    def __iter__(self) -> Iterator[Value]:
        return iter(self.keys)

    def __getitem__(self, key: object) -> dict[str, Estimate]:
        return self.row(key)

    def row(self, key: object = (), confidence: float = CONFIDENCE) -> dict[str, Estimate]:
        """The row of a group, aggregate to estimate; without a key, the one row of a table without groups."""
        groups = self.tabulation.groups
        (known,) = check_domain([key], groups.type) if groups.columns else (key,)
        if known not in self.canonical:
            listing = self.tabulation.listing
            if listing is not None and known in listing.domain:
                raise AnswersError(
                    f"the group {key!r} was not listed: its noisy count is at most {listing.above:.12g}; by(..., "
                    "keys=[...]) with the same aggregates, at the same epsilon, gives its row and costs nothing more"
                )
            raise AnswersError(f"the group {key!r} is not among those released; ask for it in keys=[...]")
        place = self.canonical.index(known)
        return {name: self._estimate(name, place, confidence) for name in self.answers}

    def _estimate(self, name: str, place: int, confidence: float) -> Estimate:
        return self.tabulation.aggregates[name].read(self.answers[name], place, confidence)

    def to_columns(self, confidence: float = CONFIDENCE) -> dict[str, list[Any]]:
        """The table as lists: the columns of the groups, then for each aggregate `name`, `name_low`, `name_high` and
        `name_kind`.

        Parameters
        ----------
        confidence : float
            Between 0 and 1: how probable it is that an interval holds the noiseless number, each by itself. A choice
            has none.
        """
        names = tuple(self.tabulation.columns)
        found: dict[str, list[Any]] = {}
        for i, name in enumerate(names):
            found[name] = [key if len(names) == 1 else key[i] for key in self.keys]
        for name in self.answers:
            cells = [self._estimate(name, place, confidence) for place in range(len(self))]
            found[name] = [cell.estimate for cell in cells]
            found[f"{name}_low"] = [cell.low for cell in cells]
            found[f"{name}_high"] = [cell.high for cell in cells]
            found[f"{name}_kind"] = [self._kind_words(name)] * len(cells)
        return found

    def _kind_words(self, name: str) -> str:
        """What the numbers of an aggregate are; of that which the groups were listed by, how they were."""
        kind, listing = self.tabulation.kind(name).name, self.tabulation.listing
        return kind if listing is None or name != self.tabulation.lister else f"{kind}, {listing.selection}"

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
        """The table as a pandas frame, a row a group; its columns are those of `to_columns`."""
        import pandas

        return pandas.DataFrame(self.to_columns(confidence))

    def to_polars(self, confidence: float = CONFIDENCE) -> polars.DataFrame:
        """The table as a polars frame, a row a group; its columns are those of `to_columns`."""
        return polars_frame(self.to_arrow(confidence))

    def to_arrow(self, confidence: float = CONFIDENCE) -> pyarrow.Table:
        """The table as an Arrow table, a row a group; its columns are those of `to_columns`."""
        import pyarrow

        held = self.to_columns(confidence)
        arrays = [
            pyarrow.array([arrow_value(value, type_) for value in column], type=arrow_type(type_))
            for column, type_ in zip(held.values(), self._types(), strict=True)
        ]
        return pyarrow.Table.from_arrays(arrays, names=list(held))

    def to_text(self, rows: int = SHOWN_ROWS, confidence: float = CONFIDENCE) -> str:
        """The table as text, with its intervals.

        Parameters
        ----------
        rows : int
            The most rows to show, 0 for all; how many are left out is said. What is no count says why below.
        confidence : float
            Of the intervals.
        """
        shown = len(self) if rows == 0 else min(rows, len(self))
        held = self.to_columns(confidence)
        columns = [[name, *map(write_value, held[name][:shown])] for name in self.tabulation.columns]
        for name in self.answers:
            pairs = zip(held[name], held[f"{name}_low"], held[f"{name}_high"], strict=True)
            cells = [_cell(*pair) for pair in list(pairs)[:shown]]
            columns.append([f"{name} ({self._kind_words(name)})", *cells])
        lines = aligned(zip(*columns, strict=True))
        if shown < len(self):
            lines.append(f"… {len(self) - shown} more groups")
        kinds = {name: self.tabulation.kind(name) for name in self.answers}
        lines += [f"{name}: {kind}" for name, kind in kinds.items() if kind.name in (WEIGHT, RESCALED)]
        lines += self._selected
        return "\n".join(f"  {line}" for line in lines)

    def to_json(self) -> dict[str, Any]:
        """The table as plain data: its columns, what was asked, and the answers that the columns are read off."""
        held = self.to_columns()
        values = {
            # a low end of minus infinity, which a listed weight may have, is null: JSON has no word for it
            name: [
                value_to_json(check_domain([None if value == -math.inf else value], type_)[0], type_)
                for value in held[name]
            ]
            for name, type_ in zip(held, self._types(), strict=True)
        }
        return {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "simulated": self.simulated,
            "epsilon": str(self.tabulation.epsilon),
            "columns": values,
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
        keys = [value_from_json(key, asked.key_type) for key in data["keys"]] if asked.columns else asked.keys
        held = {name: tuple(map(Answers.from_json, answers)) for name, answers in data["answers"].items()}
        asked.check_answers(canonical := tuple(keys or ()), held)
        return cls(asked, canonical, held)

    def _types(self) -> list[Type]:
        """The types of the columns of `to_columns`."""
        types = [traced.type for traced in self.tabulation.columns.values()]
        for name in self.answers:
            types += [self.tabulation.aggregates[name].estimate_type(), FLOAT, FLOAT, STR]
        return types

    @property
    def _head(self) -> str:
        stamp = f"{STAMP}; " if self.simulated else ""
        return f"Table: {stamp}{len(self)} rows, epsilon {format_epsilon(self.tabulation.epsilon)}, intervals of 95 %"

    def __repr__(self) -> str:
        return f"<{self._head}>\n{self.to_text()}"

    def _repr_html_(self) -> str:
        columns, groups = self.to_columns(), tuple(self.tabulation.columns)
        ends = {name: (columns[f"{name}_low"], columns[f"{name}_high"]) for name in self.answers}
        scales = {name: interval_scale((*low, *high)) for name, (low, high) in ends.items()}
        rows: list[list[Cell]] = []
        for i in range(min(SHOWN_GROUPS, len(self))):
            rows.append([write_value(columns[name][i]) for name in groups])
            for name, (low, high) in ends.items():
                rows[-1] += _interval_cells(columns[name][i], low[i], high[i], scales[name])
        heads = (text for name in ends for text in (name, f"{self._kind_words(name)}, 95 % interval"))
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


def _interval_cells(estimate: Any, low: float | None, high: float | None, scale: tuple[float, float]) -> list[Cell]:
    if low is None or high is None:
        return [write_value(estimate), ""]
    return [f"{estimate:.6g}", interval_bar(low, float(estimate), high, scale, f"{low:.6g} to {high:.6g}")]


def _cell(estimate: Value, low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return write_value(estimate)
    return f"{estimate:.6g} ({low:.6g} to {high:.6g})"


# --- tables without a list of groups, which are asked for groups after the release ------------------------------------


class OpenTable:
    """A table that was paid for, without a list of groups: it answers for groups as they are asked.

    Every group has an answer, whether or not the data hold it, so an OpenTable cannot say which there are. It
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
    Fraction(0, 1)
    >>> table.keys
    ('Oslo', 'Rome')
    """

    __slots__ = ("_held", "tabulation")
    __hash__ = None  # type: ignore[assignment]  # as a release: nothing may be looked up by it

    def __init__(self, tabulation: TableRequest, held: Mapping[str, Sequence[Any]]) -> None:
        self.tabulation = tabulation
        self._held = held

    def at(self, keys: Iterable[object]) -> Table:
        """The rows of public groups, as a table.

        Parameters
        ----------
        keys : iterable
            Groups; they must not be chosen by looking at the data.

        Notes
        -----
        Privacy cost: none beyond what the release cost.
        """
        groups = self.tabulation.groups
        canonical = groups.checked(keys)
        shown = groups.shown(canonical)
        answers = {}
        for name, (release,) in self._held.items():
            parts = getattr(self.tabulation.aggregates[name], "parts", ())
            listed = isinstance(release, Answers)  # by what the keys were listed: it is over them already
            answers[name] = (release if listed else release.at(groups.labels(shown, parts)),)
        return Table(self.tabulation, canonical, answers)

    def __getitem__(self, key: object) -> dict[str, Estimate]:
        return self.at([key])[key]

    def __repr__(self) -> str:
        return "<OpenTable: ask with open_table[key] or open_table.at(keys)>"

    def _refuse(self, *arguments: object) -> NoReturn:
        raise SessionError(
            "an OpenTable does not tell which groups there are, for that would reveal records: ask for public groups "
            "with open_table[key] or open_table.at(keys)"
        )

    __len__ = __iter__ = __contains__ = __reversed__ = __eq__ = __ne__ = __bool__ = _refuse

    def __reduce__(self) -> NoReturn:
        raise SessionError("an OpenTable belongs to its session and cannot be pickled; keep open_table.at(keys)")
