"""Degrees of a graph from noisy masses by tag, and from a noisy largest degree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wpinq.errors import AnswersError
from wpinq.graphs.synthesis.estimates import ROUNDED, curve_basis, laplace_misfit, most_likely
from wpinq.graphs.tags import tag_weights
from wpinq.runtime.arrays import Floats, Integers

#: The power of the law of a random graph's largest degree that is left when the curve was fitted: what the answers tell
#: of the curve, they tell of the nodes of the graph at hand, whose largest degree is less uncertain.
_SEEN = 2.0
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
        """The log-likelihood of each degree 1, 2, … as the largest, and of the answer given it.

        The sum of both, the first multiplied by `power`. `nodes` is how many nodes of the curve have each of these
        degrees; `hub` is 0 where there is none.
        """
        above, degree = above_each(nodes) - nodes, np.arange(1, len(nodes) + 1)
        law = -above + np.log(np.maximum(-np.expm1(-nodes), _LEAST))
        if hub:
            law[: hub - 1], law[hub - 1] = -np.inf, -above[hub - 1]
        return np.asarray(power * law - np.abs(degree - self.number) / self.scale)

    def misfit(self, nodes: Floats, hub: int) -> tuple[float, Floats]:
        """Minus the logarithm of the likelihood, and its slope by the logarithm of each of `nodes`."""
        likely = self.likely(nodes, hub)
        highest = float(likely.max())
        chance, few = np.exp(likely - highest), np.clip(nodes, _LEAST, _MANY)
        total = float(chance.sum())
        least, chance = -highest - math.log(total), chance / total
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
    """The number of nodes of degree > y, y = 0, 1, …, from those of degree 1, 2, …."""
    return np.asarray(nodes[::-1].cumsum()[::-1])


#: Roughness is of a degree that has a tag of its own. As much of each degree that shares one, and the likeliest curve
#: has what a wide tag holds at one of its degrees.
_BEND, _ROUGHNESS = 1.0, 0.3
#: By which powers of the degree curves may fall, as at the end of a tail, in parts of the highest degree whose mass
#: stands out; up to how many parts, as beyond they could as well rise; and the standard deviation of the fall there.
_CUT_OFFS = ((1, 8.0, 20.0), (2, 8.0, 20.0), (8, 1.5, 2.0))
#: Scales of its noise that a mass is larger than, so that it is not taken for noise.
_STANDS_OUT = 5.0
#: Scales of its noise that a mass, and so a degree, may have and be hidden.
_LEAST_REACH = 20.0
#: Scales of its noise that the largest degree is taken to be above its answer, at the most.
_REACH_BEYOND = 5.0
#: The curve ends at so many times the highest degree whose mass stands out, unless nodes beyond make the answers
#: likelier, by this natural logarithm. For a tail of a few nodes costs nothing where noise of the masses hides it, and
#: follows a largest degree whose noise is large by chance.
_ENDS, _BEYOND = 2, 1.5
#: The part of all deviations with which the search begins again: their prior has many optima, most of them too far out.
_MILDER = 0.3
#: A deviation, as of normal noise, that rounding to whole numbers hides; less makes the optimum hard to find.
_WHOLE = 0.3
#: Of a search, and how often it begins anew; one that gains less of the logarithm of the likelihood has ended.
_ITERATIONS, _ROUNDS, _GAIN = 100, 30, 0.01
#: The natural logarithm of how much likelier a node off the curve must make the answers.
_INSISTENCE = 4.0
#: How many degrees are tried for one such node: more tries wander among likely ones, each a fit, and gain nothing.
_TRIES = 3


def estimate_degrees(
    mass: Floats, scale: float, limits: Sequence[int], largest: NoisyLargest | None = None
) -> Integers:
    """The degrees that noisy masses of degree make most likely.

    The number of nodes of degree d is `exp(f(log2 d) − a·d/D − b·(d/D)² − c·(d/D)⁸ + g(d))`. f is a curve whose slope
    changes by about 1 over an octave; a, b and c are the sizes of normal numbers of deviations 20, 20 and 2, D the
    upper limit of the highest tag whose mass stands out of noise, so that tails may end as an exponential or a normal
    one does, or at once, and not as a power law alone; g is independent for each degree, Cauchy of scale 0.3/√s where
    s degrees share a tag. Spikes and ends that the data insist on are followed; where noise is larger than what is
    there, the curve tells. (Were they of either sign, some noise on the highest tags would raise a hill there.) The
    curve ends at 2·D, unless nodes beyond make the answers e^1.5 times as likely.

    The nodes of the graph at hand vary around the curve as at random (Poisson), and masses tell how. The k-th degree
    from above is then `Σ_y min(max(nodes above y − k + 1, 0), 1)`: the degrees keep the mass of these nodes. Without a
    noisy largest degree, the largest is nearer to its median the less stands out of noise. Single nodes far off the
    curve, hubs, are found first, one by one, as long as each makes the answers e⁴ times as likely. A noisy largest
    degree has a say in both (see `NoisyLargest`). Then the largest is the median of what is left of it, and the second
    gets the difference.

    Parameters
    ----------
    mass : array of shape (tags,)
        `Σ_a t_i(d_a)` plus noise (see `degree_mass_by_tag`).
    scale : float
        The scale of that noise.
    limits : sequence of int
        The limits of the tags.
    largest : NoisyLargest, optional
        The largest degree plus noise.

    Returns
    -------
    ndarray of int64
        Degrees, rising, all > 0. No simple graph need have them.

    Raises
    ------
    AnswersError
        When fewer than two degrees are left.

    Notes
    -----
    Costs no privacy: it reads released numbers only. Narrow tags at low degrees tell how many nodes have each, wide
    ones pin the tail with few numbers (`docs/synthesis_design.md`).

    Examples
    --------
    >>> estimate_degrees(np.array([4.0, 2.0, 1.0, 0.5, 0.0]), 0.05, [0, 1, 2, 3, 4, 8])
    array([1, 1, 1, 1, 2, 2, 3, 4])
    """
    fitted = _Fitted(mass, scale, limits, largest)
    while fitted.take_out_a_node():
        pass
    above = above_each(fitted.counted())
    ranks = np.arange(math.floor(above[0] + 0.5) + 1)
    higher = np.searchsorted(-above, -ranks, side="right")
    held = ranks * higher + np.append(above[::-1].cumsum()[::-1], 0.0)[higher]
    found = np.sort(np.maximum(np.floor(np.diff(held) + 0.5), 1).astype(np.int64))
    if len(found) and largest is None:
        median = int(np.sum(above > 0.5))
        seen = ((found[-1] - median) / 2) ** 2
        found[-1] = median + round((found[-1] - median) * seen / (seen + 2 * scale**2))
    found = np.sort(np.concatenate([found, np.array(fitted.taken_out, dtype=np.int64)]))
    if len(found) < 2:
        raise AnswersError("noise dominates the released degrees: measure with a larger epsilon or share")
    if largest is not None:
        top = largest.median(fitted.nodes(), max(fitted.taken_out, default=0))
        found[-2:] = found[-2] + found[-1] - top, top  # the sum is as the masses tell it
        found = np.sort(np.clip(found, 1, top))
    return found


def with_edges(degrees: Integers, low: float, high: float) -> Integers:
    """Degrees with a number of edges in an interval.

    A number of edges is whole: where none is within, it is the nearest. Stubs are added, or taken, at evenly spaced
    ones. A curve loses what it smooths away, and the sum of masses does not.

    Examples
    --------
    >>> with_edges(np.array([1, 1, 2, 4]), 5, 6), with_edges(np.array([1, 1, 2, 4]), 3, 4)
    (array([1, 1, 3, 5]), array([1, 1, 2, 4]))
    """
    stubs = int(degrees.sum())  # of an odd number the last is lost
    least, most = math.ceil(low), math.floor(high)
    least, most = (least, most) if least <= most else (round((low + high) / 2),) * 2
    more = 2 * max(least - stubs // 2, 0) - 2 * max(stubs // 2 - most, 0)
    if not stubs or not more:
        return degrees
    places = (np.arange(abs(more)) + 0.5) * stubs / abs(more)
    changes = np.bincount(np.searchsorted(np.cumsum(degrees), places, side="right"), minlength=len(degrees))
    return np.asarray(degrees + np.sign(more) * changes)


def _reach(seen: Sequence[int], scale: float, limits: Sequence[int], largest: NoisyLargest | None) -> int:
    """A degree beyond all that the answers allow.

    It is twice the largest that they show, and all that noise may hide.
    """
    reach = 2 * max([*seen, math.ceil(_LEAST_REACH * scale)])
    if largest is not None:
        reach = max(reach, math.ceil(largest.number + _REACH_BEYOND * largest.scale))
    return min(reach, limits[-1])


class _Fitted:
    """The most likely curve, and the nodes taken out of the answers for being far off it."""

    def __init__(self, mass: Floats, scale: float, limits: Sequence[int], top: NoisyLargest | None) -> None:
        self._mass, self._noise, self._top = mass, np.sqrt(2) * scale, top
        seen = [limit for limit, weight in zip(limits[1:], mass, strict=True) if weight > _STANDS_OUT * scale]
        largest = _reach(seen, scale, limits, top)
        degree = np.arange(1.0, largest + 1)
        curve = curve_basis(np.log2(degree), level=10.0, slope=3.0, bend=_BEND)
        beyond = degree / max(seen, default=largest)
        ends = [size * np.minimum(beyond, farthest) ** power for power, farthest, size in _CUT_OFFS]
        self._curve = np.column_stack([curve, *ends])
        self._tags = tag_weights(limits, largest)[1:]
        self._bends = self._curve.shape[1]
        shared = np.diff([min(limit, largest) for limit in limits])
        self._rough = _ROUGHNESS / np.sqrt(np.repeat(shared, shared))
        self.taken_out: list[int] = []
        self._hub = 0
        start = np.zeros(self._bends + largest)
        start[:2] = np.log(max(float(mass[0]) / limits[1], 1.0)) / 10, -1 / 3
        self._most = np.full(len(start), np.inf)
        self._most[self._bends - len(_CUT_OFFS) : self._bends] = 0.0
        self._inside = np.ones(largest, dtype=bool)
        self._z = self._fit(start)
        least, mild = self._negative(self._z)[0], np.where(np.arange(len(start)) < self._bends, 1.0, _MILDER)
        self._inside = degree <= _ENDS * max(seen, default=largest)
        ended = min(map(self._fit, (self._z, mild * self._z)), key=lambda z: self._negative(z)[0])
        if self._negative(ended)[0] < least + _BEYOND:
            self._z = ended
        else:
            self._inside[:] = True

    def nodes(self) -> Floats:
        """The numbers of nodes of the curve of degree 1, 2, …."""
        return self._nodes(self._z)

    def counted(self) -> Floats:
        """The likeliest numbers of nodes of degree 1, 2, …, if the curve is their mean.

        The nodes of one graph are there at random (Poisson): where few are, at high degrees, masses tell more than a
        smooth curve does.
        """
        nodes = self.nodes()
        deviation = np.sqrt(nodes)

        def negative(z: Floats) -> tuple[float, Floats]:
            misfit, slope = laplace_misfit(self._off(nodes - deviation * z, self._mass))
            return float(misfit.sum() + 0.5 * z @ z), z - deviation * (self._tags @ (slope / self._noise))

        return np.asarray(nodes - deviation * most_likely(negative, np.zeros(len(nodes)), _ITERATIONS, deviation))

    def take_out_a_node(self) -> bool:
        """Take out the node whose degree the curve misses most, if the answers strongly imply one.

        A curve has no way to a single node far above the others: all that is between them would have to be empty. So
        each degree is tried for how much likelier the answers were with one node more there. At first this is beside
        the curve as it is, which understates it, then beside one that is fitted without the node.
        """
        before, mass, hub = self._negative(self._z)[0], self._mass, self._hub
        z, tried, gains = self._z, list[int](), self._gains(self._z, mass, hub, moving=True)
        best, degree = (before - _INSISTENCE, 0, z), int(np.argmax(gains)) + 1
        if gains[degree - 1] < _INSISTENCE:  # a curve bent up to the largest hides it
            degree = min(max(round(self._top.number), 1), len(gains)) if self._top is not None and not hub else 0
        while degree and degree not in tried and len(tried) < _TRIES:
            tried.append(degree)
            self._mass, self._hub = mass - self._tags[degree - 1], max(hub, degree)
            z = self._fit(z)
            best = min(best, (self._negative(z)[0], degree, z), key=lambda fit: fit[0])
            degree = int(np.argmax(self._gains(z, mass, hub, moving=False))) + 1
        _, degree, self._z = best
        self._mass, self._hub = (mass - self._tags[degree - 1], max(hub, degree)) if degree else (mass, hub)
        self.taken_out += [degree] * (degree > 0)
        return degree > 0

    def _gains(self, z: Floats, mass: Floats, hub: int, moving: bool) -> Floats:
        """By how much the logarithm of the likelihood grows with a node more, for each degree of it.

        A curve that was fitted with all nodes has it already: above all nodes of the curve it is the highest of these,
        which moves, and the tags below are full as they are.
        """
        nodes = self._nodes(z)
        off, last = self._off(nodes, mass), int(np.sum(above_each(nodes) > 0.5))
        beyond = moving * (np.arange(len(nodes)) >= last)
        moved = self._tags - self._tags[max(last - 1, 0)] * beyond[:, None]
        now, with_it = (_misfit(each, self._noise)[0] for each in (off, off + moved / self._noise))
        gains = -np.asarray((with_it - now).sum(axis=1))
        return gains if self._top is None else gains + self._top.gains(nodes, hub)

    def _fit(self, z: Floats, rounds: int = _ROUNDS) -> Floats:
        """The most likely variables, from a start.

        The few masses know some sums of the many variables far better than the prior does: a search among these goes
        to and fro in a narrow valley. The curvature of the likelihood and the prior is about that of a diagonal matrix
        and as many directions as there are masses. So the search is among variables without that curvature, but for
        the cut-offs, which have a bound. It begins anew with the curvature where it ended, as long as that leads lower.
        """
        nodes, bounded = self._nodes(z), np.isfinite(self._most)
        off = self._off(nodes, self._mass) + _LEAST  # no 0/0
        changes = self._tags * nodes[:, None] * np.sqrt(_misfit(off, self._noise)[1] / off) / self._noise
        changes = np.vstack([self._curve.T @ changes, self._rough[:, None] * changes])
        own = np.where(np.arange(len(z)) < self._bends, 1.0, 2.0)
        own[bounded] += (changes[bounded] ** 2).sum(axis=1)
        deviation, changes[bounded] = 1 / np.sqrt(own), 0.0
        told, much, _ = np.linalg.svd(deviation[:, None] * changes, full_matrices=False)

        def even(y: Floats) -> Floats:
            return np.asarray(y + told @ ((1 / np.hypot(1, much) - 1) * (told.T @ y)))

        def negative(y: Floats) -> tuple[float, Floats]:
            least, gradient = self._negative(z + deviation * even(y))
            return least, even(deviation * gradient)

        y = most_likely(negative, np.zeros(len(z)), _ITERATIONS, (self._most - z) / deviation)
        gain, z = negative(0 * y)[0] - negative(y)[0], z + deviation * even(y)
        return self._fit(z, rounds - 1) if rounds > 1 and gain > _GAIN else z

    def _nodes(self, z: Floats) -> Floats:
        smooth, rough = z[: self._bends], z[self._bends :]
        return np.asarray(self._inside * np.exp(np.minimum(self._curve @ smooth + self._rough * rough, 30.0)))

    def _off(self, nodes: Floats, mass: Floats) -> Floats:
        return np.asarray((nodes @ self._tags - mass) / self._noise)

    def _negative(self, z: Floats) -> tuple[float, Floats]:
        """Minus the logarithm of the likelihood and the prior, up to a constant, and its gradient."""
        nodes = self._nodes(z)
        misfit, slope = _misfit(self._off(nodes, self._mass), self._noise)
        by_curve, top_misfit = (self._tags @ (slope / self._noise)) * nodes, 0.0
        if self._top is not None:
            top_misfit, by_top = self._top.misfit(nodes, self._hub)
            by_curve += by_top
        smooth, rough = z[: self._bends], z[self._bends :]
        least = misfit.sum() + top_misfit + 0.5 * smooth @ smooth + np.log1p(rough * rough).sum()
        by_rough = self._rough * by_curve + 2 * rough / (1 + rough * rough)
        return float(least), np.concatenate([self._curve.T @ by_curve + smooth, by_rough])


def _misfit(off: Floats, noise: float) -> tuple[Floats, Floats]:
    """The misfit of whole numbers under Laplace noise, as `laplace_misfit`, but rounded.

    It is rounded as far as normal noise of `_WHOLE` is as steep as this noise.
    """
    return laplace_misfit(off, max(ROUNDED, np.sqrt(2) * (_WHOLE / noise) ** 2))
