"""A stored dataset whose records all weigh the same, as the plan proves, is read as one of that constant weight.

So an edge list that declares `unit_weights` and `simple` has degrees that are functions of the vertex, and paths that
need no sum, also after `symmetrize` and of half-edges: of a simple list and its reverse no record is in both.

Needs: the certificate's `equal_weights`: weights that count things, of which each record is one. Never the data: a
program that is chosen by what a table holds takes more time, or memory, where one record is there.

Weights: what is read is the exact weight, where a float can say it; what was stored differs from that by no more than
the error bound of the plan.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from wpinq.engines.relational.blocks.subjects import StoredTable
from wpinq.engines.relational.blocks.term import number
from wpinq.engines.relational.sql.script import Script


def read_equal_weights(script: Script, stored: StoredTable) -> StoredTable:
    """The table with its weight, where that is one constant which a float can say; else as it is."""
    table, each = stored.table, stored.each
    if table.weight is not None or each is None or Fraction(float(each)) != each:
        return stored
    return replace(stored, table=replace(table, weight=number(float(each))))
