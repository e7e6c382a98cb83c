"""The report of synthetic rows as plain data: cost, accuracy, and the distance of rows."""

from __future__ import annotations

import base64
import contextlib
import math
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from wpinq.display.html import render
from wpinq.display.plots import axes_or_new, plain_text, shown
from wpinq.errors import AnswersError
from wpinq.marginals.cells import AttributeCells, View
from wpinq.marginals.released import MarginalTables
from wpinq.marginals.synthetic_rows import FittedTable, SyntheticRows
from wpinq.measure.answers import STAMP
from wpinq.measure.bill import Bill
from wpinq.noise.epsilon_text import format_epsilon

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# Released marginals as a page of plots: a bar chart for each attribute, a heat map for each pair.

_INCHES = 2.6
_MOST_LABELS = 12
_LONGEST_LABEL = 14
_SHORT_LABEL = 2
_COLOURS = "Blues"


def plot_marginals(
    marginals: MarginalTables, fitted: FittedTable | None = None, attributes: Sequence[str] | None = None
) -> Figure:
    """A grid of heat maps: the marginal of attributes i and j in row i and column j.

    On the diagonal is each attribute by itself.

    Below the diagonal are the released marginals, and above it those of a model, where one is given. The colour of a
    cell is its count: white is 0 and below, and the darkest is the largest count of that marginal on either side. Bars
    have the intervals of the released counts, and dots are the model's.

    Parameters
    ----------
    marginals : MarginalTables
        The released answers.
    fitted : FittedTable, optional
        A model of it, `marginals.fit()`.
    attributes : sequence of str, optional
        The attributes to draw, in this order; by default all.

    Returns
    -------
    matplotlib Figure
        `figure.savefig("page.png")` writes it. A pair that no measured view holds is left blank below the diagonal.

    Raises
    ------
    AnswersError
        When these are no released marginals, there is no such attribute, or matplotlib is missing.

    Notes
    -----
    Privacy cost: none. It shows what was released; simulated numbers are stamped, for they protect nothing.

    Examples
    --------
    >>> import wpinq as wp
    >>> people = wp.source("people", sex=wp.category("f", "m"), age=int)
    >>> asked = people.marginals(["sex", wp.attribute("age", bins=[0, 18, 65])], epsilon=1)
    >>> figure = wp.plot_marginals(wp.simulate(asked, {"people": [("f", age % 60) for age in range(900)]}, seed=1))
    >>> [axes.get_title() for axes in figure.axes if axes.get_title()][1].startswith("age x sex")
    True
    """
    if not (isinstance(marginals, MarginalTables) and isinstance(fitted, FittedTable | None)):
        raise AnswersError("plot_marginals draws released marginals, and as fitted the model of marginals.fit()")
    names = marginals.names if attributes is None else tuple(attributes)
    for name in names:
        marginals.counts(name)  # AnswersError where there is none
    if not names:
        raise AnswersError("there are no attributes to draw")
    axes_or_new(None)  # AnswersError without matplotlib
    from matplotlib.figure import Figure

    many = len(names)
    figure: Figure = shown(Figure, _DOTS)(figsize=(_INCHES * many + 1, _INCHES * many + 1), layout="constrained")
    grid: Any = figure.subplots(many, many, squeeze=False)
    cells = {each.name: each for each in marginals.attributes}
    for i, row in enumerate(names):
        for j, column in enumerate(names):
            axes = grid[i][j]
            if i == j:
                _bars(axes, marginals, fitted, cells[row])
            elif j < i or fitted is not None:
                _pair(axes, marginals, None if j < i else fitted, fitted, cells[row], cells[column])
            else:
                axes.set_axis_off()
            # all of a row and of a column share their labels, which stand at the edge of the grid
            axes.tick_params(labelbottom=i == many - 1 or (i == j and fitted is None))
            if i != j:
                axes.tick_params(labelleft=j == int(i == 0))
    words = f"Marginals, epsilon {format_epsilon(marginals.epsilon)}: {marginals.kind.name}"
    if fitted is not None:
        words += "; below the diagonal as released, above it the model"
    figure.suptitle(words)
    if marginals.simulated:
        figure.text(0.5, 0.5, STAMP, color="tab:red", alpha=0.28, fontsize=22, rotation=15, ha="center", va="center")
    return figure


def _bars(axes: Axes, marginals: MarginalTables, fitted: FittedTable | None, cells: AttributeCells) -> None:
    counts, half = marginals.counts(cells.name), marginals.half_width(cells.name)
    places = np.arange(cells.size)
    axes.bar(places, counts, color="0.85", width=0.9)
    axes.errorbar(places, counts, yerr=half, fmt="none", ecolor="tab:blue", linewidth=1)
    if fitted is not None:
        axes.plot(places, fitted.counts(cells.name), ".", color="tab:orange", markersize=4)
    axes.axhline(0.0, color="0.6", linewidth=0.8)
    axes.set_title(f"{plain_text(_short(cells.name))}, ± {half:.3g}", fontsize=8)
    _ticks(axes, "x", cells)
    axes.tick_params(axis="y", labelsize=6)


def _pair(
    axes: Axes,
    marginals: MarginalTables,
    shown: FittedTable | None,
    fitted: FittedTable | None,
    row: AttributeCells,
    column: AttributeCells,
) -> None:
    """The heat map of a pair: as released, or as a model has it."""
    pair = f"{_short(row.name)} x {_short(column.name)}"
    if shown is not None:
        counts, note = shown.counts(row.name, column.name), "model"
    else:
        try:
            counts, half = marginals.counts(row.name, column.name), marginals.half_width(row.name, column.name)
        except AnswersError:  # not held by a measured view
            axes.set_axis_off()
            return
        note = f"± {half:.3g}"
    top = _top(marginals, fitted, row.name, column.name)
    axes.imshow(counts, cmap=_COLOURS, vmin=0.0, vmax=top, aspect="auto", interpolation="nearest")
    _ticks(axes, "x", column)
    _ticks(axes, "y", row)
    axes.set_title(f"{plain_text(pair)}, {note}", fontsize=8)


def _top(marginals: MarginalTables, fitted: FittedTable | None, row: str, column: str) -> float:
    """The count of the darkest cells: one for both sides of the diagonal, so that they compare."""
    tops = [1.0] if fitted is None else [1.0, float(fitted.counts(row, column).max())]
    with contextlib.suppress(AnswersError):  # of a pair that no measured view holds
        tops.append(float(marginals.counts(row, column).max()))
    return max(tops)


def _ticks(axes: Axes, which: str, cells: AttributeCells) -> None:
    """The labels of the cells, of as many as can be read."""
    step = -(-cells.size // _MOST_LABELS)
    places = list(range(0, cells.size, step))
    labels = [plain_text(_short(cells.labels[place])) for place in places]
    turned = 90 if which == "x" and max(map(len, labels)) > _SHORT_LABEL else 0
    (axes.xaxis if which == "x" else axes.yaxis).set_ticks(places, labels, rotation=turned, fontsize=6)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_LABEL else text[: _LONGEST_LABEL - 1] + "…"


FORMAT, FORMAT_VERSION = "wpinq synthetic rows", 1
#: Of an inch of the plots.
_DOTS = 80
#: The figures of a measured view, with the form of each.
_MEASURED = (("cells", ","), ("share", ".3f"), ("half_width", ".4g"))

#: What synthetic rows may be used for.
MAY = (
    "exploration, tests of programs, and teaching",
    "counts over as many attributes as a released marginal has; the marginal itself is better, for its interval",
    "publication: the bill is the whole cost, and no use of the rows adds to it",
)

#: What they may not be used for.
MAY_NOT = (
    "conclusions about individuals: no row is the record of a person",
    "intervals, tests or standard errors as for a sample: the rows contain noise of a size that they do not show",
    "counts outside all released marginals, such as rare combinations of attributes: the model alone decides them",
    "values within a bin: they are drawn uniformly",
    "cells with counts smaller than the error bar of their marginal",
)


def marginal_report(marginals: MarginalTables, fitted: FittedTable, rows: SyntheticRows) -> dict[str, Any]:
    """The report on synthetic rows, ready for `json.dump`.

    Every figure is of released numbers, of the model or of the rows; nothing of the secret table is known here.

    Parameters
    ----------
    marginals : MarginalTables
        The released answers.
    fitted : FittedTable
        The model of it.
    rows : SyntheticRows
        The rows drawn from the model.

    Returns
    -------
    dict
        `bill`, source to epsilon, and `bill_text`; `simulated`; `kind`; `total`, with its interval of 95 %;
        `attributes`, each with its cells; `notes` on cells of all other values; `measured`, each view with its share
        and the half-width of a cell as it was released; `marginals`, each wanted one with the number of its cells, the
        half-width of a cell after least squares, and how far model and rows are from the released counts, as root mean
        squares in counts, beside what noise alone would make of it; `model`; `rows`; and what they
        `may` and `may_not` be used for.

    Notes
    -----
    Privacy cost: none.
    """
    measuring = marginals.measuring
    bill = Bill([each.measurement for each in (marginals.records, marginals.answers) if each is not None])
    half = marginals.half_width()
    total = marginals.counts().item()
    return {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "bill": {source: str(cost) for source, cost in bill.items()},
        "bill_text": str(bill).splitlines(),
        "simulated": marginals.simulated,
        "kind": str(marginals.kind),
        "total": {"estimate": total, "low": total - half, "high": total + half},
        "attributes": [cells.to_json() for cells in marginals.attributes],
        "notes": [cells.note for cells in marginals.attributes if cells.note],
        "measured": [
            {
                "view": list(measuring.attributes.named(measured.view)),
                "share": share,
                "cells": measured.counts.size,
                "scale": measured.scale,
                "half_width": marginals.answers.measurement.sink.half_width(measured.scale, 0.95),
            }
            for measured, share in zip(marginals.measured, measuring.shares, strict=True)
        ],
        "marginals": [_compared(marginals, fitted, rows, view) for view in measuring.wanted],
        "model": {"name": type(fitted.joint).__name__, "loss": fitted.joint.loss, "steps": fitted.joint.steps},
        "rows": {"count": len(rows), "weight": None if rows.weights is None else float(rows.weights.sum())},
        "may": list(MAY),
        "may_not": list(MAY_NOT),
    }


def _compared(marginals: MarginalTables, fitted: FittedTable, rows: SyntheticRows, view: View) -> dict[str, Any]:
    names = marginals.measuring.attributes.named(view)
    counts = marginals.counts(*names)
    scale = marginals.answers.scale / float(marginals.kind.factor)
    return {
        "marginal": marginals.measuring.title(view),
        "attributes": list(names),
        "cells": counts.size,
        "half_width": marginals.half_width(*names),
        "noise": scale * math.sqrt(marginals.measuring.algebra.variance(view)),
        "model_distance": _distance(fitted.counts(*names), counts),
        "rows_distance": _distance(rows.counts(*names), counts),
    }


def _distance(found: Any, counts: Any) -> float:
    return float(np.sqrt(np.mean((found - counts) ** 2)))


def rows_page(marginals: MarginalTables, fitted: FittedTable, rows: SyntheticRows, report: Mapping[str, Any]) -> str:
    """The report as an HTML page with its plots inside.

    Parameters
    ----------
    marginals, fitted, rows
        The released marginals, the model, and the rows that were drawn.
    report : mapping
        As `marginal_report` gives it.

    Returns
    -------
    str
        A document that refers to no other file.

    Raises
    ------
    AnswersError
        When matplotlib is missing.
    """
    drawn = BytesIO()
    plot_marginals(marginals, fitted).savefig(drawn, format="png", dpi=_DOTS)
    total = report["total"]
    figures = ("half_width", "noise", "model_distance", "rows_distance")
    return render(
        "synthetic_rows.html",
        stamp=STAMP if marginals.simulated else "",
        size=f"{len(rows):,}",
        attributes=len(marginals.attributes),
        total=f"{total['estimate']:,.0f} records ({total['low']:,.0f} to {total['high']:,.0f} at 95 %).",
        picture=base64.b64encode(drawn.getvalue()).decode("ascii"),
        report=report,
        exactness=[
            [each["marginal"], f"{each['cells']:,}", *(f"{each[figure]:.4g}" for figure in figures)]
            for each in report["marginals"]
        ],
        measured=[
            [" x ".join(each["view"]) or "total", *(f"{each[name]:{form}}" for name, form in _MEASURED)]
            for each in report["measured"]
        ],
    )
