"""What a notebook shows of answers: a table with a bar for each interval, and what kind of numbers they are."""

from __future__ import annotations

import math
from itertools import islice
from xml.etree.ElementTree import Element

from wpinq.expr.printing import write_value
from wpinq.measure.answer_rows import CONFIDENCE, AnswersLike, Row, key_fields, rows
from wpinq.noise.epsilon import format_epsilon
from wpinq.runtime.markup import block, element, interval_bar, table, title

SHOWN = 50
"""The most rows; how many are left out is said."""


def answers_html(answers: AnswersLike, stamp: str) -> str:
    """Answers as HTML: fields of the keys, estimate, interval, kind."""
    found = list(islice(rows(answers, CONFIDENCE), SHOWN))
    fields, measurement = key_fields(answers), answers.measurement
    # a listed weight may have no lower end: its bar goes to the edge, and the others keep their scale
    ends = [end for row in found for end in (row.low, row.high) if end is not None and math.isfinite(end)]
    least, most = min([0.0, *ends]), max([0.0, *ends])
    drawn = [_cells(row, least, most) for row in found]
    names = [*fields, "estimate", f"{100 * CONFIDENCE:g} % interval", "", "kind"]
    note = f"epsilon {format_epsilon(measurement.epsilon)}" + (f", {stamp}" if stamp else "")
    parts = [title(measurement.sink.name, note), table(names, drawn, numbers={len(fields), len(fields) + 1})]
    left_out = 0 if measurement.sink.single else len(answers.keys) - len(found)
    if left_out:
        parts.append(element("div", f"… {left_out} more: to_pandas() has all"))
    parts.append(element("div", str(measurement.kind)))
    if measurement.reading:
        parts.append(element("div", f"Reading: {measurement.reading}"))
    return block(*parts)


def _cells(row: Row, least: float, most: float) -> list[str | Element]:
    shown = f"{row.estimate:.6g}" if isinstance(row.estimate, float) else write_value(row.estimate)
    keys: list[str | Element] = [write_value(part) for part in row.key]
    if row.low is None or row.high is None:
        return [*keys, shown, "none", "", row.kind]
    bar = interval_bar(row.low, float(row.estimate), row.high, least, most)
    return [*keys, shown, f"{row.low:.6g} to {row.high:.6g}", bar, row.kind]
