"""Strategies released with double-geometric noise: which have a lattice, and all that reads noise."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy.signal import lfilter

import wpinq as wp
from tests.support.parameters import for_each
from wpinq.errors import AnswersError, EpsilonError, PlanError, WpinqError
from wpinq.histograms import (
    AllRanges,
    Bins,
    CountOfCounts,
    Hierarchical,
    HierarchicalCounts,
    Identity,
    MatrixMechanism,
    PIdentity,
    Product,
    Ranges,
    Sorted,
    Tree,
    Wavelet,
    bootstrap,
    choose,
    simulated_distance,
    simulated_error,
    simulated_sorted_error,
)
from wpinq.histograms.strategy import noise_of
from wpinq.inference.intervals import Noise, geometric_half_widths, geometric_variance
from wpinq.noise.geometric import geometric_scale
from wpinq.noise.noise_distributions import DoubleGeometric
from wpinq.sinks.geometric import GeometricCount
from wpinq.sinks.laplace import NoisyCount

people = wp.source("people", int, facts=["unit_weights"], cap=10**4)
pairs = wp.source("pairs", x=int, y=int, facts=["unit_weights"], cap=10**4)
persons = wp.source("persons", name=int, group=int, place=int, facts=["unit_weights"], cap=10**4)
plain = wp.source("plain", int, cap=10**4, weights=True)

ONE = {
    "identity": (Identity(6), Fraction(1)),
    "sorted": (Sorted(6), Fraction(1)),
    "binary tree": (Hierarchical(6), Fraction(1, 4)),
    "ternary tree": (Hierarchical(6, 3), Fraction(1, 3)),
    "wavelet": (Wavelet(6), Fraction(1, 4)),
    "naive": (CountOfCounts(6, 3, "naive"), Fraction(1, 2)),
    "H_c": (CountOfCounts(6, 3, "cumulative"), Fraction(1)),
    "H_g": (CountOfCounts(6, 3, "unattributed"), Fraction(1)),
}
TWO = {
    "table": (Product(Identity(3), Identity(2)), Fraction(1)),
    "table of trees": (Product(Hierarchical(3, 3), Hierarchical(2)), Fraction(1, 4)),
}
WITH = {
    **{name: (s, g, people) for name, (s, g) in ONE.items()},
    **{name: (s, g, pairs) for name, (s, g) in TWO.items()},
}
WITHOUT = {
    "p-identity": PIdentity([[1.0] * 6]),
    "matrix": MatrixMechanism([[1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0]]),
}


def data_for(source: wp.Query) -> list[object]:
    """Distinct records of weight 1."""
    return [0, 1, 3, 5] if source is people else [(0, 0), (0, 1), (2, 1)]


# --- which strategies have a lattice ------------------------------------------------------------------------------


@for_each("name", WITH)
def test_the_lattice_of_each_strategy_and_its_noise(name):
    strategy, step, source = WITH[name]
    for mechanism in ("geometric", "automatic"):
        measurement = strategy.measure(source, Fraction(1, 2), mechanism=mechanism)
        assert measurement.sink == GeometricCount(step)
        assert measurement.domain == strategy.keys
        assert wp.bill([measurement]) == {source.plan.operator.source: Fraction(1, 2)}
        known = strategy.noise(epsilon=measurement)
        assert known == Noise(float(2 * strategy.sensitivity), float(step * strategy.sensitivity))
        answers = wp.simulate(measurement, {source.plan.operator.source: data_for(source)}, seed=1)
        assert strategy.noise(answers).step == known.step
        assert strategy.noise(answers).scale == pytest.approx(known.scale, rel=1e-12)
    laplace = strategy.measure(source, Fraction(1, 2))
    assert laplace.sink == NoisyCount()
    assert strategy.noise(epsilon=laplace) == strategy.noise(epsilon=0.5) == Noise(float(2 * strategy.sensitivity))


@pytest.mark.parametrize("name", WITHOUT)
def test_tables_have_none_and_the_step_is_named_before_any_budget(name):
    strategy = WITHOUT[name]
    with wp.Session() as session:
        session.protect(people, [0, 1], budget=1)
        with pytest.raises(PlanError, match="SelectMany"):
            session.release(strategy.measure(people, 1, mechanism="geometric"))
        assert session.spent("people") == 0
    assert strategy.measure(people, 1, mechanism="automatic").sink == NoisyCount()
    wide = PIdentity(np.ones((2, 4000)))
    with pytest.raises(PlanError, match="SelectMany") as caught:
        wide.measure(people, 1, mechanism="geometric")
    assert len(str(caught.value)) < 1000


def test_sources_without_the_fact_are_refused_by_name():
    for strategy in (Identity(6), Sorted(6), Hierarchical(6)):
        with pytest.raises(PlanError, match=r"Source\(plain\).*weights=True"):
            strategy.measure(plain, 1, mechanism="geometric")
        assert strategy.measure(plain, 1, mechanism="automatic").sink == NoisyCount()
    with pytest.raises(PlanError, match="mechanism"):
        Identity(6).measure(people, 1, mechanism="gaussian")
    with pytest.raises(EpsilonError):
        Identity(6).measure(people, -1, mechanism="automatic")


def test_automatic_is_laplace_where_a_session_would_refuse_the_lattice():
    """Too fine for the floats of the engine, or beyond the range of geometric noise."""
    fine = people.shave(1e-12, limit=3).select(lambda piece: piece.record)
    tiny = Fraction(1, 10**20)
    for source, epsilon in ((fine, Fraction(1)), (people, tiny)):
        with wp.Session() as session:
            session.protect(people, [0, 1], budget=1)
            with pytest.raises(WpinqError, match="Laplace"):
                session.release(Hierarchical(6).measure(source, epsilon, mechanism="geometric"))
            assert session.spent("people") == 0
        assert Hierarchical(6).measure(source, epsilon, mechanism="automatic").sink == NoisyCount()


def test_programs_in_text_state_geometric_releases():
    """Also of every level of a tree of locations: parse and print give the same measurement back."""
    found = {name.replace(" ", "_").replace("-", "_"): WITH[name] for name in WITH}
    measured = {
        name: s.measure(source, Fraction(1, 3), mechanism="geometric") for name, (s, _, source) in found.items()
    }
    counts = HierarchicalCounts(Tree([[2]]), [3, 3], 4)
    levels = counts.measure(persons, [1, 2], lambda r: r.group, lambda r: r.place, mechanism="geometric")
    measured |= {"root": levels[0], "leaves": levels[1]}
    text = wp.unparse(measured)
    assert text.count("GeometricCount(") == len(measured)
    program = wp.parse(text)
    assert all(program[name] == measurement for name, measurement in measured.items())


# --- what is released ---------------------------------------------------------------------------------------------


@for_each("name", WITH)
def test_released_answers_lie_on_the_lattice(name):
    strategy, step, source = WITH[name]
    with wp.Session() as session:
        session.protect(source, data_for(source), budget=8)
        measured = strategy.measure(source, 1, mechanism="geometric")
        answers = session.release(measured)
        assert session.spent(source.plan.operator.source) == 1
        again = [session.release(measured, fresh=True) for _ in range(7)]
    steps = np.rint(answers.values / float(step))
    assert (answers.values == steps * float(step)).all()
    numbers = strategy.answers_of(answers) / float(step * strategy.sensitivity)
    np.testing.assert_allclose(numbers, np.rint(numbers), atol=1e-9)
    # all eight equal: below 1e-10 for three answers of scale 1 or more
    assert any((other.values != answers.values).any() for other in again)
    assert np.isfinite(np.asarray(strategy.infer(answers), dtype=float)).all()


@for_each("name", WITH)
def test_no_release_is_likelier_than_epsilon_allows(name):
    """Exact: outputs as Fractions, probabilities as exponents of `Pr[k] ∝ exp(−|k|/scale)`.

    Neighbours differ in one record. `Pr[release | x] / Pr[release | x'] = exp(Σ (|y − x'| − |y − x|)/scale)`, at
    most, over all y, `exp(‖x − x'‖₁/scale)`; attained at y = x.
    """
    strategy, step, source = WITH[name]
    query, label, epsilon = strategy.query(source), source.plan.operator.source, Fraction(7, 10)
    scale = Fraction(geometric_scale(epsilon, step, Fraction(0)))
    records = data_for(source)
    losses = []
    for leave in range(len(records)):
        both = [
            wp.evaluate(query, {label: part}, exact=True) for part in (records, records[:leave] + records[leave + 1 :])
        ]
        outputs = [[part.get(key, Fraction(0)) / step for key in strategy.keys] for part in both]
        assert all(number.denominator == 1 for output in outputs for number in output)
        for x, other in (outputs, outputs[::-1]):
            for y in (x, other, [a + 1 for a in x], [a - 2 for a in other]):
                loss = sum((abs(c - b) - abs(c - a) for a, b, c in zip(x, other, y, strict=True)), Fraction(0)) / scale
                losses.append(loss)
    assert 0 < max(losses) <= epsilon
    if name in ("identity", "binary tree", "ternary tree", "wavelet", "sorted", "table"):
        assert max(losses) > epsilon * (1 - Fraction(1, 10**12))  # nothing is given away


# --- noise and expected errors ------------------------------------------------------------------------------------


def test_noise_has_the_variance_that_it_says():
    """200,000 draws: the relative deviation of a sample variance is below sqrt(6/200000) = 0.55 %; 6 of these."""
    for law in (Noise(3.0), Noise(3.0, 1.0), Noise(3.0, 0.25), Noise(0.5, 1.0), Noise(3.0, 8.0)):
        drawn = law.draw(np.random.default_rng(1), 200_000)
        assert drawn.var() == pytest.approx(law.variance, rel=0.033 if law.scale / (law.step or 1) > 0.4 else 0.15)
        if law.step is not None:
            assert (drawn == np.rint(drawn / law.step) * law.step).all()
            assert law.variance < Noise(law.scale).variance
            assert law.variance == pytest.approx(law.step**2 * DoubleGeometric(law.scale / law.step).variance)
    assert Noise(1000.0, 1.0).variance == pytest.approx(Noise(1000.0).variance, rel=1e-6)
    assert 0 < geometric_variance(1e-9) < 1e-86


@for_each("strategy", [Identity(6), Hierarchical(6), Wavelet(6)])
@for_each("epsilon", [0.1, 1, 3])
def test_expected_errors_are_those_of_the_measurement(strategy, epsilon):
    measurement = strategy.measure(people, epsilon, mechanism="geometric")
    step = float(measurement.sink.step * strategy.sensitivity)
    alpha = math.exp(-epsilon * float(measurement.sink.step))
    wanted = 2 * alpha / (1 - alpha) ** 2 * step**2 * strategy.squared_norm(AllRanges(6))
    assert strategy.expected_error(AllRanges(6), measurement) == pytest.approx(wanted)
    laplace = strategy.expected_error(AllRanges(6), epsilon)
    assert strategy.expected_error(AllRanges(6), strategy.measure(people, epsilon)) == laplace
    assert wanted < laplace
    # 1000 draws: the relative deviation of a mean of squares is below sqrt(20/1000)/sqrt(6) = 6 %
    drawn = simulated_error(strategy, AllRanges(6), measurement, range(6), None, draws=1000, seed=2)
    assert drawn == pytest.approx(wanted, rel=0.2)


def test_simulations_take_the_noise_of_the_measurement():
    size, table = Sorted(50), CountOfCounts(50, 8, "unattributed")
    for epsilon, ratio in ((0.01, 1.0), (3.0, 0.4963)):
        sorted_error = [
            simulated_sorted_error(size, known, range(0, 500, 10), draws=200)
            for known in (size.measure(people, epsilon, mechanism="geometric"), epsilon)
        ]
        assert sorted_error[0] == pytest.approx(ratio * sorted_error[1], rel=0.2)
    found = simulated_distance(table, table.measure(people, 10, mechanism="geometric"), [50] + [0] * 8)
    assert found < simulated_distance(table, 10, [50] + [0] * 8) + 1
    bound = size.error_bound(size.measure(people, 1, mechanism="geometric"))
    assert bound == pytest.approx(50 * DoubleGeometric(1.0).variance)


def test_choose_ranks_by_the_noise_that_will_be_drawn():
    both = [Hierarchical(16, 4), Identity(16), PIdentity(np.ones((1, 16)))]
    errors = {}
    for mechanism in ("laplace", "automatic"):
        for epsilon in (0.01, 8):
            ranking = choose(AllRanges(16), epsilon, candidates=both, mechanism=mechanism, source=people)
            errors[mechanism, epsilon] = {repr(choice.strategy): choice.error for choice in ranking.choices}
    for epsilon, laplace in ((0.01, errors["laplace", 0.01]), (8, errors["laplace", 8])):
        for strategy in both:
            assert laplace[repr(strategy)] == strategy.expected_error(AllRanges(16), epsilon)
            known = strategy.measure(people, epsilon, mechanism="automatic")
            assert errors["automatic", epsilon][repr(strategy)] == strategy.expected_error(AllRanges(16), known)
    ratio = errors["automatic", 8][repr(both[1])] / errors["laplace", 8][repr(both[1])]
    assert ratio < 0.03
    assert "on multiples of 1" in str(ranking)
    guess = choose(
        Bins(16), 8, candidates=both[:2], nonnegative="top down", guess=range(16), mechanism="automatic", source=people
    )
    assert guess.choices[0].error < 0.1
    with pytest.raises(PlanError, match="source="):
        choose(Bins(16), 1, mechanism="geometric")
    with pytest.raises(PlanError, match="SelectMany"):
        choose(Bins(16), 1, candidates=both, mechanism="geometric", source=people)


# --- intervals ----------------------------------------------------------------------------------------------------


def coverage(coefficients: list[int], scale: float) -> np.ndarray:
    """`Pr[|Σ c_i K_i| ≤ t]` for t = 0, 1, …, by convolving the probabilities."""
    reach = int(45 * scale) + 40
    k = np.arange(-reach, reach + 1)
    chance = math.tanh(0.5 / scale) * np.exp(-np.abs(k) / scale)
    total = np.ones(1)
    for coefficient in coefficients:
        spread = np.zeros(2 * reach * coefficient + 1)
        spread[::coefficient] = chance
        total = np.convolve(total, spread)
    middle = len(total) // 2
    return np.concatenate(([total[middle]], total[middle] + 2 * np.cumsum(total[middle + 1 :])))


SUMS = [[1], [3], [1, 1], [2, 1], [1] * 10, [6, 3, 3], [3, 2], [5, 3, 2], [7, 5], [3, 3, 2, 2, 2, 7], [4, 4, 2, 6]]


@for_each("scale", [0.05, 0.3, 1.0, 3.0, 10.0])
@for_each("coefficients", SUMS, ids=str, every=3)
def test_half_widths_cover_and_are_tight(coefficients, scale):
    """Against exact convolutions. One coefficient that divides the others: the least; else within 1 % of a bound."""
    covered = coverage(coefficients, scale)
    size = max(max(coefficients), DoubleGeometric(scale).variance ** 0.5 * math.hypot(*coefficients))
    for confidence in (0.01, 0.3, 0.5, 0.9, 0.95, 0.999, 1 - 1e-9):
        half = geometric_half_widths(np.array(coefficients, dtype=float)[:, None], scale, confidence)[0]
        least = int(np.argmax(covered >= confidence - 1e-12))
        assert 1 - covered[math.floor(half)] <= (1 - confidence) * (1 + 1e-6) + 1e-14
        if all(c % min(coefficients) == 0 for c in coefficients):
            assert half == pytest.approx(least, abs=1e-6 * max(1, least))
        assert least <= half + 1e-9
        assert half <= int(np.argmax(covered >= 1 - (1 - confidence) * 0.9997)) + 0.01 * size


def upper_tails(coefficients: list[int], scale: float, reach: int) -> np.ndarray:
    """`Pr[Σ c_i K_i ≥ k]`, k = 0 … reach: sums of positive numbers, by the recursion of each law on either side."""
    ratio = math.exp(-1 / scale)
    law = np.zeros(2 * reach + 1)
    law[reach] = 1.0
    for c in coefficients:
        recursion = [1.0, *[0.0] * (c - 1), -ratio]
        law = lfilter([1 - ratio], recursion, lfilter([1 - ratio], recursion, law)[::-1])[::-1]
    return np.cumsum(law[reach:][::-1])[::-1]


LONG = {
    "40 alike": [1] * 40,
    "100 alike": [1] * 100,
    "multiples": [1, 2] * 20,
    "3 and 7": [3] * 10 + [7] * 50,
    "2 and 3": [2, 3] * 20,
    "one large": [50] + [3] * 30,
    "all unlike": list(range(2, 13)),
}


@for_each("scale", [0.2, 0.3, 1.0, 3.0, 50.0])
@for_each("name", LONG, every=3)
def test_half_widths_of_long_sums_cover_far_out_and_are_tight(name, scale):
    coefficients = LONG[name]
    deviation = DoubleGeometric(scale).variance ** 0.5 * math.hypot(*coefficients)
    size, reach = max(deviation, *coefficients), int((45 * scale + 5) * max(coefficients) + 12 * deviation)
    tails = upper_tails(coefficients, scale, reach)
    for confidence in (0.5, 0.95, 0.999, 1 - 1e-6, 1 - 1e-9):
        half = geometric_half_widths(np.array(coefficients, dtype=float)[:, None], scale, confidence)[0]
        assert 2 * tails[math.floor(half) + 1] <= (1 - confidence) * (1 + 1e-6)
        assert half <= int(np.argmax(2 * tails[1:] <= (1 - confidence) * 0.9997)) + 0.01 * size


@pytest.mark.parametrize("scale", [0.4, 2.0, 30.0, 10.0**6])
def test_half_widths_of_any_coefficients_cover(scale):
    """20,000 draws of sums of irregular coefficients; 5 deviations below what is stated: a false alarm in 3e6 each."""
    rng = np.random.default_rng(4)
    for terms in (2, 5, 40):
        coefficients = rng.normal(size=terms) ** 3
        drawn = Noise(scale, 1.0).draw(rng, (20_000, terms)) @ coefficients
        for confidence in (0.5, 0.95):
            half = geometric_half_widths(coefficients[:, None], scale, confidence)[0]
            inside = (np.abs(drawn) <= half).mean()
            spread = 5 * math.sqrt(confidence * (1 - confidence) / 20_000)
            assert inside > confidence - spread
            if scale >= 30 or terms == 40:  # no atoms to speak of
                assert inside < confidence + spread + 0.005


def test_half_widths_near_those_of_laplace_noise_for_small_epsilon():
    rng = np.random.default_rng(5)
    coefficients = rng.uniform(0, 1, (300, 5)) ** 4
    coefficients[:, 4] = 0.0
    for scale in (100.0, 10.0**5, 10.0**9):
        half = geometric_half_widths(coefficients, scale, 0.95)
        np.testing.assert_allclose(half[:4], Noise(scale).half_widths(coefficients[:, :4], 0.95), rtol=0.004)
        assert half[4] == 0
    for bad in ((0.0, 1.0), (0.9, 0.0), (0.9, math.inf)):
        with pytest.raises(AnswersError):
            geometric_half_widths(coefficients, bad[1], bad[0])
    assert geometric_half_widths(np.ones((9, 1)), 1e-6, 0.999999)[0] == pytest.approx(0, abs=1e-7)
    halves = [geometric_half_widths(np.array([[3.0], [2.0]]), 2.0, c)[0] for c in (0.1, 0.5, 0.9, 0.99, 1 - 1e-12)]
    assert all(a < b for a, b in pairwise(halves))


def test_one_answer_has_the_interval_of_answers():
    strategy = Identity(5)
    answers = wp.simulate(strategy.measure(people, 1, mechanism="geometric"), {"people": [0, 1, 3]}, seed=1)
    lower, upper = strategy.intervals(answers, Bins(5), 0.9)
    for key in range(5):
        assert (lower[key], upper[key]) == pytest.approx(answers.interval(key, 0.9), abs=1e-6)
        assert strategy.interval(answers, np.eye(5)[key], 0.9) == (lower[key], upper[key])


@for_each("strategy", [Identity(8), Hierarchical(8), Hierarchical(8, 3), Wavelet(8)], ids=repr)
@for_each("epsilon", [0.2, 2, 8], every=3)
def test_intervals_of_estimates_cover(strategy, epsilon):
    """2,000 releases: 4.5 deviations below 0.8 for 36 ranges each of 12 cases, 432: a false alarm in 700."""
    measurement = strategy.measure(people, epsilon, mechanism="geometric")
    truth, workload = np.arange(8.0), AllRanges(8)
    noiseless, true = strategy.apply(truth), workload.answer(truth)
    lower, upper = strategy.intervals(noiseless, workload, 0.8, epsilon=measurement)
    half = (upper - lower) / 2
    law = strategy.noise(epsilon=measurement)
    noisy = noiseless[:, None] + law.draw(np.random.default_rng(6), (len(noiseless), 2000))
    off = np.abs(workload.answer(strategy.estimate(noisy)) - true[:, None])
    inside = (off <= half[:, None]).mean(axis=1)
    assert (inside > 0.8 - 4.5 * math.sqrt(0.16 / 2000)).all()
    if epsilon < 1:
        assert (inside < 0.8 + 0.06).all()
    # a release through `simulate` has the same intervals about its own estimate
    answers = wp.simulate(measurement, {"people": [0, 1, 3]}, seed=1)
    low, high = strategy.intervals(answers, workload, 0.8)
    np.testing.assert_allclose(high - low, upper - lower, rtol=1e-6, atol=1e-6)


def test_intervals_on_4096_bins_with_distinct_ranges():
    strategy = Hierarchical(4096, 16)
    measurement = strategy.measure(people, 1, mechanism="geometric")
    workload = Ranges(4096, [0, 5, 100, 17], [4096, 6, 2000, 17])
    lower, upper = strategy.intervals(np.zeros(strategy.size), workload, 0.95, epsilon=measurement)
    laplace = strategy.intervals(np.zeros(strategy.size), workload, 0.95, epsilon=1)
    assert lower[3] == upper[3] == 0
    np.testing.assert_allclose(upper[:3], laplace[1][:3], rtol=0.02)


def test_bootstraps_draw_the_same_noise():
    """Quantiles of 20,000 draws of whole numbers, and the interval of `Sorted` around well separated counts."""
    found = bootstrap([3.0], lambda x: x, lambda y: y, Noise(2.0, 1.0), confidence=0.9, draws=20_000)
    assert found.upper[0] - 3 == 3 - found.lower[0] == DoubleGeometric(2.0).interval(0.9)
    strategy = Sorted(4)
    measurement = strategy.measure(people, 1, mechanism="geometric")
    found = strategy.interval([100, 200, 300, 400], 0.8, epsilon=measurement)
    assert (found.upper == np.rint(found.upper)).all()
    answers = replace(wp.simulate(measurement, {"people": []}, seed=1), values=np.array([100.0, 200, 300, 400]))
    again = strategy.interval(answers, 0.8)
    assert (again.upper == found.upper).all()
    assert (again.lower == found.lower).all()
    sharp = strategy.interval([100, 200, 300, 400], 0.8, epsilon=strategy.measure(people, 20, mechanism="geometric"))
    assert (sharp.upper == sharp.lower).all()  # noise is 0 but for 4e-9 of the draws


def test_noise_of_other_answers_is_refused():
    total = people.noisy_sum(1, lambda x: x, 0, 5)
    with pytest.raises(AnswersError, match="NoisySum"):
        noise_of(total, Fraction(1))
    with pytest.raises(AnswersError, match="NoisySum"):
        Identity(1).noise(wp.simulate(total, {"people": [1]}, seed=1))
    with pytest.raises(EpsilonError):
        Identity(4).intervals(np.ones(4), Bins(4))
    for other in (Identity(5).measure(people, 1), Sorted(4).measure(people, 1), people.noisy_count(1)):
        with pytest.raises(PlanError, match="other keys"):
            Identity(4).noise(epsilon=other)
    levels = HierarchicalCounts(Tree([[1]]), [2], 3)
    known = levels.measure(persons, [1, 1], group=lambda r: r.group, location=lambda r: r.place)
    with pytest.raises(PlanError, match="other keys"):
        levels.infer([[np.ones(3)], [np.ones(3)]], [known[0], Identity(3).measure(people, 1)])


@pytest.mark.parametrize(
    "scale, step", [(0, None), (math.nan, None), (math.inf, 1.0), ("1", None), (1.0, 0), (1.0, -1)]
)
def test_noise_that_is_none(scale, step):
    with pytest.raises(AnswersError, match=r"positive finite|must be a number"):
        Noise(scale, step)


# --- counts of counts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["naive", "cumulative", "unattributed"])
def test_variances_of_sizes_are_those_of_the_noise(method):
    strategy = CountOfCounts(8, 4, method)
    noisy = strategy.answers_from(np.array([1, 2, 0, 4, 1]))
    measurement = strategy.measure(people, 2, mechanism="geometric")
    laplace, geometric = strategy.sizes(noisy, 2), strategy.sizes(noisy, measurement)
    law = DoubleGeometric(1 / (2 * float(measurement.sink.step)))
    ratio = law.variance * (float(measurement.sink.step) * 2) ** 2 / 2
    np.testing.assert_array_equal(laplace[0], geometric[0])
    np.testing.assert_allclose(geometric[1], laplace[1] * ratio)
    assert ratio < 0.95
    exact = {"naive": 16, "cumulative": 4, "unattributed": 2}[method] / 4
    assert laplace[1][-1] == pytest.approx(exact)  # one group of the largest size


@pytest.mark.parametrize("methods", ["cumulative", "unattributed", ["cumulative", "unattributed"]])
def test_counts_over_a_tree_of_locations(methods):
    strategy = HierarchicalCounts(Tree([[2]]), [4, 3], 6, methods)
    rows = [(n, n % 5, n % 5 % 2) for n in range(14)]
    levels = strategy.measure(persons, [1, 2], lambda r: r.group, lambda r: r.place, mechanism="geometric")
    assert [m.sink for m in levels] == [GeometricCount(Fraction(1))] * 2
    with wp.Session() as session:
        session.protect(persons, rows, budget=3)
        answers = session.release(list(levels))
        assert session.spent("persons") == 3
    assert all((a.values == np.rint(a.values)).all() for a in answers)
    found = strategy.infer(answers)
    vectors = [strategy.answers_of(level, given) for level, given in enumerate(answers)]
    for again in (strategy.infer(answers, [1, 2]), strategy.infer(vectors, levels)):
        assert all((a == b).all() for x, y in zip(found, again, strict=True) for a, b in zip(x, y, strict=True))
    assert (found[0][0] == found[1][0] + found[1][1]).all()
    sure = strategy.measure(persons, [900, 2000], lambda r: r.group, lambda r: r.place, mechanism="geometric")
    exact = strategy.infer([wp.simulate(m, {"persons": rows}, seed=1) for m in sure])  # noise is 0 but in e^-900
    assert [node.tolist() for node in exact[1]] == [[1, 0, 1, 2, 0, 0, 0], [1, 0, 0, 2, 0, 0, 0]]
    with pytest.raises(PlanError, match=r"Source\(bare\)"):
        bare = wp.source("bare", name=int, group=int, place=int, weights=True)
        strategy.measure(bare, [1, 2], lambda r: r.group, lambda r: r.place, mechanism="geometric")
    with pytest.raises(EpsilonError):
        strategy.infer(vectors)
