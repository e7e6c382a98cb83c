"""Mechanisms of other authors, simulated on public graphs. Never for protected data."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wpinq.errors import EpsilonError, PlanError


class JointDegrees(NamedTuple):
    """Noisy joint degrees: for each pair of degrees `i <= j`, the noisy number of edges between such nodes.

    Attributes
    ----------
    i, j : ndarray of int64
        The pairs, in lexicographic order.
    noisy : ndarray of float64
        Count plus noise, in the same order.
    """

    i: npt.NDArray[np.int64]
    j: npt.NDArray[np.int64]
    noisy: npt.NDArray[np.float64]


def sala_joint_degrees(edges: Any, epsilon: float, max_degree: int, seed: int) -> JointDegrees:
    """Simulate the joint-degree mechanism of Sala et al., as corrected by Proserpio et al., on a PUBLIC graph.

    Every pair of degrees 1 <= i <= j <= max_degree, present in the graph or not, gets

        (number of edges between a node of degree i and one of degree j) + Laplace(4·max(i, j) / epsilon)

    The noise is numpy's, which is not safe for a release. Use it for experiments on public data only.

    Parameters
    ----------
    edges : array-like of shape (number of edges, 2)
        Integer node ids of undirected edges, in either or both directions; an edge given twice counts once.
        No self-loops.
    epsilon : float
        Positive and finite: the ε of the mechanism that is simulated, for one undirected edge.
    max_degree : int
        Public bound on the degrees, >= 1. max_degree·(max_degree + 1)/2 pairs are returned.
    seed : int
        Seed of the noise.

    Returns
    -------
    JointDegrees
        Arrays `i`, `j`, `noisy`, one entry for every pair of the domain.

    Raises
    ------
    EpsilonError
        When epsilon is not a positive finite number.
    PlanError
        When edges are not integer pairs without self-loops, max_degree is not an int >= 1, or a degree exceeds it.

    Notes
    -----
    Costs no privacy because the graph is public. That the mechanism is ε-differentially private is shown by
    `Σ |change of count(i, j)| / (4·max(i, j)) <= 1` when one edge {a, b} comes or goes. Let p and q be the degrees
    of a and b with the edge. The edge itself changes count(p, q) by 1. Each of the p − 1 other edges of a, to a
    node of degree k, moves from the pair of (p − 1, k) to that of (p, k), and changes either by 1. So the sum of
    `|change| / max(i, j)` is at most::

        1/max(p, q) + (p − 1)·(1/(p − 1) + 1/p) + (q − 1)·(1/(q − 1) + 1/q)
        <= 1/max(p, q) + (2 − 1/p) + (2 − 1/q) = 4 − 1/min(p, q) < 4

    where the middle terms count only for p > 1 and q > 1. The argument needs noise on **every** pair of the
    domain. If only the pairs that occur were released, then the mere presence of a pair would tell for certain
    that some edge joins such degrees: one edge more or less would change the set of pairs, which no noise on the
    counts can hide.

    Source: Sala, Zhao, Wilson, Zheng and Zhao, IMC 2011; corrected in Proserpio, Goldberg and McSherry, VLDB 2014,
    appendix C.

    Examples
    --------
    >>> path = [(0, 1), (1, 2), (2, 3)]
    >>> exact = sala_joint_degrees(path, epsilon=1e9, max_degree=2, seed=1)
    >>> [(int(i), int(j), round(float(noisy))) for i, j, noisy in zip(*exact)]
    [(1, 1, 0), (1, 2, 2), (2, 2, 1)]
    """
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise EpsilonError("epsilon must be a positive finite number")
    if isinstance(max_degree, bool) or not isinstance(max_degree, int) or max_degree < 1:
        raise PlanError("max_degree must be an int of at least 1: give a public bound on the degrees")
    degrees = _end_degrees(edges)
    if len(degrees) and degrees.max() > max_degree:
        raise PlanError(f"a node has a degree above max_degree={max_degree}: give a larger public bound")
    counts = np.zeros((max_degree, max_degree))
    np.add.at(counts, (degrees.min(axis=1) - 1, degrees.max(axis=1) - 1), 1.0)
    i, j = np.triu_indices(max_degree)
    scales = 4.0 * (j + 1) / epsilon
    noisy = counts[i, j] + np.random.default_rng(seed).laplace(0.0, scales)
    return JointDegrees(i.astype(np.int64) + 1, j.astype(np.int64) + 1, noisy)


def _end_degrees(edges: Any) -> npt.NDArray[np.int64]:
    """For each undirected edge once, the degrees of its two ends."""
    try:
        pairs = np.asarray(edges)
    except ValueError:
        raise PlanError("edges must be pairs of integer node ids") from None
    if not pairs.size:
        return np.zeros((0, 2), dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.issubdtype(pairs.dtype, np.integer):
        raise PlanError("edges must be pairs of integer node ids")
    if (pairs[:, 0] == pairs[:, 1]).any():
        raise PlanError("edges hold a self-loop: drop self-loops first")
    once = np.unique(np.sort(pairs, axis=1), axis=0)
    _, ends, degrees = np.unique(once, return_inverse=True, return_counts=True)
    return degrees[ends].reshape(once.shape).astype(np.int64)
