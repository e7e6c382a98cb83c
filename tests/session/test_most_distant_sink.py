"""The choice of the view whose marginal is farthest from a public one: scores, refusals, replay, files, text."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

import pytest

import wpinq as wp
from tests.support.parameters import for_each
from wpinq.display.explanation import explain_plan
from wpinq.measure.measurement import Choose, Measurement, MostDistant
from wpinq.sinks.compared_marginals import CELLS_LIMIT

PEOPLE = wp.source("people", town=int, job=int | None, sex=int)
SIZES = (2, 3, 2)
COMPARED = (
    wp.ComparedMarginal((0, 1), ([0.1, 2], [1, 0, 3])),
    wp.ComparedMarginal((0, 2), ([1, 2, 3, 4],), penalty=0.3),
    wp.ComparedMarginal((0, 1, 2), ([1] * 6, [0.5, 0.25], [4]), penalty=-1),
    wp.ComparedMarginal((1,), ([-1, 1e100, 0],), penalty=1e100),
)
ASKED = PEOPLE.most_distant(1, SIZES, COMPARED)


def by_definition(weights: dict[Any, Any], one: wp.ComparedMarginal) -> Fraction:
    """The score, cell by cell, in rationals."""
    found = Fraction(0)
    for cell in product(*(range(SIZES[place]) for place in one.view)):
        marginal = sum(
            (Fraction(w) for record, w in weights.items() if tuple(record[i] for i in one.view) == cell), Fraction(0)
        )
        at, public, left = 0, Fraction(1), list(zip(cell, (SIZES[place] for place in one.view), strict=True))
        for factor in one.factors:
            at, cells = 0, 1
            while left and cells < len(factor):
                code, size = left.pop(0)
                at, cells = at * size + code, cells * size
            public *= Fraction(factor[at])
        found += abs(marginal - public)
    return found - Fraction(one.penalty)


@pytest.mark.parametrize(
    "weigh",
    [
        lambda chance: float(chance.randint(-3, 9)),
        lambda chance: chance.uniform(-5, 5),
        lambda chance: chance.choice([1e-300, 1.0, 5e-324, 2.0**60]),
        lambda chance: Fraction(chance.randint(-9, 9), chance.randint(1, 7)),
    ],
    ids=["whole", "floats", "far apart", "rationals"],
)
def test_scores_are_the_definition_exactly(weigh: Callable[[random.Random], Any]) -> None:
    chance = random.Random(8)
    for _ in range(40):
        codes = [-1, 0, 1, 2, 3, 2**62]
        records = {(chance.choice(codes), chance.choice([*codes, None]), chance.choice(codes)) for _ in range(20)}
        weights = {record: weigh(chance) for record in records}
        assert isinstance(ASKED.sink, MostDistant)
        assert ASKED.sink.scores(weights) == [by_definition(weights, one) for one in COMPARED]


def test_cells_that_nobody_is_in_count() -> None:
    sink = MostDistant((2, 2), (wp.ComparedMarginal((0, 1), ([3, 4, 5, 6],)),))
    assert sink.scores({}) == [18]
    assert sink.scores({(0, 1): 4.0, (1, 2): 9.0, (None, 0): 7.0}) == [14]


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
@pytest.mark.parametrize("rows", [[None], [None, (0, 1)], [(0, 1), None], [(0, 1)]])
def test_a_null_record_does_not_show_by_a_failure(engine: str, rows: list[Any]) -> None:
    """Whether a choice fails must not tell whether somebody's record is null: it is in no cell, and that is all."""
    pairs = wp.source("pairs", tuple[int, int | None] | None)
    candidates = [wp.ComparedMarginal((0,), ([0, 0],)), wp.ComparedMarginal((1,), ([0, 0],))]
    measurement = pairs.most_distant(1, (2, 2), candidates)
    with wp.Session(engine=engine) as session:
        session.protect(pairs, rows, budget=1)
        assert session.release(measurement).value in {(0,), (1,)}
    assert isinstance(measurement.sink, MostDistant)
    assert measurement.sink.scores({None: 3.0}) == [0, 0]
    assert measurement.sink.scores({None: 3.0, (0, 5): 1.0, (0, None): 2.0}) == [3, 0]


def test_records_of_one_integer_are_codes_of_one_attribute() -> None:
    numbers = wp.source("numbers", int)
    asked = numbers.most_distant(1, [3], [wp.ComparedMarginal([0], ([1, 1, 1],))])
    assert isinstance(asked.sink, MostDistant)
    assert asked.sink.scores({0: 2.0, 2: 1.0, 7: 5.0}) == [2]
    assert wp.simulate(asked, {"numbers": [0, 1]}, seed=1).value == (0,)


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
def test_a_session_finds_what_stands_out_and_answers_again_for_nothing(engine: str) -> None:
    data = {(i % 2, i % 3, i % 2): 10.0 for i in range(6)} | {(9, None, 0): 500.0, (0, 0, 7): 200.0}
    even = [wp.ComparedMarginal(view, ([30, 30], [0.5, 0.5])) for view in ((0, 2),)]
    more = [*even, wp.ComparedMarginal((0, 1), ([130, 30], [0.5, 0.25, 0.25]), penalty=5)]
    asked = PEOPLE.select(lambda p: (p.town, p.job, p.sex)).most_distant(1, SIZES, more)
    source = wp.source("people", town=int, job=int | None, sex=int, unit_weight=500)
    asked = source.select(lambda p: (p.town, p.job, p.sex)).most_distant("1/500", SIZES, more)
    with wp.Session(engine=engine) as session:
        session.protect(source, data, budget=10_000)
        first = session.release(source.select(lambda p: (p.town, p.job, p.sex)).most_distant(10, SIZES, more))
        assert session.spent("people") == 5000
        again = session.release(source.select(lambda p: (p.town, p.job, p.sex)).most_distant(10, SIZES, more))
        assert session.spent("people") == 5000
        assert (first.value, first.scale, again.value) == ((0, 1), 0.0, (0, 1))
        session.release(asked)
        assert session.spent("people") == 5001
        assert session.bill(asked) == {"people": 1}
        # as good as any release of pure epsilon: a choice is the worst case of a reading at a delta
        assert session.spent("people", delta="1e-9") <= 5001
    for ask in (first.value_interval, lambda: first.interval((0, 1))):
        with pytest.raises(wp.AnswersError, match="no interval"):
            ask()


def test_whatever_is_drawn_differently_is_another_release() -> None:
    base = list(COMPARED[:2])
    others: list[Measurement] = [
        PEOPLE.most_distant(1, SIZES, base),
        PEOPLE.most_distant(1, SIZES, base[::-1]),
        PEOPLE.most_distant(1, SIZES, base[:1]),
        PEOPLE.most_distant(2, SIZES, base),
        PEOPLE.most_distant(1, (2, 3, 5), base[:1]),
        PEOPLE.most_distant(1, SIZES, [base[0], replace(base[1], penalty=0.30000000000000004)]),
        PEOPLE.most_distant(1, SIZES, [base[0], replace(base[1], factors=((1.0, 2.0, 3.0, 4.000000000000001),))]),
        PEOPLE.select(lambda p: (p.town, p.job, p.sex + 0)).most_distant(1, SIZES, base),
        PEOPLE.select(lambda p: (p.town, p.job, p.sex)).quantile(epsilon=1, q=0.5, candidates=[(0, 0, 0)]),
    ]
    assert len({one.digest for one in others}) == len(others)
    assert PEOPLE.most_distant(1, list(SIZES), iter(base)).digest == others[0].digest
    assert not {one.digest for one in others} & {one.former_digest for one in others[-1:]}


def test_files_pickles_and_texts_hold_all_of_it() -> None:
    answers = wp.simulate(ASKED, {"people": [(0, 0, 0), (1, None, 5)]}, seed=3)
    loaded = wp.Answers.from_json(json.loads(json.dumps(answers.to_json())))
    assert loaded.measurement == answers.measurement == pickle.loads(pickle.dumps(ASKED))
    assert loaded.value == answers.value
    assert loaded.to_json()["sink"]["candidates"][1] == {"view": [0, 2], "factors": [[1, 2, 3, 4]], "penalty": 0.3}
    program = wp.parse(wp.unparse({"asked": ASKED}))
    assert program["asked"] == ASKED
    assert program["asked"].digest == ASKED.digest
    assert answers.to_pandas().iloc[0].estimate == answers.value
    assert answers.to_arrow().column("estimate").to_pylist() == [list(answers.value)]


CHANGES: list[tuple[str, Any]] = [
    ("sizes", [2, 3]),
    ("sizes", [2, 3, 0]),
    ("sizes", ["2", 3, 2]),
    ("candidates", []),
    ("candidates.0.view", [1, 0]),
    ("candidates.0.view", [0, 9]),
    ("candidates.0.view", [0, 2]),
    ("candidates.0.factors", [[0.1, 2.0]]),
    ("candidates.0.factors", []),
    ("candidates.0.penalty", "x"),
    ("candidates.0.penalty", float("nan")),
    ("candidates.1", {"view": [0]}),
]


@for_each(("place", "value"), CHANGES, ids=range(len(CHANGES)))
def test_a_changed_file_is_refused(place: str, value: Any) -> None:
    data = json.loads(json.dumps(wp.simulate(ASKED, {"people": []}, seed=3).to_json()))
    *path, last = (int(step) if step.isdigit() else step for step in place.split("."))
    target = data["sink"]
    for step in path:
        target = target[step]
    target[last] = value
    with pytest.raises(wp.AnswersError):
        wp.Answers.from_json(data)


def test_answers_of_other_views_are_refused() -> None:
    data = wp.simulate(ASKED, {"people": []}, seed=3).to_json()
    for keys in (data["keys"][::-1], data["keys"][:1] * 4, [*data["keys"][:3], [2]]):
        with pytest.raises(wp.AnswersError):
            wp.Answers.from_json({**data, "keys": keys})


class Changeable(wp.ComparedMarginal):
    """What is no plain candidate may say of itself what it likes: that it is one that was released, for example."""


PAIR = [wp.ComparedMarginal((0, 1), ([1, 1], [1, 1, 1]))]


@for_each(
    ("ask", "message"),
    [
        (lambda: PEOPLE.most_distant(1, (2, 3), PAIR), "records of 2 integers"),
        (lambda: PEOPLE.most_distant(1, (), PAIR), "sizes"),
        (lambda: PEOPLE.most_distant(1, (2, 3, -1), PAIR), "sizes"),
        (lambda: PEOPLE.most_distant(1, (2, 3, 10**5000), PAIR), "sizes"),
        (lambda: PEOPLE.most_distant(1, SIZES, []), "candidates"),
        (lambda: PEOPLE.most_distant(1, SIZES, [Changeable((0, 1), ([1, 1], [1, 1, 1]))]), "ComparedMarginal"),
        (lambda: PEOPLE.most_distant(1, SIZES, [(0, 1)]), "ComparedMarginal"),
        (lambda: PEOPLE.most_distant(1, SIZES, PAIR * 2), "one view"),
        (lambda: PEOPLE.most_distant(1, (3, 3, 2), PAIR), "3 x 3 cells"),
        (lambda: PEOPLE.most_distant(1, (2, 3, 2), [wp.ComparedMarginal((0, 3), ([1],))]), "there are 3"),
        (lambda: PEOPLE.select(lambda p: (p.town, 0.5, p.sex)).most_distant(1, SIZES, PAIR), "of type"),
        (lambda: PEOPLE.select(lambda p: p.town).most_distant(1, SIZES, PAIR), "of type"),
        (lambda: PEOPLE.select(lambda p: (p.town, (p.job, p.sex))).most_distant(1, (2, 3), PAIR), "of type"),
        (lambda: PEOPLE.select(lambda p: (p.town, p.sex > 0)).most_distant(1, (2, 3), PAIR), "of type"),
        (
            lambda: PEOPLE.most_distant(
                1, (2**11, 2**11, 1), [wp.ComparedMarginal((0, 1), ([0] * 2**11, [0] * 2**11))]
            ),
            f"{CELLS_LIMIT:,}",
        ),
        (lambda: wp.ComparedMarginal((), ([1],)), "a view is"),
        (lambda: wp.ComparedMarginal((1, 0), ([1], [1])), "rising"),
        (lambda: wp.ComparedMarginal((0, 0), ([1], [1])), "rising"),
        (lambda: wp.ComparedMarginal((-1, 0), ([1], [1])), "rising"),
        (lambda: wp.ComparedMarginal((0.5,), ([1],)), "places"),
        (lambda: wp.ComparedMarginal("01", ([1],)), "places"),
        (lambda: wp.ComparedMarginal((0,), ()), "factor"),
        (lambda: wp.ComparedMarginal((0,), ([],)), "factor"),
        (lambda: wp.ComparedMarginal((0,), (["a"],)), "finite"),
        (lambda: wp.ComparedMarginal((0,), ([float("inf")],)), "finite"),
        (lambda: wp.ComparedMarginal((0,), ([10**400],)), "finite"),
        (lambda: wp.ComparedMarginal((0, 1), ([1e60], [-1e60])), "1e\\+100"),
        (lambda: wp.ComparedMarginal((0,), ([1],), penalty=-1e101), "1e\\+100"),
        (lambda: wp.ComparedMarginal((0,), ([1],), penalty=float("nan")), "finite"),
        (lambda: wp.ComparedMarginal((0,), ([1],), penalty=[1, 2]), "finite"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_spent(ask: Callable[[], object], message: str) -> None:
    with pytest.raises(wp.PlanError, match=message):
        ask()


def test_a_measurement_made_by_hand_is_held_to_its_views() -> None:
    with wp.Session() as session:
        session.protect(PEOPLE, [(0, 0, 0)], budget=10)
        for domain in (None, (), ((0, 1),), ASKED.sink.keys[::-1]):
            with pytest.raises(wp.SessionError, match=r"keys of its own: use .*query\.most_distant|candidate"):
                session.release(Measurement(ASKED.plan, ASKED.sink, Fraction(1), domain))
        forged = pickle.loads(pickle.dumps(ASKED))
        object.__setattr__(forged.sink, "sizes", (2, 3))
        with pytest.raises(wp.PlanError):
            session.release(forged)
        forged = pickle.loads(pickle.dumps(ASKED))
        object.__setattr__(forged.sink.candidates[0], "factors", ((float("nan"),) * 6,))
        with pytest.raises(wp.PlanError):
            session.release(forged)
        assert session.spent("people") == 0
    with pytest.raises(wp.PlanError, match="listed"):
        replace(PEOPLE.noisy_count_above(1, [(0, 0, 0)], above=3), sink=ASKED.sink)


def test_it_is_explained_and_its_exactness_told() -> None:
    said = explain_plan(ASKED.plan, ASKED.epsilon, sink=ASKED.sink)
    assert "MostDistant(1) releases no number: it picks one of the keys, by how far they are from public ones" in said
    assert "with noise of scale 2," in said
    assert "Gives a statistic: the view farthest from what it is compared with" in said
    (row,) = wp.accuracy(ASKED)
    assert row.half_width == pytest.approx(2 * 3.4011973816621555)  # 2 ln(3 / (2 · 0.05))
    assert Choose("weight").score_range * 2 == ASKED.sink.score_range
    assert str(ASKED.kind).startswith("statistic")


def test_parts_of_a_partition_choose_for_the_price_of_one() -> None:
    data = [(i % 2, i % 3, i % 2) for i in range(60)]
    parts = PEOPLE.partition(lambda p: p.sex, [0, 1])
    asked = [part.most_distant(1, SIZES, COMPARED[:2]) for part in parts.values()]
    assert wp.bill(asked) == {"people": 1}
    with wp.Session() as session:
        session.protect(PEOPLE, data, budget=1)
        assert all(answers.value in ((0, 1), (0, 2)) for answers in session.release(asked))


def test_text_programs_say_what_is_wrong() -> None:
    text = "source people(town: int, sex: int);\nvar view = people.MostDistant(1, sizes: [2, 2], over: {});\n"
    good = "[((0, 1), 0, [1.0, 2.0], [0.5, 0.5])]"
    made = wp.parse(text.replace("{}", good))["view"]
    people = wp.source("people", town=int, sex=int)
    assert made == people.most_distant(1, (2, 2), [wp.ComparedMarginal((0, 1), ([1, 2], [0.5, 0.5]))])
    for wrong, message in (
        ("[]", "candidates"),
        ("[(0, 1)]", "expected views"),
        ("3", "expected views"),
        ("[((0, 1), 0, [1.0, 2.0])]", "2 x 2 cells"),
        ("[((1, 0), 0, [1.0, 2.0], [0.5, 0.5])]", "rising"),
        ('[((0, 1), "a", [1.0, 2.0], [0.5, 0.5])]', "finite numbers"),
        ("[((0, 1), 0, [1.0, 2.0], [0.5, people])]", "parameter"),
    ):
        with pytest.raises(wp.LanguageError, match=message):
            wp.parse(text.replace("{}", wrong))
    with pytest.raises(wp.LanguageError, match="list of integers"):
        wp.parse(text.replace("{}", good).replace("[2, 2]", "[2.0, 2.0]"))


def test_the_largest_choice_is_bounded_work() -> None:
    side = 2**10
    one = wp.ComparedMarginal((0, 1), ([0.1] * side, [0.3] * side))
    assert prod((side, side)) == CELLS_LIMIT
    sink = MostDistant((side, side), (one,))
    (score,) = sink.scores({(i, i): 1.0 for i in range(side)})
    assert float(score) == pytest.approx(side * 0.97 + (CELLS_LIMIT - side) * 0.03)


@pytest.mark.parametrize("sizes", ["abc", 3, (2, 3.5, 2), None])
def test_sizes_are_a_list_of_integers(sizes: Any) -> None:
    with pytest.raises(wp.PlanError, match="a list of integers"):
        PEOPLE.most_distant(1, sizes, COMPARED)
