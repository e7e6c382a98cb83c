"""Cursors as Python's DB-API has them: their rows are fetched piece by piece."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from wpinq.errors import SourceRejected
from wpinq.expr.types import Type
from wpinq.ingest.foreign import computed
from wpinq.ingest.one_shot import begin, check_unread
from wpinq.ingest.rejection import Faults
from wpinq.ingest.rows import columns_scan
from wpinq.ingest.scan import Scan
from wpinq.ingest.typed_columns import Layout

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
