"""Choices among public candidates, by weight or quantile, of all records or in each group."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wpinq.errors import AnswersError, PlanError
from wpinq.expr.types import INT, TupleOf, Type
from wpinq.expr.values import Value
from wpinq.noise.epsilon_text import format_epsilon
from wpinq.noise.exact_bernoulli import RandomBytes
from wpinq.noise.laplace import laplace_scale
from wpinq.noise.permute_and_flip import select, select_each
from wpinq.plan.node import Node
from wpinq.plan.properties import plan_properties
from wpinq.sinks.answer_kinds import Kind, Stated
from wpinq.sinks.sink import Output, PublicKeys, Sink, register
from wpinq.sinks.syntax import EPSILON, OVER, Measured, SinkParameter, SinkSyntax, Written, write_keys

_CODE = b"choice"
MOST_COMMON = "most common"
_Q = SinkParameter("q", "number")
_RENAMED = {"over": "candidates"}


class NoisyChoice(Sink):
    """A noisy choice among public candidates: permute-and-flip with scores from the weights.

    Attributes
    ----------
    readouts : int
        How often a score is rounded on its way from the engine's weights.
    """

    __slots__ = ()
    noise: ClassVar[tuple[str, str]] = ("permute-and-flip, with exponential noise", "choices")
    single: ClassVar[bool] = True
    chooses: ClassVar[bool] = True
    has_interval: ClassVar[bool] = False
    readouts: ClassVar[int]

    @property
    @abstractmethod
    def by(self) -> str:
        """The criterion of the choice, in words."""

    @abstractmethod
    def scores(self, output: Output, candidates: Sequence[Value]) -> Sequence[float | Fraction]:
        """The score of every candidate, protected."""

    def check_keys(self, plan: Node, keys: PublicKeys) -> None:
        if not keys:
            raise PlanError("a choice needs at least one candidate")
        super().check_keys(plan, keys)

    def scales(self, plan: Node, epsilon: Fraction) -> tuple[float, ...]:
        return (laplace_scale(epsilon, plan_properties(plan).slack(self.readouts), self.sensitivity),)

    def draw(self, output: Output, keys: Sequence[Value], scales: Sequence[float], random: RandomBytes) -> list[float]:
        """The place of the chosen candidate: one number, whatever the number of keys."""
        return [float(select(self.scores(output, keys), scales[0], random))]

    def codes(self, keys: Sequence[Value], type_: Type) -> tuple[list[bytes], list[bytes]]:
        return [_CODE], [b""]

    def answers(self, drawn: Sequence[float], keys: int) -> NDArray[np.float64]:
        values = np.zeros(keys)
        values[int(drawn[0])] = 1.0
        return values

    def answer_scale(self, scale: float) -> float:
        return 0.0

    def value(self, numbers: Mapping[Value, float]) -> Value:
        return next(key for key, number in numbers.items() if number == 1.0)

    def value_interval(self, numbers: Mapping[Value, float], scale: float, confidence: float) -> tuple[float, float]:
        raise AnswersError("a choice among candidates has no interval")

    def error(self, plan: Node, epsilon: Fraction, keys: PublicKeys, confidence: float, stated: Stated) -> float:
        """The error bound, from the chance `exp(−x/s)/2` that a score less by x wins.

        Permute-and-flip adds exponential noise to the scores and takes the best.
        """
        others = len(keys or ()) - 1
        if others < 1:
            return 0.0
        return self.scales(plan, epsilon)[0] * max(0.0, math.log(others / (2 * (1 - confidence))))

    def explain_noise(self, plan: Node, epsilon: Fraction) -> Iterator[str]:
        (scale,) = self.scales(plan, epsilon)
        yield f"{self.called(epsilon)} picks one of the keys, by {self.by}, with noise of scale {scale:.9g},"
        # the largest of n exponential noises is below scale x ln(n / 0.05) with probability 95 %
        yield f"so 95 % of choices among n keys score within {scale:.4g} x ln(20 n) of the best."


def _write(score: str, fixed: Fraction | None) -> Callable[[Measured], Written | None]:
    def written(m: Measured) -> Written | None:
        quantile, over = m.sink.quantile, f"over: {write_keys(m.domain or (), m.plan.type)}"
        if m.sink.score != score:
            return None
        if quantile == fixed:
            return m.plan, [over]
        return None if quantile is None or fixed is not None else (m.plan, [format_epsilon(quantile), over])

    return written


@register
@dataclass(frozen=True, slots=True)
class Choose(NoisyChoice):
    """The choice of the candidate that has most weight, or that cuts the weight at a quantile.

    `score` is "weight", `score(c) = A(c)`, or "quantile", with L, M and R the weight before, at and after c, each
    record's weight taken as 0 where it is below, `score(c) = min(0, q·(M+R) − (1−q)·L, (1−q)·(L+M) − q·R)`.
    That is, negated, how far `q·(L+M+R)` lies from the interval [L, L+M]: 0 where c is the quantile.
    """

    name: ClassVar[str] = "Choose"
    readouts: ClassVar[int] = 1
    bounded_work: ClassVar[bool] = True
    syntax: ClassVar[tuple[SinkSyntax, ...]] = (
        SinkSyntax("MostCommon", (EPSILON, OVER), _write("weight", None), "most_common", _RENAMED),
        SinkSyntax("Median", (EPSILON, OVER), _write("quantile", Fraction(1, 2)), "median", _RENAMED),
        SinkSyntax("Quantile", (EPSILON, _Q, OVER), _write("quantile", None), "quantile", _RENAMED),
    )
    score: str
    quantile: Fraction | None = None

    def kind(self, plan: Node) -> Kind:
        q = self.quantile
        name = MOST_COMMON if q is None else "median" if q == Fraction(1, 2) else f"quantile {float(q):g}"
        return Kind(name, f"{name} among public candidates, up to noise")

    def __post_init__(self) -> None:
        # The sensitivity of 1 rests on 0 < q < 1, and a Choose may be read from a file.
        weight = self.score == "weight" and self.quantile is None
        if not (weight or (self.score == "quantile" and isinstance(self.quantile, Fraction) and 0 < self.quantile < 1)):
            raise PlanError("a choice is by weight, or by quantile with a Fraction q, 0 < q < 1")

    def identity(self) -> tuple[bytes | str, ...]:
        return ("permute and flip", self.score, str(self.quantile))

    @property
    def sensitivity(self) -> Fraction:
        """The largest difference of the changes of two scores, per unit of weight.

        Notes
        -----
        This is `max_c Δ(c) − min_c Δ(c)`. Weights are of different records, so `max Δ − min Δ ≤ ‖Δ‖`: 1. A score of a
        quantile is the least of 0 and two linear forms of the weights, whose coefficients are ±q and ±(1−q). A unit of
        weight moves each form, and so the least, by at most `max(q, 1−q)`, one score up and another down: `2·max(q,
        1−q)`, 1 for a median. A weight that is taken as 0 where it is below moves no further than it did. Both bounds
        are reached.
        """
        return Fraction(1) if self.quantile is None else 2 * max(self.quantile, 1 - self.quantile)

    @property
    def by(self) -> str:
        return "their weight" if self.quantile is None else f"how near they come to the quantile {self.quantile}"

    @property
    def whole_output(self) -> bool:
        return self.quantile is not None

    def scores(self, output: Output, candidates: Sequence[Value]) -> list[float]:
        """The score of every candidate: of a quantile from exact sums, rounded once."""
        if self.quantile is None:
            weights = output.weights(candidates)
            return [weights.get(candidate, 0.0) for candidate in candidates]
        (share, whole), held = self.quantile.as_integer_ratio(), output.rank_weights(candidates)
        cut = share * sum(held[0]) if held else 0  # L+M+R is all the weight, at every candidate
        return [float(min(0, cut - whole * left, whole * (left + here) - cut) / whole) for left, here, _ in held]


# A choice in each group, all from one query.
#
# Groups are the parts of a partition by a public key, so what one unit moves is spread over them: the losses of all
# choices add up to that of one (`docs/proofs/choices.md`).

#: Of the interval between the ends that are chosen with a quantile.
CONFIDENCE = 0.95

#: Its cube is a whole number that a float holds exactly: a choice and its two ends are one number.
MOST_CANDIDATES = 200_000

#: Scores of one batch of groups.
_AT_ONCE = 2**18

#: Whole numbers below this are added as int64.
_WIDE = 2**60


@register
@dataclass(frozen=True, slots=True)
class ChooseInGroups(Sink):
    """A choice among candidates in each group; a quantile comes with the ends of an interval.

    The records are pairs of a group and a place. By weight, place i is candidate i. By quantile, with the candidates in
    order, place 2i + 1 is candidate i, and place 2i between the candidates i − 1 and i. Other places count for nothing.

    An answer is a whole number: by weight the place of the chosen candidate, by quantile `(c·m + l)·m + h` of m
    candidates. The choice c takes half of epsilon, and the ends l and h a quarter each.
    """

    name: ClassVar[str] = "ChooseInGroups"
    noise: ClassVar[tuple[str, str]] = NoisyChoice.noise
    bounded_work: ClassVar[bool] = True
    whole_output: ClassVar[bool] = True
    has_interval: ClassVar[bool] = False
    score: str
    quantile: Fraction | None
    candidates: int

    def __post_init__(self) -> None:
        if type(self.candidates) is not int or not 1 <= self.candidates <= MOST_CANDIDATES:
            raise PlanError(f"a choice in each group is among 1 to {MOST_CANDIDATES:,} candidates")
        _ = self.each

    @property
    def each(self) -> Choose:
        """The choice of one group by itself."""
        return Choose(self.score, self.quantile)

    def identity(self) -> tuple[bytes | str, ...]:
        return ("permute and flip in groups", self.score, str(self.quantile), str(self.candidates))

    def check(self, plan: Node) -> None:
        if not isinstance(plan.type, TupleOf) or len(plan.type.elements) != 2 or plan.type.elements[1] != INT:
            raise PlanError(f"a choice in each group needs pairs of a group and a place, not {plan.type}")

    def key_of(self, plan: Node) -> Type:
        self.check(plan)
        group: Type = plan.type.elements[0]  # type: ignore[attr-defined]  # a record, by the check
        return group

    @property
    def sensitivity(self) -> Fraction:
        """The range of the moves of the scores of a group, per unit of its weight."""
        return self.each.sensitivity

    @property
    def shares(self) -> tuple[Fraction, ...]:
        """The shares of epsilon: of the choice, and of the two ends of its interval."""
        return (Fraction(1),) if self.quantile is None else (Fraction(1, 2), Fraction(1, 4), Fraction(1, 4))

    def scales(self, plan: Node, epsilon: Fraction) -> tuple[float, ...]:
        slack = plan_properties(plan).slack()
        return tuple(laplace_scale(epsilon * share, slack, self.sensitivity) for share in self.shares)

    @property
    def draws_per_key(self) -> int:
        return 1 + len(self.shares) * self.candidates // 50

    def draw(self, output: Output, keys: Sequence[Value], scales: Sequence[float], random: RandomBytes) -> list[float]:
        drawn: list[float] = []
        for weights in self.weights(output, keys):
            scores, unit = self.scores(weights, scales)
            found = np.zeros(len(weights), dtype=np.int64)
            for each, scale in zip(scores, scales, strict=True):
                found = found * self.candidates + select_each(each, Fraction(scale) * unit, random)
            drawn += found.astype(np.float64).tolist()
        return drawn

    def weights(self, output: Output, keys: Sequence[Value]) -> Iterator[NDArray[np.float64]]:
        """The weights by group and place, in batches of groups."""
        width = self.candidates if self.quantile is None else 2 * self.candidates + 1
        numbers = {key: number for number, key in enumerate(keys)}
        within = [(min(keys), max(keys))] if {*map(type, keys)} in ({int}, {str}) else []
        held = output.weights(None, within)
        row = np.fromiter((numbers.get(group, -1) for group, _ in held), np.int64, len(held))
        column = np.fromiter((place for _, place in held), np.int64, len(held))
        weight = np.fromiter(held.values(), np.float64, len(held))
        counted = np.flatnonzero((row >= 0) & (column >= 0) & (column < width))
        counted = counted[np.argsort(row[counted], kind="stable")]
        rows = max(1, _AT_ONCE // width)
        for start in range(0, len(keys), rows):
            found = np.zeros((min(rows, len(keys) - start), width))
            part = counted[slice(*np.searchsorted(row[counted], (start, start + rows)))]
            found[row[part] - start, column[part]] = weight[part]
            yield found

    def scores(self, weights: NDArray[np.float64], scales: Sequence[float]) -> tuple[list[NDArray[Any]], int]:
        """The exact scores by group, as whole numbers, and how many of these make 1.

        They are of the choice, and with a quantile of the ends.

        Notes
        -----
        The ends are quantiles of their own, at `q·T − t` and `q·T + t` of the total T. For the lower one, a weight
        between two candidates counts at the lower of them, and all weight below the first at the first: so some
        candidate scores 0. One that is above the quantile scores −t or less, and is chosen with a chance of at most
        `exp(−t/s)/2`: `t = s·ln(20·m)` leaves 2.5 % to all m. The upper end mirrors it.
        """
        share, whole = (0, 1) if self.quantile is None else self.quantile.as_integer_ratio()
        held, unit = _whole_numbers(weights if self.quantile is None else np.maximum(weights, 0.0), whole)
        if self.quantile is None:
            return [held], unit
        sums = np.cumsum(np.insert(held, 0, 0, axis=1), axis=1)  # of all places before each
        cut, unit = share * sums[:, -1:], unit * whole
        off = math.ceil(Fraction(scales[-1]) * Fraction(math.log(20 * self.candidates)) * unit)
        if off > _WIDE:
            sums, cut = sums.astype(object), cut.astype(object)
        sums = whole * sums
        before, after = cut - sums[:, 1:-1:2], sums[:, 2::2] - cut
        lower, upper = before - off, after - off
        lower[:, 0] = upper[:, -1] = 0
        return [
            np.minimum(0, np.minimum(before, after)),
            np.minimum(0, np.minimum(lower, sums[:, 3::2] - cut + off)),
            np.minimum(0, np.minimum(cut + off - sums[:, :-2:2], upper)),
        ], unit

    def kind(self, plan: Node) -> Kind:
        return self.each.kind(plan)

    def answer_scale(self, scale: float) -> float:
        return 0.0

    def error(self, plan: Node, epsilon: Fraction, keys: PublicKeys, confidence: float, stated: Stated) -> float:
        others = tuple(range(self.candidates))
        return self.each.error(plan, epsilon * self.shares[0], others, confidence, stated)

    def explain_noise(self, plan: Node, epsilon: Fraction) -> Iterator[str]:
        scale, *ends = self.scales(plan, epsilon)
        yield f"{self.called(epsilon)} picks one of {self.candidates:,} candidates in each group, by {self.each.by},"
        yield f"with noise of scale {scale:.9g}" + (
            f", and the ends of an interval with {ends[0]:.9g}." if ends else "."
        )


def _whole_numbers(weights: NDArray[np.float64], times: int) -> tuple[NDArray[Any], int]:
    """Weights as whole numbers, and how many of these make a weight of 1.

    So many `times` the sum of them still fits.
    """
    if bool(np.all(np.floor(weights) == weights)) and float(np.abs(weights).sum()) * times < _WIDE:
        return weights.astype(np.int64), 1
    ratios = [weight.as_integer_ratio() for weight in weights.ravel().tolist()]
    unit = max((bottom for _, bottom in ratios), default=1)  # powers of two
    held = np.empty(len(ratios), dtype=object)
    held[:] = [top * (unit // bottom) for top, bottom in ratios]
    return held.reshape(weights.shape), unit
