"""Clustering by degree from noisy closed wedges by tag."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wpinq.graphs.synthesis.estimates.splines import (
    INFORMATION,
    curve_basis,
    evidence_mean,
    laplace_misfit,
    most_likely,
)
from wpinq.runtime.arrays import Floats, Integers

BENDS, _SLOPE, _ITERATIONS = (4.0, 2.0, 1.0, 0.5, 0.25), -0.35, 300


def estimate_clustering(
    degrees: Integers, weights: Floats, closed: Floats, scale: float, triangles: tuple[float, float] | None = None
) -> Floats:
    """The share of closed wedges at nodes of each degree that noisy weights of closed wedges make most likely.

    The logit of the share is a curve over log2 of the degree. At degree 2 it is 0 give or take 3/2; its slope there
    is −0.35 ± 0.5 an octave, because clustering falls with the degree in almost all graphs that people have looked at,
    by a logit of up to −0.7 an octave (Ravasz and Barabási, Phys. Rev. E 2003); and it changes by 4, 2, 1, 1/2 or 1/4
    over an octave. The weights say how likely each of these is (Laplace's approximation of the evidence), and the
    estimates by each are averaged so.

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
    triangles : (float, float), optional
        The number of triangles plus noise, and the standard deviation of that. It counts as one more weight, to which
        a closed wedge of any degree adds a third.

    Returns
    -------
    array of shape (largest degree + 1,)
        Clustering for each degree that there is; 0 for others.

    Examples
    --------
    >>> from wpinq.graphs.tags import wedge_weights
    >>> degrees, weights = np.full(300, 4), wedge_weights([0, 2, 8], 4)
    >>> estimate_clustering(degrees, weights, 300 * 6 * 0.25 * weights[4], scale=0.01).round(2).tolist()
    [0.0, 0.0, 0.0, 0.0, 0.25]
    """
    found = np.zeros(int(degrees.max()) + 1)
    curves = ClusteringCurves.of(degrees, weights, closed, scale, triangles)
    if len(curves.there):
        found[curves.there] = evidence_mean(curves.shares, curves.evidence)
    return found


@dataclass(frozen=True)
class ClusteringCurves:
    """The most likely curve of clustering for each bend, and what it was fitted to.

    Attributes
    ----------
    there, nodes : array
        The degrees above 1 that there are, rising, and how many nodes have each.
    adds : array of shape (degrees, numbers)
        What a share of 1 would add to each number.
    closed, deviation : array of shape (numbers,)
        The noisy numbers, and the standard deviation of their noise.
    shares : sequence of arrays
        The most likely share of closed wedges at each degree, by bend (`BENDS`).
    evidence : sequence of float
        The logarithm of how likely each bend makes the numbers.
    """

    there: Integers
    nodes: Integers
    adds: Floats
    closed: Floats
    deviation: Floats
    shares: list[Floats]
    evidence: list[float]

    @staticmethod
    def of(
        degrees: Integers, weights: Floats, closed: Floats, scale: float, triangles: tuple[float, float] | None = None
    ) -> ClusteringCurves:
        """The fits; parameters as for `estimate_clustering`. None where no node has a degree above 1."""
        nodes = np.bincount(degrees)
        there = np.flatnonzero(nodes)
        there = there[there > 1]
        wedges = (nodes[there] * there * (there - 1) / 2)[:, None]
        adds, deviation = wedges * weights[there], np.full(len(closed), np.sqrt(2) * scale)
        if triangles is not None:
            count, off = triangles
            adds, closed, deviation = np.hstack([adds, wedges / 3]), np.append(closed, count), np.append(deviation, off)
        fits = [fit_curve(np.log2(there), adds, closed, deviation, bend) for bend in BENDS if len(there)]
        shares, evidence = [share for share, _ in fits], [evidence for _, evidence in fits]
        return ClusteringCurves(there, nodes[there], adds, closed, deviation, shares, evidence)


def fit_curve(octave: Floats, adds: Floats, closed: Floats, deviation: Floats, bend: float) -> tuple[Floats, float]:
    """The most likely share at each octave, and the logarithm of the evidence: of the chance of `closed`, by Laplace.

    `adds`, of shape (octaves, tags), is what a share of 1 would add to each tag.
    """
    curve = clustering_basis(octave, bend)

    def at(z: Floats) -> tuple[Floats, Floats]:
        share = 1 / (1 + np.exp(-np.clip(_SLOPE * (octave - 1) + curve @ z, -500, 500)))
        return share, (share @ adds - closed) / deviation

    def negative(z: Floats) -> tuple[float, Floats]:
        share, off = at(z)
        misfit, slope = laplace_misfit(off)
        gradient = z + curve.T @ (share * (1 - share) * (adds @ (slope / deviation)))
        return float(misfit.sum() + 0.5 * z @ z), gradient

    z = most_likely(negative, np.zeros(curve.shape[1]), _ITERATIONS)
    share, _ = at(z)
    changes = (adds / deviation).T @ ((share * (1 - share))[:, None] * curve)
    curvature = np.eye(len(z)) + INFORMATION * changes.T @ changes
    return share, -negative(z)[0] - 0.5 * float(np.linalg.slogdet(curvature)[1])


def clustering_basis(octave: Floats, bend: float) -> Floats:
    """The curves that the logit of clustering may take besides its slope: see `curve_basis`."""
    return curve_basis(octave, level=1.5, slope=0.5, bend=bend)
