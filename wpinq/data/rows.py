"""Rows and mappings that are already Python objects: checked piece by piece, and staged as columns."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from operator import itemgetter
from typing import Any

from wpinq.columns.duckdb_settings import in_order
from wpinq.columns.records import column_names, create, insert
from wpinq.data.consumable import begin, check_unread
from wpinq.data.facts import largest_float, norm
from wpinq.data.foreign_errors import computed
from wpinq.data.layout import OWN_CODE_FAILS, ColumnValues, Layout, by_name, plain_row, unwrap
from wpinq.data.rejection import Faults, Tally
from wpinq.data.relation import STAGED, Scan, listed
from wpinq.errors import SourceRejected
from wpinq.expr.declarations import ID
from wpinq.expr.types import TupleOf, Type
from wpinq.expr.values import UnfitValue

_PIECE = 100_000
_FAILS = "what gives the rows fails: ask it for all of them yourself to see why"

_Piece = tuple[Sequence[ColumnValues], Faults]
"""Some rows, as columns, and what is unfit in them."""


def check_no_columns(rows: object) -> None:
    """Refuse a tuple of arrays, which may be rows or, as numpy has coordinates, columns."""
    if isinstance(rows, tuple) and any(getattr(row, "ndim", 0) for row in rows):
        raise SourceRejected(
            "a tuple of arrays may be of rows or of columns: offer numpy.column_stack((…)), or a list of rows"
        )


def rows_scan(connection: Any, rows: Iterable[Any], type_: Type, what: str = "the rows") -> Scan:
    """Rows, of which each weighs 1."""
    check_no_columns(rows)
    check_unread(rows)
    begin(rows)
    return columns_scan(connection, _columns(rows, type_), type_, what)


def mapping_scan(connection: Any, mapping: Mapping[Any, object], type_: Type, unit_weight: Fraction) -> Scan:
    """The items of a mapping, each with its weight."""
    items = computed(lambda: iter(mapping.items()), _FAILS)
    what, found, total = "the mapping of records to weights", Tally(), Fraction(0)

    def pieces() -> Iterator[tuple[Sequence[ColumnValues], Faults, list[float]]]:
        nonlocal total
        while piece := computed(lambda: list(itertools.islice(items, _PIECE)), _FAILS):
            ((columns, faults),) = _columns((record for record, _ in piece), type_, len(piece))
            weights = _weights((weight for _, weight in piece), unit_weight, faults)
            total += norm(weights)
            yield columns, faults, weights

    scan = _staged(connection, pieces(), type_, what, found)
    if not found.reasons:
        names = ", ".join(column_names(type_))
        nth = f"SELECT rowid AS n, row_number() OVER (PARTITION BY {names} ORDER BY rowid) AS nth FROM {STAGED}"
        for _, number, first in listed(connection, f"SELECT n, 0 AS reason FROM ({nth}) WHERE nth > 1"):
            found.add(first, {"the same record as an item before": number})
    scan.norm, scan.noun = total, "item"
    return scan


def columns_scan(
    connection: Any,
    pieces: Iterable[tuple[Sequence[ColumnValues], Faults]],
    type_: Type,
    what: str,
    notes: Sequence[str] = (),
) -> Scan:
    """Columns of Python values, piece by piece, and what was found unfit in them already; each row weighs 1."""
    ones = ((columns, faults, None) for columns, faults in pieces)
    return _staged(connection, ones, type_, what, Tally(), notes)


def _staged(
    connection: Any,
    pieces: Iterable[tuple[Sequence[ColumnValues], Faults, Sequence[float] | None]],
    type_: Type,
    what: str,
    found: Tally,
    notes: Sequence[str] = (),
) -> Scan:
    """Put pieces into the staging table, as long as nothing in them is unfit."""
    import numpy as np

    layout, after = Layout.of(type_), 0
    create(connection, STAGED, type_)
    with in_order(connection):
        for columns, faults, weights in pieces:
            records = layout.records(columns, faults, notes)
            found.add_faults(faults, after)
            after += len(records)
            if not found.reasons:
                insert(
                    connection, STAGED, type_, records, np.ones(len(records)) if weights is None else np.array(weights)
                )
    return Scan(what, STAGED, column_names(type_), number="rowid", found=found)


def _columns(rows: Iterable[Any], type_: Type, piece: int = _PIECE) -> Iterator[_Piece]:
    """Rows as columns; what is no row is unfit."""
    layout, rows = Layout.of(type_), computed(lambda: iter(rows), _FAILS)
    width = len(layout.types)

    def taken() -> list[Any]:
        return list(itertools.islice(rows, piece))

    while given := computed(taken, _FAILS):
        faults: Faults = {}
        if layout.bare:
            yield [given], faults
            continue
        assert isinstance(type_, TupleOf)
        if ID in layout.types:  # by place, a field of the record would be taken for the id
            given = [_named(row, type_, position, faults) for position, row in enumerate(given)]
        if not (set(map(type, given)) <= {tuple, list} and set(map(len, given)) <= {width}):
            given = [_spread(row, type_, position, faults) for position, row in enumerate(given)]
        yield [list(map(itemgetter(i), given)) for i in range(width)], faults


def _named(row: Any, type_: TupleOf, position: int, faults: Faults) -> Any:
    """A row by field name; what is none does not say whose it is."""
    reason = "a row without field names, which does not say whose it is"
    try:
        row = plain_row(row, type_)
        if isinstance(row, Mapping):
            return row
    except UnfitValue as unfit:
        reason = str(unfit)
    except Exception:  # of the row's own code, whose words may quote it
        reason = OWN_CODE_FAILS
    faults[position] = reason
    return (None,) * len(type_.elements)


def _spread(row: Any, type_: TupleOf, position: int, faults: Faults) -> Sequence[object]:
    width = len(type_.elements)
    try:
        row = plain_row(row, type_)
        if isinstance(row, Mapping):
            return by_name(row, type_)
        if not isinstance(row, (tuple, list)):
            raise UnfitValue(f"not a record: give a tuple, a list or a mapping with {width} fields")
        if len(row) != width:
            raise UnfitValue(f"a record that does not have {width} fields")
        return list(row)
    except UnfitValue as reason:
        faults[position] = str(reason)
    except Exception:  # of the row's own code, whose words may quote it
        faults[position] = OWN_CODE_FAILS
    return (None,) * width


def _weights(weights: Iterable[object], unit_weight: Fraction, faults: Faults) -> list[float]:
    """The weights of the items of a mapping as floats; what is unfit is added to `faults`."""
    largest = largest_float(unit_weight)
    numbers: list[float] = []
    for position, weight in enumerate(weights):
        if type(weight) is float and abs(weight) <= largest:
            numbers.append(weight)
            continue
        try:
            numbers.append(_weight(weight, unit_weight))
        except UnfitValue as reason:
            faults.setdefault(position, str(reason))
            numbers.append(0.0)
        except Exception:  # of the weight's own code, whose words may quote it
            faults.setdefault(position, "a weight whose own code fails when it is read")
            numbers.append(0.0)
    return numbers


def _weight(weight: Any, unit_weight: Fraction) -> float:
    weight = unwrap(weight)
    if isinstance(weight, bool) or not isinstance(weight, (int, float, Fraction)):
        raise UnfitValue("a weight that is not a real number (int, float or Fraction)")
    if isinstance(weight, float) and not math.isfinite(weight):
        raise UnfitValue("a weight that is nan or infinite")
    if abs(Fraction(weight)) > unit_weight:
        raise UnfitValue(
            f"a weight above the unit weight {unit_weight} (repeat the row, or declare a larger unit_weight)"
        )
    try:
        number = float(weight)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or Fraction(number) != Fraction(weight):
        raise UnfitValue("a weight that a 64-bit float cannot represent exactly")
    return number


# Cursors as Python's DB-API has them: their rows are fetched piece by piece.

_AT_ONCE = 100_000
_ANY_RESULT = object()
"""The result of a cursor that makes its description anew at each look, and so does not tell one query from another."""


def _cursor_pieces(cursor: Any, places: Sequence[int]) -> Iterator[tuple[list[list[Any]], Faults]]:
    def fetched() -> list[list[Any]]:
        rows = cursor.fetchmany(_AT_ONCE)
        return [[row[place] for row in rows] for place in places] if rows else []

    while columns := computed(fetched, "the rows of the cursor cannot be fetched: fetch them yourself to see why"):
        yield columns, {}


def is_cursor(data: object) -> bool:
    """Whether an object is a cursor as Python's DB-API has it, with a result."""
    return hasattr(data, "fetchmany") and hasattr(data, "description")


def cursor_scan(connection: Any, cursor: Any, type_: Type) -> Scan:
    """The rows of a cursor that are not fetched yet."""
    what, layout = "the rows of the cursor", Layout.of(type_)
    if cursor.description is None:
        raise SourceRejected("the cursor has no result: execute a query first")
    description = cursor.description
    result = description if cursor.description is description else _ANY_RESULT
    check_unread(cursor, result)
    places = layout.pick([column[0] for column in description], what)
    begin(cursor, result)
    scan = columns_scan(connection, _cursor_pieces(cursor, places), type_, what)
    scan.small = False
    return scan
