"""A recipe on its worst pair of graphs, through a session with real noise: what an attacker learns, from many answers.

Joint degrees of two stars, with and without the edge between their centres. Noise is not seeded: each assertion fails
by chance with a probability of at most 1e-6.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import wpinq as wp
from tests.support.graph_queries import RECIPES, Measured, block_graph, source
from wpinq.sinks import laplace

pytestmark = pytest.mark.long

RELEASES = 2_000
EPSILON = 2
EDGES = source("unit_weights", "simple")
WITHOUT = block_graph(0, 20, 20)
WITH = WITHOUT | {(0, 1)}
MEASURED = Measured(RECIPES["joint degrees"](EDGES))

Floats = npt.NDArray[np.float64]


def _of(graph: Iterable[tuple[int, int]], keys: list[Any]) -> Floats:
    output = MEASURED.output(graph)
    return np.array([float(output.get(key, 0)) for key in keys])


KEYS = sorted(
    key
    for key in {*MEASURED.output(WITHOUT), *MEASURED.output(WITH)}
    if MEASURED.output(WITHOUT).get(key) != MEASURED.output(WITH).get(key)
)
BEFORE, AFTER = _of(WITHOUT, KEYS), _of(WITH, KEYS)
LOSS = EPSILON * float(MEASURED.moved(WITHOUT, [(0, 1)]))
"""The loss on this pair, from its exact move: 2 x 3.58."""


def released(graph: Iterable[tuple[int, int]]) -> Floats:
    """Fresh releases, a row each."""
    asked = MEASURED.query.noisy_count(EPSILON, over=KEYS)
    with wp.Session(engine="reference") as session:
        session.protect(EDGES, sorted(graph), budget=10**6)
        answers = [session.release(asked, fresh=True).values for _ in range(RELEASES)]
        assert session.spent("edges") == RELEASES * EPSILON * MEASURED.bound
    return np.array(answers)


def loss_of_events(without: Floats, with_edge: Floats) -> float:
    """The logarithms of how much likelier it is with the edge that a number is beyond its weight there, added up."""
    beyond = [((np.sign(AFTER - BEFORE) * (answers - AFTER)) >= 0).mean(axis=0) for answers in (without, with_edge)]
    return float(np.log(beyond[1] / beyond[0]).sum())


def loss_of_scale(answers: Floats, weights: Floats) -> float:
    """The loss on the pair under Laplace noise of the scale that is seen."""
    return float(np.abs(AFTER - BEFORE).sum() / np.abs(answers - weights).mean())


def test_what_an_attacker_learns_stays_below_what_is_claimed() -> None:
    without, with_edge = released(WITHOUT), released(WITH)
    claimed = EPSILON * float(MEASURED.bound)
    assert 0.85 * LOSS <= loss_of_events(without, with_edge) <= claimed  # of a standard deviation of 0.16
    for answers, weights in ((without, BEFORE), (with_edge, AFTER)):
        assert math.isclose(loss_of_scale(answers, weights), LOSS, rel_tol=0.05)  # five standard deviations


def test_a_tenth_too_little_noise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = laplace.laplace_scale
    monkeypatch.setattr(laplace, "laplace_scale", lambda *arguments: 0.9 * whole(*arguments))
    assert loss_of_scale(released(WITHOUT), BEFORE) > 1.05 * LOSS


def test_the_pair_is_nearly_the_worst() -> None:
    assert MEASURED.moved(WITHOUT, [(0, 1)]) >= Fraction(85, 100) * MEASURED.bound
