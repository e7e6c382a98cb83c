"""Prepared measurements: checked, priced, with a certified noise scale, and without data."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from wpinq.columns.dataset import EngineDataset
from wpinq.errors import PlanError, SessionError
from wpinq.expr.nodes import digest_of
from wpinq.expr.values import Value
from wpinq.kernel.ledger.accounts import PartsOf, Pricing
from wpinq.measure.bill import Bill, Request, named
from wpinq.measure.group import Together, flattened
from wpinq.measure.measurement import Measurement
from wpinq.measure.prepaid import prepaid_charges
from wpinq.noise.epsilon import to_nano
from wpinq.plan.demand import PartKey, charges, demand
from wpinq.plan.node import Node, sources
from wpinq.plan.operators.source import Source
from wpinq.plan.properties import plan_properties
from wpinq.sinks.count_above import Past, listing_from_json
from wpinq.sinks.sink import SINKS

NOT_MEASURED = "release takes measurements: end the query with .noisy_count(epsilon=...) or another sink"


#: It stands before a version that the curator named; other versions are random words.
DECLARED = "declared "

#: A checked dataset, in the form in which an engine keeps it.
Data = Mapping[Value, float] | EngineDataset


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class DeclaredSource:
    """A protected source: its declaration, the version of its data, and its unit in words.

    All of it is public: releases can be priced by it without data.
    """

    source: Source
    version: str
    unit: str


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Protected(DeclaredSource):
    """A source with its data."""

    weights: Data


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class PreparedMeasurement:
    """A measurement made ready to release.

    Attributes
    ----------
    measurement : Measurement
        Checked.
    digest : str
        The name of the release in the ledger.
    versions : tuple of (str, str)
        The data that it is paid for: source and version.
    scales : tuple of float
        The certified scales of its noise.
    replays : bool
        Whether later sessions can request it. Others have a random word in the digest, which no file holds: of a fresh
        release, or of data without a declared version.
    """

    measurement: Measurement
    digest: str
    versions: tuple[tuple[str, str], ...]
    scales: tuple[float, ...]
    replays: bool

    @property
    def scale(self) -> float:
        """The scale of its noise, in the units that it is drawn in."""
        return self.scales[0]

    @property
    def evaluates_at_once(self) -> bool:
        """Whether a session evaluates it at once, instead of when keys are requested."""
        return bool(self.measurement.domain) or self.measurement.listing is not None

    @property
    def keys_at_once(self) -> Collection[Value]:
        """The keys for which it is evaluated right away."""
        return self.measurement.domain or ()

    def past(self, listings: Iterable[object]) -> Past:
        """Listings of the same release, as the ledger has them, in the units of the scale."""
        read = [listing_from_json(listing, self.measurement.key_type) for listing in listings]
        return [(listing.domain, self.measurement.sink.cut(listing.above)) for listing in read]


def prepare(measurement: Measurement, protected: Mapping[str, DeclaredSource], fresh: bool) -> PreparedMeasurement:
    """Prepare a measurement over the protected sources, or refuse it before any debit."""
    if type(measurement) is not Measurement:  # as of the sink: a class of its own could price and draw otherwise
        raise SessionError(NOT_MEASURED)
    sink, plan = measurement.sink, measurement.plan
    if type(sink) not in SINKS.values():
        raise SessionError(f"a sink is one of {', '.join(SINKS)}: no guarantee covers another")
    measurement = measurement.checked  # before the debit
    versions = []
    for name, declared in plan_properties(plan).sources.items():
        held = protected.get(name)
        if held is None:
            raise SessionError(f"the source {name!r} is not protected in this session; call protect first")
        if held.source != declared:
            raise SessionError(f"the source {name!r} was protected under another declaration than the query uses")
        versions.append((name, held.version))
    sink.check(plan)
    sink.check_keys(plan, measurement.domain)
    scales, nonce = sink.scales(plan, measurement.epsilon), secrets.token_bytes(16) if fresh else b""
    if measurement.listing is not None:  # of more keys than anybody reads; from what is public
        measurement.listing.check_size(sink, sink.answer_scale(scales[0]))
    digest = digest_of("release", measurement.digest, repr(scales[0]), repr(sorted(versions)), nonce)
    replays = not fresh and all(version.startswith(DECLARED) for _, version in versions)
    return PreparedMeasurement(measurement, digest.hex(), tuple(versions), scales, replays)


@dataclass(frozen=True, repr=False, eq=False)
class PreparedBatch:
    """Measurements that are paid for together.

    Attributes
    ----------
    items : list
        The requested measurements and groups.
    prepared : list of PreparedMeasurement
        The measurements that are to be released for them, in order.
    """

    items: list[Request]
    prepared: list[PreparedMeasurement]

    @cached_property
    def by_digest(self) -> dict[str, PreparedMeasurement]:
        """Each release once."""
        return {each.digest: each for each in self.prepared}

    @property
    def descriptions(self) -> dict[str, str]:
        """Digest -> public description, as a ledger records them."""
        return {digest: each.measurement.description for digest, each in self.by_digest.items()}

    @cached_property
    def _versions(self) -> dict[str, str]:
        return dict(pair for each in self.prepared for pair in each.versions)

    def _scope(self, split: Node) -> str:
        return repr(sorted((name, self._versions[name]) for name in sources([split])))

    def price(self, new: frozenset[str], parts_of: PartsOf) -> Pricing:
        """The price of the new releases among these digests, given earlier demands on partitions."""
        measured = [each.measurement for digest, each in self.by_digest.items() if digest in new]
        owed, parts = dict[str, Fraction](), dict[PartKey, Fraction]()
        if parted := [each for each in measured if each.parted]:
            owing = demand([each.demand for each in parted], parts_of, self._scope)
            owed, parts = charges(owing.sources, sources(each.plan for each in parted)), owing.parts
        nodes = [each for each in measured if each.prepaid is not None]
        single = [each.costs for each in measured if each.prepaid is None and not each.parted]
        for costs in (*single, prepaid_charges(nodes, parts_of, parts)):  # which only add up
            for account, cost in costs.items():
                owed[account] = owed[account] + cost if account in owed else cost
        return Pricing({account: to_nano(epsilon) for account, epsilon in owed.items()}, parts)

    def plan(self, digest: str) -> str:
        """The canonical plan of one measurement, as a ledger keeps it."""
        return self.by_digest[digest].measurement.canonical_plan


def prepare_batch(measurements: Together, declared: Mapping[str, DeclaredSource], fresh: bool) -> PreparedBatch:
    """Measurements as a batch; refused here, before any debit, where one is unfit.

    Parameters
    ----------
    measurements : as `Session.release` takes them
        The requested measurements.
    declared : Mapping
        The sources by name.
    fresh : bool
        Whether nothing is replayed.
    """
    items = each_of(measurements)
    prepared = [prepare(measurement, declared, fresh) for measurement in flattened(items)]
    if not prepared:
        raise SessionError("nothing to release: give one measurement or several")
    return PreparedBatch(items, prepared)


def bill_of(measurements: Together, declared: Mapping[str, DeclaredSource], fresh: bool) -> Bill:
    """The bill of measurements, before replay and earlier releases of partitions lower it."""
    asked = measurements if isinstance(measurements, Mapping) else each_of(measurements)
    return Bill(asked, {name: held.unit for name, held in declared.items()}, fresh=fresh)


def each_of(measurements: Together) -> list[Request]:
    """The requested measurements and groups, one by one."""
    try:
        return [each for _, each in named(measurements)]
    except PlanError:
        raise SessionError(NOT_MEASURED) from None
