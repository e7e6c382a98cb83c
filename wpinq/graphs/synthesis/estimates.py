"""Mixing and clustering of degrees from released numbers, smooth in the log of the degree."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.random import Generator

from wpinq.runtime.arrays import Floats, Integers

# The prior of all estimates, a curve over log2 of the degree, and the misfit to answers.
#
# A curve is a level, a slope and a bend at each knot, the bends independent and normal: an integrated random walk,
# of which the posterior mode is a smoothing spline (Wahba, JRSS B 1978). Written in standard normal variables z it is
# `basis @ z`, so that the prior is `‖z‖²/2` and an optimiser needs no scaling.

#: Between knots, in octaves.
SPACING = 0.5


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
    bends = bend * SPACING**1.5 * np.maximum(number[:, None] - number[2:] + 1, 0)
    curve = np.column_stack([np.full(knots, level), slope * SPACING * number, bends])
    left = np.minimum(place.astype(np.int64), knots - 2)
    share = (place - left)[:, None]
    return np.asarray((1 - share) * curve[left] + share * curve[left + 1])


def most_likely(
    negative: Callable[[Floats], tuple[float, Floats]], start: Floats, iterations: int, most: Floats | None = None
) -> Floats:
    """The point, nowhere above `most`, where a function with a gradient is least, by L-BFGS."""
    from scipy.optimize import Bounds, minimize

    options = {"maxiter": iterations, "maxfun": 2 * iterations, "maxcor": 20, "ftol": 1e-9}
    bounds = None if most is None else Bounds(ub=most)
    return np.asarray(minimize(negative, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x)


def evidence_mean(estimates: Sequence[Floats], evidence: Sequence[float]) -> Floats:
    """The mean of estimates, each weighted by its evidence, given as a natural logarithm.

    Examples
    --------
    >>> evidence_mean([np.array([1.0]), np.array([4.0])], [np.log(2e-300), np.log(1e-300)]).round(9).tolist()
    [2.0]
    """
    relative = np.exp(np.asarray(evidence) - max(evidence))
    return np.asarray(np.average(np.stack(estimates), axis=0, weights=relative))


def by_likelihood(evidence: list[float], rng: Generator, draws: int) -> list[tuple[int, int]]:
    """Which models to draw from, and how often, given the logarithm of the evidence of each."""
    likelihood = np.exp(np.array(evidence) - max(evidence))
    often = rng.multinomial(draws, likelihood / likelihood.sum())
    return [(place, int(count)) for place, count in enumerate(often) if count]


def normal_draws(curvature: Floats, count: int, rng: Generator) -> Floats:
    """Normal draws whose covariance is the inverse of the curvature, a column each."""
    size, direction = np.linalg.eigh(curvature)
    scaled = direction / np.sqrt(np.maximum(size, _SURE * size.max()))
    return np.asarray(scaled @ rng.standard_normal((len(size), count)))


# --- the misfit of estimates under Laplace noise ----------------------------------------------------------------------

# Where several answers say one thing, the mean absolute difference tells twice what the mean square does: noise of
# standard deviation 1 has Fisher information 2 by its law, 1 by that of normal noise. It is rounded where it is 0, so
# that a search by gradients ends.

#: The Fisher information of an answer in deviations: the curvature to count, for at a point it is all or nothing.
INFORMATION = 2.0
#: In deviations.
ROUNDED = 0.3


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


# --- how degrees mix, from noisy joint degrees by tag -----------------------------------------------------------------

REACHES, _STRENGTH = (2.0, 1.0, 0.5), 3.0
#: The natural logarithm of the odds of a reach against half of it, before the answers are seen.
_PRIOR_ODDS = 0.3
#: The power of the evidence. No graph mixes as a field of one reach does, and where nearly all edges are, among low
#: degrees, says little of the few among high ones: the whole evidence would trust one reach with all.
_EVIDENCE = 1 / 8
_MOST_STUBS = 1 / 16
_LEAST_DIRECTION = 3e-3
_ITERATIONS_MIXING = 400


@dataclass(frozen=True)
class DegreeClasses:
    """Nodes by degree: a class each for degrees 1 to 4, then two an octave.

    There are more where one would hold many edges. Two degrees share a class only where that has at most a sixteenth of
    all stubs.

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
        """The mean, over the stubs of each class, of values by degree.

        A node has as many stubs as it has edges.

        `values` has a first axis for the degree, and may have a second.
        """
        sums = np.zeros((len(self.stubs), *values.shape[1:]))
        np.add.at(sums, self.label, (self.degrees * values[self.degrees].T).T)
        return np.asarray((sums.T / self.stubs).T)


def estimate_mixing(classes: DegreeClasses, fields: Sequence[Field]) -> Floats:
    """The most likely number of stubs between classes of nodes, by the fields of each reach.

    With `S_p` the stubs of class p and M the number of edges, `x_pq = S_p·S_q/(2M) · exp(u_p + u_q + f(p, q))`: at
    random but for f, a Gaussian field over the log2 of both degrees of standard deviation 3 and a reach of 2, 1 or 1/2
    octaves. u makes rows add up to S. The answers say how likely each reach is, and the estimates by each are averaged
    so (`reach_evidence`).

    Parameters
    ----------
    classes : DegreeClasses
        Of the nodes.
    fields : sequence of Field
        As `fit_fields` gives them.

    Returns
    -------
    array of shape (classes, classes)
        Symmetric, not whole numbers; rows add up to `classes.stubs`.

    Notes
    -----
    Costs no privacy. An L-BFGS over a few hundred variables for each reach: below 1 s.
    """
    estimates = [balanced(field.mixed(field.likeliest), classes.stubs) for field in fields]
    return balanced(evidence_mean(estimates, reach_evidence(fields)), classes.stubs)


def fit_fields(classes: DegreeClasses, shares: Floats, joint: Floats, scale: float) -> list[Field]:
    """The most likely field of each of `REACHES`.

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
    """
    return [Field(classes, shares, joint, scale, reach) for reach in REACHES]


def reach_evidence(fields: Sequence[Field]) -> list[float]:
    """The log-weight of each of `REACHES`.

    It is an eighth of its evidence, beside odds of e^.3 against each halving of a reach.
    """
    return [_EVIDENCE * field.evidence - _PRIOR_ODDS * place for place, field in enumerate(fields)]


class Field:
    """The model of `estimate_mixing` with one reach, over variables z.

    The variables are those of the field, then one for each class. A field of the kernel K over classes is `F·z·Fᵀ` with
    z standard normal and `F·Fᵀ = K`. Small directions of K are left out. `likeliest` are the most likely variables,
    `curvature` is the inverse covariance of draws around them, and `evidence` the logarithm of how likely the answers
    are, by Laplace's approximation.
    """

    def __init__(self, classes: DegreeClasses, shares: Floats, joint: Floats, scale: float, reach: float) -> None:
        self.stubs, self.shares = classes.stubs, shares
        octave = classes.stub_mean(np.log2(np.maximum(np.arange(classes.degrees.max() + 1.0), 1)))
        size, direction = np.linalg.eigh(np.exp(-0.5 * ((octave[:, None] - octave) / reach) ** 2))
        kept = size > _LEAST_DIRECTION * size.max()
        self.field = direction[:, kept] * np.sqrt(size[kept])
        self.free = self.field.shape[1] ** 2
        self.random = np.outer(self.stubs, self.stubs) / self.stubs.sum()
        self.upper = np.triu_indices(shares.shape[1])
        self.joint = joint[self.upper]
        self.counted = np.where(self.upper[0] == self.upper[1], 2 / 3, 4 / 3)
        self.deviation, self.loose = np.sqrt(2) * scale, np.maximum(0.3 * np.sqrt(self.stubs), 1.0)
        z = most_likely(self.negative, np.zeros(self.free + len(self.stubs)), _ITERATIONS_MIXING)
        changes = self.changes(z)
        self.likeliest, told = z, changes[: len(self.joint)]
        # of draws: there are more variables than numbers, and each number has its own error, of variance 1
        self.curvature = changes.T @ changes + np.diag(np.arange(len(z)) < self.free)
        known = self.curvature + (INFORMATION - 1) * told.T @ told
        self.evidence = -self.negative(z)[0] - 0.5 * float(np.linalg.slogdet(known)[1])

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
        """The derivative of the residuals, a row for each residual and a column for each variable.

        The residuals of the joint degrees come first.
        """
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
    """The weights of `joint_degrees_by_tag` under a mixing, by sorted pair of tags.

    They are in the upper triangle, with 0 elsewhere.
    """
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

#: A number plus noise, and the standard deviation of that, where it is known.
Known = tuple[float, float] | None
BENDS, _SLOPE, _ITERATIONS_CLUSTERING = (4.0, 2.0, 1.0, 0.5, 0.25), -0.35, 300
#: The part of the clustering of random graphs that half of the models have at least. That of measured graphs is hardly
#: ever less than all of it, but it is computed from a noisy mixing.
_AT_RANDOM = 0.75
#: Curves that are drawn, and as many for each by importance, from Student's distribution of so many degrees of freedom.
_DRAWS, _PROPOSALS, _FREEDOM = 400, 5, 4
#: As many curves, at least, share the weight of proposals: where fewer would, all weights are nearer to one another.
_LEAST_EFFECTIVE = 100
_SURE = 1e-12
#: No doubt of the share by chance, and the most of it with doubt.
NO_DOUBT, _MOST_BY_CHANCE = np.ones((1, 1)), 0.99


def estimate_clustering(
    degrees: Integers,
    weights: Floats,
    closed: Floats,
    scale: float,
    triangles: Known = None,
    none: float = -math.inf,
    random: Floats | None = None,
) -> Floats:
    """The share of closed wedges at nodes of each degree, from noisy weights.

    The logit of the share is a curve over log2 of the degree. At degree 2 it is 0 ± 3, and its slope there is −0.35 ±
    0.5 an octave. For clustering falls with the degree in almost all measured graphs, by a logit of up to −0.7 an
    octave (Ravasz and Barabási, Phys. Rev. E 2003). The slope changes by 4, 2, 1, 1/2 or 1/4 over an octave. As likely
    as not, such a curve adds to three quarters of the odds in a random graph: where weights tell little, at high
    degrees, most triangles may be of chance. The weights say how likely each of these models is (Laplace's
    approximation of the evidence). The estimate is the median of such curves at each degree. Where noise is as large as
    what there is to see, the most likely curve follows noise.

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
    none : float
        The natural logarithm of the odds of no triangle against a curve, before the weights are seen. No triangle is
        the estimate where it is likelier.
    random : array of shape (largest degree + 1,), optional
        The share in random graphs: see `random_clustering`.

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
    curves = ClusteringCurves.of(degrees, weights, closed, scale, triangles, random)
    if len(curves.there) and none + curves.evidence_of_none() < 0:
        found[curves.there] = np.median(curves.drawn(np.random.default_rng(0)), axis=0)
    return found


def random_clustering(classes: DegreeClasses, mixing: Floats) -> Floats:
    """The share of closed wedges by degree in graphs that are random but for their mixing.

    Two neighbours of a node, reached by a stub each, have other stubs, m_p in the mean of a class. So the mean number
    of edges between them is `m_p·m_q·x_pq/(S_p·S_q)`, and the chance of one is that of Poisson's law.
    """
    others = classes.stub_mean(np.arange(classes.degrees.max() + 1.0) - 1)
    reached = mixing / classes.stubs[:, None]
    adjacent = -np.expm1(-np.outer(others, others / classes.stubs) * reached)
    found = np.zeros(int(classes.degrees.max()) + 1)
    found[classes.degrees] = ((reached @ adjacent) * reached).sum(axis=1)[classes.label]
    return found


@dataclass(frozen=True)
class ClusteringCurves:
    """The most likely curve of clustering for each model, and what it was fitted to.

    Attributes
    ----------
    there, nodes : array
        The degrees above 1 that there are, rising, and how many nodes have each.
    adds : array of shape (degrees, numbers)
        What a share of 1 would add to each number.
    closed, deviation : array of shape (numbers,)
        The noisy numbers, and the standard deviation of their noise.
    models : sequence of (float, array)
        A bend (`BENDS`), and the share at each degree that is there by chance.
    shares : sequence of arrays
        The most likely share of closed wedges at each degree, by model.
    evidence : sequence of float
        The logarithm of how likely each model makes the numbers.
    modes : sequence of arrays
        The variables of these shares: see `logistic_share`.
    """

    there: Integers
    nodes: Integers
    adds: Floats
    closed: Floats
    deviation: Floats
    models: list[tuple[float, Floats]]
    shares: list[Floats]
    evidence: list[float]
    modes: list[Floats]

    @staticmethod
    def of(
        degrees: Integers,
        weights: Floats,
        closed: Floats,
        scale: float,
        triangles: Known = None,
        random: Floats | None = None,
    ) -> ClusteringCurves:
        """The fits, with parameters as for `estimate_clustering`.

        There are none where no node has a degree above 1.
        """
        nodes = np.bincount(degrees)
        there = np.flatnonzero(nodes)
        there = there[there > 1]
        wedges = (nodes[there] * there * (there - 1) / 2)[:, None]
        adds, deviation = wedges * weights[there], np.full(len(closed), np.sqrt(2) * scale)
        if triangles is not None:
            count, off = triangles
            adds, closed, deviation = np.hstack([adds, wedges / 3]), np.append(closed, count), np.append(deviation, off)
        chance = [0.0 * there] + [_AT_RANDOM * each[there] for each in (random,) if each is not None]
        models = [*product(BENDS, chance)]
        fits = [fit_curve(np.log2(there), adds, closed, deviation, *model) for model in models if len(there)]
        shares, evidence, modes = [fit[0] for fit in fits], [fit[1] for fit in fits], [fit[2] for fit in fits]
        return ClusteringCurves(there, nodes[there], adds, closed, deviation, models, shares, evidence, modes)

    def drawn(self, rng: Generator, doubt: Floats = NO_DOUBT) -> Floats:
        """Curves given the numbers, a row each: of each model as many as it is likely.

        They are drawn by importance: the normal approximation alone has shares at high degrees, of which the numbers
        tell little, that none of them allows. `doubt` has rows of factors of the share by chance, one drawn for each.
        """
        drawn = by_likelihood(self.evidence, rng, _DRAWS)
        return np.vstack([self._drawn(place, count, rng, doubt) for place, count in drawn])

    def _drawn(self, place: int, count: int, rng: Generator, doubt: Floats) -> Floats:
        """So many curves of a model.

        Source: sampling by importance, and again by its weights (Rubin, JASA 1987).
        """
        (bend, chance), octave = self.models[place], np.log2(self.there)
        basis = clustering_basis(octave, bend)
        _, slope = logistic_share(octave, basis @ self.modes[place], chance)
        changes = (self.adds / self.deviation).T @ (slope[:, None] * basis)
        curvature = np.eye(basis.shape[1]) + changes.T @ changes
        spread = np.sqrt(_FREEDOM / rng.chisquare(_FREEDOM, _PROPOSALS * count))
        off = normal_draws(curvature, len(spread), rng) * spread
        z = self.modes[place][:, None] + off
        by_chance = np.minimum(chance * doubt[rng.integers(len(doubt), size=len(spread))], _MOST_BY_CHANCE)
        shares, _ = logistic_share(octave, (basis @ z).T, by_chance)
        misfit, _ = laplace_misfit((shares @ self.adds - self.closed) / self.deviation)
        weight = (_FREEDOM + len(z)) / 2 * np.log1p(np.einsum("ij,ij->j", off, curvature @ off) / _FREEDOM)
        weight -= misfit.sum(axis=1) + 0.5 * (z**2).sum(axis=0)
        likely = np.exp(weight - weight.max())
        while likely.sum() ** 2 < min(_LEAST_EFFECTIVE, count) * (likely**2).sum():
            likely **= 0.9
        return np.asarray(shares[rng.choice(len(shares), count, p=likely / likely.sum())])

    def evidence_of_none(self) -> float:
        """How much likelier the numbers are without a closed wedge than by curves, as a logarithm."""
        misfit, _ = laplace_misfit(self.closed / self.deviation)
        return float(math.log(len(self.evidence)) - np.logaddexp.reduce(self.evidence) - misfit.sum())


def fit_curve(
    octave: Floats, adds: Floats, closed: Floats, deviation: Floats, bend: float, chance: Floats | float = 0.0
) -> tuple[Floats, float, Floats]:
    """The most likely share at each octave, the logarithm of the evidence, and the variables.

    The evidence is the likelihood of `closed` by Laplace's approximation. `adds`, of shape (octaves, tags), is the
    weight that a share of 1 would add to each tag. `chance` is as for `logistic_share`.
    """
    curve = clustering_basis(octave, bend)

    def negative(z: Floats) -> tuple[float, Floats]:
        share, by_curve = logistic_share(octave, curve @ z, chance)
        misfit, slope = laplace_misfit((share @ adds - closed) / deviation)
        gradient = z + curve.T @ (by_curve * (adds @ (slope / deviation)))
        return float(misfit.sum() + 0.5 * z @ z), gradient

    z = most_likely(negative, np.zeros(curve.shape[1]), _ITERATIONS_CLUSTERING)
    share, by_curve = logistic_share(octave, curve @ z, chance)
    changes = (adds / deviation).T @ (by_curve[:, None] * curve)
    curvature = np.eye(len(z)) + INFORMATION * changes.T @ changes
    return share, -negative(z)[0] - 0.5 * float(np.linalg.slogdet(curvature)[1]), z


def logistic_share(octave: Floats, curve: Floats, chance: Floats | float) -> tuple[Floats, Floats]:
    """The share of closed wedges, and its derivative by the curve.

    Its odds are those of a share by chance, and others whose logarithm is the curve beside the usual slope.
    """
    own = np.exp(np.clip(_SLOPE * (octave - 1) + curve, -300, 300))
    odds = chance / (1 - chance) + own
    return np.asarray(odds / (1 + odds)), np.asarray(own / (1 + odds) ** 2)


def clustering_basis(octave: Floats, bend: float) -> Floats:
    """The curves that the logit of clustering may take besides its slope: see `curve_basis`."""
    return curve_basis(octave, level=3.0, slope=0.5, bend=bend)
