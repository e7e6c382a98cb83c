"""A stored dataset whose records all weigh the same is read as one of that constant weight.

Whether they do is asked of the table once it is there, and what comes after it is compiled with the answer. So an
edge list of weights 1 has degrees that are functions of the vertex, and paths that need no sum, also when the
source declares no fact; and so has what `symmetrize` makes of it, of which no fact could be declared.

Needs: nothing of the plan. Weights: a program compiled with the constant is one of those that the other rewrites make
from declared facts, each within the error bound of the plan on every dataset that has the constant, and the dataset has
it. Which program runs is a function of the datasets alone, so the bits are too: neither threads nor row order show.
Noise is for the bound, which is that of the plan, so no scale depends on the answer, and no refusal does: a plan is
refused when it is compiled without any answer, or not at all. What depends on it is time and memory, as they depend on
the data anyway (see the page on privacy).
"""

from __future__ import annotations

from dataclasses import replace

from wpinq.engines.relational.blocks.block import SqlTable
from wpinq.engines.relational.blocks.term import number
from wpinq.engines.relational.sql.script import Script


def read_equal_weights(script: Script, table: SqlTable) -> SqlTable:
    """A stored table with its weight, where that is one constant, found or known; else it is open what it is."""
    if table.weight is not None:
        return table
    found = script.equal_weight(table.source)
    if found is not None:
        return replace(table, weight=number(found))
    script.open.add(table.source)
    return table


def weights_sql(table: str) -> str:
    """The query that says whether all rows of a table weigh the same: its least and its greatest weight."""
    return f"SELECT min(w), max(w) FROM {table}"
