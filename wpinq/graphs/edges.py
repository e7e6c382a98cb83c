"""Edges of public graphs: read from any file or graph object, and written to files."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np

from wpinq.data.edge_files import reads_back
from wpinq.data.edges import EdgeList
from wpinq.data.graphs import edges_of_graph, is_graph
from wpinq.data.relation import reject
from wpinq.expr.types import INT, STR

# What reads back as it was written: no blank or quote, no sign of a comment or of a byte order in front.
NAME = re.compile(r"[^\s\0#%\ufeff\"',;]([^\s\0\"]*[^\s\0\",;])?")


def read_edges(
    graph: object,
    *,
    directed: bool | None = None,
    loops: Literal["keep", "drop", "refuse"] = "keep",
    duplicates: Literal["keep", "drop", "refuse"] = "keep",
    columns: tuple[str, str] | tuple[int, int] | None = None,
    comments: str | None = None,
    node: type = int,
) -> list[tuple[Any, Any]]:
    r"""The edges of a public graph, in the order of the file or object.

    Any SNAP file is understood: plain text or gzip, blanks or tabs, `#` and `%` comments at the head, blank lines, any
    line ends, a byte order mark; and graphs in other formats, as `EdgeList` says.

    Parameters
    ----------
    graph : object
        A file, a graph of networkx or igraph, a sparse matrix, pairs: what `EdgeList` takes. Whether a file is gzip
        is read from the file itself.
    directed : bool, optional
        False puts the smaller node of each edge first. By default a graph object decides.
    loops, duplicates : {"keep", "drop", "refuse"}
        What to do with an edge from a node to itself, and with one that stood there before. A public graph is read as
        the file has it; an `EdgeList` offered for protection refuses duplicates unless told.
    columns : pair of str or int, optional
        The columns of a csv, tsv or parquet file, or of a table, by name; of text by place, from 1.
    comments : str, optional
        The signs that begin comments at the head of a text file, by default "#%".
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
    return EdgeList(graph, directed, loops, duplicates, columns, comments).edges(node)


def write_edges(edges: Iterable[Any], path: str | os.PathLike[str]) -> None:
    """Write the edges of a public graph in their order, one on each line, with a tab.

    The same edges give the same bytes, gzip included (no time stamp). Sort a set first: it has no order.

    Parameters
    ----------
    edges : iterable of pairs, numpy array or graph
        Pairs, an array of shape (edges, 2), or a graph of networkx or igraph. Nodes are 64-bit integers, or names
        without blanks and quotes that do not begin with `#`, `%` or a byte order mark, or end in a comma or semicolon.
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
    named, faults = False, {}
    if isinstance(edges, np.ndarray) and edges.dtype == np.int64 and edges.shape[1:] == (2,):
        ends = edges.ravel().tolist()
    else:
        edges = edges.tolist() if isinstance(edges, np.ndarray) else list(edges)
        named = any(isinstance(end, str) for edge in edges[:1] if isinstance(edge, (tuple, list)) for end in edge)
        pairs = EdgeList(edges, duplicates="keep").edges(str if named else int)
        ends = [*chain.from_iterable(pairs)]
        why = "a name with a blank or a quote, that begins as a comment, or ends in a comma or semicolon"
        faults = {i: why for i, pair in enumerate(pairs) if named and not all(map(NAME.fullmatch, pair))}
    content = ("%s\t%s\n" * (len(ends) // 2) % (*ends,)).encode()
    if ends and not faults and not reads_back(content, STR if named else INT):
        faults[0] = "a first edge that reads as sizes or as the head of another format (write another edge first)"
    if faults:
        reject("the list of edges", faults, noun="edge")
    path = Path(path)
    if path.suffix.lower() == ".gz":
        content = gzip.compress(content, mtime=0)
    path.write_bytes(content)
