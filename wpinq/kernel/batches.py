"""Batches: what is asked together, made ready to be paid for and released, and its price. Public; no data is needed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from wpinq.errors import SessionError
from wpinq.kernel.charge import to_nano
from wpinq.kernel.ledger_tables import PartsOf, Pricing
from wpinq.kernel.orders import NOT_MEASURED, DeclaredSource, Order, prepare
from wpinq.measure.bill import Bill
from wpinq.measure.compound import Compound, Together, flattened
from wpinq.measure.measurement import Measurement
from wpinq.plan.demand import PartKey, charges, demand
from wpinq.plan.node import Node, Planned, sources


@dataclass(frozen=True, repr=False, eq=False)
class OrderBatch:
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
) -> OrderBatch:
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
    return OrderBatch(asked, orders)


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
