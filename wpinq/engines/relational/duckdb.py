"""The relational engine on DuckDB: one evaluation of public data, and which plans it can run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from wpinq.engines.relational.database import FAILED, Database
from wpinq.engines.relational.program import Rewrites
from wpinq.errors import EvaluationFailed, PlanError
from wpinq.expr.values import Value
from wpinq.plan.arithmetic import FLOAT, Arithmetic
from wpinq.plan.node import Node, sources

__all__ = ["FAILED", "Database", "check", "evaluate"]

_public = Database()
"""For public data: opening DuckDB takes longer than evaluating a small plan. Keeps no data."""


@lru_cache(maxsize=1024)
def check(root: Node) -> None:
    """Refuse a plan that DuckDB cannot run, from the plan alone: its program is run on no data at all.

    Raises
    ------
    PlanError
        Saying which step, where that is known, and what to do.

    Notes
    -----
    Privacy cost: none; no data are involved.

    Examples
    --------
    >>> import wpinq as wp
    >>> light, heavy = wp.source("light", int, cap="1e-25"), wp.source("heavy", int)
    >>> check(light.join(heavy, lambda x: x % 2, lambda y: y % 2, lambda x, y: x).plan)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    wpinq.errors.PlanError: the engine "duckdb" cannot run this plan: Join: the caps of its sides differ by ...
    """
    try:
        evaluate(root, {name: {} for name in sources([root])})
        return
    except PlanError as error:
        reason = str(error)
    except (EvaluationFailed, RecursionError):
        reason = "its program is too much for the database"
    raise PlanError(f'the engine "duckdb" cannot run this plan: {reason}; or use engine="reference"')


def evaluate(
    root: Node,
    data: Mapping[str, Mapping[Value, Any]],
    arithmetic: Arithmetic = FLOAT,
    on_step: Callable[[str], None] | None = None,
    *,
    memory_limit: str | None = None,
    threads: int | None = None,
    rewrites: Rewrites | None = None,
) -> dict[Value, float]:
    """The output of a plan on datasets given by source name.

    Weights are the same to the last bit whatever the number of threads, the order of the rows and the memory, and
    within the plan's `Certificate.rounding_error` of the exact ones.

    Parameters
    ----------
    root : Node
        The plan.
    data : mapping
        For each source name, record to weight.
    arithmetic : Arithmetic
        Only `FLOAT`.
    on_step : callable, optional
        Told the name of each operator before the statements that it needs run; nothing else.
    memory_limit : str, optional
        As DuckDB has it, "2GB"; beyond it intermediate results spill to a private folder, removed at the end.
    threads : int, optional
        How many to use.
    rewrites : Rewrites, optional
        Which rewrites to make; all unless given.

    Returns
    -------
    dict
        Record to weight, in canonical order.

    Raises
    ------
    PlanError
        When exact arithmetic is asked for, a source has no data, or data weigh more than the cap of their source.
    EvaluationFailed
        When DuckDB failed; with a constant message, for its own could show data.

    Examples
    --------
    >>> import wpinq as wp
    >>> numbers = wp.source("numbers", int)
    >>> evaluate(numbers.shave(1.0).plan, {"numbers": {1: 0.75, 2: 2.0}})
    {(1, 0): 0.75, (2, 0): 1.0, (2, 1): 1.0}
    """
    if memory_limit is not None or threads is not None:
        with Database(memory_limit, threads) as database:
            return database.evaluate(root, data, arithmetic, on_step, rewrites)
    try:
        return _public.evaluate(root, data, arithmetic, on_step, rewrites)
    finally:
        for name in data:
            _public.forget(name)
