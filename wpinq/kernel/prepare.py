"""Orders: measurements made ready to release, with certified noise; and what is drawn once their data are shown."""

from __future__ import annotations

import contextlib
import math
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from itertools import repeat

from wpinq.columns.dataset import EngineDataset
from wpinq.errors import EpsilonError, PlanError, SessionError
from wpinq.expr.nodes import digest_of
from wpinq.expr.values import Value
from wpinq.kernel.ledger.ledger_releases import Terms
from wpinq.kernel.ledger.ledger_tables import PartsOf, Pricing
from wpinq.kernel.ledger.nano_epsilon import to_nano
from wpinq.measure.bill import Bill
from wpinq.measure.group import Compound, Together, flattened
from wpinq.measure.measurement import SINKS, Choose, GeometricCount, Measurement, MostDistant, NoisyChoice
from wpinq.noise.bucket_draws import draw_buckets
from wpinq.noise.conditional import ConditionalNoise
from wpinq.noise.guard import silently, with_geometric_noise, with_laplace_noise
from wpinq.noise.ladder import as_float, draw_count
from wpinq.noise.permute_and_flip import select, selection_scale
from wpinq.noise.scales import laplace_scale, lattice_scale, on_lattice
from wpinq.plan.arithmetic import Weights
from wpinq.plan.demand import PartKey, chain_of_parts, charges, demand
from wpinq.plan.node import Node, Planned, sources
from wpinq.plan.operators.source import Source
from wpinq.plan.properties import PlanProperties, plan_properties
from wpinq.plan.redeclaration import with_facts
from wpinq.sinks.buckets import Buckets
from wpinq.sinks.count_above import Listable, Listing, Past, draw_listing, least_cut, listing_from_json
from wpinq.sinks.graph_counts import LadderSink
from wpinq.sinks.graph_ladders import simple_graph
from wpinq.sinks.graph_plans import edges_of

NOT_MEASURED = "release takes measurements: end the query with .noisy_count(epsilon=...) or another sink"


Data = Mapping[Value, float] | EngineDataset
"""A checked dataset, in the form in which an engine keeps it."""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class DeclaredSource:
    """A source, the version that tells releases of its data from those of other data, and what is protected, in words.

    All of it is public: whoever has no data can price releases by it.
    """

    source: Source
    version: str
    unit: str


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Protected(DeclaredSource):
    """A source with its data."""

    weights: Data


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Order:
    """A measurement made ready to release: its ledger digest, the data it was paid for, its certified noise scale."""

    measurement: Measurement
    digest: str
    versions: tuple[tuple[str, str], ...]
    scale: float
    former: tuple[tuple[str, float], ...] = ()
    """Digest and scale under which it may have been released when bills counted paths: dearer, and as good a promise.

    What was debited so and has no answer yet, such as a key that nobody asked for, gets one of that scale: it was made
    for a plan that moves as often as it uses its sources, and for scores of a range of 2, which covers today's.
    """

    def terms(self, scope: Callable[[Node], str]) -> Terms:
        """The terms on which it is released, for the record: what it would cost by itself."""
        measurement = self.measurement
        chain = chain_of_parts(measurement.plan, scope) if measurement.parted else ()
        asked = demand([measurement.asked], scope=scope).parts if chain else {}
        parts = tuple((key, asked[key]) for key in chain)
        return Terms(measurement.sink.noise, self.scale, measurement.moves, measurement.costs, parts)

    @property
    def looks_at_once(self) -> bool:
        """Whether a session looks at the data for it right away, and not when keys are asked for."""
        return bool(self.measurement.domain) or self.measurement.listing is not None

    @property
    def keys_at_once(self) -> Collection[Value]:
        """The keys that it looks for right away."""
        return self.measurement.domain or ()

    @property
    def conditional(self) -> ConditionalNoise:
        """Its noise, under conditions."""
        return ConditionalNoise(self.scale, isinstance(self.measurement.sink, GeometricCount))

    def cut(self, listing: Listing) -> float:
        """The threshold of a listing, in the units of the scale."""
        sink = self.measurement.sink
        assert isinstance(sink, Listable)
        return sink.cut(listing.above)

    def past(self, listings: Iterable[object]) -> Past:
        """Listings of the same release, as the ledger has them, in the units of the scale."""
        read = [listing_from_json(listing, self.measurement.key_type) for listing in listings]
        return [(listing.domain, self.cut(listing)) for listing in read]

    def check_size(self) -> None:
        """Refuse, before any debit, a listing of more keys than anybody reads; from what is public."""
        sink, listing = self.measurement.sink, self.measurement.listing
        if listing is not None:
            assert isinstance(sink, Listable)
            listing.check_size(sink, self.scale * float(self.measurement.sink.factor))

    def as_paid(self, paid: Callable[[Iterable[str]], Collection[str]]) -> Order:
        """The order as the ledger has it: under a former scale, where it was released so and not anew."""
        found = paid([self.digest, *(digest for digest, _ in self.former)]) if self.former else ()
        if self.digest not in found:
            for digest, scale in self.former:
                if digest in found:
                    return replace(self, digest=digest, scale=scale, former=())
        return self


def prepare(measurement: Measurement, protected: Mapping[str, DeclaredSource], fresh: bool) -> Order:
    """The order of a measurement over what is protected now; refused here, before any debit, where it is unfit."""
    if not isinstance(measurement, Measurement):
        raise SessionError(NOT_MEASURED)
    if type(measurement.sink) not in SINKS.values():
        raise SessionError(f"a sink is one of {', '.join(SINKS)}: no promise covers another")
    measurement = measurement.checked  # before the debit
    certificate = plan_properties(measurement.plan)
    versions = []
    for name, declared in certificate.sources.items():
        held = protected.get(name)
        if held is None:
            raise SessionError(f"the source {name!r} is not protected in this session; call protect first")
        if held.source != declared:
            raise SessionError(f"the source {name!r} was protected under another declaration than the query uses")
        versions.append((name, held.version))
    measurement.sink.check(measurement.plan)
    if isinstance(measurement.sink, NoisyChoice) and not measurement.domain:
        raise SessionError("a choice needs at least one candidate")
    if isinstance(measurement.sink, GeometricCount) and certificate.require_lattice() != measurement.sink.step:
        # a Measurement can be made by hand, or read
        raise SessionError("the plan proves another lattice than the measurement's: use query.geometric_count(...)")
    if isinstance(measurement.sink, (LadderSink, MostDistant)) and measurement.domain != measurement.sink.keys:
        raise SessionError(f"{measurement.sink.name} has keys of its own: use wpinq.graphs or query.most_distant(...)")
    if isinstance(measurement.sink, Buckets) and measurement.domain != measurement.sink.keys:
        raise SessionError("buckets are drawn for all bins together: use query.buckets(...) to ask for them")
    nonce = secrets.token_bytes(16) if fresh else b""

    def named(identity: bytes, scale: float) -> tuple[str, float]:
        digest = digest_of("release", identity, repr(scale), repr(sorted(versions)), nonce)
        return digest.hex(), scale

    digest, scale = named(measurement.digest, _scale(measurement, certificate))
    former = [] if fresh else [named(*earlier) for earlier in _earlier(measurement)]
    return Order(measurement, digest, tuple(versions), scale, tuple(pair for pair in former if pair[0] != digest))


def _earlier(measurement: Measurement) -> Iterator[tuple[bytes, float]]:
    """How the same may have been released before: at the scale of its uses, and from sources without `simple`.

    The data were the same, and the answer is as good: to answer from there costs nothing.
    """
    simple = any("simple" in source.facts for source in plan_properties(measurement.plan).sources.values())
    for dropped in _DROPPED if simple else _DROPPED[:1]:
        with contextlib.suppress(EpsilonError, PlanError):  # it could not be had, so nobody has it
            plan = with_facts(measurement.plan, partial(_without, dropped)) if dropped else measurement.plan
            earlier = replace(measurement, plan=plan)
            yield from _as_certified(
                earlier, earlier.former_digest, _scale(earlier, plan_properties(plan), former=True)
            )
    if isinstance(measurement.sink, Choose):
        yield from _as_certified(
            measurement, measurement.digest, _scale(measurement, plan_properties(measurement.plan))
        )


def _as_certified(measurement: Measurement, identity: bytes, scale: float) -> Iterator[tuple[bytes, float]]:
    """A former release at its scale, and for a choice at the scales just above.

    OpenDP once drew choices, and its map, whose two roundings add up to less than five units in the last place, had to
    come out within the bill: the scale was raised until it did.
    """
    for _ in range(_ROUNDINGS if isinstance(measurement.sink, Choose) else 1):
        yield identity, scale
        scale = math.nextafter(scale, math.inf)


_ROUNDINGS = 6


_DROPPED = (frozenset[str](), frozenset({"simple"}), frozenset({"simple", "unit_weights"}))


def _without(dropped: frozenset[str], source: Source) -> frozenset[str]:
    facts = frozenset(source.facts)
    return facts - dropped if "simple" in facts else facts


def _scale(measurement: Measurement, certificate: PlanProperties, *, former: bool = False) -> float:
    """The certified scale of a measurement's noise, in the units that it is drawn in.

    The former one is of releases from before the sharp bound, when uses were billed, and the scores of a choice were
    taken to move by a unit each, some up and some down: a range of 2.
    """
    if isinstance(measurement.sink, GeometricCount):
        return lattice_scale(certificate, measurement.epsilon)
    if isinstance(measurement.sink, LadderSink):
        return measurement.sink.scales(certificate, measurement.epsilon)[0]
    if isinstance(measurement.sink, Buckets):  # the cost of one partition may rise, and of another fall, by a unit
        return selection_scale(measurement.epsilon, certificate.slack(by_uses=former), Fraction(2))
    if not isinstance(measurement.sink, NoisyChoice):
        return laplace_scale(measurement.epsilon, certificate.slack(by_uses=former))
    score_range = Fraction(2) if former else measurement.sink.score_range
    readouts = measurement.sink.readouts
    return selection_scale(measurement.epsilon, certificate.slack(readouts, by_uses=former), score_range)


def noisy(order: Order, outputs: Weights, keys: Sequence[Value], past: Past = ()) -> list[float]:
    """The weights of some keys with noise, in the units of the order's scale, given what listings said of the keys."""
    sink = order.measurement.sink
    weights = [*map(outputs.get, keys, repeat(0.0))]
    if past:
        cuts = [least_cut(past, key) for key in keys]
        return silently(lambda given: order.conditional.at_most(_in_units(order, given), cuts), weights)
    if isinstance(sink, GeometricCount):
        return [float(steps) for steps in with_geometric_noise(on_lattice(weights, sink.step), order.scale)]
    return with_laplace_noise(weights, order.scale)


def listed(order: Order, outputs: Weights, asked: Collection[Value], past: Past) -> dict[Value, float]:
    """The keys that a listing shows and that have no answer yet, with their values in units of the order's scale."""
    listing = order.measurement.listing
    assert listing is not None
    keys, cut = list(outputs), order.cut(listing)

    def drawn(given: Sequence[float]) -> dict[Value, float]:
        weights = dict(zip(keys, _in_units(order, given), strict=True))
        return draw_listing(weights, asked, past, listing.domain, cut, order.conditional)

    return silently(drawn, [float(weight) for weight in outputs.values()])


def _in_units(order: Order, weights: Sequence[float]) -> Sequence[float]:
    sink = order.measurement.sink
    return on_lattice(weights, sink.step) if isinstance(sink, GeometricCount) else weights


def counted(order: Order, outputs: Weights, keys: Sequence[Value]) -> list[float]:
    """The integer of a graph, on a rung of its ladder, and the noisy width of the ladder: whichever are asked for."""
    sink = order.measurement.sink
    assert isinstance(sink, LadderSink)
    ladder = sink.ladder(simple_graph(edges_of(outputs)))
    scales = sink.scales(plan_properties(order.measurement.plan), order.measurement.epsilon)
    draws = (lambda: draw_count(ladder, order.scale), lambda: with_geometric_noise([ladder.width], scales[1])[0])
    drawn = dict(zip(sink.keys, draws, strict=False))
    return [as_float(drawn[str(key)]()) for key in keys]


def bucketed(order: Order, outputs: Weights, keys: Sequence[Value]) -> list[float]:
    """For every bin whether a bucket begins there: of all bins together, in one draw."""
    sink = order.measurement.sink
    assert isinstance(sink, Buckets)
    if tuple(keys) != sink.keys:
        raise SessionError("buckets are drawn for all bins together")
    weights = [float(outputs.get(bin, 0.0)) for bin in sink.keys]
    starts = set(draw_buckets(weights, order.scale, sink.penalty, sink.split))
    return [float(bin in starts) for bin in sink.keys]


def chosen(order: Order, scores: Sequence[float | Fraction]) -> int:
    """The place of the candidate that a choice falls on."""
    return select(scores, order.scale)


# Batches: what is asked together, made ready to be paid for and released, and its price. Public; no data is needed.


@dataclass(frozen=True, repr=False, eq=False)
class PreparedBatch:
    """Orders that are paid for together.

    Attributes
    ----------
    asked : list
        What was asked for, one by one.
    orders : list of Order
        What is to be released for it, in order.
    """

    asked: list[Measurement | Compound]
    orders: list[Order]

    @cached_property
    def by_digest(self) -> dict[str, Order]:
        """Each order once."""
        return {order.digest: order for order in self.orders}

    @property
    def descriptions(self) -> dict[str, str]:
        """Digest -> public description, as a ledger records them."""
        return {digest: order.measurement.description for digest, order in self.by_digest.items()}

    @cached_property
    def _versions(self) -> dict[str, str]:
        return dict(pair for order in self.orders for pair in order.versions)

    def _scope(self, split: Node) -> str:
        return repr(sorted((name, self._versions[name]) for name in sources([split])))

    def price(self, new: frozenset[str], parts_of: PartsOf) -> Pricing:
        """What those of these digests cost that are new, given the demands that there were."""
        bought = {digest: order for digest, order in self.by_digest.items() if digest in new}
        measured = [order.measurement for order in bought.values()]
        owed, parts = dict[str, Fraction](), dict[PartKey, Fraction]()
        if parted := [each for each in measured if each.parted]:
            asked = demand([each.asked for each in parted], parts_of, self._scope)
            owed, parts = charges(asked.sources, sources(each.plan for each in parted)), asked.parts
        for each in measured:
            for account, cost in () if each.parted else each.costs.items():  # which only add up
                owed[account] = owed[account] + cost if account in owed else cost
        nano = {account: to_nano(epsilon) for account, epsilon in owed.items()}
        return Pricing(nano, parts, {digest: order.terms(self._scope) for digest, order in bought.items()})


def prepared(
    measurements: Together,
    declared: Mapping[str, DeclaredSource],
    fresh: bool,
    paid: Callable[[Iterable[str]], Collection[str]],
) -> PreparedBatch:
    """What is asked for, as a batch; refused here, before any debit, where it is unfit.

    Parameters
    ----------
    measurements : as `Session.release` takes them
        What is asked for.
    declared : Mapping
        The sources by name.
    fresh : bool
        Whether nothing is replayed.
    paid : callable
        Which of some digests were paid for, by whoever asks.
    """
    asked = each_of(measurements)
    orders = [prepare(measurement, declared, fresh).as_paid(paid) for measurement in flattened(asked)]
    if not orders:
        raise SessionError("nothing to release: give one measurement or several")
    for order in orders:
        order.check_size()
    return PreparedBatch(asked, orders)


def bill_of(measurements: Together, declared: Mapping[str, DeclaredSource], fresh: bool) -> Bill:
    """What measurements would cost, before replay and earlier releases of partitions lower it."""
    named = measurements if isinstance(measurements, Mapping) else each_of(measurements)
    return Bill(named, {name: held.unit for name, held in declared.items()}, fresh=fresh)


def each_of(measurements: Together) -> list[Measurement | Compound]:
    """What is asked for, one by one."""
    if isinstance(measurements, (Measurement, Compound)):
        return [measurements]
    if isinstance(measurements, Planned) or not isinstance(measurements, Iterable):
        raise SessionError(NOT_MEASURED)
    return list(measurements.values() if isinstance(measurements, Mapping) else measurements)
