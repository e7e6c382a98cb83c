"""Graphical degree sequences from released statistics, and random graphs that have them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np

from wpinq.errors import AnswersError
from wpinq.graphs.fitting import degree_sequence_from_ccdf, fit_degree_sequence
from wpinq.measure.answers import Answers
from wpinq.runtime.arrays import Integers
from wpinq.runtime.optional_imports import install

CCDF, SEQUENCE = "degree_ccdf", "degree_sequence"
"""The names of the two measurements that degrees are fitted to."""


def fit_degrees(answers: Mapping[str, Answers]) -> Integers:
    """The degrees that the released `degree_ccdf`, and `degree_sequence` where it was released, fit best.

    Returns
    -------
    ndarray of int64
        Non-increasing, all > 0; no simple graph need have them (`graphical` mends that).

    Raises
    ------
    AnswersError
        When there is no CCDF, keys are missing, or no degree is left above the noise.
    """
    ccdf = _in_order(CCDF, answers)
    if SEQUENCE in answers:
        sequence = _in_order(SEQUENCE, answers)
        degrees = fit_degree_sequence(sequence, ccdf, sequence.scale, ccdf.scale)
    else:
        degrees = degree_sequence_from_ccdf(ccdf)
    if len(degrees) < 2:
        raise AnswersError("the released degrees are lost in their noise: measure with a larger epsilon or share")
    return degrees


def _in_order(name: str, answers: Mapping[str, Answers]) -> Answers:
    if name not in answers:
        there = ", ".join(answers) or "none"
        raise AnswersError(f"the degrees are fitted to answers named {name!r}; there are {there}")
    found = answers[name]
    if found.keys != tuple(range(len(found))):
        raise AnswersError(f"{name}: the keys must be 0, 1, 2, … without gaps, for a fit")
    return found


def graphical(degrees: Any) -> Integers:
    """Degrees near the given ones that some simple graph has.

    The Erdős-Gallai condition asks for all k, with degrees in falling order, that
    `Σ_{i ≤ k} d_i ≤ k(k − 1) + Σ_{i > k} min(d_i, k)`. Where the k largest ask for more, they are lowered by the
    excess, evenly; an odd sum is mended by one. Degrees that are graphical already stay as they are.

    Parameters
    ----------
    degrees : array-like of int
        At least 0.

    Returns
    -------
    ndarray of int64
        Non-increasing, of the same length, none larger than before.

    Notes
    -----
    Privacy cost: none. Source: Erdős and Gallai, Matematikai Lapok 1960.

    Examples
    --------
    >>> graphical([5, 2, 1, 1]), graphical([3, 3, 2, 2])
    (array([3, 1, 1, 1]), array([3, 3, 2, 2]))
    """
    found = np.asarray(degrees, dtype=np.int64)
    if (found < 0).any():
        raise AnswersError("degrees are at least 0")
    while True:
        found = np.sort(np.maximum(found, 0))[::-1].copy()
        excess = _excess(found)
        if (excess > 0).any():
            size = int(np.argmax(excess)) + 1
            share, rest = divmod(int(excess[size - 1]), size)
            found[:size] -= share
            found[:rest] -= 1
        elif found.sum() % 2:
            found[np.flatnonzero(found)[-1]] -= 1
        else:
            return found


def _excess(falling: Integers) -> Integers:
    """How far `Σ_{i ≤ k} d_i` exceeds `k(k − 1) + Σ_{i > k} min(d_i, k)`, for k = 1, 2, …, n."""
    count = len(falling)
    sizes = np.arange(1, count + 1)
    sums = np.concatenate([[0], np.cumsum(falling)])
    above = np.searchsorted(-falling, -sizes, side="right")  # how many degrees are at least k
    split = np.maximum(above, sizes)
    most = sizes * (sizes - 1) + sizes * (split - sizes) + sums[-1] - sums[split]
    return np.asarray(sums[sizes] - most, dtype=np.int64)


def random_graph(degrees: Integers, rng: np.random.Generator) -> Integers:
    """A random simple graph with given degrees: node i has the i-th.

    igraph realises the degrees by Havel and Hakimi's construction and exchanges the ends of ten times as many pairs of
    edges as there are edges, which comes near a uniform draw.

    Parameters
    ----------
    degrees : array of int
        Graphical.
    rng : Generator
        What the draw depends on, with igraph's version.

    Returns
    -------
    array of int64, shape (edges, 2)
        Each edge once.

    Examples
    --------
    >>> edges = random_graph(np.array([3, 2, 2, 2, 1]), np.random.default_rng(1))
    >>> np.bincount(edges.ravel())
    array([3, 2, 2, 2, 1])
    """
    igraph = import_igraph()
    igraph.set_random_number_generator(random.Random(int(rng.integers(2**62))))
    try:
        drawn = igraph.Graph.Degree_Sequence(degrees.tolist(), method="edge_switching_simple")
    finally:
        igraph.set_random_number_generator(random)
    return np.array(drawn.get_edgelist(), dtype=np.int64).reshape(-1, 2)


def graph_of(nodes: int, edges: Integers) -> Any:
    """The igraph of these edges. Its constructor takes twice as long as `add_edges`, and that longer for an array."""
    graph = import_igraph().Graph(nodes)
    flat: Any = np.ascontiguousarray(edges, dtype=np.int64)
    graph.add_edges(memoryview(flat))
    return graph


def import_igraph() -> Any:
    """igraph, when first used; AnswersError where it is not installed."""
    try:
        import igraph
    except ModuleNotFoundError:
        raise AnswersError(f"synthetic graphs need igraph: {install('synthesis')}") from None
    return igraph
