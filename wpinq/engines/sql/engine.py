"""What engines that run SQL have in common: the data that they hold, turns, and plans that are evaluated together."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, ClassVar, TypeVar

from wpinq.engines.contract import Engine
from wpinq.engines.relational.batch import Batch
from wpinq.errors import EvaluationFailed, PlanError
from wpinq.interrupts import interruptible
from wpinq.plan.arithmetic import FLOAT, Arithmetic
from wpinq.plan.erasure import physical_plan
from wpinq.plan.node import Node, sources
from wpinq.plan.operators.source import Source

T = TypeVar("T")


class RelationalEngine(Engine):
    """What the databases have in common: a table for each dataset that they were given, and one evaluation at a time.

    Threads take turns.
    """

    failed: ClassVar[str]
    """What is said of an evaluation that failed, whatever the reason: a database's own words could show data."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[Source, object]] = {}
        self._batches: list[Batch] = []
        self._closed = False
        self._lock = threading.RLock()

    def together(self, roots: Sequence[Node]) -> AbstractContextManager[None]:
        """What several of these plans make is made once, and kept for the others: see `batch`."""
        return self._together([*map(physical_plan, roots)]) if len(set(roots)) > 1 else nullcontext()

    @contextmanager
    def _together(self, roots: Sequence[Node]) -> Iterator[None]:
        batch = Batch(roots)
        with self._lock:
            self._batches.append(batch)
        try:
            yield
        finally:
            with self._lock:
                self._batches.remove(batch)
                self._apart()

    def _apart(self) -> None:
        """Plans that were to be evaluated together were, or will not be."""

    def _wanted(self, table: str) -> bool:
        """Whether plans are to come that read a table."""
        return any(batch.wants(table) for batch in self._batches)

    def forget(self, name: str) -> None:
        """Let go of the dataset of a source."""
        with self._lock:
            for table in [table for table, (source, _) in self._held.items() if source.source == name]:
                self._let_go(table)

    def _hold(self, table: str, source: Source, weights: Any) -> None:
        """Load a dataset, unless it is the one that the table of its source has."""
        held = self._held.get(table)
        if held is None or held[0] != source or held[1] is not weights:
            self._let_go(table)
            self._load(table, source, weights)
            self._held[table] = (source, weights)

    def _let_go(self, table: str) -> None:
        """Drop the table of a source, and all that was made of it, where there is one."""
        source, weights = self._held.pop(table, (None, None))
        if source is not None:
            self._drop(table, weights)

    @abstractmethod
    def _load(self, table: str, source: Source, weights: Any) -> None: ...

    @abstractmethod
    def _drop(self, table: str, weights: object) -> None: ...

    def _in_turn(self, attempt: Callable[[], T | None]) -> T:
        """What an evaluation gives; where it gives nothing, it failed."""
        with self._lock:
            if self._closed:
                raise PlanError("this database is closed")
            output = interruptible(attempt)
        if output is None:
            raise EvaluationFailed(self.failed)
        return output


def check_given(engine: str, root: Node, data: Mapping[str, Any], arithmetic: Arithmetic = FLOAT) -> dict[str, Source]:
    """The sources of a plan, each of which must have data; refused too is what is not computed in floats."""
    if arithmetic.name != FLOAT.name:
        raise PlanError(f'the engine "{engine}" computes in floats; for exact=True use engine="reference"')
    declared = sources([root])
    for name in declared:
        if name not in data:
            raise PlanError(f"no data for the source {name!r}")
    return declared
