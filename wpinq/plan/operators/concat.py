"""Concat: the sum of the weights of each record."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import ClassVar

from wpinq.plan.domain import Counted
from wpinq.plan.operator import InputChange, register
from wpinq.plan.operators.families import Combination
from wpinq.plan.sensitivity.weights import KnownProportions, WeightBound, of_both, summed


@register
@dataclass(frozen=True, slots=True)
class Concat(Combination):
    """The sum of the weights of each record.

    `out(x) = A(x) + B(x)`   (paper, section 2.6)

    It is SQL's UNION ALL.

    Examples
    --------
    >>> import wpinq as wp
    >>> a, b = (wp.source(name, int, weights=True) for name in "ab")
    >>> wp.evaluate(a.concat(b), {"a": {1: 0.75, 2: 2.0}, "b": {1: 3.0}})
    WeightedDataset({1: 3.75, 2: 2.0})
    """

    name: ClassVar[str] = "Concat"
    method: ClassVar[str] = "concat"
    stability: ClassVar[str] = "the triangle inequality"
    coefficients: ClassVar[tuple[int, int]] = (1, 1)

    def counted_together(self, left: Counted, right: Counted) -> Counted:
        of = f"{left.of}, summed over two inputs" if left.of == right.of else f"{left.of} and {right.of}"
        return Counted(left.factor, of)

    def proportions(self, *inputs: InputChange) -> KnownProportions:
        left, right = inputs
        return summed(product(left.proportions, right.proportions))

    def weight_bound(self, *inputs: WeightBound) -> WeightBound:
        left, right = inputs
        a_key = of_both(left.a_key, right.a_key)
        if left.largest is None or right.largest is None:
            return WeightBound(None, a_key)
        # of a simple source and its own reverse no record is in both
        apart = left.oriented and right.oriented and left.oriented == (right.oriented[0], not right.oriented[1])
        return WeightBound(max(left.largest, right.largest) if apart else left.largest + right.largest, a_key)
