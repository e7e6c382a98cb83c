"""Priors: every chance of acceptance on a tiny space is that of the posterior, and a run carries its prior."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wpinq as wp
from wpinq import functions as F
from wpinq.engines.delta.evaluator import Goal
from wpinq.errors import PlanError
from wpinq.graphs import fit_graph
from wpinq.graphs.synthesis import find_method
from wpinq.graphs.synthesis.method import Bounds
from wpinq.graphs.synthesis.report import report
from wpinq.mcmc import CheckpointError, GenericChain, Prior, ReplaceRecord, Settings, Target, sample
from wpinq.measure.answers import Answers

FACES = (0, 1, 2)
DICE = wp.source("dice", int, unit_weight=3)
TARGET = Target(Answers(DICE.noisy_count(0.7, FACES), 1 / 0.7, np.array([1.4, 1.0, 0.5])))
BETA = 1.5
STATES = [dict(Counter(drawn)) for drawn in combinations_with_replacement(FACES, 3)]

# Three forms: log chances of faces, a wanted number of distinct faces, and a normal prior of their sum.
FACE_CHANCES = DICE.select_many(lambda face: [F.weighted(face, F.where(face == 1, 0.4, 0.0 - 0.2 * face))])
SPREAD = DICE.shave(1.0).where(lambda piece: piece.index == 0).select(lambda piece: "faces")
SUM = DICE.select_many(lambda face: [F.weighted("sum", 0.25 * face)])
PRIORS = [Prior(FACE_CHANCES, 2.0), Prior(SPREAD, 0.8, {"faces": 2.0}), Prior(SUM, 3.0, {"sum": 0.6}, width=4.0)]


def log_prior(state: Mapping[int, int]) -> float:
    """The logarithm of the three priors, by hand."""
    chances = 2.0 * sum(count * {0: 0.0, 1: 0.4, 2: -0.4}[face] for face, count in state.items())
    total = sum(face * count for face, count in state.items())
    return chances - 0.8 * abs(len(state) - 2.0) - 3.0 * (0.25 * total - 0.6) ** 2 / 8.0


def posterior() -> list[float]:
    scores = [sum(0.7 * abs(state.get(face, 0) - value) for face, value in TARGET.values.items()) for state in STATES]
    heights = [math.exp(BETA * (log_prior(state) - score)) for state, score in zip(STATES, scores, strict=True)]
    return [height / math.fsum(heights) for height in heights]


@dataclass
class Script:
    """A walk that proposes given changes, and a generator that draws given levels."""

    changes: dict[int, float] = field(default_factory=dict)
    log_ratio: float = 0.0
    level: float = 0.0

    def propose(self, rng: Any, candidate: Any) -> Any:
        return {"dice": self.changes}, self.log_ratio

    def random(self) -> float:
        return self.level


class Scripted:
    """A chain at a given state, asked whether it takes a proposal at a given level."""

    def __init__(self, compiled: bool) -> None:
        self.script = Script()
        self.chain = GenericChain([TARGET, *PRIORS], self.script, {"dice": {0: 3.0}}, compiled=compiled)
        self.chain._rng = self.script  # type: ignore[assignment]

    def accepts(self, before: Mapping[int, int], changes: dict[int, float], log_ratio: float, level: float) -> bool:
        held = self.chain.candidate["dice"]
        self._step({face: before.get(face, 0.0) - held.get(face, 0.0) for face in FACES}, 0.0, 0.0)
        return self._step(changes, log_ratio, level)

    def _step(self, *script: Any) -> bool:
        self.script.changes, self.script.log_ratio, self.script.level = script
        accepted = self.chain.progress.accepted
        return self.chain.run(1, BETA).accepted > accepted


def check_detailed_balance(compiled: bool) -> None:
    """π(x)·q(x → y)·a(x → y) = π(y)·q(y → x)·a(y → x) for all pairs, with the chain's own chances a."""
    law, chain = posterior(), Scripted(compiled)
    flows = np.zeros((len(STATES), len(STATES)))
    for x, state in enumerate(STATES):
        for gone in state:
            for new in set(FACES) - {gone}:
                after = Counter(state)
                after.update({gone: -1, new: 1})
                y = STATES.index(dict(sorted((+after).items())))
                ratio = len(state) / len(+after)
                chance = min(1.0, ratio * law[y] / law[x])
                asked = state, {gone: -1.0, new: 1.0}, math.log(ratio)
                assert chain.accepts(*asked, chance * (1 - 1e-9))
                assert chance == 1.0 or not chain.accepts(*asked, chance * (1 + 1e-9))
                flows[x, y] += law[x] / (len(state) * len(FACES)) * chance
    assert flows == pytest.approx(flows.T, abs=1e-15)
    assert max(law) / min(law) > 10


@pytest.mark.parametrize("compiled", [False, True], ids=["python", "compiled"])
def test_every_chance_of_acceptance_is_that_of_the_posterior(compiled: bool) -> None:
    check_detailed_balance(compiled)


@pytest.mark.parametrize("factor", [0.0, -1.0], ids=["ignored", "negated"])
def test_a_prior_that_is_ignored_or_negated_is_found_out(factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    def goal(prior: Prior) -> Goal:
        return replace(honest(prior), epsilon=factor * honest(prior).epsilon)

    honest = Prior.goal.fget  # type: ignore[attr-defined]
    monkeypatch.setattr(Prior, "goal", property(goal))
    with pytest.raises(AssertionError):
        check_detailed_balance(False)


def run(prior: Any, folder: Path | None = None, steps: int = 600, **more: Any) -> Any:
    settings = Settings(steps, chains=2, seed=3, chunk=50, checkpoint_every=2, **more)
    start = {"dice": {0: 3.0}}
    walk = ReplaceRecord("dice", FACES)
    return sample([TARGET], walk, [start], settings, prior=prior, checkpoints=folder, compiled=False)


def test_a_run_traces_its_log_prior_beside_the_score_of_its_targets() -> None:
    found = run(PRIORS)
    for chain, trace in zip(found.chains, found.traces, strict=True):
        state = {face: round(weight) for face, weight in chain.candidate["dice"].items()}
        assert trace.statistics["log_prior"][-1] == pytest.approx(log_prior(state))
        assert trace.score[-1] == pytest.approx(TARGET.score(chain.candidate["dice"]))
        assert chain.progress.score == pytest.approx(trace.score[-1] - trace.statistics["log_prior"][-1])
    assert run(()).traces[0].statistics == {}


def test_the_best_chain_is_that_of_the_largest_posterior() -> None:
    found = run(Prior(FACE_CHANCES, 2.0))
    found.traces[0].score[-1], found.traces[0].statistics["log_prior"][-1] = 1.0, 0.0
    found.traces[1].score[-1], found.traces[1].statistics["log_prior"][-1] = 2.0, 3.0
    assert found.best == 1


def test_a_strong_prior_decides_where_answers_are_weak() -> None:
    assert run(Prior(FACE_CHANCES, 1000.0)).candidate["dice"] == {1: 3.0}
    assert run(Prior(FACE_CHANCES, -1000.0)).candidate["dice"] == {2: 3.0}
    assert run(Prior(DICE, 1000.0, {0: 1.0, 2: 2.0})).candidate["dice"] == {0: 1.0, 2: 2.0}


def test_a_checkpoint_is_of_one_prior(tmp_path: Path) -> None:
    through = run(PRIORS, tmp_path)
    assert run(PRIORS, tmp_path).traces == through.traces
    for other in ((), PRIORS[:2], [replace(PRIORS[0], weight=1.0), *PRIORS[1:]], PRIORS[::-1]):
        with pytest.raises(CheckpointError, match="other settings"):
            run(other, tmp_path)


def test_a_report_carries_the_prior() -> None:
    method = find_method("tbi")
    source = method.source()
    secret = [(a, b) for a in range(12) for b in range(12) if a != b and (a // 4 == b // 4 or abs(a - b) == 4)]
    wanted = method.measurements(source, 20, bounds=Bounds(nodes=20, degree=20))
    answers = {name: wp.simulate(each, {"edges": secret}, seed=1) for name, each in wanted.items()}
    far = Prior(source.where(lambda edge: edge.src - edge.dst > 4), -3.0)
    graph = fit_graph(answers, method, Settings(300, seed=1), prior=far, compiled=False)
    assert report(graph)["prior"] == [far.to_json()]
    output = dict(wp.evaluate(far.query, graph.samples.candidate))
    assert graph.samples.traces[0].statistics["log_prior"][-1] == pytest.approx(far.log(output))


def test_with_a_prior_chains_do_not_stop_at_rest() -> None:
    assert not Settings().settled(100, rest=False).stop_at_rest
    with pytest.raises(PlanError, match="stop_at_rest"):
        run(PRIORS, stop_at_rest=True)


@pytest.mark.parametrize(
    "wrong",
    [
        {"query": "faces"},
        {"weight": math.inf},
        {"weight": -1.0, "values": {"faces": 2.0}},
        {"values": {"faces": math.nan}},
        {"values": {3: 2.0}},
        {"values": {"faces": "2"}},
        {"width": 1.0},
        {"values": {"faces": 2.0}, "width": -1.0},
        {"values": {"faces": 2.0}, "width": math.inf},
    ],
)
def test_priors_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(PlanError):
        Prior(**{"query": SPREAD, **wrong})


def test_a_prior_over_a_source_that_the_candidate_lacks_is_refused() -> None:
    with pytest.raises(PlanError, match="the candidate lacks coins"):
        run(Prior(wp.source("coins", bool)))
