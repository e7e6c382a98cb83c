"""Partition: the part of a dataset with a given public key."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar

from wpinq.errors import PlanError
from wpinq.expr.compile import compile_lambda
from wpinq.expr.nodes import Constant, Lambda
from wpinq.expr.types import Type
from wpinq.expr.values import UnfitValue, Value, normalize, presenter
from wpinq.plan.arithmetic import Arithmetic, Weight
from wpinq.plan.domain import Domain, Inference
from wpinq.plan.operator import Parameter, Parameters, register
from wpinq.plan.operators.where import Keeping


@register
@dataclass(frozen=True, slots=True)
class Partition(Keeping):
    """The records whose key equals a public constant: one part of a dataset split by a key.

    `out(x) = A(x) if key(x) == part else 0`   (PINQ, McSherry 2009, section 3.3)

    Parts of one key over one dataset are disjoint, so releases from several of them cost the maximum over the
    parts, not the sum. The method takes all public keys at once and returns a query for each.

    Examples
    --------
    >>> import wpinq as wp
    >>> people = wp.source("people", region=str, age=int)
    >>> parts = people.partition(lambda p: p.region, ["north", "south"])
    >>> wp.evaluate(parts["north"], {"people": {("north", 30): 1.0, ("south", 40): 1.0}})
    WeightedDataset({('north', 30): 1.0})
    """

    name: ClassVar[str] = "Partition"
    method: ClassVar[str] = "partition"
    parameters: ClassVar[Parameters] = (Parameter("key", "function"), Parameter("part", "constant"))
    stability: ClassVar[str] = "each record passes its weight on in one part only"

    key: Lambda
    part: Constant

    def __post_init__(self) -> None:
        # one form for each value, however it was written: the ledger identifies disjoint parts by the constant's digest
        type_ = self.key.type.with_nullable()
        try:
            part = Constant(type_, normalize(presenter(self.part.type)(self.part.value), type_))
        except UnfitValue as reason:
            raise PlanError(f"Partition: the key is of type {self.key.type}, and the part's key is {reason}") from None
        object.__setattr__(self, "part", part)

    def output_type(self, *inputs: Type) -> Type:
        return inputs[0]

    def domain(self, inference: Inference, *inputs: Domain | None) -> Domain | None:
        return (self.part.value,) if self.key.body == self.key.parameters[0] else inputs[0]

    def images(self, arithmetic: Arithmetic) -> Callable[[Value], Iterable[tuple[Value, Weight]]]:
        key, part = compile_lambda(self.key), self.part.value
        return lambda record: ((record, 1),) if key(record) == part else ()
