"""Released marginals: consistent counts of every cell with exact intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, reduce
from itertools import product
from operator import and_
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from wpinq import functions as F
from wpinq.display.html import render
from wpinq.errors import AnswersError, PlanError
from wpinq.expr.types import FLOAT, STR, TupleOf
from wpinq.inference.checks import confidence_of
from wpinq.inference.intervals import linear_half_widths
from wpinq.marginals.cells import AttributeCells, Attributes, CodedAttribute, MeasuredView, View, codes
from wpinq.marginals.planning import MarginalPlan
from wpinq.marginals.residual_basis import ConsistentMarginals
from wpinq.marginals.synthetic_rows import FittedTable, free_name, view_of
from wpinq.measure.answer_rows import CONFIDENCE, OWN_COLUMNS, aligned, arrow_type, polars_frame
from wpinq.measure.answers import STAMP, Answers, Saved
from wpinq.measure.measurement import Measurement
from wpinq.noise.epsilon_text import format_epsilon
from wpinq.plan.node import Node
from wpinq.plan.operators import Select, SelectMany, Where
from wpinq.runtime.arrays import Floats
from wpinq.runtime.public import public
from wpinq.sinks.answer_kinds import Kind, kind_of_weights
from wpinq.sinks.laplace import NoisyCount
from wpinq.tables.aggregates import extended

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


# All measured views as one measurement, in which a record shares its weight among views.

#: The most cells that are measured together: each is a key of the release.
MEASURED_LIMIT = 10_000_000


def coded_plan(plan: Node, attributes: Sequence[CodedAttribute]) -> Node:
    """The records as numbers of cells; those that are in no cell of some attribute are left out."""
    coded = extended(plan, Select, function=codes(attributes))
    assert isinstance(coded.type, TupleOf)
    nullable = [place for place, type_ in enumerate(coded.type.elements) if type_.nullable]
    if not nullable:
        return coded

    def inside(record: Any) -> Any:
        return reduce(and_, (~F.is_null(record[place]) for place in nullable))

    return extended(coded, Where, predicate=inside)


def marginal_measurement(
    plan: Node, attributes: Sequence[CodedAttribute], measuring: MarginalPlan, epsilon: Fraction, reading: str
) -> Measurement:
    """The one measurement of views: every cell of every view, with the view's share.

    A record gives each view its share.

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
    return Measurement(measured, NoisyCount(), epsilon, measuring.keys, reading)


def measured_plan(coded: Node, measuring: MarginalPlan) -> Node:
    """The plan that gives each record, the numbers of its cells, to each measured view.

    Each element has the view's share.
    """
    views = tuple(zip(measuring.measured, measuring.shares, strict=True))

    def elements(record: Any) -> Any:
        cells = [F.record(view=number, cell=measuring.cell(record, view)) for number, (view, _) in enumerate(views)]
        return [F.weighted(cell, share) for cell, (_, share) in zip(cells, views, strict=True)]

    return extended(coded, SelectMany, function=elements)


# --- the error of a cell of a consistent marginal ---------------------------------------------------------------------


def cell_half_width(measuring: MarginalPlan, view: View, scale: float, confidence: float) -> float:
    """The half-width of the interval around each cell of a view, after least squares.

    It is exact, and all cells are alike. `scale` is that of the Laplace noise in the released weights, in units of
    counts.
    """
    return scale * _unit_half_width(measuring, view, confidence)


@lru_cache(maxsize=10_000)
def _unit_half_width(measuring: MarginalPlan, view: View, confidence: float) -> float:
    scales, repeats = measuring.algebra.kinds(view)
    return float(linear_half_widths(scales[:, None], confidence, repeats[:, None])[0])


@dataclass(frozen=True, slots=True)
class CellCount(NoisyCount):
    """A cell of a marginal, by least squares over measured views.

    It is a sum of many weights with their noise. It stands for a number that is read off a release, and is released
    nowhere.
    """

    name: ClassVar[str] = "NoisyCount"
    measuring: MarginalPlan
    view: View

    def half_width(self, scale: float, confidence: float) -> float:
        return cell_half_width(self.measuring, self.view, scale, confidence)


FORMAT, FORMAT_VERSION = "wpinq marginals", 1
SHOWN_CELLS = 20
SHOWN_MARGINALS = 20


@public
@dataclass(frozen=True, eq=False, repr=False)
class MarginalTables(Saved):
    """Released marginals: noisy public numbers.

    Least squares makes the marginals consistent: any two agree where they overlap. Estimates are unbiased, so small
    counts may be below 0. `marginals.fit()` gives a model without negative counts, and rows.

    Attributes
    ----------
    attributes : tuple of AttributeCells
        The attributes with their cells.
    measuring : MarginalPlan
        The views that were wanted, and those that were measured, each with its share of a record's weight.
    answers : Answers
        The released answers: the weight of each cell of each measured view.
    records : Answers, optional
        The noisy number of records that was released before, and by which the views were chosen.

    Notes
    -----
    Privacy cost: none. It holds nothing that was not released.
    """

    saved_as: ClassVar[str] = "marginals"
    attributes: tuple[AttributeCells, ...]
    measuring: MarginalPlan
    answers: Answers
    records: Answers | None = None

    def __post_init__(self) -> None:
        alike = Attributes.of_cells(self.attributes) == self.measuring.attributes
        if not alike or self.answers.measurement.domain != self.measuring.keys:
            raise AnswersError("these answers are not those of these marginals")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the attributes."""
        return tuple(cells.name for cells in self.attributes)

    @property
    def epsilon(self) -> Fraction:
        """The epsilon of the releases, before stability and unit weight multiply it."""
        return self.answers.epsilon + (self.records.epsilon if self.records else 0)

    @property
    def simulated(self) -> bool:
        """Whether the numbers come from `simulate`, which protects nothing."""
        return self.answers.simulated

    @cached_property
    def kind(self) -> Kind:
        """The kind of number, from the plan and the declarations alone."""
        plan = self.answers.plan
        if not isinstance(plan.operator, SelectMany):
            raise AnswersError("these answers are not those of marginals")
        return kind_of_weights(plan.inputs[0])

    @cached_property
    def measured(self) -> tuple[MeasuredView, ...]:
        """The measured views as counts, with the scale of their noise."""
        factor = float(self.kind.factor)
        weights = np.asarray(self.answers.values, dtype=np.float64) / factor
        return self.measuring.measured_views(weights, self.answers.scale / factor)

    @cached_property
    def consistent(self) -> ConsistentMarginals:
        """The marginals by least squares, by the places of their attributes."""
        return ConsistentMarginals(self.measured, self.measuring.attributes, self.measuring.wanted)

    def counts(self, *names: str) -> Floats:
        """The counts of a marginal, with an axis for each attribute in the order of the names.

        Without names, the total.

        Raises
        ------
        AnswersError
            When there is no such attribute, or no measured view holds them all.
        """
        view = self._view(names)
        found = self.consistent.marginal(view)
        return np.transpose(found, [view.index(self.names.index(name)) for name in names])

    def half_width(self, *names: str, confidence: float = CONFIDENCE) -> float:
        """The half-width of the interval around each cell of a marginal, the same for all cells.

        Parameters
        ----------
        *names : str
            The attributes of the marginal.
        confidence : float
            Between 0 and 1: how probable it is that an interval holds the noiseless number, each by itself.
        """
        scale = self.answers.scale / float(self.kind.factor)
        return cell_half_width(self.measuring, self._view(names), scale, confidence_of(confidence))

    def _view(self, names: Sequence[str]) -> View:
        view = view_of(names, self.attributes)
        if not any(set(view) <= set(measured) for measured in self.measuring.measured):
            raise AnswersError(
                f"no measured view holds {' and '.join(names)}: ask for it in workload=[...], or take it from a model, "
                "marginals.fit()"
            )
        return view

    def fit(self, model: str = "mixture", seed: int = 0) -> FittedTable:
        """A joint model of all attributes that fits the measured marginals.

        It has no count below 0, and rows to draw.

        Parameters
        ----------
        model : str
            "mixture", of products; "full table", for few cells.
        seed : int
            The public seed of the fit.

        Returns
        -------
        FittedTable
            Its intervals are approximate: the exact ones are of the least squares of this class.

        Notes
        -----
        Privacy cost: none.
        """
        from wpinq.marginals.models import fit

        joint = fit(self.measured, self.measuring.attributes, model=model, seed=seed)
        return FittedTable(self.attributes, joint, self.simulated)

    def to_columns(self, *names: str, confidence: float = CONFIDENCE) -> dict[str, list[Any]]:
        """A marginal as lists, with a row for each cell.

        The columns are the attributes, then `estimate`, `low`, `high` and `kind`.

        Without names all wanted marginals, one after another, with null for the attributes that one does not have.

        Parameters
        ----------
        *names : str
            The attributes, slowest first.
        confidence : float
            Between 0 and 1: of each interval by itself.
        """
        wanted = [names] if names else map(self.measuring.attributes.named, self.measuring.wanted)
        return self._columns(names or self.names, wanted, confidence)

    def _columns(self, shown: Sequence[str], views: Iterable[Sequence[str]], confidence: float) -> dict[str, list[Any]]:
        own = [free_name(name, shown) for name in OWN_COLUMNS]
        found: dict[str, list[Any]] = {name: [] for name in (*shown, *own)}
        for view in views:
            half = self.half_width(*view, confidence=confidence)
            estimates = self.counts(*view).ravel()
            labels = product(*(self.attributes[self.names.index(name)].labels for name in view))
            held = dict(zip(view, zip(*labels, strict=True), strict=True))
            for name in shown:
                found[name] += held.get(name, [None] * len(estimates))
            numbers = [column.tolist() for column in (estimates, estimates - half, estimates + half)]
            for name, column in zip(own, [*numbers, [self.kind.name] * len(estimates)], strict=True):
                found[name] += column
        return found

    def to_pandas(self, *names: str, confidence: float = CONFIDENCE) -> pandas.DataFrame:
        """A marginal as a pandas frame with the columns of `to_columns`, one row for each cell."""
        import pandas

        return pandas.DataFrame(self.to_columns(*names, confidence=confidence))

    def to_polars(self, *names: str, confidence: float = CONFIDENCE) -> polars.DataFrame:
        """A marginal as a polars frame with the columns of `to_columns`, one row for each cell."""
        return polars_frame(self.to_arrow(*names, confidence=confidence))

    def to_arrow(self, *names: str, confidence: float = CONFIDENCE) -> pyarrow.Table:
        """A marginal as an Arrow table with the columns of `to_columns`, one row for each cell."""
        import pyarrow

        held = self.to_columns(*names, confidence=confidence)
        types = [STR] * (len(held) - len(OWN_COLUMNS)) + [FLOAT] * 3 + [STR]
        arrays = [pyarrow.array(column, arrow_type(type_)) for column, type_ in zip(held.values(), types, strict=True)]
        return pyarrow.Table.from_arrays(arrays, names=list(held))

    def to_text(self, rows: int = SHOWN_CELLS, confidence: float = CONFIDENCE) -> str:
        """The wanted marginals as text, each cell with its interval.

        Parameters
        ----------
        rows : int
            The most cells of each marginal to show, 0 for all; how many are left out is said.
        confidence : float
            The confidence of the intervals.
        """
        lines: list[str] = []
        for view in self.measuring.wanted:
            names = self.measuring.attributes.named(view)
            *labels, estimates, lows, highs, kinds = self._columns(names, [names], confidence).values()
            shown = len(estimates) if rows == 0 else min(rows, len(estimates))
            cells = [f"{e:.6g} ({low:.6g} to {high:.6g})" for e, low, high in zip(estimates, lows, highs, strict=True)]
            columns = [[name, *column[:shown]] for name, column in zip(names, labels, strict=True)]
            columns.append([kinds[0], *cells[:shown]])
            lines += aligned(zip(*columns, strict=True))
            if shown < len(estimates):
                lines.append(f"… {len(estimates) - shown} more cells of {self.measuring.title(view)}")
        return "\n".join(f"  {line}" for line in lines)

    def to_json(self) -> dict[str, Any]:
        """The marginals as plain data, for `from_json`.

        `half_widths` are of the wanted ones, at 95 %.
        """
        return {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "simulated": self.simulated,
            "epsilon": str(self.epsilon),
            "attributes": [cells.to_json() for cells in self.attributes],
            "wanted": [list(view) for view in self.measuring.wanted],
            "half_widths": [self._half_width(view) for view in self.measuring.wanted],
            "measured": [list(view) for view in self.measuring.measured],
            "shares": list(self.measuring.shares),
            "answers": self.answers.to_json(),
            "records": self.records and self.records.to_json(),
        }

    def _half_width(self, view: View) -> float:
        return self.half_width(*(self.names[place] for place in view))

    @classmethod
    def _read(cls, data: Any) -> Self:
        if (data["format"], data["version"]) != (FORMAT, FORMAT_VERSION):
            raise AnswersError("this is not a file of marginals that this version can read")
        answers = Answers.from_json(data["answers"])
        if answers.measurement.sink != NoisyCount():
            raise AnswersError("these answers are not those of marginals")

        def views(given: Any) -> list[View]:
            return [tuple(view) for view in given]

        attributes = tuple(AttributeCells.from_json(each) for each in data["attributes"])
        shares = dict(zip(views(data["measured"]), data["shares"], strict=True))
        measuring = MarginalPlan.of(Attributes.of_cells(attributes), shares, views(data["wanted"]))
        if answers.plan != measured_plan(answers.plan.inputs[0], measuring):
            raise AnswersError("these answers are of other views or shares than these marginals")
        records = data.get("records")
        return cls(attributes, measuring, answers, records and Answers.from_json(records))

    @property
    def _head(self) -> str:
        stamp = f"{STAMP}; " if self.simulated else ""
        many = len(self.measuring.wanted)
        found = f"{many} {'marginal' if many == 1 else 'marginals'} of {len(self.names)} attributes"
        return f"MarginalTables: {stamp}{found}, epsilon {format_epsilon(self.epsilon)}, {self.kind.name}"

    def summary(self) -> list[tuple[str, int, float]]:
        """The title, the number of cells and the half-width at 95 % of each wanted marginal."""
        cells = self.measuring.attributes.cells
        return [(self.measuring.title(view), cells(view), self._half_width(view)) for view in self.measuring.wanted]

    def __repr__(self) -> str:
        shown = self.summary()[:SHOWN_MARGINALS]
        lines = [f"  {title}: {cells} cells, each ± {half:.4g}" for title, cells, half in shown]
        if (more := len(self.measuring.wanted) - SHOWN_MARGINALS) > 0:
            lines.append(f"  … {more} more")
        return "\n".join([f"<{self._head}>", *lines])

    def _repr_html_(self) -> str:
        shown = self.summary()[:SHOWN_MARGINALS]
        left_out = len(self.measuring.wanted) - len(shown)
        return render(
            "answers.html",
            title=self._head,
            note="",
            names=["marginal", "cells", "± at 95 %, each cell"],
            rows=[(title, f"{cells:,}", f"{half:.4g}") for title, cells, half in shown],
            numbers=(1, 2),
            notes=[f"… {left_out} more: to_pandas() has all"] if left_out else [],
        )
