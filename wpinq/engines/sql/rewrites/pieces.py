"""Rewrites of the pieces of a Shave: only records and pieces that the query reads are made."""

from __future__ import annotations

import re
from dataclasses import replace

from wpinq.engines.sql.blocks import Block, SqlTable, classes, links
from wpinq.engines.sql.rewrite_targets import QueryRows
from wpinq.engines.sql.script import Script
from wpinq.engines.sql.terms import SqlTerm, column, columns, conjuncts, leaves


def cut_wanted_records(script: Script, rows: QueryRows) -> QueryRows:
    """Of records that are added up to be cut by a Shave, those without partners in the Join behind it are left out.

    Before: `FROM A, pieces(SELECT c0, count(*) FROM B GROUP BY c0) AS p, norms AS n WHERE A.c0 = p.c0 AND A.c0 = n.c0`.
    After: `… pieces(SELECT c0, count(*) FROM B SEMI JOIN norms AS k ON B.c0 = k.c0 GROUP BY c0) AS p …`.

    Q4 of TPC-H is the case in point: late lines are counted by order, one piece of each count is kept, and orders of a
    quarter are joined with these. The wanted orders stand in a table of norms that the Join makes anyway.

    Needs: a Shave of a dataset that is added up into a table; a lookup of the Join, made of filtered rows, with a key
    that determines the records; columns that are never null.

    Weights: rows are left out by the columns that they are added up by. So all rows of a record stay or go together,
    and a record that stays keeps its bits. A record that goes has no row in the Join, since its key is not in the
    lookup. The norms of the Join are those of its inputs, made without any of this.
    """
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


_NUMBER = re.compile(r"CAST\([0-9]{1,9} AS BIGINT\)")


def make_one_piece(script: Script, rows: QueryRows) -> QueryRows:
    """Of a Shave of which one piece is read, only that piece is made.

    Before: `FROM (SELECT x, i, piece FROM (SELECT *, unnest(range(pieces)) AS i FROM cut)) WHERE i = 0`.
    After: `FROM (SELECT x, i, piece FROM (SELECT *, 0 AS i FROM cut) WHERE i < pieces) WHERE i = 0`.

    A query asks for distinct records by the first piece of each: `Shave(1.0)`, then `Where` the number is 0. The
    numbers of all pieces would be a list a record, of which the condition leaves one.

    Needs: a condition that the number is one constant. Weights: the piece is made by the same terms of the same
    numbers, under the same condition, so all bits stay.
    """
    blocks = [
        replace(block, tables=tuple((alias, _one_piece(block, alias, table)) for alias, table in block.tables))
        for block in rows.blocks
    ]
    return replace(rows, blocks=tuple(blocks))


def _one_piece(block: Block, alias: str, table: SqlTable) -> SqlTable:
    if table.piece is None:
        return table
    number = column(alias, "i", False)
    for part in conjuncts(block.condition):
        others = [term.text for term in part.arguments if term != number]
        if part.text == "equal" and len(others) == 1 and _NUMBER.fullmatch(others[0]):
            before, after = table.piece
            return replace(table, source=f"({before}{others[0]}{after})", piece=None)
    return table
