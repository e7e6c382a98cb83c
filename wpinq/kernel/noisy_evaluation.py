"""What looks at protected data: outputs of plans with their noise. Whatever goes wrong is one constant error."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Concatenate, ParamSpec, TypeVar

from wpinq.engines.contract import Engine, WantedRanges
from wpinq.errors import EvaluationFailed, SessionError
from wpinq.expr.values import Value
from wpinq.kernel.prepare import Data, Order, Protected, bucketed, chosen, counted, listed, noisy
from wpinq.measure.measurement import Choose, NoisyChoice
from wpinq.plan.arithmetic import FLOAT, Weights
from wpinq.runtime.progress import StepDisplay
from wpinq.runtime.signals import interruptible
from wpinq.sinks.buckets import Buckets
from wpinq.sinks.count_above import Listing, Past
from wpinq.sinks.graph_counts import LadderSink
from wpinq.sinks.keys import ranges

FAILED = "the evaluation failed after the debit; the budget stays spent, and nothing of the reason can be shown"
_CHANGED = "the source was protected anew since this was paid for: release the measurement again, over the new data"

P = ParamSpec("P")
T = TypeVar("T")


class Looking:
    """Draws noisy numbers for orders that were paid for; nothing else of the data gets out.

    Parameters
    ----------
    engine : Engine
        What evaluates plans.
    protected : mapping
        What a session protects, by source: its own mapping, which changes.
    steps : StepDisplay
        What is told the steps.
    """

    def __init__(self, engine: Engine, protected: Mapping[str, Protected], steps: StepDisplay) -> None:
        self._engine, self._protected, self._steps = engine, protected, steps

    def draw(self, order: Order, keys: Sequence[Value], past: Past) -> list[float]:
        """Noisy weights of some keys, in units of the order's scale."""
        return self._guarded(self._draw, order, keys, past)

    def draw_listing(self, order: Order, listing: Listing, asked: Collection[Value], past: Past) -> dict[Value, float]:
        """The keys that a listing shows and that have no answer yet, with their noisy weights."""
        return self._guarded(self._draw_listing, order, listing, asked, past)

    def pick(self, order: Order) -> int:
        """The place of the candidate that a choice falls on."""
        return self._guarded(self._pick, order)

    def check(self, order: Order, keys: Collection[Value]) -> None:
        """Refuse, before anything is paid, a look for some keys that would not be taken; from what is public."""

    def get_ready(self, orders: Sequence[Order]) -> None:
        """Refuse what the engine cannot run at all, and have it open."""
        self._engine.admit([(order.measurement.plan, order.looks_at_once) for order in orders])
        self._engine.open()
        for order in orders:
            self._engine.dry_run(order.measurement.plan)

    def asking(self, looks: Sequence[tuple[Order, Collection[Value]]], work: Callable[[], T]) -> T:
        """What is done for an asking once it is paid, which looks at the data for these orders, at some keys each."""
        return work()

    # --- what sees protected data: called through _guarded only -------------------------------------------------------

    def _draw(self, order: Order, held: Sequence[Protected], keys: Sequence[Value], past: Past) -> list[float]:
        if isinstance(order.measurement.sink, LadderSink):  # all edges count, and no keys of theirs are asked for
            return counted(order, self._weights(order, held, None), keys)
        if isinstance(order.measurement.sink, Buckets):
            return bucketed(order, self._weights(order, held, keys), keys)
        return noisy(order, self._weights(order, held, keys), keys, past)

    def _draw_listing(
        self, order: Order, held: Sequence[Protected], listing: Listing, asked: Collection[Value], past: Past
    ) -> dict[Value, float]:
        within = ranges(listing.domain, order.measurement.key_type)
        return listed(order, self._weights(order, held, None, within), asked, past)

    def _pick(self, order: Order, held: Sequence[Protected]) -> int:
        sink, domain = order.measurement.sink, order.measurement.domain
        assert isinstance(sink, NoisyChoice)
        assert domain is not None
        if not isinstance(sink, Choose) or sink.quantile is None:
            keys = domain if isinstance(sink, Choose) else None  # where candidates are no records, all of them count
            return chosen(order, sink.scores(self._weights(order, held, keys), domain))
        # A quantile asks how much weight there is on either side of a candidate, at whatever records.
        sides = self._engine.rank_weights(order.measurement.plan, _data(held), domain, self._steps.told)
        return chosen(order, sink.scores_of_sides(sides))

    def _weights(
        self, order: Order, held: Sequence[Protected], keys: Sequence[Value] | None, within: WantedRanges = ()
    ) -> Weights:
        return self._engine.evaluate(order.measurement.plan, _data(held), FLOAT, self._steps.told, keys, within)

    def _guarded(
        self,
        function: Callable[Concatenate[Order, list[Protected], P], T],
        order: Order,
        *args: P.args,
        **kw: P.kwargs,
    ) -> T:
        """Show a function the data that an order paid for; whatever it raises becomes one constant error."""
        held = self._held(order)
        try:
            return interruptible(lambda: function(order, held, *args, **kw))
        except Exception:
            pass
        # Outside of the handler, so that neither the error nor the frames that hold data hang on to this one.
        raise EvaluationFailed(FAILED)

    def check_held(self, order: Order) -> None:
        """Refuse an order whose data are no longer those that it was paid for."""
        self._held(order)

    def _held(self, order: Order) -> list[Protected]:
        found = [self._protected.get(name) for name, _ in order.versions]
        held = [protected for protected in found if protected is not None]
        if tuple((protected.source.source, protected.version) for protected in held) != order.versions:
            raise SessionError(_CHANGED)
        return held


def _data(held: Sequence[Protected]) -> dict[str, Data]:
    return {protected.source.source: protected.weights for protected in held}
