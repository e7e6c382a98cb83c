"""What a notebook shows of a released table: a row a group, and a bar for each interval."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree.ElementTree import Element

from wpinq.expr.printing import write_value
from wpinq.runtime.markup import block, element, interval_bar, table, title

SHOWN = 50
"""The most groups; how many are left out is said."""


def table_html(
    head: str,
    groups: Sequence[str],
    aggregates: Mapping[str, str],
    columns: Mapping[str, Sequence[Any]],
    notes: Sequence[str] = (),
) -> str:
    """A table as HTML.

    Parameters
    ----------
    head : str
        What stands above it.
    groups : sequence of str
        The columns of the groups.
    aggregates : mapping
        Name to kind.
    columns : mapping
        As `Table.to_columns` gives them.
    notes : sequence of str
        What stands below it.
    """
    count = len(next(iter(columns.values())))
    shown = range(min(SHOWN, count))
    names = [*groups, *(text for name, kind in aggregates.items() for text in (name, f"{kind}, 95 % interval"))]
    scales = {name: _scale(columns[f"{name}_low"], columns[f"{name}_high"]) for name in aggregates}
    rows: list[list[str | Element]] = []
    for i in shown:
        row: list[str | Element] = [write_value(columns[name][i]) for name in groups]
        for name in aggregates:
            row += _cells(columns[name][i], columns[f"{name}_low"][i], columns[f"{name}_high"][i], scales[name])
        rows.append(row)
    parts = [title(head), table(names, rows, {len(groups) + 2 * i for i in range(len(aggregates))})]
    if count > SHOWN:
        parts.append(element("div", f"… {count - SHOWN} more groups: to_pandas() has all"))
    return block(*parts, *(element("div", note) for note in notes))


def _scale(low: Sequence[float | None], high: Sequence[float | None]) -> tuple[float, float]:
    ends = [end for end in (*low, *high) if end is not None and math.isfinite(end)]
    return min([0.0, *ends]), max([0.0, *ends])


def _cells(estimate: Any, low: float | None, high: float | None, scale: tuple[float, float]) -> list[str | Element]:
    if low is None or high is None:
        return [write_value(estimate), ""]
    bar = interval_bar(low, float(estimate), high, *scale)
    bar.insert(0, element("title", f"{low:.6g} to {high:.6g}"))
    return [f"{estimate:.6g}", element("span", bar, f" {low:.6g} to {high:.6g}")]
