"""The script of a plan, which runs nothing: statements that create tables, then one query."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from itertools import zip_longest
from typing import Any, TypeVar

from wpinq.columns.records import column_names
from wpinq.engines.sql import blocks as b, sums, terms as t
from wpinq.engines.sql.dialect import Dialect
from wpinq.engines.sql.emit import Emitter, narrowed
from wpinq.expr.nodes import digest_of
from wpinq.expr.types import Type

S = TypeVar("S")

#: A query, and the tables that it reads.
RowsQuery = tuple[str, tuple[str, ...]]
#: A query of sums, the tables that it reads, the rows that it adds up, and `SqlTable.beside`.
SumsQuery = tuple[str, tuple[str, ...], str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class SqlStatement:
    """One step: its operator, its query, the table that it creates, and those that it reads.

    Of sums, `rows` is the part of the query that gives the rows which are added up. With `in_parts`, the table may hold
    what the query gives of each part of its rows: see `dialect.ALL_ROWS`.

    Of numbers `n` of sums `w` of paths, `legs` has a query of the first legs: where they start and end, and what they
    weigh on the grid; one of the second; and the step of the grid (see `rules.paths`).
    """

    step: str
    query: str
    creates: str
    reads: tuple[str, ...]
    rows: str = ""
    in_parts: bool = False
    legs: tuple[str, ...] = ()

    @property
    def sql(self) -> str:
        """The SQL that creates the table."""
        return f"CREATE TEMP TABLE {self.creates} AS {self.query}"


@dataclass(frozen=True, slots=True, eq=False)  # of which there is one each: hashed with every plan
class Rewrite:
    """One rewrite: its name, the kind of subject that it changes, and the function.

    `rewrites.REWRITES` has them all.
    """

    name: str
    of: type
    apply: Callable[[Script, Any], Any]


@dataclass(slots=True)
class Script:
    """Statements, in order, and the means to add to them.

    Attributes
    ----------
    key_types : sequence of str
        The types of a record's columns while the query of an output is written for given keys.
    narrow : bool
        Whether the keys filter a table of every block so far.
    made : set of str
        The tables of the statements.
    aliases : int
        How many were given out.
    """

    emitter: Emitter
    rewrites: tuple[Rewrite, ...]
    statements: list[SqlStatement] = field(default_factory=list)
    step: str = ""
    key_types: Sequence[str] = ()
    narrow: bool = True
    made: set[str] = field(default_factory=set)
    aliases: int = 0

    def rewritten(self, subject: S) -> S:
        """A subject after the rewrites of its kind that are switched on, in their order."""
        for rewrite in self.rewrites:
            if rewrite.of is type(subject):
                subject = rewrite.apply(self, subject)
        return subject

    def table(
        self, query: str, tables: Sequence[str], rows: str = "", in_parts: bool = False, legs: tuple[str, ...] = ()
    ) -> str:
        """The name of a table that holds what a query gives; a query is run once, whoever asks.

        The name is the digest of the query, and so of all the queries that it comes from, down to the sources: one name
        is one content, in every script over the same sources.
        """
        name = table_name(query)
        if name not in self.made:
            self.made.add(name)
            self.statements.append(SqlStatement(self.step, query, name, tuple(tables), rows, in_parts, legs))
        return name

    def alias(self) -> str:
        """An alias that nothing else uses."""
        self.aliases += 1
        return f"a{self.aliases}"

    def select(
        self, block: b.Block, outputs: Sequence[t.SqlTerm], names: Sequence[str], started: bool = False
    ) -> tuple[str, tuple[str, ...]]:
        """The query of terms over the rows of a block, rewritten for speed, and the tables it reads."""
        *shown, last = outputs
        block = replace(block, output=t.RecordShape(None, tuple(shown)), weight=last)
        blocks = self.rewritten(b.QueryRows((block,), started)).blocks
        if self.key_types:
            found = [narrowed(self.emitter, one, self.key_types) for one in blocks]
            self.narrow = self.narrow and None not in found
            blocks = tuple(one for one in found if one is not None)
        queries = [self.emitter.select(one, [*t.leaves(one.output), one.weight], names) for one in blocks]
        return " UNION ALL ".join(queries), b.reads(blocks)

    def rows(self, block: b.Block) -> tuple[str, tuple[str, ...]]:
        """The query of a block, and the tables that it reads.

        Its columns are the record as `c0`, `c1`, …, and the weight as `w`.
        """
        outputs = list(t.leaves(block.output))
        return self.select(block, [*outputs, block.weight], [*numbered("c", outputs), b.WEIGHT])

    def scan(self, table: b.SqlTable, type_: Type | None = None) -> b.Block:
        """Every row of a table: its columns as a record of a type, or side by side."""
        alias = self.alias()
        terms = table.at(alias)
        output = t.RecordShape(None, tuple(terms)) if type_ is None else t.shape_of(type_, iter(terms))
        return b.Block(((alias, table),), t.TRUE, output, table.weight_at(alias))

    def counts(self, block: b.Block) -> b.SqlTable:
        """The number `n` of rows of a block with each output, as a lookup by that output.

        It is the weight, too. Many steps ask for it, by the same text and so of one table. Of a mirrored table as many
        rows have a value in one column as in the other.
        """
        terms, ((alias, table), *others) = [*t.leaves(block.output)], block.tables
        if table.mirrored and not others and block.condition == t.TRUE and terms and terms == table.at(alias)[1:]:
            terms = table.at(alias)[:1]
            block = replace(block, output=terms[0])
        names = numbered("k", terms)
        query = f"SELECT {', '.join([*names, 'count(*) AS n', 'CAST(count(*) AS DOUBLE) AS w'])} FROM "
        name = self.table(f"{query}({self.emitter.select(block, terms, names)}){grouping(names)}", b.reads([block]))
        listed = [*zip(names, (term.nullable for term in terms), strict=True), ("n", False)]
        return b.SqlTable(name, tuple(listed), (frozenset(names),), lookup=True, covers=b.covered(block, names))

    # --- datasets as tables -----------------------------------------------------------------------------------------

    def stored(self, relation: b.Relation) -> b.Relation:
        """The dataset as a table of its own, each record once."""
        if relation.table is not None:
            return relation
        sql, table = self.grouped(relation)
        name = self.table(sql, table.reads, table.rows)
        mirrored, unequal = b.mirrored(relation), b.unequal(relation)
        table = replace(table, source=name, reads=(), rows="", mirrored=mirrored, unequal=unequal)
        table = self.rewritten(b.StoredTable(table, relation.each)).table
        return replace(relation, blocks=(self.scan(table, relation.type),), partial=None)

    def once(self, relation: b.Relation) -> b.Relation:
        """The dataset with each record in one row: as it is where that is known, else stored."""
        return relation if relation.unique else self.stored(relation)

    def grouped(self, relation: b.Relation) -> tuple[str, b.SqlTable]:
        """The query that gives each record once with its weight, and what is known of its rows."""
        names, listed = column_names(relation.type), b.column_list(relation.type)
        if relation.unique:
            (block,) = _aligned(relation)
            keys = b.output_keys(block, names) or (frozenset(names),)
            constant = block.weight if block.weight.kind == "literal" else None
            sql, read = self.rows(block)
            return sql, b.SqlTable("", listed, keys, b.output_weight_from(block, names), constant, read)
        if not self.rewritten(relation).repeats:
            sql, read = together([self.rows(block) for block in _aligned(relation)])
            return sql, b.SqlTable("", listed, (frozenset(names),), weight=relation.blocks[0].weight, reads=read)
        sql, read, rows, beside = self._summed(relation, names)
        return sql, b.SqlTable("", listed, (frozenset(names),), reads=read, rows=rows, beside=beside)

    def _summed(self, relation: b.Relation, names: list[str]) -> SumsQuery:
        """The sum over equal records.

        Terms that are the same in every row are not grouped by.
        """
        blocks = _aligned(relation)
        outputs = [list(t.leaves(block.output)) for block in blocks]
        constant = [a.kind == "literal" and {a}.issuperset(rest) for a, *rest in zip(*outputs, strict=True)]
        if relation.parts is not None:
            total, (inner, read) = self._sum_of_parts(blocks, relation, relation.parts)
        else:
            counted = self.counted(blocks)
            if counted is None:
                added = self.addends(blocks)
                rows = self._side_by_side(added)
                if rows is not None and rows.place is not None:
                    return self._summed_side_by_side(rows, relation, names)
                queries, weights = self._rows_to_sum(added)
                ones = all(held == (t.ONE,) for each in added for _, held in each.parts)
                counted = self.counted(blocks[:1]) if ones else None
                total = counted or sums.sum_sql(weights, relation.mass, self.emitter.dialect)
            else:
                total, queries = counted, [self.rows(block) for block in blocks]
            inner, read = together(queries)
        chosen = [f"min({name}) AS {name}" if same else name for name, same in zip(names, constant, strict=True)]
        keys = [name for name, same in zip(names, constant, strict=True) if not same]
        summed = f"SELECT {', '.join([*chosen, f'{total} AS w'])} FROM ({inner}){grouping(keys)}"
        return f"SELECT * FROM ({summed}) WHERE w <> 0", read, inner, ()

    def _summed_side_by_side(self, rows: b.SideBySide, relation: b.Relation, names: list[str]) -> SumsQuery:
        """The sums of weights that stand side by side, one below the other."""
        dialect, weights, (block,) = self.emitter.dialect, numbered(b.WEIGHT, rows.weights), rows.blocks
        keys = [name for i, name in enumerate(names) if i != rows.place]
        on_grid = [sums.on_grid(added, relation.mass) for added in rows.weights]
        inner, read = self.select(block, [*t.leaves(block.output), *on_grid], [*keys, *weights])
        totals = [f"{sums.sum_of_parts_sql(weight, relation.mass, dialect)} AS {weight}" for weight in weights]
        summed = f"SELECT {', '.join([*keys, *totals])} FROM ({inner}){grouping(keys)}"
        (value,) = set(names) - set(keys)
        values = dialect.list_of(self.emitter.terms(rows.values, {}))
        lists = {value: values, b.WEIGHT: dialect.list_of(weights)}
        below = f"SELECT {', '.join([*keys, dialect.unnest(lists)])} FROM ({summed})"
        beside = (summed, values) if value == names[-1] else ()
        return f"SELECT {', '.join([*names, b.WEIGHT])} FROM ({below}) WHERE w <> 0", read, "", beside

    def counted(self, blocks: Sequence[b.Block], count: str = "count(*)") -> str | None:
        """The sum over equal records from the number of their rows, where that can be told."""
        return self.rewritten(b.Total(blocks[0], blocks[0].output, count=count)).sql if len(blocks) == 1 else None

    def addends(self, blocks: Sequence[b.Block]) -> list[b.Addends]:
        """The rows of each of some blocks that are added up."""
        return [self.rewritten(b.Addends(((block, (block.weight,)),))) for block in blocks]

    def _side_by_side(self, added: list[b.Addends]) -> b.SideBySide | None:
        """The rows that are added up with weights side by side, where they may be."""
        if self.key_types or any(each.started or len(each.parts) != 1 for each in added):
            return None
        blocks, weights = zip(*(each.parts[0] for each in added), strict=True)
        return self.rewritten(b.SideBySide(blocks, weights))

    def _rows_to_sum(self, added: list[b.Addends], numbers: bool = False) -> tuple[list[RowsQuery], list[str]]:
        """The queries of rows that are added up, and the columns of the weights that each adds.

        Weights that are the same in every block are one column. With `numbers`, a further column `n` is the number of
        weights of a row.
        """
        parts = [(*part, addends.started) for addends in added for part in addends.parts]
        columns = [*zip_longest(*(weights for _, weights, _ in parts), fillvalue=t.number(0.0))]
        names, queries = dict[tuple[t.SqlTerm, ...], str](), list[RowsQuery]()
        written = [names.setdefault(column, f"{b.WEIGHT}{i or ''}") for i, column in enumerate(columns)]
        name, *others = names.values()
        for (block, weights, started), (own, *further) in zip(parts, zip(*names, strict=True), strict=True):
            outputs, counted = list(t.leaves(block.output)), [t.literal(str(len(weights)))] * numbers
            listed = [*numbered("c", outputs), *["n"] * numbers, *others, name]
            queries.append(self.select(block, [*outputs, *counted, *further, own], listed, started))
        return queries, written

    # --- partial sums -----------------------------------------------------------------------------------------------

    def partly_summed(self, relation: b.Relation) -> b.Relation:
        """The dataset with a table of the exact partial sums of its equal records.

        It is as it was where each record has one row. Sums over the outputs of Select, Where and Partition may start
        from the table. They give the same float, for numbers of rows are exact, and so is every sum on the grid.
        Operators that do more with weights read the rows.
        """
        if relation.unique:
            return relation
        blocks, names = _aligned(relation), column_names(relation.type)
        added = {"n": "CAST(sum(n) AS BIGINT)", "w": "min(w)", "h": "sum(h)"}
        if relation.parts is not None:
            held = relation.parts.columns
            inner, read = self._parts(relation.parts, relation, held)
        elif self.counted(blocks) is not None and blocks[0].weight.kind == "literal":
            held, added = ("n",), {"n": "count(*)"}
            inner, read = self.rows(blocks[0])
        else:
            queries, weights = self._rows_to_sum(self.addends(blocks), numbers=True)
            inner, read = together(queries)
            held = ("n", "w", "h") if len(blocks) == 1 else ("h",)
            added["h"] = sums.partial_sum_sql(weights, relation.mass, self.emitter.dialect)
        chosen = ", ".join([*names, *(f"{added[name]} AS {name}" for name in held)])
        name = self.table(f"SELECT {chosen} FROM ({inner}){grouping(names)}", read)
        block = self.scan(b.SqlTable(name, b.column_list(relation.type)), relation.type)
        block = replace(block, weight=t.column(block.tables[0][0], held[-1], False))
        return replace(relation, partial=b.PartialSums(relation.blocks, block, held, relation.mass))

    def _sum_of_parts(self, blocks: list[b.Block], relation: b.Relation, parts: b.PartialSums) -> tuple[str, RowsQuery]:
        """The sum over equal records from the partial sums of blocks, as it is over their rows."""
        counted = self.counted(blocks, "sum(n)")
        read = [name for name in parts.columns if (name == "h") == (counted is None)]
        total = counted or sums.sum_of_parts_sql("h", relation.mass, self.emitter.dialect)
        return total, self._parts(parts, relation, read)

    def _parts(self, parts: b.PartialSums, relation: b.Relation, columns: Sequence[str]) -> RowsQuery:
        """The query of partial sums: records, and some columns of the sums."""
        outputs = list(t.leaves(t.aligned(parts.block.output, relation.type)))
        added = [replace(parts.block.weight, text=name) for name in columns]
        return self.select(parts.block, [*outputs, *added], [*numbered("c", outputs), *columns])

    def single(self, relation: b.Relation) -> b.Block:
        """The dataset as one block under fresh aliases."""
        if len(relation.blocks) > 1:
            relation = self.stored(relation)
        (block,) = relation.blocks
        fresh = {alias: self.alias() for alias, _ in block.tables}
        return b.rewritten(block, tuple((fresh[alias], table) for alias, table in block.tables), fresh)


def _aligned(relation: b.Relation) -> list[b.Block]:
    return [replace(block, output=t.aligned(block.output, relation.type)) for block in relation.blocks]


def together(queries: Sequence[RowsQuery]) -> RowsQuery:
    """The rows of some queries."""
    read = tuple(dict.fromkeys(table for _, tables in queries for table in tables))
    return " UNION ALL ".join(sql for sql, _ in queries), read


def numbered(letter: str, items: Sequence[object]) -> list[str]:
    """A name for each of some items: `c0`, `c1`, …."""
    return [f"{letter}{i}" for i in range(len(items))]


def table_name(query: str) -> str:
    """The name of the table that holds what a query gives."""
    return f"t{digest_of(query).hex()[:40]}"


def grouping(names: Sequence[str]) -> str:
    """The clause that groups rows by some columns.

    Without columns, a group without rows is no row either.
    """
    return f" GROUP BY {', '.join(names)}" if names else " HAVING count(*) > 0"


# --- steps that plans have in common ----------------------------------------------------------------------------------

#: The most steps that are cached, those used last.
STEPS_LIMIT = 2048


@dataclass(frozen=True, slots=True, eq=False)
class CachedStep:
    """The additions of one step to a script, which stands for all steps before it, too.

    Attributes
    ----------
    result : object
        The dataset at the step; of the last one, what the output is read by.
    statements : tuple of SqlStatement
        The tables that it makes.
    aliases : int
        How many aliases were given out by then.
    """

    result: Any
    statements: tuple[SqlStatement, ...]
    aliases: int


class PrefixCache:
    """The most recent steps of plans: plans that begin alike compile their common steps once.

    The additions of a step are a function of the step, of the plan's facts of it, and of the steps before. The number
    of its users, and whether it is shared, count too. So a program that goes on from cached steps is, to the letter,
    the one that is written from the start.
    """

    def __init__(self) -> None:
        self._cached = lru_cache(maxsize=STEPS_LIMIT)(lambda before, step: list[CachedStep]())

    def after(
        self, before: CachedStep | None, step: Hashable, script: Script, write: Callable[[], object]
    ) -> CachedStep:
        """Add a step after the one before to the script, from the cache, else by `write`.

        `step` is all that distinguishes this step from others that may come next.
        """
        found = self._cached(before, step)
        if found:
            script.statements += found[0].statements
            script.made.update(statement.creates for statement in found[0].statements)
            script.aliases = found[0].aliases
        else:
            number = len(script.statements)
            result = write()
            found.append(CachedStep(result, tuple(script.statements[number:]), script.aliases))
        return found[0]


# Sums over the same rows by the same columns, of several plans, in one statement.
#
# What a row adds is the weight of the row, or of the one element of a SelectMany its share of it. The rows of weight 0,
# and those without one, which SelectMany leaves out, add nothing to a sum that is exact; and a record to which nothing
# is added is left out where the sum is read.


def share(own: str) -> str:
    """The SQL of the share of the one element of a weighted list.

    It is of a record of weight 1, by the element's own weight: `own / greatest(abs(own), 1)`, to the last bit and in a
    third of the time.
    """
    return f"CASE WHEN abs({own}) > CAST(1 AS DOUBLE) THEN sign({own}) ELSE {own} END"


@dataclass(frozen=True, slots=True)
class RowsToSum:
    """Rows of one table that are added up by what they have in common.

    Attributes
    ----------
    block : Block
        The rows, with what they are added up by.
    type : Type
        Of that.
    own : SqlTerm or None
        Of which a row adds its share of the weight; else it adds all.
    mass : Fraction
        A bound on the norm of the sums.
    """

    block: b.Block
    type: Type
    own: t.SqlTerm | None
    mass: Fraction


def rows_to_sum(relation: b.Relation) -> RowsToSum | None:
    """What a relation adds up, where that is the rows of one table, or shares of them."""
    if (
        len(relation.blocks) != 1
        or len(relation.blocks[0].tables) != 1
        or relation.unique
        or relation.parts is not None
    ):
        return None
    block, own = relation.blocks[0], None
    ((alias, table),) = block.tables
    if table.shares is not None:
        below, own = table.shares
        if len(below.tables) != 1:
            return None
        inside = dict(zip((name for name, _ in table.columns), t.leaves(below.output), strict=True))
        inside[b.WEIGHT] = below.weight
        put = t.substitute(lambda term: inside[term.text] if term.scope == alias else None)
        if put(block.weight) != below.weight:
            return None
        condition = t.both([below.condition, put(block.condition)])
        block = b.Block(below.tables, condition, t.map_shape(put, block.output), below.weight)
    ((alias, table),) = block.tables
    to = {alias: "a0"}
    own = own if own is None else b.rewritten(replace(block, weight=own), (("a0", table),), to).weight
    block = b.rewritten(block, (("a0", table),), to)
    outputs = [*t.leaves(block.output)]
    counted = block.weight.kind == "literal" and block.weight != t.ONE
    if counted or not outputs or any(term.kind == "literal" for term in outputs):
        return None  # which is counted in units of its own, or not grouped
    return RowsToSum(replace(block, output=t.aligned(block.output, relation.type)), relation.type, own, relation.mass)


def at_once(step: str, alike: Sequence[RowsToSum], dialect: Dialect) -> tuple[SqlStatement, list[str]]:
    """The statement that takes sums over the same rows, and what to read each of them from."""
    block, names = alike[0].block, column_names(alike[0].type)
    owns = list(dict.fromkeys(rows.own for rows in alike if rows.own is not None))
    own = dict(zip(owns, numbered("own", owns), strict=True))
    terms = [*t.leaves(block.output), *owns, block.weight]
    inner = Emitter(dialect).select(block, terms, [*names, *own.values(), b.WEIGHT])
    ones = block.weight == t.ONE  # of which there are as many as rows, and shares are what they are
    added = {name: share(name) if ones else f"{b.WEIGHT} * ({share(name)})" for name in own.values()}
    shares = ", ".join([*names, *(f"{text} AS {name}" for name, text in ({b.WEIGHT: b.WEIGHT} | added).items())])

    def total(rows: RowsToSum) -> str:
        if ones and rows.own is None:
            return "CAST(count(*) AS DOUBLE)"
        return sums.sum_sql([b.WEIGHT if rows.own is None else own[rows.own]], rows.mass, dialect)

    totals = [f"{total(rows)} AS {b.WEIGHT}{i}" for i, rows in enumerate(alike)]
    query = f"SELECT {', '.join([*names, *totals])} FROM (SELECT {shares} FROM ({inner})){grouping(names)}"
    table, listed = table_name(query), ", ".join(names)
    return SqlStatement(step, query, table, b.reads([block])), [
        f"(SELECT {listed}, {b.WEIGHT}{i} AS {b.WEIGHT} FROM {table} WHERE {b.WEIGHT}{i} <> 0)"
        for i, _ in enumerate(alike)
    ]
