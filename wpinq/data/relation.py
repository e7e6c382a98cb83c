"""Offered rows as something that DuckDB relations, and what a relation gives.

It gives stored columns, or a refusal: all at once, with the first positions, the reasons and no value. In the good case
the rows are read once: what is unfit ends the query. Only then are they read again, in order, for the positions and the
reasons.
"""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, NoReturn, TypeVar

from wpinq.columns.records import column_names
from wpinq.columns.storage import StoredColumns, gathered, repeats_often, store, store_table, varied_texts
from wpinq.columns.unlinked_file import cleanly, in_order
from wpinq.data.casts import UNFIT, Cast, Unfit, any_of
from wpinq.data.layout import Faults, Layout
from wpinq.errors import SourceRejected
from wpinq.expr.types import Type
from wpinq.runtime.signals import interruptible

_T = TypeVar("_T")

# The refusal of data.

#: How many positions a rejection names. How many there are in all is said as well.
SHOWN = 10

#: What reasons say of values of another type, or finer than the declared one is.
TO_CONVERT = (
    "that is not of type",
    ", where bool is declared",
    ", where date is declared",
    " decimals",
    "finer than microseconds",
)


@dataclass(slots=True)
class Tally:
    """Unfit rows, as they are found: the first positions, and how many there are of each reason."""

    first: list[int] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, positions: Iterable[int], reasons: Mapping[str, int]) -> None:
        """More of them: the first positions at least, and the numbers of all."""
        self.first = sorted({*self.first, *positions})[:SHOWN]
        self.reasons.update(reasons)

    def add_faults(self, faults: Faults, after: int = 0) -> None:
        """More of them, with positions counted from some row."""
        self.add((position + after for position in faults), Counter(faults.values()))

    def refuse(self, what: str, *, noun: str = "row", first: int = 0, advice: str = "") -> None:
        """Refuse `what`, if anything was found.

        Positions are printed counted from `first`; advice comes last.
        """
        count = self.reasons.total()
        if not count:
            return
        places = ", ".join(str(position + first) for position in self.first)
        more = f" and {count - len(self.first)} more" if count > len(self.first) else ""
        reasons = "; ".join(f"{reason} ({times})" for reason, times in self.reasons.most_common())
        amount = f"1 {noun} is" if count == 1 else f"{count} {noun}s are"
        raise SourceRejected(
            f"Cannot read {what}: {amount} unfit, at {noun} {places}{more}, counted from {first}. "
            f"Reasons: {reasons}. Nothing was stored: correct or leave out the {noun}s named here.{advice}",
            tuple(self.first),
        )


def reject(what: str, faults: Faults, *, noun: str = "row", first: int = 0) -> NoReturn:
    """Refuse `what` for these faults, with positions counted from `first`."""
    tally = Tally()
    tally.add_faults(faults)
    tally.refuse(what, noun=noun, first=first)
    raise AssertionError("nothing to refuse")


# Code of others that runs while data are read: its own words, of whatever kind, may quote values, and end here.


def computed(compute: Callable[[], _T], refusal: str) -> _T:
    """What it computes, or a refusal; what a handler of a signal raises meanwhile is none."""

    def found() -> _T:
        with contextlib.suppress(Exception):
            return compute()
        raise SourceRejected(refusal)

    return interruptible(found)


# Rows to select from.

#: The table that rows wait in which can be read only once, or come from Python.
STAGED = "staged"

UNREADABLE = "cannot be read, or there is too little memory or disk to hold it: read it yourself to see why"


@dataclass(slots=True)
class Relation:
    """Rows to select from.

    Attributes
    ----------
    what : str
        What messages call them all.
    source : str
        What stands after FROM.
    leaves : sequence of str
        The columns of the record, as SQL.
    unfit : sequence of Unfit
        What must not hold of a row, in the order of looking.
    checked : sequence of str
        The columns of the record, which end the query where a row is unfit; or nothing, where `unfit` has to be asked.
    small : bool
        Whether it is known that they fit into memory.
    looks : bool
        Whether the first rows can be looked at without computing others.
    in_arrow : bool
        Whether they are read from Arrow's memory, and are to be held there.
    table : pyarrow.Table, optional
        The same rows in memory that nothing else writes to, where their columns are those of the records as they are;
        none of them is unfit.
    number : str
        The position of a row from 0, as SQL.
    places : bool
        Whether positions in this relation are what messages give; else they are those of `anew`.
    found : Tally
        What was unfit before they came to stand here.
    unreadable : str
        What to say, and do, where DuckDB cannot read them.
    anew : callable, optional
        Another relation of the same rows, slower, for when this one fails.
    norm : Fraction, optional
        Of weighted rows, with the weight `w`, each record once.
    repeats : {"keep", "drop", "refuse"}
        What becomes of an edge that stood there before: it adds to the weight, or does not, or is unfit.
    noun : str
        What messages call one of them.
    first : int
        What messages count them from.
    advice : mapping of str to str
        For fields by their labels, the way from the given column to the declared type.
    """

    what: str
    source: str
    leaves: Sequence[str]
    unfit: Sequence[Unfit] = ()
    checked: Sequence[str] = ()
    small: bool = True
    looks: bool = True
    in_arrow: bool = False
    table: Any = field(default=None, repr=False)
    number: str = "row_number() OVER () - 1"
    places: bool = True
    found: Tally = field(default_factory=Tally)
    unreadable: str = UNREADABLE
    anew: Callable[[], Relation] | None = None
    norm: Fraction | None = None
    repeats: Literal["keep", "drop", "refuse"] = "keep"
    noun: str = "row"
    first: int = 0
    advice: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_fields(
        cls, what: str, source: str, fields: Sequence[Cast], layout: Layout, notes: Sequence[str] = (), **more: Any
    ) -> Relation:
        """A relation of canonical fields; a reason names its field."""
        leaves = [leaf for cast in fields for leaf in cast.leaves]
        labels = list(map(layout.label, range(len(fields))))
        unfit = [
            (condition, f"{label}{note}: {reason}")
            for cast, label, note in zip(fields, labels, notes or itertools.repeat(""), strict=False)
            for condition, reason in cast.unfit
        ]
        checked = [leaf for cast in fields for leaf in cast.checked]
        advice = {label: cast.advice for cast, label in zip(fields, labels, strict=True)}
        return cls(what, source, leaves, unfit, checked if len(checked) == len(leaves) else (), advice=advice, **more)

    @property
    def weight(self) -> str:
        """What equal rows weigh together, as SQL; an error where there must be none."""
        once = "CASE WHEN count(*) > 1 THEN error('twice') ELSE 1::DOUBLE END"
        return {"keep": "count(*)::DOUBLE", "drop": "1::DOUBLE", "refuse": once}[self.repeats]

    def rows(self) -> str:
        """The query of the records, one a row of the source; an unfit row ends it with an error."""
        if self.checked:
            return f"SELECT {_named(self.checked)} FROM {self.source}"
        return f"SELECT {_named(self.leaves)} FROM {self.source} {self.fit}"

    def numbered(self) -> str:
        """The query of the positions and the records."""
        weight = ", w" if self.norm is not None else ""
        return f"SELECT {self.number} AS n, {_named(self.leaves)}{weight} FROM {self.source}"

    @property
    def fit(self) -> str:
        """The clause that ends a query with an error at a row that is unfit."""
        unfit = any_of([condition for condition, _ in self.unfit])
        return f"WHERE CASE WHEN {unfit} THEN {UNFIT} ELSE true END" if self.unfit else ""

    def refuse(self, found: Tally) -> None:
        """Refuse the rows, if anything was found unfit."""
        other = [reason for reason in found.reasons if any(words in reason for words in TO_CONVERT)]
        advice = "".join(
            f" To convert {label}: {words}."
            for label, words in self.advice.items()
            if words and any(reason.startswith((f"{label}:", f"{label} (")) for reason in other)
        )
        found.refuse(self.what, noun=self.noun, first=self.first, advice=advice)


def _named(leaves: Sequence[str]) -> str:
    return ", ".join(f"{leaf} AS c{i}" for i, leaf in enumerate(leaves))


def stored_rows(
    connection: Any, relation: Relation, type_: Type, dataset: Callable[[str], str] | None = None
) -> tuple[StoredColumns, Relation]:
    """The records of a relation with their weights, held; and the relation that gave them.

    Each row weighs 1, unless told; `dataset` makes of the query of rows that of records with their weights.
    """
    return _taken(connection, relation, lambda relation: _stored(connection, relation, type_, dataset))


def table_of_rows(connection: Any, relation: Relation, table: str, columns: str) -> None:
    """Make a temporary table of some columns of a relation's rows, all fit."""

    def take(relation: Relation) -> bool:
        cleanly(connection.execute, f"DROP TABLE IF EXISTS {table}")
        connection.execute(f"CREATE TEMP TABLE {table} AS SELECT {columns} FROM ({relation.rows()}) AS rows")
        return True

    _taken(connection, relation, take)


def rows_in_order(connection: Any, relation: Relation) -> list[tuple[Any, ...]]:
    """The records of a relation of rows as they stand, which are flat; for what is public."""
    return _taken(connection, relation, lambda relation: _listed_rows(connection, relation))[0]


def _taken(connection: Any, relation: Relation, take: Callable[[Relation], _T | None]) -> tuple[_T, Relation]:
    """What can be taken of a relation whose rows are fit, or a refusal."""
    import duckdb

    relation.refuse(relation.found)
    taken = None
    with contextlib.suppress(duckdb.Error, OSError, MemoryError):  # what it says of a failure may quote rows
        taken = take(relation)
    if taken is None and relation.anew is not None:
        with contextlib.suppress(duckdb.Error, OSError, MemoryError):
            relation = relation.anew()  # reads the rows, and may fail like the first reading
            taken = None if relation.found.reasons else take(relation)
    if taken is None:
        _refuse(connection, relation)
        raise SourceRejected(f"{relation.what} {relation.unreadable}")
    return taken, relation


def _stored(connection: Any, relation: Relation, type_: Type, dataset: Callable[[str], str] | None) -> StoredColumns:
    names = ", ".join(column_names(type_))
    if dataset is not None:
        query = dataset(relation.rows())
    elif relation.in_arrow:
        table = gathered(connection, relation.rows()) if relation.table is None else relation.table
        return store_table(connection, type_, table, relation.weight)
    elif relation.norm is None:
        rows = relation.rows()
        if not (relation.looks and repeats_often(connection, rows, column_names(type_))):
            varied = varied_texts(connection, rows, type_) if relation.looks else frozenset[str]()
            rows = f"SELECT {names}, 1 AS w FROM ({rows})"
            return store(connection, type_, rows, relation.small, repeated=relation.weight, varied=varied)
        query = f"SELECT {names}, {relation.weight} AS w FROM ({rows}) GROUP BY {names}"
    else:
        query = f"SELECT {names}, w FROM {relation.source} WHERE w <> 0"
    return store(connection, type_, query, relation.small, relation.norm)


def _listed_rows(connection: Any, relation: Relation) -> list[tuple[Any, ...]] | None:
    names = ", ".join(f"c{i}" for i in range(len(relation.leaves)))
    again = "false" if relation.repeats == "keep" else f"row_number() OVER (PARTITION BY {names} ORDER BY n) > 1"
    rows = f"SELECT *, {again} AS again FROM ({relation.numbered()} {relation.fit})"
    with in_order(connection):
        columns = connection.execute(f"SELECT {names}, again FROM ({rows}) ORDER BY n").fetchnumpy()
    again = columns.pop("again")
    if again.any() and relation.repeats == "refuse":
        return None
    return list(zip(*(column[~again].tolist() for column in columns.values()), strict=True))


def _refuse(connection: Any, relation: Relation) -> None:
    """Say which rows are unfit, if any are."""
    import duckdb

    unfit = [*relation.unfit]
    source = relation.source
    if relation.repeats == "refuse":
        edge = ", ".join(relation.leaves[:2])  # whosever it is
        nth = f"row_number() OVER (PARTITION BY {edge} ORDER BY place) AS nth"
        source = f"(SELECT *, {nth} FROM (SELECT *, {relation.number} AS place FROM {source}))"
        again = f"nth > 1 AND {relation.leaves[0]} IS NOT NULL"  # a line without an edge has null for it
        unfit.append((again, "an edge that stood there before (drop duplicates to leave it out)"))
    number = "place" if relation.repeats == "refuse" else relation.number
    cases = " ".join(f"WHEN {condition} THEN {i}" for i, (condition, _) in enumerate(unfit))
    if unfit:
        found = f"SELECT {number} AS n, CASE {cases} END AS reason FROM {source}"
        with contextlib.suppress(duckdb.Error), in_order(connection):
            for reason, times, first in listed(connection, f"SELECT * FROM ({found}) WHERE reason IS NOT NULL"):
                relation.found.add(first, {unfit[reason][1]: times})
    relation.refuse(relation.found)


def listed(connection: Any, found: str) -> Iterator[tuple[int, int, list[int]]]:
    """The number of positions and the first ones for each reason in a query (`n`, `reason`)."""
    columns = f"reason, count(*), min(n, {SHOWN}), min(n) AS least"
    rows = connection.execute(f"SELECT {columns} FROM ({found}) GROUP BY reason ORDER BY least").fetchall()
    return ((reason, number, first) for reason, number, first, _ in rows)


@contextlib.contextmanager
def staged(connection: Any) -> Iterator[None]:
    """A place for the staging table, which is dropped at the end."""
    try:
        yield
    finally:
        cleanly(connection.execute, f"DROP TABLE IF EXISTS {STAGED}")
