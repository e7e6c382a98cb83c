"""The report of synthetic rows, as plain data: what was paid, how exact each marginal is, how far rows are off."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from io import BytesIO
from typing import Any

import numpy as np

from wpinq.display.html import render
from wpinq.marginals.attributes import View
from wpinq.marginals.measurement import cell_deviation
from wpinq.marginals.plots import plot_marginals
from wpinq.marginals.released import MarginalTables, title_of
from wpinq.marginals.synthetic_rows import FittedTable, SyntheticRows
from wpinq.measure.answers import STAMP
from wpinq.measure.bill import Bill

FORMAT, FORMAT_VERSION = "wpinq synthetic rows", 1
_DOTS = 80
"""Of an inch of the plots."""

MAY = (
    "to look at, to try programs on, and to teach with",
    "for counts of up to as many attributes as a released marginal has: then the marginal itself is better, for it has "
    "an interval",
    "to pass on: what was spent is the bill, and no use of the rows adds to it",
)
"""What synthetic rows may be used for."""

MAY_NOT = (
    "to find out about anybody: no row is a person's",
    "for intervals, tests or standard errors as of a sample: the noise is in the rows already, and they do not say how "
    "much",
    "for counts that no released marginal holds, such as rare combinations of more attributes: the model fills them in",
    "for what an attribute is inside of a bin: values there are drawn evenly",
    "to count the cells whose count is smaller than the error bar of their marginal",
)
"""What they may not be used for."""


def marginal_report(marginals: MarginalTables, fitted: FittedTable, rows: SyntheticRows) -> dict[str, Any]:
    """All that is known of synthetic rows, ready for `json.dump`.

    Every figure is of released numbers, of the model or of the rows; nothing of the secret table is known here.

    Parameters
    ----------
    marginals : MarginalTables
        What was released.
    fitted : FittedTable
        The model of it.
    rows : SyntheticRows
        What was drawn from the model.

    Returns
    -------
    dict
        `bill`, source to epsilon, and `bill_text`; `simulated`; `kind`; `total`, with its interval of 95 %;
        `attributes`, each with its cells; `measured`, each view with its share and the half-width of a cell as it was
        released; `marginals`, each wanted one with the number of its cells, the half-width of a cell after least
        squares, and how far model and rows are from the released counts, as root mean squares in counts, beside what
        noise alone would make of it; `model`; `rows`; and what they `may` and `may_not` be used for.

    Notes
    -----
    Privacy cost: none.
    """
    measuring = marginals.measuring
    bill = Bill([marginals.answers.measurement])
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
        "marginal": title_of(marginals.measuring, view),
        "attributes": list(names),
        "cells": counts.size,
        "half_width": marginals.half_width(*names),
        "noise": cell_deviation(marginals.measuring, view, scale),
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
            (
                " x ".join(each["view"]) or "total",
                f"{each['cells']:,}",
                f"{each['share']:.3f}",
                f"{each['half_width']:.4g}",
            )
            for each in report["measured"]
        ],
    )
