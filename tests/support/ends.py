"""How far an end of a new edge moves closed wedges by tag: by the formulas of what a wedge weighs, at each degree."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

import wpinq as wp
from wpinq.graphs import tags
from wpinq.plan.sensitivity.closed_wedges import ClosedWedges, closed_wedges

ENDS: tuple[tuple[Sequence[int], Sequence[Fraction]], ...] = tuple(
    (limits, [Fraction(weight) for weight in weights])
    for limits, weights in (
        ([1], [1]),
        ([2], [1]),
        ([1, 2], [1, 1]),
        ([2, 8, 32], [1, 1, 1]),
        ([2, 8, 32], [1, "1/2", "1/4"]),
        ([2, 8, 32], ["1/4", "1/2", 1]),
        ([3, 20], [1, "1/16"]),
        ([3, 4, 40], ["1/8", 1, "1/8"]),
        ([10, 60, 61], [0, 1, 0]),
        ([1, 50], [0, 1]),
        ([1, 50], [1, "1/4"]),
        ([5, 6, 7, 70], [1, 0, 0, "2/3"]),
    )
)
"""Limits of degrees above 0, and what is left of the weight under each tag."""


def form(limits: Sequence[int], weights: Sequence[Fraction]) -> ClosedWedges:
    """The form of the recipe, with weights put in by hand: the recipe takes none that is 0."""
    edges = wp.source("edges", src=int, dst=int, facts=["unit_weights", "simple"])
    found = closed_wedges(tags.closed_wedges_by_tag(edges, [0, *limits]).plan)
    assert found is not None
    return ClosedWedges(found.source, found.closing, found.tag, found.widths, weights)


def moved_by_one_end(limits: Sequence[int], weights: Sequence[Fraction], degree: int) -> Fraction:
    """What an end gains or loses in each tag when it has one neighbour more, every pair of neighbours being closed.

    A wedge weighs `t_i / (d·((d − 1)/2 + 2·Σ_j t_j))`, by the docstring of the recipe.
    """

    def wedge(d: int) -> list[Fraction]:
        held = [Fraction(min(max(d - low, 0), high - low), 2) for low, high in zip((0, *limits), limits, strict=False)]
        return [t / (d * (Fraction(d - 1, 2) + 2 * sum(held))) for t in held] if d else [Fraction(0)] * len(limits)

    total, pairs = Fraction(0), Fraction(degree * (degree - 1), 2)
    for weight, before, after in zip(weights, wedge(degree), wedge(degree + 1), strict=True):
        change = pairs * (after - before)
        total += weight * max(degree * after + max(change, Fraction(0)), -change)
    return total


def broken_ends() -> bool:
    """Whether both ends are said to move less than they do, at any degree, also beyond the last limit."""
    for limits, weights in ENDS:
        worst = max(moved_by_one_end(limits, weights, degree) for degree in range(3 * limits[-1] + 3))
        if form(limits, weights).of_both_ends < 2 * worst:
            return True
    return False


def largest_by_hand(limits: Sequence[int], weights: Sequence[Fraction]) -> Fraction:
    """Twice the largest bound of the proof at any degree: `d·(Ω + ω·(3d + 1)/2) / ((d + 1)(3d + 2))` and beyond."""
    below = [Fraction(0), *accumulate(w * (b - a) for w, a, b in zip(weights, (0, *limits), limits, strict=False))]
    found = below[-1] / (3 * (limits[-1] + 1))
    for tag, (low, high) in enumerate(zip((0, *limits), limits, strict=False)):
        for d in range(low, high):
            full = below[tag] - weights[tag] * low + weights[tag] * Fraction(3 * d + 1, 2)
            found = max(found, d * full / ((d + 1) * (3 * d + 2)))
    return 2 * found
