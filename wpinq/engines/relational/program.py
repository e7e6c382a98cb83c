"""A plan made into a program: statements that create tables, then one query. Static: nothing is run to write it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction

from wpinq.engines.relational import sums
from wpinq.engines.relational.block import (
    Block,
    Table,
    determines_row,
    output_keys,
    output_weight_from,
    rewritten,
)
from wpinq.engines.relational.emit import Emitter
from wpinq.engines.relational.layout import Record, Shape, aligned, leaf_types, leaves, shape_of
from wpinq.engines.relational.lower import lower
from wpinq.engines.relational.rewrites.equal_weights import Equal, of_equal_weights
from wpinq.engines.relational.rewrites.late_aggregation import counted
from wpinq.engines.relational.scalar import TRUE, Scalar, column, number
from wpinq.expr.nodes import Lambda, digest_of
from wpinq.expr.types import ListOf, Type

WEIGHT = "w"


@dataclass(frozen=True, slots=True)
class Rewrites:
    """Which rewrites are made; all, but for tests and measurements. See the modules under `rewrites/`."""

    fuse: bool = True
    intersect_as_join: bool = True
    unique_norms: bool = True
    same_rows: bool = True
    late_aggregation: bool = True
    fold_lookups: bool = True
    order_tables: bool = True
    symmetry: bool = True
    shorter_way: bool = True
    equal_weights: bool = True


NO_REWRITES = Rewrites(*[False] * len(fields(Rewrites)))


@dataclass(frozen=True, slots=True)
class Statement:
    """One step: the operator that it belongs to, its query, the table that holds it, and those it reads."""

    step: str
    query: str
    creates: str
    reads: tuple[str, ...]

    @property
    def sql(self) -> str:
        """The SQL that creates the table."""
        return f"CREATE TEMP TABLE {self.creates} AS {self.query}"


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
    """

    blocks: tuple[Block, ...]
    type: Type
    mass: Fraction
    nonnegative: bool

    @property
    def unique(self) -> bool:
        """Whether each record comes out once at most."""
        return len(self.blocks) == 1 and determines_row(self.blocks[0], self.blocks[0].output)

    @property
    def linear(self) -> bool:
        """Whether the absolute weights of the rows add up to the norm: one row a record, or no sign to cancel."""
        return self.unique or self.nonnegative


@dataclass(slots=True)
class Program:
    """Statements, in order, and the means to add to them."""

    emitter: Emitter = field(default_factory=Emitter)
    rewrites: Rewrites = field(default_factory=Rewrites)
    statements: list[Statement] = field(default_factory=list)
    step: str = ""
    equal: Equal = frozenset()
    open: set[str] = field(default_factory=set)
    _tables: set[str] = field(default_factory=set)
    _aliases: int = 0

    def table(self, query: str, tables: Sequence[str]) -> str:
        """The name of a table that holds what a query gives; a query is run once, whoever asks.

        The name is the digest of the query, and so of all the queries that it comes from, down to the sources: one name
        is one content, in every program over the same sources.
        """
        name = f"t{digest_of(query).hex()[:40]}"
        if name not in self._tables:
            self._tables.add(name)
            self.statements.append(Statement(self.step, query, name, tuple(tables)))
        return name

    def lower(self, lambda_: Lambda, *arguments: Shape) -> Shape:
        """The value of a function on arguments, as terms."""
        return lower(lambda_, *arguments, dialect=self.emitter.dialect)

    def alias(self) -> str:
        """An alias that nothing else uses."""
        self._aliases += 1
        return f"a{self._aliases}"

    def select(
        self, block: Block, outputs: Sequence[Scalar], names: Sequence[str], walked: bool = False
    ) -> tuple[str, tuple[str, ...]]:
        """The query of terms over the rows of a block, rewritten for speed; and the tables that it reads.

        The way that joins go is left as it is where it was chosen before (`walked`).
        """
        from wpinq.engines.relational.rewrites.lookups import fold_lookups
        from wpinq.engines.relational.rewrites.shorter_way import shorter_way
        from wpinq.engines.relational.rewrites.table_order import in_order

        *shown, last = outputs
        block = replace(block, output=Record(None, tuple(shown)), weight=last)
        if self.rewrites.fold_lookups:
            block = fold_lookups(self, block)
        blocks = [block]
        if self.rewrites.order_tables:
            blocks = [in_order(block)]
        if self.rewrites.shorter_way and not walked:
            blocks = shorter_way(self, blocks[0])
        queries = [self.emitter.select(one, [*leaves(one.output), one.weight], names) for one in blocks]
        return " UNION ALL ".join(queries), reads(blocks)

    def rows(self, block: Block) -> tuple[str, tuple[str, ...]]:
        """The query of a block: its record as `c0`, `c1`, …, its weight as `w`; and the tables that it reads."""
        outputs = list(leaves(block.output))
        return self.select(block, [*outputs, block.weight], [*(f"c{i}" for i in range(len(outputs))), "w"])

    def fresh(self, block: Block) -> Block:
        """The same block under aliases that nothing else uses."""
        replace_ = {alias: self.alias() for alias, _ in block.tables}
        return rewritten(block, tuple((replace_[alias], table) for alias, table in block.tables), replace_)

    def scan(self, table: Table, type_: Type | None = None) -> Block:
        """Every row of a table: its columns as a record of a type, or side by side."""
        alias = self.alias()
        terms = [column(alias, name, nullable) for name, nullable in table.columns]
        weight = column(alias, WEIGHT, False) if table.weight is None else table.weight
        output = Record(None, tuple(terms)) if type_ is None else shape_of(type_, iter(terms))
        return Block(((alias, table),), TRUE, output, weight)

    # --- datasets as tables -----------------------------------------------------------------------------------------

    def stored(self, relation: Relation) -> Relation:
        """The dataset as a table of its own, each record once."""
        if is_stored(relation):
            return relation
        sql, table = self.grouped(relation)
        name = self.table(sql, table.reads)
        table = self.observed(replace(table, source=name, reads=()))
        return replace(relation, blocks=(self.scan(table, relation.type),))

    def observed(self, table: Table) -> Table:
        """A stored table with its weight, where that is one constant, found or known; else it is open what it is."""
        if not self.rewrites.equal_weights:
            return table
        table = of_equal_weights(table, self.equal)
        if table.weight is None:
            self.open.add(table.source)
        return table

    def grouped(self, relation: Relation) -> tuple[str, Table]:
        """The query that gives each record once with its weight, and what is known of its rows."""
        names = column_names(relation.type)
        nullable = [null for _, null in leaf_types(relation.type)]
        listed = tuple(zip(names, nullable, strict=True))
        blocks = [replace(block, output=aligned(block.output, relation.type)) for block in relation.blocks]
        if relation.unique:
            (block,) = blocks
            keys = output_keys(block, names) or (frozenset(names),)
            constant = block.weight if block.weight.kind == "literal" else None
            sql, read = self.rows(block)
            return sql, Table("", listed, keys, output_weight_from(block, names), constant, read)
        sql, read = self._summed(blocks, relation, names)
        return sql, Table("", listed, (frozenset(names),), reads=read)

    def _summed(self, blocks: list[Block], relation: Relation, names: list[str]) -> tuple[str, tuple[str, ...]]:
        """The sum over equal records. What is the same in every row is not grouped by."""
        outputs = [list(leaves(block.output)) for block in blocks]
        constant = [
            all(terms[i].kind == "literal" and terms[i] == outputs[0][i] for terms in outputs)
            for i in range(len(names))
        ]
        total = None
        if len(blocks) == 1 and self.rewrites.late_aggregation:
            total = counted(blocks[0], blocks[0].output)
        if total is None:
            queries, weights = self._rows_to_sum(blocks)
            total = sums.sum_sql(weights, relation.mass, self.emitter.dialect)
        else:
            queries = [self.rows(block) for block in blocks]
        inner = " UNION ALL ".join(sql for sql, _ in queries)
        chosen = [f"min({name}) AS {name}" if same else name for name, same in zip(names, constant, strict=True)]
        keys = [name for name, same in zip(names, constant, strict=True) if not same]
        group = f" GROUP BY {', '.join(keys)}" if keys else " HAVING count(*) > 0"
        summed = f"SELECT {', '.join([*chosen, f'{total} AS w'])} FROM ({inner}){group}"
        read = tuple(dict.fromkeys(table for _, tables in queries for table in tables))
        return f"SELECT * FROM ({summed}) WHERE w <> 0", read

    def _rows_to_sum(self, blocks: list[Block]) -> tuple[list[tuple[str, tuple[str, ...]]], list[str]]:
        """The queries of rows that are added up, and the columns of the weights that each of them adds."""
        from wpinq.engines.relational.rewrites.symmetry import once_an_orbit

        if not self.rewrites.symmetry:
            return [self.rows(block) for block in blocks], [WEIGHT]
        orbits = [once_an_orbit(self, block) for block in blocks]
        width = max(len(weights) for parts in orbits for _, weights in parts)
        further = [f"{WEIGHT}{i}" for i in range(1, width)]
        queries = []
        for parts in orbits:
            for block, weights in parts:
                outputs = list(leaves(block.output))
                filled = [*weights[1:], *[number(0.0)] * (width - len(weights))]
                names = [*(f"c{i}" for i in range(len(outputs))), *further, WEIGHT]
                queries.append(self.select(block, [*outputs, *filled, weights[0]], names, walked=len(parts[0][1]) > 1))
        return queries, [WEIGHT, *further]

    def single(self, relation: Relation) -> Block:
        """The dataset as one block under fresh aliases."""
        if len(relation.blocks) > 1:
            relation = self.stored(relation)
        return self.fresh(relation.blocks[0])


def derived(
    sql: str, columns: Sequence[tuple[str, bool]], read: tuple[str, ...], keys: tuple[frozenset[str], ...] = ()
) -> Table:
    """A query that reads some tables, as a table."""
    return Table(f"({sql})", tuple(columns), keys, reads=read)


def column_names(type_: Type) -> list[str]:
    """The names of a record's columns in a table."""
    return [f"c{i}" for i, _ in enumerate(leaf_types(type_))]


def has_lists(type_: Type) -> bool:
    """Whether a column of a record is a list."""
    return any(isinstance(leaf, ListOf) for leaf, _ in leaf_types(type_))


def reads(blocks: Sequence[Block]) -> tuple[str, ...]:
    """The tables that blocks read."""
    found = [table.reads or (table.source,) for block in blocks for _, table in block.tables]
    return tuple(dict.fromkeys(name for names in found for name in names))


def is_stored(relation: Relation) -> bool:
    """Whether the dataset is a table as it stands, each record once."""
    if len(relation.blocks) != 1:
        return False
    (block,) = relation.blocks
    if len(block.tables) != 1 or block.condition != TRUE:
        return False
    alias, table = block.tables[0]
    terms = list(leaves(block.output))
    names = [(term.scope, term.text) for term in terms if term.kind == "column"]
    weight: Scalar = table.weight or column(alias, WEIGHT, False)
    return (
        not table.source.startswith("(")
        and len(terms) == len(names)
        and names == [(alias, name) for name, _ in table.columns]
        and block.weight == weight
        and bool(table.keys)
    )
