"""All measured views as one measurement, in which a record shares its weight among views."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any, ClassVar

from wpinq.errors import PlanError
from wpinq.expr import build, catalogue
from wpinq.expr.nodes import Expr
from wpinq.expr.trace import Symbol, lift
from wpinq.expr.types import TupleOf
from wpinq.expr.values import Value
from wpinq.inference.laplace_sums import linear_half_widths
from wpinq.marginals.attributes import View
from wpinq.marginals.cells import CodedAttribute, codes
from wpinq.marginals.plan import MarginalPlan
from wpinq.measure.measurement import Measurement
from wpinq.plan.node import Node
from wpinq.plan.operators import Select, SelectMany, Where
from wpinq.sinks.laplace import NoisyCount
from wpinq.tables.aggregates import extended

MEASURED_LIMIT = 10_000_000
"""The most cells that are measured together: each is a key of the release."""


def coded_plan(plan: Node, attributes: Sequence[CodedAttribute]) -> Node:
    """The records as numbers of cells; those that are in no cell of some attribute are left out."""
    coded = extended(plan, Select, function=codes(attributes))
    assert isinstance(coded.type, TupleOf)
    nullable = [place for place, type_ in enumerate(coded.type.elements) if type_.nullable]
    if not nullable:
        return coded

    def inside(record: Symbol) -> Expr:
        tests = [catalogue.apply("not", catalogue.apply("is_null", lift(record[place]))) for place in nullable]
        found = tests[0]
        for test in tests[1:]:
            found = catalogue.apply("and", found, test)
        return found

    return extended(coded, Where, predicate=inside)


def marginal_measurement(
    plan: Node, attributes: Sequence[CodedAttribute], measuring: MarginalPlan, epsilon: Fraction, reading: str
) -> Measurement:
    """The one measurement of views: every cell of every view, a record giving each view its share.

    Notes
    -----
    Stability: 1. The Select moves each record to one other, and the SelectMany gives it weights that add up to 1, for
    each view the share of it in one cell.
    """
    if measuring.cells > MEASURED_LIMIT:
        raise PlanError(
            f"the measured views have {measuring.cells:,} cells, and a release at most {MEASURED_LIMIT:,}: take fewer "
            "attributes, coarser cells, or a lower order"
        )
    measured = measured_plan(coded_plan(plan, attributes), measuring)
    return Measurement(measured, NoisyCount(), epsilon, measured_keys(measuring), reading)


def measured_plan(coded: Node, measuring: MarginalPlan) -> Node:
    """Each record, which is the numbers of its cells, as one element for each measured view, with the view's share."""
    views = tuple(zip(measuring.measured, measuring.shares, strict=True))

    def elements(record: Symbol) -> Any:
        return [_weighted(number, measuring.cell(record, view), share) for number, (view, share) in enumerate(views)]

    return extended(coded, SelectMany, function=elements)


def measured_keys(measuring: MarginalPlan) -> tuple[Value, ...]:
    """The records that are released: each measured view's number with each of its cells."""
    counts = enumerate(map(measuring.attributes.cells, measuring.measured))
    return tuple(key for number, count in counts for key in product((number,), range(count)))


def _weighted(number: int, cell: object, share: float) -> Symbol:
    key = build.record(("view", "cell"), (build.constant(number), lift(cell)))
    return Symbol(catalogue.apply("weighted", key, build.constant(share)))


# --- the error of a cell of a consistent marginal ---------------------------------------------------------------------


def cell_half_width(measuring: MarginalPlan, view: View, scale: float, confidence: float) -> float:
    """The half-width of the interval around each cell of a view, after least squares: exact, all cells alike.

    `scale` is that of the Laplace noise in the released weights, in units of counts.
    """
    return scale * _unit_half_width(measuring, view, confidence)


def cell_deviation(measuring: MarginalPlan, view: View, scale: float) -> float:
    """The standard deviation of each cell of a view, after least squares."""
    return scale * math.sqrt(measuring.algebra.variance(view))


@lru_cache(maxsize=10_000)
def _unit_half_width(measuring: MarginalPlan, view: View, confidence: float) -> float:
    scales, repeats = measuring.algebra.kinds(view)
    return float(linear_half_widths(scales[:, None], confidence, repeats[:, None])[0])


@dataclass(frozen=True, slots=True)
class CellCount(NoisyCount):
    """A cell of a marginal, by least squares over measured views: a sum of many weights with their noise.

    It stands for a number that is read off a release, and is released nowhere.
    """

    name: ClassVar[str] = "NoisyCount"
    measuring: MarginalPlan
    view: View

    def half_width(self, scale: float, confidence: float) -> float:
        return cell_half_width(self.measuring, self.view, scale, confidence)
