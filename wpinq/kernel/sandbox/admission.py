"""Admission to the sandbox: a plan is admitted if its worst-case cost is within the limits.

The cost in seconds and bytes is computed from the plan, the declarations, the requested keys and the limits, never from
the data, so a refusal reveals nothing. `benchmarks/confinement.py` measures the rates on the worst data of each
operator and each function of lists; `docs/service.md` has the measurements.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from wpinq.errors import PlanError, SessionError, described
from wpinq.expr.types import uneven_columns
from wpinq.expr.values import Value
from wpinq.expr.work import content_of, work
from wpinq.kernel.prepare import PreparedMeasurement
from wpinq.plan.domain import RowBounds
from wpinq.plan.node import Node, upward
from wpinq.plan.operators import Concat, Except, GroupBy, Intersect, Partition, Select, SelectMany, Union, Where
from wpinq.plan.work import PlanWork, StepWork, advice, functions_of, plan_work, row_bounds
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
AT_ONCE, FUNCTION_SECONDS, FUNCTION_BYTES = 4096, 0.08e-6, 40

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
    taken, bounds = plan_work(root), row_bounds(root)
    if taken.rows is None:
        return taken
    holds = contents(root, record)
    seconds, size = START_SECONDS, START_BYTES
    for step in taken.each:
        rows, values, inside, at_once = _handled(step, bounds, holds)
        seconds += STEP_SECONDS + CALL_SECONDS * step.calls + ROW_SECONDS * rows
        seconds += VALUE_SECONDS * values + FUNCTION_SECONDS * inside
        size += STEP_BYTES + CALL_BYTES * step.calls + ROW_BYTES * rows
        size += VALUE_BYTES * values + FUNCTION_BYTES * at_once
    drawn = keys
    if whole:
        records = bounds[root.digest].records or 0
        values = records * (1 + root.type.values) + uneven_columns(root.type) * holds[root.digest].total
        seconds, size = seconds + FETCHED_SECONDS * values, size + FETCHED_BYTES * values
        drawn += records
    return Cost(seconds + DRAWN_SECONDS * drawn, size + DRAWN_BYTES * drawn)


def _handled(step: StepWork, bounds: Mapping[bytes, RowBounds], holds: Mapping[bytes, Content]) -> tuple[int, ...]:
    """The rows of a step; the values in them, in its functions, and in one batch of these."""
    node, rows, grouped = step.node, step.rows or 0, isinstance(step.node.operator, GroupBy)
    known = [(below, holds[below.digest]) for below in (*(() if grouped else (node,)), *node.inputs)]
    largest = max(content.largest for _, content in known)
    columns = max(uneven_columns(one.type) * content.total for one, content in known)
    if grouped:  # its rows are those in all prefixes of its groups: what these hold is counted by rows
        columns = uneven_columns(node.type) * rows * largest
    inside = at_once = 0
    for function in functions_of(node, bounds):
        taken, often = work(function.function, (1,) * len(function.of)), function.often or 0
        # a record holds at most the largest content, and all of them together at most the total
        growing, whole = taken.steps - taken.fixed_steps, often * largest
        if function.once:
            whole = min(whole, holds[node.inputs[function.of[0]].digest].total)
        inside += often * taken.fixed_steps + whole * growing
        batch = often * AT_ONCE // max(AT_ONCE, (bounds[node.digest].records or 0) if grouped else often)
        at_once += batch * taken.fixed_steps + min(whole, batch * largest) * growing
    return rows, rows * node.type.values + columns, inside, at_once


def keys_by_size(keys: Collection[Value]) -> int:
    """How many keys there are, where a large one counts as the small ones that take as much."""
    if isinstance(keys, range):
        return len(keys)
    return sum(1 + content_of(key) // KEY_CONTENT for key in keys)


@dataclass(frozen=True, slots=True)
class Content:
    """The code points and the elements of unbounded lists, in the largest column of records.

    Attributes
    ----------
    largest : int
        Those of one record.
    total : int
        Those of all rows that a step handles.
    """

    largest: int
    total: int


def contents(root: Node, record: int) -> dict[bytes, Content]:
    """The content of each step's records, by digest, of a plan whose rows are bounded.

    A column of a source holds at most `record` in one record. A function gives at most a + b times the content of its
    argument, so the total over the rows of a Select or SelectMany is linear in the total below it: a list that is
    given up element by element holds no more than before.
    """
    rows = row_bounds(root)

    def held(node: Node, inputs: list[Content]) -> Content:
        operator, handled = node.operator, rows[node.digest].handled or 0
        if not uneven_columns(node.type):
            return Content(0, 0)
        largest = max((content.largest for content in inputs), default=record)
        below = sum(content.total for content in inputs)
        grown = [work(function.function, (1,) * len(function.of)).content for function in functions_of(node, rows)]
        if isinstance(operator, GroupBy):  # its lists hold the rows that it handles, each with one element at least
            largest, below = max(1, largest), max(1, largest) * handled
            largest *= operator.group(rows[node.inputs[0].digest]) or handled
            grown.append((0, 1))  # without a function, the list itself
        made = max((fixed + growing * largest for fixed, growing in grown), default=0)
        total = handled * max(largest, made)
        if isinstance(operator, Where | Concat | Union | Intersect | Except | Partition):
            total = min(total, below)
        elif isinstance(operator, GroupBy | Select | SelectMany):
            fixed, growing = (max(parts) for parts in zip(*grown, strict=True))
            calls = handled if isinstance(operator, GroupBy) else rows[node.inputs[0].digest].records or 0
            total = min(total, calls * fixed + growing * below)
        return Content(max(largest, made), total)

    return upward(root, held)


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
