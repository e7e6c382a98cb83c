"""Evaluation of plans over protected data, with noise; any failure is one constant error."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import TypeVar

from wpinq.engines.contract import Engine, RankWeights, WantedRanges
from wpinq.errors import EvaluationFailed, SessionError
from wpinq.expr.values import Value
from wpinq.kernel.prepare import Data, PreparedMeasurement, Protected
from wpinq.plan.arithmetic import FLOAT, Weights
from wpinq.plan.node import Node
from wpinq.runtime.arrays import Integers
from wpinq.runtime.progress import OnStep, StepDisplay
from wpinq.runtime.signals import interruptible
from wpinq.sinks.count_above import Listing, Past, draw_above, draw_keys

FAILED = "the evaluation failed after the debit; the budget stays spent, and the reason is not disclosed"
_CHANGED = "the source was protected again after this debit: release the measurement again on the new data"

T = TypeVar("T")


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class ProtectedOutput:
    """The output of a plan over protected data, for the mechanism of a sink alone."""

    engine: Engine
    plan: Node
    data: Mapping[str, Data]
    on_step: OnStep | None

    def weights(self, keys: Sequence[Value] | None = None, within: WantedRanges = ()) -> Weights:
        """The weights of some records, or of all."""
        return self.engine.evaluate(self.plan, self.data, FLOAT, self.on_step, keys, within)

    def integer_rows(self) -> Integers | None:
        """The records that weigh more than 1/2 as rows of integers; None where the engine has none."""
        return self.engine.integer_rows(self.plan, self.data, self.on_step)

    def rank_weights(self, candidates: Sequence[Value]) -> RankWeights:
        """The weight before, at and after each candidate, at whatever records."""
        return self.engine.rank_weights(self.plan, self.data, candidates, self.on_step)


class NoisyEvaluator:
    """Draws noisy numbers for measurements that were paid for, and reveals nothing else.

    Parameters
    ----------
    engine : Engine
        Which evaluates plans.
    protected : mapping
        The protected sources of a session: its own mapping, which changes.
    steps : StepDisplay
        The display of the steps.
    """

    def __init__(self, engine: Engine, protected: Mapping[str, Protected], steps: StepDisplay) -> None:
        self._engine, self._protected, self._steps = engine, protected, steps

    def draw(self, prepared: PreparedMeasurement, keys: Sequence[Value], past: Past) -> Sequence[float]:
        """Noisy numbers for some keys, in units of the scale."""
        sink, scales = prepared.measurement.sink, prepared.scales
        if past:
            return self._guarded(prepared, keys, lambda out: draw_keys(sink, out, keys, past, scales[0], os.urandom))
        return self._guarded(prepared, keys, lambda out: sink.draw(out, keys, scales, os.urandom))

    def draw_above(
        self, prepared: PreparedMeasurement, listing: Listing, asked: Collection[Value], past: Past
    ) -> dict[Value, float]:
        """The keys that a listing shows and that have no answer yet, with their noisy weights."""
        sink, type_ = prepared.measurement.sink, prepared.measurement.key_type

        def drawn(output: ProtectedOutput) -> dict[Value, float]:
            return draw_above(sink, listing, type_, output, asked, past, prepared.scale, os.urandom)

        return self._guarded(prepared, prepared.keys_at_once, drawn)

    def check(self, prepared: PreparedMeasurement, keys: Collection[Value]) -> None:
        """Refuse, before any debit and from public facts, an inadmissible evaluation at some keys."""

    def get_ready(self, prepared: Sequence[PreparedMeasurement]) -> None:
        """Refuse what the engine cannot run at all, and have it open."""
        self._engine.admit([(each.measurement.plan, each.evaluates_at_once) for each in prepared])
        self._engine.open()
        for each in prepared:
            self._engine.dry_run(each.measurement.plan)

    def asking(self, evaluated: Sequence[tuple[PreparedMeasurement, Collection[Value]]], work: Callable[[], T]) -> T:
        """Run the paid work of a release, which evaluates these measurements at some keys each."""
        try:
            return work()
        finally:
            self._steps.done()

    def batch(self, plans: Sequence[Node]) -> AbstractContextManager[None]:
        """While it is open, these plans are evaluated, each once: see `Engine.batch`."""
        return self._engine.batch(plans)

    def _guarded(
        self, prepared: PreparedMeasurement, keys: Collection[Value], draw: Callable[[ProtectedOutput], T]
    ) -> T:
        """Give a mechanism the output that was paid for, with one constant error for any failure."""
        held = self.held(prepared)

        def drawn() -> T:
            with suppress(Exception):
                return draw(self._output(prepared, held))
            # Outside of the handler, so that this error references neither the other nor frames with data.
            raise EvaluationFailed(FAILED)

        return interruptible(drawn)  # around it: what a handler of a signal raises is no failure

    def _output(self, prepared: PreparedMeasurement, held: Sequence[Protected]) -> ProtectedOutput:
        data = {protected.source.source: protected.weights for protected in held}
        return ProtectedOutput(self._engine, prepared.measurement.plan, data, self._steps.callback)

    def held(self, prepared: PreparedMeasurement) -> list[Protected]:
        """The data of a measurement; refused where they are no longer those that it was paid for."""
        held = [self._protected[name] for name, _ in prepared.versions if name in self._protected]
        if tuple((protected.source.source, protected.version) for protected in held) != prepared.versions:
            raise SessionError(_CHANGED)
        return held
