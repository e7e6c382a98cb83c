"""Except: the difference of the weights of each record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from wpinq.plan.domain import Counted
from wpinq.plan.operator import register
from wpinq.plan.operators.families import Combination


@register
@dataclass(frozen=True, slots=True)
class Except(Combination):
    """The difference of the weights of each record.

    `out(x) = A(x) - B(x)`   (paper, section 2.6)

    Weights may become negative. `except` is a Python keyword, so the method is called `difference`.

    Examples
    --------
    >>> import wpinq as wp
    >>> a, b = (wp.source(name, int, weights=True) for name in "ab")
    >>> wp.evaluate(a.difference(b), {"a": {1: 0.75, 2: 2.0}, "b": {1: 3.0}})
    WeightedDataset({1: -2.25, 2: 2.0})
    """

    name: ClassVar[str] = "Except"
    method: ClassVar[str] = "difference"
    stability: ClassVar[str] = "the triangle inequality"
    coefficients: ClassVar[tuple[int, int]] = (1, -1)

    def counted_together(self, left: Counted, right: Counted) -> Counted:
        return Counted(left.factor, f"{left.of} minus {right.of}")
