"""Admission to the sandbox: a plan is admitted if its worst-case cost is within the limits.

The cost in seconds and bytes is computed from the plan, the declarations, the requested keys and the limits, never from
the data, so a refusal reveals nothing. `benchmarks/confinement.py` measures the rates on the worst data of each
operator and each function of lists; `docs/service.md` has the measurements.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction

from wpinq.errors import PlanError, SessionError, described
from wpinq.expr.types import STR, ListOf, TupleOf, Type, Weighted
from wpinq.expr.values import Value
from wpinq.expr.work import content_of
from wpinq.kernel.prepare import PreparedMeasurement
from wpinq.plan.node import Node, upward
from wpinq.plan.operators import GroupBy
from wpinq.plan.operators.source import Source
from wpinq.plan.work import PlanWork, advice, plan_work, row_bounds
from wpinq.sinks.keys import GivenKeys, KeyDomain, ProductKeys
from wpinq.sinks.sink import SINKS

#: For a child with a database, before it has seen a row.
START_SECONDS, START_BYTES = 0.3, 150_000_000

#: For each step of a plan, whatever it does: to plan its statements, above all.
STEP_SECONDS, STEP_BYTES = 1e-2, 1_000_000

#: For each call that functions are written of, to compile it and to plan it.
CALL_SECONDS, CALL_BYTES = 2e-3, 100_000

#: For each row that a step makes or reads.
ROW_SECONDS, ROW_BYTES = 0.3e-6, 80

#: For each value or code point of a row.
VALUE_SECONDS, VALUE_BYTES = 0.04e-6, 8

#: For each value of an output that is read as a whole, as for a quantile or a count above a threshold.
FETCHED_SECONDS, FETCHED_BYTES = 0.6e-6, 100

#: The rows of one batch of a function, and the rates for each value or code point in it.
AT_ONCE, FUNCTION_SECONDS, FUNCTION_BYTES = 4096, 0.08e-6, 24

#: For each noisy number, each candidate, and each record of an output that is read as a whole.
DRAWN_SECONDS, DRAWN_BYTES = 3e-5, 1000

#: The code points and elements of a key that take as much as a noisy number.
KEY_CONTENT = 40


_MEMORY = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT])B", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a release in untrusted mode; they are public.

    Parameters
    ----------
    seconds : float
        The longest time of one release; a plan with a higher bound is refused before the debit.
    memory : str
        The most memory of a child process, such as "2GB".
    max_record_bytes : int
        The most code points of a text, or of a list as text, in a field. `protect` refuses data with larger fields.
    safety_factor : float
        The granted time over the computed one. Raise it for a slower machine, or for one with other work.
    grace_seconds : float
        The time to store answers or to suspend a source after the end of a child; a part of `seconds`.
    require_restrictions : bool
        Whether to refuse a session on a kernel without Landlock or seccomp, which keep a child from other files,
        connections and programs. False accepts a kernel without them.

    Examples
    --------
    >>> import wpinq as wp
    >>> wp.Limits(seconds=30, memory="1GB")
    Limits(seconds=30, memory='1GB', max_record_bytes=1000, safety_factor=3.0, grace_seconds=1.0, \
require_restrictions=True)
    """

    seconds: float = 60.0
    memory: str = "2GB"
    max_record_bytes: int = 1000
    safety_factor: float = 3.0
    grace_seconds: float = 1.0
    require_restrictions: bool = True

    def __post_init__(self) -> None:
        for name, least in (("seconds", 0.0), ("safety_factor", 1.0), ("grace_seconds", 0.0)):
            number = getattr(self, name)
            if type(number) not in (int, float) or not (math.isfinite(number) and number >= least and number > 0):
                raise SessionError(f"Limits: {name} is a number above {least:g}, not {described(number)}")
        if type(self.max_record_bytes) is not int or self.max_record_bytes < 1:
            raise SessionError(f"Limits: max_record_bytes is at least 1, not {described(self.max_record_bytes)}")
        if not isinstance(self.require_restrictions, bool):
            raise SessionError("Limits: require_restrictions is True or False")
        if not isinstance(self.memory, str) or _MEMORY.fullmatch(self.memory.strip()) is None:
            raise SessionError(f'Limits: memory is a text such as "2GB" or "500MB", not {described(self.memory)}')

    @property
    def bytes(self) -> int:
        """The memory as a number of bytes."""
        found = _MEMORY.fullmatch(self.memory.strip())
        assert found is not None
        return int(float(found[1]) * 1000 ** (1 + "KMGT".index(found[2].upper())))


@dataclass(frozen=True, slots=True)
class Cost:
    """The worst-case cost of one evaluation.

    Attributes
    ----------
    seconds : float
        Of processor time.
    bytes : int
        Of memory.
    """

    seconds: float
    bytes: int


def cost_of(root: Node, keys: int, whole: bool, record: int) -> Cost | PlanWork:
    """The cost of evaluating a plan and drawing noise; its work, where some step has no bound.

    Parameters
    ----------
    root : Node
        The plan.
    keys : int
        How many noisy numbers or candidates there are, by their size.
    whole : bool
        Whether every record of the output is given up.
    record : int
        The most that one record of a source holds.
    """
    work = plan_work(root)
    holds = contents(root, record)
    if work.rows is None or any(held is None for held in holds.values()):
        return work
    bounds = row_bounds(root)
    seconds, size = START_SECONDS, START_BYTES
    for step in work.each:
        rows, steps = step.rows or 0, step.steps or 0
        # The rows that a GroupBy handles are those in all prefixes of its groups: what these hold is counted by rows.
        grouped = isinstance(step.node.operator, GroupBy)
        held = max(holds[below.digest] or 1 for below in (*(() if grouped else (step.node,)), *step.node.inputs))
        values = rows * step.node.type.values * held
        inside = max(0, steps - rows) * held
        computed = bounds[step.node.digest].records if grouped else rows
        at_once = inside * AT_ONCE // max(AT_ONCE, computed or 0)
        seconds += STEP_SECONDS + CALL_SECONDS * step.calls + ROW_SECONDS * rows
        seconds += VALUE_SECONDS * values + FUNCTION_SECONDS * inside
        size += STEP_BYTES + CALL_BYTES * step.calls + ROW_BYTES * rows
        size += VALUE_BYTES * values + FUNCTION_BYTES * at_once
    drawn = keys
    if whole:
        records = bounds[root.digest].records
        assert records is not None  # for each of its rows is handled
        values = records * (1 + root.type.values) * (holds[root.digest] or 1)
        seconds, size = seconds + FETCHED_SECONDS * values, size + FETCHED_BYTES * values
        drawn += records
    return Cost(seconds + DRAWN_SECONDS * drawn, size + DRAWN_BYTES * drawn)


def keys_by_size(keys: Collection[Value]) -> int:
    """How many keys there are, where a large one counts as the small ones that take as much."""
    if isinstance(keys, range):
        return len(keys)
    return sum(1 + content_of(key) // KEY_CONTENT for key in keys)


def contents(root: Node, record: int) -> dict[bytes, int | None]:
    """The largest text or unbounded list in a field of a step's records; else 1.

    A source's holds at most `record`, and a list of a group's records as much as all of them.
    """
    rows = row_bounds(root)
    found: dict[bytes, int | None] = {}

    def held(node: Node, inputs: list[int | None]) -> int | None:
        if isinstance(node.operator, Source):
            content: int | None = record
        elif None in inputs:
            content = None
        else:
            known = [amount for amount in inputs if amount is not None]
            text = max(1, *(below.unit_growth.text for below in node.inputs))  # multiples of the source's longest
            content = max(known) * math.ceil(Fraction(max(text, node.unit_growth.text), text))
            if isinstance(node.operator, GroupBy):
                group = node.operator.group(rows[node.inputs[0].digest])
                content = None if group is None else content * group
        found[node.digest] = content if uneven(node.type) or content is None else 1
        return found[node.digest]

    upward(root, held)
    return found


def uneven(type_: Type) -> bool:
    """Whether values of a type may hold texts, or lists that nothing bounds."""
    if isinstance(type_, ListOf):
        return type_.bound is None or uneven(type_.element)
    if isinstance(type_, Weighted):
        return uneven(type_.record)
    return type_ == STR or (isinstance(type_, TupleOf) and any(map(uneven, type_.elements)))


def admit(prepared: PreparedMeasurement, keys: Collection[Value], limits: Limits) -> Cost:
    """The worst-case cost of a measurement for some keys; PlanError beyond the limits."""
    measurement = prepared.measurement
    sink, plan = measurement.sink, measurement.plan
    if not sink.bounded_work:
        names = ", ".join(sorted({way.name for known in SINKS.values() if known.bounded_work for way in known.syntax}))
        raise PlanError(f"untrusted mode has no {sink.name}: no declaration bounds its running time; it has {names}")
    number = (
        max(1, keys_by_size(keys)) * sink.draws_per_key
    )  # one at least: a release without keys is made to be asked for some

    def seconds_of(other: Node) -> float:
        found = _cost(other, prepared, number, limits)
        return found.seconds if isinstance(found, Cost) else math.inf

    cost = _cost(plan, prepared, number, limits)
    if not isinstance(cost, Cost):
        step = cost.dominant.node.operator.name
        unbounded = ", ".join(cost.unbounded)
        missing = f"declare records_at_most of {unbounded}" if unbounded else advice(plan, seconds_of)
        raise PlanError(f"untrusted mode needs bounds on the rows of each step, and {step} has none: {missing}")
    seconds, size = granted_seconds(cost, limits), granted_bytes(cost, limits)
    if seconds + limits.grace_seconds > limits.seconds or size > limits.bytes:
        dominant = plan_work(plan).dominant
        raise PlanError(
            f"untrusted mode: this plan may take {seconds:,.4g} seconds and {size / 10**6:,.4g} MB, and the limits "
            f"allow {limits.seconds - limits.grace_seconds:,.4g} seconds and {limits.bytes / 10**6:,.4g} MB; the "
            f"largest step is {dominant.node.operator.name}, with up to {dominant.rows:,} rows: "
            f"{advice(plan, seconds_of)}"
        )
    return cost


def granted_seconds(cost: Cost, limits: Limits) -> float:
    """The time of a child: on the clock, and of processor time."""
    return cost.seconds * limits.safety_factor


def granted_bytes(cost: Cost, limits: Limits) -> int:
    """The memory of a child."""
    return int(cost.bytes * min(limits.safety_factor, 2.0))


def _cost(plan: Node, prepared: PreparedMeasurement, keys: int, limits: Limits) -> Cost | PlanWork:
    sink, listing = prepared.measurement.sink, prepared.measurement.listing
    whole = listing is not None or sink.whole_output
    if listing is not None:
        expected = int(listing.expected_by_noise(sink, sink.answer_scale(prepared.scale)))
        keys = expected * (1 + _largest(listing.domain) // KEY_CONTENT)
    return cost_of(plan, keys, whole, limits.max_record_bytes)


def _largest(domain: KeyDomain) -> int:
    """The code points and elements of the largest key of a domain."""
    if isinstance(domain, ProductKeys):
        return sum(map(_largest, domain.parts))
    return max(map(content_of, domain.keys), default=0) if isinstance(domain, GivenKeys) else 0
