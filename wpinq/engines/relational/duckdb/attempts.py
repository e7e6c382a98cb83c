"""One evaluation of a plan, which may be attempted twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from wpinq.engines.contract import WantedRanges
from wpinq.engines.relational.batch import Batch
from wpinq.engines.relational.programs import Plan
from wpinq.expr.values import Value
from wpinq.plan.operators.source import Source


@dataclass(slots=True)
class Work:
    """A plan with its data and its company, what is asked of it, and how many of its steps were announced."""

    plan: Plan
    batch: Batch | None
    declared: Mapping[str, Source]
    data: Mapping[str, Any]
    on_step: Callable[[str], None] | None
    keys: Sequence[Value] | None
    within: WantedRanges
    announced: int = 0

    def announcer(self) -> Callable[[str], None]:
        """What to announce the steps to: each is announced once, also when the work is done again."""
        numbers = count(1)

        def announce(step: str) -> None:
            number = next(numbers)
            if number > self.announced:
                self.announced = number
                if self.on_step is not None:
                    self.on_step(step)

        return announce
