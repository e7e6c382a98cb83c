"""The trace of a chain, chunk by chunk, and split R-hat over several."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import Any

import numpy as np

from wpinq.engines.delta.compiled import WalkProgress
from wpinq.errors import AnswersError


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
