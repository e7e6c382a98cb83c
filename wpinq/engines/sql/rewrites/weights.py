"""Rewrites of weights that the plan knows: constants, norms of one record, equal weights."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from wpinq.engines.sql.blocks import determines_row, determines_weight
from wpinq.engines.sql.rewrite_targets import KeyNorm, StoredTable, Total
from wpinq.engines.sql.script import Script
from wpinq.engines.sql.terms import ONE, call, number


def read_equal_weights(script: Script, stored: StoredTable) -> StoredTable:
    """A stored dataset of which all records weigh the same is read as one of that constant weight.

    Before: `SELECT t.c0, t.w FROM t`. After: `SELECT t.c0, 0.5 FROM t`.

    An edge list that declares `unit_weights` and `simple` so has degrees that are functions of the vertex, and paths
    that need no sum. `symmetrize` and half-edges keep this: no record is in a simple list and in its reverse.

    Needs: `equal_weights` of the plan's properties, and a weight that a float can say; never the data. A program chosen
    by the content of a table would take more time, or memory, where one record is there.

    Weights: the constant is the exact weight. The stored one differs from it by no more than the error bound of the
    plan.
    """
    table, each = stored.table, stored.each
    if table.weight is not None or each is None or Fraction(float(each)) != each:
        return stored
    return replace(stored, table=replace(table, weight=number(float(each))))


def read_own_norm(script: Script, norm: KeyNorm) -> KeyNorm:
    """The norm of a join key with at most one record is the weight of that record.

    Before: `SELECT … a.w * b.w / (n.norm + m.norm) FROM a, b, norms_of_a AS n, norms_of_b AS m WHERE …`.
    After: `SELECT … a.w * b.w / (a.w + m.norm) FROM a, b, norms_of_b AS m WHERE …`.

    Needs: a key that holds a key of every table of the side, as the plan says.

    Weights: the sum of one number is that number, exactly. The table of norms would have rounded it up to the grid, so
    the error can only fall. The absolute value is left out where the plan says that no weight is negative.
    """
    if not determines_row(norm.block, norm.key):
        return norm
    weight = norm.block.weight
    return replace(norm, term=weight if norm.nonnegative else call("absolute", weight))


def count_rows(script: Script, total: Total) -> Total:
    """Rows of one weight are counted instead of summed.

    Before: `CAST(sum(CAST(w * 2^96 AS HUGEINT)) AS DOUBLE) * 2^-96`. After: `CAST(count(*) AS DOUBLE) * min(w)`.

    Linear steps (Select, Where, Concat, the rows of a Join) pass their rows on without adding up equal records. So
    there is one such sum at the end, and not one at each step.

    Needs: a weight that is a constant, or a function of the columns that are grouped by. Keys and declared facts say
    so.

    Weights: the count is exact (below `2^53`, which no machine reaches). The product rounds once, by one roundoff of
    the sum: less than the grid of `sums` may take. A norm takes the absolute value of the common weight, which rounds
    nothing.
    """
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
