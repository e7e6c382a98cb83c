"""How many edges run between nodes of two degrees, from noisy joint degrees by tag."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wpinq.graphs.synthesis.estimates.splines import Floats, Integers, most_likely

_REACH, _STRENGTH = 2.0, 3.0
_LEAST = 3e-3
_ITERATIONS = 400


@dataclass(frozen=True)
class DegreeClasses:
    """Nodes by degree: a class each for degrees 1 to 4, then two an octave.

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
        fine = 4 + np.ceil(2 * (np.log2(degrees) - 2))
        label = np.unique(np.where(degrees <= 4, degrees, fine), return_inverse=True)[1].astype(np.int64)
        return DegreeClasses(degrees, label, np.bincount(label, degrees).astype(np.float64))

    def stub_mean(self, values: Floats) -> Floats:
        """For each class, the mean over its stubs (a node as often as it has edges) of values by degree.

        `values` has a first axis for the degree, and may have a second.
        """
        rows = values[self.degrees] if values.ndim == 2 else values[self.degrees][:, None]
        sums = np.zeros((len(self.stubs), rows.shape[1]))
        np.add.at(sums, self.label, self.degrees[:, None] * rows)
        found = sums / self.stubs[:, None]
        return np.asarray(found if values.ndim == 2 else found[:, 0])


def estimate_mixing(classes: DegreeClasses, shares: Floats, joint: Floats, scale: float) -> Floats:
    """The number of stubs of each class of nodes that lead to each other, most likely under noisy joint degrees.

    With `S_p` the stubs of class p and M the number of edges, `x_pq = S_p·S_q/(2M) · exp(u_p + u_q + f(p, q))`: at
    random but for f, a Gaussian field over the log2 of both degrees of standard deviation 3 and a reach of 2 octaves. u
    makes rows add up to S.

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
    Costs no privacy. An L-BFGS over a hundred variables or two: 0.1 s.
    """
    stubs, tags = classes.stubs, shares.shape[1]
    octave = classes.stub_mean(np.log2(np.maximum(np.arange(classes.degrees.max() + 1.0), 1)))
    kernel = np.exp(-0.5 * ((octave[:, None] - octave) / _REACH) ** 2)
    size, direction = np.linalg.eigh(kernel)
    kept = size > _LEAST * size.max()
    field = direction[:, kept] * np.sqrt(size[kept])
    width = field.shape[1]
    random = np.outer(stubs, stubs) / stubs.sum()
    upper = np.triu_indices(tags)
    counted = np.where(upper[0] == upper[1], 2 / 3, 4 / 3)
    deviation, loose = np.sqrt(2) * scale, np.maximum(0.3 * np.sqrt(stubs), 1.0)

    def mixed(z: Floats) -> Floats:
        free = z[: width * width].reshape(width, width)
        bent = 0.5 * _STRENGTH * field @ (free + free.T) @ field.T
        own = z[width * width :]
        return np.asarray(random * np.exp(np.clip(bent + own[:, None] + own, -30, 30)))

    def negative(z: Floats) -> tuple[float, Floats]:
        stubs_to = mixed(z)
        rows = (stubs_to.sum(axis=1) - stubs) / loose
        off = ((shares.T @ stubs_to @ shares)[upper] * counted - joint[upper]) / deviation
        by_joint = np.zeros((tags, tags))
        by_joint[upper] = off / deviation * counted
        by_field = (shares @ by_joint @ shares.T + (rows / loose)[:, None]) * stubs_to
        by_field = (by_field + by_field.T) / 2
        free = z[: width * width]
        gradient = np.concatenate([(_STRENGTH * field.T @ by_field @ field).ravel() + free, 2 * by_field.sum(axis=1)])
        return 0.5 * float(off @ off + rows @ rows + free @ free), gradient

    found = mixed(most_likely(negative, np.zeros(width * width + len(stubs)), _ITERATIONS))
    return balanced(found, stubs)


def joint_weights(mixing: Floats, shares: Floats) -> Floats:
    """The weights of `joint_degrees_by_tag` that a mixing gives, by sorted pair of tags: upper triangle, else 0."""
    both = shares.T @ mixing @ shares
    return np.asarray(np.triu(both, 1) * 4 / 3 + np.diag(np.diag(both)) * 2 / 3)


def balanced(mixing: Floats, stubs: Floats) -> Floats:
    """A symmetric matrix with its rows and columns scaled so that rows add up to the stubs."""
    found = mixing.copy()
    for _ in range(200):
        factor = np.sqrt(stubs / np.maximum(found.sum(axis=1), 1e-12))
        found *= np.outer(factor, factor)
    return found
