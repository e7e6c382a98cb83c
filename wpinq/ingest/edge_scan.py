"""Edge lists as scans: text that is as regular as most is read by DuckDB, and any other by `EdgeList.edges`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from wpinq.errors import SourceRejected
from wpinq.expr.types import INT, STR, TupleOf, Type
from wpinq.ingest.canonical import any_of, of_text
from wpinq.ingest.edge_list import EdgeList
from wpinq.ingest.files import SMALL, open_file
from wpinq.ingest.rows import rows_scan
from wpinq.ingest.scan import Scan

_BOM = b"\xef\xbb\xbf"
_LIMIT = 2**20
_READ = "auto_detect=false, header=false, quote='', escape='', comment='', nullstr='\x01', strict_mode=true"


def edge_scan(connection: Any, data: EdgeList, type_: Type, stack: ExitStack) -> Scan:
    """The edges of a list, after what is to be done with loops and duplicates."""
    elements = type_.elements if isinstance(type_, TupleOf) and not type_.nullable else ()
    if elements not in ((INT, INT), (STR, STR)):
        raise SourceRejected(
            f"an edge list holds records of two int or two str fields, not of type {type_}: offer csv, parquet or rows"
        )

    def in_python() -> Scan:
        return rows_scan(connection, data.edges(int if elements[0] == INT else str), type_, str(data.path))

    file = open_file(Path(data.path), stack)
    shape = _shape(file)
    if shape is None:
        return in_python()
    skipped, delimiter, width = shape
    columns = ", ".join(f"'g{i}': 'VARCHAR'" for i in range(width))
    read = f"read_csv('/dev/fd/{file.fileno()}', columns={{{columns}}}, skip={skipped}, delim='{delimiter}', {_READ})"
    small = os.fstat(file.fileno()).st_size <= SMALL
    scan = _with_policies(data, read, elements[0], small)
    scan.anew, scan.places = in_python, False
    return scan


def _shape(file: Any) -> tuple[int, str, int] | None:
    """How many lines stand before the first edge, what separates its columns, and how many there are; None if odd."""
    file.seek(0)
    for number, line in enumerate(iter(lambda: file.readline(_LIMIT), b"")):
        line = line.removeprefix(_BOM) if number == 0 else line
        if not line.strip() or b"\r" in line.rstrip(b"\r\n"):
            return None
        if not line.startswith((b"#", b"%")):
            text = line.rstrip(b"\r\n")
            delimiter = "\t" if b"\t" in text else " "
            width = text.count(delimiter.encode()) + 1
            return (number, delimiter, width) if width > 1 else None
    return None


def _with_policies(data: EdgeList, read: str, node: Type, small: bool) -> Scan:
    ends = [of_text(f"g{i}", node) for i in (0, 1)]
    values: Sequence[str] = [end.leaves[0] for end in ends]
    unfit = [unfit for end in ends for unfit in end.unfit]
    if node == STR:
        unfit += [(f"NOT regexp_full_match(g{i}, '[^ \\t\\n\\v\\f\\r]+')", "not a name") for i in (0, 1)]
        unfit.append(("g0[1] IN ('#', '%')", "a comment"))
    # Conditions and edges are found in one place below, where both ends have been read.
    checked = any_of([condition for condition, _ in unfit])
    source = f"(SELECT {values[0]} AS a, {values[1]} AS b, {checked} AS unfit FROM {read})"
    leaves = ["a", "b"] if data.directed else ["least(a, b)", "greatest(a, b)"]
    conditions = [("unfit", "not an edge")]
    if data.loops == "refuse":
        conditions.append(("a = b", "a loop"))
    if data.loops == "drop":
        source = f"(SELECT * FROM {source} WHERE unfit OR a <> b)"
    weight = "count(*)::DOUBLE"
    if data.duplicates == "drop":
        weight = "1::DOUBLE"
    elif data.duplicates == "refuse":
        weight = "CASE WHEN count(*) > 1 THEN error('twice') ELSE 1::DOUBLE END"
    return Scan(str(data.path), source, leaves, conditions, small, weight=weight)
