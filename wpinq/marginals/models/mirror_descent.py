"""Entropic mirror descent: the distribution `p ∝ exp(Σ_a θ_a)` whose marginals are nearest to noisy ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from wpinq.arrays import Floats
from wpinq.marginals.models.fit_target import FitTarget

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
