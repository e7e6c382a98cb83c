"""The choice of a marginal by how far it is from a public one: which pair of attributes to measure next."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

from wpinq.errors import AnswersError, PlanError
from wpinq.expr.types import INT, ListOf, TupleOf, Type
from wpinq.expr.values import Value
from wpinq.plan.node import Node
from wpinq.sinks.answer_kinds import STATISTIC, Kind
from wpinq.sinks.choices import NoisyChoice
from wpinq.sinks.compared_marginals import CELLS_LIMIT, VIEWS_LIMIT, ComparedMarginal, marginal_distances


@dataclass(frozen=True, slots=True)
class MostDistant(NoisyChoice):
    """The choice of the candidate view r with a high `score(r) = ‖m_r − p_r‖₁ − c_r`.

    `m_r` is the marginal of the plan's records, which are codes; `p_r` and `c_r` are public. The keys of its answers
    are the views.

    Attributes
    ----------
    sizes : tuple of int
        Of the attributes, one a field of the records: codes go from 0 to size − 1.
    candidates : tuple of ComparedMarginal
        The views with what they are compared with, each view once.
    """

    name: ClassVar[str] = "MostDistant"
    key_type: ClassVar[Type] = ListOf(INT)
    readouts: ClassVar[int] = 0
    sizes: tuple[int, ...]
    candidates: tuple[ComparedMarginal, ...]

    def __post_init__(self) -> None:
        whole = isinstance(self.sizes, tuple) and all(type(size) is int and 0 < size <= 2**63 for size in self.sizes)
        if not (whole and self.sizes):
            raise PlanError("sizes are how many codes each attribute has: integers from 1 to 2**63, (9, 16, 2)")
        candidates = self.candidates
        known = isinstance(candidates, tuple) and all(type(one) is ComparedMarginal for one in candidates)
        if not (known and 0 < len(candidates) <= VIEWS_LIMIT):
            raise PlanError(
                f"a choice of a view is among 1 to {VIEWS_LIMIT:,} candidates, wp.ComparedMarginal(...) each"
            )
        for candidate in candidates:
            candidate.__post_init__()  # unpickling leaves it out
            candidate.check(self.sizes)
        if len(set(self.keys)) < len(candidates):
            raise PlanError("two candidates are one view: compare each view with one marginal")
        cells = sum(math.prod(self.sizes[place] for place in view) for view in self.keys)
        if cells > CELLS_LIMIT:
            raise PlanError(
                f"the candidates have {cells:,} cells, and a choice at most {CELLS_LIMIT:,}: leave out large views"
            )

    @property
    def keys(self) -> tuple[tuple[int, ...], ...]:
        """The views."""
        return tuple(candidate.view for candidate in self.candidates)

    def check(self, plan: Node) -> None:
        self.__post_init__()  # unpickling leaves it out
        type_ = plan.type
        fields = type_.elements if isinstance(type_, TupleOf) else (type_,)
        if any(field != INT for field in fields) or len(fields) != len(self.sizes):
            raise PlanError(
                f"a choice of a view needs records of {len(self.sizes)} integers, the codes of the attributes, and "
                f"not of type {type_}: .select(lambda r: F.record(...)) with a code from 0 on for each"
            )

    def identity(self) -> tuple[bytes | str, ...]:
        candidates = (part for candidate in self.candidates for part in candidate.identity)
        return ("most distant", repr(self.sizes), *candidates)

    def kind(self, plan: Node) -> Kind:
        return Kind(STATISTIC, "the view farthest from what it is compared with, as noise lets it be told")

    @property
    def score_range(self) -> Fraction:
        """How far the moves of two scores differ, at most, per unit of weight: 2.

        Notes
        -----
        A marginal moves by at most what the plan's output does, in L1, and by the triangle inequality its distance to
        a fixed one moves no further: by 1 a unit, one view's up and another's down. The bound is reached.
        """
        return Fraction(2)

    @property
    def by(self) -> str:
        return "how far they are from public ones"

    def scores(self, weights: Mapping[Value, Any], candidates: tuple[Value, ...] = ()) -> list[Fraction]:
        """The score of every candidate, exactly."""
        found = marginal_distances(weights, self.sizes, self.candidates)
        return [distance - Fraction(one.penalty) for distance, one in zip(found, self.candidates, strict=True)]

    def value(self, numbers: Mapping[Value, float]) -> Value:
        if tuple(numbers) != self.keys:
            raise AnswersError("the answers of MostDistant have its views as keys")
        return super(MostDistant, self).value(numbers)

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "sizes": list(self.sizes),
            "candidates": [candidate.to_json() for candidate in self.candidates],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls(tuple(data["sizes"]), tuple(ComparedMarginal(**candidate) for candidate in data["candidates"]))
