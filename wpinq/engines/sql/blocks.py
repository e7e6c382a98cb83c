"""Blocks: one select-from-where over tables, as terms, so that operators compose unrun.

A block gives a record (its output) and a weight for every way to choose a row from each of its tables that
satisfies its condition. Select, Where and Join map blocks to blocks. What is known of the tables, their keys and
what their weights depend on, says when each record comes out once, and what a row is determined by.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from wpinq.columns.records import leaf_types
from wpinq.engines.sql import terms as t
from wpinq.engines.sql.terms import Shape, SqlTerm, columns
from wpinq.expr.types import Type


@dataclass(frozen=True, slots=True)
class SqlTable:
    """A table, or a query in parentheses, with what is known of its rows.

    Attributes
    ----------
    source : str
        What stands after FROM.
    columns : tuple of (str, bool)
        The columns of a record, each with whether it can be null. The weight is the column `w`.
    keys : tuple of frozenset of str
        Sets of columns, each of which determines the row.
    weight_from : frozenset of str or None
        Columns that determine the weight, where they are fewer than a key.
    weight : Scalar or None
        The weight itself, where it is one constant.
    lookup : bool
        Whether it holds one row for each key of another dataset: norms, groups.
    covers : (str, tuple of str) or None
        Of a lookup: a table, and columns of it, of which it holds all values, in the order of the lookup's columns.
    few : tuple of (str, int)
        Columns whose values are among 0, 1, …, n − 1 whatever the data are, each with that n, which the plan says.
    mirrored : bool
        Whether it has pairs of one type, in two columns, and with each (x, y) also (y, x), as often and of the same
        weights.
    unequal : bool
        Whether it has two columns alone, of one type, which are equal in no row.
    piece : (str, str) or None
        Of the pieces of a Shave: the query of those of one number, `i`, before that number and after it.
    reads : tuple of str
        Of a query in parentheses, the tables that it reads.
    rows : str
        Of sums that are to be stored: the query of the rows that are added up.
    beside : tuple of str
        Of sums that stand one below the other, by the last column: the query in which they stand side by side, and the
        list of the values of that column.
    cut : Block or None
        Of the pieces of a Shave: the records that are cut.
    shares : (Block, SqlTerm) or None
        Of the one element of a SelectMany: rows, and the term of which each adds its share of their weight.
    """

    source: str
    columns: tuple[tuple[str, bool], ...]
    keys: tuple[frozenset[str], ...] = ()
    weight_from: frozenset[str] | None = None
    weight: t.SqlTerm | None = None
    reads: tuple[str, ...] = ()
    lookup: bool = False
    covers: tuple[str, tuple[str, ...]] | None = None
    few: tuple[tuple[str, int], ...] = ()
    mirrored: bool = False
    unequal: bool = False
    piece: tuple[str, str] | None = None
    rows: str = ""
    cut: Block | None = None
    shares: tuple[Block, t.SqlTerm] | None = None
    beside: tuple[str, ...] = ()

    def at(self, alias: str) -> list[t.SqlTerm]:
        """The columns of a record, under an alias."""
        return [t.column(alias, name, nullable) for name, nullable in self.columns]

    def weight_at(self, alias: str) -> t.SqlTerm:
        """The weight of a row, under an alias."""
        return t.column(alias, "w", False) if self.weight is None else self.weight


#: Tables by alias, in the order of the join.
JoinedTables = tuple[tuple[str, SqlTable], ...]


@dataclass(frozen=True, slots=True)
class Block:
    """Tables by alias, a condition on their rows, and each choice's record and weight.

    A choice is of one row from each table.
    """

    tables: JoinedTables
    condition: t.SqlTerm
    output: t.Shape
    weight: t.SqlTerm


def rewritten(block: Block, tables: JoinedTables, to: dict[str, str]) -> Block:
    """The block over other tables, with columns read from other aliases."""
    rewrite = t.renamed(to)
    return Block(tables, rewrite(block.condition), t.map_shape(rewrite, block.output), rewrite(block.weight))


def equates(term: t.SqlTerm) -> bool:
    """Whether a condition says that two terms are equal."""
    return term.kind == "call" and term.text in ("equal", "same")


def links(term: t.SqlTerm) -> bool:
    """Whether a condition says that two columns are equal."""
    return equates(term) and all(argument.kind == "column" for argument in term.arguments)


def trivial(term: t.SqlTerm) -> bool:
    """Whether a condition says that a value is itself."""
    if not equates(term) or term.arguments[0] != term.arguments[1]:
        return False
    return term.text == "same" or not term.arguments[0].nullable


def equalities(condition: t.SqlTerm) -> list[tuple[t.SqlTerm, t.SqlTerm]]:
    """The pairs of terms that a condition makes equal, one of each pair a column."""
    pairs = []
    for term in t.conjuncts(condition):
        if equates(term):
            left, right = term.arguments
            if left.kind == "column" and right.kind in ("column", "literal"):
                pairs.append((left, right))
            elif right.kind == "column" and left.kind == "literal":
                pairs.append((right, left))
    return pairs


def classes(block: Block) -> Callable[[t.SqlTerm], t.SqlTerm]:
    """The function from a column to the representative of its class of equal columns.

    Columns are equal if the condition makes them so.
    """
    parent: dict[t.SqlTerm, t.SqlTerm] = {}

    def find(term: t.SqlTerm) -> t.SqlTerm:
        while term in parent:
            term = parent[term]
        return term

    for left, right in equalities(block.condition):
        a, b = find(left), find(right)
        if a != b:
            parent[a] = b
    return find


def closure(block: Block, start: Iterable[t.SqlTerm]) -> tuple[set[t.SqlTerm], set[str]]:
    """The columns, and the aliases of the whole rows, that the values of some terms determine."""
    known = set(start)
    rows: set[str] = set()
    pairs = equalities(block.condition)
    known.update(left for left, right in pairs if right.kind == "literal")
    grown = True
    while grown:
        grown = False
        for left, right in pairs:
            if right.kind == "column" and (left in known) != (right in known):
                known.update((left, right))
                grown = True
        for alias, table in block.tables:
            if alias in rows:
                continue
            held = {term.text for term in known if term.scope == alias}
            if any(key <= held for key in table.keys):
                rows.add(alias)
                known.update((*table.at(alias), t.column(alias, "w", False)))
                grown = True
            elif table.weight_from is not None and table.weight_from <= held and "w" not in held:
                known.add(t.column(alias, "w", False))
                grown = True
    return known, rows


def output_columns(shape: t.Shape) -> list[t.SqlTerm]:
    """The leaves of a value that are plain columns."""
    return [leaf for leaf in t.leaves(shape) if leaf.kind == "column"]


def determines_row(block: Block, shape: t.Shape) -> bool:
    """Whether the values of a shape determine the row of every table.

    At most one choice of rows then has them.
    """
    _, rows = closure(block, output_columns(shape))
    return len(rows) == len(block.tables)


def determines_weight(block: Block, shape: t.Shape) -> bool:
    """Whether the weight is a function of the values of a shape."""
    known, _ = closure(block, output_columns(shape))
    return columns(block.weight) <= known


def output_keys(block: Block, names: list[str]) -> tuple[frozenset[str], ...]:
    """Sets of output columns that determine the row, found from the left and from the right.

    Each search drops the columns that are not needed, in its order.
    """
    positions = list(range(len(names)))
    found = [_least(block, order, determines_row) for order in (positions, positions[::-1])]
    return tuple({frozenset(names[i] for i in kept) for kept in found if kept is not None})


def output_weight_from(block: Block, names: list[str]) -> frozenset[str] | None:
    """A set of output columns that determines the weight, or None."""
    kept = _least(block, list(range(len(names))), determines_weight)
    return None if kept is None else frozenset(names[i] for i in kept)


def _least(block: Block, order: list[int], determines: Callable[[Block, t.Shape], bool]) -> list[int] | None:
    """The output positions that are left when as many as can be are dropped, in this order."""
    terms = {i: term for i, term in enumerate(t.leaves(block.output)) if term.kind == "column"}
    kept = [i for i in order if i in terms]
    if not determines(block, block.output):
        return None
    for i in list(kept):
        fewer = [j for j in kept if j != i]
        if determines(block, t.RecordShape(None, tuple(terms[j] for j in fewer))):
            kept = fewer
    return kept


def few_terms(block: Block) -> set[t.SqlTerm]:
    """The columns of a block's tables that take few values whatever the data are."""
    return {term for alias, table in block.tables for term in table.at(alias) if term.text in dict(table.few)}


def grows(block: Block) -> bool:
    """Whether the block can have more rows than each of its tables.

    It cannot where some table's row determines all others.
    """
    for alias, table in block.tables:
        _, rows = closure(block, table.at(alias))
        if rows | {alias} >= {other for other, _ in block.tables}:
            return False
    return True


def matches(table: SqlTable, alias: str, key: Iterable[t.SqlTerm]) -> list[t.SqlTerm]:
    """The conditions that the first columns of a table under an alias are the values of a key."""
    return [t.same(term, held) for term, held in zip(key, table.at(alias), strict=False)]


def looked_up(block: Block, alias: str, table: SqlTable, key: Iterable[t.SqlTerm]) -> Block:
    """The block with the rows of a further table whose first columns are the values of a key."""
    condition = t.both([block.condition, *matches(table, alias, key)])
    return replace(block, tables=(*block.tables, (alias, table)), condition=condition)


def restricted(block: Block, condition: t.SqlTerm) -> Block:
    """The rows that satisfy a further condition too."""
    return replace(block, condition=t.both([block.condition, condition]))


# --- relations: datasets under construction, as sums of blocks --------------------------------------------------------

WEIGHT = "w"


@dataclass(frozen=True, slots=True)
class PartialSums:
    """Exact sums of the equal records of some blocks' rows, to be added up further.

    Attributes
    ----------
    of : tuple of Block
        Those blocks: what stands for others is of no use.
    block : Block
        Over the table of the sums, one row a record; its weight is a column of those.
    columns : tuple of str
        The columns of the sums: `n`, the number of rows, `w`, their least weight, and `h`, their sum on the grid. A
        block that reads another column of the table is of no use.
    mass : Fraction
        The mass that the grid is for.
    """

    of: tuple[Block, ...]
    block: Block
    columns: tuple[str, ...]
    mass: Fraction


@dataclass(frozen=True, slots=True)
class Relation:
    """A dataset under construction: the sum of some blocks.

    Attributes
    ----------
    blocks : tuple of Block
        Their rows together, each with its weight: equal records add.
    type : Type
        The type of the records.
    mass : Fraction
        A bound on the norm.
    nonnegative : bool
        Whether no row has a negative weight.
    partial : PartialSums or None
        Where its rows stand partly added up.
    each : Fraction or None
        What every record weighs, where the plan says so.
    repeats : bool
        Whether several rows may have one record, as far as is known; only rewrites say that none has.
    """

    blocks: tuple[Block, ...]
    type: Type
    mass: Fraction
    nonnegative: bool
    partial: PartialSums | None = None
    each: Fraction | None = None
    repeats: bool = True

    @property
    def unique(self) -> bool:
        """Whether each record comes out once at most."""
        return len(self.blocks) == 1 and determines_row(self.blocks[0], self.blocks[0].output)

    @property
    def linear(self) -> bool:
        """Whether the absolute weights of the rows add up to the norm.

        They do with one row a record, or with no sign to cancel.
        """
        return self.unique or self.nonnegative

    @property
    def parts(self) -> PartialSums | None:
        """The partial sums from which its rows can be added up."""
        partial = self.partial
        if partial is None or partial.of is not self.blocks or partial.mass != self.mass:
            return None
        held = {term for alias, table in partial.block.tables for term in table.at(alias)}
        return partial if columns(*t.leaves(partial.block.output), partial.block.condition) <= held else None

    @property
    def table(self) -> str | None:
        """The table that stores the records of this dataset, each once.

        It has their weights, or a constant stands for these. None where it takes a query.
        """
        if len(self.blocks) != 1 or len(self.blocks[0].tables) != 1:
            return None
        (block,) = self.blocks
        ((alias, table),) = block.tables
        shown = [*t.leaves(block.output)] == table.at(alias) and block.condition == t.TRUE
        weighed = block.weight.kind == "literal" or block.weight == table.weight_at(alias)
        return table.source if table.keys and shown and weighed and not table.source.startswith("(") else None


def covered(block: Block, names: Sequence[str]) -> tuple[str, tuple[str, ...]] | None:
    """The table and columns that have all values of a block's output.

    In the order of the lookup's columns. None where the block is not a table as it is.
    """
    ((_, table), *others), held = block.tables, dict(zip(names, t.leaves(block.output), strict=True))
    if others or table.reads or block.condition != t.TRUE or any(term.kind != "column" for term in held.values()):
        return None
    return table.source, tuple(term.text for term in held.values())


def mirrored(relation: Relation) -> bool:
    """Whether the relation is a list of pairs, with (y, x) for each (x, y) at the same weight."""
    shown = [[*t.leaves(t.aligned(block.output, relation.type))] for block in relation.blocks]
    rows = [(block.tables, block.condition, block.weight) for block in relation.blocks]
    one, other = (Counter((row, *pair[::step]) for row, pair in zip(rows, shown, strict=True)) for step in (1, -1))
    return one == other and all(len(pair) == 2 for pair in shown)


def unequal(relation: Relation) -> bool:
    """Whether the relation is a list of pairs, each of both columns of a table of unequal ones."""
    shown = [({*t.leaves(t.aligned(block.output, relation.type))}, block.tables) for block in relation.blocks]
    return all(any(table.unequal and {*table.at(alias)} == pair for alias, table in tables) for pair, tables in shown)


def derived(
    sql: str, columns: Sequence[tuple[str, bool]], read: tuple[str, ...], keys: tuple[frozenset[str], ...] = ()
) -> SqlTable:
    """A query that reads some tables, as a table."""
    return SqlTable(f"({sql})", tuple(columns), keys, reads=read)


def column_list(type_: Type) -> tuple[tuple[str, bool], ...]:
    """The names of a record's columns in a table, each with whether it can be null."""
    return tuple((f"c{i}", nullable) for i, (_, nullable) in enumerate(leaf_types(type_)))


def reads(blocks: Sequence[Block]) -> tuple[str, ...]:
    """The tables that blocks read."""
    found = [table.reads or (table.source,) for block in blocks for _, table in block.tables]
    return tuple(dict.fromkeys(name for names in found for name in names))


# Targets of rewrites: each a choice with its plain answer, which a rewrite may better.
#
# Beside these, a rewrite may change a `Block`, the rows of a join.


@dataclass(frozen=True, slots=True)
class Reuse:
    """Whether a dataset with so many uses is stored in a table, or stays a query over tables."""

    relation: Relation
    uses: int
    stored: bool = True


@dataclass(frozen=True, slots=True)
class Minimum:
    """The Intersect of two relations.

    Without a `relation` from a rewrite, both sides are grouped by record.
    """

    inputs: tuple[Relation, ...]
    output: Relation
    relation: Relation | None = None


@dataclass(frozen=True, slots=True)
class Total:
    """The sum of the weights, or of their sizes, of the rows of a block that agree in a shape.

    Attributes
    ----------
    block : Block
        The rows.
    grouped_by : Shape
        What they agree in.
    absolute : bool
        Whether it is of sizes: the norm of a key.
    nonnegative : bool
        Whether no weight is negative.
    term : SqlTerm or None
        The sum as a term of a row, where no table of sums is needed.
    sql : str or None
        The SQL of the sum; None: on the grid.
    count : str
        The SQL of the number of the rows.
    rows : tuple of (Block, SqlTerm)
        For that SQL, rows in place of those, each with the number `n` of those that it stands for.
    """

    block: Block
    grouped_by: Shape
    absolute: bool = False
    nonnegative: bool = False
    term: SqlTerm | None = None
    sql: str | None = None
    count: str = "count(*)"
    rows: tuple[tuple[Block, SqlTerm], ...] = ()


@dataclass(frozen=True, slots=True)
class StoredTable:
    """A stored dataset as it is read, and the weight of each record, where the plan knows it."""

    table: SqlTable
    each: Fraction | None


#: A block, and the weights that one of its rows adds.
Addend = tuple[Block, tuple[SqlTerm, ...]]


@dataclass(frozen=True, slots=True)
class Addends:
    """Rows that are added up, as blocks that exclude each other.

    `started` is whether their start was chosen before.
    """

    parts: tuple[Addend, ...]
    started: bool = False


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Blocks whose rows are added up, each with some weights.

    With a place there is one block, and the column of the record there is left out.

    A row then stands for one with each of the values there, which have the weights.
    """

    blocks: tuple[Block, ...]
    weights: tuple[tuple[SqlTerm, ...], ...]
    place: int | None = None
    values: tuple[SqlTerm, ...] = ()


@dataclass(frozen=True, slots=True)
class QueryRows:
    """The rows of a query: blocks that exclude each other.

    `started` is whether their start was chosen before.
    """

    blocks: tuple[Block, ...]
    started: bool = False
