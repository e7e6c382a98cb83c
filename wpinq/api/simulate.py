"""What a session would answer, over public data and drawn with a seed, for experiments. Nothing here protects."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, overload

import numpy as np

from wpinq.api.evaluate import weights_by_record, weights_of
from wpinq.columns.dataset import WeightedDataset
from wpinq.engines.contract import DEFAULT_ENGINE
from wpinq.errors import EpsilonError, PlanError
from wpinq.expr.values import Value, order_key
from wpinq.measure.answers import Answers
from wpinq.measure.group import Compound, waits_for_keys
from wpinq.measure.measurement import GeometricCount, Measurement, NoisyChoice, NoisyCount, check_domain
from wpinq.noise.bucket_draws import draw_buckets
from wpinq.noise.conditional import ConditionalNoise
from wpinq.noise.geometric import add_geometric
from wpinq.noise.ladder import as_float, draw_count
from wpinq.noise.noise_distributions import DoubleGeometric
from wpinq.noise.permute_and_flip import selection_scale
from wpinq.noise.scales import laplace_scale, lattice_scale, on_lattice
from wpinq.plan.arithmetic import FLOAT
from wpinq.plan.properties import plan_properties
from wpinq.sinks.buckets import Buckets
from wpinq.sinks.count_above import draw_listing
from wpinq.sinks.graph_counts import LadderSink
from wpinq.sinks.graph_ladders import simple_graph
from wpinq.sinks.graph_plans import edges_of


@overload
def simulate(measurement: Measurement, data: Mapping[str, Any], seed: int, engine: str = DEFAULT_ENGINE) -> Answers: ...


@overload
def simulate(measurement: Compound, data: Mapping[str, Any], seed: int, engine: str = DEFAULT_ENGINE) -> Any: ...


def simulate(
    measurement: Measurement | Compound, data: Mapping[str, Any], seed: int, engine: str = DEFAULT_ENGINE
) -> Any:
    """What a session would answer, drawn with a seed over PUBLIC data, for experiments. Protects nothing.

    Parameters
    ----------
    measurement : Measurement, Tabulation or MarginalTabulation
        With a domain, or a listing.
    data : mapping
        As for `evaluate`.
    seed : int
        Of numpy's generator; equal seeds give equal answers.
    engine : str
        "duckdb" or "reference".

    Returns
    -------
    Answers, Table or MarginalTables
        Stamped as simulated.

    Raises
    ------
    PlanError
        When the measurement has no domain.

    Notes
    -----
    Privacy cost: not applicable: seeded noise from a plain generator is no protection.

    Examples
    --------
    >>> import wpinq as wp
    >>> bits = wp.source("bits", bool)
    >>> wp.simulate(bits.noisy_count(epsilon=1), {"bits": [True, True, False]}, seed=1).simulated
    True
    """
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
    return _simulate(measurement, WeightedDataset(weights_by_record(measurement.plan, data, engine, FLOAT)), seed)


@dataclass(frozen=True)
class _Waiting:
    """What stands for a Release where the keys are those that another measurement of the table lists."""

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
    """The answers over a query's output."""
    sink, certificate = measurement.sink, plan_properties(measurement.plan)
    if measurement.listing is not None:
        return _simulate_listing(measurement, weights, seed)
    assert measurement.domain is not None
    if isinstance(sink, NoisyChoice):
        scale = float(sink.score_range * (1 + certificate.slack(sink.readouts)) / measurement.epsilon)
        index = simulate_select(list(map(float, sink.scores(weights, measurement.domain))), scale, seed)
        values = [float(i == index) for i in range(len(measurement.domain))]
        return Answers(measurement, 0.0, np.array(values), simulated=True)
    if isinstance(sink, LadderSink):
        return _simulate_count(measurement, sink, weights, seed)
    if isinstance(sink, Buckets):
        return _simulate_buckets(measurement, sink, weights, seed)
    public, factor = [float(weights[key]) for key in measurement.domain], float(sink.factor)
    noisy: Sequence[float]
    if isinstance(sink, GeometricCount):
        scale = float((1 + certificate.slack(exact=True)) / (measurement.epsilon * sink.step))
        noisy = simulate_geometric(on_lattice(public, sink.step), scale, seed)
    else:
        scale = float((1 + certificate.slack()) / measurement.epsilon)
        noisy = simulate_laplace(public, scale, seed)
    return Answers(measurement, scale * factor, factor * np.array(noisy), simulated=True)


def _simulate_listing(measurement: Measurement, weights: Mapping[Value, float], seed: int) -> Answers:
    """The same draws as a session's, from bytes of numpy; nothing was asked for before."""
    sink, listing, certificate = measurement.sink, measurement.listing, plan_properties(measurement.plan)
    assert listing is not None
    assert isinstance(sink, (NoisyCount, GeometricCount))
    listing = listing.checked(measurement.key_type)
    held, factor = [key for key in weights if key in listing.domain], float(sink.factor)
    given: Sequence[float] = [float(weights[key]) for key in held]
    if isinstance(sink, GeometricCount):
        scale, given = lattice_scale(certificate, measurement.epsilon), on_lattice(given, sink.step)
    else:
        scale = laplace_scale(measurement.epsilon, certificate.slack())
    listing.check_size(sink, scale * factor)
    noise = ConditionalNoise(scale, isinstance(sink, GeometricCount), np.random.default_rng(seed).bytes)
    rows = draw_listing(dict(zip(held, given, strict=True)), (), (), listing.domain, sink.cut(listing.above), noise)
    keys = tuple(sorted(rows, key=order_key))
    shown = replace(measurement, domain=keys, listing=listing)
    return Answers(shown, scale * factor, factor * np.array([rows[key] for key in keys]), simulated=True)


def _simulate_count(measurement: Measurement, sink: LadderSink, weights: Mapping[Value, Any], seed: int) -> Answers:
    """The same draws as a session's, from bytes of numpy."""
    random = np.random.default_rng(seed).bytes
    ladder = sink.ladder(simple_graph(edges_of(weights)))
    scale, *of_width = sink.scales(plan_properties(measurement.plan), measurement.epsilon)
    values = [as_float(draw_count(ladder, scale, random))]
    values += (as_float(*add_geometric([ladder.width], one, random)) for one in of_width)
    return Answers(measurement, scale, np.array(values), simulated=True)


def _simulate_buckets(measurement: Measurement, sink: Buckets, weights: Mapping[Value, Any], seed: int) -> Answers:
    """The same draw as a session's, from bytes of numpy."""
    scale = selection_scale(measurement.epsilon, plan_properties(measurement.plan).slack(), Fraction(2))
    given, random = [float(weights.get(bin, 0.0)) for bin in sink.keys], np.random.default_rng(seed).bytes
    values = np.zeros(sink.bins)
    values[draw_buckets(given, scale, sink.penalty, sink.split, random)] = 1.0
    return Answers(measurement, scale, values, simulated=True)


def simulate_laplace(values: Sequence[float], scale: float, seed: int) -> list[float]:
    """Public values plus reproducible Laplace noise from numpy. NOT private: for experiments on public data.

    Parameters
    ----------
    values : sequence of float
        Public.
    scale : float
        The scale of the noise, positive and finite.
    seed : int
        At least 0. The same seed gives the same noise.

    Returns
    -------
    list of float
        As many noisy numbers.

    Raises
    ------
    EpsilonError
        When the scale is not a positive finite float.

    Notes
    -----
    Privacy: none whatever. A seed can be guessed, and numpy's sums show the value in their low bits.

    Examples
    --------
    >>> simulate_laplace([1.0, 2.0], 0.5, seed=1) == simulate_laplace([1.0, 2.0], 0.5, seed=1)
    True
    """
    _check_scale(scale)
    draws = np.random.default_rng(seed).laplace(0.0, scale, len(values))
    return [float(value + draw) for value, draw in zip(values, draws, strict=True)]


def _check_scale(scale: float) -> None:
    if not isinstance(scale, float) or not 0 < scale < math.inf:
        raise EpsilonError("the scale of noise must be a positive finite float: take it from laplace_scale")


def simulate_geometric(values: Sequence[int], scale: float, seed: int) -> list[int]:
    """Public integers plus reproducible double-geometric noise from numpy. NOT private: for public data.

    The difference of two geometric draws, `Pr[k] ∝ exp(−|k|/scale)`.

    Parameters
    ----------
    values : sequence of int
        Public.
    scale : float
        In steps, positive and finite.
    seed : int
        At least 0.

    Examples
    --------
    >>> simulate_geometric([1, 2], 0.5, seed=1) == simulate_geometric([1, 2], 0.5, seed=1)
    True
    """
    rng = np.random.default_rng(seed)
    chance = -math.expm1(-1 / DoubleGeometric(scale).scale)
    draws = rng.geometric(chance, len(values)) - rng.geometric(chance, len(values))
    return [int(value + draw) for value, draw in zip(values, draws, strict=True)]


def simulate_select(scores: Sequence[float], scale: float, seed: int) -> int:
    """A reproducible draw from the distribution of `select`. NOT private: for experiments on public data.

    Parameters
    ----------
    scores : sequence of float
        Public, one a candidate.
    scale : float
        The scale of the noise, positive and finite.
    seed : int
        At least 0. The same seed gives the same choice.

    Returns
    -------
    int
        The position of the largest `score + Exp(scale)`, drawn by numpy.

    Raises
    ------
    PlanError
        When there are no candidates.
    EpsilonError
        When the scale is no positive finite number.

    Notes
    -----
    Privacy: none whatever. A seed can be guessed.

    Source: Ding, Kifer, Steinke, Wang, Xiao, Zhang, "The permute-and-flip mechanism is identical to
    report-noisy-max with exponential noise", 2021.

    Examples
    --------
    >>> simulate_select([0.0, 10_000.0, 1.0], 2.0, seed=1)
    1
    """
    if len(scores) == 0:
        raise PlanError("there is nothing to select from: give at least one candidate")
    _check_scale(scale)
    draws = np.random.default_rng(seed).exponential(scale, len(scores))
    return int(np.argmax(np.asarray(scores, dtype=np.float64) + draws))
