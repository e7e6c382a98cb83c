"""What a sink is: how a plan's output is released."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from typing import Any, ClassVar, Self

from wpinq.errors import AnswersError, PlanError
from wpinq.expr.types import Type
from wpinq.expr.values import Value
from wpinq.noise.epsilon import format_factor
from wpinq.noise.noise_distributions import half_width
from wpinq.plan.format import ratio_from_json
from wpinq.plan.node import Node
from wpinq.plan.properties import plan_properties
from wpinq.sinks.answer_kinds import Kind, kind_of_weights

_RATIOS = frozenset({"quantile", "step", "interval_share", "penalty", "split"})
"""Fields of sinks that are exact numbers."""

_ONE = Fraction(1)


def check_text(text: str, what: str) -> str:
    """A text that bills and tables will print: refused where it could move a cursor or forge a line."""
    if not text.isprintable():
        raise PlanError(f"{what} must be printable text on one line")
    return text


class Sink(ABC):
    """How a plan's output is released."""

    name: ClassVar[str]
    proviso: ClassVar[str] = ""
    """What narrows the promise of this release beyond its sources' declarations; bills print it."""
    key_type: ClassVar[Type | None] = None
    """The type of the keys, where they are no records of the plan."""
    single: ClassVar[bool] = False
    """Whether the answers come down to one number, whatever their keys."""
    noun: ClassVar[str] = ""
    """What that one number is, in a word."""

    @abstractmethod
    def identity(self) -> tuple[bytes | str, ...]:
        """What two sinks must share for a release of one to replay as the other."""

    def former_identity(self) -> tuple[bytes | str, ...]:
        """The identity of the mechanism that stood in for this one earlier: ledgers may hold releases of it."""
        return self.identity()

    def check(self, plan: Node) -> None:
        """Refuse, with PlanError, a plan whose output cannot be released so."""
        return

    def stability(self, plan: Node) -> Mapping[str, Fraction]:
        """What a unit of weight of each source is billed, as a multiple of epsilon."""
        return plan_properties(plan).stability

    def usage(self, plan: Node, source: str, word: str) -> tuple[str, str]:
        """How a bill says that, with `word` for the source, and why it is less than the uses, where it is."""
        certificate = plan_properties(plan)
        uses, moved = format_factor(certificate.uses[source]), format_factor(certificate.stability[source])
        often = f"uses {word} once" if uses == "1" else f"uses {word} {uses} times"
        if certificate.uses[source] == certificate.stability[source]:
            return often, ""
        return f"{often} and moves at most {moved}", f"{moved} instead of {uses} by: {'; '.join(certificate.rules)}"

    def asked(self, plan: Node, epsilon: Fraction) -> tuple[Node, Fraction]:
        """The root from which a demand flows down to the sources, and how much of it."""
        return plan, epsilon

    def kind(self, plan: Node) -> Kind:
        """What kind of number it releases."""
        return kind_of_weights(plan)

    @property
    def has_interval(self) -> bool:
        """Whether the answers tell how exact they are."""
        return True

    @property
    def noise(self) -> str:
        """The kind of its noise, for the record: where `measure.renyi` has no curve of it, its worst case counts."""
        return self.name

    @property
    def factor(self) -> Fraction:
        """What a noisy weight is multiplied by to give an answer."""
        return _ONE

    def to_json(self) -> dict[str, Any]:
        """The sink as plain data: its name, and its fields, exact numbers as ratios."""
        held = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]  # every sink is one
        return {"name": self.name, **{n: str(v) if isinstance(v, Fraction) else v for n, v in held.items()}}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The sink of plain data, without its name; what it raises where they are none is for the caller to tell."""
        given = dict(data)
        for name in _RATIOS & given.keys():
            if given[name] is not None:
                given[name] = ratio_from_json(given[name])
        return cls(**given)

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
