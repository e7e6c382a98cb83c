"""Degrees from a noisy CCDF and noisy degree mass by tag."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wpinq.arrays import Floats, Integers
from wpinq.errors import AnswersError
from wpinq.graphs.limits import tag_weights
from wpinq.graphs.synthesis.estimates.splines import curve_basis, most_likely

_BEND, _ROUGHNESS = 3.0, 0.3
_WHOLE = 0.3
"""A deviation that rounding to whole numbers hides; less noise than that only makes the optimum hard to find."""
_ITERATIONS = 500


def estimate_degrees(
    ccdf: Floats, ccdf_scale: float, mass: Floats, mass_scale: float, limits: Sequence[int]
) -> Integers:
    """The degrees that a noisy CCDF and noisy masses of degree make most likely.

    The number of nodes of degree d is `exp(f(log2 d) + g(d))`: f a curve whose slope changes by about 3 over an octave,
    g independent for each degree, Cauchy of scale 0.3. Spikes and cut-offs that the data insist on are followed;
    where noise is larger than what is there, the curve tells. The deviations count as normal, of the variance of the
    noise. The k-th degree from above is then the number of y with more than k − 1/2 nodes above y.

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
    largest = len(ccdf)
    curve = curve_basis(np.log2(np.arange(1.0, largest + 1)), level=10.0, slope=3.0, bend=_BEND)
    tags = tag_weights(limits, largest)[1:]
    above, tagged = np.hypot(np.sqrt(2) * ccdf_scale, _WHOLE), np.hypot(np.sqrt(2) * mass_scale, _WHOLE)
    bends = curve.shape[1]

    def negative(z: Floats) -> tuple[float, Floats]:
        nodes = np.exp(np.minimum(curve @ z[:bends] + _ROUGHNESS * z[bends:], 30.0))
        off = (nodes[::-1].cumsum()[::-1] - ccdf) / above
        mass_off = (nodes @ tags - mass) / tagged
        by_curve = ((off / above).cumsum() + tags @ (mass_off / tagged)) * nodes
        smooth, rough = z[:bends], z[bends:]
        least = 0.5 * (off @ off + mass_off @ mass_off + smooth @ smooth) + np.log1p(rough * rough).sum()
        by_rough = _ROUGHNESS * by_curve + 2 * rough / (1 + rough * rough)
        return float(least), np.concatenate([curve.T @ by_curve + smooth, by_rough])

    start = np.zeros(bends + largest)
    start[:2] = np.log(max(float(ccdf[0]), 2.0) / 2) / 10, -1 / 3
    z = most_likely(negative, start, _ITERATIONS)
    nodes = np.exp(curve @ z[:bends] + _ROUGHNESS * z[bends:])
    counts = np.floor(nodes[::-1].cumsum()[::-1] + 0.5).astype(np.int64)
    found = np.repeat(np.arange(1, largest + 1), counts - np.append(counts[1:], 0))
    if len(found) < 2:
        raise AnswersError("the released degrees are lost in their noise: measure with a larger epsilon or share")
    return found
