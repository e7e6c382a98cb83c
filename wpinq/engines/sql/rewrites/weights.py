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

from wpinq.engines.sql.blocks import determines_row, determines_weight
from wpinq.engines.sql.rewrite_targets import KeyNorm, StoredTable, Total
from wpinq.engines.sql.script import Script
from wpinq.engines.sql.terms import ONE, call, number


def read_equal_weights(script: Script, stored: StoredTable) -> StoredTable:
    """The table with its weight, where that is one constant which a float can say; else as it is."""
    table, each = stored.table, stored.each
    if table.weight is not None or each is None or Fraction(float(each)) != each:
        return stored
    return replace(stored, table=replace(table, weight=number(float(each))))


# The norm of a join key that at most one record of a side has is that record's own weight.
#
# A Join divides by `‖A_k‖ + ‖B_k‖`. Where the key of a side determines the row (the key holds a key of every table of
# the side), `‖A_k‖` has one summand, `|w|`, and is read from the row: no table of norms is made, and none is looked up.
#
# Needs: keys, which come from the plan alone. Weights: the sum of one number is that number, exactly; the table of
# norms would have rounded it up to the grid, so the error can only fall. The absolute value is left out where the plan
# says that no weight is negative.


def read_own_norm(script: Script, norm: KeyNorm) -> KeyNorm:
    """The norm as a term of the row, where the key determines the row."""
    if not determines_row(norm.block, norm.key):
        return norm
    weight = norm.block.weight
    return replace(norm, term=weight if norm.nonnegative else call("absolute", weight))


# Rows of one weight are counted instead of summed.
#
# Where the weight of a row is a function of what rows are grouped by, all rows of a group weigh the same, and their sum
# is the number of rows times that weight. Linear steps (Select, Where, Concat, the rows of a Join) pass their rows on
# without adding up equal records, so that there is one such sum at the end and not one at each step.
#
# Needs: the weight is a constant, or a function of the columns that are grouped by: keys and declared facts say so.
# Weights: the count is exact (below `2^53`, which no machine reaches), and the product rounds once, by one roundoff of
# the sum: less than the grid of `sums` may take. A norm takes the absolute value of the common weight, which rounds
# nothing.
#
# Before: `CAST(sum(CAST(w * 2^96 AS HUGEINT)) AS DOUBLE) * 2^-96`. After: `CAST(count(*) AS DOUBLE) * min(w)`.


def count_rows(script: Script, total: Total) -> Total:
    """The sum from the number of rows, where all rows that agree have one weight."""
    weight = total.block.weight
    if weight == ONE:
        return replace(total, sql=f"CAST({total.count} AS DOUBLE)")
    if weight.kind == "literal":
        common = weight.text
    elif determines_weight(total.block, total.grouped_by):
        common = "min(w)"
    else:
        return total
    return replace(total, sql=f"CAST({total.count} AS DOUBLE) * {f'abs({common})' if total.absolute else common}")
