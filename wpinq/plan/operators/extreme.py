"""What Union and Intersect share: one of the two weights of each record."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

from wpinq.expr.values import Value
from wpinq.plan.arithmetic import Arithmetic, Weight
from wpinq.plan.operator import Merging, RecordKeyed


class Extreme(Merging, RecordKeyed):
    """One of the two weights of each record, absent records weighing 0."""

    __slots__ = ()
    choose: ClassVar[Callable[[Weight, Weight], Weight]]

    def record_evaluator(self, arithmetic: Arithmetic) -> Callable[..., Iterable[tuple[Value, Weight]]]:
        choose = type(self).choose
        return lambda record, left, right: ((record, choose(left, right)),)
