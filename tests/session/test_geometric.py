"""GeometricCount: double-geometric noise on the lattice that the plan proves."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

import wpinq as wp
from wpinq import functions as F
from wpinq.noise.noise_distributions import DoubleGeometric
from wpinq.sinks.geometric import GeometricCount

PEOPLE = wp.source("people", group=int, person=int, facts=["unit_weights"], cap=1000)
ROWS = [(i % 5, i) for i in range(40)]
SIZES = PEOPLE.group_by(lambda p: p.group, lambda members: F.count(members)).select(lambda g: g.val)


def session() -> wp.Session:
    opened = wp.Session()
    opened.protect(PEOPLE, ROWS, budget=1000)
    return opened


def test_answers_are_multiples_of_the_lattice_with_the_geometric_law() -> None:
    """Each frequency within its exact binomial bound; false alarm below 1e-9 for each by Chernoff."""
    measurement = SIZES.geometric_count(epsilon=1, over=range(20_000))
    with session() as opened:
        answers = opened.release(measurement)
    assert isinstance(answers, wp.Answers)
    assert measurement.sink.factor == Fraction(1, 2)
    steps = Counter(int(value) for value in answers.values[100:] * 2)
    assert set(answers.values * 2) == {float(int(value)) for value in answers.values * 2}
    law, total = DoubleGeometric(2.0), len(answers) - 100  # scale 1/(εg) = 2 steps
    for k in range(-6, 7):
        chance = law.survival(abs(k) - 1) - law.survival(abs(k))
        spread = math.sqrt(3 * total * chance * math.log(2e9))
        assert abs(steps[k] - total * chance) <= spread


def test_interval_covers_exactly_what_it_says() -> None:
    answers = wp.simulate(SIZES.geometric_count(1, over=range(50_000)), {"people": ROWS}, seed=3)
    assert isinstance(answers, wp.Answers)
    low, high = answers.interval(60, 0.9)
    half = (high - low) / 2
    noise = DoubleGeometric(2.0)
    steps = round(half * 2)
    assert 1 - 2 * noise.survival(steps) >= 0.9 > 1 - 2 * noise.survival(steps - 1)
    inside = sum(abs(value) <= half for value in answers.values[100:]) / 49_900
    assert inside >= 0.9 - 0.01


def test_it_is_billed_as_a_count_and_the_bill_states_its_proviso() -> None:
    measurement = SIZES.geometric_count(epsilon=0.5, over=range(10))
    bill = wp.bill(measurement)
    assert bill["people"] == Fraction(1, 2)
    assert "neighbours with outputs on the same lattice" in str(bill)
    with session() as opened:
        first = opened.release(measurement)
        again = opened.release(measurement)
        assert opened.spent("people") == Fraction(1, 2)
        other = opened.release(SIZES.noisy_count(0.5, over=range(10)))
    assert isinstance(first, wp.Answers)
    assert isinstance(again, wp.Answers)
    assert isinstance(other, wp.Answers)
    assert (first.values == again.values).all()
    assert not (first.values == other.values).any()


def test_a_plan_without_a_lattice_is_refused_when_written_naming_the_step() -> None:
    with pytest.raises(wp.PlanError, match="Join"):
        PEOPLE.join(PEOPLE, lambda a: a.group, lambda b: b.group).geometric_count(1)
    with pytest.raises(wp.PlanError, match="weights=True"):
        wp.source("rows", int, weights=True).geometric_count(1)


def test_a_lattice_made_by_hand_is_refused_before_the_debit() -> None:
    measurement = SIZES.geometric_count(1, over=range(3))
    with session() as opened, pytest.raises(wp.PlanError, match="another lattice"):
        opened.release(replace(measurement, sink=GeometricCount(Fraction(1))))
    with wp.Session() as opened:
        fine = wp.source("people", group=int, person=int, facts=["unit_weights"])
        shaved = fine.shave(1e-12, limit=3).geometric_count(1, over=[])
        opened.protect(fine, ROWS, budget=1000)
        with pytest.raises(wp.WpinqError):
            opened.release(shaved)
        assert opened.spent("people") == 0
    with pytest.raises(wp.PlanError):
        GeometricCount(Fraction(0))


def test_answers_and_text_round_trip(tmp_path: Path) -> None:
    measurement = SIZES.geometric_count(0.25, over=range(4))
    answers = wp.simulate(measurement, {"people": ROWS}, seed=1)
    assert isinstance(answers, wp.Answers)
    answers.save(tmp_path / "a.json")
    loaded = wp.Answers.load(tmp_path / "a.json")
    assert loaded.measurement == measurement
    assert loaded.interval(2) == answers.interval(2)
    assert wp.parse(wp.unparse({"m": measurement}))["m"] == measurement
