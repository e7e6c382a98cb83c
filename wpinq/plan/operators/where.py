"""Where: the records that satisfy a predicate."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from wpinq.errors import PlanError
from wpinq.expr.compile import compile_lambda
from wpinq.expr.nodes import Lambda
from wpinq.expr.types import BOOL, Type
from wpinq.expr.values import Value
from wpinq.plan.arithmetic import Arithmetic, Weight
from wpinq.plan.domain import Counted, Domain, Inference
from wpinq.plan.operator import InputChange, Parameter, Parameters, register
from wpinq.plan.operators.families import Passing
from wpinq.plan.sensitivity.change import Change
from wpinq.plan.sensitivity.weights import WeightBound


class Keeping(Passing):
    """Operators that keep some of the records, with their weights."""

    def rounding_units(self) -> Fraction:
        return Fraction(0)  # a weight stays or goes

    def counted(self, *inputs: Counted) -> Counted:
        return inputs[0]

    def change(self, *inputs: InputChange) -> Change:
        return inputs[0].change  # a null predicate or key drops the record


@register
@dataclass(frozen=True, slots=True)
class Where(Keeping):
    """Keep the records that satisfy a predicate, with their weights.

    A null predicate drops the record.

    `out(x) = A(x) if p(x) else 0`   (paper, section 2.4)

    Examples
    --------
    >>> import wpinq as wp
    >>> numbers = wp.source("numbers", int, weights=True)
    >>> wp.evaluate(numbers.where(lambda x: x * x < 5), {"numbers": {1: 0.75, 2: 2.0, 3: 1.0}})
    WeightedDataset({1: 0.75, 2: 2.0})
    """

    name: ClassVar[str] = "Where"
    method: ClassVar[str] = "where"
    parameters: ClassVar[Parameters] = (Parameter("predicate", "function"),)
    stability: ClassVar[str] = "each record passes on its weight or nothing"

    predicate: Lambda

    def output_type(self, *inputs: Type) -> Type:
        if self.predicate.type != BOOL:
            raise PlanError(f"Where: the predicate gives {self.predicate.type}, not bool: compare it, as in r.age > 0")
        return inputs[0]

    def domain(self, inference: Inference, *inputs: Domain | None) -> Domain | None:
        return inputs[0]

    def weight_bound(self, *inputs: WeightBound) -> WeightBound:
        return inputs[0]

    def images(self, arithmetic: Arithmetic) -> Callable[[Value], Iterable[tuple[Value, Weight]]]:
        predicate = compile_lambda(self.predicate)
        return lambda record: ((record, 1),) if predicate(record) else ()
