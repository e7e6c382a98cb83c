"""Edges of public graphs: read from any file or graph object, and written to files."""

from __future__ import annotations

import gzip
import operator
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack, overload

import numpy as np

from wpinq.data.edges import EdgeList, Policy, edges_of_graph, is_graph
from wpinq.data.rejection import Faults, reject
from wpinq.expr.types import INT_MAX, INT_MIN

# What reads back as it was written: no blank, no sign of a comment or of a byte order in front.
_NAME = re.compile(r"[^\s\0#%\ufeff\ud800-\udfff][^\s\0\ud800-\udfff]*")


class _Reading(TypedDict, total=False):
    directed: bool | None
    loops: Policy
    duplicates: Policy
    columns: tuple[str, str] | None


@overload
def read_edges(graph: object, *, node: type[int] = ..., **how: Unpack[_Reading]) -> list[tuple[int, int]]: ...
@overload
def read_edges(graph: object, *, node: type[str], **how: Unpack[_Reading]) -> list[tuple[str, str]]: ...
def read_edges(
    graph: object,
    *,
    directed: bool | None = None,
    loops: Literal["keep", "drop", "refuse"] = "keep",
    duplicates: Literal["keep", "drop", "refuse"] = "keep",
    columns: tuple[str, str] | None = None,
    node: type = int,
) -> list[tuple[Any, Any]]:
    r"""The edges of a public graph, in the order of the file or object.

    Any SNAP file is understood: plain text or gzip, blanks or tabs, `#` and `%` comments, blank lines, any line
    ends, a byte order mark. Columns after the first two are ignored. What else is, `EdgeList` says.

    Parameters
    ----------
    graph : object
        A file, a graph of networkx or igraph, a sparse matrix, pairs: what `EdgeList` takes. Whether a file is gzip
        is read from the file itself.
    directed : bool, optional
        False puts each edge in canonical order, the smaller node first. Unless told, as a graph object says of itself.
    loops, duplicates : {"keep", "drop", "refuse"}
        What to do with an edge from a node to itself, and with one that stood there before. A public graph is read as
        the file has it; an `EdgeList` offered for protection refuses duplicates unless told.
    columns : pair of str, optional
        The columns of a csv or parquet file, or of a table.
    node : {int, str}
        The type of the node identifiers.

    Returns
    -------
    list of tuple
        One pair per edge.

    Raises
    ------
    SourceRejected
        When the file or graph is not a sound edge list. Positions are numbers of lines or edges, from 0 in
        `positions`; lines are counted from 1 in the message.
    PlanError
        When an option is not one of those.

    Notes
    -----
    Costs no privacy, because it releases nothing: the list holds the true edges. Give the path or graph, or an
    `EdgeList`, to `Session.protect` and the list need never be held.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "graph.txt"
    >>> _ = path.write_text("# from to\n1 2\n2 1\n3 4\n")
    >>> read_edges(path, directed=False, duplicates="drop")
    [(1, 2), (3, 4)]
    """
    return EdgeList(graph, directed, loops, duplicates, columns).edges(node)


def write_edges(edges: Iterable[Any], path: str | os.PathLike[str]) -> None:
    """Write the edges of a public graph, one to a line with a tab between, in the order given.

    The same edges give the same bytes, gzip included (no time stamp). Sort a set first: it has no order.

    Parameters
    ----------
    edges : iterable of pairs, numpy array or graph
        Pairs, an array of shape (edges, 2), or a graph of networkx or igraph. Nodes are 64-bit integers, or names
        without blanks that do not start with `#`, `%` or a byte order mark.
    path : str or path
        Where to write; a name that ends in `.gz` makes it gzip. A file there is replaced.

    Raises
    ------
    SourceRejected
        When an edge would not read back as it is. Nothing is written then.
    OSError
        When the file cannot be written.

    Notes
    -----
    Privacy: the file holds the edges as they are. It is for public graphs, such as a synthetic one made from
    Answers.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "graph.txt.gz"
    >>> write_edges([(1, 2), (2, 3)], path)
    >>> read_edges(path)
    [(1, 2), (2, 3)]
    """
    if is_graph(edges):
        held = edges_of_graph(edges)
        edges = zip(held.sources, held.targets, strict=True)
    elif isinstance(edges, np.ndarray):
        edges = edges.tolist()
    faults: Faults = {}
    lines: list[str] = []
    names: set[bool] = set()
    for position, edge in enumerate(edges):
        pair = edge if isinstance(edge, (tuple, list)) and len(edge) == 2 else (None, None)
        source, target = _text(pair[0]), _text(pair[1])
        if source is None or target is None:
            faults[position] = (
                "not a pair of 64-bit integers, or of names without blanks that do not start like a comment"
            )
            continue
        names.update(isinstance(end, str) for end in pair)
        if len(names) > 1:
            faults[position] = "integers and names in one graph (write all nodes as names)"
        lines.append(f"{source}\t{target}\n")
    if faults:
        reject("the list of edges", faults, noun="edge")
    path = Path(path)
    content = "".join(lines).encode()
    if path.suffix.lower() == ".gz":
        content = gzip.compress(content, mtime=0)
    path.write_bytes(content)


def _text(node: Any) -> str | None:
    """The text of a node that reads back as the same node, or None."""
    if isinstance(node, str):
        return str.__str__(node) if _NAME.fullmatch(node) else None
    if isinstance(node, bool) or not hasattr(node, "__index__"):
        return None
    try:
        number = operator.index(node)
    except TypeError:
        return None
    return str(number) if INT_MIN <= number <= INT_MAX else None
