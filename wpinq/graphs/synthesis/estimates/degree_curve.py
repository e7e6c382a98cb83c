"""Degrees from noisy degree mass by tag, and from a noisy largest degree."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from wpinq.errors import AnswersError
from wpinq.graphs.tags import tag_weights
from wpinq.runtime.arrays import Floats, Integers

# The prior of all estimates, a curve over log2 of the degree, and the misfit to answers.
#
# A curve is a level, a slope and a bend at each knot, the bends independent and normal: an integrated random walk,
# whose
# posterior mode is a smoothing spline (Wahba, JRSS B 1978). Written in standard normal variables z it is `basis @ z`,
# so that the prior is `‖z‖²/2` and an optimiser needs no scaling.

SPACING = 0.5
"""Between knots, in octaves."""
_OUT_OF_STEPS = 1
"""What SciPy's L-BFGS-B says when it did all iterations it was given."""
_GAIN = 0.01
"""Of the logarithm of a likelihood; a search that gains less by beginning anew has ended."""


def curve_basis(at: Floats, level: float, slope: float, bend: float) -> Floats:
    """The matrix B for which `B @ z`, z standard normal, is a random curve at the given points.

    Parameters
    ----------
    at : array of shape (n,)
        Where, in octaves.
    level, slope : float
        Standard deviations of the curve and of its slope per octave at the lowest point.
    bend : float
        Standard deviation of the change of the slope over one octave.

    Returns
    -------
    array of shape (n, variables)

    Examples
    --------
    >>> curve_basis(np.array([0.0, 0.5, 1.0]), level=1.0, slope=2.0, bend=0.0).tolist()
    [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 2.0, 0.0]]
    """
    place = (at - at.min()) / SPACING
    knots = max(3, int(np.ceil(place.max())) + 1)
    number = np.arange(knots)
    curve = np.zeros((knots, knots))
    curve[:, 0] = level
    curve[:, 1] = slope * SPACING * number
    for knot in range(2, knots):
        curve[knot:, knot] = bend * SPACING**1.5 * (number[knot:] - knot + 1)
    left = np.minimum(place.astype(np.int64), knots - 2)
    share = (place - left)[:, None]
    return np.asarray((1 - share) * curve[left] + share * curve[left + 1])


def most_likely(
    negative: Callable[[Floats], tuple[float, Floats]], start: Floats, iterations: int, most: Floats | None = None
) -> Floats:
    """The point, nowhere above `most`, where a function, given with its gradient, is least, by L-BFGS.

    A search that thinks it has ended begins anew where it stands, as long as that leads lower: one that met a bound
    from a steep place takes steps too small to tell from an end.
    """
    from scipy.optimize import Bounds, minimize

    options = {"maxiter": iterations, "maxfun": 2 * iterations, "maxcor": 20, "ftol": 1e-9}
    bounds = None if most is None else Bounds(ub=most)
    point, least = start, np.inf
    while True:
        found = minimize(negative, point, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        if found.status == _OUT_OF_STEPS or not found.fun < least - _GAIN:
            return np.asarray(found.x)
        point, least = found.x, found.fun


def evidence_mean(estimates: Sequence[Floats], evidence: Sequence[float]) -> Floats:
    """The mean of estimates, each weighted by its evidence, of which the natural logarithm is given.

    Examples
    --------
    >>> evidence_mean([np.array([1.0]), np.array([4.0])], [np.log(2e-300), np.log(1e-300)]).round(9).tolist()
    [2.0]
    """
    relative = np.exp(np.asarray(evidence) - max(evidence))
    return np.asarray(np.average(np.stack(estimates), axis=0, weights=relative))


# --- the misfit of estimates under Laplace noise ----------------------------------------------------------------------

# Where several answers say one thing, the mean absolute difference tells twice what the mean square does: noise of
# standard deviation 1 has Fisher information 2 by its law, 1 by that of normal noise. It is rounded where it is 0, so
# that a search by gradients ends.

INFORMATION = 2.0
"""The Fisher information of an answer in deviations: the curvature to count, for at a point it is all or nothing."""
ROUNDED = 0.3
"""In deviations."""


def laplace_misfit(off: Floats, rounded: float = ROUNDED) -> tuple[Floats, Floats]:
    """Minus the logarithm of the likelihood of each difference, up to a constant, and its slope.

    `√2·|u|` of a difference of u deviations, rounded below so many of them.

    Examples
    --------
    >>> misfit, slope = laplace_misfit(np.array([0.0, -4.0]))
    >>> misfit.round(2).tolist(), slope.round(2).tolist()
    ([0.0, 5.25], [0.0, -1.41])
    """
    size = np.hypot(off, rounded)
    return np.asarray(np.sqrt(2) * (size - rounded)), np.asarray(np.sqrt(2) * off / size)


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


_BEND, _ROUGHNESS = 1.0, 0.3
_CUT_OFF = 20.0
"""The standard deviation of the fall of the curve by a cut-off, at the highest degree whose mass stands out."""
_FARTHEST = 8.0
"""Times that degree: beyond, cut-offs fall no more, for they could as well rise."""
_STANDS_OUT = 5.0
"""Scales of its noise that a mass is larger than, so that it is not taken for noise."""
_LEAST_REACH = 20.0
"""Scales of its noise that a mass, and so a degree, may have and be hidden."""
_REACH_BEYOND = 5.0
"""Scales of its noise that the largest degree is taken to be above its answer, at the most."""
_WHOLE = 0.3
"""A deviation, as of normal noise, that rounding to whole numbers hides; less makes the optimum hard to find."""
_ITERATIONS = 500
_INSISTENCE = 3.0
"""The natural logarithm of how much likelier a node off the curve must make the answers."""


def estimate_degrees(
    mass: Floats, scale: float, limits: Sequence[int], largest: NoisyLargest | None = None
) -> Integers:
    """The degrees that noisy masses of degree make most likely.

    The number of nodes of degree d is `exp(f(log2 d) − a·d/D − b·(d/D)² + g(d))`. f is a curve whose slope changes by
    about 1 over an octave; a and b are the sizes of normal numbers of deviation 20, D the upper limit of the highest
    tag whose mass stands out of noise, so that tails may end as an exponential or a normal one does and not as a power
    law alone; g is independent for each degree, Cauchy of scale 0.3. Spikes and ends that the data insist on are
    followed; where noise is larger than what is there, the curve tells. (Were a and b of either sign, some noise on the
    highest tags would raise a hill there.)

    The k-th degree from above is then the number of y with more than k − 1/2 nodes above y. The largest comes nearer to
    `Σ_y min(1, nodes above y)`, which keeps the mass of the tail, the more of that stands out of noise. Single nodes
    far off the curve, hubs, are found first, one by one, as long as each makes the answers e³ times as likely. A noisy
    largest degree has a say in both (see `NoisyLargest`), and then the largest is the median of what is left of it.

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
    above = above_each(fitted.nodes())
    counts = np.floor(above + 0.5).astype(np.int64)
    found = np.repeat(np.arange(1, len(above) + 1), counts - np.append(counts[1:], 0))
    if len(found) and largest is None:
        missing = float(np.minimum(above, 1).sum()) - found[-1]
        seen = (missing / 2) ** 2
        found[-1] += max(0, round(missing * seen / (seen + 2 * scale**2)))
    found = np.sort(np.concatenate([found, np.array(fitted.taken_out, dtype=np.int64)]))
    if len(found) < 2:
        raise AnswersError("the released degrees are lost in their noise: measure with a larger epsilon or share")
    if largest is not None:
        found[-1] = largest.median(fitted.nodes(), max(fitted.taken_out, default=0))
        found = np.sort(np.minimum(found, found[-1]))
    return found


def _reach(seen: Sequence[int], scale: float, limits: Sequence[int], largest: NoisyLargest | None) -> int:
    """A degree that the answers rule out to be exceeded: twice what they show, and all that noise may hide."""
    reach = 2 * max([*seen, math.ceil(_LEAST_REACH * scale)])
    if largest is not None:
        reach = max(reach, math.ceil(largest.number + _REACH_BEYOND * largest.scale))
    return min(reach, limits[-1])


class _Fitted:
    """The most likely curve, and the nodes that were taken out of the answers because they are far off it."""

    def __init__(self, mass: Floats, scale: float, limits: Sequence[int], top: NoisyLargest | None) -> None:
        self._mass, self._noise, self._top = mass, np.sqrt(2) * scale, top
        seen = [limit for limit, weight in zip(limits[1:], mass, strict=True) if weight > _STANDS_OUT * scale]
        largest = _reach(seen, scale, limits, top)
        degree = np.arange(1.0, largest + 1)
        curve = curve_basis(np.log2(degree), level=10.0, slope=3.0, bend=_BEND)
        beyond = np.minimum(degree / max(seen, default=largest), _FARTHEST)
        self._curve = np.column_stack([curve, _CUT_OFF * beyond, _CUT_OFF * beyond**2])
        self._tags = tag_weights(limits, largest)[1:]
        self._bends = self._curve.shape[1]
        self.taken_out: list[int] = []
        self._hub = 0
        start = np.zeros(self._bends + largest)
        start[:2] = np.log(max(float(mass[0]) / limits[1], 1.0)) / 10, -1 / 3
        self._most = np.full(len(start), np.inf)
        self._most[self._bends - 2 : self._bends] = 0.0
        self._z = most_likely(self._negative, start, _ITERATIONS, self._most)

    def nodes(self) -> Floats:
        """How many nodes of the curve are of degree 1, 2, …"""
        return self._nodes(self._z)

    def take_out_a_node(self) -> bool:
        """Take the node out whose degree the curve misses most, if the answers insist that there is one.

        A curve has no way to a single node far above the others: all that is between them would have to be empty.
        So it is asked of each degree how much likelier the answers were with one node more there, at first beside the
        curve as it is, then beside one that is fitted again.
        """
        before, mass, hub = self._negative(self._z)[0], self._mass, self._hub
        z, degree, tried = self._z, 0, list[int]()
        while True:
            gains = self._gains(z, mass, hub)
            degree = int(np.argmax(gains)) + 1
            if not tried and gains[degree - 1] < _INSISTENCE:
                return False
            if degree in tried:
                break
            tried.append(degree)
            self._mass = mass - self._tags[degree - 1]
            self._hub = max(hub, degree)
            z = most_likely(self._negative, z, _ITERATIONS, self._most)
        if degree != tried[-1] or before - self._negative(z)[0] < _INSISTENCE:
            self._mass, self._hub = mass, hub
            return False
        self._z = z
        self.taken_out.append(degree)
        return True

    def _gains(self, z: Floats, mass: Floats, hub: int) -> Floats:
        """By how much the logarithm of the likelihood grows with a node more, for each degree of it."""
        nodes = self._nodes(z)
        off = self._off(nodes, mass)
        now, with_it = (_misfit(each, self._noise)[0] for each in (off, off + self._tags / self._noise))
        gains = -np.asarray((with_it - now).sum(axis=1))
        return gains if self._top is None else gains + self._top.gains(nodes, hub)

    def _nodes(self, z: Floats) -> Floats:
        smooth, rough = z[: self._bends], z[self._bends :]
        return np.asarray(np.exp(np.minimum(self._curve @ smooth + _ROUGHNESS * rough, 30.0)))

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
        by_rough = _ROUGHNESS * by_curve + 2 * rough / (1 + rough * rough)
        return float(least), np.concatenate([self._curve.T @ by_curve + smooth, by_rough])


def _misfit(off: Floats, noise: float) -> tuple[Floats, Floats]:
    """As `laplace_misfit`, of whole numbers: rounded as far as normal noise of `_WHOLE` is as steep as this noise."""
    return laplace_misfit(off, max(ROUNDED, np.sqrt(2) * (_WHOLE / noise) ** 2))
