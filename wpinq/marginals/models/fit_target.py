"""The target of a fit, noisy marginals with weights and a total, and mirror descent to it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from wpinq.errors import AnswersError
from wpinq.inference.checks import positive
from wpinq.inference.least_squares import project_to_total
from wpinq.marginals.attributes import Attributes, MeasuredView, View
from wpinq.marginals.residual_basis import ConsistentMarginals
from wpinq.runtime.arrays import Floats

_FLOOR = 0.25
"""The least count of a value that a fit begins with, in deviations of its noise: from 0 no step leads away."""
_CLOSEST = 0.4
_SLOPE = 0.35


@dataclass(frozen=True, slots=True, eq=False)
class FitTarget:
    """Noisy marginals as a fit needs them.

    The loss of a model with marginals m is `L = ½ Σ_a ‖m_a − y_a‖² / (2 b_a²)`. At the truth it is half the number of
    measured cells, in expectation.

    Attributes
    ----------
    attributes : Attributes
        The attributes of the table.
    views : tuple of MeasuredView
        What was measured, but for totals, which no cell of a model tells.
    total : float
        The best linear unbiased estimate of the number of records; 1 where that is less.
    singles : tuple of arrays
        For each attribute, the share of each value by least squares made non-negative, more than 0: where fits begin.
    limit : float
        The loss at which a fit stops.
    """

    attributes: Attributes
    views: tuple[MeasuredView, ...]
    total: float
    singles: tuple[Floats, ...]
    limit: float

    @staticmethod
    def of(views: Sequence[MeasuredView], attributes: Attributes, stop: float | None) -> FitTarget:
        """From measured views; `stop` is the loss to stop at over that of the truth, `stopping_ratio` where None."""
        held = tuple(measured for measured in views if measured.view)
        if not held:
            raise AnswersError("a joint model needs a measured view of one attribute at least: measure some")
        for measured in held:
            if not np.isfinite(measured.counts).all():
                raise AnswersError(
                    f"counts of the view {attributes.shown(measured.view)} must be finite: nan and infinity are none"
                )
            positive(measured.scale, "the scale of a measured view")
        answers = ConsistentMarginals(list(views), attributes)
        total = max(float(answers.marginal(())), 1.0)
        known = {place for measured in held for place in measured.view}
        singles = tuple(
            _shares(answers, held, place, total) if place in known else np.full(size, 1 / size)
            for place, size in enumerate(attributes.sizes)
        )
        cells = sum(measured.counts.size for measured in held)
        ratio = stopping_ratio(held, total) if stop is None else positive(stop, "stop")
        return FitTarget(attributes, held, total, singles, ratio * cells / 2)

    @property
    def cells(self) -> int:
        """How many cells were measured."""
        return sum(measured.counts.size for measured in self.views)


def stopping_ratio(views: Sequence[MeasuredView], total: float) -> float:
    """How close a fit should come to noisy marginals: its loss over that of the truth.

    `c = 1 − 0.35 · F² · log₁₀ x`, at least 0.4 and at most 1, with `x = N Σ_a (1/b_a) / cells`, the records for each
    measured cell, in units of its noise, and `F = rank / cells`, the share of cells that the others do not determine.
    It looks at public sizes and the noisy total, and at no other answer.

    Parameters
    ----------
    views : sequence of MeasuredView
        What was measured: N records, noise of scale b_a in each cell of the view a.
    total : float
        The noisy number of records, more than 0.

    Notes
    -----
    A fit that follows its answers farther follows the noise. Where there are few records to a cell, the truth's own
    loss, c = 1, is where to stop. Where there are many, there is much to tell, and on the way there a model comes
    closer to the answers than the truth is, by the numbers that it is free to choose. The form and the constants were
    read off fits to tables of nine kinds: `docs/joint_models.md` has them.

    Examples
    --------
    >>> pair = MeasuredView((0, 1), np.zeros((9, 16)), scale=1.0)
    >>> stopping_ratio([pair], 144.0), round(stopping_ratio([pair], 1440.0), 2), stopping_ratio([pair], 1e6)
    (1.0, 0.65, 0.4)
    """
    cells = sum(measured.counts.size for measured in views)
    records = total * sum(1 / measured.scale for measured in views) / cells
    return min(1.0, max(_CLOSEST, 1 - _SLOPE * (_rank(views) / cells) ** 2 * math.log10(records)))


def _rank(views: Sequence[MeasuredView]) -> int:
    """How many independent numbers the views have together: `Π_{i∈S} (n_i − 1)` for every S that one of them holds."""
    dimensions: dict[View, int] = {}
    for measured in views:
        many = [(i, size - 1) for i, size in zip(measured.view, measured.counts.shape, strict=True) if size > 1]
        spaces: list[tuple[View, int]] = [((), 1)]
        for place, dimension in many:
            spaces += [((*space, place), known * dimension) for space, known in spaces]
        dimensions.update(spaces)
    return sum(dimensions.values())


def _shares(answers: ConsistentMarginals, views: Sequence[MeasuredView], place: int, total: float) -> Floats:
    """The shares of one attribute's values, none of them 0."""
    counts = project_to_total(answers.marginal((place,)), total)
    precision = sum(len(counts) / (m.variance * m.counts.size) for m in views if place in m.view)
    floor = min(_FLOOR / math.sqrt(precision), total / len(counts))
    shares = np.maximum(counts, floor)
    return np.asarray(shares / shares.sum())


# --- entropic mirror descent over `p ∝ exp(Σ_a θ_a)` ------------------------------------------------------------------

Beliefs = Callable[[list[Floats]], list[Floats]]
"""From a potential for each measured view to the probabilities of its cells under `p ∝ exp(Σ_a θ_a)`."""

_SUFFICIENT = 0.45
_LONGER = 1.5
_SETTLED = 1e-10
"""A step that promises less than this share of the loss is the last."""


@dataclass(frozen=True, slots=True, eq=False)
class Descent:
    """Where mirror descent ended: a potential for each view, the loss, and the steps that were taken."""

    potentials: list[Floats]
    loss: float
    steps: int


def mirror_descent(target: FitTarget, beliefs: Beliefs, steps: int) -> Descent:
    """Steps `θ ← θ − s ∇_μ L` until the loss is at the target's limit.

    A step is halved until the loss falls by 0.45 of what its slope promises, and the next one is half as long again.
    The first is one that surely descends: `L` curves by at most `Σ_a N²/(2 b_a²)` in units of relative entropy
    (Pinsker). The start is the product of the target's single shares.

    Source: Beck and Teboulle, *Mirror descent and nonlinear projected subgradient methods*, 2003; McKenna, Sheldon and
    Miklau, *Graphical-model based estimation and inference for differential privacy*, ICML 2019, Algorithm 1.
    """
    potentials = starting_potentials(target)
    now = beliefs(potentials)
    loss, slopes = loss_and_slopes(target, now)
    length = 1 / sum(target.total**2 / measured.variance for measured in target.views)
    for step in range(steps):
        if loss <= target.limit:
            return Descent(potentials, loss, step)
        while True:
            tried = [theta - length * slope for theta, slope in zip(potentials, slopes, strict=True)]
            then = beliefs(tried)
            left, steeper = loss_and_slopes(target, then)
            promised = sum(float(np.vdot(g, a - b)) for g, a, b in zip(slopes, now, then, strict=True))
            if promised <= _SETTLED * loss:
                return Descent(potentials, loss, step)
            if loss - left >= _SUFFICIENT * promised:
                break
            length /= 2
        potentials, now, loss, slopes = tried, then, left, steeper
        length *= _LONGER
    return Descent(potentials, loss, steps)


def loss_and_slopes(target: FitTarget, beliefs: list[Floats]) -> tuple[float, list[Floats]]:
    """The loss of a model with these probabilities of the views' cells, and its derivatives by them."""
    loss, slopes = 0.0, []
    for measured, shares in zip(target.views, beliefs, strict=True):
        gap = target.total * shares - measured.counts
        loss += float(np.vdot(gap, gap)) / (2 * measured.variance)
        slopes.append(gap * (target.total / measured.variance))
    return loss, slopes


def starting_potentials(target: FitTarget) -> list[Floats]:
    """Potentials of the product of the single shares: each attribute's in the first view that holds it."""
    potentials = [np.zeros_like(measured.counts, dtype=np.float64) for measured in target.views]
    waiting = set(range(len(target.attributes.sizes)))
    for potential, measured in zip(potentials, target.views, strict=True):
        for axis, place in enumerate(measured.view):
            if place in waiting:
                waiting.remove(place)
                shape = [1] * potential.ndim
                shape[axis] = -1
                potential += np.log(target.singles[place]).reshape(shape)
    return potentials
