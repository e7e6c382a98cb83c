"""Rows of one weight are counted instead of summed.

Where the weight of a row is a function of what rows are grouped by, all rows of a group weigh the same, and their sum
is the number of rows times that weight. Linear steps (Select, Where, Concat, the rows of a Join) pass their rows on
without adding up equal records, so that there is one such sum at the end and not one at each step.

Needs: the weight is a constant, or a function of the columns that are grouped by: keys and declared facts say so.
Weights: the count is exact (below `2^53`, which no machine reaches), and the product rounds once, by one roundoff of
the sum: less than the grid of `sums` may take. A norm takes the absolute value of the common weight, which rounds
nothing.

Before: `CAST(sum(CAST(w * 2^96 AS HUGEINT)) AS DOUBLE) * 2^-96`. After: `CAST(count(*) AS DOUBLE) * min(w)`.
"""

from __future__ import annotations

from dataclasses import replace

from wpinq.engines.relational.blocks.block import determines_weight
from wpinq.engines.relational.blocks.subjects import Total
from wpinq.engines.relational.blocks.term import ONE
from wpinq.engines.relational.sql.script import Script


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
