"""Data that are offered: files with odd bytes, rows of odd objects, frames."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

import wpinq as wp
from wpinq.errors import SourceRejected, WpinqError

VISITS = wp.source("visits", who=str, amount=int | None, x=float | None, ok=bool, day=datetime.date | None)
PERSONS = wp.source("persons", amount=int | None, person="who", at_most=2)
EDGES = wp.source("edges", src=int, dst=int)
NAMED = wp.source("named", src=str, dst=str)


def offer(source: wp.Query, data: Any) -> None:
    """Data are protected, or refused in words without a cause."""
    with contextlib.suppress(WpinqError), wp.Session() as session:
        try:
            session.protect(source, data, budget=1)
        except SourceRejected as error:
            assert error.__cause__ is None
            assert len(str(error)) < 3000


def check_file(given: tuple[str, bytes]) -> None:
    """A file of any bytes under each ending."""
    suffix, content = given
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"data{suffix}"
        path.write_bytes(content)
        if suffix in (".txt", ".tsv", ".edges", ".edges.gz", ".mtx", ".graph"):
            for source in (EDGES, NAMED):
                offer(source, path)
                offer(source, wp.EdgeList(path, directed=False, duplicates="keep"))
                offer(source, wp.EdgeList(path, directed=True, columns=(1, 2)))
        else:
            for source in (VISITS, PERSONS):
                offer(source, path)
            offer(EDGES, wp.EdgeList(path, columns=("who", "amount")))
        with contextlib.suppress(WpinqError):
            str(wp.schema(path))


class Odd:
    """An object that fails at what it is asked."""

    def _fail(self, *_: object) -> Any:
        raise RuntimeError("odd")

    __eq__ = __index__ = __float__ = __str__ = _fail
    __hash__ = None


_CELLS: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(10**400), 10**400),
    st.floats(),
    st.text(max_size=5),
    st.binary(max_size=3),
    st.dates(),
    st.datetimes(),
    st.timedeltas(),
    st.decimals(),
    st.fractions(),
    st.complex_numbers(),
    st.sampled_from(
        ["\ud800", "\0", decimal.Decimal("1e999999"), Fraction(1, 3), object(), Odd, ..., (), [], {}, range(3)]
    ),
    st.builds(Odd),
)
_NAMES = ["who", "amount", "x", "ok", "day"]
_ROW = st.one_of(
    st.lists(_CELLS, min_size=4, max_size=6),
    st.lists(_CELLS, min_size=5, max_size=5).map(tuple),
    st.dictionaries(st.one_of(st.sampled_from(_NAMES), _CELLS.filter(lambda c: _is_hashable(c))), _CELLS),
    _CELLS,
)


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except Exception:
        return False
    return True


def _frame(library: str, columns: dict[str, list[Any]]) -> Any:
    import pandas
    import polars

    try:
        return pandas.DataFrame(columns) if library == "pandas" else polars.DataFrame(columns, strict=False)
    except KeyboardInterrupt:
        raise
    except BaseException:  # what the library does not take, or panics at, is not offered
        return None


_COLUMNS = st.integers(0, 4).flatmap(
    lambda n: st.fixed_dictionaries({name: st.lists(_CELLS, min_size=n, max_size=n) for name in _NAMES})
)
ROWS: st.SearchStrategy[Any] = st.one_of(
    st.lists(_ROW, max_size=4),
    st.builds(_frame, st.sampled_from(["pandas", "polars"]), _COLUMNS),
    st.dictionaries(_CELLS.filter(_is_hashable), _CELLS, max_size=3),
    _COLUMNS,
    _CELLS,
)


def check_rows(data: Any) -> None:
    """Rows, frames and whatever else is no file."""
    for source in (VISITS, PERSONS, EDGES):
        offer(source, data)
