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

from wpinq.engines.relational.blocks.block import grows
from wpinq.engines.relational.blocks.subjects import Reuse
from wpinq.engines.relational.sql.script import Script


def fuse(script: Script, reuse: Reuse) -> Reuse:
    """What is used once stays a query, and what is used more often, if it is a join that grows."""
    relation = reuse.relation
    stays = reuse.uses <= 1 or (len(relation.blocks) == 1 and relation.unique and grows(relation.blocks[0]))
    return replace(reuse, stored=not stays)
