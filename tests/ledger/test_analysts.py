"""Budgets of analysts within those of the sources: one debit of two sides, against a model of each by itself."""

from __future__ import annotations

import itertools
import json
import math
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wpinq as wp
from wpinq.errors import BudgetExceeded, LedgerError, SourceExhausted
from wpinq.kernel import debits
from wpinq.kernel.analysts import AnalystBudgets
from wpinq.kernel.batches import OrderBatch, prepared
from wpinq.kernel.ledger import Ledger, PartsOf, Price, Pricing
from wpinq.kernel.ledger_backup import backup, restore
from wpinq.kernel.orders import DeclaredSource
from wpinq.measure.statement import Event
from wpinq.plan.node import sources

ROOT = pathlib.Path(__file__).parents[2]
NANO = 10**9


def each(**amounts: int) -> Price:
    """So much of each account for every measurement that is new."""
    return lambda new, parts_of: Pricing({name: amount * len(new) for name, amount in amounts.items()}, {})


def opened(path: pathlib.Path | None = None, budget: int = 100, *analysts: str, own: int = 100) -> Ledger:
    ledger = Ledger(path)
    ledger.open_account("edges", schema="s", unit="one edge", unit_weight=Fraction(1), budget=budget)
    for analyst in analysts or ("alice", "bob"):
        ledger.set_budget("edges", own, analyst)
    return ledger


def spent(ledger: Ledger) -> dict[str, int]:
    return {account.name: account.spent for account in ledger.accounts()}


# two sides of one debit


def test_an_answer_that_another_paid_for_costs_the_own_budget_and_not_the_source() -> None:
    with opened() as ledger:
        assert ledger.debit({"m": "degrees"}, each(edges=5), analyst="alice") == {"m"}
        assert ledger.debit({"m": "degrees", "n": "pairs"}, each(edges=5), analyst="bob") == {"n"}
        assert spent(ledger) == {"edges": 10, "edges@alice": 5, "edges@bob": 10}
        assert ledger.debit({"m": "degrees"}, each(edges=5), analyst="alice") == frozenset()
        assert ledger.debit({"n": "pairs"}, each(edges=5)) == frozenset()  # the curator has what anybody paid for
        assert ledger.debit({"o": "nodes"}, each(edges=5)) == {"o"}
        assert ledger.debit({"o": "nodes"}, each(edges=5), analyst="alice") == frozenset()
        assert spent(ledger) == {"edges": 15, "edges@alice": 10, "edges@bob": 10}
        assert ledger.paid(["m", "n", "o", "p"]) == {"m", "n", "o"}
        assert ledger.paid(["m", "n", "o", "p"], "alice") == {"m", "o"}
        ledger.verify()


def test_the_own_budget_is_refused_first_and_spends_nothing() -> None:
    with opened(None, 4, own=4) as ledger:
        head = ledger.head()
        with pytest.raises(BudgetExceeded, match=r"the budget of alice does not .* 'edges' needs 0\.000000005 and"):
            ledger.debit({"m": "degrees"}, each(edges=5), analyst="alice")
        with pytest.raises(LedgerError, match=r"^carol has no budget for 'edges': the curator gives one$"):
            ledger.debit({"m": "degrees"}, each(edges=1), analyst="carol")
        assert ledger.head() == head


def test_an_exhausted_source_says_the_same_to_all_and_no_amount() -> None:
    said = set()
    for budget, charge, analyst in itertools.product((3, 60), (7, 30), ("alice", "bob")):
        with opened(None, budget, own=1000) as ledger:
            ledger.open_account("nodes", schema="s", unit="u", unit_weight=Fraction(1), budget=1000)
            ledger.set_budget("nodes", 1000, analyst)
            ledger.debit({"before": "x"}, each(edges=budget), analyst="bob")
            head = ledger.head()
            with pytest.raises(SourceExhausted) as refused:
                ledger.debit({"m": "degrees"}, each(edges=charge, nodes=charge), analyst=analyst)
            said.add((str(refused.value), repr(refused.value.__context__), repr(refused.value.__cause__)))
            assert ledger.head() == head
    assert said == {(debits.EXHAUSTED, "None", "None")}
    assert not any(character.isdigit() for character in debits.EXHAUSTED)


def test_an_exhausted_source_still_answers_what_it_paid_for() -> None:
    with opened(None, 5) as ledger:
        ledger.debit({"m": "degrees"}, each(edges=5), analyst="bob")
        assert ledger.debit({"m": "degrees"}, each(edges=5), analyst="alice") == frozenset()
        assert spent(ledger) == {"edges": 5, "edges@alice": 5, "edges@bob": 5}


@pytest.mark.parametrize("name", ["", "a@b", "a/b", "7", "_a", "ä", "a b", "a-b", "a\n", "a" * 65, None, 7])
def test_analysts_have_names_that_are_nothing_else(name: object) -> None:
    with opened() as ledger:
        head = ledger.head()
        with pytest.raises(LedgerError, match="an analyst is named by"):
            AnalystBudgets(ledger, name, {})  # type: ignore[arg-type]
        if name is not None:  # which is nobody, where an analyst need not be named
            for call in (
                lambda: ledger.set_budget("edges", 7, name),  # type: ignore[arg-type]
                lambda: ledger.debit({"m": "degrees"}, each(edges=1), analyst=name),  # type: ignore[arg-type]
                lambda: ledger.quote(["m"], each(edges=1), name),  # type: ignore[arg-type]
                lambda: ledger.balances(name),  # type: ignore[arg-type]
                lambda: ledger.events(name),  # type: ignore[arg-type]
                lambda: ledger.paid(["m"], name),  # type: ignore[arg-type]
            ):
                with pytest.raises(LedgerError, match="an analyst is named by"):
                    call()
        assert ledger.head() == head


def test_no_account_and_no_digest_can_be_taken_for_an_analysts() -> None:
    with opened() as ledger:
        for name in ("edges@alice", "edges@carol", "@", "a@b/c"):
            with pytest.raises(LedgerError, match="would be an analyst's account"):
                ledger.open_account(name, schema="s", unit="u", unit_weight=Fraction(1), budget=1)
        with pytest.raises(LedgerError, match="no @ is in the digest"):
            ledger.debit({"m@alice": "degrees"}, each(edges=1))
        with pytest.raises(LedgerError, match="'edges@alice' is an analyst's account"):
            ledger.set_budget("edges@alice", 5, "bob")
        ledger.open_account("all/edges", schema="s", unit="u", unit_weight=Fraction(1), budget=0)
        with pytest.raises(LedgerError, match="is a table of an account and pays nothing"):
            ledger.set_budget("all/edges", 5, "bob")
        with pytest.raises(LedgerError, match="no account for 'nodes'"):
            ledger.set_budget("nodes", 5, "bob")


def test_the_curator_sets_budgets_of_analysts_on_record() -> None:
    with opened() as ledger:
        assert ledger.set_budget("edges", 50, "alice").remaining == 50
        ledger.debit({"m": "degrees"}, each(edges=50), analyst="alice")
        with pytest.raises(LedgerError, match=r"the budget of 'edges@alice' cannot be 0\.000000049"):
            ledger.set_budget("edges", 49, "alice")
        said = [(e.kind, e.source, e.amount, e.description) for e in ledger.entries() if e.source == "edges@alice"]
        assert said == [
            ("open account", "edges@alice", 100, "budget 0.0000001, unit one edge"),
            ("set budget", "edges@alice", 50, "budget 0.0000001 -> 0.00000005"),
            ("debit", "edges@alice", 50, "degrees"),
        ]
        assert spent(ledger) == {"edges": 50, "edges@alice": 50, "edges@bob": 0}
        assert ledger.debited("") == {}


def test_what_a_run_debited_is_told_for_both_sides() -> None:
    with opened() as ledger:
        ledger.debit({"m": "degrees"}, each(edges=5), run="one", analyst="alice")
        ledger.debit({"m": "degrees"}, each(edges=5), run="two", analyst="bob")
        assert ledger.debited("one") == {"edges": 5, "edges@alice": 5}
        assert ledger.debited("two") == {"edges@bob": 5}


# prices, against a model of rationals


PEOPLE = wp.source("people", region=str, age=int)
PETS = wp.source("pets", kind=str, age=int, unit_weight="3/2")
DECLARED = {
    name: DeclaredSource(source, "declared 1", "u") for name, source in sources([PEOPLE.plan, PETS.plan]).items()
}
NORTH, SOUTH = PEOPLE.partition(lambda p: p.region, ["north", "south"]).values()
YOUNG, OLD = NORTH.concat(NORTH).partition(lambda p: p.age > 50, [False, True]).values()
CATS = PETS.partition(lambda p: p.kind, ["cat"])["cat"]
PLACES = {
    ("people",): PEOPLE,
    ("people", "north"): NORTH,
    ("people", "south"): SOUTH,
    ("people", "north", "young"): YOUNG,
    ("people", "north", "old"): OLD,
    ("pets",): PETS,
    ("pets", "cat"): CATS,
}
WEIGHTS = {"people": Fraction(1), "pets": Fraction(3, 2)}
RATES: dict[tuple[str, ...], int] = {("people", "north", "young"): 2, ("people", "north", "old"): 2}
"""How far a unit in what was split moves the part: young and old split the north twice over."""

Asked = tuple[tuple[str, ...], Fraction]


def owed(asked: Iterable[Asked], place: tuple[str, ...]) -> Fraction:
    """What is asked of a dataset: by what reads it, and by the largest of its parts."""
    asked = list(asked)
    below = {at[: len(place) + 1] for at, _ in asked if len(at) > len(place) and at[: len(place)] == place}
    largest = max((RATES.get(part, 1) * owed(asked, part) for part in below), default=Fraction(0))
    return sum((epsilon for at, epsilon in asked if at == place), Fraction(0)) + largest


@dataclass
class Payer:
    """One who asks for things and pays for each of them once: the independent model of a side."""

    budgets: dict[str, int]
    asked: set[Asked] = field(default_factory=set)
    spent: dict[str, int] = field(default_factory=dict)

    def costs(self, batch: frozenset[Asked]) -> dict[str, int]:
        new = batch - self.asked
        return {
            source: math.ceil(
                (owed(self.asked | new, (source,)) - owed(self.asked, (source,))) * WEIGHTS[source] * NANO
            )
            for source in {place[0] for place, _ in new}
        }

    def covers(self, batch: frozenset[Asked]) -> bool:
        costs = self.costs(batch).items()
        return all(self.spent.get(source, 0) + cost <= self.budgets[source] for source, cost in costs)

    def pay(self, batch: frozenset[Asked]) -> None:
        for source, cost in self.costs(batch).items():
            self.spent[source] = self.spent.get(source, 0) + cost
        self.asked |= batch


def batch_of(asked: Iterable[Asked], ledger: Ledger, analyst: str | None) -> OrderBatch:
    measurements = [PLACES[place].noisy_count(epsilon) for place, epsilon in sorted(asked)]
    return prepared(measurements, DECLARED, False, lambda digests: ledger.paid(digests, analyst))


def books(source: int = 10**12, own: int = 10**12, analysts: Iterable[str] = ("alice", "bob", "carol")) -> Ledger:
    ledger = Ledger()
    for name, weight in WEIGHTS.items():
        ledger.open_account(name, schema="s", unit="u", unit_weight=weight, budget=source)
        for analyst in analysts:
            ledger.set_budget(name, own, analyst)
    return ledger


EPSILONS = st.sampled_from([Fraction(1, 10), Fraction(1, 3), Fraction(2, 7), Fraction("0.25"), Fraction(1)])
BATCHES = st.frozensets(st.tuples(st.sampled_from(sorted(PLACES)), EPSILONS), min_size=1, max_size=4)
WHO = st.sampled_from(["alice", "bob", "carol", None])


@settings(max_examples=80)
@given(
    asked=st.lists(st.tuples(WHO, BATCHES), max_size=12),
    source=st.sampled_from([2 * NANO, 5 * NANO, 10**12]),
    own=st.sampled_from([NANO, 3 * NANO, 10**12]),
)
def test_each_side_is_charged_as_if_it_were_alone(
    asked: list[tuple[str | None, frozenset[Asked]]], source: int, own: int
) -> None:
    sources = Payer(dict.fromkeys(WEIGHTS, source))
    analysts = {name: Payer(dict.fromkeys(WEIGHTS, own)) for name in ("alice", "bob", "carol")}
    alone = {name: Ledger() for name in analysts}
    for ledger in alone.values():
        for name, weight in WEIGHTS.items():
            ledger.open_account(name, schema="s", unit="u", unit_weight=weight, budget=own)
    with books(source, own) as ledger:
        for number, (who, batch) in enumerate(asked):
            measured = batch_of(batch, ledger, who)
            before = ledger.head()
            covered = who is None or analysts[who].covers(batch)
            if who is not None:
                quoted = ledger.quote(measured.by_digest, measured.price, who)
                assert quoted == analysts[who].costs(batch)
            try:
                ledger.debit(measured.descriptions, measured.price, f"{number}", analyst=who)
            except SourceExhausted:
                assert who is not None
                assert covered
                assert not sources.covers(batch)
                assert ledger.head() == before
            except BudgetExceeded:
                assert not covered or (who is None and not sources.covers(batch))
                assert ledger.head() == before
            else:
                assert covered
                assert sources.covers(batch)
                sources.pay(batch)
                if who is not None:
                    analysts[who].pay(batch)
                    mine = batch_of(batch, alone[who], None)
                    alone[who].debit(mine.descriptions, mine.price, f"{number}")
        for name in WEIGHTS:
            assert ledger.account(name).spent == sources.spent.get(name, 0)
            for who, payer in analysts.items():
                assert ledger.account(f"{name}@{who}").spent == payer.spent.get(name, 0)
        for who, one in alone.items():
            # the same words, amounts and order as in a ledger of one's own, and readings at a delta too
            ours = [shown for shown in one.events() if shown.kind == "debit"]
            assert list(map(_told, ledger.events(who))) == list(map(_told, ours))
            assert [shown.sequence for shown in ledger.events(who)] == list(range(1, len(ours) + 1))
            for name in WEIGHTS:
                delta = Fraction(1, 10**6)
                assert ledger.spent_at(name, delta, who) == one.spent_at(name, delta)
        ledger.verify()


def _told(event: Event) -> tuple[str, Fraction, list[str], str]:
    return event.account, event.amount, sorted(event.description.split("; ")), event.label


@settings(max_examples=40)
@given(asked=st.lists(st.tuples(WHO, BATCHES), max_size=8), seed=st.randoms(use_true_random=False))
def test_neither_side_hangs_on_the_order_and_sources_pay_no_more_than_all_who_ask(
    asked: list[tuple[str | None, frozenset[Asked]]], seed: object
) -> None:
    def total(order: list[tuple[str | None, frozenset[Asked]]]) -> tuple[dict[str, int], int]:
        with books() as ledger:
            for who, batch in order:
                rounded = frozenset((place, Fraction(round(epsilon * 1000), 1000)) for place, epsilon in batch)
                measured = batch_of(rounded, ledger, who)
                ledger.debit(measured.descriptions, measured.price, analyst=who)
            return spent(ledger), sum(entry.kind == "debit" for entry in ledger.entries())

    shuffled = list(asked)
    seed.shuffle(shuffled)  # type: ignore[attr-defined]
    found, _ = total(asked)
    assert found == total(shuffled)[0]
    curators = total([(None, batch) for who, batch in asked if who is None])[0]
    for name in WEIGHTS:
        shares = [found[f"{name}@{who}"] for who in ("alice", "bob", "carol")]
        assert max(shares) <= found[name] <= sum(shares) + curators[name]


def test_the_model_knows_what_the_prices_are() -> None:
    assert owed([(("people", "north", "young"), Fraction(1)), (("people", "south"), Fraction(1))], ("people",)) == 2
    with books() as ledger:
        first = batch_of([(("people", "north"), Fraction(1))], ledger, "alice")
        other = batch_of([(("people", "south"), Fraction(1))], ledger, "bob")
        ledger.debit(first.descriptions, first.price, analyst="alice")
        ledger.debit(other.descriptions, other.price, analyst="bob")
        assert spent(ledger) | {"people": NANO, "people@alice": NANO, "people@bob": NANO} == spent(ledger)


def test_a_quote_charges_nothing_and_counts_own_replays_and_parts_alone() -> None:
    with books() as ledger:
        alice, bob = (AnalystBudgets(ledger, name, DECLARED) for name in ("alice", "bob"))
        north, south = NORTH.noisy_count(1), SOUTH.noisy_count(1)
        paying = batch_of([(("people", "north"), Fraction(1))], ledger, "bob")
        ledger.debit(paying.descriptions, paying.price, analyst="bob")
        head = ledger.head()
        assert alice.quote(north) == alice.quote(south) == {"people": 1}
        assert alice.quote([north, south]) == {"people": 1}
        assert bob.quote(north) == {}
        assert bob.quote(south) == {"people": 0}
        assert bob.quote(north, fresh=True) == {"people": 1}
        assert bob.quote([north, north], fresh=True) == {"people": 2}
        assert alice.affords(PETS.noisy_count(400)) == 1
        assert ledger.head() == head


# the file


def test_a_copy_has_both_sides_and_a_ledger_notices_what_is_missing_of_one(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "l.db"
    with opened(path) as ledger:
        ledger.debit({"m": "degrees"}, each(edges=5), analyst="alice")
        before, head = (spent(ledger), ledger.events("alice")), ledger.head()
    backup(path, tmp_path / "copy")
    for suffix in ("", "-head", "-wal", "-shm"):
        pathlib.Path(f"{path}{suffix}").unlink(missing_ok=True)
    restore(tmp_path / "copy", path, head)
    with Ledger(path, create=False, expect_head=head) as ledger:
        assert (spent(ledger), ledger.events("alice")) == before
        ledger.verify()
    for change in (
        "UPDATE accounts SET spent = 0 WHERE name = 'edges@alice'",
        "UPDATE accounts SET budget = 10000 WHERE name = 'edges@alice'",
        "DELETE FROM accounts WHERE name = 'edges@bob'",
        "DELETE FROM measurements WHERE digest = 'm@alice'",
        "UPDATE measurements SET digest = 'm@bob' WHERE digest = 'm@alice'",
    ):
        edited = tmp_path / "edited.db"
        shutil.copy(path, edited)
        connection = sqlite3.connect(edited)
        for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {trigger}")
        connection.execute(change)
        connection.commit()
        connection.close()
        with pytest.raises(LedgerError, match="tampered"):
            Ledger(edited)
        edited.unlink()


@pytest.mark.parametrize("later", [0, 100])
def test_what_only_an_analyst_paid_for_is_noticed(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, later: int
) -> None:
    """No version of wpinq writes such a debit; one that did would give what no source paid for."""
    path = tmp_path / "l.db"
    with opened(path) as ledger, monkeypatch.context() as patched:
        real = debits.entries

        def of_analysts(*arguments: object) -> object:
            return real(*arguments) if arguments[1] != debits.Side() else ()  # type: ignore[arg-type]

        patched.setattr(debits, "entries", of_analysts)
        ledger.debit({"m": "degrees"}, each(edges=5), analyst="alice")
        patched.undo()
        for number in range(later):
            ledger.debit({f"n{number}": "x"}, each(edges=0))
        with pytest.raises(LedgerError, match="there is what an analyst has, and no source"):
            ledger.verify()
    if later:
        Ledger(path).close()  # it is not among the last entries
    else:
        with pytest.raises(LedgerError, match="there is what an analyst has, and no source"):
            Ledger(path)


# processes

COMMON = """
import json, os, shutil, signal, sqlite3, sys
from wpinq.errors import BudgetExceeded, LedgerError, SourceExhausted
from wpinq.kernel.ledger import Ledger, Pricing

path = sys.argv[1]

def say(*words):
    os.write(1, (json.dumps(words) + "\\n").encode())  # one write, which a kill cannot cut in two

def each(amount):
    return lambda new, parts_of: Pricing({"edges": amount * len(new)}, {("p", n): amount for n in new})
"""


def said_by(script: str, path: pathlib.Path) -> list[list[object]]:
    process = subprocess.run(
        [sys.executable, "-c", COMMON + script, str(path)], cwd=ROOT, capture_output=True, text=True, timeout=600
    )
    assert (process.returncode, process.stderr) == (0, ""), process.stderr
    return [json.loads(line) for line in process.stdout.splitlines()]


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="kill -9 and fork are of POSIX")

# Each child dies just before its n-th SQL statement, until one gets to its end.
KILLED = """
def child(number):
    real, count = sqlite3.connect, 0

    def trace(statement):
        nonlocal count
        count += 1
        if count == number:
            os.kill(os.getpid(), signal.SIGKILL)

    def connect(target, **options):
        connection = real(target, **options)
        if target != ":memory:":
            connection.set_trace_callback(trace)
        return connection

    sqlite3.connect = connect
    with Ledger(f"{path}/{number}.db", create=False) as ledger:
        ledger.debit({"m": "count", "n": "count"}, each(5), analyst="bob")
        say(number, "debited")

for number in range(1, 1000):
    shutil.copy(f"{path}/first.db", f"{path}/{number}.db")
    process = os.fork()
    if process == 0:
        child(number)
        os._exit(0)
    if os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0:
        break
    say(number, "killed")
"""


@needs_fork
def test_a_kill_in_the_middle_of_a_debit_leaves_both_sides_or_none(tmp_path: pathlib.Path) -> None:
    with opened(tmp_path / "first.db") as ledger:
        ledger.debit({"m": "count"}, each(edges=5), analyst="alice")
    (tmp_path / "first.db-head").unlink(missing_ok=True)
    reached: dict[object, set[object]] = {}
    for number, word in said_by(KILLED, tmp_path):
        reached.setdefault(number, set()).add(word)
    assert sum("killed" in words for words in reached.values()) > 20
    seen = set()
    for number, words in reached.items():
        with Ledger(tmp_path / f"{number}.db") as ledger:
            ledger.verify()
            found = spent(ledger)
            paid = (ledger.paid(["m", "n"]), ledger.paid(["m", "n"], "bob"))
            both = found["edges"] == 10
            assert found == {"edges": 5 + 5 * both, "edges@alice": 5, "edges@bob": 10 * both}
            assert list(map(sorted, paid)) == ([["m", "n"]] * 2 if both else [["m"], []])
            assert "debited" not in words or found["edges"] == 10
            seen.add(found["edges"])
            ledger.debit({"m": "count", "n": "count"}, each(edges=5), analyst="bob")
            assert spent(ledger) == {"edges": 10, "edges@alice": 5, "edges@bob": 10}
            ledger.verify()
    assert seen == {5, 10}


FIFTY = """
gate, opened = os.pipe()
children = []
for number in range(50):
    process = os.fork()
    if process:
        children.append(process)
        continue
    os.close(opened)
    os.read(gate, 1)  # until all are there, and the parent goes
    name = f"a{number}"
    with Ledger(path, create=False) as ledger:
        for turn in range(8):
            batch = {f"own {number} {turn}": "count", f"shared {turn}": "count"}
            try:
                ledger.debit(batch, each(3), analyst=name)
                say(name, "paid", sorted(batch))
            except SourceExhausted as error:
                say(name, "exhausted", str(error))
            except BudgetExceeded:
                say(name, "refused", [])
    os._exit(0)
os.close(gate)
os.close(opened)
for process in children:
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
"""


@needs_fork
def test_fifty_analysts_in_processes_never_overspend(tmp_path: pathlib.Path) -> None:
    path, names = tmp_path / "l.db", [f"a{number}" for number in range(50)]
    with opened(path, 600, *names, own=12) as ledger:
        for name in names[::2]:
            ledger.set_budget("edges", 1000, name)
    said = said_by(FIFTY, path)
    paid: dict[str, set[str]] = {name: set() for name in names}
    for who, word, batch in said:
        if word == "paid":
            paid[str(who)] |= set(batch)  # type: ignore[call-overload]
    with Ledger(path, create=False) as ledger:
        ledger.verify()
        found = spent(ledger)
        everything = set().union(*paid.values())
        assert found["edges"] == 3 * len(everything) <= 600
        assert found["edges"] > 600 - 6  # until no batch went any more
        for name in paid:
            assert found[f"edges@{name}"] == 3 * len(paid[name]) <= (1000 if name in names[::2] else 12)
            assert ledger.paid(everything, name) == paid[name]
            assert len(ledger.events(name)) == sum(who == name and word == "paid" for who, word, _ in said)
    words = {str(word) for _, word, _ in said}
    assert words == {"paid", "exhausted", "refused"}
    assert {str(text) for _, word, text in said if word == "exhausted"} == {debits.EXHAUSTED}
    assert len(said) == 400


def never(new: frozenset[str], parts_of: PartsOf) -> Pricing:
    raise AssertionError("a replay must not be priced")


def test_a_replay_of_ones_own_is_not_priced() -> None:
    with opened() as ledger:
        ledger.debit({"m": "degrees"}, each(edges=5), analyst="alice")
        assert ledger.debit({"m": "degrees"}, never, analyst="alice") == frozenset()
        assert ledger.quote(["m"], never, "alice") == {}
