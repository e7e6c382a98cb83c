"""What tags tell of triangles, clustering and assortativity: draws of the curves that the answers leave possible.

The estimates are curves under a smooth prior. To take the most likely curve for the truth, draw noise anew and estimate
again says how far noise moves an estimate, not how far the prior holds it from a truth that is not smooth: on small
graphs such intervals hold what they should in 0 to 75 % of runs. So it is the curve that is drawn, from the normal
approximation of what the answers and the prior leave of it, each bend and reach as often as it is likely.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.random import Generator

from wpinq.arrays import Floats, Integers
from wpinq.graphs.synthesis.estimates.clustering import BENDS, ClusteringCurves, clustering_basis
from wpinq.graphs.synthesis.estimates.mixing import REACHES, DegreeClasses, Field, balanced, reach_evidence
from wpinq.graphs.synthesis.trust import TAIL, WIDE, Interval

CURVES = "the bias of a smooth curve over estimated degrees"
MIXED = "the bias of smooth mixing of estimated degrees"
_DRAWS, _FIELD_DRAWS, _NULL_DRAWS = 400, 200, 50_000
_SURE = 1e-12
_BALANCING = 12
"""Rounds: what is left of the difference in the rows is far below the noise."""


def clustering_intervals(
    degrees: Integers,
    weights: Floats,
    closed: Floats,
    scale: float,
    triangles: tuple[float, float] | None,
    rng: Generator,
) -> dict[str, Interval]:
    """Of triangles and average clustering.

    A logistic curve is nowhere 0 or 1, so that no draw is. Where the answers do not rule out that no wedge is closed,
    or that all are, the interval goes that far: where the sum of squared deviations exceeds that of the best curve by
    no more than if noise alone, wherever it has the sign that a curve could follow, had been followed.

    Parameters
    ----------
    degrees, weights, closed, scale, triangles
        As for `estimate_clustering`.
    rng : Generator
        For the draws.
    """
    curves = ClusteringCurves.of(degrees, weights, closed, scale, triangles)
    if not len(curves.there):  # and no wedge: whether that is so of the secret graph these answers do not say
        return {
            "triangles": Interval(0.0, np.inf, True, CURVES),
            "average_clustering": Interval(0.0, 1.0, True, CURVES),
        }
    shares = np.hstack([_drawn_shares(curves, place, int(n), rng) for place, n in _by_likelihood(curves.evidence, rng)])
    wedges = curves.nodes * curves.there * (curves.there - 1) / 2
    best = min(_misses(curves, share) for share in curves.shares)
    most = _followed(int((curves.adds > 0).any(axis=0).sum()))
    none, every = (_misses(curves, np.full(len(wedges), share)) - best < most for share in (0.0, 1.0))
    found = {}
    for name, counts in (("triangles", wedges / 3), ("average_clustering", curves.nodes / len(degrees))):
        low, high = np.quantile(counts @ shares, [TAIL, 1 - TAIL])
        found[name] = Interval.of_count(0.0 if none else low, counts.sum() if every else high, CURVES)
    return found


def mixing_interval(classes: DegreeClasses, shares: Floats, joint: Floats, scale: float, rng: Generator) -> Interval:
    """Of assortativity, the correlation of the degrees of the two ends of an edge.

    Parameters
    ----------
    classes, shares, joint, scale
        As for `estimate_mixing`.
    rng : Generator
        For the draws.
    """
    degrees = classes.degrees.astype(np.float64)
    stubs, mean = degrees.sum(), classes.stub_mean(np.arange(classes.degrees.max() + 1.0))
    middle = (degrees**2).sum() / stubs
    variance = (degrees**3).sum() / stubs - middle**2
    if variance < _SURE * middle**2:  # of nodes that all have one degree there is none
        return Interval(-1.0, 1.0, True, MIXED)
    fields = [Field(classes, shares, joint, scale, reach) for reach in REACHES]
    fits = [field.likeliest() for field in fields]
    evidence = reach_evidence([found for _, _, found in fits])
    draws = []
    for place, count in _by_likelihood(evidence, rng, _FIELD_DRAWS):
        likeliest, curvature, _ = fits[place]
        for off in _normal(curvature, count, rng).T:
            mixing = balanced(fields[place].mixed(likeliest + off), classes.stubs, _BALANCING)
            draws.append((mean @ mixing @ mean / stubs - middle**2) / variance)
    low, high = np.clip(np.quantile(draws, [TAIL, 1 - TAIL]), -1, 1)
    return Interval(float(low), float(high), bool(high - low > WIDE), MIXED)


def _by_likelihood(evidence: list[float], rng: Generator, draws: int = _DRAWS) -> list[tuple[int, int]]:
    """Which models to draw from, and how often, given the logarithm of the evidence of each."""
    likelihood = np.exp(np.array(evidence) - max(evidence))
    often = rng.multinomial(draws, likelihood / likelihood.sum())
    return [(place, int(count)) for place, count in enumerate(often) if count]


def _drawn_shares(curves: ClusteringCurves, place: int, count: int, rng: Generator) -> Floats:
    """So many curves around the most likely one of a bend: a column each."""
    share = np.clip(curves.shares[place], _SURE, 1 - _SURE)
    basis = clustering_basis(np.log2(curves.there), BENDS[place])
    changes = (curves.adds / curves.deviation).T @ ((share * (1 - share))[:, None] * basis)
    drawn = basis @ _normal(np.eye(basis.shape[1]) + changes.T @ changes, count, rng)
    return np.asarray(1 / (1 + np.exp(-(np.log(share / (1 - share))[:, None] + np.clip(drawn, -500, 500)))))


def _normal(curvature: Floats, count: int, rng: Generator) -> Floats:
    """Normal draws whose covariance is the inverse of the curvature, a column each."""
    size, direction = np.linalg.eigh(curvature)
    scaled = direction / np.sqrt(np.maximum(size, _SURE * size.max()))
    return np.asarray(scaled @ rng.standard_normal((len(size), count)))


@lru_cache(maxsize=64)
def _followed(numbers: int) -> float:
    """What `Σ max(0, n)²` over so many Laplace variables of standard deviation 1 exceeds in a twentieth of draws."""
    noise = np.random.default_rng(0).laplace(scale=np.sqrt(0.5), size=(_NULL_DRAWS, numbers))
    return float(np.quantile((np.maximum(noise, 0) ** 2).sum(axis=1), 1 - TAIL))


def _misses(curves: ClusteringCurves, share: Floats) -> float:
    """The sum of the squares of what the numbers are off, in deviations."""
    return float((((share @ curves.adds - curves.closed) / curves.deviation) ** 2).sum())
