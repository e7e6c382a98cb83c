"""Edge lists of text as scans: what is as regular as most is read by DuckDB, and any other by Python."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from wpinq.expr.types import INT, STR, Type
from wpinq.ingest.canonical import UNFIT, of_text
from wpinq.ingest.edge_text import read_pairs
from wpinq.ingest.files import SMALL, open_file
from wpinq.ingest.scan import STAGED, Scan

_BOM = b"\xef\xbb\xbf"
_LIMIT = 2**20
_READ = "auto_detect=false, header=false, quote='', escape='', comment='', nullstr='\x01', strict_mode=true"


def text_scan(connection: Any, path: Path, node: Type, stack: ExitStack) -> Scan:
    """The edges of a text file, as they stand, with nodes of a type."""

    def in_python() -> Scan:
        *ends, lines = read_pairs(path, int if node == INT else str)
        scan = columns_scan_of_edges(connection, ends, lines, node, str(path))
        scan.noun, scan.first = "line", 1
        return scan

    file = open_file(path, stack)
    shape = _shape(file)
    if shape is None:
        return in_python()
    skipped, delimiter, width = shape
    columns = ", ".join(f"'g{i}': 'VARCHAR'" for i in range(width))
    read = f"read_csv('/dev/fd/{file.fileno()}', columns={{{columns}}}, skip={skipped}, delim='{delimiter}', {_READ})"
    small = os.fstat(file.fileno()).st_size <= SMALL
    return Scan(str(path), _checked(read, node), ("a", "b"), small=small, places=False, anew=in_python)


def columns_scan_of_edges(
    connection: Any, ends: Sequence[Sequence[Any]], places: Sequence[int], node: Type, what: str
) -> Scan:
    """Edges of sound nodes in columns of Python values, one for either end, and what messages call their places."""
    import numpy

    kind, sql = (numpy.int64, "BIGINT") if node == INT else (numpy.object_, "VARCHAR")
    columns: dict[str, Any] = {f"c{i}": numpy.array(end, dtype=kind) for i, end in enumerate(ends)}
    connection.register("loading", columns | {"n": numpy.array(places, dtype=numpy.int64)})
    connection.execute(f"CREATE TEMP TABLE {STAGED} AS SELECT c0::{sql} AS c0, c1::{sql} AS c1, n FROM loading")
    connection.unregister("loading")
    return Scan(what, STAGED, ("c0", "c1"), number="n", noun="edge")


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


def _checked(read: str, node: Type) -> str:
    """The two ends of each edge; what is none ends the query with an error."""
    a, b = (leaf for i in (0, 1) for leaf in of_text(f"g{i}", node).checked or ())
    where = ""
    if node == STR:
        names = " AND ".join(f"regexp_full_match(g{i}, '[^ \\t\\n\\v\\f\\r]+')" for i in (0, 1))
        where = f" WHERE CASE WHEN {names} AND g0[1] NOT IN ('#', '%') THEN true ELSE {UNFIT} END"
    return f"(SELECT {a} AS a, {b} AS b FROM {read}{where})"
