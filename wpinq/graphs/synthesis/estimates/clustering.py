"""Clustering by degree from noisy closed wedges by tag."""

from __future__ import annotations

import numpy as np

from wpinq.graphs.synthesis.estimates.splines import Floats, Integers, curve_basis, most_likely

_BEND, _SLOPE, _ITERATIONS = 2.0, -0.35, 300


def estimate_clustering(degrees: Integers, weights: Floats, closed: Floats, scale: float) -> Floats:
    """The share of closed wedges at nodes of each degree that noisy weights of closed wedges make most likely.

    The logit of the share is a curve over log2 of the degree. At degree 2 it is 0 give or take 2; its slope there
    is −0.35 ± 0.5 an octave, because clustering falls with the degree in almost all graphs that people have looked at,
    by a logit of up to −0.7 an octave (Ravasz and Barabási, Phys. Rev. E 2003); and it changes by 2 over an octave.

    Parameters
    ----------
    degrees : array of int, shape (nodes,)
        Degrees, rising.
    weights : array of shape (largest degree + 1, tags)
        What one closed wedge whose middle has degree d adds to each tag.
    closed : array of shape (tags,)
        Weights of closed wedges by tag, plus noise.
    scale : float
        The scale of the noise.

    Returns
    -------
    array of shape (largest degree + 1,)
        Clustering for each degree that there is; 0 for others.

    Examples
    --------
    >>> from wpinq.graphs.limits import wedge_weights
    >>> degrees, weights = np.full(300, 4), wedge_weights([0, 2, 8], 4)
    >>> estimate_clustering(degrees, weights, 300 * 6 * 0.25 * weights[4], scale=0.01).round(2).tolist()
    [0.0, 0.0, 0.0, 0.0, 0.25]
    """
    found = np.zeros(int(degrees.max()) + 1)
    nodes = np.bincount(degrees)
    there = np.flatnonzero(nodes)
    there = there[there > 1]
    if not len(there):
        return found
    octave = np.log2(there)
    curve = curve_basis(octave, level=2.0, slope=0.5, bend=_BEND)
    expected = _SLOPE * (octave - 1)
    adds = (nodes[there] * there * (there - 1) / 2)[:, None] * weights[there]
    deviation = np.sqrt(2) * scale

    def negative(z: Floats) -> tuple[float, Floats]:
        share = 1 / (1 + np.exp(-(expected + curve @ z)))
        off = (share @ adds - closed) / deviation
        gradient = z + curve.T @ (share * (1 - share) * (adds @ (off / deviation)))
        return 0.5 * float(off @ off + z @ z), gradient

    z = most_likely(negative, np.zeros(curve.shape[1]), _ITERATIONS)
    found[there] = 1 / (1 + np.exp(-(expected + curve @ z)))
    return found
