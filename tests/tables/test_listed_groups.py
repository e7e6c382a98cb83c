"""Groups that a table lists: what a listing and a release of the same query give, one bill, and the same in text."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import wpinq as wp
from tests.support.parameters import for_each
from wpinq.cli.main import main
from wpinq.tables.tabulation import Tabulation

SHOPS = wp.source("shops", zip=str, month=int | None, sales=float, big=bool)
DATA = [("10115", 3, 40.0, True)] * 900 + [("69117", None, 90.0, False)] * 600 + [("00501", 1, 5.0, True)]
"""At epsilon 1, noise brings any absent key above 200 with a chance of 1e-82, and the large ones below with less."""
SELECTED = "selected above 200"


def by_zip(above: object = 200, **more: Any) -> Tabulation:
    aggregates = {"n": wp.count(), "s": wp.sum("sales", 0, 100), "m": wp.mean("sales", 0, 100), **more}
    return SHOPS.by("zip", keys=wp.digits(5), above=above).agg(epsilon=len(aggregates), **aggregates)


@pytest.fixture
def session() -> Iterator[wp.Session]:
    with wp.Session() as held:
        held.protect(SHOPS, DATA, budget=100)
        yield held


def test_the_count_is_the_listing_and_the_others_are_answered_at_its_keys(session: wp.Session) -> None:
    """Nothing else is drawn: plain measurements of the same queries replay what the table showed."""
    asked = by_zip(d=wp.count_distinct("month"))
    table = session.release(asked)
    assert table.keys == ("10115", "69117")
    assert session.remaining("shops") == 96
    listed = session.release(SHOPS.select("zip").noisy_count_above(1, wp.digits(5), above=200))
    assert listed.keys == table.keys
    assert [table[key]["n"].estimate for key in table.keys] == listed.values.tolist()
    for name, measurement in zip(asked.together, asked.measurements, strict=True):
        again = session.release(wp.Query(measurement.plan).noisy_count(measurement.epsilon))
        (held,) = table.answers[name]
        assert again.at(held.keys).values.tolist() == held.values.tolist()
    both = {"s": wp.sum("sales", 0, 100), "m": wp.mean("sales", 0, 100)}
    given = session.release(SHOPS.by("zip", keys=table.keys).agg(epsilon=2, **both))
    assert [given[key]["m"] for key in given.keys] == [table[key]["m"] for key in table.keys]
    assert session.remaining("shops") == 96
    assert abs(table["69117"]["m"].estimate - 90) < 10
    assert abs(table["10115"]["s"].estimate - 36_000) < 10_000


def test_the_bill_is_that_of_the_same_table_over_given_groups() -> None:
    given = SHOPS.by("zip", keys=["10115"]).agg(
        n=wp.count(), s=wp.sum("sales", 0, 9), epsilon=1, split={"n": 3, "s": 1}
    )
    listed = SHOPS.by("zip", keys=wp.digits(5), above=20).agg(
        n=wp.count(), s=wp.sum("sales", 0, 9), epsilon=1, split={"n": 3, "s": 1}
    )
    assert str(listed.bill()) == str(given.bill())
    assert listed.bill()["shops"] == 1
    assert listed.epsilons == {"n": Fraction(3, 4), "s": Fraction(1, 4)}
    assert [one.listing is not None for one in listed.measurements] == [True, False]


def test_it_replays_after_a_restart(tmp_path: Path) -> None:
    tables = []
    for _ in range(2):
        with wp.Session(tmp_path / "ledger.db") as session:
            session.protect(SHOPS, DATA, budget=3, version="1")
            tables.append(session.release(by_zip()).to_columns())
            assert session.remaining("shops") == 0
    assert tables[0] == tables[1]


def test_it_is_paid_for_before_anything_is_drawn_and_refused_unpaid() -> None:
    with wp.Session() as session:
        session.protect(SHOPS, DATA, budget=Fraction(29, 10))
        with pytest.raises(wp.BudgetExceeded):
            session.release(by_zip())
        assert session.spent("shops") == 0
        with pytest.raises(wp.PlanError, match="noise alone would bring"):
            session.release(SHOPS.by("zip", keys=wp.digits(12), above=1).agg(n=wp.count(), epsilon=1))
        assert session.spent("shops") == 0


def test_a_lower_threshold_and_an_unlisted_group_cost_nothing_more(session: wp.Session) -> None:
    table = session.release(by_zip())
    with pytest.raises(wp.AnswersError, match="'00501' was not listed: its noisy count is at most 200"):
        table["00501"]
    with pytest.raises(wp.AnswersError, match="not among those released"):
        table["1"]
    lower = session.release(by_zip(above=150))
    assert lower.keys == table.keys
    assert lower["10115"]["m"] == table["10115"]["m"]
    row = session.release(SHOPS.by("zip", keys=["00501"]).agg(n=wp.count(), epsilon=1))["00501"]
    assert row["n"].estimate <= 150
    assert session.remaining("shops") == 97


def test_it_says_how_its_groups_were_chosen(session: wp.Session) -> None:
    table = session.release(by_zip())
    assert table.kinds["n"] == f"count, {SELECTED}"
    assert table.to_pandas().attrs["kinds"] == table.to_json()["kinds"] == table.kinds
    assert table.to_arrow().schema.field("m").metadata == {b"kind": b"mean"}
    for shown in (repr(table), table._repr_html_()):
        assert f"n: {SELECTED}, from the texts of 5 digits; its intervals hold given that" in shown
        assert "s, m: noise of its own" in shown
    assert "given that" not in repr(session.release(SHOPS.by("zip", keys=["1"]).agg(n=wp.count(), epsilon=1)))


@pytest.mark.long
def test_intervals_of_the_count_are_those_of_a_listing_and_the_others_are_not() -> None:
    """Near the threshold the interval of a listed count reaches to 0, and that of a sum is as wide as ever."""
    data = {"shops": [("10115", 1, 50.0, True)] * 15}
    asked = SHOPS.by("zip", keys=["10115"], above=12).agg(n=wp.count(), s=wp.sum("sales", 0, 50), epsilon=2)
    kept = [table for seed in range(40) if len(table := wp.simulate(asked, data, seed=seed))]
    lows = []
    for table in kept:
        for confidence in (0.5, 0.95):
            row, (answers,) = table.row("10115", confidence), table.answers["n"]
            assert (row["n"].low, row["n"].high) == answers.interval("10115", confidence)
            assert row["s"].estimate - row["s"].low == pytest.approx(row["s"].high - row["s"].estimate)
        lows.append(table["10115"]["n"].low)
    assert len(kept) > 20
    assert 0.0 in lows


def test_a_count_without_a_low_end_is_shown_and_saved() -> None:
    before, after = (wp.source(name, zip=str) for name in ("before", "after"))
    asked = before.difference(after).by("zip", keys=["a"], above=3).agg(n=wp.count(), epsilon=1)
    data = {"before": [("a",)] * 4, "after": []}
    tables = (wp.simulate(asked, data, seed=seed) for seed in range(200))
    table = next(table for table in tables if len(table) and table["a"]["n"].low == -math.inf)
    assert table.to_json()["columns"]["n_low"] == [None]
    assert "-inf" in repr(table)
    assert "nan" not in table._repr_html_()


def test_several_columns_by_the_domain_of_each(session: wp.Session) -> None:
    asked = SHOPS.by("zip", "month", "big", keys={"zip": wp.digits(5), "month": wp.integers(1, 12)}, above=200).agg(
        n=wp.count(), m=wp.mean("sales", 0, 100), epsilon=2
    )
    assert asked.listing is not None
    assert asked.listing.domain.size == 100_000 * 12 * 2
    table = session.release(asked)
    assert table.keys == (("10115", 3, True),)  # a null month is in no range
    whole = SHOPS.by("month", keys=range(1, 13), above=200).agg(n=wp.count(), epsilon=1)
    assert session.release(whole).keys == (3,)
    months = SHOPS.by("month", keys=[None, 3], above=200).agg(n=wp.count(), epsilon=1)
    assert sorted(map(str, session.release(months).keys)) == ["3", "None"]


def test_nothing_listed_is_an_empty_table(session: wp.Session) -> None:
    for table in (session.release(by_zip(above=5000)), wp.simulate(by_zip(above=5000), {"shops": DATA}, seed=1)):
        assert len(table) == table.to_arrow().num_rows == 0
        assert set(table.to_columns()) == {"zip", *(n + end for n in "nsm" for end in ("", "_low", "_high"))}
        assert "0 rows" in repr(table)
        assert "0 rows" in table._repr_html_()


def test_simulations_are_stamped_and_repeat() -> None:
    one, same, other = (wp.simulate(by_zip(), {"shops": DATA}, seed=seed) for seed in (1, 1, 2))
    assert one.simulated
    assert one.keys == ("10115", "69117")
    assert one.to_columns() == same.to_columns() != other.to_columns()
    (sums,), (counts,) = one.answers["s"], one.answers["n"]
    assert sums.values[0] - 360 != counts.values[0] - 900  # noise of its own


def test_text_says_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables = {
        "one": by_zip(),
        "pairs": SHOPS.by("zip", m="month", keys=wp.product(wp.digits(5), range(1, 13)), above=60.5).agg(
            n=wp.count(), epsilon=1
        ),
        "given": SHOPS.by("month", keys=[None, 3], above=60).agg(n=wp.count(), epsilon=1),
    }
    text = wp.unparse(tables)
    assert '.By("zip", keys: digits(5), above: 200.0)' in text
    program = wp.parse(text)
    assert {name: program[name] for name in tables} == tables
    assert str(program) == text
    for name, table in tables.items():
        assert program.tables[name].measurements == table.measurements
    assert tables["one"] != by_zip(above=201)
    file, data = tmp_path / "p.wpq", tmp_path / "shops.csv"
    file.write_text(
        'source shops(zip: str, sales: int);\nvar t = shops.By("zip", keys: digits(5), above: 200)'
        '.Agg(2, n: Count(), s: Sum("sales", 0, 10));\n',
        encoding="utf-8",
    )
    data.write_text("zip,sales\n" + "10115,3\n" * 900 + "00501,2\n", encoding="utf-8")
    given = ["--source", f"shops={data}", "--budget", "shops=2", "--ledger", str(tmp_path / "ledger.db")]
    assert main(["run", str(file), *given, "--output", f"t={tmp_path / 't.csv'}"]) == 0
    assert "Remaining budget of shops: 0 of 2" in capsys.readouterr().out
    assert "10115" in (tmp_path / "t.csv").read_text(encoding="utf-8")


REFUSED: dict[str, Callable[[], object]] = {
    r"listed out of the texts of 5 digits above a threshold: by\(": lambda: SHOPS.by("zip", keys=wp.digits(5)),
    r"listed out of the texts of 2 digits above": lambda: SHOPS.by("zip", keys={"zip": wp.digits(2)}),
    r"out of a public domain: give it": lambda: SHOPS.by("zip", above=20),
    r"there is no column to group by": lambda: SHOPS.by(above=20),
    r"release the listing, and then by\(\.\.\., keys=table\.keys, other": lambda: SHOPS.by(
        "zip", keys=wp.digits(5), above=20, other="else"
    ),
    r"one wp\.count\(\), not 0": lambda: SHOPS.by("zip", keys=wp.digits(5), above=20).agg(
        m=wp.mean("sales", 0, 1), epsilon=1
    ),
    r"one wp\.count\(\), not 2": lambda: by_zip(again=wp.count()),
    r"k_rule hides groups of given keys": lambda: SHOPS.by("zip").agg(n=wp.count(), epsilon=1, k_rule=11),
    r"k_rule hides groups of .* without other": lambda: SHOPS.by("zip", keys=["1"], other="0").agg(
        n=wp.count(), epsilon=1, k_rule=11
    ),
    r"so ask for one wp\.count": lambda: SHOPS.by("zip", keys=["1"]).agg(
        m=wp.median("sales", [1]), epsilon=1, k_rule=11
    ),
    r"give that of each column: keys=\{'zip': \.\.\., 'month': \.\.\.\}": lambda: SHOPS.by(
        "zip", "month", keys=wp.digits(5), above=20
    ),
    r"values of 'month' are not public by the query": lambda: SHOPS.by(
        "zip", "month", keys={"zip": wp.digits(5)}, above=20
    ),
    r"which is no column of the groups": lambda: SHOPS.by("zip", keys={"zp": wp.digits(5)}, above=20),
    r"a number of at least 0, not '20'": lambda: by_zip(above="20"),
    r"from 0 to 1e\+100, not -1": lambda: by_zip(above=-1),
}


@for_each("message", REFUSED)
def test_mistakes_are_told_with_what_to_do(message: str) -> None:
    with pytest.raises(wp.PlanError, match=message):
        REFUSED[message]()


def test_mistakes_in_text_are_told_where_they_stand() -> None:
    for step, message in {
        '.By("zip", keys: digits(5))': "give a threshold too, above: 20",
        '.By("zip", above: 20)': "out of a public domain",
        '.By("zip", keys: digits(5), above: "a")': "expected a number",
    }.items():
        with pytest.raises(wp.LanguageError, match=message):
            wp.parse(f"source shops(zip: str); var t = shops{step}.Agg(1, n: Count());")
