"""Edge lists: text files with two node identifiers to a line, as the SNAP collection publishes graphs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from wpinq.errors import PlanError, SourceRejected
from wpinq.expr.types import INT_MAX, INT_MIN
from wpinq.ingest.files import read_bytes
from wpinq.ingest.rejection import Faults, reject

Policy = Literal["keep", "drop", "refuse"]
_POLICIES = ("keep", "drop", "refuse")
_BOM = b"\xef\xbb\xbf"
_COMMENT = (b"#", b"%")


@dataclass(frozen=True, slots=True)
class EdgeList:
    r"""An edge-list file and how to read it.

    The file is text, plain or gzip, whatever its name: two node identifiers to a line, separated by blanks or a
    tab. Blank lines and lines that start with `#` or `%` are comments. Further columns (time stamps, weights) are
    ignored.

    Parameters
    ----------
    path : str or path
        The file.
    directed : bool
        False puts each edge in canonical order, the smaller node first, so that `(a, b)` and `(b, a)` are
        duplicates of one another.
    loops : {"keep", "drop", "refuse"}
        What to do with an edge from a node to itself.
    duplicates : {"keep", "drop", "refuse"}
        What to do with an edge that stood there before. Kept duplicates add up to one record of a larger weight, so
        that one unit is one line of the file and no longer one edge of the graph: that has to be said.

    Raises
    ------
    PlanError
        When an option is not one of those.

    Notes
    -----
    Reading costs no privacy: nothing is released. Dropping edges changes what is protected, which is the curator's
    choice and made before.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "graph.txt"
    >>> _ = path.write_text("# a comment\n1\t2\n2\t1\n3\t3\n")
    >>> EdgeList(path, directed=False, loops="drop", duplicates="drop").edges(int)
    [(1, 2)]
    """

    path: str | os.PathLike[str]
    directed: bool = True
    loops: Policy = "keep"
    duplicates: Policy = "refuse"

    def __post_init__(self) -> None:
        if not isinstance(self.directed, bool):
            raise PlanError("directed is True or False")
        for option, policy in (("loops", self.loops), ("duplicates", self.duplicates)):
            if policy not in _POLICIES:
                raise PlanError(f'{option} is one of "keep", "drop", "refuse"')

    def edges(self, node: type) -> list[tuple[Any, Any]]:
        """The edges in the order of the file, with nodes of type `int` or `str`.

        Raises
        ------
        SourceRejected
            When the file cannot be read, holds a line that is not an edge, or holds what is to be refused.
            Positions are line numbers, from 0 in `positions` and from 1 in the message.
        PlanError
            When `node` is neither `int` nor `str`.
        """
        if node is not int and node is not str:
            raise PlanError("nodes are of type int or str")
        content = read_bytes(Path(self.path)).removeprefix(_BOM)
        if b"\0" in content:
            raise SourceRejected(f"{self.path} is not UTF-8 text: convert it, or check that it is the right file")
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
        edges: list[tuple[Any, Any]]
        edges = _int_edges(pairs, faults) if node is int else _str_edges(pairs, lines, faults)
        if not faults:
            edges = self._apply(edges, faults)
        if faults:
            reject(str(self.path), {kept[i]: reason for i, reason in faults.items()}, noun="line", first=1)
        return edges

    def _apply(self, edges: list[tuple[Any, Any]], faults: Faults) -> list[tuple[Any, Any]]:
        if not self.directed:
            edges = [(a, b) if a <= b else (b, a) for a, b in edges]
        if self.loops == "refuse":
            for i, (a, b) in enumerate(edges):
                if a == b:
                    faults[i] = "an edge from a node to itself (drop loops to leave it out)"
        if self.duplicates == "refuse":
            seen: set[tuple[Any, Any]] = set()
            for i, edge in enumerate(edges):
                if edge in seen and not (self.loops == "drop" and edge[0] == edge[1]):
                    faults.setdefault(i, "an edge that stood there before (drop duplicates to leave it out)")
                seen.add(edge)
        if self.loops == "drop":
            edges = [edge for edge in edges if edge[0] != edge[1]]
        if self.duplicates == "drop":
            edges = list(dict.fromkeys(edges))
        return edges


def _int_edges(pairs: list[list[bytes]], faults: Faults) -> list[tuple[int, int]]:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    # int() also reads 1_000, which an edge list does not mean.
    if not b"".join(first + second).translate(None, b"0123456789+-"):
        try:
            sources, targets = list(map(int, first)), list(map(int, second))
        except ValueError:
            pass
        else:
            ends = sources + targets
            if not ends or (min(ends) >= INT_MIN and max(ends) <= INT_MAX):
                return list(zip(sources, targets, strict=True))
    edges: list[tuple[int, int]] = []
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
        edges.append(edge)
    return edges


def _str_edges(pairs: list[list[bytes]], lines: list[bytes], faults: Faults) -> list[tuple[str, str]]:
    edges: list[tuple[str, str]] = []
    for i, (pair, line) in enumerate(zip(pairs, lines, strict=True)):
        # A name with blanks between tabs would be torn apart in silence.
        if b"\t" in line and [part.strip() for part in line.split(b"\t", 2)[:2]] != pair:
            faults.setdefault(i, "blanks and tabs split the line differently (names with blanks need csv)")
        try:
            edges.append((pair[0].decode(), pair[1].decode()))
        except UnicodeDecodeError:
            faults.setdefault(i, "a name that is not UTF-8 text")
    return edges
