"""The contract of engines: all that sessions, public evaluation and explanations use of one.

An engine is a class with an entry in `ENGINES`, imported when it is first used. The class refuses plans; an instance
keeps the datasets that it was given and evaluates plans on them. Where data, outputs and work are is its own affair.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from importlib import import_module
from itertools import accumulate
from operator import itemgetter
from typing import Any, ClassVar, Self, TypeVar

from wpinq.columns.storage import opened
from wpinq.errors import PlanError
from wpinq.expr.values import Value, order_key
from wpinq.plan.arithmetic import FLOAT, Arithmetic, Weights
from wpinq.plan.node import Node
from wpinq.runtime.arrays import Integers

#: The weight before, at and after each of some records, in canonical order, without rounding; below 0 counts as 0.
RankWeights = Sequence[tuple[int | Fraction, int | Fraction, int | Fraction]]

#: For each column of a record (`columns.records`) the least and the greatest value that is wanted, or None for all.
WantedRanges = Sequence[tuple[Value, Value] | None]

D = TypeVar("D")
#: What is told the name of each operator before it runs.
OnStep = Callable[[str], None] | None


class Engine(ABC):
    """An engine at work: it may keep the datasets that it is given for the plans to come.

    Parameters
    ----------
    memory_limit, threads
        PlanError if the engine does not have these options.

    Attributes
    ----------
    name : str
        What users call it.
    """

    name: ClassVar[str]

    @abstractmethod
    def __init__(self, memory_limit: str | None = None, threads: int | None = None) -> None: ...

    @staticmethod
    @abstractmethod
    def check(root: Node) -> None:
        """Raise PlanError, from the plan alone, for a plan that the engine cannot run.

        The message says how to change the plan.
        """

    @classmethod
    def evaluate_public(cls, root: Node, data: Mapping[str, Any], arithmetic: Arithmetic = FLOAT) -> Weights:
        """The output of a plan on public data, which are not kept."""
        with cls() as engine:
            return engine.evaluate(root, data, arithmetic)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @staticmethod
    def rest() -> None:
        """End all threads that engines of this kind have in the process, until they are used again."""
        return  # most have none

    def accept(self, exposures: Sequence[str]) -> None:
        """Take protected data although they are shown by ways outside of the engine, by name.

        Raises
        ------
        PlanError
            If the engine has no such ways, or none by this name.
        """
        if exposures:
            raise PlanError(f'the engine "{self.name}" shows no data to accept: accept is for engine="spark"')

    def open(self) -> object:
        """Prepare before the first evaluation, so that faults of the options show."""
        return None

    def admit(self, plans: Sequence[tuple[Node, bool]]) -> None:
        """Raise PlanError for plans that cannot be run, whatever the data are.

        Some of the plans are run together.

        Parameters
        ----------
        plans : sequence of tuple
            Each with whether it is evaluated together with the others that say so.
        """
        for root, _ in plans:
            self.check(root)

    def dry_run(self, root: Node) -> None:
        """Raise PlanError for a plan that fails on no data at all, where `check` cannot tell."""
        return

    def batch(self, roots: Sequence[Node]) -> contextlib.AbstractContextManager[None]:
        """While it is open, these plans are evaluated, each once, in any order.

        Common parts may be made once and kept for the others. No weight depends on it, not in its last bit: the output
        of a plan is a function of the plan and the data, whatever it is evaluated with.
        """
        return contextlib.nullcontext()

    @abstractmethod
    def evaluate(
        self,
        root: Node,
        data: Mapping[str, Any],
        arithmetic: Arithmetic = FLOAT,
        on_step: OnStep = None,
        keys: Sequence[Value] | None = None,
        within: WantedRanges = (),
    ) -> Weights:
        """The output of a plan.

        Parameters
        ----------
        root : Node
            The plan.
        data : mapping
            For each source name, record to weight, or what `keep` gave.
        arithmetic : Arithmetic
            Of the weights.
        on_step : callable, optional
            Told operator names and nothing else.
        keys : sequence, optional
            Records: only what these weigh is given up, each weight the same as in the whole output. An engine that is
            asked for keys of one plan again and again is quick from the second time on.
        within : WantedRanges, optional
            Where no keys are given: records outside of these ranges are not wanted, and an engine need not give them
            up. Of the others the weights are the same as in the whole output.
        """

    def integer_rows(self, root: Node, data: Mapping[str, Any], on_step: OnStep = None) -> Integers | None:
        """The records of an output that weigh more than 1/2, as rows of integers.

        None where a field of theirs is no integer or can be null, and by default.
        """
        return None

    def rank_weights(
        self, root: Node, data: Mapping[str, Any], candidates: Sequence[Value], on_step: OnStep = None
    ) -> RankWeights:
        """The weight of the output before, at and after some records, for a quantile."""
        return rank_weights_of(self.evaluate(root, data, FLOAT, on_step), candidates)

    @contextlib.contextmanager
    def connection(self) -> Iterator[Any]:
        """A connection to a DuckDB in which data can be checked, for a while."""
        with opened() as connection:
            yield connection

    def attach(self, data: object) -> object:
        """Attach offered data that the engine itself stores; other data are returned as they are.

        Attached data are an unchecked `EngineDataset`.
        """
        return data

    def keep(self, checked: D) -> D | dict[Value, float]:
        """Keep a checked dataset for `evaluate`, until nothing refers to it any more."""
        return checked

    @abstractmethod
    def forget(self, name: str) -> None:
        """Let go of the dataset of a source, and of what was made of it."""

    @abstractmethod
    def close(self) -> None:
        """Let go of all data, for good."""


#: Every engine by name: the module and the class.
ENGINES = {
    "duckdb": "wpinq.engines.sql.duckdb.database:Database",
    "reference": "wpinq.engines.reference:Reference",
    "spark": "wpinq.engines.sql.spark.cluster:SparkDatabase",
}

#: By name of an engine, one of the same weights whose rows are those of the plan's steps, as its bounds have them.
UNOPTIMISED = {"duckdb": "wpinq.engines.sql.duckdb.database:UnoptimisedDatabase"}

DEFAULT_ENGINE = "duckdb"


def find_engine(name: str) -> type[Engine]:
    """The engine of this name, or PlanError."""
    if name not in ENGINES:
        raise PlanError(f"there is no engine {name!r}; the engines are {', '.join(ENGINES)}")
    return _imported(ENGINES[name])


def find_unoptimised(name: str) -> type[Engine] | None:
    """The engine of the same weights that takes a plan's steps one by one; None without one."""
    return _imported(UNOPTIMISED[name]) if name in UNOPTIMISED else None


def _imported(place: str) -> type[Engine]:
    module, _, class_ = place.partition(":")
    found: type[Engine] = getattr(import_module(module), class_)
    return found


def at_keys(weights: Weights, keys: Sequence[Value]) -> Weights:
    """The weights of given records, in their order, without those that weigh nothing."""
    return {key: weights[key] for key in keys if key in weights}


def rank_weights_of(weights: Mapping[Value, Any], candidates: Sequence[Value]) -> RankWeights:
    """The weight before, at and after each candidate, of records that weigh more than 0.

    Null is no record here. Whole numbers stay integers, which are added much faster.
    """
    held = [(record, weight) for record, weight in weights.items() if record is not None and weight > 0]
    wanted, exact = list(candidates), int if all(weight % 1 == 0 for _, weight in held) else Fraction
    if {tuple, type(None)} & {*map(type, wanted), *(type(record) for record, _ in held)}:  # in an order of their own
        held, wanted = [(order_key(record), weight) for record, weight in held], list(map(order_key, wanted))
    held.sort(key=itemgetter(0))
    places = [place for place, _ in held]
    sums = list(accumulate((exact(weight) for _, weight in held), initial=exact(0)))
    ends = [(sums[bisect_left(places, key)], sums[bisect_right(places, key)]) for key in wanted]
    return [(before, upto - before, sums[-1] - upto) for before, upto in ends]
