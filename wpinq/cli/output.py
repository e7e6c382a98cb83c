"""Answers, tables and synthetic rows in a file of rows, csv or parquet."""

from __future__ import annotations

import csv
import importlib.util
import io
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from wpinq.commands.arguments import check_writable
from wpinq.commands.exits import UsageError
from wpinq.expr.printing import write_value
from wpinq.installing import install
from wpinq.measure.answer_rows import CONFIDENCE, columns
from wpinq.measure.answers import Answers
from wpinq.synthesis.checkpoint import CheckpointError, write_atomically
from wpinq.tables.released_marginals import MarginalTables
from wpinq.tables.released_table import Table
from wpinq.tables.synthetic_rows import SyntheticRows


def output_files(given: Sequence[str], releases: Collection[str]) -> dict[str, Path]:
    """Release to file, from `FILE` where there is one release, and `NAME=FILE`; refused before anything is spent."""
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
        raise UsageError(f"{option} {path}: the ending says the format, so name a .csv or a .parquet file")
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
        held = columns(answers, CONFIDENCE) if isinstance(answers, Answers) else answers.to_columns()
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
