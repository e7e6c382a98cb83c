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

from wpinq.engines.relational.block import Table
from wpinq.engines.relational.scalar import number

Equal = frozenset[tuple[str, float]]
"""Tables with the one weight that all their rows have."""


def of_equal_weights(table: Table, equal: Equal) -> Table:
    """The table with its constant weight, where all its rows have one."""
    found = dict(equal).get(table.source)
    return table if found is None or table.weight is not None else replace(table, weight=number(found))


def weights_sql(table: str) -> str:
    """The query that says whether all rows of a table weigh the same: its least and its greatest weight."""
    return f"SELECT min(w), max(w) FROM {table}"
