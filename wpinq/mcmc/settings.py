"""The settings of a run of chains: length, schedule, seeds and checkpoints."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Protocol

from wpinq.errors import PlanError

# Schedules of beta, the inverse temperature of a chain: a low one explores, a high one stays at the best fits.


class Schedule(Protocol):
    """Beta as a function of the share of steps done."""

    def at(self, done: float) -> float:
        """Beta for the chunk that begins when `done`, 0 to 1, of the steps are done."""


def _check(*betas: float) -> None:
    if not all(0 < beta < math.inf for beta in betas):
        raise PlanError("beta is a finite number above 0")


@dataclass(frozen=True, slots=True)
class ConstantSchedule:
    """One beta throughout; the stationary distribution is `exp(−beta · score)`. The paper takes 10,000.

    Examples
    --------
    >>> ConstantSchedule(10_000).at(0.5)
    10000
    """

    beta: float

    def __post_init__(self) -> None:
        _check(self.beta)

    def at(self, done: float) -> float:
        return self.beta


@dataclass(frozen=True, slots=True)
class _Annealing:
    start: float
    end: float

    def __post_init__(self) -> None:
        _check(self.start, self.end)


@dataclass(frozen=True, slots=True)
class GeometricSchedule(_Annealing):
    """Annealing: `start · (end/start)^done`, equal factors for equal numbers of steps.

    Examples
    --------
    >>> round(GeometricSchedule(1, 10_000).at(0.5), 6)
    100.0
    """

    def at(self, done: float) -> float:
        return float(self.start * (self.end / self.start) ** done)


@dataclass(frozen=True, slots=True)
class LinearSchedule(_Annealing):
    """Annealing: `start + (end − start) · done`.

    Examples
    --------
    >>> LinearSchedule(0.5, 1.5).at(0.5)
    1.0
    """

    def at(self, done: float) -> float:
        return self.start + (self.end - self.start) * done


SCHEDULES: dict[str, type[ConstantSchedule | GeometricSchedule | LinearSchedule]] = {
    "constant": ConstantSchedule,
    "geometric": GeometricSchedule,
    "linear": LinearSchedule,
}
"""The schedules by name."""


BETA = 10_000.0
"""The inverse temperature that the paper takes."""
STEPS_PER_EDGE = 400
"""The steps of a chain over graphs unless told, for each edge: a walk by swaps needs steps in proportion to edges."""
MOST_STEPS = 20_000_000
"""And at most. The paper takes 5,000,000 for its Table 2."""
REST_CHUNKS, REST_FALL = 5, 0.05
"""A chain is at rest whose score has not fallen by this share in so many chunks, once it has done twice as many."""
REST_SCORE = 0.1
"""So is one whose score is no more than this: what is left is less than a tenth of what noise makes of one answer."""
_CHUNKS = 50


@dataclass(frozen=True, slots=True)
class Settings:
    """How long chains go on, at which inverse temperature, and how often they are looked at.

    Attributes
    ----------
    steps : int, optional
        Of each chain, at least 1; every proposal is one. None, for graphs: 400 (`STEPS_PER_EDGE`) for each edge of the
        graph that the chains begin from, at most 20,000,000 (`MOST_STEPS`), and none after a chain is at rest, which
        `wpinq.graphs.synthesize` settles; `sample` has to be told.
    schedule : Schedule
        Beta, the inverse temperature, which is constant within a chunk.
    chains : int
        How many, each in a thread of its own. Chains in compiled code run at the same time.
    seed : int
        Of all that is random here. It is public: it draws no noise.
    chunk : int, optional
        The steps between two looks at a chain; a fiftieth of `steps`, rounded up, unless told.
    stop_at_noise : float, optional
        A chain ends with the chunk in which its score falls to this many times the score that noise alone would
        leave (`noise_level`). 1 stops where the measured dataset itself is expected to be; below it, chains fit noise.
        None: all steps are done. Refused where a target has no noise level.
    checkpoint_every : int
        The chunks between two checkpoints. Chains also evaluate afresh there, checkpoint or not.
    stop_at_rest : bool
        Whether a chain ends once its score falls no more, by less than a twentieth in the last five chunks, or has
        next to nothing left to fall by, 0.1; and not before the tenth. Scores are of candidates and answers, so when
        that is tells nothing else.
    """

    steps: int | None = None
    schedule: Schedule = field(default_factory=lambda: ConstantSchedule(BETA))
    chains: int = 1
    seed: int = 0
    chunk: int | None = None
    stop_at_noise: float | None = None
    checkpoint_every: int = 10
    stop_at_rest: bool = False

    def __post_init__(self) -> None:
        counts = {"chains": self.chains, "checkpoint_every": self.checkpoint_every}
        counts |= {name: count for name, count in (("steps", self.steps), ("chunk", self.chunk)) if count is not None}
        for name, count in counts.items():
            if isinstance(count, bool) or not isinstance(count, int) or count < 1:
                raise PlanError(f"{name} is an integer of at least 1, not {count!r}")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0:
            raise PlanError(f"a seed is an integer of at least 0, not {self.seed!r}")
        if self.stop_at_noise is not None and not self.stop_at_noise > 0:
            raise PlanError(f"stop_at_noise is a number above 0, or None; not {self.stop_at_noise!r}")

    def settled(self, edges: int) -> Settings:
        """The same with a number of steps: as told, or at most 400 for each of so many edges, ending at rest.

        With a beta that changes, all steps are done, for a chain may rest before it has changed.

        Examples
        --------
        >>> Settings().settled(edges=1000).steps, Settings().settled(edges=10**6).steps
        (400000, 20000000)
        >>> Settings(steps=20).settled(edges=1000).steps
        20
        """
        if self.steps is not None:
            return self
        constant = isinstance(self.schedule, ConstantSchedule)
        return replace(self, steps=min(STEPS_PER_EDGE * max(edges, 1), MOST_STEPS), stop_at_rest=constant)

    @property
    def total_steps(self) -> int:
        """The steps of each chain; PlanError where they are not settled."""
        if self.steps is None:
            raise PlanError("say how many steps each chain does: only graphs have a number that follows from them")
        return self.steps

    @property
    def chunk_steps(self) -> int:
        """The steps of a chunk."""
        return self.chunk if self.chunk is not None else -(-self.total_steps // _CHUNKS)

    def to_json(self) -> dict[str, Any]:
        """The settings as plain data. The schedule is one of `SCHEDULES`, or kept as its description alone."""
        kind = next((name for name, made in SCHEDULES.items() if type(self.schedule) is made), None)
        known = repr(self.schedule) if kind is None else {"kind": kind, **asdict(self.schedule)}  # type: ignore[call-overload]
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**plain, "schedule": known, "chunk": self.chunk if self.steps is None else self.chunk_steps}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Settings:
        """The settings that plain data hold."""
        schedule = dict(data["schedule"])
        made = SCHEDULES[schedule.pop("kind")](**schedule)
        return Settings(**{**data, "schedule": made})
