"""Edge lists as scans: text that is as regular as most is read by DuckDB, and any other by `EdgeList.edges`."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from wpinq.errors import SourceRejected
from wpinq.expr.types import INT, STR, TupleOf, Type
from wpinq.ingest.canonical import UNFIT, of_text
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
    a, b = (leaf for i in (0, 1) for leaf in of_text(f"g{i}", node).checked or ())
    where = ""
    if node == STR:
        names = " AND ".join(f"regexp_full_match(g{i}, '[^ \\t\\n\\v\\f\\r]+')" for i in (0, 1))
        where = f" WHERE CASE WHEN {names} AND g0[1] NOT IN ('#', '%') THEN true ELSE {UNFIT} END"
    source = f"(SELECT {a} AS a, {b} AS b FROM {read}{where})"
    leaves = ["a", "b"] if data.directed else ["least(a, b)", "greatest(a, b)"]
    if data.loops != "keep":
        away = UNFIT if data.loops == "refuse" else "false"
        source = f"(SELECT * FROM {source} WHERE CASE WHEN a = b THEN {away} ELSE true END)"
    weight = "count(*)::DOUBLE"
    if data.duplicates == "drop":
        weight = "1::DOUBLE"
    elif data.duplicates == "refuse":
        weight = f"CASE WHEN count(*) > 1 THEN {UNFIT} ELSE 1::DOUBLE END"
    return Scan(str(data.path), source, leaves, small=small, weight=weight)
