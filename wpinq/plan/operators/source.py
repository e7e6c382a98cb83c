"""Source: the protected dataset, by name."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from wpinq.errors import PlanError
from wpinq.expr.types import Type
from wpinq.plan.arithmetic import Arithmetic, Weights
from wpinq.plan.domain import Domain, Inference, of_type
from wpinq.plan.lattice import NoLattice
from wpinq.plan.operator import Operator


@dataclass(frozen=True, slots=True)
class Source(Operator):
    """A protected dataset: a name, a record type and the promise made about its neighbours. Holds no data.

    Attributes
    ----------
    schema : str
        The record type with its nullability, as text: part of the source's identity.
    unit : str
        What one protected unit is, in words.
    unit_weight : Fraction
        The total weight by which one protected unit can change the source.
    cap : Fraction
        A public bound on the norm of the source, from which the rounding slack is computed.
    facts : tuple of str
        What every dataset offered for this source must satisfy; it narrows the neighbours that are covered.
    """

    name: ClassVar[str] = "Source"
    method: ClassVar[str] = "source"
    arity: ClassVar[int] = 0
    stability: ClassVar[str] = "it is the input"

    source: str
    record: Type
    schema: str
    unit: str
    unit_weight: Fraction
    cap: Fraction
    facts: tuple[str, ...]

    def __post_init__(self) -> None:
        for what, text in (("name", self.source), ("unit", self.unit)):
            # Bills print them: a line end or an escape character could forge what a curator reads there.
            if not isinstance(text, str) or not text.isprintable():
                raise PlanError(f"the {what} of a source must be printable text on one line")

    def output_type(self, *inputs: Type) -> Type:
        return self.record

    def mass(self, *inputs: Fraction) -> Fraction:
        return self.cap

    def roundoffs(self) -> Fraction:
        return Fraction(0)  # it is what was given

    def nonnegative(self, *inputs: bool) -> bool:
        return not {"nonnegative", "unit_weights"}.isdisjoint(self.facts)

    def lattice(self, *inputs: Fraction) -> Fraction | NoLattice:
        if "unit_weights" in self.facts:
            return Fraction(1)
        return NoLattice(f"Source({self.source})", 'may hold any weights; declare facts=["unit_weights"]')

    def domain(self, inference: Inference, *inputs: Domain | None) -> Domain | None:
        return of_type(self.record)

    def evaluate(self, inputs: tuple[Weights, ...], arithmetic: Arithmetic) -> Weights:
        raise PlanError(f"the source {self.source!r} has no data here")
