"""Public data: queries evaluated without noise, and simulated answers of a session.

For learning, testing and experiments: nothing here protects.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from numbers import Integral
from operator import itemgetter
from typing import Any, overload

import numpy as np

from wpinq.api.query import Query
from wpinq.columns.dataset import EngineDataset, WeightedDataset
from wpinq.data import SourceData
from wpinq.data.facts import broken_size
from wpinq.data.layout import Layout
from wpinq.data.read import is_rows, read_source
from wpinq.data.relation import computed
from wpinq.data.rows import as_columns, check_no_columns
from wpinq.data.sources import of_spark
from wpinq.engines.contract import DEFAULT_ENGINE, RankWeights, WantedRanges, find_engine, rank_weights_of
from wpinq.errors import EvaluationFailed, PlanError, SourceRejected, described
from wpinq.expr.declarations import FACTS
from wpinq.expr.person_tables import PersonTables
from wpinq.expr.types import TupleOf, Type, physical
from wpinq.expr.values import Value, presenter
from wpinq.measure.answers import Answers
from wpinq.measure.group import Compound, R, waits_for_keys
from wpinq.measure.measurement import Measurement, check_domain
from wpinq.plan.arithmetic import EXACT, FLOAT, Arithmetic, Weights, accumulate
from wpinq.plan.domain import Sizes
from wpinq.plan.node import Node, sources
from wpinq.plan.operators.source import Source
from wpinq.sinks.count_above import draw_above, shown_keys


def evaluate(
    query: Query, data: Mapping[str, SourceData], engine: str | None = None, *, exact: bool = False
) -> WeightedDataset:
    """Evaluate a query on PUBLIC data, without noise.

    Parameters
    ----------
    query : Query
        The query to evaluate.
    data : mapping
        For each source name, an iterable of records of weight 1, a mapping from record to its number of rows (or its
        weight, with `weights=True`), or any other data that `Session.protect` takes. A source with a person takes the
        same data as in `Session.protect`.
    engine : str, optional
        "duckdb", "spark" or "reference". By default "duckdb"; with `exact`, "reference".
    exact : bool
        Whether to compute in rationals, with the reference engine only; weights are then Fractions.

    Returns
    -------
    WeightedDataset
        From record to weight; from DuckDB, in canonical order.

    Raises
    ------
    PlanError
        If a source has no data, a record has another type, or the engine cannot run the plan.
    SourceRejected
        If a table, a file, a cursor or a graph does not fit the declaration, or the data break a fact.
    EvaluationFailed
        If DuckDB could not evaluate the query, for example without enough memory.

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
    (weights,), type_ = weights_of([query.plan], data, engine, EXACT if exact else FLOAT), query.plan.type
    if physical(type_) is not type_:
        shown = presenter(type_)
        weights = {shown(record): weight for record, weight in weights.items()}
    return WeightedDataset(weights)


def weights_of(
    plans: Sequence[Node], data: Mapping[str, SourceData], engine: str | None, arithmetic: Arithmetic
) -> list[Weights]:
    """The outputs of some plans over the same data, by records in canonical form.

    The data are read once.
    """
    chosen = find_engine(engine or ("reference" if arithmetic.name == EXACT.name else DEFAULT_ENGINE))
    declared = sources(plans)
    missing = next((name for name in declared if name not in data), None)
    if missing is not None:
        raise PlanError(f'no data for the source {missing!r}: give them by name, {{"{missing}": rows}}')
    frames = {name for name in declared if any(map(of_spark, _tables(data[name], declared[name])))}
    read = {name: _read(data[name], source) for name, source in declared.items() if name not in frames}
    try:
        if len(plans) == 1 and not frames:
            return [chosen.evaluate_public(plans[0], read, arithmetic)]
        with chosen() as held, held.batch(plans):
            for name in frames:
                given: Any = data[name]
                if isinstance(declared[name].person, PersonTables):
                    given = {table: held.attach(each) for table, each in given.items()}
                else:
                    given = held.attach(given)
                read[name] = held.keep(_read(given, declared[name]))
            return [held.evaluate(plan, read, arithmetic) for plan in plans]
    except EvaluationFailed:
        for plan in plans:
            chosen.check(plan)  # raises if the plan alone is the reason; a session checks it before the debit
        raise


def _tables(given: Any, source: Source) -> list[Any]:
    """The data of each table of a source of people, or those of the one that there is."""
    return [*given.values()] if isinstance(source.person, PersonTables) and isinstance(given, Mapping) else [given]


def _read(given: Any, source: Source) -> Mapping[Value, Any] | EngineDataset:
    """Exact weights of rows and mappings; all else as a session reads it.

    Sources with a person, and epochs, are also read as a session reads them.
    """
    source.check()
    type_, facts = source.record, frozenset(source.facts)
    as_session = source.person is not None or source.epoch is not None
    if as_session or isinstance(given, EngineDataset) or not is_rows(given):
        return read_source(given, replace(source, unit_weight=max(source.unit_weight, Fraction(1))))
    check_no_columns(given)
    weighted = isinstance(given, Mapping)
    offered, *numbers = computed(
        lambda: [list(given), list(given.values())] if weighted else [list(given)],
        f"the iterable of rows for {source.source!r} fails: list it yourself to see why",
    )
    records, exact = _canonical(offered, source), [number for each in numbers for number in _exact(each, source)]
    weights: dict[Value, Any] = dict(zip(records, exact, strict=True)) if weighted else dict(Counter(records))
    if weighted and len(weights) < len(records):  # some are written in two ways
        weights = accumulate(zip(records, map(Fraction, exact), strict=True), EXACT)
    held = weights if all(weights.values()) else {record: weight for record, weight in weights.items() if weight}
    for fact in source.facts:
        if not KEEPS[fact](held):
            raise SourceRejected(f"the data for {source.source!r} break the fact {fact}: {FACTS[fact]}")
    different = {*held.values()} if weighted else set()
    if "whole_weights" in facts and max(different, default=0) > source.unit_weight:
        raise SourceRejected(
            f"the data for {source.source!r} hold a weight above the unit weight {source.unit_weight}: offer a list "
            "of all rows, or declare a larger unit_weight"
        )
    heavy = {weight for weight in different if "symmetric" in facts and 2 * abs(weight) > source.unit_weight}
    if heavy and any(weight in heavy and _reverse(record) != record for record, weight in held.items()):
        raise SourceRejected(
            f"the data for {source.source!r} hold (a, b) and (b, a) that weigh more than the unit weight "
            f"{source.unit_weight} together: one unit is both"
        )
    for words in exceeded_sizes(held, source.sizes, type_) if source.sizes is not None else ():
        raise SourceRejected(broken_size(words))
    return weights


def _canonical(records: Sequence[Any], source: Source) -> list[Value]:
    """Records in canonical form, column by column; PlanError names the first that is unfit."""
    layout, found = Layout.of(source.offered[0]), list[Value]()
    for columns, faults in as_columns(records, source.offered[0]):
        typed = layout.typed(columns, faults)
        if faults:
            where = f"source {source.source!r}: record {len(found) + min(faults)}, counted from 0, is unfit"
            raise PlanError(f"{where}: {faults[min(faults)]}")
        found += typed[0] if layout.bare else zip(*typed, strict=True)
    return found


def _exact(weights: Sequence[Any], source: Source) -> Sequence[Any]:
    """Weights as exact numbers: integers and floats as they are, all others as Fractions."""
    kinds = set(map(type, weights))
    if kinds <= {int} or (kinds == {float} and all(map(math.isfinite, weights))):
        return weights
    return [_fraction(weight, source, place) for place, weight in enumerate(weights)]


def _fraction(weight: Any, source: Source, place: int) -> Fraction:
    with suppress(TypeError, ValueError, OverflowError):
        if not isinstance(weight, (bool, str)):
            return Fraction(weight)
    raise PlanError(f"source {source.source!r}: the weight of record {place}, counted from 0, is no finite number")


def exceeded_sizes(held: Iterable[Value], sizes: Sizes, type_: Type) -> Iterator[str]:
    """The bounds that some records exceed, in words."""
    names = type_.names if isinstance(type_, TupleOf) else ()
    for words, (fields, most) in zip(sizes.words, sizes.bounds, strict=True):
        places = [names.index(name) for name in fields]
        keys = (tuple(record[place] for place in places) for record in held)
        if max(Counter(keys).values(), default=0) > most:
            yield words


def _reverse(record: Value) -> Value:
    return record and itemgetter(1, 0)(record)  # null is its own reverse


def _reverses(held: Mapping[Value, Any]) -> Iterable[Value]:
    return map(_reverse if None in held else itemgetter(1, 0), held)


#: Whether public weights, which are exact, keep a fact: engines rely on it.
KEEPS: dict[str, Callable[[Mapping[Value, Any]], bool]] = {
    "nonnegative": lambda held: min(held.values(), default=0) >= 0,
    "unit_weights": lambda held: {*held.values()} <= {1},
    "whole_weights": lambda held: all(weight >= 0 and weight == int(weight) for weight in {*held.values()}),
    "symmetric": lambda held: [*map(held.get, _reverses(held))] == [*held.values()],
    "simple_digraph": lambda held: (
        {*held.values()} <= {1} and all(record and record[0] != record[1] for record in held)
    ),
    "simple": lambda held: None not in held and held.keys().isdisjoint(_reverses(held)),
}


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
    if not isinstance(measurement, (Measurement, Compound)):
        raise PlanError("simulate takes a measurement: end the query with .noisy_count(epsilon=..., over=...)")
    asked, seeds = measurement.measurements, [seed]
    needed = "a measurement with public keys: noisy_count(epsilon, over=...)"
    if isinstance(measurement, Compound):
        seeds = np.random.default_rng(seed).integers(2**63, size=len(asked)).tolist()
        needed = "the groups of a table: by(..., keys=[...])"
    if waits_for_keys(measurement):
        raise PlanError(f"simulate needs {needed}")
    drawn = zip(asked, weights_of([one.plan for one in asked], data, engine, FLOAT), seeds, strict=True)
    given = [(one, WeightedDataset(weights), own) for one, weights, own in drawn]
    return measurement.read([(_Waiting if waits_for_keys(each[0]) else _simulate)(*each) for each in given])


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
        measurement = replace(measurement, domain=keys, listing=listing)
        drawn: Sequence[float] = [rows[key] for key in keys]
    else:
        assert measurement.domain is not None
        keys = measurement.domain
        sink.check_keys(measurement.plan, keys)
        drawn = sink.draw(output, keys, scales, random)
    return Answers(measurement, scale, sink.answers(drawn, len(keys)), simulated=True)
