"""What an analyst is answered, charged and shown: the same whoever else asks for what, but for an exhausted source."""

from __future__ import annotations

import itertools
import pickle
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import pytest
from scipy import stats

import wpinq as wp
from wpinq.kernel import noisy_evaluation
from wpinq.kernel.analysts import Analyst
from wpinq.kernel.ledger.debit import EXHAUSTED
from wpinq.sinks.count_above import Listing

EDGES = wp.source("edges", src=int, dst=int, unit="one directed edge", facts=["unit_weights"])
ROWS = [(i, i + j) for i in range(12) for j in (1, 2, 3)]
NODES = EDGES.select(lambda e: e.src)
COUNT = NODES.noisy_count("0.25", over=range(8))


def opened(budget: float = 100, own: float = 50, analysts: str = "alice bob") -> wp.Session:
    session = wp.Session(engine="reference")
    session.protect(EDGES, ROWS, budget=budget, version="1")
    for analyst in analysts.split():
        session.set_budget("edges", own, analyst=analyst)
    return session


@pytest.fixture
def session() -> Iterator[wp.Session]:
    with opened() as made:
        yield made


def test_what_another_paid_for_is_answered_from_there_and_paid_from_the_own_budget(session: wp.Session) -> None:
    alice, bob = session.analyst("alice"), session.analyst("bob")
    first = alice.release(COUNT, label="hers")
    assert list(bob.release(COUNT).values) == list(first.values)
    assert list(session.release(COUNT).values) == list(first.values)
    assert (session.spent("edges"), alice.spent("edges"), bob.spent("edges")) == (Fraction(1, 4),) * 3
    bob.release(COUNT, fresh=True)
    assert (session.spent("edges"), alice.spent("edges"), bob.spent("edges")) == (
        Fraction(1, 2), Fraction(1, 4), Fraction(1, 2),
    )  # fmt: skip
    assert bob.remaining("edges") == Fraction(99, 2)
    assert session.debited() == {"edges": Fraction(1, 2), "edges@alice": Fraction(1, 4), "edges@bob": Fraction(1, 2)}


SMALL: dict[str, Any] = {
    "counts": NODES.noisy_count(1, over=range(6)),
    "by key": NODES.noisy_count(1),
    "other keys": NODES.noisy_count(1, over=range(3, 9)),
    "listing": NODES.noisy_count_above(1, wp.integers(0, 500), above=3),
    "lower listing": NODES.noisy_count_above(1, wp.integers(2, 90), above=1),
    "choice": NODES.most_common(1, candidates=[1, 2, 3]),
    "lattice": NODES.geometric_count(1, over=range(6)),
    "part": NODES.partition(lambda n: n % 2, [0, 1])[0].noisy_count(1, over=[0, 2]),
    "other part": NODES.partition(lambda n: n % 2, [0, 1])[1].noisy_count(1, over=[1, 3]),
    "table": EDGES.by("src", keys=range(4)).agg(rows=wp.count(), epsilon=1),
    "too dear": NODES.noisy_count(1000, over=[1]),
}
"""What everybody may ask for: they overlap in answers, listings and partitions."""


def seen(analyst: Analyst, name: str) -> list[object]:
    """All that an analyst is told around a release but the noise, which has its own tests."""
    told: list[object] = []
    try:
        told.append(sorted(analyst.quote(SMALL[name]).items()))
        released = analyst.release(SMALL[name], label=name)
        answers = released.at([0, 1]) if isinstance(released, wp.Release) else released
        told.append((type(released).__name__, repr(answers)[:9]))
        if isinstance(answers, wp.Answers) and SMALL[name].__class__ is wp.Measurement and "listing" not in name:
            told.append((answers.keys, answers.scale))
    except wp.WpinqError as error:
        told.append((type(error).__name__, str(error)))
    told += [analyst.remaining("edges"), analyst.affords(SMALL["counts"]), str(analyst.bill(SMALL[name]))]
    told += [re.sub(r"\d{4}-\S+", "TIME", repr(event)) for event in analyst.history()]
    told += [repr(analyst), repr(analyst.balances()), str(analyst.balance("edges"))]
    return told


ASKED = ["part", "counts", "by key", "table", "too dear", "listing", "counts", "choice", "other part", "lattice"]


@pytest.mark.parametrize("others", ["same", "reverse", "everything before"])
def test_prices_refusals_histories_and_bills_are_those_of_one_who_is_alone(others: str) -> None:
    with opened(analysts="alice", own=6.5) as session:
        alice = session.analyst("alice")
        alone = [seen(alice, name) for name in ASKED]
        cost = session.spent("edges")
    assert "BudgetExceeded" in str(alone)
    with opened(own=6.5, analysts="alice bob carol") as session:
        alice, bob, carol = map(session.analyst, ("alice", "bob", "carol"))
        session.set_budget("edges", 80, analyst="bob")
        if others == "everything before":
            for name in SMALL:
                seen(bob, name)
                if name != "too dear":
                    session.release(SMALL[name])
        among = []
        for name, other in zip(ASKED, ASKED[::-1] if others == "reverse" else ASKED, strict=True):
            seen(bob, other)
            among.append(seen(alice, name))
            seen(carol, other)
        assert session.spent("edges") >= cost
        session._ledger.verify()
    assert among == alone


def test_a_view_shows_nothing_of_others(session: wp.Session) -> None:
    alice, bob = session.analyst("alice"), session.analyst("bob")
    empty = [repr(alice), repr(alice.balances()), alice.history(), str(alice.bill(COUNT))]
    bob.release(COUNT, label="a secret of bob's")
    session.release(NODES.noisy_count(3, over=[1]), label="the curator's")
    assert [repr(alice), repr(alice.balances()), alice.history(), str(alice.bill(COUNT))] == empty
    assert repr(alice) == "<Analyst of alice>"
    assert repr(alice.balances()) == "(edges: spent 0 of 50, 50 remaining; protects one directed edge,)"
    alice.release(COUNT, label="hers")
    (event,) = alice.history()
    assert re.fullmatch(r'1 \S+ debit edges 0.25 NoisyCount\(0.25\)  "hers"', repr(event))
    for wrong in ("nodes", "edges@bob", "edges@alice", "bob"):
        with pytest.raises(wp.LedgerError) as refused:
            alice.remaining(wrong)
        assert str(refused.value) == f"alice has no budget for {wrong!r}: ask the curator for one"
    carol = session.analyst("carol")
    with pytest.raises(wp.LedgerError, match=r"^carol has no budget for 'edges': ask the curator for one$"):
        carol.release(COUNT)
    assert (carol.balances(), carol.history(), carol.affords(COUNT)) == ((), (), 0)
    with pytest.raises(wp.SessionError, match="give the ledger and the name again"):
        pickle.dumps(alice)


def test_an_exhausted_source_is_the_one_thing_that_others_show(session: wp.Session) -> None:
    session.set_budget("edges", "0.3")
    alice, bob = session.analyst("alice"), session.analyst("bob")
    bob.release(COUNT)
    said = set()
    for analyst, epsilon in itertools.product((alice, bob), ("0.06", "1/3", 20)):
        with pytest.raises(wp.errors.SourceExhausted) as refused:
            analyst.release(NODES.noisy_count(epsilon, over=[1]))
        said.add(str(refused.value))
        assert refused.value.__context__ is None
    assert said == {EXHAUSTED}
    with pytest.raises(wp.BudgetExceeded, match=r"the budget of alice does not cover .* 60 and has 50 left of 50"):
        alice.release(NODES.noisy_count(60, over=[1]))
    assert (alice.spent("edges"), session.spent("edges")) == (Fraction(0), Fraction(1, 4))
    assert list(alice.release(COUNT).values) == list(session.release(COUNT).values)
    assert (alice.spent("edges"), session.spent("edges")) == (Fraction(1, 4), Fraction(1, 4))


def test_a_handle_over_data_that_were_replaced_answers_no_key_whoever_asked_for_it(session: wp.Session) -> None:
    alice, bob = session.analyst("alice"), session.analyst("bob")
    hers, his, curators = (who.release(NODES.noisy_count(1)) for who in (alice, bob, session))
    assert hers.at([1])[1] == his.at([1])[1]
    his.at([2])
    session.protect(EDGES, ROWS[1:], budget=100, version="2")
    for key in (1, 2, 3):
        with pytest.raises(wp.SessionError, match="protected again"):
            hers.at([key])
    assert curators.at([2])[2] == curators.at([2])[2]  # who sees all may have what was answered


def test_data_that_are_replaced_in_the_middle_answer_nothing_whoever_asked(
    session: wp.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.analyst("bob").release(COUNT)
    real = noisy_evaluation.NoisyEvaluator.held

    def replaced(self: noisy_evaluation.NoisyEvaluator, order: Any) -> Any:
        session.protect(EDGES, ROWS[1:], budget=100, version="2")
        return real(self, order)

    monkeypatch.setattr(noisy_evaluation.NoisyEvaluator, "held", replaced)
    with pytest.raises(wp.SessionError, match="protected again"):
        session.analyst("alice").release(COUNT)


def test_a_listing_shows_each_the_rows_of_one_table_of_noise(session: wp.Session) -> None:
    alice, bob = session.analyst("alice"), session.analyst("bob")
    domain = wp.integers(0, 2000)
    asked = bob.release(NODES.noisy_count(1, over=range(300)))
    low = bob.release(NODES.noisy_count_above(1, wp.integers(0, 900), above=0.5))
    hers = alice.release(NODES.noisy_count_above(1, domain, above=2))
    everything = session.release(NODES.noisy_count(1, over=range(2001)))
    assert dict(hers.items()) == {key: value for key, value in everything.items() if value > 2}
    assert dict(asked.items()).items() <= dict(everything.items()).items()
    assert all(everything[key] == value for key, value in low.items())
    assert alice.spent("edges") == bob.spent("edges") == session.spent("edges") == 1
    assert isinstance(hers.measurement.listing, Listing)


@pytest.mark.long
@pytest.mark.parametrize("trials", [80])
def test_what_others_asked_first_has_the_law_of_a_fresh_draw_for_one_who_has_not_seen_it(trials: int) -> None:
    """Kolmogorov-Smirnov at a false-alarm rate of 1e-6, over keys that others asked for, listed, and did neither of."""
    keys = [0, 1, 5, 11, 20, 21, 300, 301, 302]
    weights = [float(sum(src == key for src, _ in ROWS)) for key in keys]
    noise: dict[int, list[float]] = {key: [] for key in keys}
    with opened(budget=10_000, own=5_000) as session:
        alice, bob = session.analyst("alice"), session.analyst("bob")
        for trial in range(trials):
            session.protect(EDGES, ROWS, budget=10_000, version=f"trial {trial}")
            bob.release(NODES.noisy_count(1, over=[0, 20, 300]))
            bob.release(NODES.noisy_count_above(1, wp.integers(0, 301), above=1))
            bob.release(NODES.noisy_count(1, over=[1, 21]))
            asked = alice.release(NODES.noisy_count(1, over=keys))
            for key, weight in zip(keys, weights, strict=True):
                noise[key].append(asked[key] - weight)
    pooled = [number for drawn in noise.values() for number in drawn]
    assert stats.kstest(pooled, stats.laplace(scale=asked.scale).cdf).pvalue > 1e-6
    for drawn in noise.values():
        assert stats.kstest(drawn, stats.laplace(scale=asked.scale).cdf).pvalue > 1e-7


def test_tables_that_share_an_account_share_the_analysts_budget_in_it() -> None:
    orders = wp.source("orders", shop=int, person="id", at_most=2, account="customers")
    visits = wp.source("visits", shop=int, person="id", at_most=1, account="customers")
    with wp.Session() as session:
        for source in (orders, visits):
            session.protect(source, [{"id": i, "shop": i % 3} for i in range(9)], budget=10, version="1")
        session.set_budget("orders", 4, analyst="alice")
        assert [each.account for each in session.balances()] == [
            "customers", "customers/orders", "customers/visits", "customers@alice",
        ]  # fmt: skip
        alice = session.analyst("alice")
        batch = [source.select(lambda r: r.shop).noisy_count(1, over=range(3)) for source in (orders, visits)]
        assert alice.quote(batch) == {"customers": 3}
        alice.release(batch)
        assert alice.remaining("orders") == alice.remaining("visits") == alice.remaining("customers") == 1
        assert session.spent("visits") == 3
        assert alice.affords(batch[1]) == 1
        with pytest.raises(wp.BudgetExceeded, match=r"'customers' needs 2 and has 1 left of 4"):
            alice.release(orders.noisy_count(1, over=[]))
        with pytest.raises(wp.LedgerError, match="table of an account"):
            session._ledger.set_budget("customers/orders", 1, "alice")


def test_other_data_are_paid_for_anew_on_both_sides(session: wp.Session) -> None:
    alice = session.analyst("alice")
    alice.release(COUNT)
    session.protect(EDGES, ROWS[1:], budget=100, version="2")
    assert alice.quote(COUNT) == {"edges": Fraction(1, 4)}
    alice.release(COUNT)
    assert alice.spent("edges") == session.spent("edges") == Fraction(1, 2)


@pytest.mark.parametrize("release", [lambda s: s.analyst("alice").release(COUNT), lambda s: s.analyst("bob")])
def test_a_closed_session_has_no_analysts(release: Callable[[wp.Session], object]) -> None:
    session = opened()
    alice = session.analyst("alice")
    session.close()
    with pytest.raises(wp.SessionError, match="closed"):
        release(session)
    with pytest.raises(wp.SessionError, match="closed"):
        alice.release(COUNT)
