"""Buckets as a release: billed, debited, stored, replayed, written and read like any other, and drawn at its scale."""

from __future__ import annotations

import contextlib
import io
import math
import pathlib
import pickle
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from scipy import stats

import wpinq as wp
from tests.support.partitions import gibbs
from wpinq.cli.main import main
from wpinq.errors import EpsilonError
from wpinq.kernel import prepare as prepare_module
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.kernel.prepare import prepare
from wpinq.language import parse
from wpinq.measure.delta_reading import Charged, spent_at
from wpinq.measure.measurement import Measurement
from wpinq.measure.renyi import BUCKETS
from wpinq.plan.properties import plan_properties
from wpinq.sinks.buckets import Buckets

AGES = wp.source("ages", int)
ROWS = [1] * 60 + [2] * 60 + [9, 9, -4]
HUGE = 50


def asked(epsilon: object = 1, bins: int = 4, penalty: object = 5, split: object = "0.5") -> wp.Measurement:
    return AGES.buckets(epsilon, bins, penalty, split)


@pytest.mark.parametrize("engine", ["reference", "duckdb"])
def test_buckets_are_released_debited_stored_and_replayed(engine: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "ledger.db"
    with wp.Session(path, engine=engine) as session:
        session.protect(AGES, ROWS, budget=3 * HUGE, version="one")
        answers = session.release(asked(HUGE))
        assert answers.value == (0, 1, 2, 3)  # [0, 60, 60, 0]: the least cost, and -4 and 9 are no bins
        assert answers.keys == (0, 1, 2, 3)
        assert session.spent("ages") == HUGE
        again = session.release(asked("0.01"))
        assert session.spent("ages") == HUGE + Fraction(1, 100)
        other = session.release([asked("0.01"), asked("0.01", penalty=6), asked("0.01", split="0.4")])
        assert session.spent("ages") == HUGE + Fraction(3, 100)
        assert list(other[0].values) == list(again.values)
        session.release(asked("0.01"), fresh=True)
        assert session.spent("ages") == HUGE + Fraction(4, 100)
    with wp.Session(path, engine=engine) as session:
        session.protect(AGES, ROWS, budget=3 * HUGE, version="one")
        assert list(session.release(asked("0.01")).values) == list(again.values)
        assert session.spent("ages") == HUGE + Fraction(4, 100)
    for kept in (wp.Answers.from_json(again.to_json()), pickle.loads(pickle.dumps(again))):
        assert kept.to_json() == again.to_json()
        assert kept.value == again.value


def test_a_draw_of_another_process_stands_whole(tmp_path: pathlib.Path) -> None:
    """Who stores second reads the first's buckets, and no mixture of both."""
    path = tmp_path / "ledger.db"
    with wp.Session(path) as one, wp.Session(path) as other:
        for session in (one, other):
            session.protect(AGES, ROWS, budget=1000, version="one")
        for tenth in range(1, 30):
            first = one.release(asked(Fraction(tenth, 100), bins=16, penalty="0.1"))
            assert other.release(asked(Fraction(tenth, 100), bins=16, penalty="0.1")).value == first.value


def test_the_bill_and_the_scale_are_those_of_the_plan() -> None:
    pair = wp.source("ages", int, unit_weight=3)
    twice = pair.concat(pair.select(lambda x: x + 1))
    measurement = twice.buckets("0.1", 8, 5)
    assert wp.bill(measurement)["ages"] == Fraction(6, 10)
    with wp.Session() as session:
        session.protect(pair, ROWS, budget=100)
        order = prepare(measurement, session._protected, fresh=False)
        assert order.scale >= 2 * (1 + plan_properties(measurement.plan).slack()) / Fraction(1, 10) > 20
        assert order.scale < 20.001
        session.release(measurement)
        assert session.spent("ages") == Fraction(6, 10)


def test_a_session_draws_from_the_law_of_its_data() -> None:
    """3,000 fresh releases against the law by definition: noise is the kernel's own, the false-alarm rate 1e-6."""
    size, rows = 3000, [2, 2, 3, 3, 3, 0]
    law = gibbs([1, 0, 2, 3], Fraction(2), Fraction(1), Fraction(1, 2))
    with wp.Session(engine="reference") as session:
        session.protect(AGES, rows, budget=10**6)
        seen = Counter(session.release(asked(1, penalty=1), fresh=True).value for _ in range(size))
    assert seen.keys() <= law.keys()
    found = [seen[starts] for starts in law]
    expected = [float(chance) * size for chance in law.values()]
    assert min(expected) > 50
    assert stats.chisquare(found, expected).pvalue > 1e-6


def test_simulations_are_drawn_alike_from_a_seed() -> None:
    data = {"ages": ROWS}
    one, same = (wp.simulate(asked("0.02"), data, seed=4) for _ in "ab")
    assert one.simulated
    assert list(one.values) == list(same.values)
    assert len({wp.simulate(asked("0.02"), data, seed=seed).value for seed in range(40)}) > 1


def test_what_makes_no_sense_is_refused() -> None:
    for bins in (0, -1, True, 2**20 + 1, 4.0, "4"):
        with pytest.raises(wp.PlanError, match="bins"):
            asked(bins=bins)
    for penalty in (0, -1, math.nan, math.inf):
        with pytest.raises(EpsilonError):
            asked(penalty=penalty)
    with pytest.raises(wp.PlanError, match="between 0 and 1"):
        asked(split=1)
    with pytest.raises(wp.PlanError, match="select the bin first"):
        wp.source("names", str).buckets(1, 4, 5)
    for wrong in ((4, 5, Fraction(1, 2)), (4, Fraction(5), 0.5), (4, Fraction(0), Fraction(1, 2))):
        with pytest.raises(wp.PlanError):
            Buckets(*wrong)


def test_what_was_made_by_hand_is_refused_before_the_debit() -> None:
    made = asked()
    with wp.Session() as session:
        session.protect(AGES, ROWS, budget=10)
        for domain in (None, (), (0, 1, 2), (0, 1, 2, 3, 4), (3, 2, 1, 0)):
            with pytest.raises(wp.SessionError, match="all bins together"):
                session.release(Measurement(made.plan, made.sink, Fraction(1), domain))
        for epsilon in (Fraction(0), Fraction(-1)):
            with pytest.raises(EpsilonError):
                session.release(replace(made, epsilon=epsilon))
        assert session.spent("ages") == 0


def test_what_fails_is_hidden_and_stays_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(weights: list[float], *rest: object) -> None:
        raise MemoryError(f"{weights} are too many")

    monkeypatch.setattr(prepare_module, "draw_buckets", exhausted)
    with wp.Session() as session:
        session.protect(AGES, ROWS, budget=1)
        with pytest.raises(wp.EvaluationFailed) as caught:
            session.release(asked())
        assert "60" not in str(caught.value)
        assert caught.value.__cause__ is caught.value.__context__ is None
        assert session.remaining("ages") == 0


def test_text_and_method_are_equal() -> None:
    program = parse(
        "source ages: int;\nvar a = ages.Buckets(0.5, 64, 2.5);\nvar b = ages.Buckets(0.5, 64, 2.5, split: 0.1);\n"
    )
    assert [program[name] for name in "ab"] == [asked(0.5, 64, 2.5), asked(0.5, 64, 2.5, 0.1)]
    assert str(parse(str(program))) == str(program)
    for wrong, told in (("0.5, 2.5, 1", "integer"), ("0.5, 64, 0", "more than 0"), ("0.5, 64, 1, split: 2", "split")):
        with pytest.raises(wp.LanguageError, match=told):
            parse(f"source ages: int;\nvar a = ages.Buckets({wrong});\n")


def test_files_hold_buckets_of_the_tree_and_nothing_else() -> None:
    data = wp.simulate(asked(bins=6), {"ages": ROWS}, seed=1).to_json()
    assert data["sink"] == {"name": "Buckets", "bins": 6, "penalty": "5", "split": "1/2"}

    def values(*starts: int) -> dict[str, Any]:
        return {"values": [float(bin in starts) for bin in range(6)]}

    assert wp.Answers.from_json({**data, **values(0, 2, 4)}).value == (0, 2, 4)
    assert wp.Answers.from_json({**data, **values(0, 4, 5)}).value == (0, 4, 5)
    for change in (
        values(),
        values(1),
        values(0, 1),  # 1 to 5 is no node
        values(0, 3),
        values(0, 5),
        {"values": [1.0, 0.5, 0.0, 0.0, 0.0, 0.0]},
        {"keys": [0, 1, 2, 3, 4, 6]},
        {"sink": {"name": "Buckets", "bins": 7, "penalty": "5", "split": "1/2"}},
        {"sink": {"name": "Buckets", "bins": 6, "penalty": "-5", "split": "1/2"}},
        {"sink": {"name": "Buckets", "bins": 6, "penalty": "5", "split": "3/2"}},
        {"sink": {"name": "Buckets", "bins": 6, "penalty": "1e3000000", "split": "1/2"}},
        {"sink": {"name": "Buckets", "bins": 6, "penalty": str(2**31 + 1), "split": "1/2"}},  # of which no text is read
        {"sink": {"name": "Buckets", "bins": 6, "penalty": 0.1, "split": "1/2"}},
    ):
        with pytest.raises(wp.AnswersError):
            wp.Answers.from_json({**data, **change})


def test_tables_show_where_buckets_begin_without_an_interval() -> None:
    answers = wp.simulate(asked(HUGE), {"ages": [0, 0] * 400}, seed=1)
    assert answers.value == (0, 1, 2)
    assert [(row.key, row.estimate, row.low, row.high) for row in answers.rows()] == [
        ((bin,), float(bin < 3), None, None) for bin in range(4)
    ]
    assert list(answers.to_pandas()["estimate"]) == [1.0, 1.0, 1.0, 0.0]
    assert answers.to_arrow().num_rows == answers.to_polars().height == 4
    assert "begins" in repr(answers)
    assert "none" in answers._repr_html_()
    for refused in (answers.value_interval, lambda: answers.interval(0), lambda: answers.above(0)):
        with pytest.raises(wp.AnswersError):
            refused()
    (row,) = wp.accuracy(asked(), half_width=1)
    assert (row.half_width, row.missing) == (None, "a choice of buckets, and no number")


def test_explanations_say_what_is_chosen_and_how_well(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "buckets.wpq"
    path.write_text("source ages: int;\nvar t = ages.Buckets(0.5, 64, 2.5);\n")
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        assert main(["explain", str(path)]) in (None, 0)
    text = shown.getvalue()
    assert "a release costs epsilon x 1 = 0.5" in text
    assert "of 64 bins it puts neighbours that are alike into buckets" in text
    assert "A bucket costs 2.5" in text
    assert "what costs 4" in text


def test_the_reading_at_a_delta_knows_its_log_ratios_lie_in_an_interval(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "ledger.db"
    with wp.Session(path) as session:
        session.protect(AGES, ROWS, budget=100)
        for _ in range(40):
            session.release(asked("0.1"), fresh=True)
        found = session.spent("ages", delta="1e-6")
    expected = [Charged(BUCKETS, Fraction(1, 10))] * 40
    assert found == spent_at(Fraction(1, 10**6), expected, Fraction(4))
    worst = spent_at(Fraction(1, 10**6), [Charged("unheard of", Fraction(1, 10))] * 40, Fraction(4))
    assert found < worst < 4
    with Ledger(path, create=False) as ledger:
        ledger.verify()  # of its chain, the stored buckets among it
