"""The contract of sinks: price, draw, answers and text form of a release.

Each sink is one class: its input, sensitivity, scale, exact draw, error, interval, work bound, JSON and text form.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from fractions import Fraction
from typing import Any, ClassVar, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from wpinq.columns.records import in_order
from wpinq.engines.contract import RankWeights, WantedRanges
from wpinq.errors import AnswersError, PlanError
from wpinq.expr.types import Type
from wpinq.expr.values import Value, code_factors
from wpinq.noise.epsilon_text import format_epsilon, format_factor, format_times
from wpinq.noise.exact_bernoulli import RandomBytes
from wpinq.noise.noise_distributions import half_width
from wpinq.plan.format import ratio_from_json
from wpinq.plan.node import Node
from wpinq.plan.properties import plan_properties
from wpinq.plan.work import steps_of_both_sides
from wpinq.runtime.arrays import Integers
from wpinq.sinks.answer_kinds import Kind, Stated, kind_of_weights
from wpinq.sinks.syntax import SinkSyntax

#: The keys of a measurement, where they are known before.
PublicKeys = tuple[Value, ...] | None
#: Numbers that were drawn, in a list or an array.
Drawn = Sequence[float]
_ONE = Fraction(1)


class Output(Protocol):
    """The output of a plan, for a mechanism: protected in a session, public in a simulation."""

    def weights(self, keys: Sequence[Value] | None = None, within: WantedRanges = ()) -> Mapping[Value, Any]:
        """The weights of some records, or of all."""

    def integer_rows(self) -> Integers | None:
        """The records that weigh more than 1/2 as rows of integers; None where that is not at hand."""

    def rank_weights(self, candidates: Sequence[Value]) -> RankWeights:
        """The weight before, at and after each candidate."""


class Sink(ABC):
    """A way to release a plan's output.

    Attributes
    ----------
    noise : tuple of str
        The distribution of its draw in words, and the page of `docs/proofs` that proves the draw.
    proviso : str
        A condition on the guarantee of this release, beyond its sources' declarations; bills print it.
    key_type : Type or None
        The type of the keys, where they are no records of the plan.
    single : bool
        Whether the answers come down to one number, whatever their keys.
    noun : str
        That one number, in a word.
    per_key : bool
        Whether each key has a noisy weight of its own: keys may be requested one by one, or listed above a threshold.
    chooses : bool
        Whether the answer is one of the keys, drawn from all of them together.
    bounded_work : bool
        Whether the time of a draw was measured, so that untrusted mode releases it.
    syntax : tuple of SinkSyntax
        The ways to write it in text.
    """

    name: ClassVar[str]
    noise: ClassVar[tuple[str, str]]
    proviso: ClassVar[str] = ""
    key_type: ClassVar[Type | None] = None
    single: ClassVar[bool] = False
    noun: ClassVar[str] = ""
    per_key: ClassVar[bool] = False
    chooses: ClassVar[bool] = False
    bounded_work: ClassVar[bool] = False
    syntax: ClassVar[tuple[SinkSyntax, ...]] = ()

    # --- input --------------------------------------------------------------------------------------------------------

    @abstractmethod
    def identity(self) -> tuple[bytes | str, ...]:
        """The words that identify its noise: two sinks of one identity share releases."""

    def check(self, plan: Node) -> None:
        """Refuse, with PlanError, a plan whose output cannot be released so."""
        return

    @property
    def own_keys(self) -> PublicKeys:
        """The keys of the answers, where the sink and not the user fixes them."""
        return None

    def key_of(self, plan: Node) -> Type:
        """The type of the keys: that of the plan's records, unless the sink has keys of its own."""
        return self.key_type or plan.type

    def check_keys(self, plan: Node, keys: PublicKeys) -> None:
        """Refuse, with PlanError, keys or a plan for which this sink was not made.

        A Measurement can be made by hand.
        """
        if self.own_keys is not None and keys != self.own_keys:
            raise PlanError(f"{self.name} has keys of its own: measure it with query.measure(sink, epsilon)")

    # --- price --------------------------------------------------------------------------------------------------------

    def stability(self, plan: Node) -> Mapping[str, Fraction]:
        """The bill for a unit of weight of each source, as a multiple of epsilon."""
        return plan_properties(plan).stability

    def usage(self, plan: Node, source: str) -> tuple[str, str]:
        """How often epsilon is spent on a source, in words; and why, where less than it is used."""
        certificate = plan_properties(plan)
        uses, moved = certificate.uses[source], certificate.stability[source]
        steps = steps_of_both_sides(plan, source)
        why = f" ({', '.join(steps)} use{'s' * (len(steps) == 1)} {source} {format_times(uses)})" if steps else ""
        said = f"spent {format_times(moved)}{why}"
        if moved == uses:
            return said, ""
        return said, f"{format_factor(moved)} instead of {format_factor(uses)} due to: {'; '.join(certificate.rules)}"

    def demand(self, plan: Node, epsilon: Fraction) -> tuple[Node, Fraction]:
        """The root from which a demand flows down to the sources, and how much of it."""
        return plan, epsilon

    # --- mechanism ----------------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def sensitivity(self) -> Fraction:
        """The privacy loss of a draw of scale 1 where the output changes by 1.

        The scale for epsilon is this over epsilon. It is the L1 change of the scores that noise is added to; for a
        choice or a ladder, the range of the changes of scores.
        """

    @abstractmethod
    def scales(self, plan: Node, epsilon: Fraction) -> tuple[float, ...]:
        """The certified scale of the noise, rounded up; further ones are of further draws."""

    @abstractmethod
    def draw(self, output: Output, keys: Sequence[Value], scales: Sequence[float], random: RandomBytes) -> Drawn:
        """The exact draw: released numbers, for each of the keys one, in units of the first scale.

        Parameters
        ----------
        output : Output
            Of the plan. Protected in a session.
        keys : sequence
            Public: in canonical form.
        scales : sequence of float
            As `scales` gives them.
        random : callable
            The source of random bytes: the operating system's for a release.
        """

    @property
    def whole_output(self) -> bool:
        """Whether a draw reads all records of the output, whatever the keys."""
        return False

    @property
    def draws_per_key(self) -> int:
        """The number of noisy numbers that take as long as the draw for one key."""
        return 1

    @property
    def lattice(self) -> Fraction | None:
        """The lattice of the released numbers, where they are multiples of one."""
        return None

    # --- answers ------------------------------------------------------------------------------------------------------

    def codes(self, keys: Sequence[Value], type_: Type) -> tuple[list[bytes], list[bytes]]:
        """The codes under which a ledger remembers drawn numbers: each head with each tail."""
        return code_factors(keys, type_)

    def answers(self, drawn: Sequence[float], keys: int) -> NDArray[np.float64]:
        """The answers for a number of keys, from the numbers that were drawn for them."""
        return np.multiply(drawn, float(self.factor)) if self.factor != 1 else np.asarray(drawn)

    def answer_scale(self, scale: float) -> float:
        """The scale of the noise of answers."""
        return scale * float(self.factor)

    def kind(self, plan: Node) -> Kind:
        """The kind of number that it releases."""
        return kind_of_weights(plan)

    @property
    def has_interval(self) -> bool:
        """Whether the answers have an interval."""
        return True

    @property
    def factor(self) -> Fraction:
        """The number by which a noisy weight is multiplied to give an answer."""
        return _ONE

    def value(self, numbers: Mapping[Value, float]) -> Value:
        """The one number that the answers come down to."""
        if len(numbers) != 1:
            raise AnswersError(f"these answers have {len(numbers)} keys; ask for one with answers[key]")
        return next(iter(numbers.values()))

    def value_interval(self, numbers: Mapping[Value, float], scale: float, confidence: float) -> tuple[float, float]:
        """The interval around `value`."""
        number = self.value(numbers)
        half = self.half_width(scale, confidence)
        return number - half, number + half

    def half_width(self, scale: float, confidence: float) -> float:
        """The half-width of the interval around one answer whose noise has this scale."""
        return half_width(scale, confidence)

    def error(self, plan: Node, epsilon: Fraction, keys: PublicKeys, confidence: float, stated: Stated) -> float:
        """The bound on an answer's error, with this confidence, before any release."""
        return self.half_width(self.answer_scale(self.scales(plan, epsilon)[0]), confidence)

    # --- counts above a threshold -------------------------------------------------------------------------------------

    def cut(self, above: float) -> float:
        """The threshold in units of the scale, exactly.

        A drawn number is above it exactly where the answer is above `above`.
        """
        raise PlanError(f"{self.name} cannot be listed above a threshold: use a noisy count")

    def chance_above(self, above: float, scale: float) -> float:
        """The probability that the answer for an absent key is above a threshold.

        `scale` is that of answers.
        """
        raise PlanError(f"{self.name} cannot be listed above a threshold: use a noisy count")

    def listed_reach(self, value: float, above: float, scale: float, confidence: float) -> float:
        """The reach below a listed answer of its interval: see `noise_distributions.listed_reach`."""
        raise PlanError(f"{self.name} cannot be listed above a threshold: use a noisy count")

    def in_units(self, weights: Sequence[Any]) -> Sequence[Any]:
        """Weights in units of the scale; refused where one is not finite."""
        if not np.isfinite(np.asarray(weights, dtype=np.float64)).all():
            raise OverflowError("weights are finite")
        return weights

    # --- words --------------------------------------------------------------------------------------------------------

    def explain_cost(self, plan: Node, epsilon: Fraction) -> Iterator[str]:
        """Lines on the cost of a release, where they are not those of the plan's uses."""
        return iter(())

    @abstractmethod
    def explain_noise(self, plan: Node, epsilon: Fraction) -> Iterator[str]:
        """Lines on the noise of a release and its error, before it."""

    def called(self, epsilon: Fraction) -> str:
        """Name and epsilon, as bills and ledgers print them."""
        return f"{self.name}({format_epsilon(epsilon)})"

    def to_json(self) -> dict[str, Any]:
        """The sink as plain data: its name, and its fields, exact numbers as ratios."""
        held = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]  # every sink is one
        return {"name": self.name, **{n: str(v) if isinstance(v, Fraction) else v for n, v in held.items()}}

    @classmethod
    def from_arguments(cls, **given: Any) -> Self:
        """The sink that the arguments of a program describe."""
        return cls(**given)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The sink of plain data, without its name; any error where they describe none."""
        given = dict(data)
        for field in fields(cls):  # type: ignore[arg-type]  # every sink is one
            if "Fraction" in str(field.type) and given.get(field.name) is not None:
                given[field.name] = ratio_from_json(given[field.name])
        return cls(**given)


#: Every sink by its name: all that the guarantee covers.
SINKS: dict[str, type[Sink]] = {}

S = TypeVar("S", bound=type[Sink])


def register(sink: S) -> S:
    """Enter a sink in the registry."""
    SINKS[sink.name] = sink
    return sink


def gathered(sink: Sink, output: Output, keys: Sequence[Value]) -> Sequence[Any]:
    """The weights of keys in units of the sink's scale; absent records weigh nothing."""
    return sink.in_units(in_order(output.weights(keys), keys))
