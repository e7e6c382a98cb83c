"""A choice of a view loses no more than epsilon: every outcome on small data, with exact chances."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations, product
from math import comb, prod

import numpy as np
import pytest
from scipy import stats

import wpinq as wp
from tests.support.choice_laws import permute_and_flip
from wpinq.noise.permute_and_flip import select, selection_scale
from wpinq.plan.properties import plan_properties
from wpinq.sinks.compared_marginals import ComparedMarginal
from wpinq.sinks.most_distant import MostDistant

FALSE_ALARM = 1e-9
SIZES = (2, 2)
RECORDS = (*product(range(2), repeat=2), (0, 2), (2, 2))
"""Those of all cells, one that is in no cell of the second attribute, and one that is in none at all."""

COMPARED = (
    ComparedMarginal((0,), ([2, 0],)),
    ComparedMarginal((1,), ([1, 1],), penalty=1),
    ComparedMarginal((0, 1), ([1, 2], [1, 0]), penalty=2),
)
VIEWS = MostDistant(SIZES, COMPARED)

Scores = Callable[[dict[tuple[int, int], int]], list[Fraction]]


def law(scores: Sequence[Fraction], base: int) -> list[Fraction]:
    """The chances of permute-and-flip at a scale of `1/ln(base)`, for scores that are integers: rationals.

    Candidate i is chosen where all that were visited before refused, the sets of which are equally likely by size.
    """
    best = max(scores)
    heads = [Fraction(1, base ** int(best - score)) for score in scores]
    assert all(score.denominator == 1 for score in scores)
    count = len(scores)
    chances = []
    for i, own in enumerate(heads):
        others = [head for j, head in enumerate(heads) if j != i]
        met = sum(
            prod(1 - head for head in before) / Fraction(count * comb(count - 1, size))
            for size in range(count)
            for before in combinations(others, size)
        )
        chances.append(own * met)
    assert sum(chances) == 1
    return chances


def neighbours() -> Iterator[tuple[dict[tuple[int, int], int], dict[tuple[int, int], int]]]:
    """Every dataset of at most two of each record, with every one that has one record more."""
    for counts in product(range(3), repeat=len(RECORDS)):
        data = dict(zip(RECORDS, counts, strict=True))
        for record in RECORDS:
            yield data, {**data, record: data[record] + 1}


def worst(scores: Scores, base: int) -> Fraction:
    """The largest ratio of the chances of an outcome on two neighbours, either way."""
    found, known = Fraction(0), {}
    for pair in neighbours():
        chances = []
        for data in pair:
            given = tuple(scores(data))
            if given not in known:
                known[given] = law(given, base)
            chances.append(known[given])
        for one, other in zip(*chances, strict=True):
            found = max(found, one / other, other / one)
    return found


def test_no_outcome_on_small_data_loses_more_than_epsilon_at_a_scale_of_two_over_epsilon() -> None:
    # e^epsilon = 4, so that the scale 2/epsilon is 1/ln 2 and every chance is a rational
    assert Fraction(7, 2) < worst(VIEWS.scores, base=2) <= 4


def test_at_the_scale_of_most_common_it_would_lose_nearly_two_epsilon() -> None:
    # the same epsilon at a scale of 1/epsilon: e^(2 epsilon) = 16
    assert 14 < worst(VIEWS.scores, base=4) <= 16


def test_two_epsilon_is_reached_at_the_scale_of_most_common() -> None:
    two = MostDistant((2, 2), (ComparedMarginal((0,), ([0, 9],)), ComparedMarginal((1,), ([9, 0],), penalty=9)))
    before, after = two.scores({(1, 1): 2}), two.scores({(1, 1): 3})
    assert [b - a for a, b in zip(before, after, strict=True)] == [-1, 1]
    assert law(before, 4)[1] * 16 == law(after, 4)[1] or law(after, 4)[1] / law(before, 4)[1] == 16
    assert law(after, 2)[1] / law(before, 2)[1] == 4


def test_the_audit_finds_a_score_that_moves_too_far() -> None:
    def relative(data: dict[tuple[int, int], int]) -> list[Fraction]:
        """As a share of the total, times ten: what normalises by the data is not 1-Lipschitz in units of weight."""
        total = max(1, sum(data.values()))
        return [Fraction(int(10 * score / total)) for score in VIEWS.scores(data)]

    def wrapped(data: dict[tuple[int, int], int]) -> list[Fraction]:
        """Codes without a cell put into two at once."""
        more = dict(data)
        for (_, b), count in data.items():
            if b == 2:
                for cell in ((0, 0), (1, 1)):
                    more[cell] = more.get(cell, 0) + count
        return VIEWS.scores(more)

    def squared(data: dict[tuple[int, int], int]) -> list[Fraction]:
        return [score * abs(score) for score in VIEWS.scores(data)]

    for planted in (relative, wrapped, squared):
        assert worst(planted, base=2) > 4


def test_scores_move_by_at_most_one_a_unit_of_weight_up_and_down() -> None:
    chance = np.random.default_rng(3)
    sizes, views = (3, 4, 2), [(0, 1), (1, 2), (0, 2), (0, 1, 2), (1,)]
    lowest, highest = Fraction(0), Fraction(0)
    for _ in range(300):
        compared = tuple(
            ComparedMarginal(view, (chance.normal(size=prod(sizes[i] for i in view)) * 5,), chance.normal())
            for view in views
        )
        sink = MostDistant(sizes, compared)
        records = [tuple(map(int, row)) for row in chance.integers(-1, 4, size=(9, 3))]
        left = {record: Fraction(int(chance.integers(-8, 9)), 4) for record in records}
        moved = {record: Fraction(int(chance.integers(-8, 9)), 8) for record in records}
        right = {record: weight + moved[record] for record, weight in left.items()}
        size = sum(map(abs, moved.values()))
        moves = [b - a for a, b in zip(sink.scores(left), sink.scores(right), strict=True)]
        assert max(map(abs, moves)) <= size
        assert max(moves) - min(moves) <= sink.score_range * size
        if size:
            lowest, highest = min(lowest, min(moves) / size), max(highest, max(moves) / size)
    assert lowest < -Fraction(3, 4)
    assert highest > Fraction(3, 4)


def test_fractions_are_chosen_as_often_as_they_should() -> None:
    scores = [Fraction(1, 3), Fraction(10**40, 10**40 + 1), Fraction(-2, 7)]
    scale = selection_scale(Fraction(1), Fraction(0), Fraction(2))
    counts = np.bincount([select(scores, scale) for _ in range(4000)], minlength=3)
    expected = permute_and_flip([float(score) for score in scores], scale)
    share = FALSE_ALARM / 6
    binomial = stats.binom(4000, expected)
    assert ((binomial.ppf(share) <= counts) & (counts <= binomial.isf(share))).all()


def test_a_session_draws_the_law_at_two_over_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    scales: list[float] = []

    def told(scores: Sequence[Fraction], scale: float) -> int:
        scales.append(scale)
        return select(scores, scale)

    monkeypatch.setattr("wpinq.kernel.prepare.select", told)
    people = wp.source("people", a=int, b=int)
    data = [(0, 0)] * 3 + [(1, 1)] * 2 + [(0, 2)]
    asked = people.select(lambda r: (r.a, r.b)).most_distant(1, SIZES, COMPARED)
    draws = 600
    with wp.Session(engine="reference") as session:
        session.protect(people, data, budget=draws)
        found = [session.release(asked, fresh=True).value for _ in range(draws)]
        assert session.spent("people") == draws
    exact = 2 * (1 + plan_properties(asked.plan).slack())
    assert set(scales) == {scales[0]}
    assert 2 < exact <= Fraction(scales[0])
    assert Fraction(np.nextafter(scales[0], 0)) < exact
    counts = np.array([found.count(view) for view in VIEWS.keys])
    scores = VIEWS.scores({(0, 0): 3, (1, 1): 2, (0, 2): 1})
    binomial = stats.binom(draws, permute_and_flip([float(score) for score in scores], scales[0]))
    share = FALSE_ALARM / 6
    assert ((binomial.ppf(share) <= counts) & (counts <= binomial.isf(share))).all()
