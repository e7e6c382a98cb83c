"""Offered rows as something that DuckDB scans, and what a scan gives: columns held for good, or a refusal.

In the good case the rows are read once: what is unfit ends the query. Only then are they read again, in order, for the
positions and the reasons.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from wpinq.columns.flat import column_names
from wpinq.columns.held import HeldColumns, cleanly, hold
from wpinq.errors import SourceRejected
from wpinq.expr.types import Type
from wpinq.ingest.canonical import UNFIT, Canonical, Unfit, any_of
from wpinq.ingest.rejection import SHOWN, Tally

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
    weight : str
        What equal rows weigh together, as SQL.
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
    """

    what: str
    source: str
    leaves: Sequence[str]
    unfit: Sequence[Unfit] = ()
    checked: Sequence[str] = ()
    small: bool = True
    weight: str = "count(*)::DOUBLE"
    number: str = "row_number() OVER () - 1"
    places: bool = True
    found: Tally = field(default_factory=Tally)
    unreadable: str = "cannot be read: read it yourself to see why"
    anew: Callable[[], Scan] | None = None
    norm: Fraction | None = None

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

    def rows(self) -> str:
        """The query of the records, one a row of the source; an unfit row ends it with an error."""
        if self.checked:
            return f"SELECT {_named(self.checked)} FROM {self.source}"
        unfit = any_of([condition for condition, _ in self.unfit])
        fit = f" WHERE CASE WHEN {unfit} THEN {UNFIT} ELSE true END" if self.unfit else ""
        return f"SELECT {self.records} FROM {self.source}{fit}"

    def numbered(self) -> str:
        """The query of the positions and the records."""
        weight = ", w" if self.norm is not None else ""
        return f"SELECT {self.number} AS n, {self.records}{weight} FROM {self.source}"


def _named(leaves: Sequence[str]) -> str:
    return ", ".join(f"{leaf} AS c{i}" for i, leaf in enumerate(leaves))


def held_rows(
    connection: Any, scan: Scan, type_: Type, noun: str, dataset: Callable[[str], str] | None = None
) -> tuple[HeldColumns, Scan]:
    """The records of a scan with their weights, held; and the scan that gave them.

    Each row weighs 1, unless told; `dataset` makes of the query of rows that of records with their weights.
    """
    scan.found.refuse(scan.what, noun=noun)
    held = _attempt(connection, scan, type_, dataset)
    if held is None and scan.anew is not None:
        scan = scan.anew()
        held = None if scan.found.reasons else _attempt(connection, scan, type_, dataset)
    if held is None:
        _refuse(connection, scan, noun)
        raise SourceRejected(f"{scan.what} {scan.unreadable}")
    return held, scan


def _attempt(connection: Any, scan: Scan, type_: Type, dataset: Callable[[str], str] | None) -> HeldColumns | None:
    """The records, or None where DuckDB fails; what it says of a failure may quote rows, and ends here."""
    import duckdb

    names = ", ".join(column_names(type_))
    held = None
    with contextlib.suppress(duckdb.Error, OSError, MemoryError):
        if dataset is not None:
            query = dataset(scan.rows())
        elif scan.norm is None:
            query = f"SELECT {names}, {scan.weight} AS w FROM ({scan.rows()}) GROUP BY {names}"
        else:
            query = f"SELECT {names}, w FROM {scan.source} WHERE w <> 0"
        held = hold(connection, type_, query, scan.small, scan.norm)
    return held


def _refuse(connection: Any, scan: Scan, noun: str) -> None:
    """Say which rows are unfit, if any are."""
    import duckdb

    reasons = [reason for _, reason in scan.unfit]
    cases = " ".join(f"WHEN {condition} THEN {i}" for i, (condition, _) in enumerate(scan.unfit))
    if scan.unfit:
        found = f"SELECT {scan.number} AS n, CASE {cases} END AS reason FROM {scan.source}"
        with contextlib.suppress(duckdb.Error), in_order(connection):
            for reason, number, first in listed(connection, f"SELECT * FROM ({found}) WHERE reason IS NOT NULL"):
                scan.found.add(first, {reasons[reason]: number})
    scan.found.refuse(scan.what, noun=noun)


def listed(connection: Any, found: str) -> Iterator[tuple[int, int, list[int]]]:
    """For each reason that a query gives beside positions (`n`, `reason`): how many positions, and the first ones."""
    columns = f"reason, count(*), min(n, {SHOWN}), min(n) AS least"
    rows = connection.execute(f"SELECT {columns} FROM ({found}) GROUP BY reason ORDER BY least").fetchall()
    return ((reason, number, first) for reason, number, first, _ in rows)


@contextlib.contextmanager
def in_order(connection: Any) -> Iterator[None]:
    """Have rows come in the order in which they stand, which costs time."""
    ((setting,),) = connection.execute("SELECT current_setting('preserve_insertion_order')").fetchall()
    connection.execute("SET preserve_insertion_order = true")
    try:
        yield
    finally:
        cleanly(connection, f"SET preserve_insertion_order = {str(setting).lower()}")


@contextlib.contextmanager
def staged(connection: Any) -> Iterator[None]:
    """A place for the staging table, which is dropped at the end."""
    try:
        yield
    finally:
        cleanly(connection, f"DROP TABLE IF EXISTS {STAGED}")
