"""Intersect: the smaller weight of each record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from wpinq.plan.arithmetic import Weight
from wpinq.plan.domain import Domain, Inference, RowBounds, Sized, both, kept
from wpinq.plan.operator import PartsRead, register
from wpinq.plan.operators.families import Extreme
from wpinq.plan.sensitivity.weights import WeightBound, least, of_either


@register
@dataclass(frozen=True, slots=True)
class Intersect(Extreme):
    """The smaller weight of each record.

    `out(x) = min(A(x), B(x))`   (paper, section 2.6)

    A record absent from one side weighs 0 there, also against a negative weight.

    Examples
    --------
    >>> import wpinq as wp
    >>> a, b = (wp.source(name, int, weights=True) for name in "ab")
    >>> wp.evaluate(a.intersect(b), {"a": {1: 0.75, 2: 2.0}, "b": {1: 3.0}})
    WeightedDataset({1: 0.75})
    """

    name: ClassVar[str] = "Intersect"
    method: ClassVar[str] = "intersect"
    stability: ClassVar[str] = "a minimum moves no more than its arguments do"
    which: ClassVar[str] = "the smaller number at each record"
    choose: ClassVar[Callable[[Weight, Weight], Weight]] = min

    def weight_bound(self, *inputs: WeightBound) -> WeightBound:
        left, right = inputs  # the output is no more than either
        a_key = of_either(left.a_key, right.a_key)
        return WeightBound(least([left.largest, right.largest]), a_key, left.oriented or right.oriented)

    def rows(self, *inputs: Sized) -> RowBounds:
        left, right = (below.rows for below in inputs)
        if not all(below.nonnegative for below in inputs):
            return Extreme.rows(self, *inputs)  # a negative weight is also less than that of an absent record
        a_key = kept(of_either(left.a_key, right.a_key))
        return RowBounds(least([left.records, right.records]), a_key, both(left.records, right.records))

    def dominating_partitions(self, *inputs: PartsRead) -> frozenset[bytes]:
        left, right = inputs  # |min(a, b)| <= |a| where b >= 0
        one, other = (side.dominating if peer.nonnegative else frozenset() for side, peer in (inputs, inputs[::-1]))
        return (left.dominating & right.dominating) | one | other

    def nonnegative(self, *inputs: bool) -> bool:
        return all(inputs)

    def domain(self, inference: Inference, *inputs: Domain | None) -> Domain | None:
        finite = [domain for domain in inputs if domain is not None]
        return min(finite, key=len) if finite else None
