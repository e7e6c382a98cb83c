"""Budgets of analysts within those of the sources: one debit of two sides, refused or recorded as one."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest

from tests.support.analysts import each, opened, spent
from tests.support.parameters import for_each
from wpinq.errors import BudgetExceeded, LedgerError, SourceExhausted
from wpinq.kernel.analysts import AnalystBudgets
from wpinq.kernel.ledger import debit
from wpinq.kernel.ledger.accounts import declared_account
from wpinq.kernel.ledger.ledger import PartsOf, Pricing
from wpinq.measure.statement import entry_text


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
        with pytest.raises(LedgerError, match=r"^carol has no budget for 'edges': ask the curator for one$"):
            ledger.debit({"m": "degrees"}, each(edges=1), analyst="carol")
        assert ledger.head() == head


def test_an_exhausted_source_says_the_same_to_all_and_no_amount() -> None:
    said = set()
    for budget, charge, analyst in itertools.product((3, 60), (7, 30), ("alice", "bob")):
        with opened(None, budget, own=1000) as ledger:
            ledger.open_accounts(
                [declared_account("nodes", schema="s", unit="u", unit_weight=Fraction(1), budget=1000)]
            )
            ledger.set_budget("nodes", 1000, analyst)
            ledger.debit({"before": "x"}, each(edges=budget), analyst="bob")
            head = ledger.head()
            with pytest.raises(SourceExhausted) as refused:
                ledger.debit({"m": "degrees"}, each(edges=charge, nodes=charge), analyst=analyst)
            said.add((str(refused.value), repr(refused.value.__context__), repr(refused.value.__cause__)))
            assert ledger.head() == head
    assert said == {(debit.EXHAUSTED, "None", "None")}
    assert not any(character.isdigit() for character in debit.EXHAUSTED)


def test_an_exhausted_source_still_answers_what_it_paid_for() -> None:
    with opened(None, 5) as ledger:
        ledger.debit({"m": "degrees"}, each(edges=5), analyst="bob")
        assert ledger.debit({"m": "degrees"}, each(edges=5), analyst="alice") == frozenset()
        assert spent(ledger) == {"edges": 5, "edges@alice": 5, "edges@bob": 5}


@for_each("name", ["", "a@b", "a/b", "7", "_a", "ä", "a b", "a-b", "a\n", "a" * 65, None, 7])
def test_analysts_have_names_that_are_nothing_else(name: object) -> None:
    with opened() as ledger:
        head = ledger.head()
        with pytest.raises(LedgerError, match="an analyst is named by"):
            AnalystBudgets(ledger, name, {})
        if name is not None:  # which is nobody, where an analyst need not be named
            for call in (
                lambda: ledger.set_budget("edges", 7, name),
                lambda: ledger.debit({"m": "degrees"}, each(edges=1), analyst=name),
                lambda: ledger.quote(["m"], each(edges=1), name),
                lambda: ledger.balances(name),
                lambda: ledger.events(name),
                lambda: ledger.paid(["m"], name),
            ):
                with pytest.raises(LedgerError, match="an analyst is named by"):
                    call()
        assert ledger.head() == head


def test_no_account_and_no_digest_can_be_taken_for_an_analysts() -> None:
    with opened() as ledger:
        for name in ("edges@alice", "edges@carol", "@", "a@b/c"):
            with pytest.raises(LedgerError, match="would be an analyst's account"):
                ledger.open_accounts([declared_account(name, schema="s", unit="u", unit_weight=Fraction(1), budget=1)])
        with pytest.raises(LedgerError, match="no @ is in the digest"):
            ledger.debit({"m@alice": "degrees"}, each(edges=1))
        with pytest.raises(LedgerError, match="'edges@alice' is an analyst's account"):
            ledger.set_budget("edges@alice", 5, "bob")
        ledger.open_accounts([declared_account("all/edges", schema="s", unit="u", unit_weight=Fraction(1), budget=0)])
        with pytest.raises(LedgerError, match="is a table of an account and pays nothing"):
            ledger.set_budget("all/edges", 5, "bob")
        with pytest.raises(LedgerError, match="no account 'nodes'"):
            ledger.set_budget("nodes", 5, "bob")


def test_the_curator_sets_budgets_of_analysts_on_record() -> None:
    with opened() as ledger:
        assert ledger.set_budget("edges", 50, "alice").remaining == 50
        ledger.debit({"m": "degrees"}, each(edges=50), analyst="alice")
        with pytest.raises(LedgerError, match=r"the budget of 'edges@alice' cannot be 0\.000000049"):
            ledger.set_budget("edges", 49, "alice")
        said = [
            (e.kind, e.target, e.amount, entry_text(e.kind, e.amount, e.content))
            for e in ledger.entries()
            if e.target == "edges@alice"
        ]
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


def never(new: frozenset[str], parts_of: PartsOf) -> Pricing:
    raise AssertionError("a replay must not be priced")


def test_a_replay_of_ones_own_is_not_priced() -> None:
    with opened() as ledger:
        ledger.debit({"m": "degrees"}, each(edges=5), analyst="alice")
        assert ledger.debit({"m": "degrees"}, never, analyst="alice") == frozenset()
        assert ledger.quote(["m"], never, "alice") == {}
