"""Tables without a list of groups: paid for, and asked for public groups as one goes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from wpinq.errors import SessionError
from wpinq.measure.answers import Answers
from wpinq.tables.aggregates import Estimate
from wpinq.tables.released_table import Table, TableAsked


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

    def __init__(self, tabulation: TableAsked, held: Mapping[str, Sequence[Any]]) -> None:
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
