"""The script of a plan: statements that create tables, then one query. Static: nothing is run to write it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from wpinq.columns.flat import column_names
from wpinq.engines.relational.blocks.block import (
    Block,
    SqlTable,
    output_keys,
    output_weight_from,
    rewritten,
)
from wpinq.engines.relational.blocks.relation import WEIGHT, Relation, column_list, reads
from wpinq.engines.relational.blocks.shape import RecordShape, aligned, leaves, shape_of
from wpinq.engines.relational.blocks.subjects import Addends, QueryRows, Total
from wpinq.engines.relational.blocks.term import TRUE, SqlTerm, number
from wpinq.engines.relational.sql import sums
from wpinq.engines.relational.sql.emit import Emitter
from wpinq.expr.nodes import digest_of
from wpinq.expr.types import Type

S = TypeVar("S")

Equal = frozenset[tuple[str, float]]
"""Tables with the one weight that all their rows have: see `rewrites.equal_weights`."""


@dataclass(frozen=True, slots=True)
class SqlStatement:
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
class Rewrite:
    """One rewrite: its name, the kind of subject that it changes, and how; `rewrites.REWRITES` has them all."""

    name: str
    of: type
    apply: Callable[[Script, Any], Any]


@dataclass(slots=True)
class Script:
    """Statements, in order, and the means to add to them."""

    emitter: Emitter
    rewrites: tuple[Rewrite, ...]
    statements: list[SqlStatement] = field(default_factory=list)
    step: str = ""
    equal: Equal = frozenset()
    open: set[str] = field(default_factory=set)
    _tables: set[str] = field(default_factory=set)
    _aliases: int = 0

    def rewritten(self, subject: S) -> S:
        """A subject after the rewrites of its kind that are switched on, in their order."""
        for rewrite in self.rewrites:
            if rewrite.of is type(subject):
                subject = rewrite.apply(self, subject)
        return subject

    def table(self, query: str, tables: Sequence[str]) -> str:
        """The name of a table that holds what a query gives; a query is run once, whoever asks.

        The name is the digest of the query, and so of all the queries that it comes from, down to the sources: one name
        is one content, in every script over the same sources.
        """
        name = table_name(query)
        if name not in self._tables:
            self._tables.add(name)
            self.statements.append(SqlStatement(self.step, query, name, tuple(tables)))
        return name

    def alias(self) -> str:
        """An alias that nothing else uses."""
        self._aliases += 1
        return f"a{self._aliases}"

    def select(
        self, block: Block, outputs: Sequence[SqlTerm], names: Sequence[str], started: bool = False
    ) -> tuple[str, tuple[str, ...]]:
        """The query of terms over the rows of a block, rewritten for speed; and the tables that it reads."""
        *shown, last = outputs
        block = replace(block, output=RecordShape(None, tuple(shown)), weight=last)
        blocks = self.rewritten(QueryRows((block,), started)).blocks
        queries = [self.emitter.select(one, [*leaves(one.output), one.weight], names) for one in blocks]
        return " UNION ALL ".join(queries), reads(blocks)

    def rows(self, block: Block) -> tuple[str, tuple[str, ...]]:
        """The query of a block: its record as `c0`, `c1`, …, its weight as `w`; and the tables that it reads."""
        outputs = list(leaves(block.output))
        return self.select(block, [*outputs, block.weight], [*numbered("c", outputs), WEIGHT])

    def fresh(self, block: Block) -> Block:
        """The same block under aliases that nothing else uses."""
        replace_ = {alias: self.alias() for alias, _ in block.tables}
        return rewritten(block, tuple((replace_[alias], table) for alias, table in block.tables), replace_)

    def scan(self, table: SqlTable, type_: Type | None = None) -> Block:
        """Every row of a table: its columns as a record of a type, or side by side."""
        alias = self.alias()
        terms = table.at(alias)
        output = RecordShape(None, tuple(terms)) if type_ is None else shape_of(type_, iter(terms))
        return Block(((alias, table),), TRUE, output, table.weight_at(alias))

    # --- datasets as tables -----------------------------------------------------------------------------------------

    def stored(self, relation: Relation) -> Relation:
        """The dataset as a table of its own, each record once."""
        if relation.table is not None:
            return relation
        sql, table = self.grouped(relation)
        name = self.table(sql, table.reads)
        table = self.rewritten(replace(table, source=name, reads=()))
        return replace(relation, blocks=(self.scan(table, relation.type),))

    def once(self, relation: Relation) -> Relation:
        """The dataset with each record in one row: as it is where that is known, else stored."""
        return relation if relation.unique else self.stored(relation)

    def grouped(self, relation: Relation) -> tuple[str, SqlTable]:
        """The query that gives each record once with its weight, and what is known of its rows."""
        names, listed = column_names(relation.type), column_list(relation.type)
        blocks = [replace(block, output=aligned(block.output, relation.type)) for block in relation.blocks]
        if relation.unique:
            (block,) = blocks
            keys = output_keys(block, names) or (frozenset(names),)
            constant = block.weight if block.weight.kind == "literal" else None
            sql, read = self.rows(block)
            return sql, SqlTable("", listed, keys, output_weight_from(block, names), constant, read)
        sql, read = self._summed(blocks, relation, names)
        return sql, SqlTable("", listed, (frozenset(names),), reads=read)

    def _summed(self, blocks: list[Block], relation: Relation, names: list[str]) -> tuple[str, tuple[str, ...]]:
        """The sum over equal records. What is the same in every row is not grouped by."""
        outputs = [list(leaves(block.output)) for block in blocks]
        constant = [
            first.kind == "literal" and {first}.issuperset(others) for first, *others in zip(*outputs, strict=True)
        ]
        total = self.rewritten(Total(blocks[0], blocks[0].output)).sql if len(blocks) == 1 else None
        if total is None:
            queries, weights = self._rows_to_sum(blocks)
            total = sums.sum_sql(weights, relation.mass, self.emitter.dialect)
        else:
            queries = [self.rows(block) for block in blocks]
        inner = " UNION ALL ".join(sql for sql, _ in queries)
        chosen = [f"min({name}) AS {name}" if same else name for name, same in zip(names, constant, strict=True)]
        keys = [name for name, same in zip(names, constant, strict=True) if not same]
        summed = f"SELECT {', '.join([*chosen, f'{total} AS w'])} FROM ({inner}){grouping(keys)}"
        read = tuple(dict.fromkeys(table for _, tables in queries for table in tables))
        return f"SELECT * FROM ({summed}) WHERE w <> 0", read

    def _rows_to_sum(self, blocks: list[Block]) -> tuple[list[tuple[str, tuple[str, ...]]], list[str]]:
        """The queries of rows that are added up, and the columns of the weights that each of them adds."""
        added = [self.rewritten(Addends(((block, (block.weight,)),))).parts for block in blocks]
        width = max(len(weights) for parts in added for _, weights in parts)
        further = [f"{WEIGHT}{i}" for i in range(1, width)]
        queries = []
        for parts in added:
            for block, weights in parts:
                outputs = list(leaves(block.output))
                filled = [*weights[1:], *[number(0.0)] * (width - len(weights))]
                names = [*numbered("c", outputs), *further, WEIGHT]
                started = len(parts[0][1]) > 1  # where there are orbits, they say from which vertex
                queries.append(self.select(block, [*outputs, *filled, weights[0]], names, started))
        return queries, [WEIGHT, *further]

    def single(self, relation: Relation) -> Block:
        """The dataset as one block under fresh aliases."""
        if len(relation.blocks) > 1:
            relation = self.stored(relation)
        return self.fresh(relation.blocks[0])


def numbered(letter: str, items: Sequence[object]) -> list[str]:
    """A name for each of some items: `c0`, `c1`, …"""
    return [f"{letter}{i}" for i in range(len(items))]


def table_name(query: str) -> str:
    """The name of the table that holds what a query gives."""
    return f"t{digest_of(query).hex()[:40]}"


def grouping(names: Sequence[str]) -> str:
    """What groups rows by some columns; where there are none, a group without rows is no row either."""
    return f" GROUP BY {', '.join(names)}" if names else " HAVING count(*) > 0"
