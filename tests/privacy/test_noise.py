"""Noise is certified, is the distribution that it says, and shows nothing else of the values.

Noise comes from the operating system, so these tests cannot be seeded. Each statistical assertion fails by
chance with a probability of at most 1e-9; sample sizes are fixed.
"""

import io
import math
import random
import sys
import traceback
from fractions import Fraction
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

import wpinq as wp
from tests.support.choice_laws import loss, permute_and_flip
from tests.support.parameters import for_each
from tests.support.system_noise import select, with_geometric_noise, with_laplace_noise
from wpinq.api.simulate import PublicOutput
from wpinq.errors import EpsilonError, EvaluationFailed, PlanError
from wpinq.kernel.noisy_evaluation import FAILED, ProtectedOutput
from wpinq.noise.exact_bernoulli import WORD, Coin, exponential_coin
from wpinq.noise.laplace import laplace_scale
from wpinq.sinks import laplace
from wpinq.sinks.choose import Choose

FALSE_ALARM = 1e-9
SCALE = 2.5
LAW = stats.laplace(scale=SCALE)
SIZE = 40_000
ONE = [Fraction(1)]
WHOLE = Fraction(1)
"""The range of scores that are weights of different records."""


def check_counts(counts: np.ndarray[Any, Any], probabilities: np.ndarray[Any, Any]) -> None:
    """Each cell within the exact binomial bounds of its probability, which share one false-alarm rate.

    A χ² statistic would do on average, but its law is only approximate as far out as 1e-9.
    """
    law = stats.binom(counts.sum(), probabilities)
    share = FALSE_ALARM / (2 * len(probabilities))
    assert len(counts) == len(probabilities)
    assert ((law.ppf(share) <= counts) & (counts <= law.isf(share))).all()


# --- the certificate ---


def check_certificate(epsilon: Fraction, slack: Fraction, distances: list[Fraction], score_range: Fraction) -> None:
    scale = laplace_scale(epsilon, slack)
    assert Fraction(math.nextafter(scale, 0)) < (1 + slack) / epsilon <= Fraction(scale)
    scale = laplace_scale(epsilon, slack, score_range)
    assert Fraction(math.nextafter(scale, 0)) < score_range * (1 + slack) / epsilon <= Fraction(scale)
    # OpenDP's map rounds twice, up: it certifies the bill at this scale, or at most five floats on, and at no scale
    # below that which the formula forbids.
    for _ in range(6):
        for d in distances:
            moved = score_range * d * (1 + slack)
            d_in = float(moved)
            if d_in < moved:
                d_in = math.nextafter(d_in, math.inf)
            certified = Fraction(opendp_choice(scale).map(d_in))
            assert moved / Fraction(scale) <= certified
            if certified > d * epsilon:
                break
        else:
            return
        scale = math.nextafter(scale, math.inf)
    raise AssertionError("OpenDP does not plan_properties the scale")


@cache
def opendp_choice(scale: float) -> Any:
    """OpenDP's permute-and-flip, over scores that all rise or all fall, which is what a range comes down to."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="f64", nan=False)), dp.linf_distance(T="f64", monotonic=True)
    return dp.m.make_noisy_max(*space, dp.max_divergence(), scale=scale)


@for_each("epsilon", [Fraction(1, 10), Fraction(1, 3), Fraction(1, 10**30), Fraction(2**31)])
@for_each("slack", [Fraction(0), Fraction(1, 2**40), Fraction(7, 1000), Fraction(3)])
@for_each(
    "distances",
    [[Fraction(1)], [Fraction(1, 3), Fraction(18), Fraction(1, 10)], [Fraction(2**900), Fraction(1, 10**60)]],
)
@for_each("score_range", [Fraction(1), Fraction(19, 10)])
def test_scale_is_certified(
    epsilon: Fraction, slack: Fraction, distances: list[Fraction], score_range: Fraction
) -> None:
    check_certificate(epsilon, slack, distances, score_range)


positive = st.fractions(min_value=Fraction(1, 10**12), max_value=10**12)


@settings(deadline=None, derandomize=True, max_examples=150)
@given(
    positive,
    st.fractions(min_value=0, max_value=2),
    st.lists(positive, min_size=1, max_size=5),
    st.fractions(min_value=1, max_value=2),
)
def test_scale_is_certified_everywhere(
    epsilon: Fraction, slack: Fraction, distances: list[Fraction], score_range: Fraction
) -> None:
    check_certificate(epsilon, slack, distances, score_range)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.floats(1e-100, 1e100), st.floats(1e-100, 1e100))
def test_the_map_is_linear_up_to_its_rounding(scale: float, d_in: float) -> None:
    # So a check for one unit holds for k of them: the loss itself is linear in the distance.
    measurement = opendp_choice(scale)
    certified = measurement.map(d_in)
    loss = Fraction(d_in) / Fraction(scale)
    assert 0 <= Fraction(certified) - loss < Fraction(math.ulp(certified))
    assert measurement.map(0.0) == 0.0


@pytest.mark.parametrize(
    ("epsilon", "slack"),
    [
        (Fraction(0), Fraction(0)),
        (Fraction(-1), Fraction(0)),
        (Fraction(1), Fraction(-1, 10)),
        (Fraction(1, 2**1100), Fraction(0)),
        (1.0, Fraction(0)),
        (True, Fraction(0)),
        (Fraction(1), 0.0),
    ],
)
def test_what_cannot_be_certified_is_refused(epsilon: Any, slack: Any) -> None:
    laplace_scale(Fraction(1), Fraction(0), WHOLE)  # a cached scale must not answer for 1.0 or True
    with pytest.raises(EpsilonError):
        laplace_scale(epsilon, slack, WHOLE)


@pytest.mark.parametrize("score_range", [Fraction(0), Fraction(-1), 2.0, True])
def test_a_range_of_scores_is_an_exact_number_of_more_than_0(score_range: Any) -> None:
    with pytest.raises(EpsilonError, match="the sensitivity"):
        laplace_scale(Fraction(1), Fraction(0), score_range)


@pytest.mark.parametrize(
    ("epsilon", "slack"),
    [
        (Fraction(0), Fraction(0)),
        (Fraction(-1), Fraction(0)),
        (Fraction(1), Fraction(-1, 10)),
        (Fraction(1, 2**1100), Fraction(0)),
        (Fraction(2**1100), Fraction(0)),
        (1.0, Fraction(0)),
        (True, Fraction(0)),
        (Fraction(1), 0.0),
    ],
)
def test_what_no_laplace_noise_can_keep_is_refused(epsilon: Any, slack: Any) -> None:
    with pytest.raises(EpsilonError):
        laplace_scale(epsilon, slack)


# --- the distribution of the noise ---


@pytest.fixture(scope="module")
def draws() -> np.ndarray[Any, Any]:
    return np.array(with_laplace_noise([0.0] * SIZE, SCALE))


def test_noise_is_laplace(draws: np.ndarray[Any, Any]) -> None:
    assert stats.kstest(draws, LAW.cdf).pvalue > FALSE_ALARM


def test_noise_of_the_wrong_scale_would_be_noticed(draws: np.ndarray[Any, Any]) -> None:
    assert stats.kstest(draws, stats.laplace(scale=SCALE * 1.2).cdf).pvalue < FALSE_ALARM


def test_mean(draws: np.ndarray[Any, Any]) -> None:
    # Chernoff: ln E exp(λx/b) = -ln(1 - λ²), so Pr[|mean| > t·b] ≤ 2·exp(-n(λt + ln(1 - λ²))) for every λ < 1.
    t, tilt = 0.0475, 0.0237
    assert 2 * math.exp(-SIZE * (tilt * t + math.log(1 - tilt * tilt))) < FALSE_ALARM
    assert abs(draws.mean()) < t * SCALE


def test_spread(draws: np.ndarray[Any, Any]) -> None:
    # Σ|x| / b is exactly Gamma(n): the sharpest check of the scale, and so of the variance 2b².
    spread = float(np.abs(draws).sum() / SCALE)
    assert stats.gamma(SIZE).ppf(FALSE_ALARM / 2) < spread < stats.gamma(SIZE).isf(FALSE_ALARM / 2)


@pytest.mark.parametrize("threshold", [-15.0, -3.0, 0.0, 1.0, 6.0, 20.0])
def test_tails_are_those_of_laplace_noise(draws: np.ndarray[Any, Any], threshold: float) -> None:
    beyond = stats.binom(SIZE, LAW.sf(threshold))
    count = int((draws > threshold).sum())
    assert beyond.ppf(FALSE_ALARM / 2) <= count <= beyond.isf(FALSE_ALARM / 2)


def check_independent(left: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> None:
    """Independent quartiles fill 16 cells with equal probability."""
    edges = LAW.ppf([0.25, 0.5, 0.75])
    cells = 4 * np.digitize(left, edges) + np.digitize(right, edges)
    check_counts(np.bincount(cells, minlength=16), np.full(16, 1 / 16))


@pytest.mark.parametrize("lag", [1, 2, 8])
def test_positions_are_independent(draws: np.ndarray[Any, Any], lag: int) -> None:
    # Disjoint pairs, so that the cells are counts of independent draws.
    blocks = draws.reshape(-1, 2, lag)
    check_independent(blocks[:, 0].ravel(), blocks[:, 1].ravel())


def test_calls_are_independent() -> None:
    calls = np.array([with_laplace_noise([0.0, 0.0], SCALE) for _ in range(2000)])
    assert len(np.unique(calls)) == calls.size  # some two are equal with a probability below 1e-9
    check_independent(calls[::2, 0], calls[1::2, 0])
    check_independent(calls[:, 0], calls[:, 1])


@pytest.mark.parametrize("value", [7.0, -1e6, 0.1])
def test_noise_is_added_to_the_value_of_its_position(value: float) -> None:
    noisy = np.array(with_laplace_noise([value, 0.0] * 2000, SCALE)).reshape(-1, 2)
    assert stats.kstest(noisy[:, 0] - value, LAW.cdf).pvalue > FALSE_ALARM
    assert stats.kstest(noisy[:, 1], LAW.cdf).pvalue > FALSE_ALARM


# --- floating point attacks ---

COARSE = 2.0**-53


def on_the_coarse_grid(outputs: list[float]) -> tuple[int, int]:
    """How many outputs are within 2**-6 of 0, and how many of these are multiples of 2**-53.

    A float within 2**-6 of 0 has at least 6 bits below 2**-53. `1.0 + x` computed in floats never sets them there,
    as x near -1 is itself a multiple of 2**-53; exact sums set them freely, whatever the value.
    """
    near = [y for y in outputs if abs(y) < 2**-6]
    return len(near), sum((y / COARSE).is_integer() for y in near)


@pytest.mark.parametrize("value", [0.0, 0.1, 1.0])
def test_low_bits_do_not_tell_the_value(value: float) -> None:
    near, coarse = on_the_coarse_grid(with_laplace_noise([value] * 20_000, 1.0))
    # Pr[near] ≥ e^-1 / 64 > 0.0057 for these values; a near float lies on the grid with Pr < 2^-6, a little bent
    # by the slope of the density: 1/50 bounds it.
    assert near >= stats.binom(20_000, 0.0057).ppf(FALSE_ALARM / 2) > 30
    assert coarse <= stats.binom(near, 1 / 50).isf(FALSE_ALARM / 2) < near


def test_the_attack_works_on_noise_added_in_floats() -> None:
    draws = np.random.default_rng(1).laplace(0.0, 1.0, 20_000)
    told, other = (on_the_coarse_grid((value + draws).tolist()) for value in (1.0, 0.0))
    assert told[0] == told[1] > 30
    assert other[0] > 30 and other[1] < other[0] / 10


def test_values_share_the_whole_support() -> None:
    # On noise so small that few floats are in reach, the outputs of neighbouring floats must be the same floats,
    # each with probabilities within e^(distance / scale). Five units in the last place either way are compared.
    ulp, base, size = 2.0**-52, 1.5, 20_000
    spacings = 2
    noise_law = stats.laplace(scale=4 * ulp)
    left = np.round((np.array(with_laplace_noise([base] * size, 4 * ulp)) - base) / ulp)
    right = np.round((np.array(with_laplace_noise([base + spacings * ulp] * size, 4 * ulp)) - base) / ulp)
    for k in range(-5, 6):
        p = noise_law.sf((k - 0.5) * ulp) - noise_law.sf((k + 0.5) * ulp)
        for outputs, centre in ((left, k), (right, k + spacings)):
            count = int((outputs == centre).sum())
            law = stats.binom(size, p)
            assert law.ppf(FALSE_ALARM / 2) <= count <= law.isf(FALSE_ALARM / 2)


# --- edges ---


def test_nothing_in_nothing_out() -> None:
    assert with_laplace_noise([], 1.0) == []


def test_sums_beyond_the_floats_saturate() -> None:
    largest = sys.float_info.max
    noisy = with_laplace_noise([largest, -largest] * 100, 1e308)
    assert all(map(math.isfinite, noisy))
    # Each side saturates with a probability of 1/2 a draw: 2^-100 that neither of 100 does.
    assert largest in noisy and -largest in noisy


@pytest.mark.parametrize("scale", [0.0, -1.0, math.inf, -math.inf, math.nan, "1", None])
def test_no_noise_is_drawn_of_a_scale_that_is_none(scale: Any) -> None:
    for run in (with_laplace_noise, with_geometric_noise):
        with pytest.raises((ValueError, TypeError, ArithmeticError)):
            run([271828], scale)


# --- errors say nothing ---

SECRET = 271828.1828459


class Telltale:
    def __float__(self) -> float:
        raise ValueError(f"cannot convert {SECRET}")

    def __repr__(self) -> str:
        return str(SECRET)


RECORDS = wp.source("records", int, weights=True)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None, f"{SECRET} apples", Telltale(), 10**400])
@pytest.mark.parametrize(
    "asked",
    [
        RECORDS.noisy_count(1, over=[1, 2]),
        RECORDS.most_common(1, [1, 2]),
        RECORDS.noisy_count_above(1, [1, 2], above=5),
    ],
    ids=["count", "choice", "above"],
)
def test_errors_carry_no_values(asked: wp.Measurement, value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProtectedOutput, "weights", lambda self, keys=None, within=(): {1: SECRET, 2: value})
    check_silent(asked)


def test_errors_of_samplers_carry_no_values(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(values: Any, scale: float, random: Any) -> Any:
        raise RuntimeError(f"overflow at {values} and {SECRET}")

    monkeypatch.setattr(laplace, "add_laplace", failing)
    check_silent(RECORDS.noisy_count(1, over=[1]))


def check_silent(asked: wp.Measurement) -> None:
    with wp.Session() as session:
        session.protect(RECORDS, [1, 2], budget=1)
        with pytest.raises(EvaluationFailed) as caught:
            session.release(asked)
        assert session.spent("records") == 1
    error = caught.value
    assert error.args == (FAILED,)
    assert error.__cause__ is None and error.__context__ is None
    assert not hasattr(error, "__notes__")
    assert str(SECRET) not in "".join(traceback.format_exception(error))


# --- selection ---


SCORES = [0.0, 2.0, 3.0, 3.5, -1.0]


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)])
def test_selection_frequencies(epsilon: Fraction) -> None:
    size = 4000
    expected = permute_and_flip(SCORES, float(1 / epsilon))
    assert expected.sum() == pytest.approx(1.0)
    scale = laplace_scale(epsilon, Fraction(0), WHOLE)
    counts = np.bincount([select(SCORES, scale) for _ in range(size)], minlength=5)
    check_counts(counts, expected)


def test_selection_is_not_the_exponential_mechanism() -> None:
    counts = np.bincount([select(SCORES, 2.0) for _ in range(20_000)], minlength=5)
    check_counts(counts, permute_and_flip(SCORES, 2.0))
    # The same bounds tell permute-and-flip from the exponential mechanism.
    exponential = np.exp(np.array(SCORES) / 2)
    with pytest.raises(AssertionError):
        check_counts(counts, exponential / exponential.sum())


def test_the_loss_of_a_choice_is_at_most_the_range_over_the_scale() -> None:
    chance, scale, worst = random.Random(11), 1.3, 0.0
    for _ in range(2000):
        scores = [chance.choice([0.0, 0.5, 1.0, 2.0, 9.0]) for _ in range(chance.randint(2, 5))]
        moves = [chance.choice([-1.0, -0.5, 0.0, 0.25, 1.0]) for _ in scores]
        size = max(moves) - min(moves)
        lost = loss(scores, [score + move for score, move in zip(scores, moves, strict=True)], scale)
        assert lost <= size / scale * (1 + 1e-9) + 1e-12
        worst = max(worst, lost * scale / size if size else 0.0)
    assert worst > 0.99  # the bound is reached


def test_the_distribution_beats_the_exponential_mechanism_of_the_same_loss() -> None:
    scores, scale = np.array(SCORES), 1.7
    exponential = np.exp(scores / scale) / np.exp(scores / scale).sum()
    assert permute_and_flip(SCORES, scale) @ scores > exponential @ scores


CHOICES = [Choose("weight"), *(Choose("quantile", Fraction(q, 10)) for q in (1, 5, 9))]


@pytest.mark.parametrize("sink", CHOICES, ids=str)
def test_a_choice_of_small_data_loses_no_more_than_epsilon_and_with_half_the_noise_it_would(sink: Choose) -> None:
    records = tuple(range(3))
    worst = {1: 0.0, 2: 0.0}
    for weights in product(range(5), repeat=len(records)):
        before = sink.scores(PublicOutput(dict(zip(records, weights, strict=True))), records)
        for place in records:
            more = {record: weight + (record == place) for record, weight in zip(records, weights, strict=True)}
            after = sink.scores(PublicOutput(more), records)
            for halvings in worst:
                lost = loss(before, after, float(sink.sensitivity) / halvings)
                worst[halvings] = max(worst[halvings], lost)
    assert worst[1] <= 1 + 1e-9
    assert worst[2] > 1.2


def test_a_median_at_half_its_noise_would_lose_far_more_than_epsilon() -> None:
    # Scores of a median move by a half: up at one side, down at the other. There is no second half to be had.
    candidates, median = tuple(range(8)), Choose("quantile", Fraction(1, 2))
    before, after = (
        median.scores(PublicOutput({1: 1}), candidates),
        median.scores(PublicOutput({1: 1, 7: 1}), candidates),
    )
    assert max(abs(b - a) for a, b in zip(before, after, strict=True)) == 0.5
    assert loss(before, after, 1.0) < 1
    assert loss(before, after, 0.5) > 1.7


@pytest.mark.parametrize("unit", [1, 0.1, Fraction(1, 3)], ids=["whole", "floats", "rationals"])
def test_scores_of_a_quantile_are_the_exact_ones_rounded_once(unit: Any) -> None:
    chance = random.Random(5)
    for q in (Fraction(1, 2), Fraction(1, 3), Fraction(9, 10)):
        weights = {record: chance.randrange(-2, 2**55) * unit for record in chance.sample(range(40), 20)}
        found = Choose("quantile", q).scores(PublicOutput(weights), range(40))
        held = {record: Fraction(weight) for record, weight in weights.items() if weight > 0}
        for candidate, score in enumerate(found):
            left = sum(weight for record, weight in held.items() if record < candidate)
            cut = q * sum(held.values())
            assert score == float(min(0, cut - left, left + held.get(candidate, 0) - cut)) and type(score) is float


def test_the_choice_is_that_of_opendp() -> None:
    """Both against the exact distribution, by the same bounds."""
    size, expected = 4000, permute_and_flip(SCORES, 1.3)
    theirs, ours = opendp_choice(1.3), partial(select, scale=1.3)
    for choose in (theirs, ours):
        check_counts(np.bincount([choose(SCORES) for _ in range(size)], minlength=5), expected)


def test_scores_far_apart_are_chosen_as_often_as_they_should() -> None:
    """A candidate 4.5 scales below the best: a coin of several flips."""
    size, scores = 100_000, [0.0, 9.0]
    expected = permute_and_flip(scores, 2.0)
    assert 0.001 < expected[0] < 0.01
    check_counts(np.bincount([select(scores, 2.0) for _ in range(size)], minlength=2), expected)


def test_an_exponential_coin_of_any_exponent_is_exact_at_its_ties() -> None:
    coin = Coin(Fraction(2), logistic=False)
    expected = coin.leading(2 * WORD)
    words = [expected >> WORD, expected & 2**WORD - 1]
    for last, heads in ((words[1] - 1, True), (words[1] + 1, False)):
        # exp(-2.5): heads of exp(-2), decided by its second word, then of exp(-0.5)
        tape = io.BytesIO(b"".join(word.to_bytes(WORD // 8, "little") for word in (words[0], last, 0)))
        assert exponential_coin(5, 2, tape.read) == heads


def test_selection_edges() -> None:
    assert select([5.0], 2.0) == 0
    assert select([0.0, -sys.float_info.max, sys.float_info.max], 2.0) == 2
    with pytest.raises(PlanError, match="candidate"):
        select([], 2.0)


# --- simulation, on public data ---


def test_simulated_noise_is_laplace_and_reproducible() -> None:
    keys = range(20_000)
    simulated = {seed: wp.simulate(RECORDS.noisy_count(1, over=keys), {"records": []}, seed) for seed in (7, 8)}
    again = wp.simulate(RECORDS.noisy_count(1, over=keys), {"records": []}, 7)
    assert again.values.tolist() == simulated[7].values.tolist() != simulated[8].values.tolist()
    assert stats.kstest(simulated[7].values, stats.laplace(scale=again.scale).cdf).pvalue > FALSE_ALARM
