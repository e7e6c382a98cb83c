"""Edges of graphs of networkx and igraph, and of sparse matrices, as two columns of nodes.

None of these libraries is imported unless an object of it is offered: a graph names its own library.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import chain
from operator import itemgetter
from typing import Any

from wpinq.data.relation import Relation
from wpinq.data.rows import columns_relation
from wpinq.errors import SourceRejected
from wpinq.expr.types import TupleOf


@dataclass(frozen=True, slots=True)
class GraphEdges:
    """The edges of a graph as it has them, each undirected one once.

    `relabel` says how nodes of another kind can be made fit.
    """

    sources: list[Any]
    targets: list[Any]
    directed: bool
    what: str
    relabel: str

    def relation(self, connection: Any, type_: TupleOf) -> Relation:
        """The relation of the edges as records of a type."""
        relation = columns_relation(connection, [((self.sources, self.targets), {}, None)], type_, self.what)
        relation.noun = "edge"
        reasons = relation.found.reasons.items()
        relation.found.reasons = Counter({f"{reason} ({self.relabel})": times for reason, times in reasons})
        return relation


def is_graph(data: object) -> bool:
    """Whether an object is a graph of a library, or a view of one.

    A view may look like a mapping or rows.
    """
    return _library(data) is not None


def own_direction(data: Any) -> bool | None:
    """Whether the edges of a graph object are directed; None where it does not say."""
    library, graph = _library(data), graph_of(data)
    if library not in ("networkx", "igraph") or not isinstance(graph, import_module(library).Graph):
        return None
    return bool(graph.is_directed())


def graph_of(data: Any) -> Any:
    """The graph whose edges these are, where they are a view of a graph; anything else as it is."""
    library = _library(data)
    if library == "igraph":
        import igraph

        return data.graph if isinstance(data, igraph.EdgeSeq) else data
    if library == "networkx" and isinstance(data, _networkx_views()):  # the views have no other way to their graph
        return getattr(getattr(data, "_viewer", data), "_graph", data)
    return data


def edges_of_graph(data: Any, directed: bool | None = None) -> GraphEdges:
    """The edges of a graph object.

    Parameters
    ----------
    data : object
        For which `is_graph` says so.
    directed : bool, optional
        What an edge is, where the object does not say so itself: of a sparse matrix it must be told.

    Raises
    ------
    SourceRejected
        When the object holds no edges, or is not as it is told to be.
    """
    library = _library(data)
    assert library is not None
    found = _READERS[library](data, directed)
    if found is None:
        raise SourceRejected(f"a {type(data).__qualname__} of {library} is no graph: offer the graph, or its edges")
    if directed and not found.directed:
        raise SourceRejected(f"{found.what} is undirected: leave out directed=True, or offer both directions of edges")
    return found


def _library(data: object) -> str | None:
    for base in type(data).__mro__:
        for library in _READERS:
            if base.__module__ == library or base.__module__.startswith(f"{library}."):
                return library
    return None


def _networkx_edges(data: Any, directed: bool | None) -> GraphEdges | None:
    own = own_direction(data)
    if own is None:
        return None
    edges: Any = data if isinstance(data, _networkx_views()) else data.edges()
    ends = list(chain.from_iterable(map(itemgetter(0, 1), edges)))
    relabel = "networkx.relabel_nodes(graph, str) names nodes, networkx.convert_node_labels_to_integers(graph) counts"
    return GraphEdges(ends[::2], ends[1::2], own, "the networkx graph", relabel)


def _networkx_views() -> tuple[type, ...]:
    """The views of edges in networkx, some of which are mappings."""
    from networkx.classes import reportviews

    return reportviews.OutEdgeView, reportviews.OutEdgeDataView


def _igraph_edges(data: Any, directed: bool | None) -> GraphEdges | None:
    own, graph = own_direction(data), graph_of(data)
    if own is None:
        return None
    pairs = graph.get_edgelist()
    if graph is not data:
        pairs = [pairs[i] for i in data.indices]
    ends: list[Any] = list(chain.from_iterable(pairs))
    what, relabel = "the igraph graph", "graph.vs['name'] = graph.vs['label'], or other names, names the vertices"
    if "name" in graph.vs.attributes():
        relabel = "del graph.vs['name'] counts the vertices"
        names = graph.vs["name"]
        ends = [names[end] for end in ends]
        if _repeated(names):
            raise SourceRejected(f"{what} has several vertices of one name: tell them apart in graph.vs['name']")
    return GraphEdges(ends[::2], ends[1::2], own, what, relabel)


def _repeated(names: Sequence[Any]) -> bool:
    try:
        return len(set(names)) < len(names)
    except TypeError:
        return False  # no node can be of such a kind, which is said of each


def _sparse_edges(data: Any, directed: bool | None) -> GraphEdges | None:
    import scipy.sparse

    what = "the sparse matrix"
    if not scipy.sparse.issparse(data) or data.ndim != 2:
        return None
    if directed is None:
        raise SourceRejected(
            f"{what} does not say if edges are directed: give directed=True (from row to column) or False"
        )
    entries = data.tocoo()
    if not (entries.data == 1).all():
        raise SourceRejected(f"{what} has entries that are not 1: offer (matrix != 0), or {{(row, column): weight}}")
    sources, targets = entries.row, entries.col
    if not directed:
        if data.shape[0] != data.shape[1]:
            raise SourceRejected(f"{what} of an undirected graph has as many rows as columns")
        counted = entries.astype("int64")  # entries of one place add up
        upper, lower = scipy.sparse.triu(counted, 1).tocsr(), scipy.sparse.tril(counted, -1).T.tocsr()
        if upper.nnz and lower.nnz and (upper != lower).nnz:
            raise SourceRejected(
                f"{what} has an entry on one side of its diagonal only, and others on both: offer one half, as "
                "scipy.sparse.triu(matrix), or make it symmetric, as matrix.maximum(matrix.T)"
            )
        once = sources <= targets if upper.nnz else sources >= targets  # of a symmetric one those above the diagonal
        sources, targets = sources[once], targets[once]
    return GraphEdges(sources.tolist(), targets.tolist(), directed, what, "declare int nodes to read numbers")


_READERS: dict[str, Callable[[Any, bool | None], GraphEdges | None]] = {
    "networkx": _networkx_edges,
    "igraph": _igraph_edges,
    "scipy.sparse": _sparse_edges,
}
