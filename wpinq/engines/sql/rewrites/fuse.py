"""Operators are composed into one query, unless storing what one gives is cheaper.

Select, Where, Partition, Concat, Except and Join give terms over the tables below them, and so does whoever reads
them: a filter ends up in the query that reads the tables, and a projection reads no column that nobody asks for. What
is used twice is stored once, so that a shared part of a plan is evaluated once. The exception is a join that can have
more rows than its tables, each record once: it is written again wherever it is used, because there a filter from its
user pays most, and because its rows need no adding up.

Weights: a term over columns has the bits that the column of a stored result would have, for storing a float changes
none. Where rows of one record must be added up, that happens later, over more rows, on a grid that takes them in any
order (`sums`): the roundoff of a sum is paid once instead of at each step. So the error bound stays, and nothing here
looks at a sign: combining is linear in the rows, and what is not linear (Shave, GroupBy, Union, Intersect, the norms
of a Join) asks for unique rows first.
"""

from __future__ import annotations

from dataclasses import replace

from wpinq.engines.sql.blocks import Block, classes, equates, grows, rewritten
from wpinq.engines.sql.rewrite_targets import Reuse
from wpinq.engines.sql.script import Script
from wpinq.engines.sql.terms import SqlTerm, both, column, conjuncts


def fuse(script: Script, reuse: Reuse) -> Reuse:
    """What is used once stays a query, and what is used more often, if it is a join that grows."""
    relation = reuse.relation
    stays = reuse.uses <= 1 or (len(relation.blocks) == 1 and relation.unique and grows(relation.blocks[0]))
    return replace(reuse, stored=not stays)


# Two uses of one table that must be at the same row are one use: self-joins on a key are left out.
#
# Where the condition of a block makes the columns of a key of two uses of one table equal, column by column, both
# uses are at the same row in every choice of rows, for a key determines the row. The second is dropped and its
# columns are read from the first. The choices of rows correspond one to one, and every term has the value it had:
# records, weights and their bits stay as they are, and so does the error bound.
#
# This is what makes a triangle of three edges out of two paths that share an edge, and one degree of two.


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
