"""Edge lists: pairs of nodes from files, tables, rows and graph objects."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from importlib import import_module
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

from wpinq.columns.storage import opened
from wpinq.data.casts import UNFIT, any_of, of_text
from wpinq.data.fields import columns_of
from wpinq.data.files import NO_TEXT, SMALL, ZEROS, file_relation, has_columns, open_file, stage_text
from wpinq.data.layout import Layout
from wpinq.data.rejection import computed
from wpinq.data.relation import STAGED, Relation, rows_in_order, staged
from wpinq.data.rows import columns_relation, is_cursor, rows_relation
from wpinq.data.sources import table_relation
from wpinq.errors import PlanError, SourceRejected
from wpinq.expr.declarations import ID, Person
from wpinq.expr.types import INT, STR, TupleOf, Type

# Graphs of networkx and igraph, their edges, and sparse matrices of scipy: two columns of nodes, side by side.
#
# None of these libraries is imported unless an object of it is offered: a graph names its own library.


@dataclass(frozen=True, slots=True)
class GraphEdges:
    """The edges of a graph as it has them, each undirected one once.

    `relabel` says how nodes of another kind can be made fit.
    """

    sources: list[Any]
    targets: list[Any]
    directed: bool
    what: str
    relabel: str = ""


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
        raise SourceRejected(
            f"{found.what} is undirected: leave out directed=True, or offer the graph with both directions of each edge"
        )
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
    what = "the igraph graph"
    if "name" in graph.vs.attributes():
        names = graph.vs["name"]
        ends = [names[end] for end in ends]
        if _repeated(names):
            raise SourceRejected(f"{what} has several vertices of one name: tell them apart in graph.vs['name']")
    return GraphEdges(ends[::2], ends[1::2], own, what, "del graph.vs['name'] counts the vertices")


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
            f"{what} does not say what an edge is: offer EdgeList(matrix, directed=True) where each entry is an edge "
            "from its row to its column, directed=False where the graph is undirected"
        )
    entries = data.tocoo()
    if not (entries.data == 1).all():
        raise SourceRejected(
            f"{what} has entries that are not 1: offer (matrix != 0) for edges without weights, without the zeros "
            "that are stored, or a mapping {(row, column): weight}"
        )
    sources, targets = entries.row, entries.col
    if not directed:
        if data.shape[0] != data.shape[1]:
            raise SourceRejected(f"{what} of an undirected graph has as many rows as columns")
        counted = entries.astype("int64")  # entries of one place add up
        upper, lower = scipy.sparse.triu(counted, 1).tocsr(), scipy.sparse.tril(counted, -1).T.tocsr()
        if upper.nnz and lower.nnz and (upper != lower).nnz:
            raise SourceRejected(
                f"{what} has an entry on one side of its diagonal only, and others on both: for an undirected graph "
                "make it symmetric, as matrix.maximum(matrix.T), or offer one half, as scipy.sparse.triu(matrix)"
            )
        once = sources <= targets if upper.nnz else sources >= targets  # of a symmetric one those above the diagonal
        sources, targets = sources[once], targets[once]
    return GraphEdges(sources.tolist(), targets.tolist(), directed, what)


_READERS: dict[str, Callable[[Any, bool | None], GraphEdges | None]] = {
    "networkx": _networkx_edges,
    "igraph": _igraph_edges,
    "scipy.sparse": _sparse_edges,
}


Policy = Literal["keep", "drop", "refuse"]
_POLICIES = ("keep", "drop", "refuse")
_NODES: dict[type, Type] = {int: INT, str: STR}
_ENDS = tuple(_NODES.values())


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

    Where a source declares a person, each line is one person's: of the id in a column beside the ends (csv, parquet,
    tables), or of one end, whose edges those then are that name it there; an undirected edge is of neither end. Loops,
    the order of ends and duplicates are settled among the lines of each person before they are cut. Then equal edges
    of several people are dropped to one, kept, or refused.

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
        if isinstance(self.graph, EdgeList):
            raise PlanError("an EdgeList says already how it is read: offer it as it is, or list its .edges(int)")
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

    @property
    def facts(self) -> tuple[str, ...]:
        """What a source of these edges can promise, whatever they are: from how they are read alone.

        Examples
        --------
        >>> EdgeList("graph.txt", directed=False, loops="drop", duplicates="drop").facts
        ('simple', 'unit_weights')
        """
        if self.duplicates == "keep":
            return ()
        return ("unit_weights",) if self.is_directed or self.loops == "keep" else ("simple", "unit_weights")

    def records(self, type_: Type) -> list[tuple[Any, ...]]:
        """The edges as records of a source's type, which has two fields, both int or both str.

        Raises
        ------
        SourceRejected
            When the type is another, or as `edges` does.
        """
        with opened() as connection, ExitStack() as stack:
            stack.enter_context(staged(connection))
            return rows_in_order(connection, self.relation(connection, type_, stack))

    def edges(self, node: type) -> list[tuple[Any, ...]]:
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
        return self.records(TupleOf((None, None), (_NODES[node], _NODES[node])))

    def relation(self, connection: Any, type_: Type, stack: ExitStack, person: Person | None = None) -> Relation:
        """A relation of the edges as records of a source's type, in a DuckDB connection.

        The connection has a place for the staging table.

        Where a person is declared, it is of rows of `person.identified(type_)`.
        """
        if not isinstance(type_, TupleOf) or type_.nullable or type_.elements not in [(end, end) for end in _ENDS]:
            raise SourceRejected(
                f"an edge list holds records of two int or two str fields, not of type {type_}: offer csv, parquet, a "
                "table or rows (networkx.to_pandas_edgelist gives the attributes of edges too)"
            )
        names, types = self.columns or type_.names, tuple(end.with_nullable(False) for end in type_.elements)
        if person is not None:
            self._check_whose(person, (*names, *type_.names))
            place = person.id_field(type_)
            if place is not None and names[place] != person.column and person.column in self._offered_names():
                raise SourceRejected(
                    f"whose an edge is could be said by the column {person.column!r} of the data or by "
                    f"{names[place]!r}, which columns name for the field {person.column!r}: rename the column, or the "
                    "field and the person with it"
                )
            if place is None:
                names, types = (*names, person.column), (*types, ID)
        return self._told(self._rows(connection, TupleOf(names, types), stack))

    def _offered_names(self) -> Collection[object]:
        """The names of the columns that the data have, where they have columns."""
        if is_cursor(self.graph):
            return [column[0] for column in self.graph.description or ()]
        with suppress(SourceRejected):  # what has no columns is refused when it is read
            return computed(lambda: columns_of(self.graph).names, "its columns cannot be read") or ()
        return ()

    def _check_whose(self, person: Person, ends: Sequence[str | None]) -> None:
        """Refuse edges that do not say whose they are."""
        column = person.column
        if column in ends and not self.is_directed:
            raise SourceRejected(
                f"an undirected edge is as much of one end as of the other, and {column!r} is the one that comes first "
                "by chance: offer each edge in both directions with directed=True (a graph as graph.to_directed()), "
                f"where those that have a node as {column!r} are its own; or name a column of ids beside the ends"
            )
        without = self.path is not None and not has_columns(self.path)
        if column not in ends and (without or is_graph(self.graph)):
            raise SourceRejected(
                f"the data do not say whose they are: they hold two nodes to an edge, and no {column!r}. Offer a csv "
                "or parquet file or a table with this column (networkx.to_pandas_edgelist gives attributes of edges), "
                f"or declare the end whose edges they are, as person={ends[-2]!r}"
            )

    def _rows(self, connection: Any, type_: TupleOf, stack: ExitStack) -> Relation:
        """The edges as they stand."""
        path, data = self.path, self.graph
        if path is not None:
            if has_columns(path) and None in type_.names:
                raise SourceRejected(f'{path} has named columns: say which, as columns=("origin", "destination")')
            relation = file_relation(connection, path, type_, stack)
        else:
            relation = table_relation(connection, data, type_, stack)
        if relation is not None:
            return relation
        if self.columns is not None:
            raise PlanError("columns are named of csv and parquet files and of tables: leave them out")
        if path is not None:
            return _text_relation(connection, path, type_, stack)
        if is_graph(data):
            return _graph_relation(connection, data, self.directed, type_)
        if isinstance(data, (bytes, Mapping)) or not isinstance(data, Iterable):
            raise SourceRejected(
                f"a {type(data).__qualname__} is no list of edges: give the path of a file, a graph, a table, or "
                "rows of two nodes"
            )
        relation = rows_relation(connection, data, type_, "the edges")
        relation.noun = "edge"
        return relation

    def _told(self, relation: Relation) -> Relation:
        """A relation of edges, read as the options say."""
        (one, other, *_), anew = relation.leaves, relation.anew
        loop = f"{one} = {other}"
        if not self.is_directed:
            relation.leaves, relation.checked = _in_order(relation.leaves), _in_order(relation.checked)
        if self.loops == "refuse":
            relation.unfit = (*relation.unfit, (loop, "an edge from a node to itself (drop loops to leave it out)"))
            relation.checked = ()
        elif self.loops == "drop":
            stood = f", {relation.number} AS stood" if relation.places else ""
            kept = f"{any_of([condition for condition, _ in relation.unfit])} OR ({loop}) IS NOT TRUE"
            relation.source = f"(SELECT * FROM (SELECT *{stood} FROM {relation.source}) WHERE {kept})"
            relation.number = "stood" if relation.places else relation.number
        relation.repeats = self.duplicates
        relation.anew = None if anew is None else lambda: self._told(anew())
        return relation


def _in_order(leaves: Sequence[str]) -> Sequence[str]:
    """Two nodes as SQL, the smaller one first, before what else there is; nothing of nothing."""
    ends = ", ".join(leaves[:2])
    return [*(f"{order}({ends})" for order in ("least", "greatest")), *leaves[2:]] if leaves else leaves


def _is_path(graph: object) -> bool:
    return isinstance(graph, (str, os.PathLike))


def as_edge_list(data: object) -> object:
    """A graph object as the `EdgeList` that it is unless told otherwise; anything else as it is."""
    return EdgeList(data) if is_graph(data) else data


def _graph_relation(connection: Any, graph: object, directed: bool | None, type_: TupleOf) -> Relation:
    found = edges_of_graph(graph, directed)
    relation = columns_relation(connection, [((found.sources, found.targets), {}, None)], type_, found.what)
    relation.noun = "edge"
    if found.relabel:
        reasons = {f"{reason} ({found.relabel})": times for reason, times in relation.found.reasons.items()}
        relation.found.reasons = Counter(reasons)
    return relation


# --- text -------------------------------------------------------------------------------------------------------------

_BOM = b"\xef\xbb\xbf"
_COMMENT = (b"#", b"%")
_INTEGER = re.compile(rb"[+-]?[0-9]+")
_LONGEST = 2**20
_READ = "auto_detect=false, header=false, quote='', escape='', comment='', nullstr='\x01', strict_mode=true"


def _text_relation(connection: Any, path: Path, type_: TupleOf, stack: ExitStack) -> Relation:
    """The edges of a text file, as they stand.

    DuckDB reads files with one kind of line, Python any other.
    """
    layout, what, node = Layout.of(type_), str(path), type_.elements[0]
    casts = [of_text(f"g{i}", node) for i in (0, 1)]
    file = open_file(path, stack)

    def in_python() -> Relation:
        file.seek(0)
        found = stage_text(connection, _pairs(file.read().removeprefix(_BOM), path, node), 2)
        options: dict[str, Any] = {"noun": "line", "first": 1, "number": "n", "found": found}
        relation = Relation.of_fields(what, STAGED, casts, layout, **options)
        relation.advice = {}
        return relation

    shape = _shape(file)
    if shape is None:
        return in_python()
    skipped, delimiter, width = shape
    columns = ", ".join(f"'g{i}': 'VARCHAR'" for i in range(width))
    read = f"read_csv('/dev/fd/{file.fileno()}', columns={{{columns}}}, skip={skipped}, delim='{delimiter}', {_READ})"
    (a,), (b,) = (cast.checked for cast in casts)
    where = ""
    if node == STR:
        names = " AND ".join(f"regexp_full_match(g{i}, '[^ \\t\\n\\v\\f\\r]+')" for i in (0, 1))
        where = f" WHERE CASE WHEN {names} AND g0[1] NOT IN ('#', '%') THEN true ELSE {UNFIT} END"
    source = f"(SELECT {a} AS a, {b} AS b FROM {read}{where})"
    small = os.fstat(file.fileno()).st_size <= SMALL
    return Relation(what, source, ("a", "b"), small=small, places=False, anew=in_python)


def _shape(file: Any) -> tuple[int, str, int] | None:
    """The number of lines before the first edge, the separator and the number of columns.

    None of an irregular file.
    """
    file.seek(0)
    for number, line in enumerate(iter(lambda: file.readline(_LONGEST), b"")):
        line = line.removeprefix(_BOM) if number == 0 else line
        if not line.strip() or b"\r" in line.rstrip(b"\r\n"):
            return None
        if not line.startswith(_COMMENT):
            text = line.rstrip(b"\r\n")
            delimiter = "\t" if b"\t" in text else " "
            width = text.count(delimiter.encode()) + 1
            return (number, delimiter, width) if width > 1 else None
    return None


def _pairs(content: bytes, path: Path, node: Type) -> Iterator[tuple[int, Sequence[str] | str]]:
    """The lines of edges by number, each with the text of both nodes or a refusal's reason."""
    if b"\0" in content:
        is_text = content.decode(errors="ignore").encode() == content
        raise SourceRejected(f"{path} {ZEROS if is_text else NO_TEXT}")
    for number, line in enumerate(content.splitlines()):
        pair = line.split(None, 2)[:2]
        if not pair or pair[0].startswith(_COMMENT):
            continue
        if len(pair) < 2:
            yield number, "fewer than two columns (separated by blanks or tabs; with commas it is csv)"
        elif node == INT and not all(_INTEGER.fullmatch(end) for end in pair):
            yield number, "a node that is not an integer (declare str nodes to read names)"
        elif node == STR and b"\t" in line and [part.strip() for part in line.split(b"\t", 2)[:2]] != pair:
            # A name with blanks between tabs would be torn apart silently.
            yield number, "blanks and tabs split the line differently (names with blanks need csv)"
        else:
            try:
                yield number, [end.decode() for end in pair]
            except UnicodeDecodeError:
                yield number, "a name that is not UTF-8 text"
