"""What the queries of the paper tell of a secret graph: where they leave much open, intervals are wide."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.random import Generator

from wpinq.arrays import Floats, Integers
from wpinq.graphs.synthesis.degree_trust import edges_interval, largest_degree_interval, nodes_interval
from wpinq.graphs.synthesis.trust import CONFIDENCE, TAIL, WIDE, Interval
from wpinq.measure.answers import Answers
from wpinq.measure.laws import half_width

ASKED = "triangles of degrees that were not asked for"
FITTED = "the bias of fitted degrees"
_DRAWS = 2000

Tells = Callable[[Answers, Integers, float, Generator], Mapping[str, Interval]]
"""From the answers to a query, the fitted degrees, and the most that the largest degree may be, to intervals."""


def nothing(answers: Answers, degrees: Integers, largest: float, rng: Generator) -> dict[str, Interval]:
    """Of a query that is no statistic of a graph."""
    return {}


def degree_intervals(ccdf: Answers) -> dict[str, Interval]:
    """What counts of nodes of degree above 0, 1, 2, … tell of nodes, edges and the largest degree."""
    values = np.asarray(ccdf.values, dtype=np.float64)
    limits = [0, *(2**k for k in range(1, len(values).bit_length() + 1) if 2**k < len(values)), len(values)]
    terms = np.diff(limits).tolist()
    mass = np.add.reduceat(values, limits[:-1])
    return {
        "nodes": nodes_interval(ccdf[0], ccdf.scale),
        "edges": edges_interval(mass, ccdf.scale, terms),
        "largest_degree": largest_degree_interval(limits, mass, ccdf.scale, terms),
    }


def by_intersect(answers: Answers, degrees: Integers, largest: float, rng: Generator) -> dict[str, Interval]:
    """Of triangles: each adds from 3/largest to 3/2, and which degrees they have the answer does not tell."""
    (weight,) = answers.values
    off = half_width(answers.scale, CONFIDENCE)
    low, high = max(0.0, (weight - off) * 2 / 3), max(0.0, (weight + off) * max(largest, 2.0) / 3)
    return {"triangles": Interval(float(low), float(high), bool(weight <= off), cautious=True)}


def by_degree(bucket: int) -> Tells:
    """Of triangles: one of degrees x, y, z adds `3/(x² + y² + z²)`, and in a bucket these may be any."""

    def tells(answers: Answers, degrees: Integers, largest: float, rng: Generator) -> dict[str, Interval]:
        places = np.array(list(answers.keys), dtype=np.float64) * bucket
        least, most = np.maximum(places, 2), np.maximum(places + bucket - 1, 2)
        ends = [_sum(answers, (degree**2).sum(axis=1) / 3, rng) for degree in (least, most)]
        return {"triangles": Interval.of_count(min(low for low, _ in ends), max(high for _, high in ends), ASKED)}

    return tells


def by_joint_degrees(answers: Answers, degrees: Integers, largest: float, rng: Generator) -> dict[str, Interval]:
    """Of assortativity: a directed edge between degrees x and y adds `1/(2 + 2x + 2y)`, so `Σ xy` has noise alone."""
    x, y = np.array(list(answers.keys), dtype=np.float64).T
    fitted = degrees.astype(np.float64)
    stubs = fitted.sum()
    middle = (fitted**2).sum() / stubs
    variance = (fitted**3).sum() / stubs - middle**2
    if variance <= 0:  # of nodes that all have one degree there is none
        return {"assortativity": Interval(-1.0, 1.0, True, FITTED)}
    low, high = ((end / stubs - middle**2) / variance for end in _sum(answers, (2 + 2 * x + 2 * y) * x * y, rng))
    low, high = float(np.clip(low, -1, 1)), float(np.clip(high, -1, 1))
    return {"assortativity": Interval(low, high, high - low > WIDE, FITTED)}


def _sum(answers: Answers, factors: Floats, rng: Generator) -> tuple[float, float]:
    """The interval of a sum of released weights, each times a factor."""
    noise = rng.laplace(scale=answers.scale, size=(_DRAWS, len(factors))) @ factors
    middle, off = float(np.asarray(answers.values) @ factors), float(np.quantile(noise, 1 - TAIL))
    return middle - off, middle + off
