"""Nodes, edges and the largest degree of a secret graph, straight from what was released of its degrees.

No estimate is in between: only the noise, of which all is known. So the intervals hold for every graph, however
unlike it is to what an estimate takes for likely.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from wpinq.arrays import Floats
from wpinq.graphs.synthesis.trust import CONFIDENCE, TAIL, Interval
from wpinq.measure.laws import half_width

_DRAWS = 50_000
_WINDOW = 2
"""How many bands of degrees are looked at together, in search of what a large degree would leave there."""
_FALL = 0.5
"""What each band further up counts: of bands beyond the largest degree, the lowest is the first to hold anything."""


def nodes_interval(nodes: float, scale: float) -> Interval:
    """The number of nodes, from a noisy one with Laplace noise of that scale.

    Examples
    --------
    >>> nodes_interval(100, 10)
    Interval(low=76.97414907005954, high=123.02585092994046, swamped=False, leaves_out='', cautious=False)
    """
    off = half_width(scale, CONFIDENCE)
    return Interval.of_count(nodes - off, nodes + off)


def edges_interval(mass: Floats, scale: float, terms: Sequence[int]) -> Interval:
    """The number of edges: half the sum of all degree; see `largest_degree_interval`."""
    total, off = float(mass.sum()), scale * _quantile(sum(terms), 1 - TAIL)
    return Interval.of_count((total - off) / 2, (total + off) / 2)


def largest_degree_interval(limits: Sequence[int], mass: Floats, scale: float, terms: Sequence[int]) -> Interval:
    """The degrees of which the answers do not rule out that they are the largest one.

    Band i of degrees, between the limits C_i and C_{i+1}, holds `m_i = Σ_a clamp(d_a − C_i, 0, C_{i+1} − C_i)`. A
    largest degree d fills the bands below it and adds `d − C_i` to its own: where its own noisy band, or the sum of
    that and the one below, falls short of that by more than noise does once in forty times, d is ruled out. From the
    other side, nothing is in the bands above d: where their noisy sum, each counting half of the one below, is more
    than noise alone gives once in twenty times, d is ruled out.

    Parameters
    ----------
    limits : sequence of int
        C_0 = 0 < C_1 < …, no largest degree beyond the last.
    mass : array of shape (bands,)
        Noisy `m_i`.
    scale : float
        Of the Laplace noise of one released number.
    terms : sequence of int
        How many released numbers each band is the sum of.

    Returns
    -------
    Interval
        Each side misses in at most a twentieth of runs, and in fewer where other nodes fill the bands too. Where they
        contradict each other, one of them has missed, and what is between them stands.

    Notes
    -----
    A Neyman construction: each degree is tested by itself, at its own level.

    Examples
    --------
    >>> found = largest_degree_interval([0, 2, 4, 8, 16], np.array([40.0, 25.0, 9.0, 0.0]), 0.5, [1, 1, 1, 1])
    >>> found.low, round(found.high, 2), found.swamped
    (5.0, 9.5, False)
    """
    bands, widths = len(mass), np.diff(limits)
    above, ruled_out = 0.0, []
    for i in range(bands)[::-1]:
        above = float(mass[i]) + _FALL * above
        ruled_out.append(above > scale * _quantile_above(tuple(terms[i:])))
    low = 1.0
    for i, out in enumerate(ruled_out[::-1]):  # up to the first that stands: so only the test of the true one can err
        if not out:
            break
        low = float(limits[i] + 1)
    high = 1.0
    for i in range(bands):
        top = float(limits[i + 1])
        for size in range(1, min(_WINDOW, i + 1) + 1):
            window = slice(i + 1 - size, i + 1)
            off = scale * _quantile(sum(terms[window]), 1 - TAIL / _WINDOW)
            top = min(top, float(limits[i] + mass[window].sum() + off - widths[i + 1 - size : i].sum()))
        if top > limits[i]:
            high = top
    low, high = sorted((low, high))
    return Interval.of_count(low, high, cautious=True)


@lru_cache(maxsize=256)
def _quantile(terms: int, chance: float) -> float:
    """What the sum of so many Laplace draws of scale 1 stays below with this chance."""
    return half_width(1.0, 2 * chance - 1) if terms == 1 else float(np.quantile(_noise(terms), chance))


@lru_cache(maxsize=256)
def _quantile_above(terms: tuple[int, ...]) -> float:
    """What the sum of bands, each counting half of the one before, exceeds in a twentieth of draws by noise alone."""
    noise = sum((_FALL**place * _noise(count, place) for place, count in enumerate(terms)), np.zeros(_DRAWS))
    return float(np.quantile(noise, 1 - TAIL))


def _noise(terms: int, seed: int = 0) -> Floats:
    """Draws of the sum of so many Laplace variables of scale 1, a difference of gammas: the same every time."""
    rng = np.random.default_rng(seed)
    return np.asarray(rng.standard_gamma(terms, _DRAWS) - rng.standard_gamma(terms, _DRAWS))
