"""Releases run twice with the same randomness: recorded on one dataset, replayed on its neighbour.

The method of dp-recorder (Cebere, Erb, Desfontaines, Bellet, Fitzsimons, "Privacy in Theory, Bugs in Practice",
arXiv 2602.17454). A replay gives each mechanism the output that was recorded. So whatever still differs between the
neighbours passed around the mechanisms: another mechanism, another parameter, or another answer.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.sink_cases import FAR, _ends, _rung
from wpinq.kernel import noisy_evaluation
from wpinq.noise.ladder import UnitLadder
from wpinq.sinks import choose, count_above, geometric, graph_counts, laplace

Metric = Callable[[Any, Any], Fraction]
"""How far the protected input of a mechanism moves, in its scale."""


def apart(one: Any, other: Any) -> Fraction:
    """In L1: of noise that is added."""
    if isinstance(one, Mapping):
        keys = {**one, **other}
        one, other = ([side.get(key, 0) for key in keys] for side in (one, other))
    return sum((abs(Fraction(a) - Fraction(b)) for a, b in zip(one, other, strict=True)), Fraction(0))


def ranges(one: Any, other: Any) -> Fraction:
    """The range of the moves of scores, of each choice by itself."""
    rows = zip(one, other, strict=True) if isinstance(one[0], list) else [(one, other)]
    moves = [[Fraction(b) - Fraction(a) for a, b in zip(*row, strict=True)] for row in rows]
    return sum((max(each) - min(each) for each in moves), Fraction(0))


def _in_scales(scores: Any, scale: Fraction) -> list[list[Fraction]]:
    return [[Fraction(int(score)) / scale for score in row] for row in scores]


def rungs(one: Any, other: Any) -> Fraction:
    """The range of the moves of rungs; the largest move, where all graphs have the same sum."""
    places = range(min(one.count, other.count) - FAR, max(one.count, other.count) + FAR + 1)
    found = [[_rung(ladder, place, ends) for place in places] for ladder, ends in ((x, _ends(x)) for x in (one, other))]
    moves = [b - a for a, b in zip(*found, strict=True)]
    return Fraction(max(map(abs, moves)) if isinstance(one, UnitLadder) else max(moves) - min(moves))


MECHANISMS: Sequence[tuple[Any, str, Metric]] = (
    (laplace, "add_laplace", apart),
    (geometric, "add_geometric", apart),
    (graph_counts, "add_geometric", apart),
    (graph_counts, "draw_count", rungs),
    (choose, "select", ranges),
    (choose, "select_each", ranges),
    (count_above, "draw_listing", apart),
)
"""What draws noise for a sink, where a sink finds it, and the metric of its first argument."""


@dataclass
class Call:
    """One call of a mechanism."""

    name: str
    given: Any
    parameters: tuple[Any, ...]
    output: Any
    metric: Metric


@dataclass
class Recorder:
    """Records calls, then replays them."""

    calls: list[Call] = field(default_factory=list)
    lost: Fraction = Fraction(0)
    faults: list[str] = field(default_factory=list)
    replaying: int | None = None

    @contextmanager
    def __call__(self, seed: int) -> Iterator[Recorder]:
        """Mechanisms under observation, and random bytes of a seed."""
        with pytest.MonkeyPatch.context() as patch:
            for module, name, metric in MECHANISMS:
                patch.setattr(module, name, self._observed(name, getattr(module, name), metric))
            patch.setattr(noisy_evaluation, "os", SimpleNamespace(urandom=self._bytes(random.Random(seed))))
            yield self

    def replay(self) -> Recorder:
        """From here on, calls are given the recorded outputs."""
        self.replaying = 0
        return self

    def end(self) -> None:
        """Note calls that were not made again."""
        if self.replaying != len(self.calls):
            self.faults.append(f"{len(self.calls)} calls were recorded, and {self.replaying} made again")

    def _bytes(self, source: random.Random) -> Callable[[int], bytes]:
        def drawn(count: int) -> bytes:
            if self.replaying is not None:
                self.faults.append("random bytes were drawn outside of a mechanism")
            return source.randbytes(count)

        return drawn

    def _observed(self, name: str, mechanism: Callable[..., Any], metric: Metric) -> Callable[..., Any]:
        def observed(given: Any, *parameters: Any) -> Any:
            public, scale = _public(name, given, parameters)
            held = _in_scales(given, parameters[0]) if name == "select_each" else given
            if self.replaying is None:
                output = mechanism(given, *parameters)
                self.calls.append(Call(name, held, public, output, metric))
                return output
            place, self.replaying = self.replaying, self.replaying + 1
            if place >= len(self.calls):
                self.faults.append(f"{name} is called once more")
                return mechanism(given, *parameters)
            call = self.calls[place]
            if (call.name, call.parameters) != (name, public):
                self.faults.append(f"call {place} was {call.name}{call.parameters}, and is {name}{public}")
            else:
                self.lost += metric(call.given, held) / scale
            return call.output

        return observed


def _public(name: str, given: Any, parameters: Sequence[Any]) -> tuple[tuple[Any, ...], Fraction]:
    """The parameters of a call that must not depend on data, and its scale."""
    if name == "draw_listing":
        asked, past, domain, cut, noise = parameters
        return (sorted(asked), past, domain, cut, noise.scale), Fraction(noise.scale)
    if name == "select_each":  # of whole numbers in a unit of the data: the scores in scales are the input
        return given.shape, Fraction(1)
    return (0 if name == "draw_count" else len(given), parameters[0]), Fraction(parameters[0])
