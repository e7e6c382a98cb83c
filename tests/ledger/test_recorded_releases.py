"""What debits record of their releases: read again, checked by verify, refused where forged, missing in old ledgers."""

from __future__ import annotations

import copy
import json
import pathlib
import sqlite3
from fractions import Fraction
from typing import Any

import pytest

from tests.support.parameters import for_each
from wpinq.errors import LedgerError
from wpinq.kernel.ledger import chain, ledger_totals
from wpinq.kernel.ledger.ledger import Ledger, Pricing, Terms
from wpinq.measure.delta_reading import Charged, spent_at
from wpinq.measure.renyi import LAPLACE

DELTA = Fraction(1, 10**6)
TENTH = Fraction(1, 10)
ONE, OTHER = ("p", "one"), ("p", "other")


def opened(path: pathlib.Path | None = None) -> Ledger:
    ledger = Ledger(path)
    ledger.open_account("edges", schema="(src: int)", unit="one edge", unit_weight=Fraction(1), budget=100 * 10**9)
    return ledger


def terms(epsilon: Fraction, *parts: tuple[str, str]) -> Terms:
    moved = {"edges": {"edges": Fraction(1)}}
    return Terms(LAPLACE, float(1 / epsilon), moved, {"edges": epsilon}, tuple((key, epsilon) for key in parts))


def buy(ledger: Ledger, digest: str, epsilon: Fraction, part: tuple[str, str] | None = None, *, old: bool) -> None:
    """One release as a session would debit it, or as one of before there were records did."""

    def price(new: frozenset[str], parts_of: Any) -> Pricing:
        held = dict(parts_of("p"))
        before = max(held.values(), default=Fraction(0))
        if part is None:
            owed, parts = epsilon, {}
        else:
            held[part[1]] = held.get(part[1], Fraction(0)) + epsilon
            owed, parts = max(held.values()) - before, {part: held[part[1]]}
        recorded = {} if old else {digest: terms(epsilon, *([part] if part else []))}
        return Pricing({"edges": int(owed * 10**9)}, parts, recorded)

    ledger.debit({digest: "a count"}, price)


def read(*charged: Charged) -> Fraction:
    return spent_at(DELTA, charged, Fraction(100))


def test_what_is_recorded_is_read() -> None:
    with opened() as ledger:
        for number in range(10):
            buy(ledger, f"m{number}", TENTH, old=False)
        assert ledger.spent_at("edges", DELTA) == read(*[Charged(LAPLACE, TENTH)] * 10) < 1
        buy(ledger, "m0", TENTH, old=False)  # a replay
        assert ledger.spent_at("edges", DELTA) == read(*[Charged(LAPLACE, TENTH)] * 10)
        with pytest.raises(LedgerError, match="no account"):
            ledger.spent_at("nobody", DELTA)
        ledger.verify()


def test_entries_say_scale_bound_and_parts_of_their_account_alone() -> None:
    with opened() as ledger:
        ledger.open_account("nodes", schema="(n: int)", unit="one node", unit_weight=Fraction(2), budget=10**10)
        moved = {"edges": {"edges": Fraction(3, 2)}, "nodes": {"nodes": Fraction(1, 3 * 10**30)}}
        costs = {"edges": Fraction(3, 20), "nodes": Fraction(2, 30 * 10**30)}
        both = Terms(LAPLACE, 10.5, moved, costs, ((ONE, TENTH),))
        prices = {"edges": 150_000_000, "nodes": 1}
        ledger.debit({"m": "a count"}, lambda new, parts_of: Pricing(prices, {ONE: TENTH}, {"m": both}))
        asked = "SELECT source, content FROM entries WHERE kind = 'debit'"
        rows = ledger._file.read(lambda connection: connection.execute(asked).fetchall())
        said = {source: json.loads(content)["releases"]["m"] for source, content in rows}
        common = {"noise": "Laplace", "scale": 10.5, "parts": [["p", "one", "1/10"]]}
        assert said == {
            "edges": {**common, "epsilon": 150_000_000, "moves": {"edges": "3/2"}},
            "nodes": {**common, "epsilon": 1, "moves": {"nodes": "1/1000000000000000000"}},  # rounded up
        }
        ledger.verify()


def test_releases_of_before_are_the_worst_case_of_their_debit() -> None:
    with opened() as ledger:
        for number in range(25):
            buy(ledger, f"old {number}", TENTH, old=True)
        assert ledger.spent_at("edges", DELTA) == read(*[Charged("", TENTH)] * 25)
        for number in range(25):
            buy(ledger, f"new {number}", TENTH, old=False)
        mixed = [Charged("", TENTH)] * 25 + [Charged(LAPLACE, TENTH)] * 25
        assert ledger.spent_at("edges", DELTA) == read(*mixed) < 5
        ledger.verify()


@pytest.mark.parametrize("old_first", [True, False])
def test_old_debits_over_parts_are_one_release_of_all_amounts(old_first: bool) -> None:
    """Ten of .1 on one part, then one of 1 on another: the increment of the last is 0, and what it lost is not."""
    with opened() as ledger:
        for number in range(10):
            buy(ledger, f"m{number}", TENTH, ONE, old=old_first)
        buy(ledger, "large", Fraction(1), OTHER, old=True)
        assert ledger.spent_at("edges", DELTA) == min(Fraction(1), read(Charged("", Fraction(1))))
        buy(ledger, "beside", TENTH, old=False)
        buy(ledger, "after", TENTH, OTHER, old=False)
        expected = read(Charged("", Fraction(1)), *[Charged(LAPLACE, TENTH)] * 2)
        assert ledger.spent_at("edges", DELTA) == min(Fraction(12, 10), expected)
        ledger.verify()


def test_many_old_releases_before_those_over_parts_keep_their_own_charges() -> None:
    with opened() as ledger:
        for number in range(200):
            buy(ledger, f"m{number}", TENTH, old=True)
        for number in range(3):
            buy(ledger, f"part {number}", 5 * TENTH, ONE, old=True)
        own = [Charged("", TENTH)] * 200
        assert ledger.spent_at("edges", DELTA) == read(*own, Charged("", 15 * TENTH)) < 12


RELEASE = {"noise": "Laplace", "scale": 10.0, "epsilon": 10**8, "moves": {"edges": "1"}, "parts": [["p", "a", "1/10"]]}
CONTENT = {"measurements": {"m": "a count"}, "parts": [["p", "a", "1/10"]], "releases": {"m": RELEASE}}


def forged(change: dict[str, Any]) -> dict[str, Any]:
    return {**CONTENT, "releases": {"m": {**RELEASE, **change}}}


def written(path: pathlib.Path, content: object, amount: int = 10**8) -> None:
    """A debit as somebody could write it who knows how entries are chained, and what they carry."""
    connection = sqlite3.connect(path, isolation_level=None)
    last = chain.head(connection)
    connection.execute("UPDATE accounts SET spent = spent + ?", (amount,))
    connection.execute("INSERT INTO measurements VALUES (1, 'm')")
    if isinstance(content, dict):
        content = content | {"totals": ledger_totals.now(connection, ledger_totals.of_accounts(connection))}
    row = (last.sequence + 1, "2026-01-01T00:00:00+00:00", "debit", "edges", amount, json.dumps(content))
    values = (*row, chain.chain(last.hash, row))
    connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?)", values)
    connection.execute("INSERT INTO parts VALUES ('p', 'a', ?, '1/10')", (last.sequence + 1,))
    connection.close()


def test_what_the_forgeries_begin_with_is_sound(tmp_path: pathlib.Path) -> None:
    with opened(tmp_path / "ledger.db") as ledger:
        written(tmp_path / "ledger.db", CONTENT)
        ledger.verify()
        assert 0 < ledger.spent_at("edges", DELTA) <= TENTH
    with Ledger(tmp_path / "ledger.db") as ledger:
        assert 0 < ledger.spent_at("edges", DELTA) <= TENTH


@for_each(
    "content",
    [
        {**CONTENT, "releases": []},
        {**CONTENT, "releases": None},
        {**CONTENT, "releases": "m"},
        {**CONTENT, "releases": {}},  # and yet something was debited
        {**CONTENT, "releases": {"m": []}},
        {**CONTENT, "releases": {"m": RELEASE, "n": RELEASE}},
        {**CONTENT, "measurements": []},
        {**CONTENT, "parts": []},
        {**CONTENT, "parts": [["p", "a", "1/11"]]},
        {**CONTENT, "parts": [["p", "a", "1e999999999"]]},
        *(forged({"noise": noise}) for noise in (None, 1, ["Laplace"])),
        *(forged({"scale": scale}) for scale in (0.0, -1.0, float("inf"), float("nan"), 10, "10", None)),
        *(forged({"epsilon": epsilon}) for epsilon in (0, -1, 10**8 - 1, 2**62, 1e8, True, "1", None)),
        *(forged({"moves": {"edges": bound}}) for bound in ("0", "-1", "1e999999999", "1/0", "", 1, None, "9" * 5000)),
        *(forged({"moves": moves}) for moves in ([], "1", None)),
        *(forged({"parts": [part]}) for part in (["p", "b", "1"], ["p", "a", "2/10"], ["p", "a"], [[], "a", "1"], "p")),
        forged({"parts": 1}),
        [],
        "releases",
    ],
)
def test_what_is_forged_is_refused_by_verify_and_by_readings(tmp_path: pathlib.Path, content: object) -> None:
    with opened(tmp_path / "ledger.db") as ledger:
        written(tmp_path / "ledger.db", copy.deepcopy(content))
        with pytest.raises(LedgerError, match="does not follow") as found:
            ledger.verify()
        assert found.value.__cause__ is None
        with pytest.raises(LedgerError, match="verify the ledger") as found:
            ledger.spent_at("edges", DELTA)
        assert found.value.__cause__ is None


@pytest.mark.parametrize("text", ["no JSON", "[" * 100_000, "9" * 10_000, '{"releases": ' * 50_000])
def test_text_that_is_no_content_is_refused(tmp_path: pathlib.Path, text: str) -> None:
    path = tmp_path / "ledger.db"
    with opened(path) as ledger:
        connection = sqlite3.connect(path, isolation_level=None)
        row = (2, "2026-01-01T00:00:00+00:00", "debit", "edges", 1, text)
        connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?)", (*row, bytes(32)))
        connection.close()
        with pytest.raises(LedgerError, match="verify the ledger"):
            ledger.spent_at("edges", DELTA)
        with pytest.raises(LedgerError, match="tampered"):
            buy(ledger, "more", TENTH, old=False)
    with pytest.raises(LedgerError, match="tampered"):
        Ledger(path)


def test_a_debit_that_would_record_what_cannot_be_spends_nothing() -> None:
    cheap = Pricing({"edges": 2 * 10**8}, {}, {"m": terms(TENTH)})
    with opened() as ledger:
        with pytest.raises(LedgerError, match="more was debited"):
            ledger.debit({"m": "a count"}, lambda new, parts_of: cheap)
        assert ledger.account("edges").spent == 0
        ledger.verify()


def test_a_demand_written_as_a_power_of_ten_is_refused_and_not_computed(tmp_path: pathlib.Path) -> None:
    with opened(tmp_path / "ledger.db") as ledger:
        written(tmp_path / "ledger.db", CONTENT)
        connection = sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)
        connection.execute("INSERT INTO parts VALUES ('p', 'b', 1, '1e999999999')")
        connection.close()
        with pytest.raises(LedgerError, match="demand"):
            buy(ledger, "more", TENTH, ONE, old=False)
