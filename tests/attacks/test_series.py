"""A source an epoch: the ways in which accounts by epoch could leak or charge too little."""

from __future__ import annotations

import contextlib
import datetime
import sqlite3
import warnings
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import polars as pl
import pytest

import wpinq as wp
from tests.support.parameters import for_each
from tests.support.series import DAY, FORMS, Moment, held, late_rows, rows_of_day, views
from wpinq.errors import (
    BudgetExceeded,
    LedgerError,
    PlanError,
    SessionError,
    SourceRejected,
    SourceSuspended,
    WpinqError,
    WpinqWarning,
)
from wpinq.expr.epochs import Epoch
from wpinq.expr.types import DATE, TIMESTAMP
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.plan.format import plan_from_json, plan_to_json
from wpinq.plan.operators import Source


def mixed(rng: Random, day: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of a day among rows of other days."""
    rows = day + late_rows(rng)
    rng.shuffle(rows)
    return rows


# (a) rows outside of the epoch are left out first


def moved(seed: int, form: str, folder: Path) -> bool:
    """Whether rows of other epochs move the dataset of an epoch."""
    rng = Random(seed)
    day = rows_of_day(rng)
    source = views(distinct="page" if seed % 2 else "", at_most=4)
    return held(source, FORMS[form](mixed(rng, day), folder)) != held(source, day)


@pytest.mark.parametrize("form", FORMS)
@for_each("seed", range(6), every=6)
def test_a_rows_of_other_epochs_move_nothing(seed: int, form: str, tmp_path: Path) -> None:
    assert not moved(seed, form, tmp_path)


UNFIT = (
    {"user": None, "page": "x"},
    {"user": "a", "page": None},
)


@pytest.mark.parametrize("form", FORMS)
def test_a_rows_of_other_epochs_refuse_nothing(form: str, tmp_path: Path) -> None:
    """A refusal would decide, by one late row, whether a public file exists."""
    day = rows_of_day(Random(1))
    late = [{**row, "when": when} for row in UNFIT for when in (Moment(2026, 11, 28), None)]
    offered = FORMS[form](day + late, tmp_path)
    assert held(views(), offered) == held(views(), day)
    for row in UNFIT[:2]:  # inside of the epoch they refuse, as in any source
        with pytest.raises(SourceRejected):
            held(views(), FORMS[form]([*day, {**row, "when": Moment(2026, 11, 27)}], tmp_path))


def test_a_what_only_python_reads_is_left_out_too(tmp_path: Path) -> None:
    """Values of other types, rows that are none, rows that fail, and lines of a csv file that are too short."""

    class Hostile:
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError(name)

    day = rows_of_day(Random(2))
    late: list[Any] = [{"user": 1.5, "page": [], "when": Moment(2026, 11, 28)}, 5, (), "when", Hostile(), {"when": "x"}]
    assert held(views(), [*late, *day, *late]) == held(views(), day)
    frame = pd.DataFrame([*day, late[0]], dtype=object)
    assert held(views(), frame) == held(views(), day)
    path = FORMS["csv"](day, tmp_path)
    path.write_text(path.read_text() + "a,b\nc,d,2026-11-28T00:00:00,e\n,,\n")
    assert held(views(), path) == held(views(), day)


def test_a_ids_of_late_rows_have_no_say_in_their_type() -> None:
    day = rows_of_day(Random(3))
    assert held(views(), [{"user": 7, "page": "x", "when": Moment(2026, 11, 28)}, *day]) == held(views(), day)


def test_a_facts_sizes_and_the_cap_see_rows_of_the_epoch_alone() -> None:
    declared: dict[str, Any] = {"every": "day", "start": "2026-01-01", "on": "when", "when": Moment, "n": int}
    late = [{"n": 1, "when": Moment(2026, 11, 28)}] * 5
    one = [{"n": 1, "when": Moment(2026, 11, 27)}]
    for more in ({"cap": 3}, {"records_at_most": 1}, {"facts": ["unit_weights"]}, {"keys_at_most": {"n": 1}}):
        source = wp.series("v", **declared, **more)
        assert held(source, late + one) == held(source, one)


def test_a_each_page_counts_once_before_the_cut() -> None:
    """The first of a person's rows of a page, in the order of the hash; the rows of other epochs have no say."""
    moments = [Moment(2026, 11, 27, hour) for hour in range(4)]
    rows = [{"user": "a", "page": "x", "when": when} for when in moments]
    rows += [{"user": "a", "page": "y", "when": moments[0]}, {"user": "b", "page": "x", "when": moments[0]}]
    for at_most in (2, 10):
        pages = sorted(page for page, _ in held(views(distinct="page", at_most=at_most), rows + late_rows(Random(2))))
        assert pages in (["x", "y"], ["x", "x", "y"])
        assert sum(held(views(distinct="page", at_most=at_most), rows).values()) == 3


@pytest.mark.parametrize("form", ["rows", "csv", "parquet"])
def test_g_bounds_are_in_utc(form: str, tmp_path: Path) -> None:
    zone = datetime.timezone(datetime.timedelta(hours=-5))
    bounds = [Moment(2026, 11, 26, 18, 59, 59, 999_999), Moment(2026, 11, 26, 19), Moment(2026, 11, 27, 18, 59, 59)]
    rows = [{"user": "a", "page": str(n), "when": when.replace(tzinfo=zone)} for n, when in enumerate(bounds)]
    if form == "parquet":
        pl.DataFrame(rows).write_parquet(tmp_path / "zoned.parquet")
    offered: Any = rows if form == "rows" else tmp_path / "zoned.parquet"
    offered = FORMS["csv"](rows, tmp_path) if form == "csv" else offered
    assert sorted(page for page, _ in held(views(at_most=9), offered)) == ["1", "2"]


def test_a_public_evaluation_reads_an_epoch_as_a_session_does() -> None:
    source = wp.series("v", every="day", start="2026-01-01", on="when", when=Moment, n=int).epoch(DAY)
    rows = [{"n": 1, "when": Moment(2026, 11, day)} for day in (26, 27, 28)]
    assert sum(wp.evaluate(source, {f"v:{DAY}": rows}).values()) == 1


def test_a_strict_refuses_the_whole_and_names_nothing(tmp_path: Path) -> None:
    day, source = rows_of_day(Random(4)), views(strict=True)
    for form in ("rows", "csv", "objects of pandas", "a stream"):
        make = FORMS[form]
        assert held(source, make(day, tmp_path)) == held(views(), day), form
        with pytest.raises(SourceRejected, match="strict") as refused:
            held(source, make(day + late_rows(Random(1)), tmp_path))
        assert "28" not in str(refused.value)


@pytest.mark.parametrize("line", ["a,b\n", ",,\n", "c,d,2026-11-27T00:00:00,e\n", 'd, "e",2026-11-27T00:00:00\nf\n'])
def test_a_strict_sees_lines_of_a_csv_file_that_have_no_time(line: str, tmp_path: Path) -> None:
    """Also where Python reads the file, since a quote is next to a blank."""
    path = FORMS["csv"](rows_of_day(Random(4)), tmp_path)
    path.write_text(path.read_text() + line)
    held(views(), path)
    with pytest.raises(SourceRejected) as refused:
        held(views(strict=True), path)
    assert refused.value.positions == ()


def test_a_a_column_of_another_type_is_refused_not_left_out(tmp_path: Path) -> None:
    """Otherwise all rows of a renamed or retyped column would be lost in silence."""
    frame = pd.DataFrame({"user": ["a"], "page": ["x"], "when": ["no time"]})
    frame.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(SourceRejected, match="all rows would be left out"):
        held(views(), tmp_path / "rows.parquet")


@pytest.mark.parametrize("page", [b"\xff", b'"y', b'"y "z'])
def test_a_a_file_that_is_none_is_refused_without_numbers_of_rows(page: bytes, tmp_path: Path) -> None:
    """Which rows are of the epoch cannot be told in it, and a number would count the others."""
    path = FORMS["csv"](rows_of_day(Random(1)), tmp_path)
    path.write_bytes(path.read_bytes() + b"b," + page + b",2026-11-28T00:00:00\n")
    with pytest.raises(SourceRejected, match=r"as a whole|not UTF-8") as refused:
        held(views(), path)
    assert refused.value.positions == ()


# (b) late rows have no account


def test_b_a_row_is_in_one_epoch_and_no_other() -> None:
    """Over all epochs of a calendar, a time is in exactly one; there is no epoch for what comes late."""
    rng = Random(5)
    for every, start in (
        ("hour", "2026-02-27T22"),
        ("day", "2026-02-27"),
        ("week", "2025-W52"),
        ("month", "2026-01"),
        ("year", "2025"),
    ):
        template = Epoch("v", every, start, "when")
        labels = template.labels(1, 20)
        assert [template.number(label) for label in labels] == list(range(1, 21))
        bounds = [replace(template, label=label).bounds(TIMESTAMP) for label in labels]
        assert [end for _, end in bounds[:-1]] == [first for first, _ in bounds[1:]]
        moments = [first + step for first, _ in bounds for step in (-1, 0, 1)]
        moments += [rng.randrange(bounds[0][0], bounds[-1][1]) for _ in range(9)]
        for moment in moments:
            inside = bounds[0][0] <= moment < bounds[-1][1]
            assert sum(replace(template, label=label).holds(moment, TIMESTAMP) for label in labels) == inside
    days = [Epoch("v", "week", "2026-W01", "d", label).bounds(DATE) for label in ("2026-W52", "2026-W53")]
    assert days[0][1] == days[1][0]


# (c) epochs follow from the calendar


def test_c_an_epoch_without_rows_is_protected_as_empty() -> None:
    source = views()
    for nothing in ([], iter([]), late_rows(Random(1)), (row for row in late_rows(Random(1)))):
        with wp.Session() as session:
            session.protect(source, nothing, epoch=DAY)
            assert session.release(source.epoch(DAY).count(1)).value < 200


@pytest.mark.parametrize(
    "label",
    [
        "2025-12-31",
        "2026-1-1",
        "2026-13-01",
        "2026-02-30",
        "20261127",
        "2026-11-27T05",
        " 2026-11-27",
        "*",
        "",
        "a/b",
        "x@y",
    ],
)
def test_c_other_labels_are_no_epochs(label: str) -> None:
    with pytest.raises(PlanError):
        views().epoch(label)


def test_c_labels_are_few() -> None:
    """The declaration of each account has all of them."""
    for count in (1024, 1025):
        declared = pytest.raises(PlanError, match=r"1,024") if count > 1024 else contextlib.nullcontext()
        with declared:
            wp.series("v", every=map(str, range(count)), on="at", at=str)


@pytest.mark.parametrize("form", ["cursor", *FORMS])
def test_c_no_late_row_decides_whether_an_epoch_is_protected(form: str, tmp_path: Path) -> None:
    """Without any row, and with a late row alone, an epoch is empty: also where a stream without rows looks used up."""
    for rows in ([], late_rows(Random(1))[:1]):
        if form == "cursor":
            connection = sqlite3.connect(":memory:")
            connection.execute("CREATE TABLE t (user, page, at)")
            connection.executemany("INSERT INTO t VALUES (?, ?, ?)", [(r["user"], r["page"], "other") for r in rows])
            labelled = wp.series("v", every=["one", "two"], on="at", at=str, user=str, page=str, budget_each=1)
            assert held(labelled, connection.execute("SELECT * FROM t"), "one") == {}
            connection.close()
        else:
            assert held(views(), FORMS[form](rows, tmp_path)) == {}


# (d) versions pay from the same account


def test_d_another_version_pays_anew_from_the_same_account(tmp_path: Path) -> None:
    source = views()
    asked = source.epoch(DAY).count("0.5")
    answers = []
    for version in ("1", "1", "2"):
        with wp.Session(tmp_path / "ledger.db") as session:
            session.protect(source, rows_of_day(Random(1)), epoch=DAY, version=version)
            answers.append(session.release(asked).value)
            spent = session.spent(f"views:{DAY}")
    assert answers[0] == answers[1] != answers[2]
    assert spent == 2


# (e) a failure suspends the whole series


def test_e_a_failure_suspends_all_epochs_to_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """One account a day would be 365 bits a year on one person."""
    source = views()
    with Ledger() as ledger, wp.Session(ledger, sandbox=wp.Limits()) as session:
        for label in (DAY, "2026-11-28"):
            session.protect(source, [], epoch=label)
        session.suspend(f"views:{DAY}")
        assert session.suspended() == ("views",)
        for label in (DAY, "2026-11-28", "2026-11-29"):
            session.protect(source, [], epoch=label)
            with pytest.raises(SourceSuspended):
                session.release(source.epoch(label).count(1))
        assert session.resume("views:2026-11-29")
        assert session.suspended() == ()
        ledger.verify()


# accounts


def test_a_table_and_a_series_never_share_a_name() -> None:
    """Whichever is first: a session could not say which of them a name is."""
    table = wp.source("views", page=str, person="user", at_most=2, account="people")
    shared = wp.source("other", page=str, person="user", at_most=2, account="views")
    for other in (table, shared):
        for series_first in (True, False):
            with Ledger() as ledger, wp.Session(ledger) as session:
                protect = [lambda s=session: s.protect(views(), [], epoch=DAY),
                           lambda s=session, o=other: s.protect(o, [], budget=1)]  # fmt: skip
                first, second = protect if series_first else protect[::-1]
                first()
                with pytest.raises(LedgerError, match="'views'"):
                    second()


def test_the_template_is_fixed_and_its_name_is_taken() -> None:
    with Ledger() as ledger, wp.Session(ledger) as session:
        session.protect(views(), [], epoch=DAY)
        monthly = {"every": "month", "start": "2026-01"}
        for change in ({"at_most": 3}, {"start": "2026-01-02"}, {"distinct": "page"}, {"strict": True}, monthly):
            with pytest.raises(LedgerError):
                session.protect(views(**change), [], epoch="2026-11" if change is monthly else "2026-11-28")
        with pytest.raises(LedgerError, match="'views'"):
            session.protect(views(budget_each=11), [], epoch="2026-11-28")
        for plain in (wp.source("views", page=str), wp.source("views", page=str, person="user", at_most=2)):
            with pytest.raises(LedgerError):
                session.protect(plain, [], budget=1)
        with pytest.raises(LedgerError, match="pays nothing"):  # after which no epoch could be protected
            session.set_budget(views(), 5)
        assert session.balance("views").budget == 0
    with Ledger() as ledger, wp.Session(ledger) as session:
        session.protect(wp.source("views", page=str), [], budget=1)
        with pytest.raises(LedgerError):
            session.protect(views(), [], epoch=DAY)


def test_a_series_is_no_source_and_an_epoch_is_not_protected_by_itself() -> None:
    source = views()
    with wp.Session() as session:
        for given, more in (
            (source, {"budget": 1}),
            (source, {}),
            (source.epoch(DAY), {"budget": 1}),
            (source.epoch(DAY), {"epoch": DAY}),
            (wp.source("plain", page=str), {"epoch": DAY}),
            (wp.source("plain", page=str), {}),
            (views(budget_each=None), {"epoch": DAY}),
        ):
            with pytest.raises((SessionError, wp.EpsilonError)):
                session.protect(given, [], **more)
        assert session.balances() == ()
        with pytest.raises(PlanError, match="name an epoch"):
            session.bill(source.count(1))
        with pytest.raises(WpinqError):
            session.release(source.count(1))
    for name in ("views:2026-11-27", "views:*"):
        with pytest.raises(WpinqError):
            wp.source(name, page=str)


def test_a_declaration_by_hand_has_the_name_and_the_account_of_its_epoch() -> None:
    """Otherwise rows of one epoch could be protected, and paid for, under the account of another."""
    declared = views().epoch(DAY).plan.operator
    assert isinstance(declared, Source)
    assert declared.person is not None
    for change in (
        {"source": "views:2026-11-28"},
        {"source": "other"},
        {"person": replace(declared.person, account="shared")},
        {"epoch": replace(declared.epoch, series="other")},
    ):
        with pytest.raises(WpinqError):
            replace(declared, **change).check()
    with pytest.raises(PlanError):
        wp.series("v", every="day", start="1970-01-01", on="d", d=datetime.date)  # where databases round upwards


def test_all_epochs_read_their_rows_by_one_column() -> None:
    """Columns are no part of an account: by the time of sending and of arrival, one row would be in two of them."""
    for column in ("sent", "arrived"):
        with pytest.raises(PlanError, match="name of its column"), wp.Session() as session:
            session.protect(views(columns={"when": column}), [], epoch=DAY)
    with pytest.raises(PlanError, match="name of its column"):
        held(views(columns={"when": "page", "page": "when"}), [])
    frame = pd.DataFrame({"user": ["a"], "title": ["x"], "when": [Moment(2026, 11, 27)]})
    assert sum(held(views(columns={"page": "title"}), frame).values()) == 1


def test_a_second_series_over_the_same_rows_is_said_to_add_up(tmp_path: Path) -> None:
    path = FORMS["parquet"](rows_of_day(Random(1)), tmp_path)
    hours = wp.series("hours", every="hour", start="2026-01-01T00", on="when", page=str, when=Moment, budget_each=1)
    with warnings.catch_warnings(), wp.Session() as session:
        warnings.simplefilter("error")
        session.protect(views(), path, epoch=DAY)
        session.protect(views(), path, epoch="2026-11-28")  # the same series: no row is in both
        with pytest.raises(WpinqWarning, match="under another account"):
            session.protect(hours, path, epoch="2026-11-27T05")


def test_forged_epochs_are_refused() -> None:
    declared = views().epoch(DAY).plan
    written = plan_to_json(declared)
    (argument,) = (node["arguments"]["epoch"]["epoch"] for node in written["nodes"])
    for change in (
        {"on": []}, {"label": 7}, {"label": "2026-11-28"}, {"series": "a/b"}, {"series": "x@y"}, {"every": "minute"},
        {"every": [["a"]]}, {"start": "1960-01-01"}, {"strict": "no"}, {"distinct": 1}, {"more": 1}, {"start": None},
    ):  # fmt: skip
        (node,) = written["nodes"]
        given = {**node["arguments"], "epoch": {"epoch": argument | change}}
        forged = {**written, "nodes": [{**node, "arguments": given}]}
        with pytest.raises(WpinqError):
            plan_from_json(forged)


def test_budget_all_bounds_one_person_over_epochs() -> None:
    """A window of 7 days charges 7 times, and what all epochs allow together is refused."""
    source = views(budget_all=16)
    week = source.between("2026-11-02", "2026-11-08")
    with wp.Session() as session:
        for day in range(2, 9):
            session.protect(source, [], epoch=f"2026-11-{day:02}")
        session.release(week.count("0.5"))
        assert session.spent(source, over="person") == 7
        assert {session.spent(f"views:2026-11-{day:02}") for day in range(2, 9)} == {1}
        session.release(source.epoch("2026-11-02").count("4.5"))  # nine of this epoch's ten: all of it is spent
        assert session.spent(source, over="person") == 16
        with pytest.raises(BudgetExceeded, match=r"views:\*"):
            session.release(source.epoch("2026-11-03").count("0.01"))
        assert session.spent("views:2026-11-03") == 1
        session.set_budget(source, all=17)
        session.release(source.epoch("2026-11-03").count("0.01"))
        assert session.affords(source.epoch("2026-11-04").count("0.5")) == 0
    with pytest.raises(PlanError, match="budget_all"):
        wp.series("v", every="day", start="2026-01-01", on="d", d=datetime.date, budget_each=1, budget_all=2)
    rows = wp.series("v", every="day", start="2026-01-01", on="d", d=datetime.date, budget_each=1)
    with wp.Session() as session:
        session.protect(rows, [], epoch=DAY)
        with pytest.raises(LedgerError):  # of rows it would be wrong by a person's number of rows
            session.spent(rows, over="person")


def test_analysts_have_budgets_in_each_epoch_and_over_all() -> None:
    source = views()
    with Ledger() as ledger, wp.Session(ledger) as session:
        session.protect(source, [], epoch="2026-11-01")
        session.set_budget(source, each=2, all=3, analyst="alice")
        session.set_budget(source, each=1, analyst="bob")
        for label in ("2026-11-02", "2026-11-03"):
            session.protect(source, [], epoch=label)
        alice, bob = session.analyst("alice"), session.analyst("bob")
        alice.release(source.epoch("2026-11-02").count(1))
        with pytest.raises(BudgetExceeded):  # two of three are spent over all epochs
            alice.release(source.epoch("2026-11-03").count(1))
        alice.release(source.epoch("2026-11-03").count("0.5"))
        with pytest.raises(BudgetExceeded):
            bob.release(source.epoch("2026-11-02").count(1))
        bob.release(source.between("2026-11-01", "2026-11-03").count("0.5"))
        assert (alice.spent(source, over="person"), bob.spent(source, over="person")) == (3, 3)
        assert session.spent(source, over="person") == 6
        ledger.verify()


# (f), (h) windows, and joins of epochs


def test_h_a_join_of_two_epochs_is_billed_on_both() -> None:
    source = views()
    one, other = source.epoch("2026-11-01"), source.epoch("2026-11-02")
    both = one.join(other, lambda v: v.page, lambda v: v.page)
    assert dict(both.bill(epsilon=1)) == {"views:2026-11-01": 2, "views:*": 4, "views:2026-11-02": 2}


def test_every_bill_says_what_an_account_of_an_epoch_does_not() -> None:
    source = views()
    for query in (source.epoch(DAY), source.between("2026-11-01", "2026-11-02")):
        text = str(query.bill(epsilon=1))
        assert text.count("over other epochs of views the losses of one person add up") == len(query.uses())
        assert "views:*" in text
    with wp.Session() as session:
        session.protect(source, [], epoch=DAY)
        template, total, epoch = map(repr, session.balances())
    assert total == "views:*: spent 0; one person in all epochs of views"
    assert epoch.endswith("over other epochs of views the losses of one person add up")
    assert template.startswith("views: spent 0 of 0")


# running totals


def sales(**more: Any) -> Any:
    given: dict[str, Any] = {"every": "day", "start": "2026-01-01", "on": "day", "budget_each": 4}
    return wp.series("sales", **{**given, **more}, day=datetime.date, shop=str)


def shops(source: Any, epsilon: Any = 1, keys: Any = ("a", "b"), levels: int = 3) -> Any:
    return source.running(lambda day: day.select(lambda s: s.shop), epsilon, keys=keys, levels=levels)


def labels_of(source: Any, count: int) -> list[str]:
    return list(source.calendar.labels(1, count))


def test_the_first_node_pays_all_levels_and_later_ones_find_them_paid() -> None:
    source = sales()
    total = shops(source)
    with Ledger() as ledger, wp.Session(ledger) as session:
        answers: dict[str, Any] = {}
        for number, label in enumerate(labels_of(source, 9), 1):
            session.protect(source, [(datetime.date.fromisoformat(label), "a")], epoch=label, version="1")
            answers |= session.release(total.due(label))
            spent = [session.spent(f"sales:{each}") for each in labels_of(source, number)]
            assert spent == [4] * (number - 1) + [3]
            session.release(source.epoch(label).count(1))  # all that is left: a node to come is not blocked by it
            found = total.total(label, answers)
            assert found.keys == ("a", "b")
        debits = [entry for entry in ledger.entries() if entry.kind == "debit" and entry.target == "sales:2026-01-01"]
        assert [entry.amount for entry in debits] == [3 * 10**9, 10**9, 0, 0]
        ledger.verify()


def test_a_share_is_taken_once() -> None:
    """New noise, another version, other keys, another epsilon: each pays anew."""
    source = sales(budget_each=100)
    total = shops(source)
    first, second = labels_of(source, 2)
    with wp.Session() as session:

        def released(asked: Any, fresh: bool = False) -> list[Any]:
            session.release(asked, fresh=fresh)
            return [session.spent(f"sales:{each}") for each in (first, second)]

        for label in (first, second):
            session.protect(source, [], epoch=label, version="1")
        assert released(total.due(first)) == [3, 0]
        assert released(total.due(first), fresh=True) == [4, 0]
        node = total.due(second)[f"{first} to {second}"]
        assert released(node) == [4, 3]
        assert released(node) == [4, 3]
        assert released(node, fresh=True) == [5, 4]
        assert released([node, node], fresh=True) == [7, 6]
        session.protect(source, [], epoch=first, version="2")
        assert released(node) == [8, 7]
        assert released(shops(source, keys=["a"]).due(first)) == [11, 7]
        assert released(shops(source, epsilon=2).due(first)) == [17, 7]
        more = shops(source, levels=4)  # which may grow: each epoch owes one more, and the tree is the same
        assert released(more.node((1, 2)), fresh=True) == [19, 9]


def test_a_plain_count_before_the_first_node_leaves_no_level_unpaid() -> None:
    """Were the node its replay, an epoch would pay one level, and a node of later epochs could be refused."""
    source = sales()
    first, second = labels_of(source, 2)
    with wp.Session() as session:
        for label in (first, second):
            session.protect(source, [], epoch=label, version="1")
        session.release(source.epoch(first).select(lambda s: s.shop).noisy_count(1, over=["a", "b"]))
        session.release(shops(source).due(first))
        assert session.spent(f"sales:{first}") == 4
        with pytest.raises(BudgetExceeded):
            session.release(source.epoch(first).count("0.01"))
        session.release(shops(source).due(second))
        assert (session.spent(f"sales:{first}"), session.spent(f"sales:{second}")) == (4, 3)


def test_levels_that_the_budget_does_not_cover_are_refused_before_anything() -> None:
    with pytest.raises(PlanError, match="levels"):
        shops(sales(), epsilon="1.5")
    shops(sales(), epsilon="4/3")


def cheated() -> bool:
    """Whether some nodes cost an epoch less than they lose, whatever they say of trees and levels."""
    rng, source = Random(7), sales(budget_each=1000)
    labels = labels_of(source, 4)
    with wp.Session() as session:
        for label in labels:
            session.protect(source, [], epoch=label, version="1")
        lost = dict.fromkeys(labels, Fraction(0))
        for _ in range(30):
            node = shops(source, epsilon=rng.choice([1, 2])).node(rng.choice([(1, 1), (2, 2), (1, 2), (3, 4), (1, 4)]))
            levels = rng.choice([1, 2, 5])
            place = replace(node.prepaid, tree=rng.choice("xy"), level=rng.randrange(levels), levels=levels)
            session.release(replace(node, prepaid=place), fresh=True)
            for label in labels:
                lost[label] += node.epsilon * node.sink.stability(node.plan).get(f"sales:{label}", 0)
            if any(session.spent(f"sales:{label}") < lost[label] for label in labels):
                return True
    return False


def test_no_claim_of_a_share_costs_less_than_the_nodes() -> None:
    assert not cheated()


def test_a_node_is_the_sum_of_the_query_of_each_epoch() -> None:
    """Not the query of their sum, which is not additive: a page that is there on each day counts on each."""
    source = views(at_most=1)
    total = source.running(lambda day: day.select(lambda v: v.page).shave(1.0).where(lambda p: p.index == 0)
                           .select(lambda p: "pages"), 1, keys=["pages"], levels=2)  # fmt: skip
    days = {f"views:2026-01-0{day}": [{"user": "a", "page": "x", "when": Moment(2026, 1, day)}] for day in (1, 2)}
    (weight,) = wp.evaluate(wp.Query(total.node((1, 2)).plan), days).values()
    assert weight == 2


def test_totals_are_sums_of_few_nodes_and_their_noise_is_known() -> None:
    source = sales(budget_each=None)
    total = shops(source, epsilon=1, keys=["a"], levels=3)
    labels = labels_of(source, 13)
    data = {f"sales:{label}": [(datetime.date.fromisoformat(label), "a")] * 5 for label in labels}
    nodes = {name: node for label in labels for name, node in total.due(label).items()}
    exact = {name: wp.evaluate(wp.Query(node.plan), data)["a"] for name, node in nodes.items()}
    assert [exact[name] for name in ("2026-01-01 to 2026-01-04", "2026-01-13 to 2026-01-13")] == [20, 5]
    with wp.Session() as session:
        source = sales(budget_each=10)
        for label in labels:
            session.protect(source, data[f"sales:{label}"], epoch=label)
        answers = session.release(nodes)
    found = total.total(labels[-1], {name: wp.Answers.from_json(each.to_json()) for name, each in answers.items()})
    assert abs(found.values[0] - 65) < 60
    one, two, four = 1, Fraction(2, 3), Fraction(4, 7)  # variances of best estimates, of the variance of one node
    assert found.deviation == pytest.approx(float(2 * (3 * four + one)) ** 0.5, rel=1e-4)
    assert total.total(labels[5], answers).deviation == pytest.approx(float(2 * (four + two)) ** 0.5, rel=1e-4)
    few = {name: answers[name] for name in ("2026-01-01 to 2026-01-04", "2026-01-05 to 2026-01-06")}
    assert total.total(labels[5], few).deviation == pytest.approx(2.0, rel=1e-4)
    low, high = found.interval("a")
    assert low < found.values[0] < high
    for revised in (False, True):
        with pytest.raises(wp.AnswersError, match="due until"):
            total.total(labels[6], few, revised=revised)
    first = {name: answers[name] for label in labels[:2] for name in total.due(label)}
    assert total.total(labels[0], first).deviation == pytest.approx(2**0.5)
    later = total.total(labels[0], first, revised=True)  # x₁ is measured by itself, and as a sum less x₂
    (a,), (b,), (both,) = (first[name].values for name in first)
    assert later.deviation == pytest.approx(float(2 * Fraction(2, 3)) ** 0.5)
    assert later.values[0] == pytest.approx((2 * a + both - b) / 3)
    for place in (labels[0], labels[1]):  # all nodes have a part in both
        assert total.total(place, answers, revised=True).deviation < total.total(place, answers).deviation
    with pytest.raises(wp.AnswersError, match="not of this running total"):
        shops(source, epsilon=2, keys=["a"]).total(labels[0], answers)


def test_messages_of_a_refused_epoch_name_no_value() -> None:
    day = [*rows_of_day(Random(1)), {"user": "secret", "page": 7, "when": Moment(2026, 11, 27)}]
    with wp.Session() as session, pytest.raises(SourceRejected) as refused:
        session.protect(views(), [*late_rows(Random(1)), *day], epoch=DAY)
    assert "secret" not in str(refused.value)
