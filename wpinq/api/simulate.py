"""Simulated answers of a session over public data, from a seed, for experiments.

Nothing here protects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, overload

import numpy as np

from wpinq.api.evaluate import weights_of
from wpinq.columns.dataset import WeightedDataset
from wpinq.data import SourceData
from wpinq.engines.contract import DEFAULT_ENGINE, RankWeights, WantedRanges, rank_weights_of
from wpinq.errors import PlanError, described
from wpinq.expr.values import Value
from wpinq.measure.answers import Answers
from wpinq.measure.group import Compound, R, waits_for_keys
from wpinq.measure.measurement import Measurement, check_domain
from wpinq.plan.arithmetic import FLOAT
from wpinq.sinks.count_above import draw_above, shown_keys


@dataclass(frozen=True, slots=True)
class PublicOutput:
    """An output that is at hand: for simulations, and for tests with exact weights."""

    held: Mapping[Value, Any]

    def weights(self, keys: Sequence[Value] | None = None, within: WantedRanges = ()) -> Mapping[Value, Any]:
        """All weights."""
        return self.held

    def integer_rows(self) -> None:
        """No record is at hand as a row of integers."""

    def rank_weights(self, candidates: Sequence[Value]) -> RankWeights:
        """The weight before, at and after each candidate."""
        return rank_weights_of(self.held, candidates)


@overload
def simulate(
    measurement: Measurement, data: Mapping[str, SourceData], seed: int, engine: str = DEFAULT_ENGINE
) -> Answers: ...


@overload
def simulate(
    measurement: Compound[R], data: Mapping[str, SourceData], seed: int, engine: str = DEFAULT_ENGINE
) -> R: ...


@overload
def simulate(
    measurement: Mapping[str, Measurement | Compound],
    data: Mapping[str, SourceData],
    seed: int,
    engine: str = DEFAULT_ENGINE,
) -> dict[str, Any]: ...


def simulate(
    measurement: Measurement | Compound | Mapping[str, Measurement | Compound],
    data: Mapping[str, SourceData],
    seed: int,
    engine: str = DEFAULT_ENGINE,
) -> Any:
    """Simulate the answers of a session on PUBLIC data, with a seed.

    It protects nothing.

    Parameters
    ----------
    measurement : Measurement, Tabulation, MarginalTabulation, or mapping of these by name
        With a domain, or a listing.
    data : mapping
        As for `evaluate`.
    seed : int
        The seed of the noise; equal seeds give equal answers.
    engine : str
        "duckdb" or "reference".

    Returns
    -------
    Answers, Table or MarginalTables
        Answers with the stamp of a simulation; of a mapping, a dict.

    Raises
    ------
    PlanError
        If the measurement has no domain.

    Notes
    -----
    Privacy cost: not applicable. Seeded noise protects nothing.

    Examples
    --------
    >>> import wpinq as wp
    >>> bits = wp.source("bits", bool)
    >>> wp.simulate(bits.noisy_count(epsilon=1), {"bits": [True, True, False]}, seed=1).simulated
    True
    """
    if isinstance(seed, bool) or not isinstance(seed, Integral) or seed < 0:
        raise PlanError(f"a seed is an integer of at least 0, not {described(seed)}")
    if isinstance(measurement, Mapping):
        own = np.random.default_rng(seed).integers(2**63, size=len(measurement)).tolist()
        return {
            name: simulate(each, data, seed, engine)
            for (name, each), seed in zip(measurement.items(), own, strict=True)
        }
    if isinstance(measurement, Compound):
        asked = measurement.measurements
        if waits_for_keys(measurement):
            raise PlanError("simulate needs the groups of a table: by(..., keys=[...])")
        found = weights_of([one.plan for one in asked], data, engine, FLOAT)
        seeds = np.random.default_rng(seed).integers(2**63, size=len(asked)).tolist()
        drawn = zip(asked, found, seeds, strict=True)
        return measurement.read([_released(one, WeightedDataset(weights), own) for one, weights, own in drawn])
    if not isinstance(measurement, Measurement):
        raise PlanError("simulate takes a measurement: end the query with .noisy_count(epsilon=..., over=...)")
    if waits_for_keys(measurement):
        raise PlanError("simulate needs a measurement with public keys: noisy_count(epsilon, over=...)")
    (weights,) = weights_of([measurement.plan], data, engine, FLOAT)
    return _simulate(measurement, WeightedDataset(weights), seed)


@dataclass(frozen=True)
class _Waiting:
    """A stand-in for a Release where another measurement of the table lists the keys."""

    measurement: Measurement
    weights: WeightedDataset
    seed: int

    def at(self, keys: Iterable[object]) -> Answers:
        """The answers for keys."""
        domain = check_domain(keys, self.measurement.key_type)
        return _simulate(replace(self.measurement, domain=domain), self.weights, self.seed)


def _released(measurement: Measurement, weights: WeightedDataset, seed: int) -> Answers | _Waiting:
    waits = waits_for_keys(measurement)
    return _Waiting(measurement, weights, seed) if waits else _simulate(measurement, weights, seed)


def _simulate(measurement: Measurement, weights: WeightedDataset, seed: int) -> Answers:
    """The draws of a session over a query's output, from seeded bytes, without past requests."""
    sink, random = measurement.sink, np.random.default_rng(seed).bytes
    output, scales = PublicOutput(weights), sink.scales(measurement.plan, measurement.epsilon)
    scale, listing = sink.answer_scale(scales[0]), measurement.listing
    if listing is not None:
        listing = listing.checked(measurement.key_type)
        listing.check_size(sink, scale)
        rows = draw_above(sink, listing, measurement.key_type, output, (), (), scales[0], random)
        keys = shown_keys(sink, listing, rows)
        drawn, measurement = [rows[key] for key in keys], replace(measurement, domain=keys, listing=listing)
    else:
        assert measurement.domain is not None
        keys = measurement.domain
        sink.check_keys(measurement.plan, keys)
        drawn = sink.draw(output, keys, scales, random)
    return Answers(measurement, scale, sink.answers(drawn, len(keys)), simulated=True)
