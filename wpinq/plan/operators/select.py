"""Select: a function of every record."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

from wpinq.expr.compile import compile_lambda
from wpinq.expr.nodes import Lambda
from wpinq.expr.types import Type
from wpinq.expr.values import Value
from wpinq.plan.arithmetic import Arithmetic, Weight
from wpinq.plan.domain import Counted, Domain, Inference, RowBounds, Sized
from wpinq.plan.operator import InputChange, Parameter, Parameters, function_type, register
from wpinq.plan.operators.families import Passing
from wpinq.plan.sensitivity.change import Change, Term, any_record, applied, record
from wpinq.plan.sensitivity.weights import KnownProportions, WeightBound, followed, injective


@register
@dataclass(frozen=True, slots=True)
class Select(Passing):
    """Apply a function to each record; records with equal results add their weights.

    `out(x) = Σ_{y: f(y) = x} A(y)`   (paper, section 2.4)

    Examples
    --------
    >>> import wpinq as wp
    >>> numbers = wp.source("numbers", int, weights=True)
    >>> wp.evaluate(numbers.select(lambda x: x % 2), {"numbers": {1: 0.75, 2: 2.0, 3: 1.0}})
    WeightedDataset({0: 2.0, 1: 1.75})
    """

    name: ClassVar[str] = "Select"
    method: ClassVar[str] = "select"
    parameters: ClassVar[Parameters] = (Parameter("function", "function"),)
    stability: ClassVar[str] = "each record passes its weight on to one record"

    function: Lambda

    def output_type(self, *inputs: Type) -> Type:
        return function_type(self.name, self.function)

    def domain(self, inference: Inference, *inputs: Domain | None) -> Domain | None:
        return inference.of_function(self.function, inputs)

    def counted(self, *inputs: Counted) -> Counted:
        (things,) = inputs
        return replace(things, even=things.even and injective(*self._traced()))

    @property
    def reverses(self) -> bool:
        """Whether it puts the fields of every record in reverse, and does no more."""
        before, after = self._traced()
        return len(before.fields) > 1 and after == record(before.fields[::-1])

    def change(self, *inputs: InputChange) -> Change:
        return inputs[0].change.mapped(lambda term: applied(self.function, [term]))

    def proportions(self, *inputs: InputChange) -> KnownProportions:
        return tuple(below.mapped(lambda term: applied(self.function, [term])) for below in inputs[0].proportions)

    def weight_bound(self, *inputs: WeightBound) -> WeightBound:
        (below,) = inputs
        before, after = self._traced()
        largest = below.largest if injective(before, after) else None  # else records merge, and weights add up
        oriented = below.oriented
        if oriented is not None and after != before:
            oriented = (oriented[0], not oriented[1]) if self.reverses else None
        return WeightBound(largest, followed(below.a_key, before, after), oriented)

    def rows(self, *inputs: Sized) -> RowBounds:
        below = inputs[0].rows
        return RowBounds(below.records, followed(below.a_key, *self._traced()), below.records)

    def _traced(self) -> tuple[Term, Term]:
        """A record with all of its fields distinct, and its image."""
        before = any_record("field", self.function.core.parameters[0].type)
        return before, applied(self.function, [before])

    def images(self, arithmetic: Arithmetic) -> Callable[[Value], Iterable[tuple[Value, Weight]]]:
        function = compile_lambda(self.function)
        return lambda record: ((function(record), 1),)
