"""What a refusal says to do about a field, done: the data are taken then."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy
import pandas
import polars
import pyarrow
import pytest

from wpinq.expr.types import BOOL, FLOAT, INT, STR, Type
from wpinq.ingest.conversions import conversion

COLUMNS: dict[Type, tuple[Any, Any]] = {
    INT: (["1", "2"], [1, 2]),
    FLOAT: (["1.5", "2"], [1.5, 2.0]),
    STR: ([1, 2], ["1", "2"]),
    BOOL: ([0, 1], [False, True]),
}
NAME = 'the "day"'


def converted(library: str, given: Any, type_: Type) -> Any:
    """The values of a column, converted as it is said."""
    said = conversion(library, NAME, type_)
    if library == "numpy":
        return eval(said, {"array": numpy.array(given)}).tolist()
    if library == "pandas":
        return eval(said, {"frame": pandas.DataFrame({NAME: given})})[NAME].tolist()
    if library == "polars":
        column = eval(said, {"frame": polars.DataFrame({NAME: given}), "polars": polars})[NAME]
        return column.to_list()
    table = pyarrow.table({NAME: given})
    if library == "pyarrow":
        return eval(said, {"table": table}).to_pylist()
    rows = duckdb.from_arrow(table).project(said.replace('\\"', '""'))
    return [value for (value,) in rows.fetchall()]


@pytest.mark.parametrize("library", ["numpy", "pandas", "polars", "pyarrow", "duckdb"])
@pytest.mark.parametrize("type_", COLUMNS)
def test_what_is_said_converts(library: str, type_: Type) -> None:
    given, expected = COLUMNS[type_]
    found = converted(library, given, type_)
    assert found == expected
    assert list(map(type, found)) == list(map(type, expected))
