"""Answers, tables and synthetic rows in a file of rows, csv or parquet."""

from __future__ import annotations

import csv
import importlib.util
import io
from collections.abc import Collection, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from wpinq.cli.arguments import check_writable
from wpinq.errors import UsageError, install
from wpinq.expr.nodes import write_value
from wpinq.marginals.released import MarginalTables
from wpinq.marginals.synthetic_rows import SyntheticRows
from wpinq.mcmc.settings import CheckpointError, write_atomically
from wpinq.measure.answer_rows import CONFIDENCE, Row, aligned
from wpinq.measure.answers import STAMP, Answers
from wpinq.tables.released import Table


def output_files(given: Sequence[str], releases: Collection[str]) -> dict[str, Path]:
    """Release to file, from `FILE` or `NAME=FILE`; a refusal comes before any debit."""
    found: dict[str, Path] = {}
    for item in given:
        name, equals, file = item.partition("=")
        if not equals or name not in releases:
            if len(releases) > 1:
                raise UsageError(
                    f"--output {item}: the program has several releases, so name one: --output {next(iter(releases))}"
                    f"=FILE.csv; it has {', '.join(releases)}"
                )
            (name,), file = releases, item
        if name in found:
            raise UsageError(f"--output {name} is given twice")
        found[name] = checked_output(Path(file), "--output")
    return found


def checked_output(path: Path, option: str) -> Path:
    """A file of rows that can be written; refused otherwise, before anything is spent."""
    if path.suffix not in (".csv", ".parquet"):
        raise UsageError(f"{option} {path}: the ending gives the format: name a .csv or .parquet file")
    check_writable(path)
    if path.suffix == ".parquet" and importlib.util.find_spec("pyarrow") is None:
        raise UsageError(f"{option} {path}: parquet needs pyarrow: {install('tables')}; a .csv file needs nothing")
    return path


def write_answers(answers: Answers | Table | MarginalTables | SyntheticRows, path: Path) -> None:
    """Write rows; whoever reads the file finds all of them, or what was there before.

    Raises
    ------
    OSError
        When the file cannot be written.
    """
    content = io.BytesIO()
    if path.suffix == ".parquet":
        import pyarrow.parquet

        pyarrow.parquet.write_table(answers.to_arrow(), content)
    else:
        held = answers.to_columns()
        if isinstance(answers, Table):  # csv has no other place for what kind of number each aggregate is
            held |= {f"{name}_kind": [kind] * len(answers) for name, kind in answers.kinds.items()}
        text = io.StringIO(newline="")
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(held)
        rows.writerows([_cell(value) for value in row] for row in zip(*held.values(), strict=True))
        content.write(text.getvalue().encode())
    try:
        write_atomically(path, content.getvalue())
    except CheckpointError as reason:
        raise OSError(str(reason)) from None


def _cell(value: Any) -> str:
    """A value as csv has it: nothing for null, numbers to the last digit, and text as it is."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, tuple)):
        return write_value(value)
    return repr(value) if isinstance(value, float) else str(value)


# Answers as a text table.


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
    title = f"{name}: {answers.measurement.description}"
    if answers.simulated:
        title += f", {STAMP}"
    most = len(answers) if rows == 0 else rows
    cells = [(*answers.key_fields, "estimate", f"{100 * CONFIDENCE:g} % interval", "kind")]
    cells += map(_cells, islice(answers.rows(CONFIDENCE), most))
    numbers = (len(answers.key_fields), len(answers.key_fields) + 1)
    lines = [title, *(f"  {line}" for line in aligned(cells, numbers))]
    left_out = 0 if answers.measurement.sink.single else max(0, len(answers) - most)
    if left_out:
        lines.append(f"  … {left_out} more keys: --rows 0 prints all, --json and --save keep all")
    lines.append(f"  {answers.kind}")
    if answers.listing is not None:
        lines.append(f"  {answers.kind.selection(answers.listing)}; intervals are conditional on the selection")
    return "\n".join(lines)


def _cells(row: Row) -> tuple[str, ...]:
    if not isinstance(row.estimate, float):
        return (*map(write_value, row.key), write_value(row.estimate), "none", row.kind)
    digits = 0 if row.estimate.is_integer() else 2  # whole numbers: drawn from integers
    ends = "none" if row.low is None else f"{row.low:.{digits}f} to {row.high:.{digits}f}"
    return (*map(write_value, row.key), f"{row.estimate:.{digits}f}", ends, row.kind)
