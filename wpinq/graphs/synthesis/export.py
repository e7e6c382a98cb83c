"""Public edges as a graph of networkx or igraph, or as a frame of pandas."""

from __future__ import annotations

from typing import Any

from wpinq.arrays import Integers
from wpinq.errors import AnswersError
from wpinq.graphs.synthesis.degrees import import_igraph
from wpinq.installing import install


def networkx_graph(edges: Integers) -> Any:
    """A networkx.Graph of edges, an array of shape (edges, 2)."""
    try:
        import networkx
    except ModuleNotFoundError:
        raise _missing("networkx", "graphs") from None
    graph = networkx.Graph()
    graph.add_nodes_from(range(_nodes(edges)))
    graph.add_edges_from(edges.tolist())
    return graph


def igraph_graph(edges: Integers) -> Any:
    """An undirected igraph.Graph of edges, an array of shape (edges, 2)."""
    return import_igraph().Graph(n=_nodes(edges), edges=edges)


def pandas_frame(edges: Integers) -> Any:
    """A pandas.DataFrame of edges, an array of shape (edges, 2), with the columns src and dst."""
    try:
        import pandas
    except ModuleNotFoundError:
        raise _missing("pandas", "tables") from None
    return pandas.DataFrame(edges, columns=["src", "dst"])


def _nodes(edges: Integers) -> int:
    return int(edges.max(initial=-1)) + 1


def _missing(library: str, extra: str) -> AnswersError:
    return AnswersError(f"this needs {library}: {install(extra)}")
