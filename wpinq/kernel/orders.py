"""Orders: measurements made ready to release, with certified noise; and what is drawn once their data are shown."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from wpinq.dataset import EngineDataset
from wpinq.errors import SessionError
from wpinq.expr.nodes import digest_of
from wpinq.expr.values import Value
from wpinq.kernel.ladder import as_float, draw_count
from wpinq.kernel.noise import with_geometric_noise, with_laplace_noise
from wpinq.kernel.selection import select, selection_scale
from wpinq.ladders.simple_graph import simple_graph
from wpinq.measure.edge_plans import edges_of
from wpinq.measure.measurement import SINKS, Choose, GeometricCount, Measurement, check_domain
from wpinq.measure.scales import ladder_scale, laplace_scale, lattice_scale, on_lattice, width_scale
from wpinq.measure.subgraph_counts import COUNT, SubgraphCount
from wpinq.plan.arithmetic import Weights
from wpinq.plan.certify import certify
from wpinq.plan.demand import charges
from wpinq.plan.operators.source import Source

NOT_MEASURED = "release takes measurements: end the query with .noisy_count(epsilon=...) or another sink"


Data = Mapping[Value, float] | EngineDataset
"""A checked dataset, in the form in which an engine keeps it."""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Protected:
    """A source with its data, and the version that tells its releases from those of other data."""

    source: Source
    version: str
    weights: Data
    unit: str


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Order:
    """A measurement made ready to release: its ledger digest, the data it was paid for, its certified noise scale."""

    measurement: Measurement
    digest: str
    versions: tuple[tuple[str, str], ...]
    scale: float


def prepare(measurement: Measurement, protected: Mapping[str, Protected], fresh: bool) -> Order:
    """The order of a measurement over what is protected now; refused here, before any debit, where it is unfit."""
    if not isinstance(measurement, Measurement):
        raise SessionError(NOT_MEASURED)
    if type(measurement.sink) not in SINKS.values():
        raise SessionError(f"a sink is one of {', '.join(SINKS)}: no promise covers another")
    if measurement.domain is not None:  # before the debit: a Measurement can be made by hand
        domain = check_domain(measurement.domain, measurement.key_type, canonical=True)
        measurement = replace(measurement, domain=domain)
    certificate = certify(measurement.plan)
    versions = []
    for name, declared in certificate.sources.items():
        held = protected.get(name)
        if held is None:
            raise SessionError(f"the source {name!r} is not protected in this session; call protect first")
        if held.source != declared:
            raise SessionError(f"the source {name!r} was protected under another declaration than the query uses")
        versions.append((name, held.version))
    measurement.sink.check(measurement.plan)
    choice = isinstance(measurement.sink, Choose)
    if choice and not measurement.domain:
        raise SessionError("a choice needs at least one candidate")
    if isinstance(measurement.sink, GeometricCount):
        if certificate.require_lattice() != measurement.sink.step:  # a Measurement can be made by hand, or read
            raise SessionError("the plan proves another lattice than the measurement's: use query.geometric_count(...)")
        scale = lattice_scale(certificate, measurement.epsilon)
    elif choice:
        uses = {name: Fraction(count) for name, count in certificate.uses.items()}
        distances = charges(uses, certificate.sources).values()  # a person moves all tables of an account at once
        scale = selection_scale(measurement.epsilon, certificate.slack(readouts=1), distances)
    elif isinstance(measurement.sink, SubgraphCount):
        if measurement.domain != measurement.sink.keys:
            raise SessionError(f"{measurement.sink.name} has keys of its own: use wpinq.graphs to ask for it")
        of_count, of_width = measurement.sink.epsilons(measurement.epsilon)
        scale = ladder_scale(certificate, of_count)
        if of_width:
            width_scale(of_width)
    else:
        scale = laplace_scale(measurement.epsilon, certificate.slack())
    nonce = secrets.token_bytes(16) if fresh else b""
    digest = digest_of("release", measurement.digest, repr(scale), repr(sorted(versions)), nonce)
    return Order(measurement, digest.hex(), tuple(versions), scale)


def noisy(order: Order, outputs: Weights, keys: Sequence[Value]) -> list[float]:
    """The weights of some keys with noise, in the units of the order's scale."""
    sink = order.measurement.sink
    weights = [outputs.get(key, 0.0) for key in keys]
    if isinstance(sink, GeometricCount):
        return [float(steps) for steps in with_geometric_noise(on_lattice(weights, sink.step), order.scale)]
    return with_laplace_noise(weights, order.scale)


def counted(order: Order, outputs: Weights, keys: Sequence[Value]) -> list[float]:
    """The number of subgraphs, on a rung of its ladder, and the noisy width of the ladder: whichever are asked for."""
    sink = order.measurement.sink
    assert isinstance(sink, SubgraphCount)
    ladder = sink.ladder(simple_graph(edges_of(outputs)))
    drawn = {COUNT: lambda: draw_count(ladder, order.scale)}
    if sink.interval_share is not None:
        scale = width_scale(sink.epsilons(order.measurement.epsilon)[1])
        drawn[sink.width_key] = lambda: with_geometric_noise([ladder.width], scale)[0]
    return [as_float(drawn[str(key)]()) for key in keys]


def chosen(order: Order, scores: Sequence[float]) -> int:
    """The place of the candidate that a choice falls on."""
    return select(scores, order.scale)
