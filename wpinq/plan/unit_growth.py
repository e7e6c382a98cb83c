"""What one protected unit can grow into along a plan, and the refusal of plans that let it grow without measure.

One record that becomes 10¹² records exhausts time and memory when it is there, and not when it is absent: an answer
that no noise protects. So each step bounds, from the plan alone, the records that come of one record weighing one
unit, the values that these hold, and the work that its functions do on them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from wpinq.errors import ExpressionError, PlanError
from wpinq.expr.nodes import Lambda
from wpinq.expr.types import VALUES_LIMIT, Type
from wpinq.expr.work import CallWork, work
from wpinq.plan.operator import Operator, Parameter
from wpinq.plan.operators.source import Source

FANOUT_LIMIT = 4_000_000
"""The most records that one protected unit may become at a step."""

WORK_LIMIT = 100_000_000
"""The most values and code points that a step's function may handle for one protected unit."""

_GRAIN = 2**64
"""Masses are rounded up to multiples of 1 / _GRAIN, so that they stay short however deep the plan."""


@dataclass(frozen=True, slots=True)
class UnitGrowth:
    """Bounds on what one protected unit, as one record of the source or as one person's rows, is at a step.

    Attributes
    ----------
    records : int
        How many records. Pairs that a Join makes with records of other units are not counted: they are as many as
        the data has.
    norm_bound : Fraction
        Their norm.
    text : int
        The longest string that they hold, in multiples of the longest of the source.
    """

    records: int
    norm_bound: Fraction
    text: int


def unit_growth(operator: Operator, inputs: tuple[UnitGrowth, ...], type_: Type, *, shared: bool) -> UnitGrowth:
    """The growth of one unit up to a step, from that of its inputs; PlanError where it is too large.

    `shared` says that the inputs are one and the same dataset, so that their records are too.
    """
    if isinstance(operator, Source):
        person = operator.person
        return UnitGrowth(1 if person is None else person.weight, operator.unit_weight, 1)
    norm_bound = Fraction(math.ceil(operator.norm_bound(*(below.norm_bound for below in inputs)) * _GRAIN), _GRAIN)
    counts = tuple(below.records for below in inputs)
    union = type(operator).unit_records is Operator.unit_records
    records = max(counts) if shared and union else operator.unit_records(counts, norm_bound)
    _check(operator, records, FANOUT_LIMIT, "become {} records")
    _check(operator, records * type_.values, VALUES_LIMIT, "become records of {} values in all")
    text = max(below.text for below in inputs)
    for parameter in operator.parameters:
        if parameter.kind not in ("function", "widths"):
            continue
        function = getattr(operator, parameter.name)
        if isinstance(function, Lambda):
            done = _work(operator, parameter, function, tuple(inputs[i].text for i in parameter.of))
            count = math.prod(inputs[i].records for i in parameter.of)
            _check(operator, count * done.steps, WORK_LIMIT, "take {} steps")
            text = max(text, done.text)
    return UnitGrowth(records, norm_bound, text)


def _work(operator: Operator, parameter: Parameter, function: Lambda, texts: tuple[int, ...]) -> CallWork:
    try:
        return work(operator.bounded_function(function), texts)
    except ExpressionError as error:
        raise PlanError(f"{operator.name}, {parameter.name}: {error}") from None


def _check(operator: Operator, count: int, limit: int, what: str) -> None:
    if count > limit:
        shown = f"{count:,}" if count < 10**18 else f"2^{count.bit_length() - 1}"
        raise PlanError(
            f"{operator.name}: what one protected unit adds may {what.format(shown)} here; at most {limit:,} keep its "
            "presence from showing in time and memory: lower the limits, or at_most of a person, or shave wider"
        )
