"""Everything that `protect` reads, and everything that it refuses before the ledger hears of it."""

from __future__ import annotations

import gzip
import pathlib
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import wpinq as wp
from tests.support.parameters import for_each

ROWS = [(1, 2), (2, 3), (2, 3), (7, 1)]
HEAVY = 10**6
"""An epsilon at which noise is of the order of 1e-6, so that a release shows what was read."""


def pandas_frame(directory: pathlib.Path) -> object:
    import pandas

    return pandas.DataFrame({"dst": [b for _, b in ROWS], "extra": "x", "src": [a for a, _ in ROWS]})


def polars_frame(directory: pathlib.Path) -> object:
    import polars

    return polars.DataFrame(ROWS, schema=["src", "dst"], orient="row")


def arrow_table(directory: pathlib.Path) -> object:
    import pyarrow

    return pyarrow.table({"src": [a for a, _ in ROWS], "dst": [b for _, b in ROWS]})


def parquet_file(directory: pathlib.Path) -> object:
    from pyarrow import parquet

    parquet.write_table(arrow_table(directory), directory / "edges.parquet")
    return directory / "edges.parquet"


def written(name: str, text: str, pack: Callable[[bytes], bytes] = bytes) -> Callable[[pathlib.Path], object]:
    def write(directory: pathlib.Path) -> object:
        (directory / name).write_bytes(pack(text.encode()))
        return directory / name

    return write


LINES = "".join(f"{a}\t{b}\n" for a, b in ROWS)
INPUTS: dict[str, Callable[[pathlib.Path], object]] = {
    "rows": lambda directory: ROWS,
    "generator": lambda directory: (row for row in ROWS),
    "rows by name": lambda directory: [{"dst": b, "src": a} for a, b in ROWS],
    "numpy": lambda directory: np.array(ROWS),
    "pandas": pandas_frame,
    "polars": polars_frame,
    "arrow": arrow_table,
    "parquet": parquet_file,
    "csv": written("edges.csv", "src,dst\n" + LINES.replace("\t", ",")),
    "csv as text": lambda directory: str(written("e.csv", "src,dst\n" + LINES.replace("\t", ","))(directory)),
    "EdgeList": lambda directory: wp.EdgeList(written("any", "# a comment\n" + LINES)(directory), duplicates="keep"),
    "EdgeList, gzip": lambda directory: wp.EdgeList(
        str(written("any", LINES, gzip.compress)(directory)), duplicates="keep"
    ),
}


@pytest.mark.parametrize("kind", INPUTS)
def test_every_kind_of_input_is_one_dataset(edges: wp.Query, tmp_path: pathlib.Path, kind: str) -> None:
    with wp.Session() as session:
        session.protect(edges, INPUTS[kind](tmp_path), budget=10 * HEAVY)
        answers = session.release(edges.noisy_count(HEAVY, over=[(1, 2), (2, 3), (7, 1), (3, 2)]))
        # false alarm: 4 exp(-1000)
        assert np.round(answers.values, 3).tolist() == [1.0, 2.0, 1.0, 0.0]
        assert session.spent("edges") == HEAVY


def test_a_mapping_gives_weights_where_they_are_declared() -> None:
    edges = wp.source("edges", src=int, dst=int, weights=True)
    with wp.Session() as session:
        session.protect(edges, {(1, 2): -0.5, (2, 3): Fraction(1, 4), (3, 1): 0}, budget=10 * HEAVY)
        answers = session.release(edges.noisy_count(HEAVY, over=[(1, 2), (2, 3), (3, 1)]))
        assert np.round(answers.values, 3).tolist() == [-0.5, 0.25, 0.0]


NO_ROWS = [0.5, -1, 2, 1e300, 5e-324, float("nan"), float("inf"), Fraction(1, 3), True, "1", None]


@for_each("weight", NO_ROWS)
def test_a_mapping_for_rows_holds_whole_ones_within_the_unit_or_is_refused_everywhere(weight: Any) -> None:
    edges = wp.source("edges", src=int, dst=int)
    data = {(1, 2): 1, (2, 3): weight}
    with wp.Session() as session, pytest.raises(wp.SourceRejected, match="1 item is unfit, at item 1"):
        session.protect(edges, data, budget=1)
    for ask in (
        lambda: wp.evaluate(edges, {"edges": data}),
        lambda: wp.simulate(edges.noisy_count(1, over=[(1, 2)]), {"edges": data}, seed=1),
    ):
        with pytest.raises((wp.SourceRejected, wp.PlanError), match="weight"):
            ask()


SMALL = wp.source("small", src=int, dst=int, cap=3, weights=True)
COUNTED = wp.source("rows", src=int, dst=int, unit_weight=2)
FACTS = {
    fact: wp.source("promised", src=int, dst=int, unit_weight=2, facts=[fact], weights=True)
    for fact in ("nonnegative", "unit_weights", "symmetric", "simple", "simple_digraph")
}
UNFIT: dict[str, tuple[wp.Query, Any]] = {
    "wrong type": (SMALL, [(1, 2), (1, "2")]),
    "ragged": (SMALL, [(1, 2), (1, 2, 3)]),
    "null": (SMALL, [(1, None)]),
    "too large": (SMALL, [(1, 2**63)]),
    "bool": (SMALL, [(1, True)]),
    "nan weight": (SMALL, {(1, 2): float("nan")}),
    "infinite weight": (SMALL, {(1, 2): float("inf")}),
    "over the unit": (SMALL, {(1, 2): 1.5}),
    "over the unit, negative": (SMALL, {(1, 2): -1.5}),
    "over the cap": (SMALL, [(1, 2)] * 4),
    "over the cap, in parts": (SMALL, {(i, 0): 1.0 for i in range(3)} | {(9, 9): 2.0**-40}),
    "half a row": (COUNTED, {(1, 2): 1, (2, 3): 0.5}),
    "less than no row": (COUNTED, {(1, 2): 1, (2, 3): -1}),
    "more rows than a unit has": (COUNTED, {(1, 2): 5}),
    "nan record": (wp.source("floats", x=float), [(float("nan"),)]),
    "infinite record": (wp.source("floats", x=float), [(float("-inf"),)]),
    "surrogate": (wp.source("texts", str), ["\ud800"]),
    "negative": (FACTS["nonnegative"], {(1, 2): -0.5}),
    "twice": (FACTS["unit_weights"], [(1, 2), (1, 2)]),
    "half": (FACTS["unit_weights"], {(1, 2): 0.5}),
    "one way": (FACTS["symmetric"], [(1, 2)]),
    "unequal ways": (FACTS["symmetric"], {(1, 2): 1.0, (2, 1): 0.5}),
    "an edge of two units": (FACTS["symmetric"], {(1, 2): 2.0, (2, 1): 2.0}),
    "a loop": (FACTS["simple"], [(1, 2), (3, 3)]),
    "both ways": (FACTS["simple"], [(1, 2), (2, 1)]),
    "a directed loop": (FACTS["simple_digraph"], [(1, 2), (3, 3)]),
    "a directed edge twice": (FACTS["simple_digraph"], [(1, 2), (2, 1), (1, 2)]),
    "no rows": (SMALL, 7),
    "content for a path": (SMALL, "1 2\n2 3\n"),
    "absent file": (SMALL, "/nonexistent/edges.csv"),
}


@pytest.mark.parametrize("kind", UNFIT)
def test_unfit_data_are_refused_and_leave_no_trace(ledger: pathlib.Path, kind: str) -> None:
    source, data = UNFIT[kind]
    name = next(iter(source.uses()))
    with wp.Session(ledger) as session:
        before = ledger.read_bytes()
        with pytest.raises(wp.SourceRejected) as caught:
            session.protect(source, data, budget=10)
        assert caught.value.__cause__ is None
        assert ledger.read_bytes() == before
        with pytest.raises(wp.LedgerError, match="no account"):
            session.remaining(name)
        with pytest.raises(wp.SessionError, match="not protected"):
            session.release(source.noisy_count(1, over=[]))
        assert list(session._ledger.entries()) == []


def test_refused_data_leave_the_data_before_them_in_place(edges: wp.Query) -> None:
    with wp.Session() as session:
        session.protect(edges, [(1, 2)], budget=10 * HEAVY)
        with pytest.raises(wp.SourceRejected):
            session.protect(edges, [(1, 2), "x"], budget=10 * HEAVY)
        assert round(session.release(edges.noisy_count(HEAVY, over=[(1, 2)])).value) == 1


def test_facts_that_hold_are_taken_and_billed() -> None:
    facts = ["symmetric", "unit_weights", "nonnegative"]
    source = wp.source("promised", src=int, dst=int, unit_weight=2, facts=facts)
    with wp.Session() as session:
        session.protect(source, [(1, 2), (2, 1)], budget=10)
        text = str(session.bill(source.noisy_count(1, over=[])))
    assert text == (
        "promised: 2\n"
        "  protects one record, of weight 2\n"
        "  declared: no weight is negative\n"
        "  declared: (a, b) and (b, a) have the same weight\n"
        "  declared: every record weighs exactly 1\n"
        "  NoisyCount(1), spent once: 1 x 1 x 2 = 2"
    )


def test_only_sources_are_protected(edges: wp.Query) -> None:
    with wp.Session() as session:
        for wrong in (edges.select(lambda e: e.src), "edges", None):
            with pytest.raises(wp.SessionError, match=r"a source made by wp\.source"):
                session.protect(wrong, [(1, 2)], budget=1)


def test_a_unit_given_to_protect_stands_in_the_ledger(edges: wp.Query) -> None:
    with wp.Session() as session:
        session.protect(edges, [(1, 2)], budget=1, unit="one friendship")
        assert session._ledger.account("edges").unit == "one friendship"


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
def test_public_data_are_held_to_the_unit_of_a_pair_as_protected_data_are(engine: str) -> None:
    source = wp.source("pairs", a=int, b=int, unit_weight=2, facts=["symmetric"])
    fit, heavy = {(1, 2): 1, (2, 1): 1, (3, 3): 2}, {(1, 2): 2, (2, 1): 2}
    assert dict(wp.evaluate(source, {"pairs": fit}, engine)) == fit
    with wp.Session() as session:
        session.protect(source, fit, budget=1)
    for refuse in (
        lambda: wp.evaluate(source, {"pairs": heavy}, engine),
        lambda: wp.simulate(source.noisy_count(1, over=[(1, 2)]), {"pairs": heavy}, engine=engine, seed=1),
        lambda: wp.Session().protect(source, heavy, budget=1),
    ):
        with pytest.raises(wp.SourceRejected, match="weigh more than the unit weight 2 together"):
            refuse()


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
def test_public_rows_are_taken_as_protected_rows_are(engine: str) -> None:
    source = wp.source("flags", b=bool, n=int)
    for rows in ([(1, 5)], [{"b": 1, "n": 5}], {(1, 5): 1}, [np.array([1, 5])]):
        assert dict(wp.evaluate(source, {"flags": rows}, engine)) == {(True, 5): 1.0}
        with wp.Session(engine=engine) as session:
            session.protect(source, rows, budget=1)
    with pytest.raises(wp.PlanError, match="record 1, counted from 0, is unfit: field 'b'") as caught:
        wp.evaluate(source, {"flags": [(0, 5), ("secret", 6)]}, engine)
    assert "secret" not in str(caught.value)
    columns = (np.array([1, 0]), np.array([5, 6]))
    for refuse in (
        lambda: wp.evaluate(source, {"flags": columns}, engine),
        lambda: wp.Session(engine=engine).protect(source, columns, budget=1),
    ):
        with pytest.raises(wp.SourceRejected, match="column_stack"):
            refuse()


class Fails:
    """An array by its looks, whose words hold a value."""

    dtype, ndim = "x", 1

    def __iter__(self) -> Any:
        raise KeyError("secret")

    def __len__(self) -> int:
        return 2


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
def test_foreign_rows_fail_without_their_words(engine: str) -> None:
    pair, nested = wp.source("pair", a=int, b=int), wp.source("nested", x=int, r={"a": int, "b": int})
    offered: list[tuple[Any, Any]] = [
        (pair, [Fails()]),
        (pair, Fails()),
        (pair, ((int(text), 1) for text in ("1", "secret"))),
        (pair, [np.array(None, dtype=object)]),
        (nested, [(1, np.array(None, dtype=object))]),
        (nested, [(1, Fails())]),
        (pair, {(1, 2): "secret"}),
        (pair, {(1, 2): float("nan")}),
    ]
    for source, data in offered:
        generator = not isinstance(data, (list, dict, Fails))
        with wp.Session() as session, pytest.raises(wp.SourceRejected) as caught:
            session.protect(source, data, budget=1)
        assert "secret" not in f"{caught.value!r}{caught.value.__cause__!r}{caught.value.__context__!r}"
        again = ((int(text), 1) for text in ("1", "secret")) if generator else data
        with pytest.raises(wp.WpinqError) as refused:
            wp.evaluate(source, {source.plan.operator.source: again}, engine)
        assert "secret" not in f"{refused.value!r}{refused.value.__cause__!r}{refused.value.__context__!r}"


def test_a_series_of_pandas_is_a_row_by_name() -> None:
    import pandas

    rows = [row for _, row in pandas.DataFrame({"b": [10], "a": [1]}).iterrows()]
    pair, nested = wp.source("s", a=int, b=int), wp.source("s", x=int, r={"a": int, "b": int})
    assert dict(wp.evaluate(pair, {"s": rows})) == {(1, 10): 1.0}
    assert dict(wp.evaluate(nested, {"s": [(5, rows[0])]})) == {(5, (1, 10)): 1.0}
    with wp.Session() as session:
        session.protect(pair, rows, budget=10**9)
        answers = session.release(pair.noisy_count(10**6, over=[(1, 10), (10, 1)]))
        assert isinstance(answers, wp.Answers)
        assert [round(weight) for weight in answers.values] == [1, 0]
    with wp.Session() as session, pytest.raises(wp.SourceRejected, match="without the field 'a'"):
        session.protect(pair, [pandas.Series([1, 2])], budget=1)
