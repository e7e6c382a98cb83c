"""Of records that are added up to be cut by a Shave, only those that a Join behind it has partners for.

Whether an order was late is how Q4 of TPC-H asks: its late lines are counted by order, one piece of each count is
kept, and orders of a quarter are joined with these. The orders that are wanted stand in a table of norms that the Join
makes anyway. The lines of others need not be counted.

Needs: a Shave of a dataset that is added up into a table; a lookup of the Join, made of rows that were filtered, whose
key says what the records are; columns that are never null.

Weights: rows that are added up are left out by what they are added up by, so all rows of a record stay or go together,
and what stays has the bits that it had. What goes has no row in the Join: its condition says that the key is in the
lookup. The norms of the Join are those of its inputs, made without any of this. The table that is left out is not made,
unless something else reads it.

Before: `FROM A, pieces(SELECT c0, count(*) FROM B GROUP BY c0) AS p, norms AS n WHERE A.c0 = p.c0 AND A.c0 = n.c0`.
After: `… pieces(SELECT c0, count(*) FROM B SEMI JOIN norms AS k ON B.c0 = k.c0 GROUP BY c0) AS p …`.
"""

from __future__ import annotations

from dataclasses import replace

from wpinq.engines.relational.blocks.block import Block, SqlTable, classes, links
from wpinq.engines.relational.blocks.shape import leaves
from wpinq.engines.relational.blocks.subjects import QueryRows
from wpinq.engines.relational.blocks.term import SqlTerm, column, columns, conjuncts
from wpinq.engines.relational.sql.script import Script


def cut_wanted_records(script: Script, rows: QueryRows) -> QueryRows:
    """The rows, with pieces of the records that are joined alone."""
    return replace(rows, blocks=tuple(_narrowed(script, block) for block in rows.blocks))


def _narrowed(script: Script, block: Block) -> Block:
    tables = []
    for alias, table in block.tables:
        found = _wanted(script, block, alias, table)
        tables.append((alias, table if found is None else found))
    return replace(block, tables=tuple(tables))


def _wanted(script: Script, block: Block, alias: str, table: SqlTable) -> SqlTable | None:
    if table.cut is None or len(table.cut.tables) != 1:
        return None
    ((_, summed),) = table.cut.tables
    statement = next((one for one in script.statements if one.creates == summed.source and one.rows), None)
    if statement is None or not _filtered(block, alias):
        return None
    # the columns of the table of sums, by those of the pieces, as they are joined
    held = dict(zip((name for name, _ in table.columns), leaves(table.cut.output), strict=False))
    find = classes(block)
    for other, lookup in block.tables:
        if other == alias or not lookup.lookup or lookup.source not in script.made or lookup.covers is not None:
            continue
        pairs = [
            f"q.{held[name].text} = k.{there}"
            for name, nullable in table.columns
            for there, perhaps in lookup.columns
            if not (nullable or perhaps) and name in held and _is_plain(held[name])
            if find(column(alias, name, False)) == find(column(other, there, False))
        ]
        if pairs:
            joined = f"SELECT q.* FROM ({statement.rows}) AS q SEMI JOIN {lookup.source} AS k ON {' AND '.join(pairs)}"
            query = statement.query.replace(f"({statement.rows})", f"({joined})", 1)
            made = script.table(query, (*statement.reads, lookup.source))
            return replace(table, source=table.source.replace(summed.source, made), reads=(made,), cut=None)
    return None


def _is_plain(term: SqlTerm) -> bool:
    return term.kind == "column" and not term.nullable


def _filtered(block: Block, alias: str) -> bool:
    """Whether the condition says something of the rows of the other tables, beside how they are joined."""
    said = [columns(part) for part in conjuncts(block.condition) if not links(part)]
    return any(found and all(term.scope != alias for term in found) for found in said)
