"""Sums over the same rows by the same columns, of several plans, in one statement.

What a row adds is the weight of the row, or of the one element of a SelectMany its share of it. The rows of weight 0,
and those without one, which SelectMany leaves out, add nothing to a sum that is exact; and a record to which nothing is
added is left out where the sum is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from wpinq.columns.records import column_names
from wpinq.engines.sql import sums
from wpinq.engines.sql.blocks import WEIGHT, Block, Relation, reads, rewritten
from wpinq.engines.sql.dialect import Dialect
from wpinq.engines.sql.emit import Emitter
from wpinq.engines.sql.script import SqlStatement, grouping, numbered, table_name
from wpinq.engines.sql.terms import SqlTerm, aligned, both, leaves, map_shape, number, substitute
from wpinq.expr.types import Type

_ONE = number(1.0)


def share(own: str) -> str:
    """The share of the one element of a weighted list, as SQL: of a record of weight 1, what its own weight says.

    It is `own / greatest(abs(own), 1)`, to the last bit and in a third of the time.
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

    block: Block
    type: Type
    own: SqlTerm | None
    mass: Fraction


def rows_to_sum(relation: Relation) -> RowsToSum | None:
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
        inside = dict(zip((name for name, _ in table.columns), leaves(below.output), strict=True))
        inside[WEIGHT] = below.weight
        put = substitute(lambda term: inside[term.text] if term.scope == alias else None)
        if put(block.weight) != below.weight:
            return None
        condition = both([below.condition, put(block.condition)])
        block = Block(below.tables, condition, map_shape(put, block.output), below.weight)
    ((alias, table),) = block.tables
    to = {alias: "a0"}
    own = own if own is None else rewritten(replace(block, weight=own), (("a0", table),), to).weight
    block = rewritten(block, (("a0", table),), to)
    outputs = [*leaves(block.output)]
    counted = block.weight.kind == "literal" and block.weight != _ONE
    if counted or not outputs or any(term.kind == "literal" for term in outputs):
        return None  # which is counted in units of its own, or not grouped
    return RowsToSum(replace(block, output=aligned(block.output, relation.type)), relation.type, own, relation.mass)


def at_once(step: str, alike: Sequence[RowsToSum], dialect: Dialect) -> tuple[SqlStatement, list[str]]:
    """The statement that takes sums over the same rows, and what to read each of them from."""
    block, names = alike[0].block, column_names(alike[0].type)
    owns = list(dict.fromkeys(rows.own for rows in alike if rows.own is not None))
    own = dict(zip(owns, numbered("own", owns), strict=True))
    inner = Emitter(dialect).select(
        block, [*leaves(block.output), *owns, block.weight], [*names, *own.values(), WEIGHT]
    )
    ones = block.weight == _ONE  # of which there are as many as rows, and shares are what they are
    added = {name: share(name) if ones else f"{WEIGHT} * ({share(name)})" for name in own.values()}
    shares = ", ".join([*names, *(f"{text} AS {name}" for name, text in ({WEIGHT: WEIGHT} | added).items())])

    def total(rows: RowsToSum) -> str:
        if ones and rows.own is None:
            return "CAST(count(*) AS DOUBLE)"
        return sums.sum_sql([WEIGHT if rows.own is None else own[rows.own]], rows.mass, dialect)

    totals = [f"{total(rows)} AS {WEIGHT}{i}" for i, rows in enumerate(alike)]
    query = f"SELECT {', '.join([*names, *totals])} FROM (SELECT {shares} FROM ({inner})){grouping(names)}"
    table, listed = table_name(query), ", ".join(names)
    return SqlStatement(step, query, table, reads([block])), [
        f"(SELECT {listed}, {WEIGHT}{i} AS {WEIGHT} FROM {table} WHERE {WEIGHT}{i} <> 0)" for i, _ in enumerate(alike)
    ]
