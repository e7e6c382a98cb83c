"""Traces and checkpoints: the record of a chain, and the file from which it continues.

A file is replaced as a whole, or not at all. It holds what is public: a candidate, a trace, random numbers.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from wpinq.engines.delta.compiled import WalkProgress
from wpinq.errors import AnswersError, WpinqError
from wpinq.mcmc.chain import ChainState


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
        """Note the end of a chunk."""
        self.steps.append(progress.steps)
        self.evaluated.append(progress.evaluated)
        self.accepted.append(progress.accepted)
        self.beta.append(float(beta))
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


def split_r_hat(chains: Any) -> float:
    """The split potential scale reduction of one quantity traced along several chains.

    Each chain is cut in two halves, which makes M = 2·chains sequences of N draws. With the variance within them,
    W = mean of the sequences' variances, and between them, B = N · variance of their means,

        R = √( ((N − 1)/N · W + B/N) / W )

    It is near 1 when all halves look alike, and above when chains differ or drift; 1.01 is asked for of samples,
    1.1 was once customary.

    Parameters
    ----------
    chains : array-like, shape (chains, draws)
        At least one chain, of four draws or more. Leave out the draws before the chains settled.

    Returns
    -------
    float
        At least √((N − 1)/N); 1 when nothing moves and all agree, infinity when nothing moves and they do not.

    Raises
    ------
    AnswersError
        When the draws are too few or not finite.

    Notes
    -----
    Source: Gelman et al., *Bayesian Data Analysis*, third edition, section 11.4; Vehtari, Gelman, Simpson, Carpenter
    and Bürkner, Bayesian Analysis 2021, equations (1) to (4), without ranks.

    Examples
    --------
    >>> split_r_hat([[1.0, 2.0, 1.0, 2.0], [2.0, 1.0, 2.0, 1.0]]) < 1
    True
    >>> round(split_r_hat([[1.0, 2.0, 1.0, 2.0], [11.0, 12.0, 11.0, 12.0]]), 2)
    8.2
    """
    draws = np.asarray(chains, dtype=np.float64)
    if draws.ndim != 2 or not len(draws) or draws.shape[1] < 4 or not np.isfinite(draws).all():
        raise AnswersError("split R-hat needs chains of one length, at least four finite draws each")
    half = draws.shape[1] // 2
    halves = np.concatenate([draws[:, :half], draws[:, -half:]])
    within = float(halves.var(axis=1, ddof=1).mean())
    between = half * float(halves.mean(axis=1).var(ddof=1))
    if within == 0.0:
        return 1.0 if between == 0.0 else np.inf
    return float(np.sqrt(((half - 1) / half * within + between / half) / within))


# --- checkpoints ------------------------------------------------------------------------------------------------------

FORMAT, FORMAT_VERSION = "wpinq chain", 1
_HEADER, _STATE = "header", "state."


class CheckpointError(WpinqError):
    """A checkpoint cannot be read or written, or is of another run."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The file of one chain.

    Attributes
    ----------
    path : Path
        The file; its folder is there.
    digest : str
        What tells the run from others: settings, answers, where it began. A file of another is refused.
    total : int
        The steps that the chain does in all.
    """

    path: Path
    digest: str
    total: int

    def store(self, state: ChainState, trace: Trace) -> None:
        """Replace the file; when this returns, the new one is on the disk."""
        known = {"digest": self.digest, "steps": self.total, "trace": trace.to_json()}
        header = {"format": FORMAT, "version": FORMAT_VERSION, **known}
        packed = io.BytesIO()
        arrays: dict[str, Any] = {_STATE + name: array for name, array in state.items()}
        arrays[_HEADER] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
        np.savez(packed, **arrays)
        write_atomically(self.path, packed.getvalue())

    def load(self) -> tuple[ChainState, Trace] | None:
        """What was stored last, or None.

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
            digest, trace = header["digest"], Trace.from_json(header["trace"])
        except Exception:  # a damaged file fails in many ways, in zip, numpy and json
            raise CheckpointError(f"{self.path} is damaged, or no checkpoint: remove it to begin anew") from None
        if kind != (FORMAT, FORMAT_VERSION):
            raise CheckpointError(f"{self.path} was written by another version: remove it to begin anew")
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
    """Write a file so that whoever reads it finds the old content or the new one, even after a crash.

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
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        raise CheckpointError(f"cannot write {path}: name a folder that can be written to") from None
