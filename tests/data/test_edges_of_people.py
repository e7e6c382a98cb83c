"""Edge lists of people: whose an edge is, and that what is kept of it is a function of that person's edges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import igraph
import networkx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

import wpinq as wp
from tests.support.declared import declared
from tests.support.parameters import for_each
from tests.support.people import kept_rows
from wpinq.columns.storage import StoredColumns
from wpinq.data import EdgeList, read_source
from wpinq.errors import SourceRejected
from wpinq.expr.declarations import Person
from wpinq.expr.types import INT, STR, record_type

EDGE = record_type({"src": INT, "dst": INT})
DUCKDB = duckdb.connect(config={"threads": 1})
"""Opening one for each reading takes longer than reading."""

Owned = tuple[int, int, int]
"""Whose an edge is, and its ends."""


def read(data: Any, at_most: int, column: str = "who", *, nested: bool = False, **options: Any) -> dict[Any, float]:
    person = Person(column, at_most, nested)
    source = declared(options.pop("type_", EDGE), person=person, cap=10**9, **options)
    held = read_source(data, source, lambda: nullcontext(DUCKDB))
    assert isinstance(held, StoredColumns)
    return dict(held.items())


def refused(data: Any, *args: Any, **options: Any) -> str:
    with pytest.raises(SourceRejected) as caught:
        read(data, *args, **options)
    assert caught.value.__cause__ is None
    return str(caught.value)


def meant(rows: Iterable[Owned], at_most: int, nested: bool, directed: bool, loops: str, duplicates: str) -> Any:
    """What the dataset is, in Python; None where the rows are refused."""
    edges = [(who, a, b) if directed else (who, min(a, b), max(a, b)) for who, a, b in rows]
    if loops == "refuse" and any(a == b for _, a, b in edges):
        return None
    if loops == "drop":
        edges = [edge for edge in edges if edge[1] != edge[2]]
    if duplicates == "drop":
        edges = list(dict.fromkeys(edges))
    kept = kept_rows([who for who, *_ in edges], [edge[1:] for edge in edges], EDGE, at_most)
    if duplicates == "refuse" and max(Counter(edge for own in kept.values() for edge in own).values(), default=0) > 1:
        return None
    if nested:
        return dict(Counter(kept.values()))
    weights = Counter(edge for own in kept.values() for edge in own)
    return dict.fromkeys(weights, 1.0) if duplicates == "drop" else dict(weights)


def tables(rng: Random) -> list[Owned]:
    nodes = range(rng.choice([3, 4, 30]))
    return [(rng.randrange(4), rng.choice(nodes), rng.choice(nodes)) for _ in range(rng.randrange(1, 14))]


def table(rows: list[Owned]) -> Any:
    columns = list(zip(*rows, strict=True)) or [[], [], []]
    return pa.table(dict(zip(("who", "src", "dst"), map(pa.array, columns), strict=True)))


OPTIONS = list(product([True, False], ["keep", "drop", "refuse"], ["keep", "drop", "refuse"], [True, False]))


@for_each(("directed", "loops", "duplicates", "nested"), OPTIONS, every=10)
def test_each_option_means_what_it_says_and_a_person_changes_no_more_than_the_unit_weight(
    directed: bool, loops: Any, duplicates: Any, nested: bool
) -> None:
    rng = Random(f"{directed}{loops}{duplicates}{nested}")
    for _ in range(4):
        rows, at_most = tables(rng), rng.choice([1, 2, 3])
        want = meant(rows, at_most, nested, directed, loops, duplicates)
        offered = EdgeList(table(rows), directed=directed, loops=loops, duplicates=duplicates)
        if want is None:
            assert "unfit" in refused(offered, at_most, nested=nested)
            continue
        got = read(offered, at_most, nested=nested)
        assert got == want
        for person in {who for who, *_ in rows}:
            others = [row for row in rows if row[0] != person]
            if others:
                left = EdgeList(table(others), directed=directed, loops=loops, duplicates=duplicates)
                without = read(left, at_most, nested=nested)
                moved = sum(abs(got.get(edge, 0) - without.get(edge, 0)) for edge in {*got, *without})
                assert moved <= (1 if nested else at_most)


def test_duplicates_are_dropped_before_the_cut_among_the_edges_of_one_person() -> None:
    rows = [(1, 5, 6), (1, 6, 5), (1, 5, 6), (1, 7, 8), (2, 6, 5)]
    offered = EdgeList(table(rows), directed=False, duplicates="drop")
    assert read(offered, 2) == {(5, 6): 1.0, (7, 8): 1.0}
    assert read(offered, 2, facts=["unit_weights"]) == {(5, 6): 1.0, (7, 8): 1.0}


@pytest.mark.parametrize("nested", [True, False])
def test_an_edge_that_does_not_count_is_no_duplicate(nested: bool) -> None:
    """Whether data are taken depends on what counts of them: who loses an edge to the cut has not got it."""
    own = [(1, 2), (1, 3)]
    (kept,) = kept_rows([1, 1], own, EDGE, 1).values()
    (lost,) = {*own} - {*kept}
    whose = [*((1, *edge) for edge in own), (2, *lost)]
    offered = EdgeList(table(whose), duplicates="refuse")
    assert sum(read(offered, 1, nested=nested).values()) == 2
    assert "unfit" in refused(offered, 2, nested=nested)


def test_symmetric_is_asked_of_each_persons_own_edges() -> None:
    own = [(1, 5, 6), (1, 6, 5), (2, 5, 6), (2, 6, 5)]
    for duplicates, weight in (("keep", 2.0), ("drop", 1.0)):
        offered = EdgeList(table(own), duplicates=duplicates)
        assert read(offered, 2, facts=["symmetric"]) == {(5, 6): weight, (6, 5): weight}
    halves = EdgeList(table([(1, 5, 6), (2, 6, 5)]))
    assert "for one person" in refused(halves, 2, facts=["symmetric"])


# --- whose an edge is ---------------------------------------------------------------------------------------------

PAIRS = [(1, 2), (1, 3), (1, 4), (2, 1)]
OUT: dict[str, Callable[[Path], Any]] = {
    "text": lambda folder: written(folder / "g.txt", "".join(f"{a} {b}\n" for a, b in PAIRS)),
    "text, told": lambda folder: EdgeList(written(folder / "g", "".join(f"{a} {b}\n" for a, b in PAIRS))),
    "odd text": lambda folder: written(folder / "g.txt", "".join(f"{a} \t {b}\n" for a, b in PAIRS)),
    "csv": lambda folder: EdgeList(csv(folder), columns=("src", "dst")),
    "other columns": lambda folder: EdgeList(csv(folder, "here,there"), columns=("here", "there")),
    "parquet": lambda folder: EdgeList(parquet(folder)),
    "numpy": lambda folder: EdgeList(np.array(PAIRS)),
    "polars": lambda folder: EdgeList(pl.DataFrame(PAIRS, schema=["src", "dst"], orient="row")),
    "rows": lambda folder: EdgeList(PAIRS),
    "networkx": lambda folder: networkx.DiGraph(PAIRS),
    "edges of networkx": lambda folder: EdgeList(networkx.DiGraph(PAIRS).edges),
    "igraph": lambda folder: igraph.Graph(PAIRS, directed=True),
    "matrix": lambda folder: EdgeList(
        scipy.sparse.coo_matrix(([1] * 4, tuple(zip(*PAIRS, strict=True)))), directed=True
    ),
}


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def csv(folder: Path, names: str = "src,dst") -> Path:
    return written(folder / "g.csv", f"{names}\n" + "".join(f"{a},{b}\n" for a, b in PAIRS))


def parquet(folder: Path) -> Path:
    pl.DataFrame(PAIRS, schema=["src", "dst"], orient="row").write_parquet(folder / "g.parquet")
    return folder / "g.parquet"


@for_each("form", OUT)
def test_an_end_may_say_whose_an_edge_is(form: str, tmp_path: Path) -> None:
    kept = kept_rows([a for a, _ in PAIRS], PAIRS, EDGE, 2)
    assert read(OUT[form](tmp_path), 2, "src") == {edge: 1.0 for own in kept.values() for edge in own}
    assert read(OUT[form](tmp_path), 1, "dst") == dict.fromkeys(PAIRS, 1.0)
    assert read(OUT[form](tmp_path), 4, "src", nested=True) == {((1, 2), (1, 3), (1, 4)): 1.0, ((2, 1),): 1.0}


BESIDE: dict[str, Callable[[Path], Any]] = {
    "csv": lambda folder: EdgeList(written(folder / "g.csv", "who,src,dst\na,1,2\na,1,3\nb,1,2\n"), duplicates="keep"),
    "csv that Python reads": lambda folder: EdgeList(
        written(folder / "g.csv", 'note,who,src,dst\n"so"" so",a,1,2\n,a,1,3\n,b,1,2\n'),
        duplicates="keep",
    ),
    "pandas": lambda folder: EdgeList(
        pd.DataFrame({"dst": [2, 3, 2], "who": ["a", "a", "b"], "src": [1, 1, 1]}), duplicates="keep"
    ),
    "rows by name": lambda folder: EdgeList(
        [{"who": who, "src": a, "dst": b} for who, a, b in [("a", 1, 2), ("a", 1, 3), ("b", 1, 2)]], duplicates="keep"
    ),
}


@pytest.mark.parametrize("form", BESIDE)
def test_a_column_beside_the_ends_may_say_it(form: str, tmp_path: Path) -> None:
    assert read(BESIDE[form](tmp_path), 2) == {(1, 2): 2.0, (1, 3): 1.0}
    assert sum(read(BESIDE[form](tmp_path), 1).values()) == 2


CALLS = {"src": [9, 9, 9], "caller": [1, 2, 3], "called": [2, 3, 4]}


@pytest.mark.parametrize("form", ["arrow", "pandas", "csv", "parquet", "cursor"])
def test_two_columns_that_may_both_say_it_are_refused(form: str, tmp_path: Path) -> None:
    """As an end or as an id: of 9 three edges would be kept, where one may be."""
    pl.DataFrame(CALLS).write_csv(tmp_path / "calls.csv")
    pl.DataFrame(CALLS).write_parquet(tmp_path / "calls.parquet")
    forms: dict[str, Any] = {
        "arrow": pa.table(CALLS),
        "pandas": pd.DataFrame(CALLS),
        "csv": tmp_path / "calls.csv",
        "parquet": tmp_path / "calls.parquet",
        "cursor": DUCKDB.cursor().execute("SELECT 9 AS src, 1 AS caller, 2 AS called"),
    }
    said = refused(EdgeList(forms[form], columns=("caller", "called")), 1, "src")
    assert "'src' of the data or 'caller'" in said and "9" not in said.replace(str(tmp_path), "")
    swapped = EdgeList(pa.table({"src": [1, 2, 3], "dst": [5, 5, 5]}), columns=("dst", "src"))
    assert "the owner of an edge may be" in refused(swapped, 1, "src")
    named = EdgeList(pa.table(CALLS).drop_columns("src"), columns=("caller", "called"))
    assert read(named, 1, "src") == {(1, 2): 1.0, (2, 3): 1.0, (3, 4): 1.0}


def test_an_edge_of_two_people_stands_there_twice() -> None:
    rows = [(1, 5, 6), (2, 7, 8), (2, 5, 6)]
    assert "at row 2, counted from 0. Reasons: an edge that stood there before" in refused(EdgeList(table(rows)), 5)
    assert read(EdgeList(table(rows), duplicates="drop"), 5) == {(5, 6): 1.0, (7, 8): 1.0}


UNDIRECTED: list[Any] = [
    networkx.Graph(PAIRS),
    igraph.Graph(PAIRS),
    EdgeList(PAIRS, directed=False),
    EdgeList(pa.table({"here": [1], "there": [2]}), directed=False, columns=("here", "there")),
]


@pytest.mark.parametrize("offered", UNDIRECTED, ids=["networkx", "igraph", "rows", "table"])
@pytest.mark.parametrize("column", ["src", "dst"])
def test_an_undirected_edge_is_of_neither_end(offered: Any, column: str) -> None:
    assert "both directions with directed=True" in refused(offered, 2, column)


def test_nor_is_it_by_the_name_of_a_column() -> None:
    here = EdgeList(pa.table({"here": [1], "there": [2]}), directed=False, columns=("here", "there"))
    assert "both directions" in refused(here, 2, "here")


def test_what_does_not_say_whose_an_edge_is(tmp_path: Path) -> None:
    text = written(tmp_path / "g.txt", "1 2\n")
    for offered in (text, EdgeList(text), networkx.DiGraph(PAIRS), EdgeList(networkx.DiGraph(PAIRS).edges)):
        assert "declare an end as the person, as person='src'" in refused(offered, 2)
    assert "a row without field names" in refused(EdgeList(PAIRS), 2)
    assert "no column of ids" in refused(EdgeList(np.array(PAIRS)), 2)
    assert "no column named 'who'" in refused(EdgeList(csv(tmp_path), duplicates="keep"), 2)


def test_text_nodes_and_what_is_unfit_are_as_without_people(tmp_path: Path) -> None:
    path = written(tmp_path / "g.csv", "who,src,dst\n1,a,b\n2,c,a\n")
    nodes = record_type({"src": STR, "dst": STR})
    assert read(EdgeList(path, directed=False), 1, type_=nodes) == {("a", "b"): 1.0, ("a", "c"): 1.0}
    broken = written(tmp_path / "h.csv", "who,src,dst\n1,1,x\n,1,2\n")
    assert "at row 0, 1" in refused(EdgeList(broken), 1)


def test_a_session_protects_people_by_their_edges(tmp_path: Path) -> None:
    calls = wp.source("calls", src=int, dst=int, person="src", at_most=2, unit="one caller")
    with wp.Session() as session:
        session.protect(calls, networkx.DiGraph(PAIRS), budget=10**7)
        callers = calls.select(lambda e: e.src).noisy_count(10**6, over=[1, 2])
        assert [round(value, 2) for value in session.release(callers).values] == [2.0, 1.0]
        assert session.spent("calls") == 2 * 10**6
