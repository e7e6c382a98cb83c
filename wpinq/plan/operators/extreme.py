"""What Union and Intersect share: one of the two weights of each record."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

from wpinq.expr.values import Value
from wpinq.plan.arithmetic import Arithmetic, Weight
from wpinq.plan.count_units import Counted, NoCount, both
from wpinq.plan.operator import InputChange, Merging, RecordKeyed
from wpinq.plan.sensitivity.change import Change, ChangeBounds, added

ONE_SIDE = "both sides at one record: the larger"


class Extreme(Merging, RecordKeyed):
    """One of the two weights of each record, absent records weighing 0."""

    __slots__ = ()
    choose: ClassVar[Callable[[Weight, Weight], Weight]]
    which: ClassVar[str]
    """Which of two counts it gives, in words."""

    def counted(self, *inputs: Counted) -> Counted | NoCount:
        left, right = inputs
        of = left.of if left.of == right.of else f"{left.of} or of {right.of}"
        return both(self.name, left, right, f"{of}, {self.which}", even=left.even and right.even)

    def change(self, *inputs: InputChange) -> Change:
        # Monotone in both sides, whatever the signs. One record known to both moves as the side that moves it further.
        left, right = (moved.change for moved in inputs)
        shared = {term for term in left.atoms if term.known and term in right.atoms}
        atoms = [(term, move) for side in (left, right) for term, move in side.atoms.items() if term not in shared]
        for term in shared:
            one, other = left.atoms[term], right.atoms[term]
            gain, loss = max(one.increase, other.increase), max(one.decrease, other.decrease)
            atoms.append((term, ChangeBounds.of(gain, loss, max(gain, loss))))
        return added(atoms, left.rules | right.rules | ({ONE_SIDE} if shared else set()))

    def record_evaluator(self, arithmetic: Arithmetic) -> Callable[..., Iterable[tuple[Value, Weight]]]:
        choose = type(self).choose
        return lambda record, left, right: ((record, choose(left, right)),)
