"""Nodes: an operator applied to the outputs of other nodes; a plan is its root node."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from operator import attrgetter
from typing import Any, TypeVar

from wpinq.errors import ExpressionError, PlanError
from wpinq.expr.nodes import Constant, Lambda, below_first, check_function, digest_of
from wpinq.expr.types import VALUES_LIMIT, Type
from wpinq.expr.work import CallWork, work
from wpinq.plan.operator import REGISTRY, Operator, Parameter
from wpinq.plan.operators.source import Source

# What one protected unit can grow into along a plan, and the refusal of plans that let it grow without measure.
#
# One record that becomes 10¹² records exhausts time and memory when it is there, and not when it is absent: an answer
# that no noise protects. So each step bounds, from the plan alone, the records that come of one record weighing one
# unit, the values in these, and the work that its functions do on them.

#: The most records that one protected unit may become at a step.
FANOUT_LIMIT = 4_000_000

#: The most values and code points that a step's function may handle for one protected unit.
WORK_LIMIT = 100_000_000

#: Masses are rounded up to multiples of 1 / _GRAIN, so that they stay short however deep the plan.
_GRAIN = 2**64


@dataclass(frozen=True, slots=True)
class UnitGrowth:
    """Bounds on one protected unit at a step: a record of the source, or one person's rows.

    Attributes
    ----------
    records : int
        How many records. Pairs that a Join makes with records of other units are not counted: they are as many as
        the data has.
    norm_bound : Fraction
        Their norm.
    text : int
        The longest string in them, in multiples of the longest of the source.
    """

    records: int
    norm_bound: Fraction
    text: int


def unit_growth(operator: Operator, inputs: tuple[UnitGrowth, ...], type_: Type, *, shared: bool) -> UnitGrowth:
    """The growth of one unit up to a step, from its inputs; PlanError where it is too large.

    `shared` says that the inputs are one and the same dataset, so that their records are too.
    """
    if isinstance(operator, Source):
        person = operator.person
        return UnitGrowth(1 if person is None else person.weight, operator.unit_weight, 1)
    norm_bound = Fraction(math.ceil(operator.norm_bound(*(below.norm_bound for below in inputs)) * _GRAIN), _GRAIN)
    counts = tuple(below.records for below in inputs)
    union = type(operator).unit_records is Operator.unit_records
    records = max(counts) if shared and union else operator.unit_records(counts, norm_bound)
    _check(operator, records, FANOUT_LIMIT, "become {} records")
    _check(operator, records * type_.values, VALUES_LIMIT, "become records of {} values in all")
    text = max(below.text for below in inputs)
    for parameter in operator.parameters:
        if parameter.kind not in ("function", "widths"):
            continue
        function = getattr(operator, parameter.name)
        if isinstance(function, Lambda):
            done = _work(operator, parameter, function, tuple(inputs[i].text for i in parameter.of))
            count = math.prod(inputs[i].records for i in parameter.of)
            _check(operator, count * done.steps, WORK_LIMIT, "take {} steps")
            text = max(text, done.text)
    return UnitGrowth(records, norm_bound, text)


def _work(operator: Operator, parameter: Parameter, function: Lambda, texts: tuple[int, ...]) -> CallWork:
    try:
        return work(operator.bounded_function(function), texts)
    except ExpressionError as error:
        raise PlanError(f"{operator.name}, {parameter.name}: {error}") from None


def _check(operator: Operator, count: int, limit: int, what: str) -> None:
    if count > limit:
        shown = f"{count:,}" if count < 10**18 else f"2^{count.bit_length() - 1}"
        raise PlanError(
            f"{operator.name}: one protected unit may {what.format(shown)} here; more than {limit:,} would show its "
            "presence in time and memory: lower the limits, or at_most of a person, or use wider pieces in shave"
        )


T = TypeVar("T")

_ARGUMENTS: Mapping[str, type] = {"function": Lambda, "widths": float, "constant": Constant}


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Node:
    """One step of a plan: typed when built, equal to another when it means the same.

    Attributes
    ----------
    operator : Operator
        What the step does, with its arguments.
    inputs : tuple of Node
        What it does it to.
    type : Type
        The type of the records that come out.
    digest : bytes
        The digest of the step and all that is below it: equality and hashing, whatever the depth.
    unit_growth : UnitGrowth
        The most that one protected unit can become here.
    sources : tuple of Source
        The sources below, as this plan declares them.
    """

    operator: Operator
    inputs: tuple[Node, ...] = ()
    type: Type = field(init=False)
    digest: bytes = field(init=False)
    unit_growth: UnitGrowth = field(init=False)
    sources: tuple[Source, ...] = field(init=False)

    def __post_init__(self) -> None:
        kind, name = type(self.operator), self.operator.name
        if kind is not Source and REGISTRY.get(name) is not kind:  # another class could have the same digest
            raise PlanError(f"{name} is not a registered operator, and the guarantee covers no others")
        if len(self.inputs) != self.operator.arity:
            raise PlanError(f"{self.operator.name} takes {self.operator.arity} dataset(s), not {len(self.inputs)}")
        self._check_arguments()
        object.__setattr__(self, "type", self.operator.output_type(*(node.type for node in self.inputs)))
        digest = digest_of(self.operator.identity(), *(node.digest for node in self.inputs))
        object.__setattr__(self, "digest", digest)
        shared = len({node.digest for node in self.inputs}) < len(self.inputs)
        below = tuple(node.unit_growth for node in self.inputs)
        object.__setattr__(self, "unit_growth", unit_growth(self.operator, below, self.type, shared=shared))
        declared = [source for node in self.inputs for source in node.sources]
        own = (self.operator,) if isinstance(self.operator, Source) else tuple(dict.fromkeys(declared))
        object.__setattr__(self, "sources", own)

    def _check_arguments(self) -> None:
        """Check arguments of any origin: a plan from a file is checked like one from a lambda."""
        operator, types = self.operator, tuple(node.type for node in self.inputs)
        for parameter in operator.parameters:
            if parameter.kind in ("query", "limit"):
                continue
            argument = getattr(operator, parameter.name)
            if isinstance(argument, Lambda) and parameter.kind != "constant":
                try:
                    check_function(argument, parameter.record_types(types))
                except ExpressionError as error:
                    raise ExpressionError(f"{operator.name}, {parameter.name}: {error}") from None
            elif not isinstance(argument, _ARGUMENTS[parameter.kind]) or isinstance(argument, bool):
                raise PlanError(f"{operator.name}: {parameter.name} must be a {parameter.kind}")

    def __reduce__(self) -> tuple[Any, ...]:
        return Node, (self.operator, self.inputs)  # built anew: a digest is never taken on trust

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


class Planned:
    """A plan without a measurement: the base of queries, by which a session recognises them."""

    __slots__ = ()
    plan: Node


def topological(roots: Iterable[Node]) -> Iterator[Node]:
    """Every distinct node once, inputs before what uses them."""
    return below_first(roots, attrgetter("inputs"))


def upward(root: Node, of_step: Callable[[Node, list[T]], T]) -> dict[bytes, T]:
    """The results of a function of each step and its inputs' results, by digest.

    Inputs come before users, the root last.
    """
    found: dict[bytes, T] = {}
    for node in topological([root]):
        found[node.digest] = of_step(node, [found[child.digest] for child in node.inputs])
    return found


def paths_from(root: Node, below: Callable[[Node], Sequence[Node]] = attrgetter("inputs")) -> dict[bytes, int]:
    """The number of paths from a step to each of those `below` it, by digest."""
    counts = {root.digest: 1}
    for node in reversed(list(below_first([root], below))):
        for child in below(node):
            counts[child.digest] = counts.get(child.digest, 0) + counts[node.digest]
    return counts


def sources(roots: Iterable[Node]) -> dict[str, Source]:
    """The sources of some plans by name; PlanError when one name is declared in two ways."""
    found: dict[str, Source] = {}
    for root in roots:
        for source in root.sources:
            if found.setdefault(source.source, source) != source:
                raise PlanError(f"the source {source.source!r} is declared in two ways: use one declaration")
    return found
