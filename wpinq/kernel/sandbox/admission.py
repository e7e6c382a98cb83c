"""Admission: which askings of an analyst who is not trusted are taken on, from plans, declarations and limits alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from fractions import Fraction

from wpinq.errors import PlanError
from wpinq.expr.sizes import Sizes
from wpinq.expr.types import TupleOf
from wpinq.expr.values import Value
from wpinq.expr.work import content_of
from wpinq.kernel.asking_limits import Limits
from wpinq.kernel.orders import Order
from wpinq.kernel.plan_cost import KEY_CONTENT, Cost, cost_of, keys_by_size
from wpinq.measure.key_domains import GivenKeys, KeyDomain, ProductKeys
from wpinq.measure.listing import Listable
from wpinq.measure.measurement import (
    Choose,
    GeometricCount,
    NoisyAverage,
    NoisyCount,
    NoisySum,
    Sink,
)
from wpinq.plan.certify import certify
from wpinq.plan.node import Node
from wpinq.plan.operators.source import Source
from wpinq.plan.plan_work import plan_work
from wpinq.plan.redeclared import redeclared

TAKEN: tuple[type[Sink], ...] = (NoisyCount, GeometricCount, NoisySum, NoisyAverage, Choose)
"""The sinks of which it was measured how long they draw."""

FIELDS_TRIED = 32
"""How many fields of a source are tried for a declaration that helps."""


def admitted(order: Order, keys: Collection[Value], limits: Limits) -> Cost:
    """What a look for an order may take, for some keys; PlanError where that is more than the limits grant."""
    measurement = order.measurement
    sink, plan = measurement.sink, measurement.plan
    if not isinstance(sink, TAKEN):
        names = ", ".join(sorted(taken.__name__ for taken in TAKEN))
        raise PlanError(
            f"untrusted mode releases {names}, not {type(sink).__name__}: nothing bounds how long that looks at data"
        )
    number = max(1, keys_by_size(keys))  # one at least: an order without keys is made to be asked for some
    cost = _cost(plan, order, number, limits)
    if cost is None:
        work = plan_work(plan)
        step = work.dominant.node.operator.name
        missing = (
            f"declare records_at_most of {', '.join(work.unbounded)}"
            if work.unbounded
            else _help(plan, order, number, limits)
        )
        raise PlanError(
            f"untrusted mode takes plans whose rows are bounded by declarations, and nothing bounds those of {step}: "
            f"{missing}"
        )
    seconds, size = granted_seconds(cost, limits), granted_bytes(cost, limits)
    if seconds + limits.settling > limits.seconds or size > limits.bytes:
        work = plan_work(plan)
        dominant = work.dominant
        raise PlanError(
            f"untrusted mode: this plan may take {seconds:,.4g} seconds and {size / 10**6:,.4g} MB, and the limits "
            f"grant {limits.seconds - limits.settling:,.4g} seconds and {limits.bytes / 10**6:,.4g} MB; most of it is "
            f"{dominant.node.operator.name}, with up to {dominant.rows:,} rows: {_help(plan, order, number, limits)}"
        )
    return cost


def granted_seconds(cost: Cost, limits: Limits) -> float:
    """How long a child may take: on the clock, and of processor time."""
    return cost.seconds * limits.margin


def granted_bytes(cost: Cost, limits: Limits) -> int:
    """How much memory a child may take."""
    return int(cost.bytes * min(limits.margin, 2.0))


def _cost(plan: Node, order: Order, keys: int, limits: Limits) -> Cost | None:
    sink, listing = order.measurement.sink, order.measurement.listing
    whole = listing is not None or (isinstance(sink, Choose) and sink.quantile is not None)
    if listing is not None:
        assert isinstance(sink, Listable)
        expected = int(listing.expected_by_noise(sink, order.scale * float(sink.factor)))
        keys = expected * (1 + _largest(listing.domain) // KEY_CONTENT)
    cost = cost_of(plan, keys, whole, limits.record)
    return cost if isinstance(cost, Cost) else None


def _largest(domain: KeyDomain) -> int:
    """The code points and elements of the largest key of a domain."""
    if isinstance(domain, ProductKeys):
        return sum(map(_largest, domain.parts))
    return max(map(content_of, domain.keys), default=0) if isinstance(domain, GivenKeys) else 0


def _help(plan: Node, order: Order, keys: int, limits: Limits) -> str:
    """The declaration that would lower the bound most, were it as small as can be; public, as all of this is."""
    now = _cost(plan, order, keys, limits)
    best: tuple[float, str] | None = None
    for words, other in _declared_otherwise(plan):
        cost = _cost(other, order, keys, limits)
        if (
            cost is not None
            and (now is None or cost.seconds < now.seconds / 2)
            and (best is None or cost.seconds < best[0])
        ):
            best = (cost.seconds, words)
    if best is None:
        return "ask for less, or for fewer keys at a time"
    return f"{best[1]}, or ask for less"


def _declared_otherwise(plan: Node) -> Iterator[tuple[str, Node]]:
    """The plan over each source with one declaration more, and what it is called."""
    for name, source in certify(plan).sources.items():
        sizes = source.sizes or Sizes()
        fields = source.record.names if isinstance(source.record, TupleOf) else ()
        for field in [field for field in fields if field is not None][:FIELDS_TRIED]:
            keys = {names: most for names, most in sizes.keys if names != (field,)} | {(field,): 1}
            declared = replace(source, sizes=Sizes(sizes.records, tuple(sorted(keys.items()))))
            yield f"a smaller keys_at_most of {field} would help, declared of {name}", _with(plan, name, declared)
        if sizes.records is not None and Fraction(source.cap) > sizes.records:
            declared = replace(source, cap=Fraction(sizes.records))
            yield f"a smaller cap would help, declared of {name}", _with(plan, name, declared)


def _with(plan: Node, name: str, declared: Source) -> Node:
    return redeclared(plan, lambda source: declared if source.source == name else source)
