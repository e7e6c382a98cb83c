"""The tables that statements make in DuckDB, kept for the next plan while there is room.

The name of such a table is the digest of its query and of all that it comes from (see `script.Script.table`).
While its sources stand in their tables unchanged, the table of that name is what the statement would make: equal
rows, equal bits. So a statement that several plans have in common, or one plan asked twice, is run once. A table goes
with the first of its sources that goes.

Results, outputs that are asked for key by key, are tables like others, except that the last one stays whatever its
size. So does, while plans are evaluated together, what those read that are still to come.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from itertools import islice
from sys import getsizeof
from typing import Any

from wpinq.columns.records import column_names, column_types, fetch, fetch_many, has_lists, leaf_columns, read_rows
from wpinq.columns.unlinked_file import bytes_of
from wpinq.engines.contract import OnStep, at_keys
from wpinq.engines.sql.compile import Compiled, Plan, in_one, written_out
from wpinq.engines.sql.dialect import ALL_ROWS, DUCKDB
from wpinq.engines.sql.duckdb.path_sums import count_sums
from wpinq.engines.sql.engine import Batch, run
from wpinq.engines.sql.script import RowsToSum, SqlStatement, at_once, table_name
from wpinq.expr.types import Scalar, Type
from wpinq.expr.values import KeyPairs, Value
from wpinq.plan.arithmetic import Weights

# --- weights of given records: no other record leaves DuckDB ----------------------------------------------------------

#: Keys, for which a query is written in another way, and whose answers are read row by row.
FEW = 64

_NARROWING = re.compile(r"\$(values|null|low|high)(\d+)")
_TEXT = re.compile(r"'[^']*'")
#: In a query of few rows, which one thread reads sooner than several.
SMALL = "/* few rows */"
#: In a query of little work, on as many threads as before it: DuckDB gives memory back when it stops or starts threads.
ANY_THREADS = "/* any threads */"
_NONZERO = re.compile(r"\ASELECT \* FROM \((.*)\) WHERE w <> 0\Z", re.DOTALL)


def fetch_keys(
    connection: Any, read_from: str, type_: Type, keys: Sequence[Value], narrowed: bool = False, computed: bool = False
) -> Mapping[Value, Any]:
    """The weights of some records, by a semi-join with a table of their keys.

    Nulls are found as values are. One record, the most frequent case, takes no join, nor do a few that lie in one
    column. A narrowed query takes the keys as parameters (see `key_pushdown`).
    """
    records = keys if type_.nullable or None not in keys else [key for key in keys if key is not None]
    if not records:
        return {}
    if len(records) > FEW and not has_lists(type_):
        return fetch_many(connection, read_from, type_, records, computed=computed)
    names, types = column_names(type_), column_types(type_)
    lists = {f"keys{i}": column for i, column in enumerate(leaf_columns(type_, records))}
    given: dict[str, Any] = dict(lists)
    if len(records) == 1:
        given = {f"key{i}": value for i, (value,) in enumerate(lists.values())}
        joined = f"WHERE {_same(names, [f'CAST(${name} AS {sql})' for name, sql in zip(given, types, strict=True)])}"
    elif len(names) == 1 and len(records) <= FEW and isinstance(type_, Scalar) and None not in lists["keys0"]:
        joined = f"WHERE list_contains(CAST($keys0 AS {types[0]}[]), q.{names[0]})"
    else:
        columns = zip(lists, names, types, strict=True)
        table = ", ".join(f"unnest(CAST(${given} AS {sql}[])) AS {name}" for given, name, sql in columns)
        joined = f"SEMI JOIN (SELECT {table}) AS k ON {_same(names, [f'k.{name}' for name in names])}"
    given |= narrowing(read_from, lists) if narrowed else {}
    query = f"SELECT q.* FROM {read_from} AS q {joined}"
    return at_keys(read_rows(type_, connection.execute(query, given or None).fetchall()), keys)


def narrowing(query: str, lists: Mapping[str, list[Any]]) -> dict[str, Any]:
    """The parameters of a narrowed query, from the columns of its keys, `keys0`, `keys1`, …."""
    given: dict[str, Any] = {}
    for end, place in _NARROWING.findall(_TEXT.sub("", query)):
        asked = lists.get(f"keys{place}", [])
        values = [value for value in asked if value is not None]
        low, high = min(values, default=None), max(values, default=None)
        given[end + place] = {"values": values, "null": None in asked, "low": low, "high": high}[end]
    return given


def _same(names: Sequence[str], values: Sequence[str]) -> str:
    pairs = zip(names, values, strict=True)
    return " AND ".join(f"q.{name} IS NOT DISTINCT FROM {value}" for name, value in pairs) or "TRUE"


#: The bytes of a value, by the type of its column, without those of text. A table with any other is not kept, for it
#: may be of any size.
_WIDTHS = {"BIGINT": 8, "DOUBLE": 8, "BOOLEAN": 1, "HUGEINT": 16, "INTEGER": 4, "VARCHAR": 16}

#: How much of the memory limit tables take at most that no running plan reads.
KEPT_SHARE = 1 / 4

#: The most records of a result, or of the tables that it is read from, that is kept in Python: DuckDB takes longer to
#: plan a query than to answer it.
KEPT_RECORDS = 2**14

#: About what a record takes there, and a list or record inside of it, without the text in it.
RECORD_BYTES = 256

#: A statement that may be run in parts has one for so many rows of the largest table that it reads, and some at most.
#: The pairs in 23 million paths of a graph of 184,000 edges take 1.3 GB at once, and .2 GB in twelve parts.
PART_ROWS, MOST_PARTS = 2**15, 16

#: How many of them there are at most, empty ones too.
KEPT_TABLES = 1024


@dataclass(slots=True)
class _CachedTable:
    sources: frozenset[str]
    rows: int
    size: int | None  #: in bytes; None where it is not to be kept


@dataclass(slots=True)
class Result:
    """An output that was asked for by keys.

    Attributes
    ----------
    sources : frozenset of str
        The tables of the sources that it comes from.
    table, read_from : str
        The table that holds it, and what to read it from; empty where it is held outside of DuckDB alone.
    queried : bool
        Whether keys of it were read before.
    weights : dict or None
        The whole of it, where it is small and was asked for more than once, or was small to begin with.
    size : int
        About how many bytes the whole of it takes in Python, where it was there.
    sums : tuple of str and list, or None
        The table where its rows are sums side by side, and the values of the last column that they are of.
    """

    sources: frozenset[str]
    table: str = ""
    read_from: str = ""
    queried: bool = False
    weights: Weights | None = None
    size: int = 0
    sums: tuple[str, list[Value]] | None = None


def _text_bytes(value: Value) -> int:
    """About how many bytes the text in a record takes, and the lists and records in it."""
    if isinstance(value, str):
        return getsizeof(value)
    if not isinstance(value, tuple):
        return 0
    return sum(_text_bytes(item) + (RECORD_BYTES if isinstance(item, tuple) else 0) for item in value)


@dataclass(slots=True)
class TableCache:
    """The tables of an open DuckDB besides its sources, and those that stay after a run.

    Attributes
    ----------
    connection : duckdb.DuckDBPyConnection
        To where they stand.
    wanted : callable
        Whether a table is to stay that no running plan reads.
    tables : dict of str to _CachedTable
        All of them.
    idle : dict of str to None
        Those that no running plan reads, in the order of their last use.
    results : dict of tuple to Result
        What was asked for by keys.
    last : str
        The table of the last of them.
    tried : set of str
        The programs that were run to see that they can be, while the tables of their sources were there.
    source_rows : dict of str to int
        The rows of the tables of sources.
    """

    connection: Any
    wanted: Callable[[str], bool] = lambda table: False
    tables: dict[str, _CachedTable] = field(default_factory=dict)
    idle: dict[str, None] = field(default_factory=dict)
    results: dict[Hashable, Result] = field(default_factory=dict)
    last: str = ""
    tried: set[str] = field(default_factory=set)
    source_rows: dict[str, int] = field(default_factory=dict)
    _queries: Counter[Hashable] = field(default_factory=Counter)
    _limit: int | None = None
    _held: int = 0  #: results in Python take so many bytes at most

    def stands(self, table: str) -> bool:
        """Whether a table is there from before; it is idle no more."""
        if table in self.tables:
            self.idle.pop(table, None)
        return table in self.tables

    def create(self, statement: SqlStatement, shared: bool) -> None:
        """Run one statement of a program, unless its table is there."""
        name = statement.creates
        if self.stands(name):
            return
        reads = [self.source_rows.get(read, read in self.tables and self.tables[read].rows) for read in statement.reads]
        parts, rows = min(1 + max(reads, default=0) // PART_ROWS, MOST_PARTS) if statement.in_parts else 1, 0
        if parts > 1 and statement.legs and (made := count_sums(self.connection, name, *statement.legs)) is not None:
            rows, parts = made, 0
        for part in range(parts):
            sql = f"INSERT INTO {name} {statement.query}" if part else statement.sql
            rows += self.connection.execute(sql.replace(ALL_ROWS, f"% {parts} = {part}")).fetchall()[0][0]
        self.tables[name] = _CachedTable(self._sources(statement.reads), rows, self._size(name + ANY_THREADS, rows))

    def drop(self, table: str) -> None:
        """Mark a table as not read by any plan, and trim the tables that are kept.

        It is kept while it is wanted or there is room, those used last before others.
        """
        if table != self.last:
            self.idle[table] = None
            self.trim()

    def trim(self) -> None:
        """Let go of what nothing keeps."""
        sizes, room = {name: self.tables[name].size for name in self.idle}, self.room
        total = sum(filter(None, sizes.values()))
        if total <= room and len(sizes) <= KEPT_TABLES and None not in sizes.values():
            return
        for name, size in sizes.items():
            if (size is None or total > room or len(self.idle) > KEPT_TABLES) and not self.wanted(name):
                total -= size or 0
                self._remove(name)

    def release(self, tables: Sequence[str]) -> None:
        """The query of an output was run, or is not to be: it reads these no more."""
        for table in filter(self.tables.__contains__, tables):
            self.drop(table)

    def forget(self, source: str) -> None:
        """Drop what was made of a source, which goes next."""
        for name in [name for name, table in self.tables.items() if source in table.sources]:
            self._remove(name)
        self._queries.clear()
        self.tried.clear()
        self.source_rows.pop(source, None)
        self.results = {plan: held for plan, held in self.results.items() if source not in held.sources}

    def _remove(self, table: str) -> None:
        self.tables.pop(table, None)
        self.idle.pop(table, None)
        for plan in [plan for plan, held in self.results.items() if held.table == table]:
            del self.results[plan]
        self.connection.execute(f"DROP TABLE IF EXISTS {table}")

    # --- results ------------------------------------------------------------------------------------------------------

    def result(self, of_plan: Hashable) -> Result | None:
        """A result, where it stands; it is now the last one."""
        held = self.results.get(of_plan)
        if held is not None:
            self._set_last(held.table)
        return held

    def count_query(self, of_plan: Hashable) -> int:
        """How often a plan was asked for keys, this time not counted."""
        before = self._queries[of_plan]
        self._queries[of_plan] += 1
        return before

    def forget_queries(self) -> None:
        """Let go of all results, and of what was asked."""
        self.results.clear()
        self._queries.clear()

    def small_output(self, compiled: Compiled) -> str:
        """The query of a small output in any order, with records of weight 0; empty for others.

        DuckDB plans no filter and no order.
        """
        small = not compiled.grows and all(map(self._is_small, compiled.reads))
        return _NONZERO.sub(r"\1", compiled.output) + SMALL if small else ""

    def keep_result(self, of_plan: Hashable, compiled: Compiled) -> Result:
        """Store the output of a program whose tables were made, unless it is one of them."""
        held = Result(self._sources(compiled.reads))
        if query := self.small_output(compiled):
            found = fetch(self.connection, f"{query} LIMIT {KEPT_RECORDS + 1}", compiled.type)
            if len(found) <= KEPT_RECORDS:
                self._hold(held, {record: weight for record, weight in found.items() if weight})
        if held.weights is None and compiled.table is None:
            # of a program that was written out, the query in brackets is another
            beside = () if has_lists(compiled.type) else compiled.beside
            apart = beside and compiled.output.count(f"({beside[0]})")
            query = beside[0] if apart == 1 else compiled.output
            held.table = held.read_from = table_name(query)
            self.create(SqlStatement(compiled.steps[-1][0], query, held.table, compiled.reads), True)
            if apart == 1:
                held.read_from = f"({compiled.output.replace(f'({query})', held.table)})"
                held.sums = held.table, self.connection.execute(f"SELECT {beside[1]}{ANY_THREADS}").fetchone()[0]
        elif held.weights is None and compiled.table is not None:
            held.table, held.read_from = compiled.table, f"({compiled.output})"
        self.results[of_plan] = held
        self._set_last(held.table)
        self._trim_results()
        return held

    def keep_sums(self, of_plan: Hashable, alike: Mapping[Hashable, RowsToSum | None], step: str) -> Result:
        """Store the sums of several plans over the same rows, and return the result of one of them.

        The tables of the rows were made.
        """
        added = {plan: rows for plan, rows in alike.items() if rows is not None}
        statement, read_from = at_once(step, list(added.values()), DUCKDB)
        self.create(statement, True)
        for plan, text in zip(added, read_from, strict=True):
            self.results[plan] = Result(self._sources(statement.reads), statement.creates, text)
        if self.tables[statement.creates].rows * len(added) <= KEPT_RECORDS:  # read by one query, and not by one each
            rows = self.connection.execute(f"SELECT * FROM {statement.creates}").fetchall()
            for place, (plan, of) in enumerate(added.items(), -len(added)):
                self._hold(self.results[plan], read_rows(of.type, [row for row in rows if row[place]], place))
            self._trim_results()
        self._set_last(statement.creates)
        return self.results[of_plan]

    def keep_similar(self, of_plan: Hashable, plans: tuple[Plan, ...], on_step: OnStep, tried: bool) -> Result | None:
        """Hold the outputs of similar plans in Python, and return the result of one of them.

        With `tried`, the statement is but run as a test.
        """
        similar = plans[0].program().similar
        whole = None if self.count_query(similar) else in_one(plans)  # once for a batch, not again where it is large
        if whole is not None and tried:
            _try(self, whole)
        if whole is None or tried:
            return None
        run(whole, self, on_step)
        found = defaultdict[int, list[Any]](list)
        if all(map(self._is_small, whole.reads)):
            most = len(plans) * KEPT_RECORDS // 16
            rows = self.connection.execute(f"SELECT * FROM ({whole.output}) LIMIT {most + 1}").fetchall()
            for row in rows:
                found[row[-1]].append(row)
            for number, plan in enumerate(plans) if len(rows) <= most else ():
                held = Result(self._sources(whole.reads))
                self._hold(held, read_rows(plan.root.type, found[number], -2))
                if held.weights is not None:
                    self.results[plan.root, plan.rewrites] = held
                    self._queries[similar] = 0
            self._trim_results()
        self.release(whole.reads)
        return self.results.get(of_plan)

    def without_tables(self, compiled: Compiled) -> Compiled:
        """A program without the tables that no plan had before: queries inside of its own."""
        made = [statement.creates for statement in compiled.statements]
        kept = {name for name in made if self._queries[name] or name in self.tables}
        self._queries.update(made)
        return written_out(compiled, kept) or compiled

    def at_keys(self, result: Result, type_: Type, keys: Sequence[Value]) -> Mapping[Value, Any]:
        """The weights of some records in a result.

        A small result is read once, for all requests after the first.
        """
        if result.queried and result.weights is None and not result.size and self._is_small(result.table):
            self._hold(result, fetch(self.connection, f"SELECT * FROM {result.read_from}", type_))
            self._trim_results()
        result.queried = True
        if result.weights is not None:
            return at_keys(result.weights, keys)
        if result.sums and len(keys) > FEW and isinstance(keys, KeyPairs):
            return fetch_many(self.connection, result.read_from, type_, keys, result.sums)
        return fetch_keys(self.connection, result.read_from, type_, keys)

    def _hold(self, result: Result, weights: Weights) -> None:
        """Keep the whole of a result in Python, if there is room."""
        result.size = sum(RECORD_BYTES + _text_bytes(record) for record in weights)
        result.weights = weights if result.size <= self.room else None
        self._held += result.size

    def _trim_results(self) -> None:
        """Drop the oldest results in Python until the others fit the room."""
        if self._held > self.room:
            self._held = sum(held.size for held in self.results.values() if held.weights)
        most = len(self.results) - (1 if self._held > self.room else KEPT_TABLES)
        for plan, held in [*islice(self.results.items(), max(most, 0))]:
            if self._held <= self.room and len(self.results) <= KEPT_TABLES:
                break
            self._held -= held.size if held.weights else 0
            if not held.table or len(self.results) > KEPT_TABLES:
                del self.results[plan]
            held.weights = None  # where there is a table, it can be read from there

    def _is_small(self, table: str) -> bool:
        rows = self.tables[table].rows if table in self.tables else self.source_rows.get(table)
        return rows is not None and rows <= KEPT_RECORDS

    def _sources(self, reads: Sequence[str]) -> frozenset[str]:
        """The sources that tables come from."""
        below = (self.tables[table].sources if table in self.tables else (table,) for table in reads)
        return frozenset[str]().union(*below)

    def _set_last(self, table: str) -> None:
        """Keep the table of a result whatever its size, and the one before no longer."""
        self.idle.pop(table, None)
        before, self.last = self.last, table
        if before != table and before in self.tables:
            self.drop(before)

    # --- room ---------------------------------------------------------------------------------------------------------

    @property
    def room(self) -> int:
        """How many bytes idle tables may take."""
        if self._limit is None:
            ((limit,),) = self.connection.execute("SELECT current_setting('memory_limit')").fetchall()
            self._limit = bytes_of(limit)
        return int(KEPT_SHARE * self._limit)

    def _size(self, table: str, rows: int) -> int | None:
        if rows == 0:
            return 0
        columns = self.connection.execute(f"SELECT * FROM {table} LIMIT 0").description
        widths = [_WIDTHS.get(str(type_)) for _, type_, *_ in columns]
        if None in widths:
            return None
        text = [f"coalesce(sum(strlen({name})), 0)" for name, type_, *_ in columns if str(type_) == "VARCHAR"]
        (lengths,) = self.connection.execute(f"SELECT {', '.join(text)} FROM {table}").fetchall() if text else [()]
        return rows * sum(width or 0 for width in widths) + int(sum(lengths))


# The weights of given records: how much of an output is made, and kept for the next query.
#
# - A result that stands is asked.
# - Where joins of the output can grow and the keys narrow them, only the rows of the records that are asked for are
# made   (`key_pushdown`), as long as there are few keys and the plan was not asked often.
# - Of plans that are evaluated together, such an output is added up and asked at once, the first time.
# - Everything else is stored, or, where it is small, held in Python, and asked there.
#
# Which it is depends on the plan, on how often it was asked and for how many keys, and on the size of tables: it
# changes time and memory, and no weight.

#: How often a plan is asked for few keys before all of its output is stored.
QUERIES_BEFORE_STORING = 16

#: How many queries are remembered that were run to see that they can be.
TRIED = 1024


def are_small(data: Iterable[Sized]) -> bool:
    """Whether datasets have few records each: planning a query takes longer than answering it."""
    return all(len(each) <= KEPT_RECORDS for each in data)


def query_keys(
    tables: TableCache, plan: Plan, keys: Sequence[Value], on_step: OnStep, batch: Batch | None, plain: bool
) -> Mapping[Value, Any]:
    """The weights of some records.

    Parameters
    ----------
    tables
        Where the plan's sources stand.
    plan, keys
        The plan, and the records. Without any, the query is run in each of its ways, to see that it can be.
    batch
        The plans that are evaluated together with it: those of them that add up the same rows, or are similar, are
        answered at once.
    plain
        Whether similar plans are not, and tables are made by statements of their own, as when it was tried.
    """
    of_plan, type_ = (plan.root, plan.rewrites), plan.root.type
    result = tables.result(of_plan)
    if result is None and batch is not None and not plain and len(similar := batch.alike(plan.root, "similar")) > 1:
        result = tables.keep_similar(of_plan, similar, on_step, not keys)
    if result is not None:
        return tables.at_keys(result, type_, keys)
    before = tables.count_query(of_plan)
    few = len(keys) <= FEW and before < QUERIES_BEFORE_STORING and plan.program().grows
    compiled = replace(plan, keyed=few).program()
    alike = batch.alike(plan.root, "rows") if batch is not None else []
    if not keys and len(alike) < 2:
        _try(tables, compiled)
        if compiled.narrowed:
            _try(tables, plan.program())
        return {}
    compiled = compiled if len(alike) > 1 or plain else tables.without_tables(compiled)
    run(compiled, tables, on_step)
    if len(alike) > 1:
        added: dict[Hashable, RowsToSum | None] = {(each.root, each.rewrites): each.program().added for each in alike}
        output = tables.at_keys(tables.keep_sums(of_plan, added, compiled.steps[-1][0]), type_, keys)
    elif compiled.narrowed or (batch is not None and compiled.grows and before == 0):
        output = fetch_keys(tables.connection, f"({compiled.output})", type_, keys, compiled.narrowed, computed=True)
    else:
        output = tables.at_keys(tables.keep_result(of_plan, compiled), type_, keys)
    tables.release(compiled.reads)
    return output


def _try(tables: TableCache, compiled: Compiled) -> None:
    """Run a program as a test, unless one of its shape was run."""
    if compiled.template in tables.tried:
        return
    if compiled.shape not in tables.tried:
        run(compiled, tables, None)
        tables.connection.execute(compiled.output, narrowing(compiled.output, {}) or None)
        tables.release(compiled.reads)
    if len(tables.tried) >= TRIED:
        tables.tried.clear()
    tables.tried |= {compiled.shape, compiled.template or compiled.shape}
