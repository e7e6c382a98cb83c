"""Evaluation of queries on public data: for learning, testing and experiments. Nothing here protects anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any

from wpinq.engines import reference
from wpinq.errors import PlanError
from wpinq.expr.types import Type
from wpinq.expr.values import UnfitValue, Value, normalize
from wpinq.plan.arithmetic import EXACT, FLOAT, Weights
from wpinq.plan.node import sources
from wpinq.query import Query
from wpinq.weighted import WeightedDataset

Engine = Callable[..., Weights]
ENGINES: dict[str, Engine] = {"reference": reference.evaluate}
"""Every engine by name."""

DEFAULT_ENGINE = "reference"


def find_engine(name: str) -> Engine:
    """The engine of this name, or PlanError."""
    if name not in ENGINES:
        raise PlanError(f"there is no engine {name!r}; the engines are {', '.join(ENGINES)}")
    return ENGINES[name]


def evaluate(
    query: Query, data: Mapping[str, Any], engine: str = DEFAULT_ENGINE, *, exact: bool = False
) -> WeightedDataset:
    """The output of a query on PUBLIC data, without noise.

    Parameters
    ----------
    query : Query
        What to evaluate.
    data : mapping
        For each source name, a mapping from record to weight, or an iterable of records of weight 1 each.
    engine : str
        "reference".
    exact : bool
        Whether to compute in rationals; weights are then Fractions.

    Returns
    -------
    WeightedDataset
        Record to weight.

    Raises
    ------
    PlanError
        When a source has no data, or a record is not of its type.

    Notes
    -----
    Privacy cost: not applicable. The output is not private at all; protected data belong in a `Session`.

    Examples
    --------
    >>> import wpinq as wp
    >>> edges = wp.source("edges", src=int, dst=int)
    >>> wp.evaluate(edges.select(lambda e: e.src), {"edges": [(1, 2), (1, 3)]})
    WeightedDataset({1: 2.0})
    """
    run = find_engine(engine)
    arithmetic = EXACT if exact else FLOAT
    datasets = {}
    for name, declaration in sources([query.plan]).items():
        if name not in data:
            raise PlanError(f"no data for the source {name!r}")
        datasets[name] = _read(data[name], declaration.record, name)
    return WeightedDataset(run(query.plan, datasets, arithmetic))


def _read(given: Mapping[object, Any] | Iterable[object], type_: Type, name: str) -> dict[Value, Fraction]:
    items = given.items() if isinstance(given, Mapping) else ((record, 1) for record in given)
    weights: dict[Value, Fraction] = {}
    for record, weight in items:
        try:
            key = normalize(record, type_)
        except UnfitValue as reason:
            raise PlanError(f"source {name!r}: the record {record!r} is {reason}") from None
        weights[key] = weights.get(key, Fraction(0)) + Fraction(weight)
    return weights
