"""What each side of a debit is charged: random batches against an independent model in rationals."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

from hypothesis import given, settings, strategies as st

import wpinq as wp
from tests.support.analysts import spent
from wpinq.errors import BudgetExceeded, SourceExhausted
from wpinq.kernel.analysts import AnalystBudgets
from wpinq.kernel.ledger.accounts import declared_account
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.kernel.prepare import DeclaredSource, PreparedBatch, prepare_batch
from wpinq.measure.statement import Event
from wpinq.plan.node import sources

NANO = 10**9
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


def batch_of(asked: Iterable[Asked], ledger: Ledger, analyst: str | None) -> PreparedBatch:
    measurements = [PLACES[place].noisy_count(epsilon) for place, epsilon in sorted(asked)]
    return prepare_batch(measurements, DECLARED, False)


def books(source: int = 10**12, own: int = 10**12, analysts: Iterable[str] = ("alice", "bob", "carol")) -> Ledger:
    ledger = Ledger()
    for name, weight in WEIGHTS.items():
        ledger.open_accounts([declared_account(name, schema="s", unit="u", unit_weight=weight, budget=source)])
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
            ledger.open_accounts([declared_account(name, schema="s", unit="u", unit_weight=weight, budget=own)])
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
            # the same words, amounts and order as in a ledger of one's own
            ours = [shown for shown in one.events() if shown.kind == "debit"]
            assert list(map(_told, ledger.events(who))) == list(map(_told, ours))
            assert [shown.sequence for shown in ledger.events(who)] == list(range(1, len(ours) + 1))
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
    seed.shuffle(shuffled)
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


def test_a_plan_that_pays_in_full_does_so_on_each_side() -> None:
    """Other data added to parts: each of these plans is paid for beside the others, by all who ask for it."""
    ages = PETS.select(lambda p: p.age)
    north, south = (part.select(lambda p: p.age).concat(ages).noisy_count(Fraction(1, 4)) for part in (NORTH, SOUTH))
    with books() as ledger:
        for who, measured in [("alice", north), ("bob", north), ("bob", south), (None, south), ("alice", south)]:
            batch = prepare_batch(measured, DECLARED, False)
            ledger.debit(batch.descriptions, batch.price, analyst=who)
        held = {name: amount for name, amount in spent(ledger).items() if amount}
        half, pets = NANO // 2, 3 * NANO // 4
        assert held == {
            **dict.fromkeys(["people", "people@alice", "people@bob"], half),
            **dict.fromkeys(["pets", "pets@alice", "pets@bob"], pets),
        }


BOUGHT = wp.source("bought", shop=str, person="customer", at_most=20, account="customers")
VISITS = wp.source("visits", page=str, person="user", at_most=5, account="customers")
FRIENDS = wp.source("friends", src=int, dst=int, unit_weight=2, facts=["unit_weights", "symmetric"])
NOTHING: defaultdict[str, dict[str, Fraction]] = defaultdict(dict)
MEASURED = [
    BOUGHT.select(lambda b: b.shop).concat(VISITS.select(lambda v: v.page)).noisy_count(Fraction(1, 7)),
    BOUGHT.partition(lambda b: b.shop, ["a", "b"])["a"].noisy_count(Fraction(1, 3)),
    VISITS.noisy_count(Fraction(2, 11)),
    wp.graphs.triangle_count(FRIENDS, Fraction(1, 9)),
    PETS.join(CATS, lambda p: p.age, lambda c: c.age, lambda p, c: p.age).noisy_count(Fraction(1, 13)),
    PETS.select(lambda p: p.age).noisy_count(Fraction(1, 17)),
]


@given(chosen=st.sets(st.sampled_from(range(len(MEASURED))), min_size=1))
def test_a_batch_is_charged_what_its_bill_says(chosen: set[int]) -> None:
    """What reads no parts is added up by itself; the bill puts all of it through one reckoning."""
    batch = [MEASURED[place] for place in sorted(chosen)]
    declared = {name: DeclaredSource(source, "1", "u") for name, source in sources(m.plan for m in batch).items()}
    priced = prepare_batch(batch, declared, True)
    pricing = priced.price(frozenset(priced.by_digest), NOTHING.__getitem__)
    assert pricing.charges == {account: math.ceil(cost * NANO) for account, cost in wp.bill(batch).items()}
