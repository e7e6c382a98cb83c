"""The flow of a release: price, debit, evaluate, noise, store, answer; and what replays for free."""

from __future__ import annotations

import copy
import pathlib
import pickle
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import pytest

import wpinq as wp
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.kernel.prepare import prepare
from wpinq.measure.measurement import Measurement
from wpinq.sinks.choose import Choose

KEYS = range(1, 5)


def failing(*arguments: object) -> None:
    raise ValueError("a true record: 4711")


# --- debit before evaluation ------------------------------------------------------------------------------------------


def test_the_debit_is_durable_before_the_engine_starts(
    ledger: pathlib.Path, edges: wp.Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    with wp.Session(ledger) as session:
        session.protect(edges, [(1, 2)], budget=1)
        seen = []

        def spy(*arguments: object) -> dict[object, float]:
            with Ledger(ledger, create=False) as other:
                seen.append((other.account("edges").spent, [entry.kind for entry in other.entries()]))
            return {}

        monkeypatch.setattr(session._engine, "evaluate", spy)
        session.release(edges.noisy_count("0.25", over=[(1, 2)]))
        assert seen == [(250_000_000, ["open account", "debit"])]


def test_the_first_answers_of_a_batch_are_one_transaction_also_where_a_later_one_fails(
    ledger: pathlib.Path, edges: wp.Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = [edges.where(lambda e, i=i: e.src > i).noisy_count(0.1, over=[(1, 2)]) for i in range(3)]
    evaluated, written = [], []
    with wp.Session(ledger, engine="reference") as session:
        session.protect(edges, [(1, 2)], budget=1)
        evaluate, write = session._engine.evaluate, session._ledger._store.write

        def at_most_two(plan: object, *given: object, **more: object) -> object:
            evaluated.append(plan)
            return failing() if len(evaluated) == 3 else evaluate(plan, *given, **more)

        monkeypatch.setattr(session._engine, "evaluate", at_most_two)
        monkeypatch.setattr(
            session._ledger._store, "write", lambda work, durable=True: written.append(work) or write(work)
        )
        with pytest.raises(wp.EvaluationFailed):
            session.release(asked)
        assert len(written) == 2
        answers = session.release(asked)
        assert [plan == asked[2].plan for plan in evaluated] == [False, False, True, True]
        assert session.release(asked)[0][1, 2] == answers[0][1, 2]
        kinds = [entry.kind for entry in session._ledger.entries()]
        assert kinds == ["open account", "debit", "answers", "answers", "answers"]


def test_a_failed_evaluation_is_one_constant_error_and_stays_paid(
    session: wp.Session, edges: wp.Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = edges.noisy_count(0.5, over=[(1, 2)])
    with monkeypatch.context() as broken:
        broken.setattr(session._engine, "evaluate", failing)
        messages = set()
        for measurement in (asked, edges.select(lambda e: e.src).median(0.25, KEYS)):
            with pytest.raises(wp.EvaluationFailed) as caught:
                session.release(measurement)
            assert caught.value.__cause__ is None
            assert caught.value.__context__ is None
            messages.add(str(caught.value))
    assert len(messages) == 1
    assert session.spent("edges") == Fraction(3, 4)
    session.release(asked)  # it was paid for, so that trying again costs nothing
    assert session.spent("edges") == Fraction(3, 4)


def test_nothing_is_spent_or_evaluated_when_a_budget_does_not_cover_the_bill(
    edges: wp.Query, people: wp.Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    with wp.Session() as session:
        session.protect(edges, [(1, 2)], budget=1)
        session.protect(people, [("north", 1)], budget=100)
        monkeypatch.setattr(session._engine, "evaluate", lambda *arguments: pytest.fail("evaluated"))
        both = edges.select(lambda e: e.src).concat(people.select(lambda p: p.age)).noisy_count(2, over=KEYS)
        with pytest.raises(wp.BudgetExceeded, match="'edges' needs 2 and has 1 left of 1"):
            session.release(both)
        with pytest.raises(wp.BudgetExceeded):
            session.release([people.noisy_count(1, over=[]), edges.noisy_count(2, over=[])])
        assert (session.spent("edges"), session.spent("people")) == (0, 0)


def test_several_measurements_and_sources_are_one_debit(session: wp.Session, edges: wp.Query, people: wp.Query) -> None:
    nodes, ages = edges.select(lambda e: e.src), people.select(lambda p: p.age)
    both = nodes.join(ages, lambda a: a, lambda b: b, lambda a, b: a)
    released = session.release([nodes.noisy_count(0.5, over=KEYS), both.noisy_count(0.25, over=KEYS)])
    assert [answers.keys for answers in released] == [(1, 2, 3, 4)] * 2
    assert (session.spent("edges"), session.spent("people")) == (Fraction(3, 4), Fraction(1, 4))
    debits = [entry for entry in session._ledger.entries() if entry.kind == "debit"]
    assert {entry.target: entry.amount for entry in debits} == {"edges": 750_000_000, "people": 250_000_000}


@pytest.mark.parametrize("wrong", [[], None, 7, [None], "edges"])
def test_what_is_no_measurement_is_refused(session: wp.Session, wrong: object) -> None:
    with pytest.raises((wp.SessionError, TypeError)):
        session.release(wrong)
    assert session.spent("edges") == 0


def test_a_query_is_refused_with_the_fix(session: wp.Session, edges: wp.Query) -> None:
    for call in (session.release, session.bill):
        with pytest.raises(wp.SessionError, match="noisy_count"):
            call(edges)
    with pytest.raises(wp.SessionError, match="noisy_count"):
        session.release([edges])


def test_measurements_made_by_hand_are_checked_before_the_debit(session: wp.Session, edges: wp.Query) -> None:
    nodes = edges.select(lambda e: e.src)
    good = nodes.noisy_count(1, over=KEYS)
    for changes, error in (
        ({"epsilon": Fraction(-1)}, wp.EpsilonError),
        ({"epsilon": 0.5}, wp.EpsilonError),
        ({"domain": ("text",)}, wp.PlanError),
        ({"domain": (True,)}, wp.PlanError),
        ({"sink": type("Mine", (Choose,), {})("weight")}, wp.SessionError),
    ):
        with pytest.raises(error):
            session.release(replace(good, **changes))
    assert session.spent("edges") == 0


def test_a_measurement_of_a_class_of_its_own_is_refused(session: wp.Session, edges: wp.Query) -> None:
    class Cheap(Measurement):
        @property
        def costs(self) -> dict[str, Fraction]:
            return {"edges": Fraction(0)}

    asked = edges.noisy_count(0.5, over=[(1, 2)])
    with pytest.raises(wp.SessionError, match="release takes measurements"):
        session.release(Cheap(asked.plan, asked.sink, asked.epsilon, asked.domain))
    assert session.spent("edges") == 0


def test_sources_must_be_protected_and_declared_as_the_query_says(session: wp.Session, edges: wp.Query) -> None:
    other = wp.source("other", int)
    with pytest.raises(wp.SessionError, match="'other' is not protected"):
        session.release(other.noisy_count(1, over=[1]))
    for cheaper in (
        wp.source("edges", src=int, dst=int, unit="one directed edge", unit_weight="1/2", weights=True),
        wp.source("edges", src=int, dst=int, unit="one directed edge", cap=10),
        wp.source("edges", src=int, dst=int, unit="something else"),
        wp.source("edges", src=int, dst=int, unit="one directed edge", weights=True),
        wp.source("edges", src=int, dst=int, unit="one directed edge", facts=["nonnegative"]),
    ):
        with pytest.raises(wp.SessionError, match="another declaration"):
            session.release(cheaper.noisy_count(1, over=[(1, 2)]))
    with pytest.raises(wp.PlanError, match="declared in two ways"):
        session.release([edges.noisy_count(1, over=[]), cheaper.concat(edges).noisy_count(1, over=[])])
    assert session.spent("edges") == 0


def test_a_measurement_travels_by_pickle_however_deep_its_plan(session: wp.Session, edges: wp.Query) -> None:
    query = edges.select(lambda e: e.src)
    for _ in range(2000):
        query = query.where(lambda n: n > 0)
    for asked in (query.noisy_count("0.001", over=[1, 2]), query.noisy_count("0.001"), query.median("0.001", [1, 2])):
        assert pickle.loads(pickle.dumps(asked)) == copy.deepcopy(asked) == asked


def test_the_noise_of_a_choice_covers_the_rounding_of_its_scores(session: wp.Session, edges: wp.Query) -> None:
    count = prepare(edges.noisy_count(1, over=[]), session._protected, False)
    choice = prepare(edges.median(1, [(1, 2)]), session._protected, False)
    assert count.scale == 1.0  # the source as it is: nothing is computed
    assert 1.0 < choice.scale < 1.000001


# --- replay -----------------------------------------------------------------------------------------------------------


def test_the_same_measurement_replays_at_no_cost(session: wp.Session, edges: wp.Query) -> None:
    first = session.release(edges.select(lambda e: e.src).noisy_count(0.5, over=KEYS))
    again = session.release(edges.select(lambda renamed: renamed.src).noisy_count("1/2", over=KEYS))
    assert list(first.values) == list(again.values)
    assert session.spent("edges") == Fraction(1, 2)


def test_other_domains_share_the_noise_of_each_key(session: wp.Session, edges: wp.Query) -> None:
    nodes = edges.select(lambda e: e.src)
    first = session.release(nodes.noisy_count(0.5, over=[1, 2, 3]))
    second = session.release(nodes.noisy_count(0.5, over=[9, 3, 2]))
    handle = session.release(nodes.noisy_count(0.5))
    assert isinstance(handle, wp.Release)
    assert (second[2], second[3]) == (first[2], first[3]) == (handle[2], handle[3])
    assert handle[9] == second[9]
    assert session.spent("edges") == Fraction(1, 2)


def test_a_noisy_sum_and_a_noisy_count_of_one_plan_share_their_noise(session: wp.Session, people: wp.Query) -> None:
    total = people.noisy_sum(0.5, lambda p: p.age, 0, 50)
    raw = session.release(wp.Query(total.plan).noisy_count(0.5, over=["sum"]))
    summed = session.release(total)
    assert summed["sum"] == raw["sum"] * 50
    assert (raw.scale * 50, session.spent("people")) == (summed.scale, Fraction(1, 2))


def test_another_epsilon_or_sink_is_another_release(session: wp.Session, edges: wp.Query) -> None:
    nodes = edges.select(lambda e: e.src)
    answers = [
        session.release(nodes.noisy_count(0.5, over=KEYS)),
        session.release(nodes.noisy_count(0.25, over=KEYS)),
        session.release(nodes.where(lambda n: n > -100).noisy_count(0.5, over=KEYS)),
    ]
    assert len({value for a in answers for value in a.values}) == 12
    session.release(nodes.most_common(0.5, KEYS))
    session.release(nodes.median(0.5, KEYS))
    assert session.spent("edges") == Fraction("2.25")


def test_fresh_noise_is_paid_for(session: wp.Session, edges: wp.Query) -> None:
    asked = edges.noisy_count(0.5, over=[(1, 2)])
    values = {session.release(asked, fresh=True).value for _ in range(3)} | {session.release(asked).value}
    assert len(values) == 4
    first, second = session.release([asked, asked], fresh=True)
    assert first.value != second.value
    assert session.spent("edges") == 3
    first, second = session.release([asked, asked])
    assert (first.value, session.spent("edges")) == (second.value, 3)


def test_sessions_on_one_ledger_replay_under_the_same_declared_version(ledger: pathlib.Path, edges: wp.Query) -> None:
    asked = edges.select(lambda e: e.src).noisy_count(0.5, over=KEYS)
    choice = edges.select(lambda e: e.src).most_common(0.25, KEYS)
    values, spent = [], []
    for version in ("2026-01", "2026-01", "2026-02"):
        with wp.Session(ledger) as session:
            session.protect(edges, [(1, 2), (2, 3)], budget=10, version=version)
            values.append([list(answers.values) for answers in session.release([asked, choice])])
            spent.append(session.spent("edges"))
    assert values[0] == values[1]
    assert values[2][0] != values[0][0]
    assert spent == [Fraction(3, 4), Fraction(3, 4), Fraction(3, 2)]


def test_nothing_replays_between_undeclared_versions(ledger: pathlib.Path, edges: wp.Query) -> None:
    values = set()
    for count in (1, 2, 3):
        with wp.Session(ledger) as session:
            session.protect(edges, [(1, 2)], budget=10)
            values.add(session.release(edges.noisy_count(1, over=[(1, 2)])).value)
            assert session.spent("edges") == count
    with wp.Session(ledger) as session:
        for _ in range(2):
            session.protect(edges, [(1, 2)], budget=10)
            values.add(session.release(edges.noisy_count(1, over=[(1, 2)])).value)
        assert session.spent("edges") == 5
    assert len(values) == 5


def test_a_word_cannot_be_declared_that_replays_an_undeclared_version(ledger: pathlib.Path, edges: wp.Query) -> None:
    with wp.Session(ledger) as session:
        session.protect(edges, [(1, 2)], budget=10)
        undeclared = session._protected["edges"].version
        session.release(edges.noisy_count(1, over=[(1, 2)]))
        session.protect(edges, [(1, 2)], budget=10, version=undeclared)
        session.release(edges.noisy_count(1, over=[(1, 2)]))
        assert session.spent("edges") == 2


def test_one_version_stands_for_one_state_of_the_data(session: wp.Session, edges: wp.Query) -> None:
    session.protect(edges, [(1, 2)], budget=1000, version="a")
    session.protect(edges, {(1, 2): 1.0}, budget=1000, version="a")
    with pytest.raises(wp.SessionError, match="give the new data a new version"):
        session.protect(edges, [(1, 2), (1, 2)], budget=1000, version="a")


def test_a_plan_over_two_sources_replays_only_when_both_versions_stand(edges: wp.Query, people: wp.Query) -> None:
    both = edges.select(lambda e: e.src).concat(people.select(lambda p: p.age)).noisy_count(1, over=KEYS)
    with wp.Session() as session:
        for version, spent in (("a", 1), ("a", 1), ("b", 2)):
            session.protect(edges, [(1, 2)], budget=9, version="fixed")
            session.protect(people, [("n", 1)], budget=9, version=version)
            session.release(both)
            assert (session.spent("edges"), session.spent("people")) == (spent, spent)


# --- a Release and its session ----------------------------------------------------------------------------------------


def test_a_release_does_not_answer_over_data_that_it_was_not_paid_for(edges: wp.Query) -> None:
    nodes = edges.select(lambda e: e.src)
    with wp.Session() as session:
        session.protect(edges, [(1, 2)], budget=10)
        release = session.release(nodes.noisy_count(1))
        known = release[1]
        session.protect(edges, [(2, 2)] * 1000, budget=10)
        assert release[1] == known  # in the ledger; the data are not asked
        with pytest.raises(wp.SessionError, match="protected again"):
            release.at([1, 2])
        assert session.release(nodes.noisy_count(1))[2] > 500
        assert session.spent("edges") == 2


def test_a_release_goes_on_when_the_same_version_is_protected_again(edges: wp.Query) -> None:
    with wp.Session() as session:
        session.protect(edges, [(1, 2)], budget=10, version="a")
        release = session.release(edges.noisy_count(1))
        session.protect(edges, [(1, 2)], budget=10, version="a")
        assert release[(5, 5)] == release[(5, 5)]


def test_a_closed_session_answers_nothing(edges: wp.Query) -> None:
    session = wp.Session()
    session.protect(edges, [(1, 2)], budget=10)
    release = session.release(edges.noisy_count(1))
    assert isinstance(release[(1, 2)], float)
    session.close()
    session.close()
    for act in (
        lambda: release[(1, 2)],
        lambda: release[(3, 4)],
        lambda: release.at([]),
        lambda: session.release(edges.noisy_count(1)),
        lambda: session.protect(edges, [(1, 2)], budget=10),
        lambda: session.remaining("edges"),
        lambda: session.spent("edges"),
        lambda: session.set_budget("edges", 20),
    ):
        with pytest.raises(wp.SessionError, match="closed"):
            act()


def test_a_session_leaves_a_ledger_open_that_it_was_given(edges: wp.Query) -> None:
    with Ledger() as ledger:
        with wp.Session(ledger) as session:
            session.protect(edges, [(1, 2)], budget=10)
            session.release(edges.noisy_count(1, over=[(1, 2)]))
        assert ledger.account("edges").spent == 10**9


def test_on_step_hears_operators_in_the_order_of_the_plan(edges: wp.Query) -> None:
    steps: list[str] = []
    with wp.Session(on_step=steps.append) as session:
        session.protect(edges, [(1, 2)], budget=10)
        session.release(edges.select(lambda e: e.src).shave(1.0).noisy_count(1, over=[(1, 0)]))
    assert steps == ["Source", "Select", "Shave"]


def test_an_on_step_that_fails_does_not_cost_the_release(edges: wp.Query) -> None:
    with wp.Session(on_step=failing) as session:
        session.protect(edges, [(1, 2)], budget=10)
        answers = session.release(edges.noisy_count(1, over=[(1, 2)]))
        assert isinstance(answers, wp.Answers)
        assert session.spent("edges") == 1


def test_a_declaration_is_fixed_when_the_account_is_opened_and_others_are_refused_unread(edges: wp.Query) -> None:
    """Whether data keep to a cap, a fact or a type tells of the data: no second declaration may ask."""
    others = [
        wp.source("edges", src=int, dst=int, unit="one directed edge", cap=1),
        wp.source("edges", src=int, dst=int, unit="one directed edge", weights=True),
        wp.source("edges", src=int, dst=int, unit="one directed edge", facts=["unit_weights"]),
        wp.source("edges", src=int, dst=str, unit="one directed edge"),
    ]
    with wp.Session() as session:
        session.protect(edges, [(1, 2), (1, 2)], budget=10)
        for other in others:
            with pytest.raises(wp.LedgerError, match="the ledger has 'edges' with the schema"):
                session.protect(other, unreadable(), budget=10)


def unreadable() -> Iterator[object]:
    pytest.fail("the data were read")
    yield


def test_a_version_that_was_replaced_does_not_come_back(edges: wp.Query) -> None:
    measurement = edges.noisy_count(1)
    with wp.Session() as session:
        session.protect(edges, [(1, 2)], budget=10, version="a")
        release = session.release(measurement)
        assert isinstance(release, wp.Release)
        session.protect(edges, [(1, 3)], budget=10, version="b")
        with pytest.raises(wp.SessionError, match="took the place of version 'a'"):
            session.protect(edges, [(1, 4)], budget=10, version="a")
        with pytest.raises(wp.SessionError, match="protected again"):
            release[1, 4]


def test_a_choice_without_candidates_is_refused_before_the_debit(edges: wp.Query) -> None:
    with wp.Session() as session:
        session.protect(edges, [(1, 2)], budget=10)
        for domain in (None, ()):
            with pytest.raises(wp.PlanError, match="at least one candidate"):
                session.release(Measurement(edges.plan, Choose("weight"), Fraction(1), domain))
        assert session.spent("edges") == 0


def test_texts_that_would_be_printed_cannot_move_a_cursor(edges: wp.Query) -> None:
    with pytest.raises(wp.PlanError, match="printable"):
        edges.read_as("weight\nRemaining budget of edges: 99")
    with wp.Session() as session, pytest.raises(wp.PlanError, match="printable"):
        session.protect(edges, [], budget=1, unit="one\x1b[3A edge")


def test_the_bill_of_a_session_prints_the_unit_of_its_protection() -> None:
    numbers = wp.source("numbers", int)
    with wp.Session() as session:
        session.protect(numbers, [1, 2], budget=1, unit="one person's only number")
        assert "protects one person's only number" in str(session.bill(numbers.noisy_count(1)))


def test_a_batch_fitted_to_a_budget_that_is_no_whole_nano_epsilon_is_covered(edges: wp.Query) -> None:
    batch = wp.fit_to_budget([edges.noisy_count(1, over=[]), edges.noisy_count(2, over=[])], {"edges": "1/3"})
    with wp.Session() as session:
        session.protect(edges, [(1, 2)], budget="1/3")
        session.release(list(batch))


def test_the_same_measurement_twice_in_a_batch_is_billed_once_as_it_is_charged(edges: wp.Query) -> None:
    twice = [edges.noisy_count(1, over=[(1, 2)])] * 2
    assert wp.bill(twice)["edges"] == 1
    assert "no cost" in str(wp.bill(twice))
    with wp.Session() as session:
        session.protect(edges, [(1, 2)], budget=10)
        session.release(twice)
        assert session.spent("edges") == 1


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(wp.PlanError, match="there is no engine 'abacus'"):
        wp.Session(engine="abacus")
