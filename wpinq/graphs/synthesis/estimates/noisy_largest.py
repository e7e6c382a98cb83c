"""What a noisy largest degree tells of a curve of how many nodes have each degree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wpinq.arrays import Floats

_SEEN = 2.0
"""The power of the law of a random graph's largest degree that is left when the curve was fitted: what the answers tell
of the curve, they tell of the nodes of the graph at hand, whose largest degree is less uncertain."""
_LEAST, _MANY = 1e-300, 500.0


@dataclass(frozen=True, slots=True)
class NoisyLargest:
    """The largest degree plus two-sided geometric noise.

    Of a curve with N(d) nodes above d, as many being there at random (Poisson), the largest degree is at most d with a
    chance of `exp(−N(d))`. A hub is a node that is known besides: the largest degree is no less.

    Attributes
    ----------
    number : float
        The noisy degree.
    scale : float
        The scale of the noise.
    """

    number: float
    scale: float

    def likely(self, nodes: Floats, hub: int, power: float = 1.0) -> Floats:
        """The logarithm of how likely each degree 1, 2, … is to be the largest, times that of how likely the answer is.

        `nodes` is how many nodes of the curve have each of these degrees; `hub` is 0 where there is none.
        """
        above, degree = above_each(nodes) - nodes, np.arange(1, len(nodes) + 1)
        law = -above + np.log(np.maximum(-np.expm1(-nodes), _LEAST))
        if hub:
            law[: hub - 1], law[hub - 1] = -np.inf, -above[hub - 1]
        return np.asarray(power * law - np.abs(degree - self.number) / self.scale)

    def misfit(self, nodes: Floats, hub: int) -> tuple[float, Floats]:
        """Minus the logarithm of the likelihood, and its slope by the logarithm of each of `nodes`."""
        likely = self.likely(nodes, hub)
        least = -float(np.logaddexp.reduce(likely))
        chance, few = np.exp(likely + least), np.clip(nodes, _LEAST, _MANY)
        own = np.where(np.arange(1, len(nodes) + 1) > hub, few / np.expm1(few), 0.0)
        return least, (chance.cumsum() - chance) * nodes - chance * own

    def gains(self, nodes: Floats, hub: int) -> Floats:
        """By how much the logarithm of the likelihood grows with a hub more, by its degree."""
        curve, degree = self.likely(nodes, 0), np.arange(1, len(nodes) + 1)
        beyond = np.append(np.logaddexp.accumulate(curve[::-1])[::-1][1:], -np.inf)
        own = nodes - above_each(nodes) - np.abs(degree - self.number) / self.scale
        with_it = np.logaddexp(own, beyond)
        before = np.logaddexp.reduce(curve) if hub == 0 else with_it[hub - 1]
        return np.where(degree > hub, with_it - before, 0.0)

    def median(self, nodes: Floats, hub: int) -> int:
        """The median of what the answers leave of the largest degree.

        Examples
        --------
        >>> curve = 100 * np.exp(-np.arange(1, 41) / 4)
        >>> [NoisyLargest(30, scale).median(curve, hub=0) for scale in (100, 5, 0.1)]
        [25, 26, 30]
        """
        likely = self.likely(nodes, hub, _SEEN)
        chance = np.exp(likely - likely.max()).cumsum()
        return int(np.searchsorted(chance, chance[-1] / 2)) + 1


def above_each(nodes: Floats) -> Floats:
    """How many nodes are of degree > y, y = 0, 1, …, by how many are of degree 1, 2, …"""
    return np.asarray(nodes[::-1].cumsum()[::-1])
