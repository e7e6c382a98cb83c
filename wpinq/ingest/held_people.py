"""From rows that say whose they are to what is held of them: cut by person first, then checked across people."""

from __future__ import annotations

from typing import Any

from wpinq.columns.flat import column_names
from wpinq.columns.held import HeldColumns, cleanly
from wpinq.errors import SourceRejected
from wpinq.expr.person import Person
from wpinq.expr.types import Type
from wpinq.ingest.canonical_rows import DUCKDB
from wpinq.ingest.people import asymmetric, counted, kept_of, weighed
from wpinq.ingest.promises import enforce, refuse_records
from wpinq.ingest.scan import Scan, held_rows

_KEPT = "kept_of_people"
_ONCE = "CAST(1 AS BIGINT)"
"""How often a row counts of a person, where repeats are dropped: what others have has no say before the cut."""
_TWICE = "CASE WHEN sum(m) OVER (PARTITION BY {}) > 1 THEN error('twice') ELSE m END AS m"
"""The same where they are refused: of what is left after the cut, of all people."""


def held_people(connection: Any, scan: Scan, type_: Type, person: Person, facts: frozenset[str]) -> HeldColumns:
    """The dataset of what counts of each person's rows; nothing says how many rows that leaves out.

    Parameters
    ----------
    connection : DuckDBPyConnection
        Where they are scanned.
    scan : Scan
        Of rows of `person.identified(type_)`. All of them must be fit, kept or not.
    type_ : Type
        The declared type of a row.
    person : Person
        Whose they are.
    facts : frozenset of str
        What the dataset, and what any people leave of it, must keep.
    """

    repeats, names = scan.repeats, ", ".join(column_names(type_))
    times = _ONCE if repeats == "drop" else "m"

    def dataset(rows: str) -> str:
        owned = f"SELECT *, {_whose(type_, person)} AS p FROM ({rows}) AS rows"
        each = f"SELECT p, {names}, {times} AS m FROM ({counted(owned, type_)}) AS counted"
        kept = kept_of(f"({each})", type_, person.at_most, DUCKDB)
        if repeats == "refuse":
            kept = f"SELECT p, {names}, {_TWICE.format(names)} FROM ({kept}) AS cut"
        if "symmetric" in facts:  # looked at once more by person, as it is held
            connection.execute(f"CREATE OR REPLACE TEMP TABLE {_KEPT} AS {kept}")
        together = weighed(_KEPT if "symmetric" in facts else f"({kept})", type_, person, DUCKDB)
        if repeats != "drop" or person.nested:
            return together
        return f"SELECT {names}, CAST(1 AS DOUBLE) AS w FROM ({together}) AS together"

    try:
        held, scan = held_rows(connection, scan, person.record(type_), dataset)
        if person.nested:
            _check_lists(connection, held, facts)
            return held
        enforce(connection, facts, held, scan)
        if "symmetric" in facts:
            reason = "(a, b) and (b, a) of different weight for one person, where the source declares symmetric"
            refuse_records(connection, asymmetric(_KEPT, type_), held, scan, reason)
        return held
    finally:
        cleanly(connection, f"DROP TABLE IF EXISTS {_KEPT}")


def _whose(type_: Type, person: Person) -> str:
    """The column of the ids, among those of the rows as they are offered."""
    place = person.id_field(type_)
    offered = person.identified(type_)
    before = offered.elements[:-1] if place is None else offered.elements[:place]
    return f"c{sum(len(column_names(element)) for element in before)}"


def _check_lists(connection: Any, held: HeldColumns, facts: frozenset[str]) -> None:
    with held.shown(connection, "checking") as table:
        found = connection.execute(f"SELECT 1 FROM {table} WHERE w <> 1 LIMIT 1").fetchall()
    if "unit_weights" in facts and found:
        raise SourceRejected("the data hold two people with the same rows, where the source declares unit_weights")
