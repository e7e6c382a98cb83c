"""Listings by a session: their bill, their rows and counts over the same keys, in parts, at once, and ever after."""

from __future__ import annotations

import json
import math
import os
import pathlib
import pickle
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import wpinq as wp
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.measure.statement import entry_text
from wpinq.sinks.count_above import Listing

ROOT = pathlib.Path(__file__).parents[2]

sales = wp.source("sales", zip=str, shop=int, facts=["unit_weights"])
by_shop = sales.select(lambda s: s.shop)
ROWS = [(f"{i:05d}", i % 50) for i in range(4000)]
SHOPS = wp.integers(0, 9_999)


def opened(ledger: pathlib.Path | Ledger | None = None, version: str | None = None, **options: str) -> wp.Session:
    session = wp.Session(ledger, **options)
    session.protect(sales, ROWS, budget=10, version=version)
    return session


def rows_of(answers: wp.Answers | wp.Release) -> dict[object, float]:
    assert isinstance(answers, wp.Answers)
    return dict(answers.items())


@pytest.mark.parametrize("geometric", [False, True])
def test_a_listing_shows_the_keys_above_and_counts_over_its_keys_agree(geometric: bool) -> None:
    counted = by_shop.geometric_count if geometric else by_shop.noisy_count
    with opened() as session:
        asked = rows_of(session.release(counted(1, over=[*range(10), 700, 701])))
        listed = session.release(by_shop.noisy_count_above(1, SHOPS, above=4, geometric=geometric))
        assert isinstance(listed, wp.Answers)
        rows = rows_of(listed)
        assert session.spent("sales") == 1
        assert list(rows) == sorted(rows)
        assert (
            set(range(50)) <= rows.keys() <= set(range(10_000))
        )  # 80 records a shop: noise of -76 is out of the question
        assert all(value > 4 for value in rows.values())
        everything = rows_of(session.release(counted(1, over=range(10_000))))
        assert session.spent("sales") == 1
        assert rows == {key: value for key, value in everything.items() if value > 4}
        assert asked.items() <= everything.items()
        lower = rows_of(
            session.release(by_shop.noisy_count_above(1, wp.integers(20, 12_000), above=3, geometric=geometric))
        )
        assert {k: v for k, v in lower.items() if k < 10_000} == {
            k: v for k, v in everything.items() if v > 3 and k >= 20
        }


def test_a_listing_after_a_listing_draws_what_is_left_of_its_keys() -> None:
    with opened() as session:
        high = rows_of(session.release(by_shop.noisy_count_above(1, SHOPS, above=6)))
        low = rows_of(session.release(by_shop.noisy_count_above(1, SHOPS, above=3)))
        assert high == {key: value for key, value in low.items() if value > 6}
        assert len(low) > len(high)
        again = rows_of(session.release(by_shop.noisy_count_above(1, SHOPS, above=6)))
        assert again == high
        assert session.spent("sales") == 1


@pytest.mark.parametrize("geometric", [False, True])
def test_through_a_session_and_a_restart_values_have_the_plain_law(tmp_path: pathlib.Path, geometric: bool) -> None:
    """As in tests/privacy/test_listings.py, by the random numbers of the operating system: false alarm below 1e-6."""
    weight, size = 1.0 if geometric else 1.5, 3000
    path, data = tmp_path / "books.db", dict.fromkeys(range(0, 2 * size, 2), weight)
    visits = wp.source("visits", int, weights=not geometric, unit_weight=2)
    kind = visits.geometric_count if geometric else visits.noisy_count
    steps = (
        kind(1, over=range(100)),
        visits.noisy_count_above(1, range(size), above=2, geometric=geometric),
        visits.noisy_count_above(1, range(2 * size), above=0, geometric=geometric),
        kind(1, over=range(2 * size)),
    )
    for step in steps:
        with wp.Session(path, engine="reference") as session:
            session.protect(visits, data, budget=5, version="v")
            answers = rows_of(session.release(step))
    for held, keys in ((weight, range(0, 2 * size, 2)), (0.0, range(1, 2 * size, 2))):
        noise = np.array([answers[key] for key in keys]) - held
        if geometric:
            ends = np.arange(-4, 4)
            a = math.exp(-1)
            chances = np.diff([0, *(1 - a ** (k + 1) / (1 + a) if k >= 0 else a**-k / (1 + a) for k in ends), 1])
            seen = np.diff([0, *(np.sum(noise <= k) for k in ends), size])
            assert stats.chisquare(seen, chances * size).pvalue > 1e-7
        else:
            assert stats.kstest(noise, stats.laplace(scale=1.0).cdf).pvalue > 1e-7


def test_the_bill_is_that_of_one_count_and_a_batch_pays_once() -> None:
    batch = [by_shop.noisy_count_above("1/2", SHOPS, above=9), by_shop.noisy_count("1/2", over=range(3))]
    assert dict(wp.bill(batch)) == {"sales": Fraction(1, 2)}
    with opened() as session:
        listed, counted = map(rows_of, session.release(batch))
        assert session.spent("sales") == Fraction(1, 2)
        assert {key: value for key, value in counted.items() if value > 9} == {k: v for k, v in listed.items() if k < 3}
        fresh = session.release(batch[0], fresh=True)
        assert session.spent("sales") == 1
        assert rows_of(fresh) != listed


def test_parts_have_listings_of_their_own_and_cost_the_largest() -> None:
    parts = sales.partition(lambda s: s.shop % 2, [0, 1])
    listings = {
        part: query.select(lambda s: s.shop).noisy_count_above(1, SHOPS, above=6) for part, query in parts.items()
    }
    with opened() as session:
        for part, listing in listings.items():
            rows = rows_of(session.release(listing))
            assert {key for key, value in rows.items() if value > 40} == set(range(part, 50, 2))
        assert session.spent("sales") == 1


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
def test_pairs_out_of_a_million_million(engine: str) -> None:
    domain = wp.product(wp.digits(5), range(10_000_000))
    assert domain.size == 10**12
    pairs = sales.select(lambda s: (s.zip, s.shop))
    with opened(engine=engine) as session:
        rows = rows_of(session.release(pairs.noisy_count_above(1, domain, above=24)))
        assert all(key in domain for key in rows)
        assert len(rows) < 70  # of 10^12 keys some 19 by noise: more than 70 with a chance below 1e-15
        with pytest.raises(wp.PlanError, match="list above 14 or more"):
            session.release(pairs.noisy_count_above("0.99999", domain, above=13))
        assert session.spent("sales") == 1


def test_a_listing_of_nothing_is_a_listing(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "books.db"
    empty = by_shop.noisy_count_above(1, wp.integers(-100, -1), above=60)
    with opened(path, "v") as session:
        assert len(session.release(empty)) == 0
        release = session.release(by_shop.noisy_count(1))
        assert isinstance(release, wp.Release)
        assert release[-5] <= 60
    with Ledger(path) as ledger:
        ledger.verify()
        assert [entry_text(e.kind, e.amount, e.content) for e in ledger.entries()][
            2
        ] == "0 answers, all above 60 in a domain"
        assert ledger.listings(_digest(ledger)) == [{"domain": {"integers": [-100, -1]}, "above": 60.0}]


def _digest(ledger: Ledger) -> str:
    (digest,) = {digest for entry in ledger.entries() for digest in entry.measurements}
    return digest


def test_it_stands_after_a_restart_and_keys_left_out_keep_to_it(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "books.db"
    listing = by_shop.noisy_count_above(1, SHOPS, above=2)
    with opened(path, "v") as session:
        rows = rows_of(session.release(listing))
    with opened(path, "v") as session:
        everything = rows_of(session.release(by_shop.noisy_count(1, over=range(10_000))))
        assert rows == {key: value for key, value in everything.items() if value > 2}
        assert rows_of(session.release(listing)) == rows
        assert session.spent("sales") == 1
    with Ledger(path) as ledger:
        ledger.verify()


RIVALS = """
import json, sys, time
import wpinq as wp

sales = wp.source("sales", zip=str, shop=int, facts=["unit_weights"])
shops = sales.select(lambda s: s.shop)
with wp.Session(sys.argv[1], engine="reference") as session:
    session.protect(sales, [(f"{i:05d}", i % 50) for i in range(4000)], budget=10, version="v")
    shown = {"listed": [], "asked": {}}
    order = range(6) if sys.argv[2] == "0" else range(5, -1, -1)
    for i in order:
        first, above = 100 * i, (3, 1, 2, 4, 0, 2)[i]
        answers = session.release(shops.noisy_count_above(1, wp.integers(first, first + 400), above=above))
        shown["listed"].append([first, above, list(answers.items())])
        some = session.release(shops.noisy_count(1, over=range(90 * i, 90 * i + 40)))
        shown["asked"].update({str(key): value for key, value in some.items()})
    print(json.dumps(shown))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="as the other tests of processes")
def test_rivals_show_one_table(tmp_path: pathlib.Path) -> None:
    """Three processes list and ask at once, in two orders: all that they show is said by one table of noisy values."""
    path = tmp_path / "books.db"
    commands = [[sys.executable, "-c", RIVALS, str(path), str(i % 2)] for i in range(3)]
    running = [subprocess.Popen(c, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for c in commands]
    shown = []
    for process in running:
        out, err = process.communicate(timeout=600)
        assert (process.returncode, err) == (0, b"")
        shown.append(json.loads(out))
    with opened(path, "v", engine="reference") as session:
        table = rows_of(session.release(by_shop.noisy_count(1, over=range(901))))
        assert session.spent("sales") == 1
    for one in shown:
        assert all(table[int(key)] == value for key, value in one["asked"].items())
        for first, above, rows in one["listed"]:
            expected = [[key, table[key]] for key in range(first, first + 401) if table[key] > above]
            assert rows == expected
    with Ledger(path) as ledger:
        ledger.verify()


def test_what_a_rival_does_in_between_is_drawn_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """A listing, or an answer, that is stored after another was drawn and before it was stored: both orders."""
    with Ledger() as books, opened(books, "v") as one, opened(books, "v") as rival:
        listing = by_shop.noisy_count_above(1, wp.integers(0, 400), above=0)
        between = []

        def listed_meanwhile(*given: object, **more: object) -> object:
            monkeypatch.setattr(books, "store_together", honest)
            between.append(rows_of(rival.release(listing)))
            return honest(*given, **more)

        honest = books.store_together
        monkeypatch.setattr(books, "store_together", listed_meanwhile)
        counted = rows_of(one.release(by_shop.noisy_count(1, over=range(401))))
        assert between == [{key: value for key, value in counted.items() if value > 0}]

        def asked_meanwhile(*given: object, **more: object) -> None:
            monkeypatch.setattr(books, "store_listing", listing_honestly)
            between.append(rows_of(rival.release(by_shop.noisy_count(2, over=range(200)))))
            listing_honestly(*given, **more)

        listing_honestly = books.store_listing
        monkeypatch.setattr(books, "store_listing", asked_meanwhile)
        rows = rows_of(one.release(by_shop.noisy_count_above(2, wp.integers(0, 400), above=0)))
        assert {key: value for key, value in rows.items() if key < 200} == {
            k: v for k, v in between[1].items() if v > 0
        }
        assert one.spent("sales") == 3


def test_answers_of_a_listing_say_what_they_are(tmp_path: pathlib.Path) -> None:
    with opened() as session:
        listed = session.release(by_shop.noisy_count_above(1, wp.integers(0, 99_999), above=8))
    assert isinstance(listed, wp.Answers)
    assert listed.listing == Listing(wp.integers(0, 99_999), 8.0)
    assert "selected above 8, from the integers from 0 to 99999" in repr(listed)
    assert {row.kind for row in listed.rows()} == {"count, selected above 8"}
    assert [(row.low, row.high) for row in listed.rows()] == [listed.interval(key) for key in listed.keys]
    assert list(listed.to_pandas()["kind"]) == ["count, selected above 8"] * len(listed)
    with pytest.raises(wp.AnswersError, match="was not listed: its noisy value is at most 8; a count over it"):
        _ = listed[next(key for key in range(1000, 2000) if key not in listed.keys)]
    with pytest.raises(wp.AnswersError, match="not among those released"):
        _ = listed[100_000]
    listed.save(tmp_path / "listed.json")
    assert json.loads((tmp_path / "listed.json").read_text())["version"] == 2
    for copy in (wp.Answers.load(tmp_path / "listed.json"), pickle.loads(pickle.dumps(listed))):
        assert (copy.listing, copy.keys) == (listed.listing, listed.keys)
        assert [copy.interval(key) for key in copy.keys] == [listed.interval(key) for key in listed.keys]
    higher = listed.above(12)
    assert higher.listing == Listing(wp.integers(0, 99_999), 12.0)
    simulated = wp.simulate(by_shop.noisy_count_above(1, SHOPS, above=12), {"sales": ROWS}, seed=3)
    assert simulated.simulated
    assert set(range(50)) - set(simulated.keys) == set()


def test_listings_that_are_none_are_refused_before_the_debit() -> None:
    with opened() as session:
        for measurement, message in (
            (
                lambda: by_shop.noisy_count_above(1, wp.digits(3), above=1),
                "the keys are of type int, and the texts of 3",
            ),
            (lambda: by_shop.noisy_count_above(1, SHOPS, above=-1), "a threshold from 0"),
            (lambda: by_shop.noisy_count_above(1, SHOPS, above=math.nan), "a threshold from 0"),
            (lambda: by_shop.noisy_count_above(1, SHOPS, above=True), "a number of at least 0"),
            (lambda: by_shop.noisy_count_above(1, SHOPS, above=10**400), "a threshold from 0"),
            (lambda: by_shop.noisy_count_above(1, [{1}], above=1), "a key of a domain is a value or a record"),
            (lambda: by_shop.noisy_count_above(1, [], above=1), "from 1 to"),
            (lambda: by_shop.noisy_count_above(1, 7, above=1), "is no domain of keys"),
            (lambda: by_shop.noisy_count_above(1, "12", above=1), "is no domain of keys"),
            (lambda: by_shop.noisy_count_above(1, ["a"], above=1), "the key 'a' cannot be released"),
        ):
            with pytest.raises(wp.PlanError, match=message):
                session.release(measurement())
        with pytest.raises(wp.PlanError, match="NoisySum cannot be listed above a threshold: use a noisy count"):
            _replaced(by_shop.noisy_sum(1, lambda s: s, 0, 1), Listing(SHOPS, 1.0))
        made = _replaced(by_shop.noisy_count(1, over=[1]), Listing(wp.digits(4), 1.0))
        with pytest.raises(wp.PlanError, match="the listing is not over keys of type int"):
            session.release(made)
        assert session.spent("sales") == 0


def _replaced(measurement: wp.Measurement, listing: Listing) -> wp.Measurement:
    from dataclasses import replace

    return replace(measurement, listing=listing)
