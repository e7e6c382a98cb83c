"""Graphs as two columns of nodes: objects of libraries, and files of their formats.

Files are known by their first lines or names. scipy reads matrices, networkx reads GML and GraphML. Their text of a
failure quotes lines, and never reaches a message. They get text and no path, and no XML with declarations: nothing is
fetched, executed or expanded. No library is imported unless an object or a file of it is offered: a graph names its own
library.
"""

from __future__ import annotations

import io
import re
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import chain, dropwhile, islice
from operator import itemgetter
from pathlib import Path
from typing import Any

from wpinq.data.files import format_of, lines_of
from wpinq.data.relation import Relation
from wpinq.data.rows import columns_relation
from wpinq.errors import PlanError, SourceRejected, install
from wpinq.expr.types import INT, TupleOf, Type
from wpinq.expr.values import UnfitValue

# Graph objects.


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
    found = _LIBRARIES[library](data, directed)
    if found is None:
        raise SourceRejected(f"a {type(data).__qualname__} of {library} is no graph: offer the graph, or its edges")
    if directed and not found.directed:
        raise SourceRejected(f"{found.what} is undirected: leave out directed=True, or offer both directions of edges")
    return found


def _library(data: object) -> str | None:
    for base in type(data).__mro__:
        for library in _LIBRARIES:
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


_LIBRARIES: dict[str, Callable[[Any, bool | None], GraphEdges | None]] = {
    "networkx": _networkx_edges,
    "igraph": _igraph_edges,
    "scipy.sparse": _sparse_edges,
}


# Files of graphs.

#: Of a file: whether its edges are directed, where it says so; their ends by id; and the labels of ids, if any.
_Found = tuple[bool | None, Sequence[tuple[Any, Any]], Mapping[Any, Any]]


@dataclass(frozen=True, slots=True)
class FoundEdges:
    """The edges of a file that is not a text edge list, each undirected one once.

    Attributes
    ----------
    path, format : Path, str
        The file, and the name of its format, for messages.
    directed : bool, optional
        Whether edges are directed, where the format says it.
    pairs : sequence
        The ends of edges by the ids that the file gives to nodes.
    labels : mapping
        The labels of ids, if any.
    """

    path: Path
    format: str
    directed: bool | None
    pairs: Sequence[tuple[Any, Any]]
    labels: Mapping[Any, Any]

    def form(self, node: Type) -> str:
        """The form in words, which hang on nothing but the format and the labels."""
        return f"{self.format}, nodes by {'id' if node == INT or not self.labels else 'label'}, without weights"

    def relation(self, connection: Any, type_: TupleOf, directed: bool) -> Relation:
        """The relation of the edges: int nodes are ids, str nodes labels, or ids as text."""
        ids = {*chain(*self.pairs)}
        names = {id_: self.labels.get(id_) if self.labels else str(id_) for id_ in ids}
        if type_.elements[0] == INT:
            names = {id_: int(id_) if re.fullmatch("0|-?[1-9][0-9]{0,19}", str(id_)) else id_ for id_ in ids}
        elif len({name for name in names.values() if isinstance(name, str) and name}) < len(names):
            raise SourceRejected(f"{self.path} has labels that are no text or not unique: declare int nodes for ids")
        one, other = ([names[pair[i]] for pair in self.pairs] for i in (0, 1))
        found = GraphEdges(one, other, directed, f"{self.path} ({self.format})", "declare str nodes for names")
        return found.relation(connection, type_)


# --- readers, of a text, the end of the sign of its format in it, and whether weights are left out --------------------


def _matrix_market(text: str, sign: int, weighted: bool) -> _Found:
    """By scipy: each entry is an edge from its row to its column."""
    import scipy.io

    matrix, kind, field, symmetry = text[sign : sign + 200].lower().split(None, 4)[:4]
    if (matrix, kind) != ("matrix", "coordinate") or symmetry not in ("general", "symmetric"):
        raise UnfitValue("is read as a coordinate matrix, general or symmetric: convert it")
    lines = [line for line in text[sign:].split("\n")[1:] if line.strip() and not line.lstrip().startswith("%")]
    columns = {"pattern": 2, "complex": 4}.get(field, 3)  # of more, it passes over the rest
    if not weighted and any(len(line.split()) > columns for line in lines[1:]):
        raise UnfitValue("has more columns than it says: columns=(1, 2) leaves them out")
    found = scipy.io.mmread(io.BytesIO(f"%%MatrixMarket{text[sign:]}\n".encode()))  # it reads beyond an open end
    if (found.data == 0).any() or (not weighted and (found.data != 1).any()):
        raise UnfitValue("has entries that are not 1: columns=(1, 2) leaves weights out, and zeros are refused")
    if found.shape[0] != found.shape[1]:
        raise UnfitValue("is not square: its rows and columns are not the same nodes")
    pairs = zip((found.row + 1).tolist(), (found.col + 1).tolist(), strict=True)
    once = [(a, b) for a, b in pairs if symmetry == "general" or a >= b]
    return None if symmetry == "general" else False, once, {}


def _metis(text: str, *_: object) -> _Found:
    """The head `n m [fmt [ncon]]`, then a line of neighbours for each node.

    Digits of fmt say whether sizes and weights of nodes, and weights of edges, stand beside them.
    """
    head, *rest = [line.split() for line in text.split("\n") if not line.lstrip().startswith("%")]
    nodes, edges, kind, constraints = [*map(_whole, head), *(0, 1)[len(head) - 2 :]]
    sizes, weights, valued = map("01".index, f"{kind:03}")
    before, step = sizes + weights * constraints, 1 + valued
    lists = [line[before:] for line in rest[:nodes] if len(line) >= before and (len(line) - before) % step == 0]
    pairs = Counter((a, _whole(b)) for a, ends in enumerate(lists, 1) for b in ends[::step])
    twice = all(a != b and pairs[b, a] == times for (a, b), times in pairs.items())
    if len(lists) != nodes or any(rest[nodes:]) or not twice or pairs.total() != 2 * edges:
        raise UnfitValue("has not, below `n m`, n lines of neighbours, each edge twice: of edges say columns=(1, 2)")
    return False, [(a, b) for a, b in pairs.elements() if a < b], {}


def _pajek(text: str, *_: object) -> _Found:
    """One section of arcs or of edges.

    igraph ends at a blank line, and networkx reads the head of a second section as an edge.
    """
    lines = [line.strip(" \t") for line in text.split("\n") if line.strip() and not line.lstrip().startswith("%")]
    starts = [i for i, line in enumerate(lines) if re.match(r"(?i)\*(?!network)", line)]
    (_start, nodes), section = lines[starts[0]].split(), lines[starts[-1]].lower()
    if len(starts) != 2 or section not in ("*arcs", "*edges"):
        raise UnfitValue("is read where it has one network, and in it one section, *Arcs or *Edges")
    found = [_VERTEX.fullmatch(line).groups() for line in lines[starts[0] + 1 : starts[1]]]  # type: ignore[union-attr]
    labels = {int(id_): quoted or plain for id_, quoted, plain in found}
    pairs = [(_whole(a), _whole(b)) for a, b, *_ in map(str.split, lines[starts[1] + 1 :])]
    ids = {*labels, *chain(*pairs)}
    if len(labels) < len(found) or not 1 <= min(ids, default=1) <= max(ids, default=1) <= _whole(nodes):
        raise UnfitValue("has a vertex twice, or one that is beyond their number")
    return section == "*arcs", pairs, labels if any(labels.values()) else {}


_VERTEX = re.compile(r'(?a)([0-9]+)(?:\s+(?:"([^"]*)"|([^\s"]+))(?:\s.*)?)?')  # a blank of Unicode is in a name


def _whole(word: str) -> int:
    return int(re.fullmatch("[0-9]{1,18}", word)[0])  # type: ignore[index]  # an error of any kind will do


_GML_WORD = re.compile(r'"[^"]*"|#[^\n]*|\b((?i:graph|directed|node|edge|source|target))\b')


def _gml(text: str, sign: int, *_: object) -> _Found:
    """By networkx, told that an edge may stand there twice, which it refuses else.

    Keys are given in lower case, as it knows them.
    """
    low = re.sub(_GML_WORD, lambda found: found[0].lower() if found[1] else found[0], text)
    ways = set(re.findall(r"\bdirected\s+([^\s\]]*)", re.sub(_GML_WORD, lambda found: found[1] or '""', low)))
    if ways not in (set(), {"0"}, {"1"}):
        raise UnfitValue("says `directed` in another way than by 0 or by 1")
    lines = f"{low[:sign]} multigraph 1 {low[sign:]}".split("\n")
    graph = import_module("networkx").parse_gml(lines, label="id")
    return _all_edges(graph, low, r"\bedge\s*\[", dict(graph.nodes(data="label")))


def _graphml(text: str, *_: object) -> _Found:
    """By networkx, to whose parser text is UTF-8 whatever it declares to be."""
    if re.search(r"<!(?!--|\[CDATA\[)", text):
        raise UnfitValue("has a DOCTYPE or declares entities, which are not read: leave them out")
    if not all(map(_EDGE_DEFAULT.search, re.findall(r"<(?:\w+:)?graph\b[^>]*", text))):
        raise UnfitValue('has no direction of edges: write edgedefault="directed" or "undirected" into <graph>')
    graph = import_module("networkx").parse_graphml(text, force_multigraph=True)
    return _all_edges(graph, text, r"<(?:\w+:)?edge\b", {})


_EDGE_DEFAULT = re.compile(r"""\sedgedefault\s*=\s*(?:"(?:un)?directed"|'(?:un)?directed')""")


def _all_edges(graph: Any, text: str, edge: str, labels: Mapping[Any, Any]) -> _Found:
    """The content of a graph of networkx, unless the text has more edges.

    networkx reads the first graph of several, and no graph inside a node.
    """
    if len(re.findall(edge, text)) != graph.number_of_edges():
        raise UnfitValue("is read where it has one graph, none inside a node, and no two edges of one id")
    return graph.is_directed(), list(graph.edges()), labels if any(labels.values()) else {}


# --- formats ----------------------------------------------------------------------------------------------------------

_DOT = r'(?i)(?:(?://|#)[^\n]*\n\s*|/\*(?:[^*]|\*(?!/))*\*/\s*)*(?:strict\s+)?(?:di)?graph\b\s*(?:"[^"]*"\s*|\w+\s*)?\{'
_LGL = r"# ?(?:[0-9]+\n[0-9]+|[^\s0-9]\S*\n[^\s0-9]\S*)[ \t]+[0-9.]+[ \t]*(?:\n|$)"
#: Formats other than a text edge list: name, head, endings of names, and reader or mend. What has no head is last.
_FORMATS: tuple[tuple[str, str, str, Callable[[str, int, bool], _Found] | str], ...] = (
    ("Matrix Market", r"[%#]{1,2}[ \t]*(?i:MatrixMarket)\b", ".mtx", _matrix_market),
    ("Pajek", r"(?i)(?:%[^\n]*\n\s*)*\*(?:vertices|network)\b", ".net .paj", _pajek),
    ("GML", r"(?i)(?:(?:#|creator\b|version\b|comment\b)[^\n]*\n\s*)*graph\s*\[", ".gml", _gml),
    ("GraphML", r"(?s)<.*<?graphml\b", ".graphml", _graphml),
    ("XML", r"<[?!\w]", "", "offer the graph of networkx.read_gexf or of another reader"),
    ("DOT", _DOT, "", "offer the graph of networkx.nx_pydot.read_dot"),
    ("DIMACS", r"(?:c\b[^\n]*\n\s*)*p\s+\w+\s+\d+\s+\d+", "", "keep lines e or a, with columns=(2, 3)"),
    ("a KONECT file of two kinds of nodes", r"%\s*bip\b", "", "take out its first line, and say directed=True"),
    ("an adjacency list of networkx", r"#[^\n]*\n# GMT ", "", "offer networkx.read_adjlist or read_multiline_adjlist"),
    ("LGL", _LGL, "", "offer igraph.Graph.Read_LGL of it, or take out the first line where it is a comment"),
    ("JSON", r"[{\[]\s*[\"{\[]", "", "offer networkx.node_link_graph of it"),
    ("bzip2", "BZh[1-9]", "", "unpack it"),
    ("xz", "\xfd7zXZ", "", "unpack it"),
    ("zip", "PK\x03\x04", "", "unpack it"),
    ("UTF-16 and not UTF-8 text", "\xff\xfe|\xfe\xff", "", "convert it, as by iconv -f UTF-16 -t UTF-8"),
    ("METIS", "", ".graph .metis", _metis),
    ("an adjacency list", "", ".adjlist", "offer networkx.read_adjlist of it"),
)

READ_ENDINGS = tuple(ending for *_, endings, read in _FORMATS if callable(read) for ending in endings.split())


#: A line of comments in one of the formats.
_COMMENT = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:(?:[#%]|//).*|c(?:\s.*)?)?\s*")


def formats_of(head: bytes, ending: str = "") -> list[Any]:
    """The formats that a file begins as; then those that the ending of its name alone says."""
    text = re.sub("\r\n?", "\n", head.decode("latin-1").removeprefix("\xef\xbb\xbf").lstrip())
    return [f for f in _FORMATS if (re.match(f[1], text) if f[1] else ending and ending in f[2].split())]


def read_graph_file(path: Path, file: Any, directed: bool | None, columns: tuple[Any, Any] | None) -> FoundEdges | None:
    """The edges of an open file of a graph; None of a possible text edge list.

    With columns by place, the ending of a name alone says no format.

    Raises
    ------
    SourceRejected
        When the format is not read, or the file is not of the form that it says.
    """
    file.seek(0)
    formats = formats_of(file.read(2**16))
    below = b"".join(islice(dropwhile(_COMMENT.fullmatch, lines_of(file)), 100))  # of comments
    formats += formats_of(below[: 2**16], "" if columns else format_of(path))
    if not formats:
        return None
    name, sign, _, read = formats[0]
    if not callable(read):
        raise SourceRejected(f"{path} is {name}, and no edge list: {read}")
    if columns is not None and (read is not _matrix_market or columns != (1, 2)):
        raise PlanError("columns by position are for edge lists in text, and (1, 2) for Matrix Market: leave them out")
    why = "cannot be read as such: it is damaged, no UTF-8 text, or of another form"
    try:
        file.seek(0)
        content = file.read().replace(b"\0", b"\xff")  # which is no text: zeros end the process in a reader of C
        text = re.sub("\r\n?", "\n", content.decode("utf-8-sig")).lstrip()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # their words may quote lines, too
            found = read(text, re.match(sign, text).end(), columns is not None)  # type: ignore[union-attr]
        if found[0] is not None or directed is not None:
            return FoundEdges(path, name, *found)
        why = "does not say if edges are directed: give directed=True (from row to column) or directed=False"
    except UnfitValue as unfit:
        why = str(unfit)
    except ImportError:
        why = f"is read by networkx: {install('graphs')}"
    except Exception:  # of whatever kind, its words may quote lines
        pass
    raise SourceRejected(f"{path} ({name}) {why}")
