"""Files of graphs: formats known by their first lines or names, read or refused.

scipy reads matrices, networkx reads GML and GraphML. Their text of a failure quotes lines, and never reaches a message.
They get text and no path, and no XML with declarations: nothing is fetched, executed or expanded.
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
from pathlib import Path
from typing import Any

from wpinq.data.files import format_of, lines_of
from wpinq.data.graph_objects import GraphEdges
from wpinq.data.relation import Relation
from wpinq.errors import PlanError, SourceRejected
from wpinq.expr.types import INT, TupleOf, Type
from wpinq.expr.values import UnfitValue
from wpinq.runtime.optional_imports import install

_Found = tuple[bool | None, Sequence[tuple[Any, Any]], Mapping[Any, Any]]
"""Of a file: whether its edges are directed, where it says so; their ends by id; and the labels of ids, if any."""


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
"""Formats other than a text edge list: name, head, endings of names, and reader or mend. What has no head is last."""

READ_ENDINGS = tuple(ending for *_, endings, read in _FORMATS if callable(read) for ending in endings.split())


_COMMENT = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:(?:[#%]|//).*|c(?:\s.*)?)?\s*")
"""A line of comments in one of the formats."""


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
