"""Edge lists as text: two node identifiers to a line, as the SNAP collection publishes graphs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wpinq.errors import SourceRejected
from wpinq.expr.types import INT_MAX, INT_MIN
from wpinq.ingest.files import NO_TEXT, ZEROS, read_bytes
from wpinq.ingest.rejection import Faults, reject

_BOM = b"\xef\xbb\xbf"
_COMMENT = (b"#", b"%")

_BothEnds = tuple[list[Any], list[Any]]


def read_pairs(path: Path, node: type) -> tuple[list[Any], list[Any], Sequence[int]]:
    """The nodes of type `int` or `str` at either end of the edges of a file, and the line of each, from 0."""
    content = read_bytes(path).removeprefix(_BOM)
    if b"\0" in content:
        raise SourceRejected(f"{path} {ZEROS if _is_text(content) else NO_TEXT}")
    lines = content.splitlines()
    pairs = [line.split(None, 2)[:2] for line in lines]
    kept: Sequence[int] = range(len(pairs))
    if any(sign in content for sign in _COMMENT) or [] in pairs:
        kept = [i for i, pair in enumerate(pairs) if pair and not pair[0].startswith(_COMMENT)]
        pairs = [pairs[i] for i in kept]
        lines = [lines[i] for i in kept]
    faults: Faults = {}
    if not set(map(len, pairs)) <= {2}:
        for i, pair in enumerate(pairs):
            if len(pair) < 2:
                faults[i] = "fewer than two columns (separated by blanks or tabs; with commas it is csv)"
                pair.append(b"0")
    ends: _BothEnds = _int_ends(pairs, faults) if node is int else _str_ends(pairs, lines, faults)
    if faults:
        reject(str(path), {kept[i]: reason for i, reason in faults.items()}, noun="line", first=1)
    return *ends, kept


def _is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _int_ends(pairs: list[list[bytes]], faults: Faults) -> _BothEnds:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    # int() also reads 1_000, which an edge list does not mean.
    if not b"".join(first + second).translate(None, b"0123456789+-"):
        try:
            sources, targets = list(map(int, first)), list(map(int, second))
        except ValueError:
            pass
        else:
            both = sources + targets
            if not both or (min(both) >= INT_MIN and max(both) <= INT_MAX):
                return sources, targets
    ends: _BothEnds = [], []
    for i, (a, b) in enumerate(pairs):
        try:
            if (a + b).translate(None, b"0123456789+-"):
                raise ValueError
            edge = int(a), int(b)
        except ValueError:
            faults.setdefault(i, "a node that is not an integer (declare str nodes to read names)")
            continue
        if not all(INT_MIN <= end <= INT_MAX for end in edge):
            faults.setdefault(i, "an integer outside 64 bits (declare str nodes)")
        ends[0].append(edge[0])
        ends[1].append(edge[1])
    return ends


def _str_ends(pairs: list[list[bytes]], lines: list[bytes], faults: Faults) -> _BothEnds:
    ends: _BothEnds = [], []
    for i, (pair, line) in enumerate(zip(pairs, lines, strict=True)):
        # A name with blanks between tabs would be torn apart in silence.
        if b"\t" in line and [part.strip() for part in line.split(b"\t", 2)[:2]] != pair:
            faults.setdefault(i, "blanks and tabs split the line differently (names with blanks need csv)")
        try:
            for end, name in zip(ends, pair, strict=True):
                end.append(name.decode())
        except UnicodeDecodeError:
            faults.setdefault(i, "a name that is not UTF-8 text")
    return ends
