"""Edge lists: pairs of nodes from files, tables, rows and graph objects."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from wpinq.columns.storage import opened
from wpinq.data.casts import any_of
from wpinq.data.edge_files import TextForm
from wpinq.data.fields import columns_of
from wpinq.data.files import CsvFile, file_relation, format_of, has_columns, open_file
from wpinq.data.graphs import READ_ENDINGS, FoundEdges, edges_of_graph, is_graph, own_direction, read_graph_file
from wpinq.data.relation import Relation, computed, rows_in_order, staged
from wpinq.data.rows import is_cursor, rows_relation
from wpinq.data.sources import table_relation
from wpinq.errors import PlanError, SourceRejected
from wpinq.expr.declarations import ID, Person
from wpinq.expr.types import INT, STR, TupleOf, Type
from wpinq.runtime.progress import tell_terminal
from wpinq.runtime.public import public

Policy = Literal["keep", "drop", "refuse"]
_NODES: dict[type, Type] = {int: INT, str: STR}
_ENDINGS = (".txt", ".tsv", ".edges", ".edgelist", ".ncol", *READ_ENDINGS)
_NO_USE = "columns by name are of tables, csv and parquet, by place of text, and so are comments: leave them out"
_SIGNS = re.compile(r"[^\w\s+\-.,;'\"]*")


@public
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EdgeList:
    r"""The edges of a graph, file or table, with options for reading them.

    A text file, plain or gzip, has one edge on each line: two node identifiers between blanks or tabs, with as many
    columns as on the first line. Names may be quoted as in csv. Lines above the first edge that begin with `#` or `%`
    are comments. Matrix Market, METIS (named .graph), Pajek, GML and GraphML files are read as graphs; other graph
    formats are refused by name. In csv and parquet files, tsv files with a line of names, and tables, two columns are
    read. A graph object gives its edges, each undirected one once; isolated nodes and attributes are ignored. Each
    entry of a sparse matrix is 1, for an edge from its row to its column; the matrix of an undirected graph is
    symmetric, or holds one half.

    On a terminal, stderr shows the form, and never a number of lines or edges.

    Parameters
    ----------
    graph : object
        The path of a file; a graph of networkx or igraph, or its edges (`graph.edges`, `graph.es`); a matrix of
        scipy.sparse; a numpy array of two columns, a table, or rows of two nodes. Nodes of igraph are vertex names, or
        numbers if unnamed.
    directed : bool, optional
        False puts the smaller node of each edge first, so that `(a, b)` and `(b, a)` are duplicates. By default graph
        objects and files decide, a matrix needs the option, and other data are directed.
    loops : {"keep", "drop", "refuse"}
        The treatment of edges from a node to itself.
    duplicates : {"keep", "drop", "refuse"}
        The treatment of repeated edges. Kept duplicates add up to one record of a larger weight, so the unit is one
        line of the file and not one edge of the graph: declare it so.
    columns : pair of str or int, optional
        The columns of a csv, tsv or parquet file or of a table with the two ends of an edge; by default those named
        like the fields of the source. For text without names, positions from 1; other columns may then be missing on
        some lines. For a Matrix Market file (1, 2), which drops weights.
    comments : str, optional
        The signs that begin comments at the head of a text file, by default "#%"; "" for none.

    Raises
    ------
    PlanError
        For an unknown option.

    Notes
    -----
    Reading costs no privacy, because nothing is released. The curator decides beforehand whether to drop edges.

    If a source declares a person, each line belongs to one person: to the id in a column beside the ends (csv, parquet,
    tables), or to one of the ends. An undirected edge belongs to neither end. The options for loops, direction and
    duplicates apply to the lines of each person before the cut. Then equal edges of several people are dropped to one,
    kept, or refused.

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
    columns: tuple[str, str] | tuple[int, int] | None = None
    comments: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.graph, EdgeList):
            raise PlanError("an EdgeList says already how it is read: offer it as it is, or list its .edges(int)")
        if self.directed is not None and not isinstance(self.directed, bool):
            raise PlanError("directed is True or False, or None for what the graph says of itself")
        for option, policy in (("loops", self.loops), ("duplicates", self.duplicates)):
            if policy not in get_args(Policy):
                raise PlanError(f'{option} is one of "keep", "drop", "refuse"')
        if self.columns is not None:
            given = tuple(self.columns) if isinstance(self.columns, (tuple, list)) else ()
            placed = all(type(column) is int and column > 0 for column in given)
            if len(given) != 2 or given[0] == given[1] or not (placed or all(isinstance(name, str) for name in given)):
                raise PlanError('columns are two names, as ("origin", "destination"), or two places in text, as (1, 2)')
            object.__setattr__(self, "columns", given)
        if self.comments is not None and not (isinstance(self.comments, str) and _SIGNS.fullmatch(self.comments)):
            raise PlanError('comments are the signs that lines of comment begin with, as "#%", or "" where none does')

    def __repr__(self) -> str:
        """The path or the type of the graph, never an edge."""
        shown = repr(os.fspath(self.graph)) if _is_path(self.graph) else f"<{type(self.graph).__qualname__}>"
        return f"EdgeList({', '.join([shown, *(f'{name}={getattr(self, name)!r}' for name in self.__slots__[1:])])})"

    @property
    def path(self) -> Path | None:
        """The path of the file; None for other data."""
        return Path(self.graph) if _is_path(self.graph) else None

    @property
    def is_directed(self) -> bool:
        """Whether (a, b) and (b, a) are two edges: by the option, or by the graph or file."""
        with suppress(SourceRejected, PlanError), ExitStack() as stack:  # which is refused when it is read
            return self._in_file(stack, again=True)[1] is not False if self.directed is None else self.directed
        return True

    @property
    def facts(self) -> tuple[str, ...]:
        """The facts of a source of these edges, which follow from the options of reading alone.

        Examples
        --------
        >>> EdgeList("graph.txt", directed=False, loops="drop", duplicates="drop").facts
        ('simple', 'unit_weights')
        """
        if self.duplicates == "keep":
            return ()
        return ("unit_weights",) if self.is_directed or self.loops == "keep" else ("simple", "unit_weights")

    def edges(self, node: type) -> list[tuple[Any, ...]]:
        """The edges in the order of the file or graph, with nodes of type `int` or `str`.

        Raises
        ------
        SourceRejected
            When the file or graph cannot be read, holds what is not an edge, or holds what is to be refused.
            Positions are numbers of lines or edges, from 0 in `positions`; lines are counted from 1 in the message.
        PlanError
            When `node` is neither `int` nor `str`, or an option is of no use for the file or graph.
        """
        if node not in _NODES:
            raise PlanError("nodes are of type int or str")
        with opened() as connection, ExitStack() as stack:
            stack.enter_context(staged(connection))
            type_ = TupleOf((None, None), (_NODES[node], _NODES[node]))
            return rows_in_order(connection, self.relation(connection, type_, stack))

    def relation(self, connection: Any, type_: Type, stack: ExitStack, person: Person | None = None) -> Relation:
        """A relation of the edges as records of a source's type, in a DuckDB connection.

        The connection has a place for the staging table.

        Where a person is declared, it is of rows of `person.identified(type_)`.
        """
        if not isinstance(type_, TupleOf) or type_.nullable or type_.elements not in ((INT, INT), (STR, STR)):
            raise SourceRejected(
                f"an edge list has two int or two str fields, not {type_}: offer a table (networkx.to_pandas_edgelist)"
            )
        in_file, own = self._in_file(stack, type_.names)
        if self.directed and own is False and in_file is not None:
            raise SourceRejected(f"{self.path} holds an undirected graph: read it as undirected")
        directed = own is not False if self.directed is None else self.directed
        names, types = self._named or type_.names, tuple(end.with_nullable(False) for end in type_.elements)
        if person is not None:
            self._check_whose(person, (*names, *type_.names), directed, in_file is not None)
            place = person.id_field(type_)
            if place is not None and names[place] != person.column and person.column in self._offered_names():
                raise SourceRejected(
                    f"the owner of an edge may be {person.column!r} of the data or {names[place]!r}, which is read as "
                    "the field of that name: rename one"
                )
            if place is None:
                names, types = (*names, person.column), (*types, ID)
        fields = TupleOf(names, types)
        relation = in_file.relation(connection, fields, directed) if in_file else self._rows(connection, fields, stack)
        form = in_file.form(types[0]) if in_file else f"columns {names[0]!r} and {names[1]!r}"
        if self.path is not None:
            tell_terminal(f"{self.path} is read as {'directed' if directed else 'undirected'} edges: {form}")
        return self._told(relation, directed)

    @property
    def _named(self) -> tuple[Any, ...] | None:
        """The columns that are told by name."""
        return self.columns if self.columns is not None and isinstance(self.columns[0], str) else None

    @property
    def _is_tsv(self) -> bool:
        """Whether a file is of `.tsv` and nothing else is said of it."""
        return not isinstance(self.graph, CsvFile) and self.path is not None and format_of(self.path) == ".tsv"

    def _in_file(
        self, stack: ExitStack, fields: Sequence[object] = (None,), again: bool = False
    ) -> tuple[TextForm | FoundEdges | None, bool | None]:
        """The edges of a file without column names, or None; and the direction that data say.

        The direction is None where the data do not say it. What is asked for again is no pipe.
        """
        found: TextForm | FoundEdges | None = None
        path, by_place = self.path, self.columns is not None and self._named is None
        if path is not None and not (self._named if self.columns and self._is_tsv else has_columns(self.graph, fields)):
            file, places = open_file(path, stack, again), self.columns if by_place else None
            graph = read_graph_file(path, file, self.directed, places)
            found = graph or TextForm.of(path, file, self.comments, places, fields)
        unused = by_place if found is None else self._named
        if unused or (self.comments is not None and not isinstance(found, TextForm)):
            raise PlanError(_NO_USE)
        return found, own_direction(self.graph) if found is None else found.directed

    def _offered_names(self) -> Collection[object]:
        """The names of the columns that the data have, where they have columns."""
        if is_cursor(self.graph):
            return [column[0] for column in self.graph.description or ()]
        with suppress(SourceRejected):  # what has no columns is refused when it is read
            return computed(lambda: columns_of(self.graph).names, "its columns cannot be read") or ()
        return ()

    def _check_whose(self, person: Person, ends: Sequence[str | None], directed: bool, nameless: bool) -> None:
        """Refuse edges that do not say whose they are."""
        column = person.column
        if column in ends and not directed:
            raise SourceRejected(
                f"an undirected edge belongs to both ends, not only {column!r}: offer both directions with "
                "directed=True, as from graph.to_directed(), or name a column of ids beside the ends"
            )
        if column not in ends and (nameless or is_graph(self.graph)):
            raise SourceRejected(
                f"the edges have no column {column!r} with the ids of persons: offer a table with this column, as from "
                f"networkx.to_pandas_edgelist, or declare an end as the person, as person={ends[-2]!r}"
            )

    def _rows(self, connection: Any, type_: TupleOf, stack: ExitStack) -> Relation:
        """The edges of a table or file with names of columns, of a graph object, or rows."""
        path, data = self.path, self.graph
        if path is not None:
            if None in type_.names:
                raise SourceRejected(
                    f'{path} has named columns: say which, as columns=("origin", "destination"), or of .tsv (1, 2)'
                )
            relation = file_relation(connection, CsvFile(path, "\t") if self._is_tsv else data, type_, stack)
        else:
            relation = table_relation(connection, data, type_, stack)
        if relation is not None:
            return relation
        if self.columns is not None:
            raise PlanError(_NO_USE)
        if is_graph(data):
            return edges_of_graph(data, self.directed).relation(connection, type_)
        if isinstance(data, (bytes, Mapping)) or not isinstance(data, Iterable):
            what = type(data).__qualname__
            raise SourceRejected(f"a {what} is no list of edges: offer a file, a graph, a table, or rows of two nodes")
        relation = rows_relation(connection, data, type_, "the edges")
        relation.noun = "edge"
        return relation

    def _told(self, relation: Relation, directed: bool) -> Relation:
        """A relation of edges, read as the options say."""
        (one, other, *_), anew = relation.leaves, relation.anew
        loop = f"{one} = {other}"
        if not directed:
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
        relation.anew = None if anew is None else lambda: self._told(anew(), directed)
        return relation


def _in_order(leaves: Sequence[str]) -> Sequence[str]:
    """Two nodes as SQL, the smaller one first, before what else there is; nothing of nothing."""
    ends = ", ".join(leaves[:2])
    return [*(f"{order}({ends})" for order in ("least", "greatest")), *leaves[2:]] if leaves else leaves


def _is_path(graph: object) -> bool:
    return isinstance(graph, (str, os.PathLike))


def as_edge_list(data: Any, type_: Type | None = None) -> Any:
    """A graph object or the path of an edge list as an `EdgeList`; anything else as it is.

    With a type, a file that begins with the names of its fields is a table.
    """
    text = _is_path(data) and format_of(Path(data)) in _ENDINGS and not os.path.isdir(data)
    fields = getattr(type_, "names", (None,))
    return EdgeList(data) if is_graph(data) or (text and not has_columns(data, fields)) else data
