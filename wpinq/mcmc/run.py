"""Runs of chains, chunk by chunk, with traces, checkpoints and progress."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from wpinq.errors import AnswersError, PlanError
from wpinq.expr.values import Value
from wpinq.mcmc.chain import Chain, Start, Terms, begin
from wpinq.mcmc.proposal import Walk
from wpinq.mcmc.settings import REST_CHUNKS, REST_FALL, REST_MOVE, REST_SCORE, Checkpoint, Settings, Trace
from wpinq.mcmc.target import NO_NOISE_LEVEL, Prior, Target, noise_level
from wpinq.runtime.progress import progress_bar
from wpinq.runtime.public import public

ChainStatistics = Callable[[Chain], Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Update:
    """The progress of a chain at the end of a chunk.

    All of it is public: it is of the candidate and the answers.

    Attributes
    ----------
    chain : int
        Its number, from 0.
    steps, total : int
        Done, and to do in all.
    rate : float
        Steps a second in this chunk.
    acceptance : float
        The share of the chunk's steps that were kept.
    score, noise : float
        The score now, and what noise alone would leave; see `noise_level`.
    stopped : str
        Why the chain ended; empty while it goes on.
    """

    chain: int
    steps: int
    total: int
    rate: float
    acceptance: float
    score: float
    noise: float
    stopped: str


@dataclass(frozen=True, slots=True)
class Samples:
    """The results of finished chains.

    Attributes
    ----------
    chains : sequence of Chain
        Each where it ended.
    traces : sequence of Trace
        One a chain.
    noise : float
        The score that noise alone would leave, nan where that is not known; see `noise_level`.
    priors : sequence of Prior
        The prior of the run.
    """

    chains: Sequence[Chain]
    traces: Sequence[Trace]
    noise: float
    priors: Sequence[Prior] = ()

    @property
    def best(self) -> int:
        """The number of the chain with the least final score less log prior, the first of equals."""
        return int(np.argmin([trace.score[-1] - trace.statistics.get("log_prior", [0.0])[-1] for trace in self.traces]))

    @property
    def candidate(self) -> dict[str, dict[Value, float]]:
        """The final candidate of the best chain."""
        return self.chains[self.best].candidate


@public
def sample(
    targets: Sequence[Target],
    walk: Walk | Sequence[Walk],
    starts: Sequence[Start],
    settings: Settings,
    *,
    prior: Prior | Sequence[Prior] = (),
    statistics: ChainStatistics | None = None,
    checkpoints: Path | None = None,
    on_update: Callable[[Update], None] | None = None,
    compiled: bool = True,
) -> Samples:
    """Run chains with stationary distribution `(π(A) · exp(−score(A)))^beta` over candidates.

    The score is the sum over the targets; see `Target`, and `Prior` for π, which is uniform without a prior.

    Parameters
    ----------
    targets : sequence of Target
        The answers m_i with their queries and epsilons.
    walk : Walk, or a sequence
        How candidates are changed: by one walk for all chains, or one for each.
    starts : sequence
        For each chain the candidate to begin from: source name to `{record: weight}`, or, for a source of edges that
        a walk of `walks` moves, to an array of its undirected edges of shape (edges, 2). One is for all chains.
    settings : Settings
        How long, how hard, how many.
    prior : Prior or sequence of Prior
        The prior; the logarithms of several add up. Every engine evaluates it with the targets. Traces hold its
        logarithm as the statistic `log_prior`, beside the score of the targets.
    statistics : callable, optional
        From a chain to figures of its candidate to trace; called after each chunk, so it should be quick.
    checkpoints : path, optional
        A folder for one file a chain, `chain-0.npz` and so on. Chains that find theirs there go on from it, and end
        as if they had never been interrupted, to the last bit; that holds on the same machine and versions.
    on_update : callable, optional
        Told how chains go, from their threads, one call at a time.
    compiled : bool
        Whether the compiled engine is used where it can be; the chain's `note` says what is.

    Returns
    -------
    Samples
        Chains where they ended, with their traces.

    Raises
    ------
    PlanError
        When the targets, the prior, the walk, the starts and the settings do not fit each other.
    CheckpointError
        When a checkpoint is of another run, damaged, or cannot be written.

    Notes
    -----
    Privacy cost: none. It reads answers and public candidates, and has no way to protected data.
    Source: paper, sections 4.1 and 4.2.

    Examples
    --------
    >>> import wpinq as wp
    >>> from wpinq.mcmc import ReplaceRecord, Settings, Target, sample
    >>> towns = ("York", "Leeds", "Hull")
    >>> people = wp.source("people", str)
    >>> counts = wp.simulate(people.noisy_count(1, over=towns), {"people": ["York"] * 8 + ["Hull"] * 2}, seed=1)
    >>> start = {"people": {"Leeds": 10.0}}
    >>> samples = sample([Target(counts)], ReplaceRecord("people", towns), [start], Settings(steps=2000, chains=2))
    >>> samples.candidate["people"]["York"]
    8.0
    """
    targets = tuple(targets)
    if not targets:
        raise AnswersError("give at least one target to fit")
    priors = (prior,) if isinstance(prior, Prior) else tuple(prior)
    if priors and settings.stop_at_rest:
        raise PlanError("with a prior a score may rise before a chain rests: give a number of steps, not stop_at_rest")
    terms: Terms = (*targets, *priors)
    noise, total = noise_level(targets), settings.total_steps
    if settings.stop_at_noise is not None and math.isnan(noise):
        raise PlanError(NO_NOISE_LEVEL)
    if len(starts) not in (1, settings.chains):
        raise PlanError(f"give one start for all chains, or {settings.chains}, one each; not {len(starts)}")
    every = list(starts) * settings.chains if len(starts) == 1 else list(starts)
    seeds = [int(s.generate_state(1, np.uint64)[0]) for s in np.random.SeedSequence(settings.seed).spawn(len(every))]
    walks = list(walk) if isinstance(walk, Sequence) else [walk] * len(every)
    chains = [begin(terms, *given, compiled) for given in zip(walks, every, seeds, strict=True)]
    files: list[Checkpoint | None] = [None] * len(chains)
    if checkpoints is not None:
        digest = _digest(terms, walks[0], every, settings, chains)
        files = [Checkpoint(Path(checkpoints) / f"chain-{k}.npz", digest, total) for k in range(len(chains))]
    lock, cancelled = threading.Lock(), threading.Event()

    def report(update: Update) -> None:
        if on_update is not None:
            with lock:
                on_update(update)

    given = settings, noise, priors, statistics or (lambda chain: {})
    runs = [_Run(k, chain, *given, files[k], report, cancelled) for k, chain in enumerate(chains)]
    if len(runs) == 1:
        return Samples(chains, [runs[0].go()], noise, priors)
    with ThreadPoolExecutor(max_workers=len(runs)) as pool:
        futures = [pool.submit(run.go) for run in runs]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        finally:
            cancelled.set()  # one that failed, or an interrupt, ends them all; else all are done
    return Samples(chains, [future.result() for future in futures], noise, priors)


@dataclass(frozen=True, slots=True)
class _Run:
    number: int
    chain: Chain
    settings: Settings
    noise: float
    priors: Sequence[Prior]
    statistics: ChainStatistics
    file: Checkpoint | None
    report: Callable[[Update], None]
    cancelled: threading.Event

    def go(self) -> Trace:
        """Run the chain to its end, from its checkpoint if there is one."""
        trace = Trace()
        if self.file is not None:
            found = self.file.load()
            if found is None:
                self.file.store(self.chain.save(), trace)
            else:
                state, trace = found
                self.chain.restore(state)
        while not trace.stopped and not self.cancelled.is_set():
            self._chunk(trace)
        return trace

    def _chunk(self, trace: Trace) -> None:
        settings, total = self.settings, self.settings.total_steps
        done = trace.steps[-1] if trace.steps else 0
        count = min(settings.chunk_steps, total - done)
        start = time.perf_counter()
        self.chain.run(count, settings.beta)
        seconds = time.perf_counter() - start
        (score, _), noise, traced = self._score(), self.noise, self.statistics(self.chain)
        figures = [[*trace.statistics.get(name, ()), value] for name, value in traced.items()]
        if settings.stop_at_noise is not None and score <= settings.stop_at_noise * noise:
            trace.stopped = "noise level reached"
        elif settings.stop_at_rest and _is_at_rest([*trace.score, score], figures):
            trace.stopped = "score stalled"
        elif done + count >= total:
            trace.stopped = "all steps done"
        due = bool(trace.stopped) or (len(trace.steps) + 1) % settings.checkpoint_every == 0
        state = self.chain.save() if due else None
        score, log_prior = self._score()
        trace.add(replace(self.chain.progress, score=score), settings.beta, {**traced, **log_prior})
        if state is not None and self.file is not None:
            self.file.store(state, trace)
        rate = count / max(seconds, 1e-9)
        self.report(Update(self.number, done + count, total, rate, trace.acceptance[-1], score, noise, trace.stopped))

    def _score(self) -> tuple[float, dict[str, float]]:
        """The score of the targets alone, and the log prior where there is one."""
        score = self.chain.progress.score
        if not self.priors:
            return score, {}
        outputs = self.chain.outputs[-len(self.priors) :]
        log_prior = math.fsum(prior.log(output) for prior, output in zip(self.priors, outputs, strict=True))
        return score + log_prior, {"log_prior": log_prior}


def _is_at_rest(scores: Sequence[float], figures: Sequence[Sequence[float]]) -> bool:
    """Whether scores at the ends of chunks fall no more, or are low and the figures stand still."""
    if len(scores) < REST_CHUNKS:
        return False
    moves = any(abs(each[-1] - each[-3]) > REST_MOVE * max(1.0, abs(each[-1])) for each in figures)  # nan does not
    falls = len(scores) < 2 * REST_CHUNKS or scores[-1] < (1 - REST_FALL) * scores[-1 - REST_CHUNKS]
    return not falls or (scores[-1] <= REST_SCORE and not moves)


def _digest(terms: Terms, walk: Walk, starts: Sequence[Start], settings: Settings, chains: Sequence[Chain]) -> str:
    """The digest that distinguishes this run from others.

    A walk that is no dataclass is known by its class alone.
    """
    known = hashlib.blake2b(digest_size=20)
    described = {
        "targets": [term.to_json() for term in terms],
        "walk": repr(walk) if is_dataclass(walk) else type(walk).__qualname__,
        "settings": settings.to_json(),
        "engines": [chain.note for chain in chains],
    }
    known.update(json.dumps(described, sort_keys=True).encode())
    for start in starts:
        for name in sorted(start):
            known.update(f"{name}\n".encode())
            known.update(_content(start[name]))
    return known.hexdigest()


def _content(start: Any) -> bytes:
    if isinstance(start, Mapping):
        return repr([(record, float(weight)) for record, weight in start.items()]).encode()
    array = np.asarray(start)
    return repr(array.tolist()).encode() if array.dtype == object else np.ascontiguousarray(array).tobytes()


class ChainBars:
    """Told how chains go, it shows a bar for each."""

    def __init__(self) -> None:
        self._bars: dict[int, Any] = {}

    def __call__(self, update: Update) -> None:
        with contextlib.suppress(OSError, ValueError):  # where stderr is full or closed, chains go on
            self._show(update)

    def _show(self, update: Update) -> None:
        bar = self._bars.get(update.chain)
        if bar is None:
            named = {"desc": f"chain {update.chain}", "position": update.chain}
            bar = progress_bar(total=update.total, unit=" steps", unit_scale=True, **named)
            self._bars[update.chain] = bar
        bar.update(update.steps - bar.n)
        if update.stopped:
            bar.set_postfix_str(update.stopped)
            bar.close()
