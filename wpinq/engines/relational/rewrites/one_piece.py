"""Of a Shave of which one piece is asked for, only that piece is made.

The first piece of each record is how a query asks for distinct records: `Shave(1.0)`, then `Where` the number is 0. The
numbers of all pieces are made as a list a record, of which the condition leaves one. With the number put in place of
the list there are neither lists nor rows that go at once.

Needs: a condition that the number is one constant. Weights: a piece is made by the same terms of the same numbers, and
is there under the same condition, that its number is below that of the pieces; so all bits stay.

Before: `FROM (SELECT x, i, piece FROM (SELECT *, unnest(range(pieces)) AS i FROM cut)) WHERE i = 0`.
After: `FROM (SELECT x, i, piece FROM (SELECT *, 0 AS i FROM cut) WHERE i < pieces) WHERE i = 0`.
"""

from __future__ import annotations

import re
from dataclasses import replace

from wpinq.engines.relational.blocks.block import Block, SqlTable
from wpinq.engines.relational.blocks.subjects import QueryRows
from wpinq.engines.relational.blocks.term import column, conjuncts
from wpinq.engines.relational.sql.script import Script

_NUMBER = re.compile(r"CAST\([0-9]{1,9} AS BIGINT\)")


def make_one_piece(script: Script, rows: QueryRows) -> QueryRows:
    """The rows, with one piece a record of every Shave of which one is asked for."""
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
