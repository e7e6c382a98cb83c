"""A spanning tree of pairs, chosen by the data one edge after another: what it spends, compares and asks for next.

The one-way marginals first, with a share of epsilon. Then d − 1 rounds, each of which adds the edge between two
components whose pair is farthest from what the one-ways say of it if the two attributes had nothing to do with one
another, less what the noise of that pair will be. The chosen pairs last. Everything here is public arithmetic:
`wpinq.workflows.table` releases what it asks for.

Source: McKenna, Miklau, Sheldon, "Winning the NIST contest", Journal of Privacy and Confidentiality 11(3), 2021, for a
tree that is chosen by this distance; the penalty, and shares for pure epsilon, are ours.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from wpinq.errors import EpsilonError, PlanError
from wpinq.inference.nonnegative import project_to_total
from wpinq.marginals.attributes import Attributes, MeasuredView, View
from wpinq.noise.epsilon import NANO, parse_epsilon
from wpinq.runtime.arrays import Floats
from wpinq.sinks.compared_marginals import CELLS_LIMIT, VIEWS_LIMIT, ComparedMarginal

SHARES = (Fraction(3, 5), Fraction(1, 10), Fraction(3, 10))
"""Of epsilon, for the one-ways, for the choices, and for the chosen pairs."""

PENALTY = Fraction(1, 2)
"""How much of a pair's noise is taken off its distance."""


@dataclass(frozen=True, slots=True)
class AdaptiveTree:
    """The terms on which a spanning tree of pairs is measured: public, and known before anything is spent.

    Attributes
    ----------
    attributes : Attributes
        Two at least.
    epsilons : tuple of Fraction
        Of the one-ways, of each choice, and of the pairs: together, the choices `rounds` times, what was asked for.
    penalty : Fraction
        γ, at least 0: `γ · (noise of a pair's cells)` is taken off its distance.

    Examples
    --------
    >>> tree = AdaptiveTree.of((4, 3, 2), 1)
    >>> tree.rounds, tree.epsilons
    (2, (Fraction(3, 5), Fraction(1, 20), Fraction(3, 10)))
    >>> [one.view for one in tree.candidates(tree.even(100), [(0, 2)])]
    [(0, 1), (1, 2)]
    """

    attributes: Attributes
    epsilons: tuple[Fraction, Fraction, Fraction]
    penalty: Fraction

    @staticmethod
    def of(
        attributes: Any, epsilon: object, shares: Sequence[object] = SHARES, penalty: object = PENALTY
    ) -> AdaptiveTree:
        """From sizes (or names with sizes), the whole epsilon and how it is split.

        Parameters
        ----------
        attributes : sequence of int, or dict from names to sizes
            The public number of values of each.
        epsilon : number
            More than 0.
        shares : three numbers
            More than 0: for the one-ways, for all choices together, for the pairs. Divided by their sum.
        penalty : number
            γ, at least 0.

        Raises
        ------
        PlanError
            With fewer than two attributes, pairs of too many cells, or numbers that are no shares and no penalty.
        EpsilonError
            Where epsilon is no positive number, or too small to be split.
        """
        known, whole = Attributes.of(attributes), parse_epsilon(epsilon)
        if len(known.sizes) < 2:
            raise PlanError("a tree of pairs needs two attributes at least: for one, measure its marginal")
        pairs = list(combinations(range(len(known.sizes)), 2))
        cells = sum(map(known.cells, pairs))
        if len(pairs) > VIEWS_LIMIT or cells > CELLS_LIMIT:
            raise PlanError(
                f"the {len(pairs):,} pairs have {cells:,} cells; a choice takes {VIEWS_LIMIT:,} with {CELLS_LIMIT:,}: "
                "leave attributes out, or put their values into fewer bins"
            )
        try:
            first, choosing, last = map(parse_epsilon, shares)
            weight = Fraction(0) if penalty == 0 else parse_epsilon(penalty)
        except (EpsilonError, ValueError):
            raise PlanError(
                "epsilon is split in three, each more than 0: shares=(0.6, 0.1, 0.3) for the one-ways, the choices and "
                "the pairs; and penalty is a number of at least 0"
            ) from None
        total = first + choosing + last
        # in whole billionths, as a ledger counts: only the pairs may be left with a rest
        one_ways = _down(whole * first / total)
        choice = _down(whole * choosing / total / (len(known.sizes) - 1))
        if not (one_ways and choice):
            raise EpsilonError("epsilon is too small to be split into a choice for each edge: a choice takes 1e-9")
        rest = whole - one_ways - (len(known.sizes) - 1) * choice
        return AdaptiveTree(known, (one_ways, choice, rest), weight)

    @property
    def rounds(self) -> int:
        """How many edges the tree has, and choices are made."""
        return len(self.attributes.sizes) - 1

    @property
    def one_way_shares(self) -> dict[View, float]:
        """What part of a record's weight each one-way is given: as n^(1/3), which makes the whole variance least."""
        return self._shares([(i,) for i in range(len(self.attributes.sizes))])

    def pair_shares(self, edges: Iterable[View]) -> dict[View, float]:
        """What part of a record's weight each chosen pair is given."""
        return self._shares(edges)

    def noise(self, pair: View) -> float:
        """What noise is expected to add to the distance of a measured pair, of shares alike: `n · (d − 1) / ε`."""
        return float(self.attributes.cells(pair) * self.rounds / self.epsilons[2])

    def one_ways(self, measured: Sequence[MeasuredView]) -> tuple[Floats, ...]:
        """The one-way marginals as least squares has them, none negative and all of one total.

        The total is the mean of their sums by inverse variance, and at least 1.
        """
        found = sorted(measured, key=lambda one: one.view)
        if [one.view for one in found] != [(i,) for i in range(len(self.attributes.sizes))]:
            raise PlanError("a tree of pairs begins with every one-way marginal, each once")
        weights = np.array([1 / (one.variance * one.counts.size) for one in found])
        sums = np.array([one.counts.sum() for one in found])
        total = max(1.0, float((weights * sums).sum() / weights.sum()))
        return tuple(project_to_total(one.counts, total) for one in found)

    def even(self, total: float) -> tuple[Floats, ...]:
        """One-ways without news: what bills stand on before anything is measured."""
        return tuple(np.full(size, total / size) for size in self.attributes.sizes)

    def candidates(self, one_ways: Sequence[Floats], edges: Iterable[View]) -> tuple[ComparedMarginal, ...]:
        """The pairs that may be the next edge, each against the product of its one-ways, less its share of noise."""
        component = list(range(len(self.attributes.sizes)))
        for a, b in edges:
            if component[a] == component[b]:
                raise PlanError(f"the edge {self.attributes.shown((a, b))} closes a circle: a tree has none")
            component = [component[a] if one == component[b] else one for one in component]
        total = float(one_ways[0].sum())
        return tuple(
            ComparedMarginal(
                (a, b), (one_ways[a], one_ways[b], [1 / total]), penalty=float(self.penalty) * self.noise((a, b))
            )
            for a, b in combinations(range(len(component)), 2)
            if component[a] != component[b]
        )

    def _shares(self, views: Iterable[View]) -> dict[View, float]:
        # rounded, so that a power that another machine rounds otherwise plans the same measurement
        return {view: round(math.cbrt(self.attributes.cells(view)), 6) for view in sorted(views)}


def _down(epsilon: Fraction) -> Fraction:
    return Fraction(math.floor(epsilon * NANO), NANO)
