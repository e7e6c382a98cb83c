"""A spanning tree of pairs, chosen by the data: what it asks for, what it costs, and that it finds what there is."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

import wpinq as wp
from wpinq.marginals.adaptive_tree import AdaptiveTree
from wpinq.marginals.attributes import MeasuredView, View
from wpinq.measure.measurement import MostDistant
from wpinq.workflows.table import MeasuredTree, measure_tree, tree_bill

SIZES = {"age": 6, "city": 4, "job": 3, "sex": 2}
PEOPLE = wp.source("people", name=str, age=int, city=int, job=int, sex=int)


def people(count: int = 4000, seed: int = 1) -> list[tuple[str, int, int, int, int]]:
    """City follows from age, and sex from job, but for some: the tree holds both pairs, and one in between."""
    chance = np.random.default_rng(seed)
    age, job, off = chance.integers(6, size=count), chance.integers(3, size=count), chance.random((2, count)) < 0.1
    city = np.where(off[0], chance.integers(4, size=count), age % 4)
    sex = np.where(off[1], chance.integers(2, size=count), job % 2)
    return [(f"p{i}", *map(int, row)) for i, row in enumerate(zip(age, city, job, sex, strict=True))]


class Recorded:
    """What stands for a session on public data, and keeps what it was asked."""

    def __init__(self, data: Any, seed: int, left: Fraction = Fraction(100)) -> None:
        self.data, self.left = data, left
        self.seeds = np.random.default_rng(seed)
        self.asked: list[wp.Measurement] = []

    def release(self, measurements: wp.ListedMeasurement, *, label: str | None = None) -> wp.Answers:
        self.asked.append(measurements)
        return wp.simulate(
            measurements, {"people": self.data}, seed=int(self.seeds.integers(2**63)), engine="reference"
        )

    def remaining(self, source: str) -> Fraction:
        assert source == "people"
        return self.left


def test_a_session_measures_the_tree_for_its_bill_and_finds_what_depends_on_what() -> None:
    told: list[wp.Bill] = []
    with wp.Session() as session:
        session.protect(PEOPLE, people(), budget=2)
        measured = measure_tree(session, PEOPLE, SIZES, 2, on_bill=told.append)
        assert session.spent("people") == 2 == told[0]["people"]
        labels = [event.label for event in session.history() if event.label]
    assert labels == [
        "one-way marginals",
        *(f"choice of pair {i} of 3" for i in (1, 2, 3)),
        "the chosen pairs",
    ]
    assert {(0, 1), (2, 3)} <= set(measured.edges)
    check_spanning(measured.edges, 4)
    assert [one.view for one in measured.views] == [(0,), (1,), (2,), (3,), *sorted(measured.edges)]
    truth = np.array([row[1:] for row in people()])
    for one in measured.views:
        shape = tuple(list(SIZES.values())[i] for i in one.view)
        counts = np.zeros(shape)
        np.add.at(counts, tuple(truth[:, i] for i in one.view), 1)
        assert one.counts.shape == shape
        # all cells within 40 scales: a chance of far less than 1e-9 to fail
        assert np.abs(one.counts - counts).max() < 40 * one.scale


def check_spanning(edges: tuple[View, ...], attributes: int) -> None:
    """Every attribute is reached, by no more edges than that takes."""
    component = list(range(attributes))
    for a, b in edges:
        assert component[a] != component[b]
        component = [component[a] if one == component[b] else one for one in component]
    assert len(set(component)) == 1
    assert len(edges) == attributes - 1


def test_the_bill_is_what_is_asked_for_round_by_round() -> None:
    for epsilon, shares in ((1, (6, 1, 3)), (Fraction(1, 7), (1, 1, 1)), ("0.1", (0.5, "0.2", 0.3))):
        bill = tree_bill(PEOPLE, SIZES, epsilon, shares=shares)
        whole = Fraction(epsilon) if not isinstance(epsilon, Fraction) else epsilon
        assert bill == {"people": whole}
        assert len(bill.labels) == 5
        standing = Recorded(people(300), seed=3)
        measure_tree(standing, PEOPLE, SIZES, epsilon, shares=shares)
        assert [m.epsilon for m in standing.asked] == [m.epsilon for m in bill.measurements]
        assert [type(m.sink) for m in standing.asked] == [type(m.sink) for m in bill.measurements]
        assert wp.bill(standing.asked) == bill
        assert sum(m.epsilon for m in standing.asked) == whole
        # all but the last in whole billionths, so that no debit is rounded up to more than the bill
        assert all((m.epsilon * 10**9).denominator == 1 for m in standing.asked[:-1])


def test_uses_and_units_are_in_the_bill() -> None:
    twice = wp.source("people", name=str, age=int, city=int, job=int, sex=int, unit_weight=3)
    assert tree_bill(twice.concat(twice), SIZES, 1) == {"people": 6}


@pytest.mark.parametrize("left", ["0.999999999", "0.000000001", "0"])
def test_what_is_not_covered_to_the_end_is_not_begun(left: str) -> None:
    standing = Recorded(people(50), seed=1, left=Fraction(left))
    with pytest.raises(wp.BudgetExceeded, match="nothing was spent"):
        measure_tree(standing, PEOPLE, SIZES, 1)
    assert standing.asked == []
    assert measure_tree(standing, PEOPLE, SIZES, 1, resume=True).edges


@pytest.mark.parametrize("missing", [0, 1])
def test_what_debits_are_rounded_up_by_is_asked_for_beforehand(missing: int) -> None:
    """A choice may be rounded up by half a billionth, and so may the pairs: a bill of 0.5 is not enough."""
    halves = wp.source("people", unit_weight=0.5, age=int, city=int, job=int, sex=int)
    bill = tree_bill(halves, SIZES, 1)
    needed = bill.in_turn()["people"]
    assert bill["people"] == Fraction(1, 2) < needed <= Fraction(1, 2) + 5 * Fraction(1, 10**9)
    with wp.Session() as session:
        session.protect(halves, {(0, 0, 0, 0): 0.25}, budget=needed - missing * Fraction(1, 10**9))
        if missing:
            with pytest.raises(wp.BudgetExceeded, match="nothing was spent"):
                measure_tree(session, halves, SIZES, 1)
            assert session.spent("people") == 0
        else:
            measure_tree(session, halves, SIZES, 1)
            assert session.remaining("people") == 0


def test_a_tree_that_was_interrupted_goes_on_from_the_ledger(tmp_path: Any) -> None:
    class Interrupted(Exception):
        pass

    class Failing:
        def __init__(self, session: wp.Session, after: int) -> None:
            self.session, self.after = session, after

        def release(self, measurements: wp.ListedMeasurement, *, label: str | None = None) -> wp.Answers:
            if not self.after:
                raise Interrupted
            self.after -= 1
            return self.session.release(measurements, label=label)

        def remaining(self, source: str) -> Fraction:
            return self.session.remaining(source)

    data = people(500)
    with wp.Session(tmp_path / "ledger") as session:
        session.protect(PEOPLE, data, budget=1, version="1")
        with pytest.raises(Interrupted):
            measure_tree(Failing(session, after=3), PEOPLE, SIZES, 1)
        spent = session.spent("people")
        assert Fraction(6, 10) < spent < Fraction(7, 10)
    with wp.Session(tmp_path / "ledger") as session:
        session.protect(PEOPLE, data, budget=1, version="1")
        with pytest.raises(wp.BudgetExceeded, match="resume=True"):
            measure_tree(session, PEOPLE, SIZES, 1)
        measured = measure_tree(session, PEOPLE, SIZES, 1, resume=True)
        again = measure_tree(session, PEOPLE, SIZES, 1, resume=True)
        assert session.spent("people") == 1
    assert measured.edges == again.edges
    assert all((a.counts == b.counts).all() for a, b in zip(measured.views, again.views, strict=True))


def test_only_pairs_between_components_are_candidates_each_with_its_penalty() -> None:
    tree = AdaptiveTree.of(SIZES, 2, penalty="0.25")
    ones = tree.even(60)
    every = list(combinations(range(4), 2))
    assert [one.view for one in tree.candidates(ones, [])] == every
    assert [one.view for one in tree.candidates(ones, [(0, 1), (2, 3)])] == [(0, 2), (0, 3), (1, 2), (1, 3)]
    assert tree.candidates(ones, [(0, 1), (1, 2), (0, 3)]) == ()
    for one in tree.candidates(ones, []):
        cells = int(np.prod([list(SIZES.values())[i] for i in one.view]))
        assert one.penalty == pytest.approx(0.25 * cells * 3 / 0.6)
        np.testing.assert_allclose(one.table, 60 / cells)
    with pytest.raises(wp.PlanError, match="closes a circle"):
        tree.candidates(ones, [(0, 1), (1, 2), (0, 2)])


def test_a_penalty_keeps_noise_away_from_the_tree() -> None:
    """A large pair of which there is a little to tell, against small ones: with the penalty it is left out."""
    wide = wp.source("people", a=int, b=int, c=int)
    rows = [(i % 40, (i * 7 + i // 40) % 40, (i // 3) % 2) for i in range(3000)]
    edges = {}
    for penalty in (0, 1):
        standing = Recorded(rows, seed=5)
        measured = measure_tree(standing, wide, {"a": 40, "b": 40, "c": 2}, 2, penalty=penalty)
        edges[penalty] = set(measured.edges)
    assert (0, 1) in edges[0]
    assert (0, 1) not in edges[1]


def test_one_ways_are_non_negative_and_of_one_total() -> None:
    tree = AdaptiveTree.of((3, 2), 1)
    noisy = [MeasuredView((1,), np.array([5.0, 7.0]), 1.0), MeasuredView((0,), np.array([9.0, -4.0, 5.0]), 2.0)]
    first, second = tree.one_ways(noisy)
    # sums 10 and 12, of variance 3·8 and 2·2
    total = (10 / 24 + 12 / 4) / (1 / 24 + 1 / 4)
    assert first.sum() == pytest.approx(total)
    assert second.sum() == pytest.approx(total)
    assert first[1] == 0
    assert (first >= 0).all()
    for some in (noisy[:1], [*noisy, noisy[0]]):
        with pytest.raises(wp.PlanError, match="every one-way"):
            tree.one_ways(some)
    nobody = [MeasuredView((i,), np.full(size, -3.0), 1.0) for i, size in enumerate((3, 2))]
    assert [one.sum() for one in tree.one_ways(nobody)] == pytest.approx([1, 1])


def test_values_out_of_range_are_in_no_view() -> None:
    kept = [(0, 0), (1, 1)] * 500
    rows = [*kept, *[(9, 0)] * 10_000, *[(0, -1)] * 10_000]
    two = wp.source("people", a=int, b=int)
    standing = Recorded(rows, seed=2)
    measured = measure_tree(standing, two, {"a": 2, "b": 2}, 20)
    for one in measured.views:
        assert abs(one.counts.sum() - 1000) < 100
    choice = next(m for m in standing.asked if isinstance(m.sink, MostDistant))
    assert dict(wp.evaluate(wp.Query(choice.plan), {"people": rows})) == {(0, 0): 500, (1, 1): 500}


@pytest.mark.parametrize(
    ("attributes", "more", "message"),
    [
        ({"age": 6}, {}, "two attributes"),
        ({"age": 2000, "city": 2000}, {}, "fewer bins"),
        (SIZES, {"shares": (0.5, 0.5)}, "split in three"),
        (SIZES, {"shares": (0.5, 0, 0.5)}, "each more than 0"),
        (SIZES, {"penalty": -1}, "at least 0"),
        ({"age": 6, "name": 4}, {}, "integers"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_spent(
    attributes: Any, more: dict[str, Any], message: str
) -> None:
    standing = Recorded(people(5), seed=0)
    with pytest.raises(wp.PlanError, match=message):
        measure_tree(standing, PEOPLE, attributes, 1, **more)
    assert standing.asked == []
    for wrong in (0, "1e-9"):
        with pytest.raises(wp.EpsilonError):
            measure_tree(standing, PEOPLE, SIZES, wrong)


def test_what_is_asked_next_is_a_function_of_answers_alone() -> None:
    """Two datasets with one record between them, and the same answers to all that came before: the same question."""
    data = people(400)

    class Replaying(Recorded):
        def __init__(self, answers: tuple[wp.Answers, ...]) -> None:
            super().__init__([], 0)
            self.answers = list(answers)

        def release(self, measurements: wp.ListedMeasurement, *, label: str | None = None) -> wp.Answers:
            self.asked.append(measurements)
            return self.answers[len(self.asked) - 1]

    first = Recorded(data, seed=8)
    measured: MeasuredTree = measure_tree(first, PEOPLE, SIZES, 1)
    second = Replaying(measured.answers)
    measure_tree(second, PEOPLE, SIZES, 1)
    assert [m.digest for m in first.asked] == [m.digest for m in second.asked]
    assert len({m.digest for m in first.asked}) == 5


def test_each_choice_compares_with_the_product_of_the_fitted_one_ways() -> None:
    standing = Recorded(people(400), seed=4)
    measured = measure_tree(standing, PEOPLE, SIZES, 1)
    ones = AdaptiveTree.of(SIZES, 1).one_ways(measured.views[:4])
    choices = [m.sink for m in standing.asked if isinstance(m.sink, MostDistant)]
    for i, sink in enumerate(choices):
        assert not set(measured.edges[:i]) & set(sink.keys)
        for one in sink.candidates:
            a, b = one.view
            np.testing.assert_allclose(one.table, np.outer(ones[a], ones[b]).ravel() / ones[0].sum())


def test_all_trees_of_small_tables_are_reached() -> None:
    """At a tiny epsilon every spanning tree of three attributes comes up."""
    three = wp.source("people", a=int, b=int, c=int)
    found = set()
    for seed in range(60):
        standing = Recorded(list(product(range(2), repeat=3)), seed=seed)
        found.add(frozenset(measure_tree(standing, three, {"a": 2, "b": 2, "c": 2}, "0.001", penalty=0).edges))
    assert len(found) == 3  # each left out with a chance of about (2/3)^60 < 3e-11; seeds are fixed
