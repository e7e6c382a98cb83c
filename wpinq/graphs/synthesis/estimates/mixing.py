"""How many edges run between nodes of two degrees, from noisy joint degrees by tag."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wpinq.graphs.synthesis.estimates.degree_curve import (
    INFORMATION,
    curve_basis,
    evidence_mean,
    laplace_misfit,
    most_likely,
)
from wpinq.runtime.arrays import Floats, Integers

REACHES, _STRENGTH = (2.0, 1.0, 0.5), 3.0
_PRIOR_ODDS = 0.3
"""The natural logarithm of the odds of a reach against half of it, before the answers are seen."""
_EVIDENCE = 1 / 8
"""The power of the evidence. No graph mixes as a field of one reach does, and where nearly all edges are, among low
degrees, says little of the few among high ones: the whole evidence would trust one reach with all."""
_MOST_STUBS = 1 / 16
_LEAST = 3e-3
_ITERATIONS = 400


@dataclass(frozen=True)
class DegreeClasses:
    """Nodes by degree: a class each for degrees 1 to 4, then two an octave; more where one would hold many edges.

    Two degrees share a class only where that has at most a sixteenth of all stubs.

    Attributes
    ----------
    degrees : array of int, shape (nodes,)
        Of each node.
    label : array of int, shape (nodes,)
        The class of each node, 0, 1, …, without gaps, rising with the degree.
    stubs : array of shape (classes,)
        The sum of degrees in each class.
    """

    degrees: Integers
    label: Integers
    stubs: Floats

    @staticmethod
    def of(degrees: Integers) -> DegreeClasses:
        """The classes of these degrees, all > 0."""
        different, place, count = np.unique(degrees, return_inverse=True, return_counts=True)
        half_octave = np.where(different <= 4, different, 4 + np.ceil(2 * (np.log2(different) - 2)))
        stubs, most = different * count, _MOST_STUBS * float(degrees.sum())
        labels, held = np.zeros(len(different), dtype=np.int64), float(stubs[0])
        for i in range(1, len(different)):
            apart = half_octave[i] != half_octave[i - 1] or held + stubs[i] > most
            labels[i] = labels[i - 1] + apart
            held = float(stubs[i]) + (0.0 if apart else held)
        label = labels[place]
        return DegreeClasses(degrees, label, np.bincount(label, degrees).astype(np.float64))

    def stub_mean(self, values: Floats) -> Floats:
        """For each class, the mean over its stubs (a node as often as it has edges) of values by degree.

        `values` has a first axis for the degree, and may have a second.
        """
        sums = np.zeros((len(self.stubs), *values.shape[1:]))
        np.add.at(sums, self.label, (self.degrees * values[self.degrees].T).T)
        return np.asarray((sums.T / self.stubs).T)


def estimate_mixing(classes: DegreeClasses, shares: Floats, joint: Floats, scale: float) -> Floats:
    """The number of stubs of each class of nodes that lead to each other, most likely under noisy joint degrees.

    With `S_p` the stubs of class p and M the number of edges, `x_pq = S_p·S_q/(2M) · exp(u_p + u_q + f(p, q))`: at
    random but for f, a Gaussian field over the log2 of both degrees of standard deviation 3 and a reach of 2, 1 or 1/2
    octaves. u makes rows add up to S. The answers say how likely each reach is, and the estimates by each are averaged
    so (`reach_evidence`).

    Parameters
    ----------
    classes : DegreeClasses
        Of the nodes.
    shares : array of shape (classes, tags)
        The mean over the stubs of a class of `t_i(d)/d`.
    joint : array of shape (tags, tags)
        Noisy weights of `joint_degrees_by_tag`, of which the upper triangle is read.
    scale : float
        The scale of the noise.

    Returns
    -------
    array of shape (classes, classes)
        Symmetric, not whole numbers; rows add up to `classes.stubs`.

    Notes
    -----
    Costs no privacy. An L-BFGS over a few hundred variables for each reach: below 1 s.
    """
    fits = [Field(classes, shares, joint, scale, reach).fit() for reach in REACHES]
    estimates = [balanced(found, classes.stubs) for found, _ in fits]
    return balanced(evidence_mean(estimates, reach_evidence([found for _, found in fits])), classes.stubs)


def reach_evidence(evidence: Sequence[float]) -> list[float]:
    """The logarithm of how likely each of `REACHES` counts, from that of the chance of the answers by each.

    The latter is Laplace's approximation. An eighth of it counts, beside odds of e^.3 against each halving of a reach.
    """
    return [_EVIDENCE * found - _PRIOR_ODDS * place for place, found in enumerate(evidence)]


class Field:
    """The model of `estimate_mixing` with one reach, over variables z: of the field, then one for each class.

    A field of the kernel K over classes is `F·z·Fᵀ` with z standard normal and `F·Fᵀ = K`; small directions of K are
    left out.
    """

    def __init__(self, classes: DegreeClasses, shares: Floats, joint: Floats, scale: float, reach: float) -> None:
        self.stubs, self.shares = classes.stubs, shares
        octave = classes.stub_mean(np.log2(np.maximum(np.arange(classes.degrees.max() + 1.0), 1)))
        size, direction = np.linalg.eigh(np.exp(-0.5 * ((octave[:, None] - octave) / reach) ** 2))
        kept = size > _LEAST * size.max()
        self.field = direction[:, kept] * np.sqrt(size[kept])
        self.free = self.field.shape[1] ** 2
        self.random = np.outer(self.stubs, self.stubs) / self.stubs.sum()
        self.upper = np.triu_indices(shares.shape[1])
        self.joint = joint[self.upper]
        self.counted = np.where(self.upper[0] == self.upper[1], 2 / 3, 4 / 3)
        self.deviation, self.loose = np.sqrt(2) * scale, np.maximum(0.3 * np.sqrt(self.stubs), 1.0)

    def fit(self) -> tuple[Floats, float]:
        """The most likely mixing, and the logarithm of the evidence: of the chance of the answers, by Laplace."""
        z, _, evidence = self.likeliest()
        return self.mixed(z), evidence

    def likeliest(self) -> tuple[Floats, Floats, float]:
        """The most likely variables, the curvature of their likelihood there, and the logarithm of the evidence."""
        z = most_likely(self.negative, np.zeros(self.free + len(self.stubs)), _ITERATIONS)
        changes = self.changes(z)
        known = np.where(np.arange(len(changes)) < len(self.joint), INFORMATION, 1.0)
        curvature = changes.T @ (known[:, None] * changes) + np.diag(np.arange(len(z)) < self.free)
        return z, curvature, -self.negative(z)[0] - 0.5 * float(np.linalg.slogdet(curvature)[1])

    def mixed(self, z: Floats) -> Floats:
        """The stubs of each class that lead to each other."""
        free, own = z[: self.free].reshape(self.field.shape[1], -1), z[self.free :]
        bent = 0.5 * _STRENGTH * self.field @ (free + free.T) @ self.field.T
        return np.asarray(self.random * np.exp(np.clip(bent + own[:, None] + own, -30, 30)))

    def residuals(self, z: Floats) -> tuple[Floats, Floats]:
        """How far the joint degrees, and the rows, are from what they should be, in deviations."""
        stubs_to = self.mixed(z)
        weights = (self.shares.T @ stubs_to @ self.shares)[self.upper] * self.counted
        return (weights - self.joint) / self.deviation, (stubs_to.sum(axis=1) - self.stubs) / self.loose

    def negative(self, z: Floats) -> tuple[float, Floats]:
        """Minus the logarithm of the likelihood and the prior, up to a constant, and its gradient."""
        stubs_to, (off, rows), free = self.mixed(z), self.residuals(z), z[: self.free]
        misfit, slope = laplace_misfit(off)
        by_joint = np.zeros((self.shares.shape[1],) * 2)
        by_joint[self.upper] = slope / self.deviation * self.counted
        by_field = (self.shares @ by_joint @ self.shares.T + (rows / self.loose)[:, None]) * stubs_to
        by_field = (by_field + by_field.T) / 2
        bending = (_STRENGTH * self.field.T @ by_field @ self.field).ravel() + free
        gradient = np.concatenate([bending, 2 * by_field.sum(axis=1)])
        return float(misfit.sum() + 0.5 * (rows @ rows + free @ free)), gradient

    def changes(self, z: Floats) -> Floats:
        """The derivative of the residuals, those of the joint degrees first: a row each, a column for each variable."""
        stubs_to, field, tags, width = self.mixed(z), self.field, self.shares.shape[1], self.field.shape[1]
        bent_ends = (self.shares[:, :, None] * field[:, None, :]).reshape(len(self.stubs), -1)
        bent = (bent_ends.T @ stubs_to @ bent_ends).reshape(tags, width, tags, width).transpose(0, 2, 1, 3)
        ends = np.einsum("pi,pq,qj->ijp", self.shares, stubs_to, self.shares)
        row = np.einsum("pk,pq,ql->pkl", field, stubs_to, field)

        def by_free(turned: Floats) -> Floats:
            return 0.5 * _STRENGTH * (turned + turned.swapaxes(-1, -2)).reshape(len(turned), -1)

        of_joint = np.hstack([by_free(bent[self.upper]), (ends + ends.transpose(1, 0, 2))[self.upper]])
        of_rows = np.hstack([by_free(row), stubs_to + np.diag(stubs_to.sum(axis=1))])
        return np.vstack([of_joint * (self.counted / self.deviation)[:, None], of_rows / self.loose[:, None]])


def joint_weights(mixing: Floats, shares: Floats) -> Floats:
    """The weights of `joint_degrees_by_tag` that a mixing gives, by sorted pair of tags: upper triangle, else 0."""
    both = shares.T @ mixing @ shares
    return np.asarray(np.triu(both, 1) * 4 / 3 + np.diag(np.diag(both)) * 2 / 3)


def balanced(mixing: Floats, stubs: Floats, rounds: int = 200) -> Floats:
    """A symmetric matrix with its rows and columns scaled so that rows add up to the stubs."""
    found = mixing.copy()
    for _ in range(rounds):
        factor = np.sqrt(stubs / np.maximum(found.sum(axis=1), 1e-12))
        found *= np.outer(factor, factor)
    return found


# Clustering by degree from noisy closed wedges by tag.

BENDS, _SLOPE, _ITERATIONS_CLUSTERING = (4.0, 2.0, 1.0, 0.5, 0.25), -0.35, 300


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

    z = most_likely(negative, np.zeros(curve.shape[1]), _ITERATIONS_CLUSTERING)
    share, _ = at(z)
    changes = (adds / deviation).T @ ((share * (1 - share))[:, None] * curve)
    curvature = np.eye(len(z)) + INFORMATION * changes.T @ changes
    return share, -negative(z)[0] - 0.5 * float(np.linalg.slogdet(curvature)[1])


def clustering_basis(octave: Floats, bend: float) -> Floats:
    """The curves that the logit of clustering may take besides its slope: see `curve_basis`."""
    return curve_basis(octave, level=1.5, slope=0.5, bend=bend)
