"""What Union and Intersect share: one of the two weights of each record."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import ClassVar

from wpinq.expr.types import Type
from wpinq.expr.values import Value
from wpinq.plan.arithmetic import SUM_ROUNDOFFS, Arithmetic, Weight
from wpinq.plan.lattice import common_divisor
from wpinq.plan.operator import RecordKeyed, common_type


class Extreme(RecordKeyed):
    """One of the two weights of each record, absent records weighing 0."""

    __slots__ = ()
    arity = 2
    choose: ClassVar[Callable[[Weight, Weight], Weight]]

    def output_type(self, *inputs: Type) -> Type:
        return common_type(self.name, *inputs)

    def mass(self, *inputs: Fraction) -> Fraction:
        return sum(inputs, Fraction(0))

    def roundoffs(self) -> Fraction:
        return SUM_ROUNDOFFS  # it is one of two weights, but an engine may put it together from parts

    def lattice(self, *inputs: Fraction) -> Fraction:
        return common_divisor(*inputs)

    def record_evaluator(self, arithmetic: Arithmetic) -> Callable[..., Iterable[tuple[Value, Weight]]]:
        choose = type(self).choose
        return lambda record, left, right: ((record, choose(left, right)),)
