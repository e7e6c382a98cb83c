"""The settings of a run of chains: length, beta, seeds and checkpoints."""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from wpinq.engines.delta.compiled import WalkProgress
from wpinq.errors import PlanError, WpinqError, described
from wpinq.inference.checks import count_of
from wpinq.mcmc.chain import ChainState
from wpinq.runtime.public import public

#: The inverse temperature that the paper takes.
BETA = 10_000.0
#: The steps of a chain over graphs unless told, for each edge: a walk by swaps needs steps in proportion to edges.
STEPS_PER_EDGE = 400
#: And at most. The paper takes 5,000,000 for its Table 2.
MOST_STEPS = 20_000_000
#: A chain is at rest whose score has not fallen by this share in so many chunks, once it has done twice as many.
REST_CHUNKS, REST_FALL = 5, 0.05
#: So is one whose score is no more than this after so many, less than half of what noise makes of one answer, if no
#: figure moved by this share (or number, below 1) in two chunks: walks that keep long edges mix degrees slowly.
REST_SCORE, REST_MOVE = 0.5, 0.003
_CHUNKS = 50


@public
@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of chains: steps, inverse temperature, chunks and seed.

    Attributes
    ----------
    steps : int, optional
        Of each chain, at least 1; every proposal is one. None, for graphs: 400 (`STEPS_PER_EDGE`) for each edge of the
        graph that the chains begin from, at most 20,000,000 (`MOST_STEPS`), and none after a chain is at rest, which
        `wpinq.graphs.fit_graph` settles; `sample` has to be told.
    beta : float
        The inverse temperature: chains settle to `exp(−beta · score)`. The paper takes 10,000.
    chains : int
        The number of chains, each in its own thread. Chains in compiled code run in parallel.
    seed : int
        Of all that is random here. It is public: it draws no noise.
    chunk : int, optional
        The steps between two reports of a chain; by default 1/50 of `steps`, rounded up.
    stop_at_noise : float, optional
        A chain ends with the chunk in which its score falls to this many times the score that noise alone would
        leave (`noise_level`). 1 stops where the measured dataset itself is expected to be; below it, chains fit noise.
        None: all steps are done. Refused where a target has no noise level.
    checkpoint_every : int
        The chunks between two checkpoints. Chains also evaluate afresh there, checkpoint or not.
    stop_at_rest : bool
        Whether a chain ends, from the fifth chunk on, once its score is at most 0.5 and no traced statistic moves by
        0.003 in two chunks; or, from the tenth on, once its score fell by less than a twentieth in five. All are of
        candidates and answers, so when that is tells nothing else.
    """

    steps: int | None = None
    beta: float = BETA
    chains: int = 1
    seed: int = 0
    chunk: int | None = None
    stop_at_noise: float | None = None
    checkpoint_every: int = 10
    stop_at_rest: bool = False

    def __post_init__(self) -> None:
        given = [name for name in ("steps", "chunk") if getattr(self, name) is not None]
        for name in ("chains", "checkpoint_every", *given):
            count_of(getattr(self, name), name, 1, error=PlanError)
        count_of(self.seed, "a seed", 0, 2**64, PlanError)
        if not 0 < self.beta < math.inf:
            raise PlanError("beta is a finite number above 0")
        if self.stop_at_noise is not None and not self.stop_at_noise > 0:
            raise PlanError(f"stop_at_noise is a number above 0, or None; not {described(self.stop_at_noise)}")

    def settled(self, edges: int, rest: bool = True) -> Settings:
        """The same settings with a number of steps, for a graph with this number of edges.

        It is the given one, or at most 400 for each edge, ending at rest unless `rest` is false.

        Examples
        --------
        >>> Settings().settled(edges=1000).steps, Settings().settled(edges=10**6).steps
        (400000, 20000000)
        >>> Settings(steps=20).settled(edges=1000).steps
        20
        """
        if self.steps is not None:
            return self
        return replace(self, steps=min(STEPS_PER_EDGE * max(edges, 1), MOST_STEPS), stop_at_rest=rest)

    @property
    def total_steps(self) -> int:
        """The steps of each chain; PlanError where they are not settled."""
        if self.steps is None:
            raise PlanError("give a number of steps: only walks over graphs have a default")
        return self.steps

    @property
    def chunk_steps(self) -> int:
        """The steps of a chunk."""
        return self.chunk if self.chunk is not None else -(-self.total_steps // _CHUNKS)

    def to_json(self) -> dict[str, Any]:
        """The settings as plain data."""
        return {**asdict(self), "chunk": self.chunk if self.steps is None else self.chunk_steps}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Settings:
        """The settings that plain data hold."""
        return Settings(**data)


# Traces and checkpoints: the record of a chain, and the file from which it continues.
#
# A file is replaced as a whole, or not at all. It holds what is public: a candidate, a trace, random numbers.


@dataclass(slots=True)
class Trace:
    """Counts and figures at the end of each chunk of steps, from the beginning of the chain.

    Attributes
    ----------
    steps, evaluated, accepted : list of int
        Steps done so far; proposals among them that were evaluated, the others being refused unseen; and those kept.
    beta, score : list of float
        Beta of the chunk, and the score at its end.
    statistics : mapping
        Name to list of float: statistics of the candidate at the end of each chunk.
    stopped : str
        Why the chain ended; empty while it goes on.
    """

    steps: list[int] = field(default_factory=list)
    evaluated: list[int] = field(default_factory=list)
    accepted: list[int] = field(default_factory=list)
    beta: list[float] = field(default_factory=list)
    score: list[float] = field(default_factory=list)
    statistics: dict[str, list[float]] = field(default_factory=dict)
    stopped: str = ""

    def add(self, progress: WalkProgress, beta: float, statistics: Mapping[str, float]) -> None:
        """Record the end of a chunk."""
        self.steps.append(progress.steps)
        self.evaluated.append(progress.evaluated)
        self.accepted.append(progress.accepted)
        self.beta.append(float(beta))
        self.score.append(progress.score)
        for name, value in statistics.items():
            self.statistics.setdefault(name, []).append(float(value))

    @property
    def acceptance(self) -> list[float]:
        """The share of accepted steps of each chunk."""
        chunks = zip(pairwise([0, *self.accepted]), pairwise([0, *self.steps]), strict=True)
        return [(kept - before) / (end - start) if end > start else 0.0 for (before, kept), (start, end) in chunks]

    def to_json(self) -> dict[str, Any]:
        """The trace as plain data, from which `Trace(**data)` makes it."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


# --- checkpoints ------------------------------------------------------------------------------------------------------

FORMAT, FORMAT_VERSION = "wpinq chain", 1
_HEADER, _STATE = "header", "state."


class CheckpointError(WpinqError):
    """A checkpoint is unreadable, cannot be written, or belongs to another run."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The file of one chain.

    Attributes
    ----------
    path : Path
        The file; its folder is there.
    digest : str
        The identity of the run: settings, answers and start. Files of other runs are refused.
    total : int
        The steps that the chain does in all.
    """

    path: Path
    digest: str
    total: int

    def store(self, state: ChainState, trace: Trace) -> None:
        """Replace the file; it is on the disk before the method returns."""
        known = {"digest": self.digest, "steps": self.total, "trace": trace.to_json()}
        header = {"format": FORMAT, "version": FORMAT_VERSION, **known}
        packed = io.BytesIO()
        arrays: dict[str, Any] = {_STATE + name: array for name, array in state.items()}
        arrays[_HEADER] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
        np.savez(packed, **arrays)
        write_atomically(self.path, packed.getvalue())

    def load(self) -> tuple[ChainState, Trace] | None:
        """The last stored state, or None.

        Raises
        ------
        CheckpointError
            When the file is not of this run, or damaged.
        """
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError:
            raise CheckpointError(f"{self.path} cannot be read") from None
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
                header = json.loads(arrays[_HEADER].tobytes().decode())
                state = {name.removeprefix(_STATE): arrays[name] for name in arrays.files if name != _HEADER}
            kind = header["format"], header["version"]
            digest, trace = header["digest"], Trace(**header["trace"])
        except Exception:  # a damaged file fails in many ways, in zip, numpy and json
            raise CheckpointError(f"{self.path} is damaged, or no checkpoint: remove it to start again") from None
        if kind != (FORMAT, FORMAT_VERSION):
            raise CheckpointError(f"{self.path} was written by another version: remove it to start again")
        if digest != self.digest:
            raise CheckpointError(
                f"{self.path} is of a run with other settings or answers: give those, or another folder"
            )
        return state, trace


def make_folder(path: Path) -> None:
    """Make a folder that only its owner can open, and those above it, where it is not there yet.

    Raises
    ------
    CheckpointError
        When it cannot be made.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        raise CheckpointError(f"cannot make the folder {path}: name one that can be written to") from None


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that every reader finds the old content or the new, even after a crash.

    Raises
    ------
    CheckpointError
        When it cannot be written; the old file stands.
    """
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        with contextlib.suppress(OSError):  # some systems cannot open a folder; the file itself is safe
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise CheckpointError(f"cannot write {path}: name a folder that can be written to") from None
