"""Targets, settings, convergence figures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import wpinq as wp
from wpinq import functions as F
from wpinq.errors import AnswersError, PlanError
from wpinq.mcmc import (
    GenericChain,
    ReplaceRecord,
    Settings,
    Target,
    noise_level,
)
from wpinq.measure.answers import Answers

WORDS = wp.source("words", str)
COUNTS = WORDS.noisy_count(0.5, ["a", "b"])
ANSWERS = Answers(COUNTS, 2.0, np.array([3.0, -1.0]))


@dataclass(frozen=True, slots=True)
class Rounded(Target):
    within: float = 0.0

    @property
    def width(self) -> float:
        return self.within


def test_a_score_is_epsilon_times_the_distance_over_the_domain() -> None:
    output = {"a": 1.0, "c": 5.0}
    assert Target(ANSWERS).score(output) == 0.5 * (2 + 1)
    assert Target(ANSWERS, outside=True).score(output) == 0.5 * (2 + 1 + 5)


def test_the_noise_level_is_the_mean_score_of_the_measured_data() -> None:
    """Over 4000 keys, within 5 standard errors, whose error in turn is small: false alarm below 1e-5."""
    numbers = wp.source("numbers", int)
    answers = wp.simulate(numbers.noisy_count(0.5, range(4000)), {"numbers": [7] * 3}, 1, engine="reference")
    target = Target(answers)
    errors = 0.5 * np.abs(answers.values - np.eye(1, 4000, 7)[0] * 3)
    assert noise_level([target]) == pytest.approx(4000, rel=1e-5)
    assert target.score({7: 3.0}) == pytest.approx(errors.sum())
    assert abs(errors.sum() - noise_level([target])) < 5 * errors.std() * math.sqrt(4000)


def test_the_noise_level_of_geometric_noise_is_that_of_its_lattice() -> None:
    """As above, on a lattice of 1, where Laplace noise of the scale would be a tenth larger."""
    numbers = wp.source("numbers", int, facts=["unit_weights"])
    measured = numbers.select(lambda n: n % 4000).geometric_count(1.0, range(4000))
    answers = wp.simulate(measured, {"numbers": [7]}, 1, engine="reference")
    target = Target(answers)
    errors = np.abs(answers.values - np.eye(1, 4000, 7)[0])
    assert abs(errors.sum() - target.noise) < 5 * errors.std() * math.sqrt(4000) < 0.1 * target.noise


def test_near_an_answer_it_is_the_square_that_counts() -> None:
    output = {"a": 1.0, "b": -0.5, "c": 5.0}
    assert Rounded(ANSWERS, False, 1.0).score(output) == 0.5 * ((2 - 0.5) + 0.5**2 / 2)
    assert Rounded(ANSWERS, True, 4.0).score(output) == 0.5 * (2**2 / 8 + 0.5**2 / 8 + (5 - 2))


def test_only_counts_with_keys_can_be_targets() -> None:
    with pytest.raises(AnswersError, match="at least one key"):
        Target(Answers(WORDS.noisy_count(1, []), 1.0, np.array([])))
    with pytest.raises(AnswersError, match="NoisyCount or GeometricCount"):
        Target(wp.simulate(WORDS.most_common(1, ["a", "b"]), {"words": ["a"]}, 1))


@pytest.mark.parametrize("compiled", [False, True], ids=["python", "compiled"])
@pytest.mark.parametrize("outside", [False, True])
@pytest.mark.parametrize("width", [0.0, 0.8])
def test_the_score_of_a_chain_is_that_of_its_outputs(outside: bool, width: float, compiled: bool) -> None:
    numbers = wp.source("numbers", int)
    halves = numbers.select(lambda n: n // 2)
    sizes = numbers.group_by(lambda n: n % 3, lambda group: F.count(group))
    targets: list[Target] = []
    for query, keys in ((halves, [0, 1]), (sizes, [(0, 1), (1, 2)])):
        measurement = query.noisy_count(0.5, keys)
        targets.append(Rounded(Answers(measurement, 2.0, np.array([2.0, 1.0])), outside, width))
    chain = GenericChain(
        targets, ReplaceRecord("numbers", tuple(range(8))), {"numbers": {0: 3.0, 5: 2.0}}, seed=1, compiled=compiled
    )
    for _ in range(20):
        progress = chain.run(15, beta=1.0)
        fresh = sum(target.score(dict(output)) for target, output in zip(targets, chain.outputs, strict=True))
        assert progress.score == pytest.approx(fresh, abs=1e-9)
    assert 0 < progress.accepted < progress.evaluated <= progress.steps == 300


@pytest.mark.parametrize("seed", [0, 4])
def test_both_engines_draw_alike_however_a_tie_rounds(seed: int) -> None:
    """A draw for every decision: at these seeds, what is as good is worse by rounding in one engine."""
    numbers = wp.source("numbers", int)
    rests = numbers.select(lambda n: n % 3)
    query = numbers.join(rests, lambda n: n % 2, lambda rest: rest % 2, lambda n, rest: rest)
    target = Target(Answers(query.noisy_count(0.5, [0, 1, 2]), 2.0, np.array([1.3, 0.7, 0.2])))
    walk, start = ReplaceRecord("numbers", tuple(range(9))), {"numbers": dict.fromkeys(range(9), 1.0)}
    chains = [GenericChain([target], walk, start, seed=seed, compiled=compiled) for compiled in (False, True)]
    for chain in chains:
        chain.run(100, beta=1e4)
    assert chains[0].progress.accepted == chains[1].progress.accepted
    assert chains[0].candidate == chains[1].candidate


@pytest.mark.parametrize(
    "wrong", [{"steps": 0}, {"chains": 0}, {"seed": -1}, {"stop_at_noise": 0.0}, {"chunk": True}, {"beta": 0}]
)
def test_settings_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(PlanError):
        Settings(**{"steps": 10, **wrong})


def test_settings_are_read_back_as_they_were_written() -> None:
    settings = Settings(1000, 3.0, chains=2, seed=7, chunk=30, stop_at_noise=1.5)
    assert Settings.from_json(settings.to_json()) == settings
