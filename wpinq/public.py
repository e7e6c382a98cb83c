"""Evaluation of queries on public data: for learning, testing and experiments. Nothing here protects anything."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, overload

import numpy as np

from wpinq.dataset import EngineDataset, WeightedDataset
from wpinq.engines.contract import DEFAULT_ENGINE, find_engine
from wpinq.errors import EpsilonError, EvaluationFailed, PlanError, SourceRejected
from wpinq.expr.facts import FACTS
from wpinq.expr.logical_values import presenter
from wpinq.expr.sizes import Sizes
from wpinq.expr.types import TupleOf, Type, physical
from wpinq.expr.values import UnfitValue, Value, normalize, order_key
from wpinq.ingest.promises import broken_size
from wpinq.ingest.reading import is_rows, read_source
from wpinq.ingest.typed_columns import plain
from wpinq.kernel.bucket_draws import draw_buckets
from wpinq.kernel.conditional import ConditionalNoise
from wpinq.kernel.geometric import add_geometric
from wpinq.kernel.ladder import as_float, draw_count
from wpinq.kernel.listed_keys import draw_listing
from wpinq.kernel.selection import selection_scale
from wpinq.ladders.simple_graph import simple_graph
from wpinq.measure.answers import Answers
from wpinq.measure.bucket_choice import Buckets
from wpinq.measure.compound import Compound, waits_for_keys
from wpinq.measure.edge_plans import edges_of
from wpinq.measure.laws import DoubleGeometric
from wpinq.measure.measurement import GeometricCount, Measurement, NoisyChoice, NoisyCount, check_domain
from wpinq.measure.scales import ladder_scale, laplace_scale, lattice_scale, on_lattice, width_scale
from wpinq.measure.subgraph_counts import SubgraphCount
from wpinq.plan.arithmetic import EXACT, FLOAT, Arithmetic, Weights
from wpinq.plan.certify import certify
from wpinq.plan.node import Node, sources
from wpinq.plan.operators.source import Source
from wpinq.query import Query


def evaluate(
    query: Query, data: Mapping[str, Any], engine: str | None = None, *, exact: bool = False
) -> WeightedDataset:
    """The output of a query on PUBLIC data, without noise.

    Parameters
    ----------
    query : Query
        What to evaluate.
    data : mapping
        For each source name, a mapping from record to weight, an iterable of records of weight 1 each, or a table, a
        file, a cursor, a graph or an `EdgeList` as `Session.protect` takes them; where the source declares a person,
        whatever that takes.
    engine : str, optional
        "duckdb", "spark" or "reference". Unless given, "duckdb"; with `exact`, "reference".
    exact : bool
        Whether to compute in rationals, which only the reference does; weights are then Fractions.

    Returns
    -------
    WeightedDataset
        Record to weight, in canonical order where DuckDB made it.

    Raises
    ------
    PlanError
        When a source has no data, a record is not of its type, or the engine cannot run the plan.
    SourceRejected
        When a table, a file, a cursor or a graph is not what the source declares, or data do not keep its facts, on
        which engines rely.
    EvaluationFailed
        When DuckDB could not evaluate it, as for want of memory.

    Notes
    -----
    Privacy cost: not applicable. The output is not private at all; protected data belong in a `Session`.

    Examples
    --------
    >>> import wpinq as wp
    >>> edges = wp.source("edges", src=int, dst=int)
    >>> wp.evaluate(edges.select(lambda e: e.src), {"edges": [(1, 2), (1, 3)]})
    WeightedDataset({1: 2.0})
    """
    weights, type_ = _weights(query.plan, data, engine, EXACT if exact else FLOAT), query.plan.type
    if physical(type_) is not type_:
        shown = presenter(type_)
        weights = {shown(record): weight for record, weight in weights.items()}
    return WeightedDataset(weights)


def _weights(plan: Node, data: Mapping[str, Any], engine: str | None, arithmetic: Arithmetic) -> Weights:
    """The output by records in canonical form."""
    (found,) = _weights_of([plan], data, engine, arithmetic)
    return found


def _weights_of(
    plans: Sequence[Node], data: Mapping[str, Any], engine: str | None, arithmetic: Arithmetic
) -> list[Weights]:
    """The outputs of some plans over the same data, which are read once."""
    chosen = find_engine(engine or ("reference" if arithmetic.name == EXACT.name else DEFAULT_ENGINE))
    datasets = {}
    for name, declaration in sources(plans).items():
        if name not in data:
            raise PlanError(f'no data for the source {name!r}: give them by name, {{"{name}": rows}}')
        datasets[name] = _read(data[name], declaration)
    try:
        if len(plans) == 1:
            return [chosen.once(plans[0], datasets, arithmetic)]
        with chosen() as held, held.together(plans):
            return [held.evaluate(plan, datasets, arithmetic) for plan in plans]
    except EvaluationFailed:
        for plan in plans:
            chosen.check(plan)  # where the plan alone is why, that says so; a session asks it before the debit
        raise


def _read(given: Any, source: Source) -> Mapping[Value, Any] | EngineDataset:
    """Any weights of rows and mappings, exactly; all else, and whose rows count, through the one door for data."""
    source.check()
    type_, facts = source.record, frozenset(source.facts)
    if source.person is not None or not is_rows(given):
        unit_weight = max(source.unit_weight, Fraction(1))
        return read_source(
            given,
            source.row,
            unit_weight=unit_weight,
            cap=source.cap,
            facts=facts,
            person=source.person,
            sizes=source.sizes,
        )
    items = given.items() if isinstance(given, Mapping) else ((record, 1) for record in given)
    weights: dict[Value, Fraction] = {}
    for record, weight in items:
        try:
            key = normalize(plain(record, type_), type_)
        except UnfitValue as reason:
            raise PlanError(f"source {source.source!r}: the record {record!r} is {reason}") from None
        weights[key] = weights.get(key, Fraction(0)) + Fraction(weight)
    held = {record: weight for record, weight in weights.items() if weight}
    for fact in source.facts:
        if not _KEEPS[fact](held):
            raise SourceRejected(f"the data for {source.source!r} break the fact {fact}: {FACTS[fact]}")
    if source.sizes is not None:
        _check_sizes(held, source.sizes, type_)
    return weights


def _check_sizes(held: Iterable[Value], sizes: Sizes, type_: Type) -> None:
    names = type_.names if isinstance(type_, TupleOf) else ()
    for words, (fields, most) in zip(sizes.words, sizes.bounds, strict=True):
        places = [names.index(name) for name in fields]
        keys = (tuple(record[place] for place in places) for record in held)
        if max(Counter(keys).values(), default=0) > most:
            raise SourceRejected(broken_size(words))


def _reverse(record: Value) -> Value:
    return None if record is None else (record[1], record[0])


_KEEPS: dict[str, Callable[[Mapping[Value, Fraction]], bool]] = {
    "nonnegative": lambda held: all(weight >= 0 for weight in held.values()),
    "unit_weights": lambda held: all(weight == 1 for weight in held.values()),
    "whole_weights": lambda held: all(weight >= 0 and weight == int(weight) for weight in held.values()),
    "symmetric": lambda held: all(held.get(_reverse(record)) == weight for record, weight in held.items()),
    "simple": lambda held: all(_reverse(record) not in held for record in held),  # null is its own reverse
}
"""Whether public weights, which are exact, keep a fact: engines rely on it."""


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
        found = _weights_of([one.plan for one in asked], data, engine, FLOAT)
        seeds = np.random.default_rng(seed).integers(2**63, size=len(asked)).tolist()
        drawn = zip(asked, found, seeds, strict=True)
        return measurement.read([_released(one, WeightedDataset(weights), own) for one, weights, own in drawn])
    if not isinstance(measurement, Measurement):
        raise PlanError("simulate takes a measurement: end the query with .noisy_count(epsilon=..., over=...)")
    if waits_for_keys(measurement):
        raise PlanError("simulate needs a measurement with public keys: noisy_count(epsilon, over=...)")
    return _simulate(measurement, WeightedDataset(_weights(measurement.plan, data, engine, FLOAT)), seed)


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
    sink, certificate = measurement.sink, certify(measurement.plan)
    if measurement.listing is not None:
        return _simulate_listing(measurement, weights, seed)
    assert measurement.domain is not None
    if isinstance(sink, NoisyChoice):
        scale = float(sink.score_range * (1 + certificate.slack(sink.readouts)) / measurement.epsilon)
        index = simulate_select(list(map(float, sink.scores(weights, measurement.domain))), scale, seed)
        values = [float(i == index) for i in range(len(measurement.domain))]
        return Answers(measurement, 0.0, np.array(values), simulated=True)
    if isinstance(sink, SubgraphCount):
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
    sink, listing, certificate = measurement.sink, measurement.listing, certify(measurement.plan)
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


def _simulate_count(measurement: Measurement, sink: SubgraphCount, weights: Mapping[Value, Any], seed: int) -> Answers:
    """The same draws as a session's, from bytes of numpy."""
    random = np.random.default_rng(seed).bytes
    ladder = sink.ladder(simple_graph(edges_of(weights)))
    of_count, of_width = sink.epsilons(measurement.epsilon)
    scale = ladder_scale(certify(measurement.plan), of_count)
    values = [as_float(draw_count(ladder, scale, random))]
    if of_width:
        values.append(as_float(*add_geometric([ladder.width], width_scale(of_width), random)))
    return Answers(measurement, scale, np.array(values), simulated=True)


def _simulate_buckets(measurement: Measurement, sink: Buckets, weights: Mapping[Value, Any], seed: int) -> Answers:
    """The same draw as a session's, from bytes of numpy."""
    scale = selection_scale(measurement.epsilon, certify(measurement.plan).slack(), Fraction(2))
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
