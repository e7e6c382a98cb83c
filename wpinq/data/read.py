"""The only entry of protected data: from offered data to checked columns and weights."""

from __future__ import annotations

import io
import os
import weakref
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from wpinq.columns.dataset import EngineDataset
from wpinq.columns.storage import StoredColumns, opened
from wpinq.data.edges import EdgeList, as_edge_list
from wpinq.data.epochs import RowsOfEpoch, in_epoch, whole_file
from wpinq.data.facts import enforce, enforce_sizes
from wpinq.data.files import file_relation, identities, unread_format
from wpinq.data.graphs import graph_of
from wpinq.data.people import people_dataset
from wpinq.data.person_tables import tables_dataset
from wpinq.data.relation import Relation, staged, stored_rows
from wpinq.data.rows import KeptRows, mapping_relation, rows_relation
from wpinq.data.sources import as_reader, is_table, table_relation
from wpinq.data.spark import read_frame, read_tables
from wpinq.errors import PlanError, SourceRejected, warn
from wpinq.expr.declarations import Person
from wpinq.expr.epochs import Epoch
from wpinq.expr.person_tables import PersonTable, PersonTables
from wpinq.expr.types import TupleOf, Type
from wpinq.plan.operators.source import Source
from wpinq.runtime.signals import interruptible

#: A connection to a DuckDB, for a while.
Database = Callable[[], AbstractContextManager[Any]]


def read_source(data: object, declared: Source, database: Database = opened) -> StoredColumns | EngineDataset:
    """The weighted dataset that a curator offers, checked against what its source declares.

    Each row weighs 1.0 and repeated rows add up: A(x) = number of rows equal to x. In a mapping each item is one
    record with its number of rows, or its weight.

    Parameters
    ----------
    data : object
        Rows: an iterable of tuples, lists or mappings by field name, or of bare values where the type is no
        record. A mapping `{record: weight}`. A table: a pandas or polars frame (eager or lazy), an Arrow table,
        batch or reader, a list or iterator of these, any Arrow stream, a table of deltalake or pyiceberg, a DuckDB
        relation, a numpy array (structured or two-dimensional). A cursor of a DB-API with a result. A graph of
        networkx or igraph, or its edges, read as `EdgeList(graph)` is. An `EdgeList`, a `CsvFile`, or the path of a
        file: `.csv`, `.tsv` with a line of names, `.parquet` (also a folder of such files, or a pattern), or an
        edge list (`.txt`, `.tsv`, `.edges`, `.edgelist`, `.ncol`) or graph (`.mtx`, `.graph`, `.net`, `.gml`,
        `.graphml`), the text formats also with `.gz`. The path of an edge list is read as `EdgeList(path)` is:
        directed unless its format says otherwise, and refused where an edge stands there twice.
        An `EngineDataset`, which an engine has made of what is there already: checked there.

        Columns are matched by the field names, or what the source names in their place, where all fields have one,
        else by place. Columns and keys that the type does not name are ignored. Missing values of pandas (NaN, NA,
        None) are null.
    declared : Source
        What its source declares. The type is that of the rows; nothing is inferred from the data. No row may weigh more
        than the unit weight in absolute value, nor all together more than the cap, compared without rounding. The facts
        must hold. Where rows are those of people, only so many of each person's are taken, before anything else is
        asked of the dataset; and the sizes, the most records in all and of a key, are those after this cut.
    database : callable
        Gives a connection to a DuckDB in which the data are checked, for a while.

    Returns
    -------
    StoredColumns or EngineDataset
        Record -> weight, without zero weights.

    Raises
    ------
    SourceRejected
        When anything is unfit. The data is refused as a whole, and the message names positions and reasons for the
        curator, never a value.
    PlanError
        When the declaration makes no sense.

    Notes
    -----
    Costs no privacy: nothing is released. The norm and the unit are those of Proserpio, Goldberg and McSherry,
    VLDB 2014, section 2.

    Examples
    --------
    >>> import wpinq as wp
    >>> held = read_source([(1, 2), (1, 2), (2, 3)], wp.source("edges", src=int, dst=int).plan.operator)
    >>> sorted(held.items())
    [((1, 2), 2.0), ((2, 3), 1.0)]
    """
    declared.check()
    type_, person, unit_weight = declared.row, declared.person, declared.unit_weight
    row, whose = declared.offered
    if unit_weight <= 0 or declared.cap <= 0:
        raise PlanError("unit_weight and cap are positive numbers")
    if isinstance(data, EngineDataset) and declared.epoch is not None:
        raise SourceRejected("the rows of an epoch are not read from Spark: offer parquet, or write the frame to it")
    if isinstance(data, EngineDataset):
        frame = data.frame
        return interruptible(lambda: read_frame(frame, declared))
    if isinstance(person, PersonTables):
        return _of_tables(_tables(data, person), declared, person, database)
    data, facts, epoch = as_edge_list(data, row), frozenset(declared.facts), declared.epoch
    if epoch is not None and isinstance(data, (EdgeList, Mapping)):
        raise SourceRejected("rows of an epoch come from a table, csv or parquet, or rows by field name")
    if not isinstance(data, Mapping) and unit_weight < 1:
        raise SourceRejected(
            f"a row weighs 1, above the unit weight {unit_weight}: offer a mapping {{record: weight}}, or "
            "declare a larger unit_weight"
        )
    if whose is not None and isinstance(data, Mapping):
        raise SourceRejected(
            "the data have no ids of persons: offer rows by field name, a table, csv or parquet, with the ids of "
            f"people in a column {whose.column!r}; mappings to weights have none"
        )

    def store(connection: Any, stack: ExitStack) -> StoredColumns:
        stack.enter_context(staged(connection))
        if person is not None:
            relation = _relation(connection, data, row, stack, whose, epoch)
            return people_dataset(connection, relation, declared, person)
        if isinstance(data, Mapping):
            relation = mapping_relation(connection, data, row, unit_weight)
        else:
            relation = _relation(connection, data, row, stack, None, epoch)
        kept, relation = stored_rows(connection, relation, type_)
        enforce(connection, facts, kept, relation, unit_weight if isinstance(data, Mapping) else None)
        return kept

    return _read(declared, database, store)


def _read(declared: Source, database: Database, store: Callable[[Any, ExitStack], StoredColumns]) -> StoredColumns:
    """What `store` holds of the data, with no more records and weight than the source declares."""
    import duckdb

    def read() -> StoredColumns | None:
        with suppress(duckdb.Error), database() as connection, ExitStack() as stack:  # its words may quote rows
            kept = store(connection, stack)
            enforce_sizes(connection, declared.sizes, kept)
            return kept
        return None

    held = interruptible(read)
    if held is None:
        raise SourceRejected("the data cannot be read, or changed while they were read: read them yourself to see why")
    if held.norm > declared.cap:
        raise SourceRejected(
            f"the total weight of the data is above the cap {declared.cap} that the source declares: declare a larger "
            "cap, from public knowledge, or offer less data"
        )
    return held


def _tables(data: object, person: PersonTables) -> Mapping[str, object]:
    """The data of each table, all of them in one mapping."""
    names = [table.name for table in person.tables]
    if not isinstance(data, Mapping) or {*data} != {*names}:
        each = ", ".join(f'"{name}": ...' for name in names)
        raise SourceRejected(f"the data of people are those of all tables, in one call: {{{each}}}")
    return data


def _of_tables(
    data: Mapping[str, object], declared: Source, person: PersonTables, database: Database
) -> StoredColumns | EngineDataset:
    """The dataset of people with several tables."""
    frames = {name: given.frame for name, given in data.items() if isinstance(given, EngineDataset)}
    if len(frames) == len(data):
        return interruptible(lambda: read_tables(frames, declared, person))
    if frames:
        raise SourceRejected("the tables of people are all in Spark, or none is: offer a frame of Spark for each")

    def store(connection: Any, _: ExitStack) -> StoredColumns:
        def table(each: PersonTable, row: TupleOf, stack: ExitStack) -> Relation:
            row, whose = person.offered(each, row)
            given = as_edge_list(data[each.name], row)
            if isinstance(given, (EdgeList, Mapping)):
                raise SourceRejected("rows of people come from a table, a file of one, or rows by field name")
            return _relation(connection, given, row, stack, whose)

        return tables_dataset(connection, table, declared, person)

    return _read(declared, database, store)


def is_rows(data: object) -> bool:
    """Whether data are rows or a mapping of Python's, and no table, file, cursor or graph."""
    data = as_edge_list(data)
    return isinstance(data, Mapping) or not (isinstance(data, (str, os.PathLike, EdgeList)) or is_table(data))


def _relation(
    connection: Any, data: object, type_: Type, stack: ExitStack, person: Person | None, epoch: Epoch | None = None
) -> Relation:
    """The rows that are offered; those of an epoch alone, before anything else of them is read."""
    data = as_reader(data)
    if epoch is None:
        return _offered(connection, data, type_, stack, person)
    rows, kept = data, RowsOfEpoch(epoch, type_)
    is_file = isinstance(data, (str, os.PathLike))
    if not is_file and not is_table(data) and isinstance(data, Iterable):
        rows = kept.over(data)
    offered = partial(_offered, connection, rows, type_, stack, person, kept)
    relation = whole_file(offered) if is_file else offered()
    kept.check()
    return relation if rows is kept or kept.used else in_epoch(connection, relation, epoch, type_)


def _offered(
    connection: Any, data: object, type_: Type, stack: ExitStack, person: Person | None, kept: KeptRows | None = None
) -> Relation:
    if isinstance(data, str) and "\n" in data and not os.path.exists(data):
        raise SourceRejected("a str is the path of a file, never its content: offer the path, or rows")
    if isinstance(data, EdgeList):
        return data.relation(connection, type_, stack, person)
    row_type = type_ if person is None else person.identified(type_)
    if isinstance(data, (str, os.PathLike)):
        if relation := file_relation(connection, data, row_type, stack):
            return relation
        raise SourceRejected(
            unread_format(Path(data))
            or "the ending of the path says no format: use .csv, .csv.gz, .parquet, or .txt, .tsv, .edges (or these "
            "with .gz) for an edge list; EdgeList(path) reads an edge list of any name"
        )
    relation = table_relation(connection, data, row_type, stack, kept)
    if relation is not None:
        return relation
    if hasattr(data, "cursor") and hasattr(data, "commit"):
        raise SourceRejected('a connection has no rows: offer connection.execute("SELECT …"), or the cursor of a query')
    if isinstance(data, (bytes, bytearray, memoryview, io.IOBase)) or not isinstance(data, Iterable):
        raise SourceRejected(
            f"{'nothing' if data is None else 'a ' + type(data).__qualname__} is not data that can be read: offer "
            "rows, a mapping {record: weight}, a table, or the path of a file"
        )
    return rows_relation(connection, data, row_type)


def may_be_directed(data: object, record: Type) -> bool:
    """Whether (a, b) and (b, a) are two records of offered data.

    They are of pairs, but not of a list of undirected edges.
    """
    pairs = isinstance(record, TupleOf) and len(record.elements) == 2 and len({*record.elements}) == 1
    data = as_edge_list(data, record)
    return pairs and not (isinstance(data, EdgeList) and not data.is_directed)


# Where protected data came from, as far as a session can tell without looking at them, and what a curator is told.
#
# Told by path, inode and object, never by content or a digest of it. What is said here is of the call alone. No object
# is kept alive for it: files, frames, arrays and graphs are known again, lists and dicts are not.


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Origin:
    """What was offered for a source: the files, and the objects."""

    files: frozenset[object]
    objects: tuple[Callable[[], Any], ...]
    account: str

    @property
    def living(self) -> list[Any]:
        """The objects that still live."""
        return [found for each in self.objects if (found := each()) is not None]

    def same(self, other: Origin) -> bool:
        """Whether a file is of both, or an object that still lives."""
        theirs = {*map(id, other.living)}
        return not self.files.isdisjoint(other.files) or any(id(each) in theirs for each in self.living)


@dataclass(slots=True, repr=False, eq=False)
class Origins:
    """The origins of what a session protects or did, by source.

    The budget spent on them stays spent.
    """

    _by_source: dict[str, list[Origin]] = field(default_factory=dict)

    def check(self, source: Source, unit: str, data: object) -> Origin:
        """Where the data of a source come from; the curator is warned of what is probably not meant."""
        tables = (
            list(data.values()) if isinstance(source.person, PersonTables) and isinstance(data, Mapping) else [data]
        )
        # of edges of a graph, the graph
        every = [graph_of(each.graph if isinstance(each, EdgeList) else each) for each in tables]
        paths = [identities(each) for each in every if isinstance(each, (str, os.PathLike))]
        objects = [_reference(each) for each in every if not isinstance(each, (str, os.PathLike))]
        account = source.account if source.epoch is None else source.epoch.series
        origin = Origin(frozenset[object]().union(*paths), tuple(objects), account)
        for name, before in list(self._by_source.items()):
            if any(each.account != account and origin.same(each) for each in list(before)):
                warn(
                    f"{source.source!r} has the same data as {name!r}, under another account: each person in them "
                    "loses the sum of both. Protect the data once, or, with a person as the unit, share one "
                    'account: account="..."'
                )
        undirected = "undirected" in unit.lower() and {"symmetric", "simple"}.isdisjoint(source.facts)
        if undirected and source.unit_weight < 2 and may_be_directed(data, source.offered[0]):
            warn(
                f"the unit of {source.source!r} is undirected, and its data are read as directed: an edge "
                "listed as (a, b) and (b, a) is two units. Declare `simple`, or offer an EdgeList with directed=False"
            )
        return origin

    def keep(self, source: str, origin: Origin) -> None:
        """Remember the origin of data that were taken."""
        known = [each for each in self._by_source.get(source, ()) if each.files or each.living]
        if not any(origin.same(each) and origin.files <= each.files for each in known):
            known.append(origin)
        self._by_source[source] = known

    def clear(self) -> None:
        """Let go of what was offered."""
        self._by_source.clear()


def _reference(offered: object) -> Callable[[], Any]:
    """A way back to an object, which it does not keep alive.

    Lists, dicts and tuples give none. To know them again they would have to be held, and with them every raw row,
    its undeclared columns included, for as long as the session lives.
    """
    with suppress(TypeError):
        return weakref.ref(offered)
    return lambda: None
