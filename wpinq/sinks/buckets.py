"""Buckets: which neighbouring bins are alike, as a sink. A choice of a partition of public bins, and no number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar

from wpinq.errors import AnswersError, PlanError
from wpinq.expr.types import INT
from wpinq.expr.values import Value
from wpinq.measure.renyi import BUCKETS
from wpinq.noise.epsilon import MAX_DENOMINATOR, MAX_EPSILON
from wpinq.plan.node import Node
from wpinq.sinks.answer_kinds import STATISTIC, Kind
from wpinq.sinks.sink import Sink

LARGEST_BINS = 2**20
"""The most bins: a draw takes half a minute of them."""


@dataclass(frozen=True, slots=True)
class Buckets(Sink):
    """A partition of the bins 0 … bins − 1 into buckets of a tree of halves, with `Pr ∝ prior · exp(−ε · C / 2)`.

    C of a partition is the L1 distance of the weights from the nearest histogram that is constant on its buckets, plus
    a penalty for each bucket. Answers are over all bins: 1 where a bucket begins, 0 elsewhere; their `value` lists the
    bins where buckets begin.

    Attributes
    ----------
    bins : int
        The number of bins, at most `LARGEST_BINS`. Records that are none weigh nothing.
    penalty : Fraction
        What a bucket costs, in weight; more than 0, and at most 2**31.
    split : Fraction
        The chance with which the prior splits a node of the tree, between 0 and 1.
    """

    name: ClassVar[str] = "Buckets"

    bins: int
    penalty: Fraction
    split: Fraction = Fraction(1, 2)

    def __post_init__(self) -> None:
        # a sink may be read from a file
        if type(self.bins) is not int or not 1 <= self.bins <= LARGEST_BINS:
            raise PlanError(f"buckets are of 1 to {LARGEST_BINS} bins: pass their number as an int")
        if not _is_ratio(self.penalty, MAX_EPSILON):
            raise PlanError(
                "the penalty of a bucket is a Fraction of more than 0, in weight, at most 2**31 and no finer than 1e-30"
            )
        if not _is_ratio(self.split, 1) or self.split == 1:
            raise PlanError(
                "split is the chance that the prior splits a node, a Fraction between 0 and 1 and no finer than 1e-30: "
                "try 1/2"
            )

    def check(self, plan: Node) -> None:
        self.__post_init__()  # unpickling leaves it out
        if plan.type != INT:
            raise PlanError(f"buckets are of bins, integers from 0 on, not of {plan.type}: select the bin first")

    @property
    def keys(self) -> tuple[int, ...]:
        """The keys of the answers: the bins."""
        return tuple(range(self.bins))

    def identity(self) -> tuple[bytes | str, ...]:
        return ("dyadic buckets", str(self.bins), str(self.penalty), str(self.split))

    def kind(self, plan: Node) -> Kind:
        return Kind(STATISTIC, "1 where a bucket of bins that are alike begins, as noise lets it be told")

    @property
    def has_interval(self) -> bool:
        return False

    @property
    def noise(self) -> str:
        return BUCKETS

    def value(self, numbers: Mapping[Value, float]) -> Value:
        """The bins where buckets begin; AnswersError where these are no buckets of a tree of halves."""
        starts = tuple(bin for bin, number in numbers.items() if number == 1.0)
        known = tuple(numbers) == self.keys and all(number in (0.0, 1.0) for number in numbers.values())
        if not (known and starts and _are_nodes(starts, self.bins)):
            raise AnswersError("these answers hold no buckets: 1 where one begins and 0 elsewhere, for every bin")
        return starts

    def value_interval(self, numbers: Mapping[Value, float], scale: float, confidence: float) -> tuple[float, float]:
        raise AnswersError("a choice of buckets has no interval")

    def half_width(self, scale: float, confidence: float) -> float:
        raise AnswersError("a choice of buckets has no interval")


def _is_ratio(number: object, most: int) -> bool:
    """Whether it is a ratio such as `parse_epsilon` gives, so that texts hold it and draws work with short numbers."""
    return isinstance(number, Fraction) and 0 < number <= most and number.denominator <= MAX_DENOMINATOR


def _are_nodes(starts: Sequence[int], bins: int) -> bool:
    """Whether stretches from each start to the next are nodes of the tree of halves over these bins."""
    for start, stop in pairwise((*starts, bins)):
        size = 1 << (stop - start - 1).bit_length()  # the node's own, that the last bin may cut short
        if start % size or (stop - start < size and stop != bins):
            return False
    return starts[0] == 0
