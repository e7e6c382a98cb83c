"""The engines by name, and what a session asks of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

from wpinq.engines import reference
from wpinq.engines.relational import duckdb
from wpinq.engines.relational.spark import database as spark
from wpinq.engines.relational.spark.database import SparkDatabase
from wpinq.errors import PlanError
from wpinq.expr.values import Value
from wpinq.plan.arithmetic import Arithmetic, Weights
from wpinq.plan.node import Node


class Evaluator(Protocol):
    """An engine at work: it may keep the datasets that it is given for the plans to come."""

    def evaluate(
        self,
        root: Node,
        data: Mapping[str, Mapping[Value, Any]],
        arithmetic: Arithmetic,
        on_step: Callable[[str], None] | None,
    ) -> Weights:
        """The output of a plan on datasets by source name; `on_step` is told operator names and nothing else."""

    def open(self) -> object:
        """Get ready, so that what is wrong with the options shows."""

    def forget(self, name: str) -> None:
        """Let go of the dataset of a source."""

    def close(self) -> None:
        """Let go of all data, for good."""


@runtime_checkable
class Cluster(Evaluator, Protocol):
    """An engine at work elsewhere: data may be there already, and outputs stay there but for the keys asked for."""

    def evaluate_keys(
        self,
        root: Node,
        data: Mapping[str, Any],
        keys: Sequence[Value],
        on_step: Callable[[str], None] | None,
    ) -> Weights:
        """The weights that the output of a plan gives to some records; those of weight 0 are left out."""

    def evaluate_sides(
        self,
        root: Node,
        data: Mapping[str, Any],
        candidates: Sequence[Value],
        on_step: Callable[[str], None] | None,
    ) -> Sequence[tuple[Fraction, Fraction]]:
        """The weight of the output before and after each of some records, in canonical order, without rounding."""

    def frame(self, data: object) -> object | None:
        """Data that are there already, as a frame of the engine's; None for all other."""

    def keep(self, frame: Any, bounds: tuple[float | None, float | None]) -> Mapping[Value, float]:
        """A checked frame as a dataset, for `evaluate`; with its least and greatest weight."""


@dataclass(frozen=True, slots=True)
class Engine:
    """What evaluates plans.

    Attributes
    ----------
    name : str
        What users call it.
    evaluate : callable
        One evaluation of public data: `evaluate(root, data, arithmetic, on_step)`.
    check : callable
        Raises PlanError for a plan that the engine cannot run, from the plan alone, and says what to do.
    start : callable
        `start(memory_limit, threads)`: an Evaluator; PlanError where the options are none of this engine's.
    """

    name: str
    evaluate: Callable[..., Weights]
    check: Callable[[Node], None]
    start: Callable[[str | None, int | None], Evaluator]


class _Reference:
    """The reference as an evaluator: it keeps nothing."""

    def __init__(self, memory_limit: str | None, threads: int | None) -> None:
        if memory_limit is not None or threads is not None:
            raise PlanError('the engine "reference" has no memory_limit and no threads; engine="duckdb" has both')

    evaluate = staticmethod(reference.evaluate)

    def open(self) -> None: ...

    def forget(self, name: str) -> None: ...

    def close(self) -> None: ...


def _start_spark(memory_limit: str | None, threads: int | None) -> Evaluator:
    if memory_limit is not None or threads is not None:
        raise PlanError('the engine "spark" takes memory and threads from the Spark session, not from this one')
    return SparkDatabase()


ENGINES = {
    engine.name: engine
    for engine in (
        Engine("duckdb", duckdb.evaluate, duckdb.check, duckdb.Database),
        Engine("reference", reference.evaluate, lambda root: None, _Reference),
        Engine("spark", spark.evaluate, spark.check, _start_spark),
    )
}
"""Every engine by name."""

DEFAULT_ENGINE = "duckdb"


def find_engine(name: str) -> Engine:
    """The engine of this name, or PlanError."""
    if name not in ENGINES:
        raise PlanError(f"there is no engine {name!r}; the engines are {', '.join(ENGINES)}")
    return ENGINES[name]


def gap(root: Node, name: str) -> str:
    """Why an engine cannot run a plan, and what to do; empty where it can."""
    engine = find_engine(name)
    try:
        engine.check(root)
    except PlanError as error:
        return str(error)
    return ""
