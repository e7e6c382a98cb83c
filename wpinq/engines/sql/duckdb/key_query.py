"""The weights of given records: how much of an output is made, and kept for the next query.

- A result that stands is asked.
- Where joins of the output can grow and the keys narrow them, only the rows of the records that are asked for are made
  (`key_pushdown`), as long as there are few keys and the plan was not asked often.
- Of plans that are evaluated together, such an output is added up and asked at once, the first time.
- Everything else is stored, or, where it is small, held in Python, and asked there.

Which it is depends on the plan, on how often it was asked and for how many keys, and on the size of tables: it changes
time and memory, and no weight.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

from wpinq.engines.sql.batch_sums import RowsToSum
from wpinq.engines.sql.compile import Plan
from wpinq.engines.sql.duckdb.table_cache import FEW, TableCache, fetch_keys, narrowing
from wpinq.engines.sql.engine import Batch
from wpinq.engines.sql.program import run
from wpinq.expr.values import Value
from wpinq.plan.arithmetic import Weights

QUERIES_BEFORE_STORING = 16
"""How often a plan is asked for few keys before all of its output is stored."""

TRIED = 1024
"""How many queries are remembered that were run to see that they can be."""

_NUMBERS = re.compile(r"CAST\(-?[0-9]{1,9} AS BIGINT\)")


def query_keys(
    tables: TableCache,
    plan: Plan,
    keys: Sequence[Value],
    on_step: Callable[[str], None],
    batch: Batch | None,
) -> Weights:
    """The weights of some records.

    Parameters
    ----------
    tables
        Where the plan's sources stand.
    plan, keys
        The plan, and the records. Without any, the query is run in each of its ways, to see that it can be.
    batch
        The plans that are evaluated together with it: those of them that add up the same rows are answered at once.
    """
    of_plan, type_ = (plan.root, plan.rewrites), plan.root.type
    result = tables.result(of_plan)
    if result is not None:
        return tables.at_keys(result, type_, keys)
    before = tables.count_query(of_plan)
    few = len(keys) <= FEW and before < QUERIES_BEFORE_STORING and plan.program().grows
    compiled = replace(plan, keyed=few).program()
    run(compiled, tables, on_step)
    output: Weights = {}
    alike = batch.alike(plan.root) if batch is not None else []
    if len(alike) > 1:
        added: dict[Hashable, RowsToSum | None] = {(each.root, each.rewrites): each.program().added for each in alike}
        output = tables.at_keys(tables.keep_sums(of_plan, added, compiled.steps[-1][0]), type_, keys)
    elif not keys:
        _try(tables, compiled.output)
        if compiled.narrowed:
            tables.release(compiled.reads)
            compiled = plan.program()
            run(compiled, tables, None)
            _try(tables, compiled.output)
    elif compiled.narrowed or (batch is not None and compiled.grows and before == 0):
        output = fetch_keys(tables.connection, f"({compiled.output})", type_, keys, compiled.narrowed)
    else:
        output = tables.at_keys(tables.keep_result(of_plan, compiled), type_, keys)
    tables.release(compiled.reads)
    return output


def _try(tables: TableCache, query: str) -> None:
    """Run a query to see that it can be, unless one was that differs from it in small whole numbers alone.

    Whether DuckDB can run it hangs on none of these, except that a list may be as long as one says: what makes lists is
    always run.
    """
    shape = query if "range(" in query or "list" in query else _NUMBERS.sub("CAST(0 AS BIGINT)", query)
    if shape not in tables.tried:
        tables.connection.execute(query, narrowing(query, {}) or None)
        if len(tables.tried) >= TRIED:
            tables.tried.clear()
        tables.tried.add(shape)
