"""All sinks on neighbours with the same randomness: declared against measured sensitivity, and control flow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from random import Random
from typing import Any

import pytest

import wpinq as wp
from tests.audit.recorder import Recorder
from tests.support.sink_cases import KINDS, ROUNDING, Neighbours, SinkCase, halved
from tests.support.sinks import CASES
from wpinq.api.query import Query
from wpinq.kernel import session as kernel_session
from wpinq.plan.node import Node, sources
from wpinq.sinks.laplace import LaplaceSink
from wpinq.sinks.sink import SINKS

pytestmark = pytest.mark.long

TRIALS = 12
LISTED = SinkCase(
    "NoisyCount",
    lambda rng, query: query.noisy_count_above(epsilon=rng.choice([0.5, 2]), domain=range(6), above=1),
    CASES["NoisyCount"].lost,
    KINDS,
    texts=(),
)
EACH = [
    pytest.param(case, kind, id=f"{name}, {kind}")
    for name, case in (*CASES.items(), ("a listing", LISTED))
    for kind in case.kinds
]


def released(asked: wp.Measurement, data: Mapping[Any, Fraction]) -> dict[Any, float]:
    """A release of a session that holds these weights."""
    (source,) = sources([asked.plan]).values()
    held = {record: float(weight) for record, weight in data.items()}
    with pytest.MonkeyPatch.context() as patch, wp.Session(engine="reference") as session:
        patch.setattr(kernel_session, "read_source", lambda *given: held)
        session.protect(Query(Node(source, ())), [], budget=1_000)
        return dict(session.release(asked).items())


def replayed(case: SinkCase, kind: str, seed: int) -> tuple[Recorder, Fraction]:
    """A release recorded on one dataset and replayed on its neighbour; with its bill."""
    rng = Random(f"{case.name} {kind} {seed}")
    pair: Neighbours = case.kinds[kind](rng)
    asked = case.ask(rng, pair.query)
    recorder = Recorder()
    with recorder(seed):
        first = released(asked, pair.before)
        recorder.replay()
        again = released(asked, pair.after)
        recorder.end()
    if first != again:
        recorder.faults.append("the answers differ although all mechanisms gave the same")
    (billed,) = asked.costs.values()
    return recorder, recorder.lost / billed


@pytest.mark.parametrize(("case", "kind"), EACH)
def test_neighbours_differ_in_the_inputs_of_mechanisms_alone_and_by_the_sensitivity(case: SinkCase, kind: str) -> None:
    shares = []
    for seed in range(TRIALS):
        recorder, share = replayed(case, kind, seed)
        assert recorder.faults == []
        assert recorder.calls
        shares.append(share)
    assert 0.4 < max(shares) <= 1 + ROUNDING


@pytest.mark.parametrize("name", CASES)
def test_a_sensitivity_of_half_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SINKS[name], "sensitivity", halved(SINKS[name]))
    case = CASES[name]
    assert any(replayed(case, next(iter(case.kinds)), seed)[1] > 1 + ROUNDING for seed in range(TRIALS))


def twice(draw: Callable[..., Any], heavy: float) -> Callable[..., Any]:
    """Two draws where a weight is large."""

    def drawn(self: Any, output: Any, keys: Any, scales: Any, random: Any) -> Any:
        if sum(output.weights(keys).values()) > heavy:
            draw(self, output, keys, scales, random)
        return draw(self, output, keys, scales, random)

    return drawn


def scaled(draw: Callable[..., Any], heavy: float) -> Callable[..., Any]:
    """More noise where the weights are large."""

    def drawn(self: Any, output: Any, keys: Any, scales: Any, random: Any) -> Any:
        return draw(self, output, keys, (scales[0] * (1 + sum(output.weights(keys).values())),), random)

    return drawn


def around(draw: Callable[..., Any], heavy: float) -> Callable[..., Any]:
    """An answer that does not only come from the mechanism."""

    def drawn(self: Any, output: Any, keys: Any, scales: Any, random: Any) -> Any:
        weights = output.weights(keys)
        noisy = draw(self, output, keys, scales, random)
        return [max(number, float(weights.get(key, 0.0))) for key, number in zip(keys, noisy, strict=True)]

    return drawn


def outside(draw: Callable[..., Any], heavy: float) -> Callable[..., Any]:
    """Random bytes for the data, outside of any mechanism."""

    def drawn(self: Any, output: Any, keys: Any, scales: Any, random: Any) -> Any:
        random(len(output.weights(keys)))
        return draw(self, output, keys, scales, random)

    return drawn


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (twice, "call"),
        (scaled, "call 0 was add_laplace"),
        (around, "the answers differ"),
        (outside, "outside of a mechanism"),
    ],
)
def test_data_that_pass_around_a_mechanism_are_caught(
    fault: Callable[..., Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LaplaceSink, "draw", fault(LaplaceSink.draw, 12.0))
    found = [each for seed in range(TRIALS) for each in replayed(CASES["NoisyCount"], "weighted", seed)[0].faults]
    assert any(said in each for each in found)
