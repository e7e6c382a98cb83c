"""Edge lists: pairs of nodes from text files, csv, parquet, tables, rows and graph objects, and how to read them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from wpinq.errors import PlanError, SourceRejected
from wpinq.expr.types import INT, STR, TupleOf, Type
from wpinq.ingest.data_frames import library_of, records_of_table
from wpinq.ingest.edge_text import read_pairs
from wpinq.ingest.files import format_of, records_of_csv, records_of_parquet
from wpinq.ingest.graph_objects import edges_of_graph, is_graph, own_direction
from wpinq.ingest.rejection import Faults, reject
from wpinq.ingest.rows import records_of_rows
from wpinq.ingest.typed_columns import normalize_column

Policy = Literal["keep", "drop", "refuse"]
_POLICIES = ("keep", "drop", "refuse")
_NODES: dict[type, Type] = {int: INT, str: STR}
_TABLE_FILES = {".csv": records_of_csv, ".parquet": records_of_parquet}


@dataclass(frozen=True, slots=True)
class _GivenEdges:
    """Pairs of nodes as they stand, and how a refusal calls them and their places."""

    edges: list[tuple[Any, Any]]
    directed: bool
    what: str
    noun: str = "edge"
    places: Sequence[int] | None = None
    first: int = 0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EdgeList:
    r"""A graph, or a file or table of its edges, and how to read it.

    A text file, plain or gzip, whatever its name, has two node identifiers to a line, separated by blanks or a
    tab. Blank lines and lines that start with `#` or `%` are comments. Further columns (time stamps, weights) are
    ignored. Of csv and parquet files and of tables two columns are read. Of a graph object its edges are read, each
    undirected one once; nodes without edges and the attributes of edges and nodes are ignored. In a sparse matrix each
    entry is an edge, which must be 1, from its row to its column; of an undirected graph it is symmetric, or holds
    one half.

    Parameters
    ----------
    graph : object
        The path of a file; a graph of networkx or igraph, or some of its edges (`graph.edges`, `graph.es`), where
        nodes of igraph are the names of vertices, or their numbers where they have no names; a matrix of scipy.sparse;
        a numpy array of two columns, a table, or rows of two nodes.
    directed : bool, optional
        False puts each edge in canonical order, the smaller node first, so that `(a, b)` and `(b, a)` are
        duplicates of one another. Unless told, a graph object is what it says of itself, and all else is directed;
        of a sparse matrix it must be told.
    loops : {"keep", "drop", "refuse"}
        What to do with an edge from a node to itself.
    duplicates : {"keep", "drop", "refuse"}
        What to do with an edge that stood there before. Kept duplicates add up to one record of a larger weight, so
        that one unit is one line of the file and no longer one edge of the graph: that has to be said.
    columns : pair of str, optional
        The columns of a csv or parquet file or of a table that hold the two ends of an edge. Unless told, those with
        the names of the source's fields.

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
    >>> flights = path.with_name("flights.csv")
    >>> _ = flights.write_text("day,origin,destination\n1,FRA,LHR\n1,LHR,OSL\n")
    >>> EdgeList(flights, columns=("origin", "destination")).edges(str)
    [('FRA', 'LHR'), ('LHR', 'OSL')]
    """

    graph: Any
    directed: bool | None = None
    loops: Policy = "keep"
    duplicates: Policy = "refuse"
    columns: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        if self.directed is not None and not isinstance(self.directed, bool):
            raise PlanError("directed is True or False, or None for what the graph says of itself")
        for option, policy in (("loops", self.loops), ("duplicates", self.duplicates)):
            if policy not in _POLICIES:
                raise PlanError(f'{option} is one of "keep", "drop", "refuse"')
        if self.columns is not None:
            given = tuple(self.columns) if isinstance(self.columns, (tuple, list)) else ()
            if len(given) != 2 or not all(isinstance(name, str) for name in given) or given[0] == given[1]:
                raise PlanError('columns are the names of two columns, as columns=("origin", "destination")')
            object.__setattr__(self, "columns", given)

    def __repr__(self) -> str:
        """The path or the type of the graph, never an edge."""
        shown = repr(os.fspath(self.graph)) if _is_path(self.graph) else f"<{type(self.graph).__qualname__}>"
        told = [f"{name}={getattr(self, name)!r}" for name in ("directed", "loops", "duplicates", "columns")]
        return f"EdgeList({', '.join([shown, *told])})"

    @property
    def path(self) -> Path | None:
        """The file, where it is one."""
        return Path(self.graph) if _is_path(self.graph) else None

    @property
    def is_directed(self) -> bool:
        """Whether (a, b) and (b, a) are two edges: as told, or as the graph says of itself."""
        return self.directed if self.directed is not None else own_direction(self.graph) is not False

    def records(self, type_: Type) -> list[tuple[Any, Any]]:
        """The edges as records of a source's type, which has two fields, both int or both str.

        Raises
        ------
        SourceRejected
            When the type is another, or as `edges` does.
        """
        if isinstance(type_, TupleOf) and not type_.nullable:
            for node, end in _NODES.items():
                if type_.elements == (end, end):
                    return self._read(node, type_.names)
        raise SourceRejected(
            f"an edge list holds records of two int or two str fields, not of type {type_}: offer csv, parquet, a "
            "table or rows (networkx.to_pandas_edgelist gives the attributes of edges too)"
        )

    def edges(self, node: type) -> list[tuple[Any, Any]]:
        """The edges in the order of the file or graph, with nodes of type `int` or `str`.

        Raises
        ------
        SourceRejected
            When the file or graph cannot be read, holds what is not an edge, or holds what is to be refused.
            Positions are numbers of lines or edges, from 0 in `positions`; lines are counted from 1 in the message.
        PlanError
            When `node` is neither `int` nor `str`, or columns are named of what has none.
        """
        if node not in _NODES:
            raise PlanError("nodes are of type int or str")
        return self._read(node, (None, None))

    def _read(self, node: type, names: tuple[str | None, ...]) -> list[tuple[Any, Any]]:
        found = self._pairs(node, TupleOf(self.columns or names, (_NODES[node], _NODES[node])))
        faults: Faults = {}
        edges = self._apply(found, faults)
        if faults:
            places = found.places
            at = faults if places is None else {places[i]: reason for i, reason in faults.items()}
            reject(found.what, at, noun=found.noun, first=found.first)
        return edges

    def _pairs(self, node: type, type_: TupleOf) -> _GivenEdges:
        path, named, directed = self.path, None not in type_.names, self.directed is not False
        if path is not None and format_of(path) in _TABLE_FILES:
            if not named:
                raise SourceRejected(f'{path} has named columns: say which, as columns=("origin", "destination")')
            return _GivenEdges(_TABLE_FILES[format_of(path)](path, type_), directed, str(path), "row")
        library = library_of(self.graph)
        if library is not None:
            return _GivenEdges(records_of_table(self.graph, library, type_), directed, "the table", "row")
        if self.columns is not None:
            raise PlanError("columns are named of csv and parquet files and of tables: leave them out")
        if path is not None:
            edges, lines = read_pairs(path, node)
            return _GivenEdges(edges, directed, str(path), "line", lines, 1)
        if is_graph(self.graph):
            return _graph_pairs(self.graph, node, self.directed)
        if isinstance(self.graph, (bytes, Mapping)) or not isinstance(self.graph, Iterable):
            raise SourceRejected(
                f"a {type(self.graph).__qualname__} is no list of edges: give the path of a file, a graph, a table, or "
                "rows of two nodes"
            )
        faults: Faults = {}
        edges = records_of_rows(self.graph, type_, faults)
        if faults:
            reject("the edges", faults, noun="edge")
        return _GivenEdges(edges, directed, "the edges")

    def _apply(self, found: _GivenEdges, faults: Faults) -> list[tuple[Any, Any]]:
        edges = found.edges
        if not found.directed or self.directed is False:
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


def _is_path(graph: object) -> bool:
    return isinstance(graph, (str, os.PathLike))


def as_edge_list(data: object) -> object:
    """A graph object as the `EdgeList` that it is unless told otherwise; anything else as it is."""
    return EdgeList(data) if is_graph(data) else data


def _graph_pairs(graph: object, node: type, directed: bool | None) -> _GivenEdges:
    found = edges_of_graph(graph, directed)
    faults: Faults = {}
    ends = [normalize_column(column, _NODES[node], faults, "a node") for column in (found.sources, found.targets)]
    if faults:
        hint = f" ({found.relabel})" if found.relabel else ""
        reject(found.what, {place: f"{reason}{hint}" for place, reason in faults.items()}, noun="edge")
    return _GivenEdges(list(zip(*ends, strict=True)), found.directed, found.what)
