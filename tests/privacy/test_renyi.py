"""The curves bound the divergences of the noise itself, found by sums and integrals; what is read from them holds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from tests.support.parameters import for_each
from wpinq.errors import EpsilonError
from wpinq.measure.delta_reading import Charged, parse_delta, spent_at
from wpinq.measure.renyi import BOUNDED_RANGE, LAPLACE, bounded_range, divergence, laplace, least_epsilon, pure
from wpinq.noise.ladder import Ladder
from wpinq.sinks.graph_ladders import simple_graph, triangle_ladder

ORDERS = [1.01, 1.5, 2.0, 4.0, 10.0, 50.0]
PURE = "of any kind"
MILLIONTH = Fraction(1, 10**6)


def curve(noise: str, order: float, epsilon: float) -> float:
    """The bound in use, of one release."""
    return float(divergence(noise, np.array([order - 1]), epsilon)[0])


def of_laplace(order: float, move: float) -> float:
    """The divergence of Laplace noise of scale 1, moved, by Simpson's rule: its kinks lie on even points."""
    points = np.arange(-70_000, 70_001 + round(1000 * move)) / 1000
    heights = np.exp(-order * abs(points) - (1 - order) * abs(points - move)) / 2
    whole = heights[:-2:2].sum() + 4 * heights[1::2].sum() + heights[2::2].sum()
    return math.log(whole / 3000) / (order - 1)


def of_laws(order: float, one: Sequence[float], other: Sequence[float]) -> float:
    """The divergence of two laws on finitely many results."""
    return math.log(math.fsum(p**order * q ** (1 - order) for p, q in zip(one, other, strict=True))) / (order - 1)


def geometric_law(scale: float, move: int, reach: int) -> list[float]:
    """Double-geometric noise moved by some steps; what lies further out than `reach` is left out."""
    ratio = math.exp(-1 / scale)
    return [(1 - ratio) / (1 + ratio) * ratio ** abs(k - move) for k in range(-reach, reach + 1)]


def flip_law(scores: Sequence[float], scale: float) -> list[float]:
    """Permute-and-flip: the chances of the candidates, over all orders in which they are visited."""
    passed = [math.exp(-(max(scores) - score) / scale) for score in scores]
    law = [0.0] * len(scores)
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        left = 1 / len(orders)
        for place in order:
            law[place] += left * passed[place]
            left *= 1 - passed[place]
    return law


@for_each("order", ORDERS)
@for_each("move", [0.01, 0.1, 1.0, 3.0])
def test_laplace_noise_is_what_its_curve_says(order: float, move: float) -> None:
    assert of_laplace(order, move) == pytest.approx(curve(LAPLACE, order, move), rel=1e-6)


@for_each("order", ORDERS)
@for_each("moves", [(0.05, 0.05), (0.9, 0.1), (1.0, 1.0, 1.0)])
def test_a_move_spread_over_many_numbers_is_no_worse(order: float, moves: tuple[float, ...]) -> None:
    assert sum(of_laplace(order, move) for move in moves) <= curve(LAPLACE, order, sum(moves)) * (1 + 1e-6)


@for_each("order", [1.01, 1.5, 2.0, 4.0, 10.0])
@for_each("scale", [0.5, 1.0, 10.0])
@for_each("steps", [(1,), (2,), (1, 1), (3, 2, 1)])
def test_double_geometric_noise_is_the_worst_case_at_one_step(
    order: float, scale: float, steps: tuple[int, ...]
) -> None:
    reach = math.ceil(60 * scale)
    still = geometric_law(scale, 0, reach)
    found = sum(of_laws(order, still, geometric_law(scale, move, reach)) for move in steps)
    bound = curve("double-geometric", order, sum(steps) / scale)
    assert found <= bound * (1 + 1e-9)
    assert (found == pytest.approx(bound, rel=1e-6)) == (len(steps) == steps[0] == 1)
    if steps == (1,):
        assert found > curve(LAPLACE, order, 1 / scale)


@for_each("order", ORDERS)
@for_each("epsilon", [0.01, 0.3, 1.0, 4.0])
def test_randomised_response_is_the_worst_case_of_pure_epsilon(order: float, epsilon: float) -> None:
    likely = 1 / (1 + math.exp(-epsilon))
    worst = of_laws(order, [likely, 1 - likely], [1 - likely, likely])
    assert curve(PURE, order, epsilon) == pytest.approx(worst, rel=1e-6)
    assert curve(PURE, order, epsilon) <= min(epsilon, order * epsilon**2 / 2) * (1 + 1e-8)
    random = np.random.default_rng(1)
    for _ in range(200):
        one = random.dirichlet(np.ones(5))
        other = one * np.exp(random.uniform(-epsilon / 2, epsilon / 2, 5))
        assert of_laws(order, list(one), list(other / other.sum())) <= curve(PURE, order, epsilon)


@for_each("order", ORDERS)
@for_each("epsilon", [0.1, 1.0, 4.0])
def test_choices_and_ranges_stay_below_their_curves(order: float, epsilon: float) -> None:
    random, closest = np.random.default_rng(2), 0.0
    for _ in range(100):
        scores = random.integers(0, 4, 4) * (1 / 3)
        moved = scores + random.choice([-0.5, 0.0, 0.5], 4)
        found = of_laws(order, flip_law(scores, 1 / epsilon), flip_law(moved, 1 / epsilon))
        assert found <= curve("permute-and-flip", order, epsilon)
        weights = random.dirichlet(np.ones(4))
        shifted = weights * np.exp(random.choice([0, epsilon], 4))
        found = of_laws(order, list(weights), list(shifted / shifted.sum()))
        closest = max(closest, found / curve(BOUNDED_RANGE, order, epsilon))
        assert closest <= 1
    assert closest > 0.5


def ladder_law(ladder: Ladder, scale: float, reach: int) -> list[float]:
    """The law of a count on its ladder, as far as it is asked for; what is further out is left out."""
    rungs = np.searchsorted([ladder.reach(k) for k in range(200)], abs(np.arange(-reach, reach + 1) - ladder.count))
    chances = np.exp(-rungs / scale)
    return list(chances / chances.sum())


@pytest.mark.parametrize("order", [1.5, 4.0, 10.0])
@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_counts_on_ladders_stay_below_the_curve_of_their_range(order: float, epsilon: float) -> None:
    closest = 0.0
    for edges in ([(0, 1), (1, 2)], [(0, 1), (1, 2), (2, 3), (3, 0), (1, 3)], [(0, n) for n in range(2, 6)]):
        for added in ((0, 2), (0, 1), (4, 5)):
            one, other = triangle_ladder(simple_graph(edges)), triangle_ladder(simple_graph([*edges, added]))
            laws = [ladder_law(ladder, 2 / epsilon, 6000) for ladder in (one, other)]
            for pair in (laws, laws[::-1]):
                closest = max(closest, of_laws(order, *pair) / curve(BOUNDED_RANGE, order, epsilon))
    assert 0.3 < closest <= 1


@pytest.mark.parametrize("noise", [LAPLACE, BOUNDED_RANGE, PURE])
def test_a_share_of_the_epsilon_loses_no_more_than_its_share(noise: str) -> None:
    t = np.geomspace(1e-4, 1e6, 81)
    for epsilon in np.geomspace(1e-6, 1e4, 41):
        for share in (0.1, 0.5, 0.9, 0.99):
            part, whole = divergence(noise, t, share * epsilon), divergence(noise, t, float(epsilon))
            assert np.all(part <= share * whole * (1 + 1e-12))


def exactly(noise: str, t: float, epsilon: float) -> Decimal:
    """A curve as its formula stands, in 60 digits."""
    with localcontext() as context:
        context.prec, context.Emax, context.Emin = 60, 10**12, -(10**12)
        rest, x = Decimal(t), Decimal(epsilon)
        order = rest + 1
        if noise == LAPLACE:
            inside = (order * (rest * x).exp() + rest * (-order * x).exp()) / (2 * order - 1)
        else:
            inside = ((order * x).exp() + (x - order * x).exp()) / (1 + x.exp())
        return inside.ln() / rest


@pytest.mark.parametrize("noise", [LAPLACE, PURE])
def test_floats_round_upwards_and_overflow_nowhere(noise: str) -> None:
    for t in (1e-6, 1e-3, 0.3, 1.0, 7.0, 1e4, 1e8):
        for epsilon in (1e-9, 1e-5, 0.1, 0.99, 1.01, 29.0, 31.0, 1e3):
            exact = exactly(noise, t, epsilon)
            with np.errstate(over="raise", invalid="raise", divide="raise"):
                found = Decimal(curve_at(noise, t, epsilon))
            assert exact <= found <= exact + (exact + Decimal(epsilon)) * 2 / 10**9, (t, epsilon)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        for of_noise in (laplace, pure, bounded_range):
            assert np.all(np.isfinite(of_noise(np.geomspace(1e-7, 1e13, 99), 2.0**31)))


def curve_at(noise: str, t: float, epsilon: float) -> float:
    return float(divergence(noise, np.array([t]), epsilon)[0])


def losses_of_laplace(move: float, grain: float) -> np.ndarray:
    """The law of the privacy loss of Laplace noise, each loss rounded up to a multiple of the grain, from −move on."""
    steps = round(move / grain)
    ends = np.linspace(-move, move, 2 * steps + 1)
    # the loss is at most x where the noise is beyond (move - x)/2: a chance of exp(-(move - x)/2)/2, and 1 at the end
    below = np.append(np.exp(-(move - ends[:-1]) / 2) / 2, 1.0)
    return np.diff(below, prepend=0.0)


def losses_of_response(move: float, grain: float) -> np.ndarray:
    """The same of randomised response."""
    law = np.zeros(2 * round(move / grain) + 1)
    law[0], law[-1] = 1 / (1 + math.exp(move)), 1 / (1 + math.exp(-move))
    return law


@for_each(("noise", "losses"), [(LAPLACE, losses_of_laplace), (PURE, losses_of_response)])
@for_each(("move", "times"), [(0.1, 100), (0.5, 8), (2.0, 3)])
@for_each("delta", [Fraction(1, 10), Fraction(1, 1000), MILLIONTH])
def test_what_is_read_covers_the_true_loss(
    noise: str, losses: Callable[[float, float], np.ndarray], move: float, times: int, delta: Fraction
) -> None:
    grain = move * times / 5000
    law = np.array([1.0])
    for _ in range(times):
        law = np.convolve(law, losses(move, grain))
    epsilon = Fraction(move).limit_denominator(100)
    found = float(spent_at(delta, [Charged(noise, epsilon)] * times, times * epsilon))
    lost = np.linspace(-move * times, move * times, len(law))
    assert float(np.sum(law * np.maximum(0, -np.expm1(found - lost)))) <= float(delta) * 1.01
    assert found <= times * move


def test_known_readings() -> None:
    tenth = Fraction(1, 10)
    for noise, epsilon, times, shown in (
        (LAPLACE, tenth, 100, "4.98"),
        (LAPLACE, tenth / 10, 1000, "1.47"),
        ("double-geometric", tenth, 100, "5.07"),
    ):
        found = spent_at(MILLIONTH, [Charged(noise, epsilon)] * times, epsilon * times)
        assert f"{float(found):.2f}" == shown
        assert (found * 10**9).denominator == 1
    assert spent_at(MILLIONTH, [Charged(BOUNDED_RANGE, tenth)] * 100, Fraction(10)) < 3


@for_each("noise", [LAPLACE, BOUNDED_RANGE, PURE])
@for_each("epsilon", [Fraction(1, 10**9), Fraction(1, 3), Fraction(40), Fraction(2**31)])
def test_a_reading_is_never_above_the_pure_sum_and_falls_with_delta(noise: str, epsilon: Fraction) -> None:
    readings = [
        spent_at(Fraction(1, 10**digits), [Charged(noise, epsilon)] * 7, 7 * epsilon) for digits in (30, 12, 6, 2)
    ]
    assert readings == sorted(readings, reverse=True)
    assert 0 <= readings[-1] <= readings[0] <= 7 * epsilon
    assert spent_at(MILLIONTH, [], Fraction(0)) == 0


def test_every_order_holds_so_more_of_them_find_little() -> None:
    def divergences(t: np.ndarray) -> np.ndarray:
        return 100 * laplace(t, 0.1)

    orders = 1 + np.geomspace(1, 50, 100_001)
    best = divergences(orders - 1) + np.log((orders - 1) / orders) + (math.log(1e6) - np.log(orders)) / (orders - 1)
    assert float(best.min()) <= least_epsilon(divergences, 1e-6) <= float(best.min()) + 1e-6


PARTS = [(), (("p", "a"),), (("p", "b"),), (("p", "a"), ("q", "x")), (("p", "a"), ("q", "y")), (("r", "c"),)]


def by_assignment(history: Sequence[Charged], t: np.ndarray, shares: dict[tuple[str, ...], float]) -> np.ndarray:
    """What is lost where each part, by its chain of names, takes a share of the change of what was split."""
    total = np.zeros_like(t)
    for one in history:
        names = tuple(part for _, part in one.parts)
        share = math.prod(shares.get(names[: depth + 1], 0.0) for depth in range(len(names)))
        if share > 0:
            total += divergence(one.noise, t, share * float(one.epsilon))
    return total


@for_each("seed", range(10))
def test_parts_count_as_the_worst_way_in_which_a_unit_is_spread(seed: int) -> None:
    random = np.random.default_rng(seed)
    noises = [LAPLACE, PURE, BOUNDED_RANGE]
    history = [
        Charged(noises[random.integers(3)], Fraction(int(random.integers(1, 30)), 20), PARTS[random.integers(6)])
        for _ in range(12)
    ]

    def worst(t: np.ndarray) -> np.ndarray:
        ways = itertools.product("ab", "xy")
        whole = [{(one,): 1.0, ("a", other): 1.0, ("c",): 1.0} for one, other in ways]
        return np.maximum.reduce([by_assignment(history, t, way) for way in whole])

    t = np.geomspace(0.01, 1000, 50)
    for _ in range(50):  # a unit that is spread over the parts loses no more, at any order
        one, other = random.uniform(0, 1, 2)
        spread = {("a",): one, ("b",): 1 - one, ("a", "x"): other, ("a", "y"): 1 - other, ("c",): 1.0}
        assert np.all(by_assignment(history, t, spread) <= worst(t) * (1 + 1e-8) + 1e-8)
    pure_sum = sum((one.epsilon for one in history), Fraction(0))
    assert float(spent_at(MILLIONTH, history, pure_sum)) == pytest.approx(
        min(float(pure_sum), least_epsilon(worst, 1e-6)), abs=1e-6
    )


def test_ten_releases_of_one_part_and_then_a_large_one_of_another() -> None:
    one, other = (("p", "one"),), (("p", "other"),)
    small, large = [Charged(LAPLACE, Fraction(1, 10), one)] * 10, [Charged(LAPLACE, Fraction(1), other)]
    found = spent_at(MILLIONTH, small + large, Fraction(1))
    assert found == spent_at(MILLIONTH, large, Fraction(1)) > spent_at(MILLIONTH, small, Fraction(1))


def test_partitions_nest_deeper_than_calls() -> None:
    chain = tuple((f"p{depth}", "a") for depth in range(3000))
    history = [Charged(LAPLACE, Fraction(1), chain)]
    assert spent_at(MILLIONTH, history, Fraction(9)) == spent_at(
        MILLIONTH, [Charged(LAPLACE, Fraction(1))], Fraction(9)
    )


@for_each("value", [0, 1, 2, -1, "0", "1", "1e-31", "nan", "", True, None, float("nan")])
def test_a_delta_lies_between_0_and_1(value: object) -> None:
    with pytest.raises(EpsilonError, match="a delta lies between 0 and 1"):
        parse_delta(value)
