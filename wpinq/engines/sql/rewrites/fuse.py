"""Rewrites that leave tables out: steps composed into one query, and self-joins on a key."""

from __future__ import annotations

from dataclasses import replace

from wpinq.engines.sql.blocks import Block, classes, equates, grows, rewritten
from wpinq.engines.sql.rewrite_targets import Reuse
from wpinq.engines.sql.script import Script
from wpinq.engines.sql.terms import SqlTerm, both, column, conjuncts


def fuse(script: Script, reuse: Reuse) -> Reuse:
    """A dataset with one user stays a query. So does a join that grows, however many use it.

    Before: `CREATE TABLE t AS SELECT c0 + 1 AS c0, w FROM s; SELECT c0, w FROM t WHERE c0 > 5`.
    After: `SELECT s.c0 + 1, s.w FROM s WHERE s.c0 + 1 > 5`.

    Select, Where, Partition, Concat, Except and Join give terms over the tables below them. A filter ends up in the
    query that reads the tables, and a projection reads no column in vain. A dataset with several users is stored, so
    that a shared part of a plan is evaluated once. The exception is a join with more rows than its tables, each record
    once: its users' filters save more than its storing does, and its rows need no adding up.

    Weights: storing a float changes no bit, so a term has the bits of a stored column. Rows of one record are added up
    later, over more rows, on a grid that takes them in any order (`sums`). The roundoff of a sum is so paid once
    instead of at each step, and the error bound stays. Signs play no part: composing is linear in the rows. All that is
    not linear (Shave, GroupBy, Union, Intersect, the norms of a Join) asks for unique rows first.
    """
    relation = reuse.relation
    stays = reuse.uses <= 1 or (len(relation.blocks) == 1 and relation.unique and grows(relation.blocks[0]))
    return replace(reuse, stored=not stays)


def drop_self_joins(script: Script, block: Block) -> Block:
    """A second use of a table at the row of the first is left out.

    Before: `SELECT a.c0, b.w FROM s AS a, s AS b WHERE a.c0 = b.c0`, where `c0` is a key of `s`.
    After: `SELECT a.c0, a.w FROM s AS a`.

    A triangle of three edges is so made of two paths that share an edge, and one degree of two.

    Needs: a key of the table, whose columns the condition makes equal. A key determines the row, so both uses are at
    the same row in every choice of rows.

    Weights: the choices of rows correspond one to one, and every term has the value that it had. So all bits stay, and
    the error bound.
    """
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
