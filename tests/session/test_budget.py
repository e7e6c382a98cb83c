"""Budgets: kept across sessions, changed on record, and what partitions, unit weights and repeated use cost."""

from __future__ import annotations

import pathlib
from fractions import Fraction

import pytest

import wpinq as wp
from tests.support.processor import bounded_work
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.measure.statement import entry_text


def test_a_name_protected_again_keeps_what_was_spent(ledger: pathlib.Path, edges: wp.Query) -> None:
    for count in (1, 2):
        with wp.Session(ledger) as session:
            session.protect(edges, [(1, 2)], budget=3)
            session.release(edges.noisy_count(1, over=[(1, 2)]))
            assert (session.spent("edges"), session.remaining("edges")) == (count, 3 - count)


def test_a_budget_is_changed_on_record_only(ledger: pathlib.Path, edges: wp.Query) -> None:
    with wp.Session(ledger) as session:
        session.protect(edges, [(1, 2)], budget=1)
        session.release(edges.noisy_count("0.75", over=[(1, 2)]))
        for budget in (2, "0.5"):
            with pytest.raises(wp.LedgerError, match="set_budget"):
                session.protect(edges, [(1, 2)], budget=budget)
        session.set_budget("edges", "2.5")
        assert session.remaining("edges") == Fraction(7, 4)
        with pytest.raises(wp.LedgerError, match="nothing is refunded"):
            session.set_budget("edges", "0.5")
        session.protect(edges, [(1, 2)], budget="2.5")
    with Ledger(ledger, create=False) as opened:
        assert [entry_text(e.kind, e.amount, e.content) for e in opened.entries() if e.kind == "set budget"] == [
            "budget 1 -> 2.5"
        ]
        opened.verify()


@pytest.mark.parametrize(
    "declaration",
    [
        {"src": int, "dst": int, "unit": "one node"},
        {"src": int, "dst": int, "unit": "one directed edge", "unit_weight": 2},
        {"src": int, "dst": str, "unit": "one directed edge"},
        {"src": int, "dst": int | None, "unit": "one directed edge"},
    ],
)
def test_the_ledger_knows_a_source_by_its_schema_and_unit(
    ledger: pathlib.Path, edges: wp.Query, declaration: dict[str, object]
) -> None:
    with wp.Session(ledger) as session:
        session.protect(edges, [(1, 2)], budget=1)
        with pytest.raises(wp.LedgerError, match="the ledger has 'edges' with the"):
            session.protect(wp.source("edges", **declaration), [], budget=1)


def test_budgets_round_down_to_whole_nano_epsilon(edges: wp.Query) -> None:
    with wp.Session() as session:
        for count, (budget, nano) in enumerate(((Fraction(1, 3), 333333333), (3 * 0.1, 3 * 10**8), (1e-9, 1)), start=1):
            source = wp.source(f"source{count}", int)
            session.protect(source, [], budget=budget)
            assert session.remaining(f"source{count}") == Fraction(nano, 10**9) <= Fraction(budget)
        with pytest.raises(wp.BudgetExceeded, match=r"needs 0.333333334 and has 0.333333333"):
            session.release(wp.source("source1", int).noisy_count("1/3", over=[1]))


@pytest.mark.parametrize("budget", [-1, float("nan"), float("inf"), True, None, "one", "1e-10"])
def test_budgets_that_are_no_nano_epsilon_are_refused(edges: wp.Query, budget: object) -> None:
    with wp.Session() as session:
        with pytest.raises(wp.EpsilonError):
            session.protect(edges, [(1, 2)], budget=budget)
        with pytest.raises(wp.LedgerError, match="no account"):
            session.remaining("edges")


def test_charges_are_exact_and_round_up_to_whole_nano_epsilon(session: wp.Session, edges: wp.Query) -> None:
    for _ in range(10):
        session.release(edges.noisy_count(0.1, over=[(1, 2)]), fresh=True)
    assert session.spent("edges") == 1
    session.release(edges.noisy_count("1/3", over=[(1, 2)]))
    assert session.spent("edges") == 1 + Fraction(333333334, 10**9)


def test_a_unit_weight_multiplies_bill_and_charge_and_leaves_the_noise() -> None:
    edges = wp.source("edges", src=int, dst=int, unit="one undirected edge", unit_weight=2)
    paths = edges.join(edges, lambda a: a.dst, lambda b: b.src, lambda a, b: (a.src, b.dst))
    with wp.Session() as session:
        session.protect(edges, [(1, 2), (2, 1)], budget=10)
        asked = paths.noisy_count("0.5", over=[(1, 1)])
        assert session.bill(asked) == {"edges": 2}
        answers = session.release(asked)
        assert session.spent("edges") == 2
        assert 2 <= answers.scale < 2.001


# --- partitions -------------------------------------------------------------------------------------------------------

REGIONS = ["north", "south", "west"]


def test_parts_in_one_batch_cost_the_largest_and_across_batches_the_increase(
    session: wp.Session, people: wp.Query
) -> None:
    parts = people.partition(lambda p: p.region, REGIONS)
    counts = {r: part.select(lambda p: 0) for r, part in parts.items()}
    batch = [counts["north"].noisy_count(1), counts["south"].noisy_count(2)]
    assert session.bill(batch) == {"people": 2}
    session.release(batch)
    assert session.spent("people") == 2
    session.release(counts["west"].noisy_count(2))
    assert session.spent("people") == 2  # another part, not above the maximum
    session.release(counts["north"].noisy_count("1.5"))
    assert session.spent("people") == Fraction("2.5")  # north holds 1 + 1.5
    session.release(counts["north"].noisy_count("1.5"))
    assert session.spent("people") == Fraction("2.5")  # a replay
    session.release([counts["west"].noisy_count(1), people.noisy_count(1, over=[])])
    assert session.spent("people") == 4  # west 3, half above; and all of the data 1


def test_partitions_by_other_keys_add_up(session: wp.Session, people: wp.Query) -> None:
    region = people.partition(lambda p: p.region, REGIONS)
    parity = people.partition(lambda p: p.age % 2, [0, 1])
    session.release([region["north"].noisy_count(1, over=[]), parity[0].noisy_count(1, over=[])])
    assert session.spent("people") == 2
    elsewhere = people.where(lambda p: p.age > 0).partition(lambda p: p.region, REGIONS)
    session.release([elsewhere["north"].noisy_count(1, over=[]), elsewhere["south"].noisy_count(1, over=[])])
    assert session.spent("people") == 3


def test_nested_partitions_cost_the_largest_of_the_largest(session: wp.Session, people: wp.Query) -> None:
    inner = {
        (r, a): part
        for r, outer in people.partition(lambda p: p.region, REGIONS).items()
        for a, part in outer.partition(lambda p: p.age, [30, 40]).items()
    }
    session.release([part.noisy_count(1, over=[]) for part in inner.values()])
    assert session.spent("people") == 1
    session.release(inner["north", 30].noisy_count(2, over=[]))
    assert session.spent("people") == 3
    session.release([inner["north", 40].noisy_count(1, over=[]), inner["south", 30].noisy_count(2, over=[])])
    assert session.spent("people") == 3


def test_a_part_used_twice_in_one_plan_is_billed_twice(session: wp.Session, people: wp.Query) -> None:
    parts = people.partition(lambda p: p.region, REGIONS)
    twice = parts["north"].concat(parts["north"])
    assert twice.uses() == {"people": 2}
    assert parts["north"].concat(parts["south"]).uses() == {"people": 1}
    session.release(twice.noisy_count(1, over=[]))
    session.release(parts["south"].noisy_count(2, over=[]))
    assert session.spent("people") == 2


def test_the_counters_of_parts_start_anew_with_new_data(ledger: pathlib.Path, people: wp.Query) -> None:
    parts = people.partition(lambda p: p.region, REGIONS)
    spent = []
    for version, region in (("a", "north"), ("a", "south"), ("b", "west")):
        with wp.Session(ledger) as session:
            session.protect(people, [("north", 1)], budget=10, version=version)
            session.release(parts[region].noisy_count(1, over=[]))
            spent.append(session.spent("people"))
    assert spent == [1, 1, 2]


# --- plans that cost more than there is -------------------------------------------------------------------------------


def test_two_hundred_doublings_are_billed_and_refused() -> None:
    x = wp.source("numbers", int)
    source = x
    for _ in range(200):
        x = x.concat(x)
    with bounded_work():
        cost = x.bill(epsilon="0.1")["numbers"]
    assert (cost, x.uses()) == (Fraction(2**200, 10), {"numbers": 2**200})
    with wp.Session() as session:
        session.protect(source, [1, 2], budget=1000)
        with pytest.raises(wp.BudgetExceeded):
            session.release(x.noisy_count("0.1", over=[1]))
        assert session.spent("numbers") == 0


def test_a_fitted_batch_spends_what_it_was_fitted_to(session: wp.Session, edges: wp.Query, people: wp.Query) -> None:
    nodes = edges.select(lambda e: e.src)
    batch = [
        nodes.noisy_count(1, over=[1]),
        nodes.join(nodes, lambda a: a, lambda b: b, lambda a, b: a).noisy_count("1/7", over=[1]),
        people.select(lambda p: p.age).median(3, [30, 40]),
    ]
    fitted = wp.fit_to_budget(batch, {"edges": "0.7", "people": 100})
    assert [m.epsilon / fitted[0].epsilon for m in fitted] == pytest.approx([1, 1 / 7, 3], rel=1e-11)
    session.release(fitted)
    assert Fraction("0.7") - Fraction(2, 10**9) <= session.spent("edges") <= Fraction("0.7")
    with pytest.raises(wp.EpsilonError, match="no budget names"):
        wp.fit_to_budget(batch, {"elsewhere": 1})


def test_the_epsilon_for_an_interval_gives_that_interval(session: wp.Session, edges: wp.Query) -> None:
    nodes = edges.select(lambda e: e.src)
    for width, confidence in ((10.0, 0.95), (3.0, 0.5), (0.25, 0.999)):
        epsilon = nodes.epsilon_for(width, confidence)
        low, high = session.release(nodes.noisy_count(epsilon, over=[1])).interval(1, confidence)
        assert width * (1 - 1e-6) <= (high - low) / 2 <= width * (1 + 1e-12)
    for wrong in ((0.0, 0.95), (-1.0, 0.95), (float("inf"), 0.95), (1.0, 0.0), (1.0, 1.0)):
        with pytest.raises(wp.PlanError):
            nodes.epsilon_for(*wrong)


def test_a_session_says_what_it_debited_wherever_it_was_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    items = wp.source("items", int)
    asked = items.noisy_count("0.25", over=[1])
    with Ledger() as ledger:
        with wp.Session(ledger) as other:
            other.protect(items, [1], budget=2, version="1")
            other.release(items.noisy_count("0.5", over=[1]))
            with wp.Session(ledger) as session:
                session.protect(items, [1], budget=2, version="1")
                assert session.debited() == {}
                debit = ledger.debit

                def interrupted(*arguments: object) -> None:
                    debit(*arguments)
                    raise KeyboardInterrupt  # between the commit and whatever notes it

                with monkeypatch.context() as patched:
                    patched.setattr(ledger, "debit", interrupted)
                    with pytest.raises(KeyboardInterrupt):
                        session.release(asked)
                assert session.debited() == {"items": Fraction(1, 4)}
                session.release(asked)  # paid for
                other.release(items.noisy_count("0.125", over=[1]))
                assert session.debited() == {"items": Fraction(1, 4)}
            assert session.debited() == {"items": Fraction(1, 4)}
            assert other.debited() == {"items": Fraction(5, 8)}
        session.close()
        assert session.debited() == {"items": Fraction(1, 4)}


def test_a_session_refuses_a_ledger_that_lost_what_it_knew(tmp_path: pathlib.Path) -> None:
    items, path = wp.source("items", int), tmp_path / "ledger.db"
    with pytest.raises(wp.LedgerError, match="there is no such file"):
        wp.Session(path, expected_head=f"1:{'0' * 64}")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(wp.LedgerError, match="NUMBER:HASH"):
        wp.Session(path, expected_head="7")
    with wp.Session(path) as session:
        session.protect(items, [1], budget=2)
        before, copy = session.head(), path.read_bytes()
        session.release(items.noisy_count("0.5", over=[1]))
        head = session.head()
    for known in (before, head):
        wp.Session(path, expected_head=known).close()
    with Ledger(path) as ledger:
        wp.Session(ledger, expected_head=head).close()
        with pytest.raises(wp.LedgerError, match="its entry 1 differs"):
            wp.Session(ledger, expected_head=f"1:{'0' * 64}")
    (tmp_path / "copy").write_bytes(copy)
    with pytest.raises(wp.LedgerError):
        wp.Session(tmp_path / "copy", expected_head=head)
    with pytest.raises(wp.LedgerError, match="is empty"):
        (tmp_path / "empty").touch()
        wp.Session(tmp_path / "empty")
