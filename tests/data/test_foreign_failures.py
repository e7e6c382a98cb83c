"""What fails while data are read says a constant: the words of databases, frames and cursors quote values."""

from __future__ import annotations

import contextlib
import decimal
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pandas
import polars
import pytest

import wpinq as wp
from tests.support.declared import declared
from tests.support.parameters import for_each
from wpinq.columns.storage import StoredColumns
from wpinq.data.read import read_source
from wpinq.errors import SourceRejected
from wpinq.expr.types import type_from_annotation

SECRET = "secretvalue"


def read(data: object, facts: tuple[str, ...] = (), **fields: Any) -> Any:
    type_ = type_from_annotation(fields)
    return read_source(data, declared(type_, cap=10**9, facts=facts))


def late_relation() -> Any:
    """It fails long after the first piece of its rows."""
    rows = f"SELECT CASE WHEN x > 150000 THEN CAST('{SECRET}' || x AS INT) ELSE x END AS a FROM range(200000) t(x)"
    return duckdb.connect().sql(rows)


def text_that_is_none() -> Any:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (a TEXT)")
    connection.execute(f"INSERT INTO t VALUES (CAST(x'{SECRET.encode().hex()}ff' AS TEXT))")
    return connection.execute("SELECT a FROM t")


class ShortRows:
    description = (("b",), ("a",))

    def fetchmany(self, size: int) -> list[tuple[str, ...]]:
        return [(SECRET,)]


class Unbegun:
    def __iter__(self) -> Any:
        raise ValueError(SECRET)


def own_function() -> Any:
    def fail(frame: polars.DataFrame) -> polars.DataFrame:
        raise ValueError(frame["a"][0])

    return polars.LazyFrame({"a": [SECRET]}).map_batches(fail)


FAILING: dict[str, Callable[[], Any]] = {
    "a relation that fails late": late_relation,
    "a cursor over text that is no UTF-8": text_that_is_none,
    "a cursor with rows that are too short": ShortRows,
    "a generator": lambda: ((int(text),) for text in (SECRET,)),
    "an iterable that does not begin": Unbegun,
    "a lazy frame with a function of its own": own_function,
    "a lazy frame of a file that is gone": lambda: polars.scan_csv("gone.csv"),
    "a frame with a signalling NaN": lambda: pandas.DataFrame({"a": [decimal.Decimal("sNaN"), SECRET]}),
}


@for_each("kind", FAILING)
@for_each("type_", [int, str])
def test_a_failure_is_a_refusal_without_a_value_or_a_cause(kind: str, type_: type) -> None:
    with pytest.raises(SourceRejected) as refused:
        read(FAILING[kind](), a=type_)
    error = refused.value
    assert SECRET not in f"{error!r}{error.__cause__!r}{error.__context__!r}"
    assert (error.__cause__, error.__context__) == (None, None)


@pytest.mark.parametrize("changed", ["", f"a,b\n{SECRET},1,77\n", "other,names\n1,2\n"])
def test_a_breach_that_was_seen_is_refused_whatever_the_file_says_the_second_time(
    changed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, shown = tmp_path / "rows.csv", StoredColumns.attached
    path.write_text("a,b\nx,1\nx,1\n")

    @contextlib.contextmanager
    def meanwhile(self: StoredColumns, connection: Any, name: str) -> Iterator[str]:
        path.write_text(changed)
        with shown(self, connection, name) as table:
            yield table

    monkeypatch.setattr(StoredColumns, "attached", meanwhile)
    with pytest.raises(SourceRejected) as refused:
        read(path, facts=("unit_weights",), a=str, b=int)
    assert SECRET not in f"{refused.value!r}{refused.value.__context__!r}"


def test_columns_of_polars_are_taken_by_place_whatever_they_are_called() -> None:
    frame = polars.LazyFrame({"^.*$": [1], "b": [2]})  # as a name, a pattern of names
    source = wp.source("pairs", tuple[int, int])
    assert dict(wp.evaluate(source, {"pairs": frame})) == {(1, 2): 1.0}
