"""Join: pairs of records with equal keys, scaled down where there are many."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from wpinq.errors import PlanError
from wpinq.expr.compile import compile_lambda
from wpinq.expr.nodes import Lambda
from wpinq.expr.types import TupleOf, Type, is_record_type, unify
from wpinq.expr.values import Value
from wpinq.plan.arithmetic import SUM_ROUNDOFFS, Arithmetic, Weight, Weights
from wpinq.plan.domain import Domain, Inference
from wpinq.plan.lattice import NoLattice
from wpinq.plan.operator import Keyed, Parameter, function_type, register


@register
@dataclass(frozen=True, slots=True)
class Join(Keyed):
    """Pair the records of two datasets whose keys are equal.

    Per key k, every pair `r(x, y)` weighs `A_k(x) · B_k(y) / (‖A_k‖ + ‖B_k‖)`; equal results add.
    (paper, section 2.7 and appendix A)

    Keys compare as records: null equals null. Without a result function the output is the pair.

    Examples
    --------
    >>> import wpinq as wp
    >>> edges = wp.source("edges", src=int, dst=int)
    >>> paths = edges.join(edges, lambda x: x.dst, lambda y: y.src, lambda x, y: (x.src, x.dst, y.dst))
    >>> wp.evaluate(paths, {"edges": {(1, 2): 1.0, (2, 3): 1.0}})
    WeightedDataset({(1, 2, 3): 0.5})
    """

    name: ClassVar[str] = "Join"
    method: ClassVar[str] = "join"
    arity: ClassVar[int] = 2
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("other", "query"),
        Parameter("left_key", "function"),
        Parameter("right_key", "function", of=(1,)),
        Parameter("result", "function", of=(0, 1), optional=True),
    )
    stability: ClassVar[str] = "‖A_k‖·‖B_k‖/(‖A_k‖+‖B_k‖) grows by at most 1 per unit of either (appendix A)"

    left_key: Lambda
    right_key: Lambda
    result: Lambda

    def output_type(self, *inputs: Type) -> Type:
        left, right = self.left_key.type, self.right_key.type
        if not _same_shape(left, right):
            raise PlanError(f"Join: the keys have types {left} and {right}; make them agree")
        if not (is_record_type(left) and is_record_type(right)):
            raise PlanError(f"Join: {left} cannot be a key")
        return function_type(self.name, self.result)

    def mass(self, *inputs: Fraction) -> Fraction:
        left, right = inputs
        return left * right / (left + right) if left + right else Fraction(0)

    def unit_records(self, inputs: tuple[int, ...], mass: Fraction) -> int:
        return inputs[0] * inputs[1]

    def roundoffs(self) -> Fraction:
        return 7 + SUM_ROUNDOFFS  # a product, a sum of norms, a quotient: 3; norms: 3, and 1 for their grid

    def nonnegative(self, *inputs: bool) -> bool:
        return all(inputs)  # two negative weights have a positive product, but not with every partner

    def lattice(self, *inputs: Fraction) -> NoLattice:
        return NoLattice(self.name, "divides by norms of the data; leave it out")

    def domain(self, inference: Inference, *inputs: Domain | None) -> Domain | None:
        return inference.of_function(self.result, inputs)

    def keys(self) -> tuple[Callable[[Value], Value], ...]:
        return compile_lambda(self.left_key), compile_lambda(self.right_key)

    def part_evaluator(self, arithmetic: Arithmetic) -> Callable[..., Iterable[tuple[Value, Weight]]]:
        result, total = compile_lambda(self.result), arithmetic.total

        def evaluate_part(key: Value, left: Weights, right: Weights) -> Iterable[tuple[Value, Weight]]:
            if not left or not right:
                return
            norm = total([*map(abs, left.values()), *map(abs, right.values())])
            for x, a in left.items():
                for y, b in right.items():
                    yield result(x, y), a * b / norm

        return evaluate_part


def _same_shape(left: Type, right: Type) -> bool:
    """Whether keys agree but for the names of their fields, which do not matter to a key."""
    if isinstance(left, TupleOf) and isinstance(right, TupleOf):
        return len(left.elements) == len(right.elements) and all(
            _same_shape(a, b) for a, b in zip(left.elements, right.elements, strict=True)
        )
    return unify(left, right) is not None
