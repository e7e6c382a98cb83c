"""The base class of operators, and their registry.

An operator is engine-free: a frozen dataclass with its name, its record type, its exact meaning, and
the properties of its output: stability, norm bound, rounding, sign, lattice, public domain. A property that a family
cannot know of its operators is refused, or taken for the worst, until an operator gives it. Engines own their rules.
Everything that must know all operators (the text language, the fluent methods, the documentation, the engines'
coverage tests) reads the registry.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar, Literal

from wpinq.errors import PlanError
from wpinq.expr.nodes import Expr, Lambda, digest_of
from wpinq.expr.types import ListOf, Type, is_record_type
from wpinq.plan.arithmetic import Arithmetic, NoLattice, Weights
from wpinq.plan.domain import Counted, Domain, Inference, NoCount, RowBounds, Sized
from wpinq.plan.sensitivity.change import Change, anything
from wpinq.plan.sensitivity.weights import NO_WEIGHT_BOUND, KnownProportions, WeightBound


@dataclass(frozen=True, slots=True)
class InputChange:
    """Known facts of an operator's input as one protected unit appears.

    Attributes
    ----------
    change : Change
        How the input changes.
    nonnegative : bool
        Whether none of its weights is negative, before and after.
    weight_bound : WeightBound
        What its weights do not exceed, before and after.
    proportions : tuple of Proportions
        What its weights descend from; nothing where one may be negative.
    """

    change: Change
    nonnegative: bool
    weight_bound: WeightBound
    proportions: KnownProportions


@dataclass(frozen=True, slots=True)
class PartsRead:
    """The partitions that a step reads right below it.

    Attributes
    ----------
    read : frozenset of bytes
        The partitions of which it reads parts.
    dominating : frozenset of bytes
        Those of them whose parts, as far as they are read, it does not outweigh.
    missed : frozenset of bytes
        Those that it, or a step below it, reads and is not bounded by.
    nonnegative : bool
        Whether none of its weights is negative.
    """

    read: frozenset[bytes]
    dominating: frozenset[bytes]
    missed: frozenset[bytes]
    nonnegative: bool


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of an operator, as a fluent method or a text program takes it.

    `of` numbers the inputs whose records a function is applied to; with `group`, it is applied to the list of
    a whole group's records instead.
    """

    name: str
    kind: Literal["query", "function", "widths", "limit", "constant"]
    of: tuple[int, ...] = (0,)
    group: bool = False
    optional: bool = False

    def record_types(self, inputs: tuple[Type, ...]) -> tuple[Type, ...]:
        """The types of what the function is applied to, given the types of the operator's inputs."""
        types = tuple(inputs[i] for i in self.of)
        return (ListOf(types[0]),) if self.group else types


Parameters = tuple[Parameter, ...]


class Operator(ABC):
    """A stable transformation of weighted datasets.

    Class attributes
    ----------------
    name : str
        Its name in the paper and in text programs.
    method : str
        Its name as a fluent method.
    parameters : tuple of Parameter
        What it takes besides the dataset that it is called on.
    stability : str
        Why one unit of change in an input changes the output by at most one unit.
    later : frozenset of str
        Arguments that came later: without them it has the identity, and the form in files, that it had before.
    """

    name: ClassVar[str]
    method: ClassVar[str]
    arity: ClassVar[int] = 1
    parameters: ClassVar[Parameters] = ()
    stability: ClassVar[str]
    later: ClassVar[frozenset[str]] = frozenset()

    @abstractmethod
    def output_type(self, *inputs: Type) -> Type:
        """The type of the output's records; PlanError where the inputs do not fit."""

    @abstractmethod
    def norm_bound(self, *inputs: Fraction) -> Fraction:
        """A bound on the output's norm, given bounds on the inputs' norms."""

    def unit_records(self, inputs: tuple[int, ...], norm_bound: Fraction) -> int:
        """The most records that one protected unit becomes at the operator.

        `inputs` are the unit's records in the inputs, and `norm_bound` is their norm in all.

        Records that come of a unit together with the records of others, in a Join, are as many as the data has and
        cannot be counted from the plan.
        """
        return sum(inputs)

    def bounded_function(self, function: Lambda) -> Lambda:
        """One of its functions as engines run it, which may skip unneeded output."""
        return function

    def rounding_units(self) -> Fraction:
        """The bound on the operator's rounding by any engine, in rounding units.

        A rounding unit is relative to the norm bound of the output. An engine may round a sum later than at the
        operator that calls for it, after steps that only drop records. It must not round it twice. PlanError where the
        operator does not say: noise must cover all rounding.
        """
        raise PlanError(
            f"{self.name}: how far engines may round it is not declared, so no noise covers it; "
            f"define rounding_units() in {type(self).__module__}"
        )

    def dominating_partitions(self, *inputs: PartsRead) -> frozenset[bytes]:
        """The partitions with parts of no less weight than the output.

        By default they are those common to all inputs, which together outweigh the output.
        """
        first, *others = (below.dominating for below in inputs) if inputs else (frozenset[bytes](),)
        return first.intersection(*others)

    def nonnegative(self, *inputs: bool) -> bool:
        """Whether no output weight can be negative, given that of the inputs.

        False where it is not known.
        """
        return False

    def lattice(self, *inputs: Fraction) -> Fraction | NoLattice:
        """A number that divides every output weight, given those of the inputs, or why none does.

        It holds for all data.
        """
        return NoLattice(self.name, "declares no lattice of its weights; leave it out")

    def counted(self, *inputs: Counted) -> Counted | NoCount:
        """The things that the output's weights count, given those of the inputs, or why none.

        It holds for all data.
        """
        return NoCount(self.name, "declares nothing that its weights count")

    def rows(self, *inputs: Sized) -> RowBounds:
        """The most records of the output, and the most rows handled for it.

        Unbounded where it is not said.
        """
        return RowBounds()

    def domain(self, inference: Inference, *inputs: Domain | None) -> Domain | None:
        """Every record that the output can have, given those of the inputs, or None if unknown."""
        return None

    def change(self, *inputs: InputChange) -> Change:
        """The change of the output, given those of the inputs; it may be sharper than stability.

        By default the output changes by no more than the inputs together. A sharper rule of an operator is proved in
        docs/proofs/stability.md.
        """
        return anything(moved.change for moved in inputs)

    def weight_bound(self, *inputs: WeightBound) -> WeightBound:
        """Bounds on the output's weights, given those of the inputs, where none is negative."""
        return NO_WEIGHT_BOUND

    def disjoint_images(self, *inputs: WeightBound) -> bool:
        """Whether no record of the output comes of two of the input, or twice of one.

        The inputs have these weight bounds.
        """
        return False

    def proportions(self, *inputs: InputChange) -> KnownProportions:
        """The proportions of the output's weights, given those of the inputs; empty if unknown."""
        return ()

    @abstractmethod
    def evaluate(self, inputs: tuple[Weights, ...], arithmetic: Arithmetic) -> Weights:
        """The meaning: the output dataset, exact when the arithmetic is."""

    def identity(self) -> bytes:
        """The digest of the operator with its arguments."""
        parts: list[bytes | str] = [self.name]
        meant = {item.name for item in fields(self) if item.compare}  # type: ignore[arg-type]
        for name, value in self.arguments():
            if name in meant:
                parts += [name, value.digest if isinstance(value, Expr) else repr(value)]
        return digest_of(*parts)

    def arguments(self) -> Iterator[tuple[str, Any]]:
        """Its arguments by name, as files have them."""
        for item in fields(self):  # type: ignore[arg-type]  # every operator is a dataclass
            value = getattr(self, item.name)
            if value is not None or item.name not in self.later:
                yield item.name, value


#: Every operator by its name in the paper.
REGISTRY: dict[str, type[Operator]] = {}


def register(operator: type[Operator]) -> type[Operator]:
    """Enter an operator class in the registry."""
    REGISTRY[operator.name] = operator
    return operator


def function_type(operator: str, function: Lambda) -> Type:
    """The type of a function's result, where it must be able to stand in a dataset."""
    if not is_record_type(function.type):
        raise PlanError(f"{operator}: the function gives {function.type}, which cannot be a record")
    return function.type
