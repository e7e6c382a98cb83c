"""The ledger's books: accounts, debits, answers, history, tampering, and files that are no ledgers."""

import contextlib
import hashlib
import json
import math
import os
import pathlib
import re
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from types import FrameType
from typing import Any

import pytest

from tests.support.forging import without_triggers
from wpinq.errors import BudgetExceeded, LedgerError
from wpinq.kernel.ledger import chain, debit, schema, store
from wpinq.kernel.ledger.accounts import declared_account
from wpinq.kernel.ledger.ledger import Account, Ledger, PartsOf, Price, Pricing
from wpinq.measure.statement import entry_text

EPSILON = 10**9
ROOT = pathlib.Path(__file__).parents[2]


def flat(**charges: int) -> Price:
    """A price that does not depend on what is new."""
    return lambda new, parts_of: Pricing(charges, {})


def never(new: frozenset[str], parts_of: PartsOf) -> Pricing:
    raise AssertionError("a replay must not be priced")


def open_account(ledger: Ledger, name: str = "edges", budget: int = EPSILON) -> Account:
    return ledger.open_accounts(
        [declared_account(name, schema="(src: int)", unit="one edge", unit_weight=Fraction(1), budget=budget)]
    )[0]


@pytest.fixture(params=["file", "memory", "postgres"])
def ledger(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Iterator[Ledger]:
    path = tmp_path / "ledger.db" if request.param == "file" else None
    with Ledger(request.getfixturevalue("postgres_ledger") if request.param == "postgres" else path) as opened:
        open_account(opened)
        yield opened
        opened.verify()


# accounts and budgets


def test_an_account_is_found_again_with_what_it_spent(place: str) -> None:
    with Ledger(place) as ledger:
        assert open_account(ledger) == Account("edges", "one edge", Fraction(1), "(src: int)", EPSILON, 0)
        ledger.debit({"m": "degrees"}, flat(edges=7))
    with Ledger(place, create=False) as ledger:
        again = open_account(ledger)
        assert (again.spent, again.remaining) == (7, EPSILON - 7)
        assert ledger.accounts() == (again,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "(src: str)"}, "with the schema '\\(src: int\\)'"),
        ({"unit": "one node"}, "with the unit 'one edge'"),
        ({"unit_weight": Fraction(1, 2)}, "with the unit weight '1'"),
        ({"budget": EPSILON // 2}, "with a budget of 1, not 0.5"),
        ({"budget": EPSILON * 2}, "with a budget of 1, not 2.*set_budget"),
    ],
)
def test_an_account_keeps_its_promise(ledger: Ledger, change: dict[str, object], message: str) -> None:
    same = {"schema": "(src: int)", "unit": "one edge", "unit_weight": Fraction(1), "budget": EPSILON}
    before = list(ledger.entries())
    with pytest.raises(LedgerError, match=message):
        ledger.open_accounts([declared_account("edges", **{**same, **change})])
    assert list(ledger.entries()) == before


@pytest.mark.parametrize("budget", [-1, 2**62, True, 1.0, "1"])
def test_budgets_are_bounded_integers(ledger: Ledger, budget: object) -> None:
    with pytest.raises(LedgerError, match="integer of nano-epsilon"):
        open_account(ledger, "other", budget)
    with pytest.raises(LedgerError, match="integer of nano-epsilon"):
        ledger.set_budget("edges", budget)


@pytest.mark.parametrize("name", ["", "a\0b", "\ud800", None])
def test_names_are_text(ledger: Ledger, name: object) -> None:
    with pytest.raises(LedgerError, match="the name of a source must be text"):
        open_account(ledger, name)


@pytest.mark.parametrize("weight", [Fraction(0), Fraction(-1), True, 1.5])
def test_a_unit_weight_is_a_positive_fraction(ledger: Ledger, weight: object) -> None:
    with pytest.raises(LedgerError, match="positive Fraction"):
        ledger.open_accounts([declared_account("w", schema="s", unit="u", unit_weight=weight, budget=1)])


def test_set_budget_raises_and_lowers_but_never_below_spent(ledger: Ledger) -> None:
    assert ledger.set_budget("edges", 2 * EPSILON).budget == 2 * EPSILON
    ledger.debit({"m": "degrees"}, flat(edges=EPSILON))
    assert ledger.set_budget("edges", EPSILON).remaining == 0
    with pytest.raises(LedgerError, match=r"cannot be 0\.999999999: 1 is spent"):
        ledger.set_budget("edges", EPSILON - 1)
    with pytest.raises(LedgerError, match="no account 'nodes'"):
        ledger.set_budget("nodes", 1)
    assert [(e.kind, e.amount, entry_text(e.kind, e.amount, e.content)) for e in ledger.entries()][1:] == [
        ("set budget", 2 * EPSILON, "budget 1 -> 2"),
        ("debit", EPSILON, "degrees"),
        ("set budget", EPSILON, "budget 2 -> 1"),
    ]


@pytest.mark.parametrize("paid", [0, EPSILON // 3, EPSILON])
def test_a_budget_of_0_is_what_is_spent(ledger: Ledger, paid: int) -> None:
    """Nothing is left, whatever is debited while the curator writes it."""
    if paid:
        ledger.debit({"m": "degrees"}, flat(edges=paid))
    frozen = ledger.set_budget("edges", 0)
    assert (frozen.budget, frozen.spent, frozen.remaining) == (paid, paid, 0)
    assert ledger.account("edges") == frozen
    with pytest.raises(BudgetExceeded):
        ledger.debit({"another": "degrees"}, flat(edges=1))
    ledger.verify()
    assert ledger.set_budget("edges", EPSILON).remaining == EPSILON - paid


def test_the_largest_budget_can_be_spent_and_not_a_nano_more(ledger: Ledger) -> None:
    open_account(ledger, "large", 2**62 - 1)
    with pytest.raises(BudgetExceeded):
        ledger.debit({"m": "all"}, flat(large=2**62))
    with pytest.raises(BudgetExceeded):
        ledger.debit({"m": "all"}, flat(large=10**400))
    ledger.debit({"m": "all"}, flat(large=2**62 - 1))
    with pytest.raises(BudgetExceeded):
        ledger.debit({"n": "more"}, flat(large=1))
    assert ledger.account("large").remaining == 0


# debits


def test_replay_is_free_and_only_the_new_is_priced(ledger: Ledger) -> None:
    assert ledger.debit({"a": "first"}, flat(edges=5)) == {"a"}
    assert ledger.debit({"a": "first"}, never) == frozenset()
    assert ledger.debit({}, never) == frozenset()
    seen: list[frozenset[str]] = []

    def price(new: frozenset[str], parts_of: PartsOf) -> Pricing:
        seen.append(new)
        return Pricing({"edges": len(new)}, {})

    assert ledger.debit({"a": "first", "b": "second", "c": "third"}, price) == {"b", "c"}
    assert seen == [frozenset({"b", "c"})]
    assert ledger.account("edges").spent == 7


def test_a_debit_is_all_or_nothing_across_sources(ledger: Ledger) -> None:
    open_account(ledger, "nodes", 10)
    open_account(ledger, "zones", 20)
    before = (ledger.accounts(), list(ledger.entries()))
    with pytest.raises(BudgetExceeded) as refusal:
        ledger.debit({"m": "join"}, flat(edges=1, nodes=11, zones=21))
    assert "'nodes' needs 0.000000011 and has 0.00000001 left of 0.00000001" in str(refusal.value)
    assert "'zones' needs 0.000000021 and has 0.00000002 left" in str(refusal.value)
    assert "'edges'" not in str(refusal.value)
    assert (ledger.accounts(), list(ledger.entries())) == before
    assert ledger.debit({"m": "join"}, flat(edges=1, nodes=10, zones=0)) == {"m"}
    assert [(e.target, e.amount, e.measurements) for e in ledger.entries() if e.kind == "debit"] == [
        ("edges", 1, ("m",)),
        ("nodes", 10, ("m",)),
        ("zones", 0, ("m",)),
    ]


@pytest.mark.parametrize(
    ("pricing", "message"),
    [
        (Pricing({"nodes": 1}, {}), "no account 'nodes'"),
        (Pricing({}, {}), "every source"),
        (Pricing({"edges": -1}, {}), "at least 0"),
        (Pricing({"edges": True}, {}), "integer"),
        (Pricing({"edges": 1.0}, {}), "integer"),
        (Pricing({"edges": 1}, {("p", "x"): 0.5}), "Fraction"),
        (Pricing({"edges": 1}, {("p", "x"): Fraction(-1)}), "never falls"),
    ],
)
def test_a_pricing_that_is_none_spends_nothing(ledger: Ledger, pricing: Pricing, message: str) -> None:
    before = list(ledger.entries())
    with pytest.raises(LedgerError, match=message):
        ledger.debit({"m": "degrees"}, lambda new, parts_of: pricing)
    assert list(ledger.entries()) == before
    assert ledger.account("edges").spent == 0


def test_a_price_that_fails_spends_nothing(ledger: Ledger) -> None:
    def price(new: frozenset[str], parts_of: PartsOf) -> Pricing:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ledger.debit({"m": "degrees"}, price)
    assert ledger.debit({"m": "degrees"}, flat(edges=1)) == {"m"}


def test_a_debit_that_is_interrupted_midway_is_undone(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    open_account(ledger, "nodes")
    before = (ledger.accounts(), list(ledger.entries()))
    real = chain.append

    def append(connection: sqlite3.Connection, kind: str, target: str, *more: Any) -> int:
        if target == "nodes":
            assert connection.execute("SELECT spent FROM accounts WHERE name = 'edges'").fetchone() == (3,)
            raise KeyboardInterrupt
        return real(connection, kind, target, *more)

    with monkeypatch.context() as patch:
        patch.setattr(debit, "append", append)
        with pytest.raises(KeyboardInterrupt):
            ledger.debit({"m": "join"}, flat(edges=3, nodes=3))
    assert (ledger.accounts(), list(ledger.entries())) == before
    assert ledger.debit({"m": "join"}, flat(edges=3, nodes=3)) == {"m"}


@pytest.mark.parametrize(
    "act",
    [
        lambda ledger: ledger.debit({"n": "other"}, flat(edges=1)),
        lambda ledger: ledger.store_answers("m", {b"k": 1.0}),
        lambda ledger: ledger.verify(),
        lambda ledger: ledger.close(),
    ],
)
def test_a_price_cannot_write_to_the_ledger(ledger: Ledger, act: Callable[[Ledger], object]) -> None:
    def price(new: frozenset[str], parts_of: PartsOf) -> Pricing:
        act(ledger)
        return Pricing({"edges": 1}, {})

    with pytest.raises(LedgerError, match="in the middle of a debit"):
        ledger.debit({"m": "degrees"}, price)
    assert ledger.account("edges").spent == 0


def test_ctrl_c_anywhere_in_a_debit_leaves_no_transaction(ledger: Ledger) -> None:
    """Wherever Python looks for signals: where a function begins and after a call of one in C.

    The traceback is kept, as a console keeps the last one.
    """
    code = (os.path.dirname(store.__file__), contextlib.__file__)
    kept: list[BaseException] = []
    met = place = 0

    def pressing(frame: FrameType, event: str, argument: object) -> None:
        nonlocal met
        met += event in ("call", "c_return") and frame.f_code.co_filename.startswith(code)
        if met == place:
            sys.setprofile(None)
            raise KeyboardInterrupt

    while met >= place:  # the debit was not over before this place
        met, place = 0, place + 1
        sys.setprofile(pressing)
        try:
            ledger.debit({f"m{place}": "degrees"}, flat(edges=1))
        except KeyboardInterrupt as pressed:
            kept.append(pressed)
        finally:
            sys.setprofile(None)
        other = threading.Thread(target=ledger.account, args=("edges",), daemon=True)
        other.start()
        other.join(20)
        assert not other.is_alive(), "the lock is held"
        ledger.debit({f"after m{place}": "degrees"}, flat(edges=1))
    assert len(kept) > 50


@pytest.mark.parametrize("ledger", ["file", "memory"], indirect=True)  # `patiently` is of SQLite
def test_ctrl_c_while_a_transaction_begins_leaves_none(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed(action: Callable[[], Any]) -> Any:
        action()
        signal.raise_signal(signal.SIGINT)

    # where the tests run in the background, a shell has Ctrl-C ignored
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    with monkeypatch.context() as patched:
        patched.setattr(store, "patiently", pressed)
        with pytest.raises(KeyboardInterrupt):
            ledger.debit({"m": "degrees"}, never)
    signal.signal(signal.SIGINT, usual)
    assert ledger.account("edges").spent == 0
    assert ledger.debit({"m": "degrees"}, flat(edges=1)) == {"m"}
    ledger.verify()


def test_demands_accumulate_and_never_fall(ledger: Ledger) -> None:
    def raising(part: str, by: Fraction) -> Price:
        def price(new: frozenset[str], parts_of: PartsOf) -> Pricing:
            before = parts_of("p")
            after = {**before, part: before.get(part, Fraction(0)) + by}
            rise = max(after.values()) - max(before.values(), default=Fraction(0))
            return Pricing({"edges": int(rise * EPSILON)}, {("p", part): after[part]})

        return price

    ledger.debit({"1": "x"}, raising("x", Fraction(1, 4)))
    ledger.debit({"2": "y"}, raising("y", Fraction(1, 4)))
    assert ledger.account("edges").spent == EPSILON // 4
    ledger.debit({"3": "y"}, raising("y", Fraction(1, 4)))
    assert ledger.account("edges").spent == EPSILON // 2

    def falling(new: frozenset[str], parts_of: PartsOf) -> Pricing:
        assert parts_of("p") == {"x": Fraction(1, 4), "y": Fraction(1, 2)}
        assert parts_of("q") == {}
        return Pricing({"edges": 0}, {("p", "y"): Fraction(1, 3)})

    with pytest.raises(LedgerError, match="never falls"):
        ledger.debit({"4": "y"}, falling)


# answers

EXACT = [-0.0, 0.0, 5e-324, -2.2250738585072e-308, 1e308, -1.7976931348623157e308, 0.1, 3.0, 2.0**53, -1e15]


def test_values_come_back_to_the_last_bit(ledger: Ledger) -> None:
    ledger.debit({"m": "degrees"}, flat(edges=1))
    given = {bytes([i]): value for i, value in enumerate(EXACT)}
    for found in (ledger.store_answers("m", given), ledger.answers("m"), ledger.answers("m", list(given))):
        assert [value.hex() for value in found.values()] == [value.hex() for value in EXACT]


def test_the_first_answer_stands(ledger: Ledger) -> None:
    ledger.debit({"m": "degrees", "n": "other"}, flat(edges=1))
    assert ledger.store_answers("m", {b"a": 1.0, b"": 2.0}) == {b"a": 1.0, b"": 2.0}
    assert ledger.store_answers("m", {b"b": 3.0, b"a": 9.0}) == {b"b": 3.0, b"a": 1.0}
    assert ledger.store_answers("m", {b"a": 9.0}) == {b"a": 1.0}
    assert ledger.store_answers("n", {b"a": 4.0}) == {b"a": 4.0}
    assert ledger.store_answers("m", {}) == {}
    assert ledger.answers("m") == {b"": 2.0, b"a": 1.0, b"b": 3.0}
    assert list(ledger.answers("m", iter([b"z", b"b", b"a", b"b"])).items()) == [(b"b", 3.0), (b"a", 1.0)]
    assert ledger.answers("unknown") == {}
    with pytest.raises(LedgerError, match="keys of bytes"):
        ledger.answers("m", ["a"])
    stored = [e for e in ledger.entries() if e.kind == "answers"]
    assert [(e.measurements, entry_text(e.kind, e.amount, e.content), e.amount, e.time) for e in stored] == [
        (("m",), "2 answers", 0, ""),
        (("m",), "1 answers", 0, ""),
        (("n",), "1 answers", 0, ""),
    ]


def test_no_answer_without_a_debit(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="call debit first"):
        ledger.store_answers("m", {b"a": 1.0})
    with pytest.raises(LedgerError, match="call debit first"):
        ledger.store_answers("m", {})


@pytest.mark.parametrize(
    "bad",
    [(b"b", v) for v in (float("nan"), float("inf"), -float("inf"), 1, True, "1", None)]
    + [("b", 1.5), (1, 1.5), (memoryview(b"b"), 1.5)],
)
def test_answers_are_finite_floats_for_keys_of_bytes(ledger: Ledger, bad: tuple[bytes, float]) -> None:
    ledger.debit({"m": "degrees"}, flat(edges=1))
    with pytest.raises(LedgerError, match="finite floats"):
        ledger.store_answers("m", {b"a": 1.0, bad[0]: bad[1]})
    assert ledger.answers("m") == {}


def test_answers_of_heads_and_tails_are_stored_as_those_of_their_keys(ledger: Ledger) -> None:
    ledger.debit({"m": "degrees", "n": "other"}, flat(edges=1))
    heads, tails = [b"sc", b"sa", b"sbb"], [b"upper", b"low"]
    keys, numbers = [head + tail for head in heads for tail in tails], [1.5, -0.0, 2.5, 3.5, 5e-324, 1e308]
    assert ledger.store_together({"m": (heads, tails, numbers)}) == {"m": numbers}
    assert [value.hex() for value in ledger.answers("m", keys).values()] == [value.hex() for value in numbers]
    ledger.store_answers("n", dict(zip(keys, numbers, strict=True)))
    one, other = [e.content for e in ledger.entries() if e.kind == "answers"]
    assert (one["count"], one["tails"], other["count"], other["tails"]) == (6, [b"upper".hex(), b"low".hex()], 6, [""])
    assert [*ledger.answers("m").items()] == [*ledger.answers("n").items()]
    later = ledger.store_together({"m": ([b"sd", b"sa"], tails, [7.0, 8.0, 9.0, 9.0])})
    assert later == {"m": [7.0, 8.0, 2.5, 3.5]}, "the first answer stands"
    for numbers in ([1.0], [1.0, 2.0, 3.0]):
        with pytest.raises(LedgerError, match="nothing was stored"):
            ledger.store_together({"m": ([b"se"], tails, numbers)})


def test_answers_of_the_earlier_layout_are_read(ledger: Ledger) -> None:
    given = {bytes([i]) * i: value for i, value in enumerate(EXACT)}
    packed = b"".join(struct.pack(f">Q{len(key)}sd", len(key), key, value) for key, value in given.items())

    def stored(transaction: chain.Transaction) -> None:
        content = {"count": len(given), "digest": hashlib.sha256(packed).hexdigest()}
        entry = chain.append(transaction, chain.ANSWERS, "m", 0, content)
        transaction.execute("INSERT INTO answers VALUES (?, ?, ?)", ("m", entry, packed))

    ledger.debit({"m": "degrees"}, flat(edges=1))
    ledger._store.write(stored)
    assert ledger.store_answers("m", {b"new": 7.0, b"\1": 9.0}) == {b"new": 7.0, b"\1": 0.0}
    found = ledger.answers("m")
    assert found.pop(b"new") == 7.0
    assert [(key, value.hex()) for key, value in found.items()] == [(key, given[key].hex()) for key in sorted(given)]
    ledger.verify()


def test_a_listing_is_stored_in_an_order_of_its_keys_alone(ledger: Ledger) -> None:
    ledger.debit({"m": "degrees", "n": "other"}, flat(edges=1))
    rows = {b"sb": 1.5, b"sccc": 2.5, b"sa": 3.5}
    for digest, order in (("m", rows), ("n", dict(reversed(rows.items())))):
        ledger.store_listing(digest, order, {"above": 1.0}, listings=0, answers=0)
    one, other = [e.content for e in ledger.entries() if e.kind == "answers"]
    assert one == other


def test_many_answers(ledger: Ledger) -> None:
    ledger.debit({"m": "degrees"}, flat(edges=1))
    given = {i.to_bytes(8, "big"): i / 3 for i in range(50_000)}
    assert ledger.store_answers("m", given) == given
    later = {i.to_bytes(8, "big"): -1.0 for i in range(49_990, 50_010)}
    stands = ledger.store_answers("m", later)
    assert [stands[key] == -1.0 for key in later] == [False] * 10 + [True] * 10
    assert ledger.answers("m", given) == given


# history


def test_the_history_can_be_read_in_pages_while_it_grows(ledger: Ledger) -> None:
    for i in range(700):
        ledger.debit({str(i): "two\n lines "}, flat(edges=1))
    history = ledger.entries()
    first = next(history)
    ledger.debit({"late": "late"}, flat(edges=1))
    rest = list(history)
    assert (first.sequence, first.kind, entry_text(first.kind, first.amount, first.content)) == (
        1,
        "open account",
        "budget 1, unit one edge",
    )
    assert [entry.sequence for entry in rest] == list(range(2, 703))
    assert (
        entry_text(rest[0].kind, rest[0].amount, rest[0].content),
        entry_text(rest[-1].kind, rest[-1].amount, rest[-1].content),
    ) == ("two lines", "late")
    assert len({entry.hash for entry in rest}) == 701
    assert first.time.endswith("+00:00")
    assert sum(entry.amount for entry in rest) == ledger.account("edges").spent


TABLES = ["accounts", "entries", "measurements", "plans", "parts", "answers"]


@pytest.fixture
def books(tmp_path: pathlib.Path) -> pathlib.Path:
    """A ledger with two rows or more in every table."""
    path = tmp_path / "books.db"
    with Ledger(path) as ledger:
        open_account(ledger)
        open_account(ledger, "nodes")
        demands = {("p", "x"): Fraction(1, 3), ("p", "y"): Fraction(1)}
        price = lambda new, parts_of: Pricing({"edges": 5, "nodes": 6}, demands)  # noqa: E731
        ledger.debit({"m": "join"}, price, plan="plan of {}".format)
        ledger.store_answers("m", {b"a": 1.0, b"b": 2.0})
        ledger.set_budget("edges", 2 * EPSILON)
        ledger.debit({"n": "other", "o": "third"}, flat(edges=5), plan="plan of {}".format)
        ledger.store_answers("n", {b"a": 1.5})
        ledger.verify()
    return path


def test_a_plan_is_kept_once_and_not_written_again_where_answers_stand() -> None:
    written: list[str] = []

    def plan(digest: str) -> str:
        written.append(digest)
        return f"plan of {digest}"

    with Ledger() as ledger:
        open_account(ledger)
        for _ in range(2):
            ledger.debit({"m": "join"}, flat(edges=5), plan=plan)
        ledger.store_answers("m", {b"a": 1.0})
        ledger.answers("m")
        del written[:]
        assert ledger.debit({"m": "join", "n": "other"}, flat(edges=5), plan=plan) == {"n"}
        assert ledger.debit({"m": "join"}, flat(edges=5), plan=plan) == frozenset()
        assert written == ["n"]
        assert [*ledger.plans().values()] == [{"m": "plan of m"}, {"n": "plan of n"}]
        ledger.verify()


def raw(path: pathlib.Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None)


@pytest.mark.parametrize("table", TABLES)
def test_nothing_is_deleted_changed_or_replaced(books: pathlib.Path, table: str) -> None:
    connection = raw(books)
    before = connection.execute(f"SELECT * FROM {table}").fetchall()
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    statements = [f"DELETE FROM {table}", f"INSERT OR REPLACE INTO {table} SELECT * FROM {table}"]
    if table == "accounts":
        statements += ["UPDATE accounts SET spent = spent - 1", "UPDATE accounts SET spent = budget + 1"]
        columns = ["name", "schema", "unit", "unit_weight"]
        statements.append("INSERT INTO accounts VALUES ('free', 's', 'u', '1', 10, 1, 0)")
    statements += [f"UPDATE {table} SET {column} = {column} || 'x'" for column in columns]
    for statement in statements:
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute(statement)
    assert connection.execute(f"SELECT * FROM {table}").fetchall() == before
    connection.close()
    with Ledger(books) as ledger:
        ledger.verify()


def cells() -> list[tuple[str, str]]:
    with sqlite3.connect(":memory:") as connection:
        schema.create(connection)
        found = [(t, row[1]) for t in TABLES for row in connection.execute(f"PRAGMA table_info({t})")]
    connection.close()
    return found


@pytest.mark.parametrize(("table", "column"), cells())
@pytest.mark.parametrize("which", ["first", "last"])
def test_a_tampered_cell_is_found(books: pathlib.Path, table: str, column: str, which: str) -> None:
    connection = raw(books)
    rows = connection.execute(f"SELECT * FROM {table}").fetchall()
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    row = rows[0 if which == "first" else -1]
    value = row[columns.index(column)]
    other: object
    if column == "kind":
        other = "set budget" if value != "set budget" else "debit"
    elif column == "suspended":
        other = 1 - value
    elif isinstance(value, bytes):
        other = value[:-1] + bytes([value[-1] ^ 1])
    else:
        other = value + 100 if isinstance(value, int) else value + "1"
    where = " AND ".join(f"{name} IS ?" for name in columns)
    connection.close()
    with without_triggers(books) as connection:
        changed = connection.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (other, *row))
        assert changed.rowcount == 1
    with pytest.raises(LedgerError, match=r"has been tampered with|does not hold entry") as found:
        Ledger(books)
    if table == "entries" and column != "sequence":
        assert f"entry {row[0]}" in str(found.value)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("which", ["min", "max"])
def test_a_deleted_row_is_found(books: pathlib.Path, table: str, which: str) -> None:
    order = {"accounts": "name", "entries": "sequence", "parts": "part"}.get(table, "entry")
    with without_triggers(books) as connection:
        bound = f"(SELECT {which}({order}) FROM {table})"
        assert connection.execute(f"DELETE FROM {table} WHERE {order} = {bound}").rowcount >= 1
    with pytest.raises(LedgerError, match=r"has been tampered with|does not hold entry"):
        Ledger(books)


def forged(kind: str, target: str, amount: int, **content: object) -> tuple[str, str, str, int, str]:
    return kind, "", target, amount, json.dumps(content)


@pytest.mark.parametrize(
    "entry",
    [
        forged("open account", "edges", 5, schema="s", unit="u", unit_weight="1"),
        forged("open account", "new", 5, schema=["s"], unit="u", unit_weight="1"),
        forged("open account", "new", 5, schema="s"),
        forged("open account", "new", 5, schema="s", unit="u", unit_weight=1),
        forged("set budget", "edges", 20, previous=1),
        forged("set budget", "edges", 9, previous=2 * EPSILON),
        forged("set budget", "nobody", 20, previous=1),
        forged("set budget", "edges", 20, previous=2**70),
        forged("debit", "nobody", 1, measurements={"x": "x"}, parts=[], plans={}),
        forged("debit", "edges", 3 * EPSILON, measurements={"x": "x"}, parts=[], plans={}),
        forged("debit", "edges", 2**62 - 1, measurements={"x": "x"}, parts=[], plans={}),
        forged("debit", "edges", 1, measurements=["\ud800"], parts=[], plans={}),
        forged("debit", "edges", 1, measurements={"x": "x"}, parts=[["p", "x"]]),
        forged("debit", "edges", 1, measurements={"x": "x"}, parts=[["p", "x", {}]]),
        forged("answers", "unknown", 0, count=1, digest="d"),
        forged("suspend", "nobody", 0),
        forged("carry", "", 0),
        ("debit", "", "edges", 1, "[]"),
        ("debit", "", "edges", 1, "no JSON"),
        ("debit", "", "edges", 1, "[" * 100_000),
    ],
)
def test_an_entry_that_cannot_have_happened_is_found(
    books: pathlib.Path, entry: tuple[str, str, str, int, str]
) -> None:
    connection = raw(books)
    last = chain.head(connection)
    row = (last.sequence + 1, "2026-01-01T00:00:00+00:00", *entry)
    chained = chain.link(last.hash, row)
    connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*row[:6], chained, row[6]))
    connection.close()
    with pytest.raises(LedgerError, match=f"entry {last.sequence + 1} does not follow") as found:
        Ledger(books)
    assert found.value.__cause__ is None


def test_missing_triggers_are_found(books: pathlib.Path) -> None:
    with Ledger(books) as ledger:
        connection = raw(books)
        connection.execute("DROP TRIGGER entries_delete")
        connection.close()
        with pytest.raises(LedgerError, match="triggers are not those of a ledger"):
            ledger.verify()
    with pytest.raises(LedgerError, match="triggers are not those of a ledger"):
        Ledger(books)


def test_the_schema_itself_refuses_to_overspend(books: pathlib.Path) -> None:
    connection = raw(books)
    with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
        connection.execute("UPDATE accounts SET spent = budget + 1")
    connection.close()


def test_commits_wait_for_the_disk(books: pathlib.Path) -> None:
    with Ledger(books) as ledger:
        settings = ["PRAGMA journal_mode", "PRAGMA synchronous"]
        found = ledger._store.read(lambda connection: [connection.execute(each).fetchone() for each in settings])
    assert found == [("wal",), (2,)]


# files


def test_files_that_are_no_ledgers_are_refused_and_untouched(tmp_path: pathlib.Path) -> None:
    other = tmp_path / "other.db"
    connection = raw(other)
    connection.execute("CREATE TABLE accounts (name TEXT)")
    connection.close()
    (tmp_path / "notes.txt").write_text("not a database, but long enough to be read as one" * 100)
    (tmp_path / "short").write_text("x")
    for name in ("other.db", "notes.txt", "short"):
        content = (tmp_path / name).read_bytes()
        for create in (True, False):
            with pytest.raises(LedgerError, match="not a ledger"):
                Ledger(tmp_path / name, create=create)
        assert (tmp_path / name).read_bytes() == content
    assert sorted(os.listdir(tmp_path)) == ["notes.txt", "other.db", "short"]


def test_a_ledger_of_another_format_is_refused(books: pathlib.Path) -> None:
    connection = raw(books)
    connection.execute("PRAGMA user_version = 5")
    connection.close()
    with pytest.raises(LedgerError, match="format 5 and this wpinq reads format 6"):
        Ledger(books)


LISTING = {"domain": {"integers": [0, 9]}, "above": 2.0}


def listed(path: str | pathlib.Path) -> None:
    """A ledger with an answer, a listing of one row, and a listing of none."""
    with Ledger(path) as ledger:
        ledger.open_accounts([declared_account("people", schema="s", unit="u", unit_weight=Fraction(1), budget=10)])
        ledger.debit({"d": "NoisyCount"}, lambda new, parts: Pricing({"people": 1}, {}))
        assert ledger.store_answers("d", {b"k": 1.0}) == {b"k": 1.0}
        ledger.store_listing("d", {b"l": 3.0}, LISTING, listings=0, answers=1)
        ledger.store_listing("d", {}, {**LISTING, "above": 1.5}, listings=1, answers=2)
        ledger.verify()


def test_a_listing_is_stored_where_nothing_came_in_between(place: str) -> None:
    listed(place)
    with Ledger(place) as ledger:
        assert ledger.listings("d") == [LISTING, {**LISTING, "above": 1.5}]
        assert ledger.listings("another") == []
        assert ledger.answers("d") == {b"k": 1.0, b"l": 3.0}
        for listings, answers in ((1, 2), (2, 1), (3, 2), (2, 3)):
            ledger.store_listing("d", {b"m": 9.0}, LISTING, listings=listings, answers=answers)
        assert ledger.store_answers("d", {b"n": 9.0}) is None
        assert ledger.store_answers("d", {b"n": 9.0}, 1) is None
        assert ledger.answers("d") == {b"k": 1.0, b"l": 3.0}
        assert ledger.store_answers("d", {b"n": 0.5}, 2) == {b"n": 0.5}
        for rows, digest in (({b"m": math.nan}, "d"), ({}, "never debited")):
            with pytest.raises(LedgerError, match=r"finite floats|call debit first"):
                ledger.store_listing(digest, rows, LISTING, listings=2, answers=3)
        ledger.verify()
        assert [entry_text(entry.kind, entry.amount, entry.content) for entry in ledger.entries()][-2:] == [
            "0 answers, all above 1.5 in a domain",
            "1 answers",
        ]


@pytest.mark.parametrize(
    "forgery",
    [
        "DELETE FROM answers WHERE entry = 4",
        "UPDATE answers SET entry = 6 WHERE entry = 4",
        "INSERT INTO answers VALUES ('d', 2, x'')",
        "UPDATE entries SET content = replace(content, '2.0', '1.0') WHERE sequence = 4",
    ],
)
def test_a_listing_that_was_tampered_with_is_found_out(forgery: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "books.db"
    listed(path)
    with without_triggers(path) as connection:
        connection.execute(forgery)
    with pytest.raises(LedgerError, match="tampered"), Ledger(path) as ledger:
        ledger.verify()


def test_listings_only_grow(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "books.db"
    listed(path)
    connection = raw(path)
    for change in (
        "DELETE FROM answers",
        "UPDATE answers SET entry = 9",
        "INSERT OR REPLACE INTO answers VALUES ('d', 4, x'')",
    ):
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute(change)
    connection.close()


def test_accounts_are_opened_all_or_none(place: str) -> None:
    def terms(name: str, unit: str = "one person") -> Account:
        return Account(name, unit, Fraction(1), "s", 0, 0)

    with Ledger(place) as ledger:
        before = (ledger.accounts(), list(ledger.entries()))
        seen = []

        def refuse(known: tuple[Account, ...]) -> None:
            seen.append(known)
            raise LedgerError("not these")

        with pytest.raises(LedgerError, match="not these"):
            ledger.open_accounts([terms("all"), terms("all/one")], refuse)
        assert seen == [before[0]]
        with pytest.raises(LedgerError, match="with the unit 'one person'"):
            ledger.open_accounts([terms("all"), terms("all/one"), terms("all", "one household")])
        assert (ledger.accounts(), list(ledger.entries())) == before
        opened = ledger.open_accounts([terms("all"), terms("all/one")])
        assert [account.name for account in opened] == ["all", "all/one"]
        ledger.verify()
    with Ledger(place) as ledger:
        assert ledger.open_accounts([terms("all"), terms("all/one")]) == opened


def test_paths_that_cannot_be(tmp_path: pathlib.Path) -> None:
    with pytest.raises(LedgerError, match="create it first"):
        Ledger(tmp_path / "no" / "ledger.db")
    with pytest.raises(LedgerError, match="there is no such file"):
        Ledger(tmp_path / "ledger.db", create=False)
    with pytest.raises(LedgerError, match="must be a file"):
        Ledger(tmp_path)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("create", [True, False])
def test_an_empty_file_is_no_ledger(tmp_path: pathlib.Path, create: bool) -> None:
    path = tmp_path / "empty.db"
    path.touch()
    with pytest.raises(LedgerError, match="is empty: put the ledger back"):
        Ledger(path, create=create)
    assert os.listdir(tmp_path) == ["empty.db"]


def test_a_name_of_odd_letters_is_a_name(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "odd ?#%41é.db"
    with Ledger(path) as ledger:
        open_account(ledger)
    with Ledger(str(path), create=False) as ledger:
        assert ledger.account("edges").budget == EPSILON
    assert sorted(os.listdir(tmp_path)) == [path.name, f"{path.name}-head"]


def test_a_relative_path_means_the_same_file_after_a_change_of_directory(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    with Ledger("ledger.db") as ledger:
        open_account(ledger)
        monkeypatch.chdir(tmp_path / "other")
        ledger.debit({"m": "degrees"}, flat(edges=1))
    assert os.listdir(tmp_path / "other") == []


@pytest.mark.parametrize("replaced", [False, True])
def test_a_ledger_that_is_gone_takes_no_debit(tmp_path: pathlib.Path, replaced: bool) -> None:
    path = tmp_path / "ledger.db"
    with Ledger(path) as ledger:
        open_account(ledger)
        os.rename(path, tmp_path / "moved.db")
        if replaced:
            path.touch()
        with pytest.raises(LedgerError, match="removed or replaced"):
            ledger.debit({"m": "degrees"}, flat(edges=1))


def test_a_closed_ledger_says_so(tmp_path: pathlib.Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.close()
    ledger.close()
    for act in (ledger.accounts, ledger.verify, lambda: list(ledger.entries()), lambda: open_account(ledger)):
        with pytest.raises(LedgerError, match="is closed"):
            act()


def test_damage_is_an_error_that_explains(books: pathlib.Path) -> None:
    content = bytearray(books.read_bytes())
    content[4096 + 8 :] = os.urandom(16) * ((len(content) - 4104) // 16)
    books.write_bytes(content)
    with pytest.raises(LedgerError, match="damaged"), Ledger(books) as ledger:
        ledger.verify()


READ_ONLY = """
import os, sys
from wpinq.errors import LedgerError
from wpinq.kernel.ledger.accounts import declared_account
from wpinq.kernel.ledger.ledger import Ledger, Pricing
directory, changed, mode, directory_mode = sys.argv[1], sys.argv[2].split(), int(sys.argv[3], 8), int(sys.argv[4], 8)
with Ledger(f"{directory}/ledger.db") as ledger:
    ledger.open_accounts([declared_account("edges", schema="s", unit="u", unit_weight=1, budget=10)])
    ledger.debit({"m": "old"}, lambda new, parts_of: Pricing({"edges": 3}, {}))
for name in os.listdir(directory):
    os.chmod(f"{directory}/{name}", mode if name in changed else 0o666)
os.chmod(directory, directory_mode)
if os.geteuid() == 0:  # permissions do not bind root
    os.setuid(65534)
try:
    with Ledger(f"{directory}/ledger.db") as ledger:
        ledger.verify()
        print(ledger.account("edges").spent)
        ledger.debit({"new": "new"}, lambda new, parts_of: Pricing({"edges": 1}, {}))
except LedgerError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of another kind")
@pytest.mark.parametrize(
    ("changed", "mode", "directory_mode", "read", "told"),
    [
        (
            "ledger.db ledger.db-head",
            "444",
            "777",
            True,
            "read-only, .*: make {0}/ledger.db, .*{0}/ledger.db-head writ",
        ),
        ("ledger.db-head", "444", "777", True, "read-only, and a debit must be recorded: make {0}/ledger.db-head writ"),
        ("ledger.db-head", "000", "777", False, "cannot be read: make {0}/ledger.db-head readable and writable"),
        ("ledger.db", "000", "777", False, "cannot be read: make {0}/ledger.db readable and writable"),
        ("", "666", "555", False, "read-only, and a debit must be recorded: make {0} writable"),
    ],
)
def test_what_may_not_be_read_or_written_is_named(
    changed: str, mode: str, directory_mode: str, read: bool, told: str
) -> None:
    with tempfile.TemporaryDirectory() as directory:  # a path that every user can walk, unlike tmp_path
        command = [sys.executable, "-c", READ_ONLY, directory, changed, mode, directory_mode]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
        os.chmod(directory, 0o777)
    assert done.stderr == ""
    *spent, refusal = done.stdout.splitlines()
    assert spent == ["3"] * read
    assert re.search(told.format(re.escape(directory)), refusal), refusal


# threads


@pytest.mark.parametrize("kind", ["file", "memory", "postgres"])
def test_threads_spend_what_there_is_and_no_more(
    request: pytest.FixtureRequest, tmp_path: pathlib.Path, kind: str
) -> None:
    accepted: list[int] = []

    def spend(number: int) -> None:
        start.wait()
        for i in range(20):
            amount = 1 + (number * 20 + i) % 7
            try:
                ledger.debit({f"{number}.{i}": "count"}, flat(edges=amount))
            except BudgetExceeded:
                continue
            accepted.append(amount)
            ledger.store_answers(f"{number}.{i}", {b"": float(number)})
            assert ledger.answers(f"{number}.{i}") == {b"": float(number)}

    start = threading.Barrier(16)
    paths = {"file": tmp_path / "ledger.db", "memory": None}
    with Ledger(paths[kind] if kind in paths else request.getfixturevalue("postgres_ledger")) as ledger:
        open_account(ledger, budget=600)
        threads = [threading.Thread(target=spend, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert 600 - 7 < sum(accepted) == ledger.account("edges").spent <= 600
        assert len(accepted) < 320
        ledger.verify()


def test_two_ledgers_at_one_place_see_each_other(place: str) -> None:
    with Ledger(place) as one, Ledger(place) as two:
        open_account(one, budget=10)
        two.debit({"m": "degrees"}, flat(edges=6))
        with pytest.raises(BudgetExceeded):
            one.debit({"n": "degrees"}, flat(edges=5))
        assert one.debit({"m": "degrees"}, never) == frozenset()
        assert one.store_answers("m", {b"a": 1.0}) == two.store_answers("m", {b"a": 2.0})


def test_a_reader_does_not_wait_for_a_writer(place: str) -> None:
    with Ledger(place) as writer:
        open_account(writer)

        def price(new: frozenset[str], parts_of: PartsOf) -> Pricing:
            with Ledger(place) as reader:
                assert reader.account("edges").spent == 0
                reader.verify()
            return Pricing({"edges": 1}, {})

        writer.debit({"m": "degrees"}, price)
        assert writer.account("edges").spent == 1


def test_a_writer_that_waits_too_long_is_told(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wpinq.kernel.ledger.store.PATIENCE", 0.05)
    with Ledger(place) as one, Ledger(place) as two:
        open_account(one)

        def price(new: frozenset[str], parts_of: PartsOf) -> Pricing:
            with pytest.raises(LedgerError, match="nothing was recorded, try again"):
                two.debit({"n": "other"}, flat(edges=1))
            return Pricing({"edges": 2}, {})

        one.debit({"m": "degrees"}, price)
        assert two.account("edges").spent == 2


def test_answers_that_are_too_large_for_one_value_take_several_entries(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wpinq.kernel.ledger.debit._LARGEST", 100)
    given = {b"k" * i: float(i) for i in range(30, 0, -1)}
    with Ledger(place) as ledger:
        open_account(ledger)
        ledger.debit({"m": "degrees"}, flat(edges=1))
        assert ledger.store_answers("m", given) == given
        ledger.store_listing("m", {b"l" * i: 0.5 for i in range(1, 31)}, LISTING, listings=0, answers=30)
    with Ledger(place) as ledger:
        ledger.verify()
        assert ledger.answers("m") == given | {b"l" * i: 0.5 for i in range(1, 31)}
        assert ledger.listings("m") == [LISTING]
        counts = [
            entry_text(entry.kind, entry.amount, entry.content).split(",")[0]
            for entry in ledger.entries()
            if entry.kind == "answers"
        ]
    assert counts == ["2 answers"] * 30


def test_what_is_remembered_of_measurements_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wpinq.kernel.ledger.ledger._REMEMBERED", 10)
    with Ledger() as ledger:
        open_account(ledger)
        ledger.debit({str(number): "degrees" for number in range(20)}, flat(edges=1))
        for number in range(20):
            ledger.store_answers(str(number), {b"%d" % key: float(key) for key in range(number)})
            for again in range(number + 1):
                assert len(ledger.answers(str(again))) == again
                remembered = ledger._remembered
                assert list(remembered)[-1] == str(again)
                sizes = [len(each.answers) for each in remembered.values()]
                assert sum(sizes) - max(sizes) <= 10


def test_answers_whose_commit_fails_are_not_taken_for_stored(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Ledger(tmp_path / "ledger.db") as ledger:
        open_account(ledger)
        ledger.debit({"m": "degrees"}, flat(edges=1))
        assert ledger.answers("m") == {}

        def fail(*_: object) -> None:
            raise sqlite3.OperationalError("disk I/O error")

        with monkeypatch.context() as patched:
            patched.setattr("wpinq.kernel.ledger.debit.append", fail)
            with pytest.raises(LedgerError, match="disk I/O error"):
                ledger.store_answers("m", {b"a": 1.0})
        assert ledger.answers("m") == {}
        assert ledger.store_answers("m", {b"a": 2.0}) == {b"a": 2.0}
        ledger.verify()
