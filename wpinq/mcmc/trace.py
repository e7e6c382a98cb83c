"""What a chain was seen to do, chunk by chunk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import Any

from wpinq.engines.incremental.compiled import WalkProgress


@dataclass(slots=True)
class Trace:
    """Counts and figures at the end of each chunk of steps, from the beginning of the chain.

    Attributes
    ----------
    steps, evaluated, accepted : list of int
        Steps done so far; proposals among them that were evaluated, the others being refused unseen; and those kept.
    power, score : list of float
        The power of the chunk, and the score at its end.
    statistics : mapping
        Name to list of float: statistics of the candidate at the end of each chunk.
    stopped : str
        Why the chain ended; empty while it goes on.
    """

    steps: list[int] = field(default_factory=list)
    evaluated: list[int] = field(default_factory=list)
    accepted: list[int] = field(default_factory=list)
    power: list[float] = field(default_factory=list)
    score: list[float] = field(default_factory=list)
    statistics: dict[str, list[float]] = field(default_factory=dict)
    stopped: str = ""

    def add(self, progress: WalkProgress, power: float, statistics: Mapping[str, float]) -> None:
        """Note the end of a chunk."""
        self.steps.append(progress.steps)
        self.evaluated.append(progress.evaluated)
        self.accepted.append(progress.accepted)
        self.power.append(float(power))
        self.score.append(progress.score)
        for name, value in statistics.items():
            self.statistics.setdefault(name, []).append(float(value))

    @property
    def acceptance(self) -> list[float]:
        """The share of each chunk's steps that were kept."""
        chunks = zip(pairwise([0, *self.accepted]), pairwise([0, *self.steps]), strict=True)
        return [(kept - before) / (end - start) if end > start else 0.0 for (before, kept), (start, end) in chunks]

    def to_json(self) -> dict[str, Any]:
        """The trace as plain data."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Trace:
        """The trace that plain data hold."""
        return Trace(**data)
