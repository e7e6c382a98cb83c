"""Degrees from a noisy CCDF and noisy degree mass by tag."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wpinq.arrays import Floats, Integers
from wpinq.errors import AnswersError
from wpinq.graphs.limits import tag_weights
from wpinq.graphs.synthesis.estimates.laplace_misfit import ROUNDED, laplace_misfit
from wpinq.graphs.synthesis.estimates.noisy_largest import NoisyLargest, above_each
from wpinq.graphs.synthesis.estimates.splines import curve_basis, most_likely

_BEND, _ROUGHNESS = 3.0, 0.3
_CUT_OFF = 20.0
"""The standard deviation of the fall of the curve by a cut-off, at the highest degree whose mass stands out."""
_FARTHEST = 8.0
"""Times that degree: beyond, cut-offs fall no more, for they could as well rise."""
STANDS_OUT = 5.0
"""Scales of its noise that a mass is larger than, so that it is not taken for noise."""
_WHOLE = 0.3
"""A deviation, as of normal noise, that rounding to whole numbers hides; less makes the optimum hard to find."""
_ITERATIONS = 500
_INSISTENCE = 3.0
"""The natural logarithm of how much likelier a node off the curve must make the answers."""


def estimate_degrees(
    ccdf: Floats,
    ccdf_scale: float,
    mass: Floats,
    mass_scale: float,
    limits: Sequence[int],
    largest: NoisyLargest | None = None,
) -> Integers:
    """The degrees that a noisy CCDF and noisy masses of degree make most likely.

    The number of nodes of degree d is `exp(f(log2 d) − a·d/D − b·(d/D)² + g(d))`. f is a curve whose slope changes by
    about 3 over an octave; a and b are the sizes of normal numbers of deviation 20, D the upper limit of the highest
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
    ccdf : array of shape (m,)
        The number of nodes of degree > y, plus noise, y = 0, 1, …; m is no less than any degree.
    ccdf_scale : float
        The scale of that noise.
    mass : array of shape (tags,)
        `Σ_a t_i(d_a)` plus noise (see `degree_mass_by_tag`).
    mass_scale : float
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
    Costs no privacy: it reads released numbers only. Against the staircase of section 3.1 of the paper
    (`fit_degree_sequence`) at equal ε it halves the Kolmogorov-Smirnov distance where degrees are spread out, and takes
    the error of the variance of degrees over edges from 20 % to 2 % (`docs/synthesis_design.md`).

    Examples
    --------
    >>> ccdf = np.array([8.1, 3.9, 2.1, 0.9, -0.1, 0.1])
    >>> estimate_degrees(ccdf, 0.1, np.array([6.0, 1.5]), 0.1, [0, 2, 8])
    array([1, 1, 1, 1, 2, 2, 3, 4])
    """
    fitted = _Fitted(ccdf, ccdf_scale, mass, mass_scale, limits, largest)
    while fitted.take_out_a_node():
        pass
    above = above_each(fitted.nodes())
    counts = np.floor(above + 0.5).astype(np.int64)
    found = np.repeat(np.arange(1, len(ccdf) + 1), counts - np.append(counts[1:], 0))
    if len(found) and largest is None:
        missing = float(np.minimum(above, 1).sum()) - found[-1]
        seen = (missing / 2) ** 2
        found[-1] += max(0, round(missing * seen / (seen + 2 * mass_scale**2)))
    found = np.sort(np.concatenate([found, np.array(fitted.taken_out, dtype=np.int64)]))
    if len(found) < 2:
        raise AnswersError("the released degrees are lost in their noise: measure with a larger epsilon or share")
    if largest is not None:
        found[-1] = largest.median(fitted.nodes(), max(fitted.taken_out, default=0))
        found = np.sort(np.minimum(found, found[-1]))
    return found


class _Fitted:
    """The most likely curve, and the nodes that were taken out of the answers because they are far off it."""

    def __init__(
        self,
        ccdf: Floats,
        ccdf_scale: float,
        mass: Floats,
        mass_scale: float,
        limits: Sequence[int],
        top: NoisyLargest | None,
    ) -> None:
        self._ccdf, self._mass, largest = ccdf, mass, len(ccdf)
        self._top = top
        degree = np.arange(1.0, largest + 1)
        curve = curve_basis(np.log2(degree), level=10.0, slope=3.0, bend=_BEND)
        seen = [limit for limit, weight in zip(limits[1:], mass, strict=True) if weight > STANDS_OUT * mass_scale]
        beyond = np.minimum(degree / max(seen, default=largest), _FARTHEST)
        self._curve = np.column_stack([curve, _CUT_OFF * beyond, _CUT_OFF * beyond**2])
        self._tags = tag_weights(limits, largest)[1:]
        self._noise, self._mass_noise = np.sqrt(2) * ccdf_scale, np.sqrt(2) * mass_scale
        self._bends = self._curve.shape[1]
        self.taken_out: list[int] = []
        self._hub = 0
        start = np.zeros(self._bends + largest)
        start[:2] = np.log(max(float(ccdf[0]), 2.0) / 2) / 10, -1 / 3
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
        before, ccdf, mass, hub = self._negative(self._z)[0], self._ccdf, self._mass, self._hub
        z, degree, tried = self._z, 0, list[int]()
        while True:
            gains = self._gains(z, ccdf, mass, hub)
            degree = int(np.argmax(gains)) + 1
            if not tried and gains[degree - 1] < _INSISTENCE:
                return False
            if degree in tried:
                break
            tried.append(degree)
            self._ccdf = ccdf - (np.arange(len(ccdf)) < degree)
            self._mass = mass - self._tags[degree - 1]
            self._hub = max(hub, degree)
            z = most_likely(self._negative, z, _ITERATIONS, self._most)
        if degree != tried[-1] or before - self._negative(z)[0] < _INSISTENCE:
            self._ccdf, self._mass, self._hub = ccdf, mass, hub
            return False
        self._z = z
        self.taken_out.append(degree)
        return True

    def _gains(self, z: Floats, ccdf: Floats, mass: Floats, hub: int) -> Floats:
        """By how much the logarithm of the likelihood grows with a node more, for each degree of it."""
        nodes = self._nodes(z)
        off, mass_off = self._off(nodes, ccdf, mass)
        now, mass_now = _misfit(off, self._noise)[0], _misfit(mass_off, self._mass_noise)[0]
        by_ccdf = _misfit(off + 1 / self._noise, self._noise)[0] - now
        by_mass = _misfit(mass_off + self._tags / self._mass_noise, self._mass_noise)[0] - mass_now
        gains = -np.asarray(by_ccdf.cumsum() + by_mass.sum(axis=1))
        return gains if self._top is None else gains + self._top.gains(nodes, hub)

    def _nodes(self, z: Floats) -> Floats:
        smooth, rough = z[: self._bends], z[self._bends :]
        return np.asarray(np.exp(np.minimum(self._curve @ smooth + _ROUGHNESS * rough, 30.0)))

    def _off(self, nodes: Floats, ccdf: Floats, mass: Floats) -> tuple[Floats, Floats]:
        return (above_each(nodes) - ccdf) / self._noise, (nodes @ self._tags - mass) / self._mass_noise

    def _negative(self, z: Floats) -> tuple[float, Floats]:
        """Minus the logarithm of the likelihood and the prior, up to a constant, and its gradient."""
        nodes = self._nodes(z)
        off, mass_off = self._off(nodes, self._ccdf, self._mass)
        misfit, slope = _misfit(off, self._noise)
        mass_misfit, mass_slope = _misfit(mass_off, self._mass_noise)
        by_curve = ((slope / self._noise).cumsum() + self._tags @ (mass_slope / self._mass_noise)) * nodes
        top_misfit = 0.0
        if self._top is not None:
            top_misfit, by_top = self._top.misfit(nodes, self._hub)
            by_curve += by_top
        smooth, rough = z[: self._bends], z[self._bends :]
        least = misfit.sum() + mass_misfit.sum() + top_misfit + 0.5 * smooth @ smooth + np.log1p(rough * rough).sum()
        by_rough = _ROUGHNESS * by_curve + 2 * rough / (1 + rough * rough)
        return float(least), np.concatenate([self._curve.T @ by_curve + smooth, by_rough])


def _misfit(off: Floats, noise: float) -> tuple[Floats, Floats]:
    """As `laplace_misfit`, of whole numbers: rounded as far as normal noise of `_WHOLE` is as steep as this noise."""
    return laplace_misfit(off, max(ROUNDED, np.sqrt(2) * (_WHOLE / noise) ** 2))
