"""Two uses of one table that must be at the same row are one use: self-joins on a key are left out.

Where the condition of a block makes the columns of a key of two uses of one table equal, column by column, both
uses are at the same row in every choice of rows, for a key determines the row. The second is dropped and its
columns are read from the first. The choices of rows correspond one to one, and every term has the value it had:
records, weights and their bits stay as they are, and so does the error bound.

This is what makes a triangle of three edges out of two paths that share an edge, and one degree of two.
"""

from __future__ import annotations

from wpinq.engines.relational.blocks.block import Block, classes, equates, rewritten
from wpinq.engines.relational.blocks.term import SqlTerm, both, column, conjuncts
from wpinq.engines.relational.sql.script import Script


def drop_self_joins(script: Script, block: Block) -> Block:
    """The block without uses of a table that are at the row of an earlier use."""
    while True:
        pair = _find(block)
        if pair is None:
            return block
        kept, dropped = pair
        tables = tuple((alias, table) for alias, table in block.tables if alias != dropped)
        merged = rewritten(block, tables, {dropped: kept})
        parts = dict.fromkeys(term for term in conjuncts(merged.condition) if not _trivial(term))
        block = Block(merged.tables, both(parts), merged.output, merged.weight)


def _trivial(term: SqlTerm) -> bool:
    """Whether a condition says that a value is itself."""
    if not equates(term) or term.arguments[0] != term.arguments[1]:
        return False
    return term.text == "same" or not term.arguments[0].nullable


def _find(block: Block) -> tuple[str, str] | None:
    find = classes(block)
    seen: dict[tuple[object, ...], str] = {}
    for alias, table in block.tables:
        places = [
            (table.source, tuple(sorted(key)), tuple(find(column(alias, name, True)) for name in sorted(key)))
            for key in table.keys
            if key
        ]
        for place in places:
            if place in seen:
                return seen[place], alias
        for place in places:
            seen[place] = alias
    return None
