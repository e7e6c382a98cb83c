"""Union: the larger weight of each record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from wpinq.plan.arithmetic import Weight
from wpinq.plan.operator import register
from wpinq.plan.operators.families import Extreme
from wpinq.plan.sensitivity.weights import WeightBound, of_both


@register
@dataclass(frozen=True, slots=True)
class Union(Extreme):
    """The larger weight of each record.

    `out(x) = max(A(x), B(x))`   (paper, section 2.6)

    It is not the union of pandas or SQL: for the sum of weights use Concat.

    Examples
    --------
    >>> import wpinq as wp
    >>> a, b = (wp.source(name, int, weights=True) for name in "ab")
    >>> wp.evaluate(a.union(b), {"a": {1: 0.75, 2: 2.0}, "b": {1: 3.0}})
    WeightedDataset({1: 3.0, 2: 2.0})
    """

    name: ClassVar[str] = "Union"
    method: ClassVar[str] = "union"
    stability: ClassVar[str] = "a maximum moves no more than its arguments do"
    which: ClassVar[str] = "the larger number at each record"
    choose: ClassVar[Callable[[Weight, Weight], Weight]] = max

    def rounding_units(self) -> Fraction:
        return Fraction(0)  # a maximum is one of its arguments, and no engine puts it together otherwise

    def weight_bound(self, *inputs: WeightBound) -> WeightBound:
        left, right = inputs
        a_key = of_both(left.a_key, right.a_key)
        if left.largest is None or right.largest is None:
            return WeightBound(None, a_key)
        oriented = left.oriented if left.oriented == right.oriented else None
        return WeightBound(max(left.largest, right.largest), a_key, oriented)

    def nonnegative(self, *inputs: bool) -> bool:
        return any(inputs)  # max(a, b) >= 0 needs one of them at least 0 for every record, absent ones weighing 0
