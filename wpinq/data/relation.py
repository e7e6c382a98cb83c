"""Offered rows as something that DuckDB scans, and what a scan gives: columns held for good, or a refusal.

In the good case the rows are read once: what is unfit ends the query. Only then are they read again, in order, for the
positions and the reasons.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, TypeVar

from wpinq.columns.arrow_rows import gathered
from wpinq.columns.duckdb_settings import in_order
from wpinq.columns.duplicates import repeats_often, varied_texts
from wpinq.columns.records import column_names
from wpinq.columns.storage import StoredColumns, cleanly, hold, hold_table
from wpinq.data.casts import UNFIT, Canonical, Unfit, any_of
from wpinq.data.rejection import SHOWN, TO_CONVERT, Tally
from wpinq.errors import SourceRejected
from wpinq.expr.types import Type

_T = TypeVar("_T")
STAGED = "staged"
"""The table that rows wait in which can be read only once, or come from Python."""


@dataclass(slots=True)
class Scan:
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
    first_rows : str
        Where first rows stand to be looked at, as `source`, if not there.
    in_arrow : bool
        Whether they are read from Arrow's memory, and are to be held there.
    table : pyarrow.Table, optional
        The same rows in memory that nothing else writes to, where their columns are those of the records as they are;
        none of them is unfit.
    number : str
        The position of a row from 0, as SQL.
    places : bool
        Whether positions in this scan are what messages give; else they are those of `anew`.
    found : Tally
        What was unfit before they came to stand here.
    unreadable : str
        What to say, and do, where DuckDB cannot read them.
    anew : callable, optional
        Another scan of the same rows, slower, for when this one fails.
    norm : Fraction, optional
        Of weighted rows, with the weight `w`, each record once.
    repeats : {"keep", "drop", "refuse"}
        What becomes of an edge that stood there before: it adds to the weight, or does not, or is unfit.
    noun : str
        What messages call one of them.
    first : int
        What messages count them from.
    conversions : callable
        What tells for each field, by its label, how to convert a column of another type.
    """

    what: str
    source: str
    leaves: Sequence[str]
    unfit: Sequence[Unfit] = ()
    checked: Sequence[str] = ()
    small: bool = True
    looks: bool = True
    first_rows: str = ""
    in_arrow: bool = False
    table: Any = field(default=None, repr=False)
    number: str = "row_number() OVER () - 1"
    places: bool = True
    found: Tally = field(default_factory=Tally)
    unreadable: str = "cannot be read, or there is too little memory or disk to hold it: read it yourself to see why"
    anew: Callable[[], Scan] | None = None
    norm: Fraction | None = None
    repeats: Literal["keep", "drop", "refuse"] = "keep"
    noun: str = "row"
    first: int = 0
    conversions: Callable[[], Mapping[str, str]] = field(default=dict, repr=False)  # it holds what was offered

    @classmethod
    def of_fields(cls, what: str, source: str, fields: Sequence[Canonical], labels: Sequence[str], **more: Any) -> Scan:
        """A scan of canonical fields; a reason names its field."""
        leaves = [leaf for canonical in fields for leaf in canonical.leaves]
        unfit = [
            (condition, f"{label}: {reason}")
            for canonical, label in zip(fields, labels, strict=True)
            for condition, reason in canonical.unfit
        ]
        checked = [leaf for canonical in fields for leaf in canonical.checked or ()]
        return cls(what, source, leaves, unfit, checked if len(checked) == len(leaves) else (), **more)

    @property
    def records(self) -> str:
        """The columns of the records, with their names."""
        return _named(self.leaves)

    @property
    def weight(self) -> str:
        """What equal rows weigh together, as SQL; an error where there must be none."""
        if self.repeats == "keep":
            return "count(*)::DOUBLE"
        return (
            "1::DOUBLE" if self.repeats == "drop" else "CASE WHEN count(*) > 1 THEN error('twice') ELSE 1::DOUBLE END"
        )

    def rows(self, source: str = "") -> str:
        """The query of the records, one a row of the source; an unfit row ends it with an error."""
        if self.checked:
            return f"SELECT {_named(self.checked)} FROM {source or self.source}"
        return f"SELECT {self.records} FROM {source or self.source} {self.fit}"

    def numbered(self) -> str:
        """The query of the positions and the records."""
        weight = ", w" if self.norm is not None else ""
        return f"SELECT {self.number} AS n, {self.records}{weight} FROM {self.source}"

    @property
    def fit(self) -> str:
        """The clause that ends a query with an error at a row that is unfit."""
        unfit = any_of([condition for condition, _ in self.unfit])
        return f"WHERE CASE WHEN {unfit} THEN {UNFIT} ELSE true END" if self.unfit else ""

    def refuse(self, found: Tally) -> None:
        """Refuse the rows, if anything was found unfit."""
        other = [reason for reason in found.reasons if any(words in reason for words in TO_CONVERT)]
        said = self.conversions() if other else {}
        advice = "".join(
            f" To convert {label}: {words}."
            for label, words in said.items()
            if any(reason.startswith((f"{label}:", f"{label} (")) for reason in other)
        )
        found.refuse(self.what, noun=self.noun, first=self.first, advice=advice)


def _named(leaves: Sequence[str]) -> str:
    return ", ".join(f"{leaf} AS c{i}" for i, leaf in enumerate(leaves))


def held_rows(
    connection: Any, scan: Scan, type_: Type, dataset: Callable[[str], str] | None = None
) -> tuple[StoredColumns, Scan]:
    """The records of a scan with their weights, held; and the scan that gave them.

    Each row weighs 1, unless told; `dataset` makes of the query of rows that of records with their weights.
    """
    return _taken(connection, scan, lambda scan: _held(connection, scan, type_, dataset))


def rows_in_order(connection: Any, scan: Scan) -> list[tuple[Any, ...]]:
    """The records of a scan of rows as they stand, which are flat; for what is public."""
    return _taken(connection, scan, lambda scan: _listed_rows(connection, scan))[0]


def _taken(connection: Any, scan: Scan, take: Callable[[Scan], _T | None]) -> tuple[_T, Scan]:
    """What can be taken of a scan whose rows are fit, or a refusal."""
    import duckdb

    scan.refuse(scan.found)
    taken = None
    with contextlib.suppress(duckdb.Error, OSError, MemoryError):  # what it says of a failure may quote rows
        taken = take(scan)
    if taken is None and scan.anew is not None:
        with contextlib.suppress(duckdb.Error, OSError, MemoryError):
            conversions, scan = scan.conversions, scan.anew()  # reads the rows, and may fail like the first reading
            scan.conversions = conversions
            taken = None if scan.found.reasons else take(scan)
    if taken is None:
        _refuse(connection, scan)
        raise SourceRejected(f"{scan.what} {scan.unreadable}")
    return taken, scan


def _held(connection: Any, scan: Scan, type_: Type, dataset: Callable[[str], str] | None) -> StoredColumns:
    names = ", ".join(column_names(type_))
    if dataset is not None:
        query = dataset(scan.rows())
    elif scan.in_arrow:
        table = gathered(connection, scan.rows()) if scan.table is None else scan.table
        return hold_table(connection, type_, table, scan.weight)
    elif scan.norm is None:
        rows = scan.rows()
        if not (scan.looks and repeats_often(connection, rows, column_names(type_))):
            first = scan.rows(scan.first_rows) if scan.looks or scan.first_rows else None
            varied = frozenset[str]() if first is None else varied_texts(connection, first, type_)
            rows = f"SELECT {names}, 1 AS w FROM ({rows})"
            return hold(connection, type_, rows, scan.small, repeated=scan.weight, varied=varied)
        query = f"SELECT {names}, {scan.weight} AS w FROM ({rows}) GROUP BY {names}"
    else:
        query = f"SELECT {names}, w FROM {scan.source} WHERE w <> 0"
    return hold(connection, type_, query, scan.small, scan.norm)


def _listed_rows(connection: Any, scan: Scan) -> list[tuple[Any, ...]] | None:
    names = ", ".join(f"c{i}" for i in range(len(scan.leaves)))
    again = "false" if scan.repeats == "keep" else f"row_number() OVER (PARTITION BY {names} ORDER BY n) > 1"
    rows = f"SELECT *, {again} AS again FROM ({scan.numbered()} {scan.fit})"
    with in_order(connection):
        columns = connection.execute(f"SELECT {names}, again FROM ({rows}) ORDER BY n").fetchnumpy()
    again = columns.pop("again")
    if again.any() and scan.repeats == "refuse":
        return None
    return list(zip(*(column[~again].tolist() for column in columns.values()), strict=True))


def _refuse(connection: Any, scan: Scan) -> None:
    """Say which rows are unfit, if any are."""
    import duckdb

    unfit = [*scan.unfit]
    source = scan.source
    if scan.repeats == "refuse":
        edge = ", ".join(scan.leaves[:2])  # whosever it is
        nth = f"row_number() OVER (PARTITION BY {edge} ORDER BY place) AS nth"
        source = f"(SELECT *, {nth} FROM (SELECT *, {scan.number} AS place FROM {source}))"
        unfit.append(("nth > 1", "an edge that stood there before (drop duplicates to leave it out)"))
    number = "place" if scan.repeats == "refuse" else scan.number
    cases = " ".join(f"WHEN {condition} THEN {i}" for i, (condition, _) in enumerate(unfit))
    if unfit:
        found = f"SELECT {number} AS n, CASE {cases} END AS reason FROM {source}"
        with contextlib.suppress(duckdb.Error), in_order(connection):
            for reason, times, first in listed(connection, f"SELECT * FROM ({found}) WHERE reason IS NOT NULL"):
                scan.found.add(first, {unfit[reason][1]: times})
    scan.refuse(scan.found)


def listed(connection: Any, found: str) -> Iterator[tuple[int, int, list[int]]]:
    """For each reason that a query gives beside positions (`n`, `reason`): how many positions, and the first ones."""
    columns = f"reason, count(*), min(n, {SHOWN}), min(n) AS least"
    rows = connection.execute(f"SELECT {columns} FROM ({found}) GROUP BY reason ORDER BY least").fetchall()
    return ((reason, number, first) for reason, number, first, _ in rows)


@contextlib.contextmanager
def staged(connection: Any) -> Iterator[None]:
    """A place for the staging table, which is dropped at the end."""
    try:
        yield
    finally:
        cleanly(connection, f"DROP TABLE IF EXISTS {STAGED}")
