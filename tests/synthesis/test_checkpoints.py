"""A chain that goes on from its file ends as if it had never stopped, to the last bit."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wpinq as wp
from tests.support.parameters import for_each
from wpinq import functions as F
from wpinq.engines.delta.compiled.hash_tables.evaluator import MOST_OUTPUTS
from wpinq.errors import PlanError
from wpinq.graphs import degrees, triangles_by_intersect
from wpinq.mcmc import (
    CheckpointError,
    EdgeMoves,
    ReplaceRecord,
    Settings,
    Swaps,
    Target,
    Update,
    Walk,
    sample,
)
from wpinq.mcmc.run import _is_at_rest
from wpinq.measure.answers import Answers

EDGES = wp.source("edges", src=int, dst=int, unit_weight=2)
RING = np.array([(i, (i + k) % 30) for i in range(30) for k in (1, 7)])


def target(query: wp.Query, values: dict[Any, float]) -> Target:
    measurement = query.noisy_count(0.1, values)
    return Target(Answers(measurement, 10.0, np.array(list(values.values()))))


TBI = target(triangles_by_intersect(EDGES), {"triangle!": 12.3})
DEGREES = target(degrees(EDGES).select(lambda node: node.val), {degree: 5.0 - degree / 2 for degree in range(1, 8)})
SETTINGS = Settings(3000, 50.0, seed=4, chunk=100, checkpoint_every=3)


class Stop(Exception):
    pass


def run(walk: Walk, goal: Target, folder: Path | None, stop_at: int | None = None, **more: Any) -> Any:
    def on_update(update: Update) -> None:
        if update.steps == stop_at:
            raise Stop

    more.setdefault("settings", SETTINGS)
    return sample([goal], walk, [{"edges": RING}], checkpoints=folder, on_update=on_update, **more)


@for_each("stop_at", [100, 1700, 3000])
@for_each(
    ("walk", "goal", "compiled"),
    [
        (Swaps(), TBI, True),
        (Swaps(triad_share=0.5), TBI, True),
        (EdgeMoves(tuple(range(30)), 0.5), DEGREES, True),
        (EdgeMoves(tuple(range(30)), 0.5), DEGREES, False),
    ],
    ids=["lists", "closing", "tables", "python"],
)
def test_going_on_is_the_same_to_the_last_bit(
    walk: Walk, goal: Target, compiled: bool, stop_at: int, tmp_path: Path
) -> None:
    through = run(walk, goal, None, compiled=compiled)
    with pytest.raises(Stop):
        run(walk, goal, tmp_path, stop_at, compiled=compiled)
    resumed = run(walk, goal, tmp_path, compiled=compiled)
    assert resumed.traces == through.traces
    assert resumed.chains[0].candidate == through.chains[0].candidate
    assert resumed.chains[0].outputs == through.chains[0].outputs


def test_a_general_dataset_goes_on_too(tmp_path: Path) -> None:
    words = wp.source("words", str)
    goal, walk = target(words, {"a": 3.0, "b": 2.2}), ReplaceRecord("words", ("a", "b", "c"))

    def go(folder: Path | None, stop_at: int | None = None) -> Any:
        def on_update(update: Update) -> None:
            if update.steps == stop_at:
                raise Stop

        start = {"words": {"c": 5.0}}
        return sample([goal], walk, [start], SETTINGS, checkpoints=folder, on_update=on_update)

    with pytest.raises(Stop):
        go(tmp_path, 700)
    resumed, through = go(tmp_path), go(None)
    assert resumed.candidate == through.candidate
    assert resumed.traces == through.traces


def test_chains_have_files_of_their_own_and_differ(tmp_path: Path) -> None:
    samples = run(Swaps(), TBI, tmp_path, settings=replace(SETTINGS, chains=2))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["chain-0.npz", "chain-1.npz"]
    first, second = samples.traces
    assert first.score != second.score


@pytest.mark.parametrize(
    "other",
    [
        {"settings": replace(SETTINGS, seed=5)},
        {"settings": replace(SETTINGS, steps=4000)},
        {"goal": target(triangles_by_intersect(EDGES), {"triangle!": 12.4})},
        {"walk": Swaps(triad_share=0.1)},
    ],
    ids=["seed", "steps", "answers", "walk"],
)
def test_a_checkpoint_of_another_run_is_refused(other: dict[str, Any], tmp_path: Path) -> None:
    run(Swaps(), TBI, tmp_path)
    with pytest.raises(CheckpointError, match="other settings or answers"):
        run(**{"walk": Swaps(), "goal": TBI, "folder": tmp_path, **other})


@pytest.mark.parametrize("damage", [lambda held: held[: len(held) // 2], lambda held: b"", lambda held: b"x" * 100])
def test_a_damaged_checkpoint_is_refused(damage: Any, tmp_path: Path) -> None:
    run(Swaps(), TBI, tmp_path)
    path = tmp_path / "chain-0.npz"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(CheckpointError, match="damaged"):
        run(Swaps(), TBI, tmp_path)


def test_a_folder_that_is_missing_is_refused_before_any_step(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="cannot write"):
        run(Swaps(), TBI, tmp_path / "missing", stop_at=100)


def test_a_chain_stops_at_the_noise_level() -> None:
    goal = target(triangles_by_intersect(EDGES), {"triangle!": 20.0})
    samples = run(Swaps(), goal, None, settings=Settings(200_000, chunk=50, stop_at_noise=1.0))
    (trace,) = samples.traces
    assert trace.stopped == "noise level reached"
    assert trace.score[-1] <= samples.noise < trace.score[-2]


def test_chains_on_data_have_to_be_told_their_steps() -> None:
    with pytest.raises(PlanError, match="give a number of steps"):
        run(Swaps(), TBI, None, settings=Settings())


def test_what_does_not_compile_runs_on_the_python_engine_and_says_why() -> None:
    named = wp.source("edges", src=str, dst=str)
    ends = named.select(lambda e: [[e.src], [e.dst]]).select_many(lambda x: F.flatten(x))
    goal = target(ends, {"a": 2.0, "b": 1.0})
    start = {"edges": np.array([("a", "b"), ("c", "d"), ("a", "d")], dtype=object)}
    samples = sample([goal], Swaps(triad_share=0.2), [start], Settings(40))
    assert "it walks a list of lists of the data" in samples.chains[0].note
    assert "closing proposals need the compiled walk" in samples.chains[0].note


def test_more_targets_than_compiled_code_holds_run_on_the_python_engine() -> None:
    numbers = wp.source("numbers", int)
    goals = [target(numbers.select(lambda n, k=k: n % k), {0: 3.0}) for k in range(2, 3 + MOST_OUTPUTS)]
    samples = sample(goals, ReplaceRecord("numbers", (0, 1, 2)), [{"numbers": {1: 5.0}}], Settings(200, chunk=100))
    assert "the python engine takes more" in samples.chains[0].note
    assert samples.traces[0].score[-1] < sum(goal.score({1: 5.0}) for goal in goals)


def test_a_chain_ends_at_rest_unless_it_was_told_how_many_steps() -> None:
    resting = Settings(seed=1).settled(edges=1000)
    (short,) = run(Swaps(), TBI, None, settings=resting).traces
    (whole,) = run(Swaps(), TBI, None, settings=replace(resting, stop_at_rest=False)).traces
    assert (short.stopped, whole.stopped) == ("score stalled", "all steps done")
    assert len(short.score) < len(whole.score)
    assert short.score == whole.score[: len(short.score)], "the same walk, but for its end"


def test_only_a_default_number_of_steps_ends_at_rest() -> None:
    assert Settings().settled(1000).stop_at_rest
    assert not Settings(steps=9).settled(1000).stop_at_rest


@pytest.mark.parametrize(
    ("scores", "rests"),
    [
        ([9.0] * 9, False),
        ([9.0] * 10, True),
        ([0.0] * 4, False),
        ([0.0] * 5, True),
        ([9.0, 3.0, 1.0, 0.7, 0.6], False),
        ([9.0, 3.0, 1.0, 0.7, 0.6, 0.5], True),
        ([100 * 0.98**i for i in range(30)], False),
        ([100 * 0.99**i for i in range(30)], True),
    ],
)
def test_rest_is_a_fall_of_less_than_a_twentieth_in_five_chunks_or_little_left(
    scores: list[float], rests: bool
) -> None:
    assert _is_at_rest(scores, []) == rests


@pytest.mark.parametrize(
    ("figure", "rests"),
    [
        ([0.1, 0.2, 0.3, 0.3, 0.3], True),
        ([0.1, 0.2, 0.3, 0.3, 0.304], False),
        ([1000, 1500, 2000, 2003, 2005], True),
        ([1000, 1500, 2000, 2003, 2007], False),
        ([math.nan] * 5, True),
    ],
)
def test_little_is_left_only_where_figures_stand_still(figure: list[float], rests: bool) -> None:
    assert _is_at_rest([9.0, 3.0, 1.0, 0.5, 0.4], [[0.0] * 5, figure]) == rests
    assert not _is_at_rest([9.0, 3.0, 1.0, 0.7, 0.6], [figure])
