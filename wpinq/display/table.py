"""Answers as a text table."""

from __future__ import annotations

from itertools import islice

from wpinq.expr.printing import write_value
from wpinq.measure.answer_rows import CONFIDENCE, Row
from wpinq.measure.answers import STAMP, Answers


def answers_table(name: str, answers: Answers, rows: int = 20) -> str:
    """The answers with their intervals, as text.

    Parameters
    ----------
    name : str
        The title.
    answers : Answers
        What to show.
    rows : int
        The most rows to show, 0 for all; how many are left out is said.
    """
    kind = answers.kind
    title = f"{name}: {answers.measurement.description}"
    if answers.simulated:
        title += f", {STAMP}"
    most = len(answers) if rows == 0 else rows
    cells = [(*answers.key_fields, "estimate", f"{100 * CONFIDENCE:g} % interval", "kind")]
    cells += map(_cells, islice(answers.rows(CONFIDENCE), most))
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    numbers = len(answers.key_fields), len(answers.key_fields) + 1
    lines = [title, *(_aligned(row, widths, numbers) for row in cells)]
    left_out = 0 if answers.measurement.sink.single else max(0, len(answers) - most)
    if left_out:
        lines.append(f"  … {left_out} more keys: --rows 0 prints all, --json and --save keep all")
    lines.append(f"  {kind}")
    if answers.listing is not None:
        lines.append(f"  {answers.listing.words}; the intervals hold given that")
    if answers.measurement.reading:
        lines.append(f"  Reading: {answers.measurement.reading}")
    return "\n".join(lines)


def _cells(row: Row) -> tuple[str, ...]:
    if not isinstance(row.estimate, float):
        return (*map(write_value, row.key), write_value(row.estimate), "none", row.kind)
    digits = 0 if row.estimate.is_integer() else 2  # whole numbers: drawn from integers
    ends = "none" if row.low is None else f"{row.low:.{digits}f} to {row.high:.{digits}f}"
    return (*map(write_value, row.key), f"{row.estimate:.{digits}f}", ends, row.kind)


def _aligned(cells: tuple[str, ...], widths: list[int], right: tuple[int, ...]) -> str:
    padded = (
        cell.rjust(width) if i in right else cell.ljust(width)
        for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return f"  {'  '.join(padded)}".rstrip()
