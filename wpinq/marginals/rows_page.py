"""A page on synthetic rows, in HTML and by itself: what was paid, every error bar, heat maps, what rows may do."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from io import BytesIO
from typing import Any
from xml.etree.ElementTree import Element

from wpinq.marginals.plots import plot_marginals
from wpinq.marginals.released import MarginalTables
from wpinq.marginals.synthetic_rows import FittedTable, SyntheticRows
from wpinq.measure.answers import STAMP
from wpinq.runtime.markup import element, html, table, title

_DOTS = 80
_CAPTION = (
    "Below the diagonal are the marginals as released, above it the model that the rows are drawn from; on the "
    "diagonal each attribute by itself, with its intervals, and the model as dots. White is a count of 0 or below, and "
    "the darkest cell is the largest count of its pair."
)
_STYLE = "font-family:sans-serif;max-width:1100px;margin:2em auto;padding:0 1em;line-height:1.45;font-size:14px"


def rows_page(marginals: MarginalTables, fitted: FittedTable, rows: SyntheticRows, report: Mapping[str, Any]) -> str:
    """The page of a report, with its plots inside.

    Parameters
    ----------
    marginals, fitted, rows
        What was released, the model, and what was drawn.
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
    picture = base64.b64encode(drawn.getvalue()).decode("ascii")
    total = report["total"]
    body: list[str | Element] = [element("h1", "Synthetic rows")]
    if marginals.simulated:
        body.append(element("p", element("b", STAMP)))
    body.append(element("p", f"{len(rows):,} rows of {len(marginals.attributes)} attributes, which stand for nobody."))
    count = f"{total['estimate']:,.0f} records ({total['low']:,.0f} to {total['high']:,.0f} at 95 %)."
    body += [element("p", f"Of the table is known: {count} The numbers are: {report['kind']}.")]
    body += [title("The bill"), *(_line(line) for line in report["bill_text"])]
    body.append(element("h2", "The marginals, and the model"))
    body.append(element("p", _CAPTION))
    body.append(element("img", src=f"data:image/png;base64,{picture}", style="max-width:100%", alt="heat maps"))
    body += [element("h2", "How exact each marginal is"), _exactness(report)]
    body += [element("h2", "What was measured"), _measured(report)]
    body += [element("h2", "What the rows may be used for"), _list(report["may"])]
    body += [element("h2", "What they may not be used for"), _list(report["may_not"])]
    head = element("head", element("meta", charset="utf-8"), element("title", "Synthetic rows"))
    return "<!DOCTYPE html>\n" + html(element("html", head, element("body", *body, style=_STYLE), lang="en")) + "\n"


def _exactness(report: Mapping[str, Any]) -> Element:
    names = ["marginal", "cells", "± at 95 %, each cell", "noise", "model off by", "rows off by"]
    rows: list[list[str | Element]] = [
        [
            each["marginal"],
            f"{each['cells']:,}",
            f"{each['half_width']:.4g}",
            f"{each['noise']:.4g}",
            f"{each['model_distance']:.4g}",
            f"{each['rows_distance']:.4g}",
        ]
        for each in report["marginals"]
    ]
    note = "noise, and how far model and rows are from the released counts, are root mean squares over the cells"
    return element("div", table(names, rows, {1, 2, 3, 4, 5}), element("p", note))


def _measured(report: Mapping[str, Any]) -> Element:
    rows: list[list[str | Element]] = [
        [" x ".join(each["view"]) or "total", f"{each['cells']:,}", f"{each['share']:.3f}", f"{each['half_width']:.4g}"]
        for each in report["measured"]
    ]
    return table(["view", "cells", "share of a record's weight", "± at 95 %, as released"], rows, {1, 2, 3})


def _line(text: str) -> Element:
    return element("div", text.strip(), style=f"margin-left:{len(text) - len(text.lstrip())}em")


def _list(items: list[str]) -> Element:
    return element("ul", *(element("li", item) for item in items))
