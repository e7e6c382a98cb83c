"""Rows, mappings and cursors of Python: checked piece by piece, and staged as columns."""

from __future__ import annotations

import contextlib
import inspect
import itertools
import math
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from operator import itemgetter
from typing import Any, TypeVar

from wpinq.columns.records import column_names, create, insert_columns
from wpinq.columns.unlinked_file import in_order
from wpinq.data.facts import largest_float, norm
from wpinq.data.kinds import way_to
from wpinq.data.layout import OWN_CODE_FAILS, ColumnValues, Faults, Layout, by_name, plain_row, unwrap
from wpinq.data.relation import STAGED, Relation, Tally, computed, listed
from wpinq.errors import SourceRejected
from wpinq.expr.declarations import ID, IDS
from wpinq.expr.types import TupleOf, Type
from wpinq.expr.values import UnfitValue

# What can be read only once, and was: known again by the object alone, never by how many rows are left in it.
#
# A generator, a reader of batches or a cursor gives its rows once. Offered again it would give what is left, mostly
# nothing, and that would be protected without a word. So whatever reading began of is remembered, weakly and for the
# whole process. Of what Python cannot refer to weakly (`zip`, `map`, `iter(list)`, `csv.reader`) nothing is known.

#: By the place of an object in memory: a way to it, which goes with it, and what it stood at.
_begun: dict[int, tuple[weakref.ref[Any], object]] = {}


def check_unread(data: object, result: object = None) -> None:
    """Refuse what gives its rows once, and has begun to, as far as that is known.

    Parameters
    ----------
    data : object
        Of which rows are to be read; anything but an iterator or a cursor can be read again.
    result : object, optional
        What a cursor has for the query that it executed; another query gives another one.

    Raises
    ------
    SourceRejected
        Saying what to offer instead.
    """
    if not _is_one_shot(data, result):
        return
    reference, before = _begun.get(id(data), (None, None))
    again = reference is not None and reference() is data and before is result
    if again or (inspect.isgenerator(data) and inspect.getgeneratorstate(data) == inspect.GEN_CLOSED):
        raise SourceRejected(
            f"this {type(data).__qualname__} gives its rows once and was read already: only the rest of them "
            "would be protected. Make a new one, or offer a list, a table or a file"
        )


def begin(data: object, result: object = None) -> None:
    """Remember that reading begins."""
    if not _is_one_shot(data, result):
        return
    place = id(data)
    with contextlib.suppress(TypeError):
        _begun[place] = weakref.ref(data, lambda gone: _forget(place, gone)), result


def _is_one_shot(data: object, result: object) -> bool:
    return result is not None or isinstance(data, Iterator)


def _forget(place: int, gone: weakref.ref[Any]) -> None:
    """Unless another object has its place by now."""
    if _begun.get(place, (None, None))[0] is gone:
        del _begun[place]


_T = TypeVar("_T")
_PIECE = 100_000
FAILS = "the iterable of rows fails: list it yourself to see why"
#: What is said of what gives its rows once, and gave none.
NO_ROWS = (
    "{} without rows may have been read before: make a new one. If there are no rows, offer an empty list, a table in "
    "memory or a file"
)
#: The result of a cursor that makes its description anew each time, and so does not tell one query from another.
_ANY_RESULT = object()

#: Some rows as columns, what is unfit in them, and their weights, where not all weigh 1.
_Piece = tuple[Sequence[ColumnValues], Faults, Sequence[float] | None]

#: Columns -> the same columns of some of the rows.
KeptRows = Callable[[Sequence[ColumnValues]], Sequence[ColumnValues]]


def kept_pieces(pieces: Iterable[_Piece], kept: KeptRows | None) -> Iterable[_Piece]:
    """The pieces of the rows that are kept; all where nothing chooses."""
    return pieces if kept is None else ((kept(columns), {}, None) for columns, _, _ in pieces)


def check_no_columns(rows: object) -> None:
    """Refuse a tuple of arrays, which may be rows or, as numpy has coordinates, columns."""
    if isinstance(rows, tuple) and any(getattr(row, "ndim", 0) for row in rows):
        raise SourceRejected(
            "a tuple of arrays may hold rows or columns: offer numpy.column_stack((…)), or a list of rows"
        )


def rows_relation(connection: Any, rows: Iterable[Any], type_: Type, what: str = "the rows") -> Relation:
    """The relation of rows, of which each weighs 1."""
    check_no_columns(rows)
    check_unread(rows)
    begin(rows)
    pieces = ((columns, faults, None) for columns, faults in as_columns(rows, type_))
    once = "an iterator" if isinstance(rows, Iterator) else ""
    return columns_relation(connection, pieces, type_, what, advised=True, once=once)


def mapping_relation(connection: Any, mapping: Mapping[Any, object], type_: Type, unit_weight: Fraction) -> Relation:
    """The relation of a mapping's items, each with its weight."""
    items = computed(lambda: iter(mapping.items()), FAILS)
    total = Fraction(0)

    def pieces() -> Iterator[_Piece]:
        nonlocal total
        while piece := computed(lambda: list(itertools.islice(items, _PIECE)), FAILS):
            ((columns, faults),) = as_columns((record for record, _ in piece), type_, len(piece))
            weights = _weights([weight for _, weight in piece], unit_weight, faults)
            total += norm(weights)
            yield columns, faults, weights

    relation = columns_relation(connection, pieces(), type_, "the mapping of records to weights")
    names = ", ".join(column_names(type_))
    again = f"SELECT 1 FROM {STAGED} GROUP BY {names} HAVING count(*) > 1 LIMIT 1"
    if not relation.found.reasons and connection.execute(again).fetchall():  # numbered only where one is refused
        nth = f"SELECT rowid AS n, row_number() OVER (PARTITION BY {names} ORDER BY rowid) AS nth FROM {STAGED}"
        for _, number, first in listed(connection, f"SELECT n, 0 AS reason FROM ({nth}) WHERE nth > 1"):
            relation.found.add(first, {"the same record as an item before": number})
    relation.norm, relation.noun = total, "item"
    return relation


def is_cursor(data: object) -> bool:
    """Whether an object is a cursor as Python's DB-API has it."""
    return hasattr(data, "fetchmany") and hasattr(data, "description")


def cursor_relation(connection: Any, cursor: Any, type_: Type, kept: KeptRows | None = None) -> Relation:
    """The relation of a cursor's rows that are not fetched yet, or of those `kept`."""
    what = "the rows of the cursor"
    if cursor.description is None:
        raise SourceRejected("the cursor has no result: execute a query first")
    description = cursor.description
    result = description if cursor.description is description else _ANY_RESULT
    check_unread(cursor, result)
    places = Layout.of(type_).pick([column[0] for column in description], what)
    begin(cursor, result)

    def fetched() -> list[list[Any]]:
        rows = cursor.fetchmany(_PIECE)
        return [[row[place] for row in rows] for place in places] if rows else []

    def pieces() -> Iterator[_Piece]:
        while columns := computed(fetched, f"{what} cannot be fetched: fetch them yourself to see why"):
            yield columns, {}, None

    once = "" if kept else "a cursor"
    relation = columns_relation(connection, kept_pieces(pieces(), kept), type_, what, advised=True, once=once)
    relation.small = False
    return relation


def columns_relation(
    connection: Any,
    pieces: Iterable[_Piece],
    type_: Type,
    what: str,
    notes: Sequence[str] = (),
    advised: bool = False,
    once: str = "",
) -> Relation:
    """The relation of columns of Python values, staged in pieces until a value is unfit.

    Where what gives them can be read once, there must be some; `once` is its name.
    """
    import numpy as np

    layout, found, after = Layout.of(type_), Tally(), 0
    create(connection, STAGED, type_)
    with in_order(connection):
        for columns, faults, weights in pieces:
            typed = layout.typed(columns, faults, notes)
            found.add_faults(faults, after)
            after += len(typed[0])
            if not found.reasons:
                ones = np.ones(len(typed[0])) if weights is None else np.array(weights)
                insert_columns(connection, STAGED, type_, typed, ones)
    if once and not after:
        raise SourceRejected(NO_ROWS.format(once))
    said = {layout.label(i): way_to(field)[0] for i, field in enumerate(layout.types) if advised}
    names = column_names(type_)
    # An id in a column that declares no type says its own as it begins, and stands last.
    other = f"{names[-1]}[1] <> (SELECT {names[-1]}[1] FROM {STAGED} ORDER BY rowid LIMIT 1)"
    reason = f"{layout.label(-1)}: an id that is int where the first is str, or str where it is int: give them one type"
    unfit = [(other, reason)] if ID in layout.types else []
    return Relation(what, STAGED, names, unfit, number="rowid", found=found, advice=said)


def as_columns(rows: Iterable[Any], type_: Type, piece: int = _PIECE) -> Iterator[tuple[list[Sequence[Any]], Faults]]:
    """Rows as columns, some at a time; what is no row is unfit."""
    layout, rows = Layout.of(type_), computed(lambda: iter(rows), FAILS)
    width = len(layout.types)
    none: Sequence[object] = (None,) * width
    while given := computed(lambda: list(itertools.islice(rows, piece)), FAILS):
        faults: Faults = {}
        if layout.bare:
            yield [given], faults
            continue
        assert isinstance(type_, TupleOf)
        # by place, a field could be taken for the id
        named, kinds = not IDS.isdisjoint(layout.types), set(map(type, given))
        if kinds == {dict} and None not in layout.names:
            with contextlib.suppress(Exception):  # one lacks a field, or its own code fails: they are read one by one
                yield [list(map(itemgetter(name), given)) for name in layout.names], faults
                continue
        if named or not (kinds <= {tuple, list} and set(map(len, given)) <= {width}):
            given = [
                _fit(partial(_fields, row, type_, named), none, position, faults, OWN_CODE_FAILS)
                for position, row in enumerate(given)
            ]
        yield [list(map(itemgetter(i), given)) for i in range(width)], faults


def _fields(row: Any, type_: TupleOf, only_by_name: bool) -> Sequence[object]:
    """The values of a row's fields, in the order of the type."""
    row, width = plain_row(row, type_), len(type_.elements)
    if isinstance(row, Mapping):
        return by_name(row, type_)
    if only_by_name:
        raise UnfitValue("a row without field names, and so without an id")
    if not isinstance(row, (tuple, list)):
        raise UnfitValue(f"not a record: give a tuple, a list or a mapping with {width} fields")
    if len(row) != width:
        raise UnfitValue(f"a record that does not have {width} fields")
    return list(row)


def _fit(make: Callable[[], _T], instead: _T, position: int, faults: Faults, fails: str) -> _T:
    """The value of a row; the reason of an unfit one is added to `faults`.

    It never has the words of the row's own code.
    """
    try:
        return make()
    except UnfitValue as unfit:
        reason = str(unfit)
    except Exception:
        reason = fails
    faults.setdefault(position, reason)
    return instead


def _weights(weights: Sequence[Any], unit_weight: Fraction, faults: Faults) -> list[float]:
    """The weights of the items of a mapping as floats; what is unfit is added to `faults`."""
    largest, fails = largest_float(unit_weight), "a weight whose own code fails when it is read"
    plain = set(map(type, weights)) <= {int, float} and max(map(abs, weights)) <= min(largest, 2.0**53)
    if plain and sum(map(abs, weights)) < math.inf:  # a nan may pass behind the first, but not here
        return list(map(float, weights))
    return [
        weight
        if type(weight) is float and abs(weight) <= largest
        else _fit(partial(_weight, weight, unit_weight), 0.0, position, faults, fails)
        for position, weight in enumerate(weights)
    ]


def _weight(weight: Any, unit_weight: Fraction) -> float:
    weight = unwrap(weight)
    if isinstance(weight, bool) or not isinstance(weight, (int, float, Fraction)):
        raise UnfitValue("a weight that is not a real number (int, float or Fraction)")
    if isinstance(weight, float) and not math.isfinite(weight):
        raise UnfitValue("a weight that is nan or infinite")
    if abs(Fraction(weight)) > unit_weight:
        raise UnfitValue(
            f"a weight above the unit weight {unit_weight} (offer a list of all rows, or declare a larger unit_weight)"
        )
    try:
        number = float(weight)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or Fraction(number) != Fraction(weight):
        raise UnfitValue("a weight that a 64-bit float cannot represent exactly")
    return number
