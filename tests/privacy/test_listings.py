"""Listings: rare successes, noise under conditions, and the law of all that is revealed, against the plain mechanism.

What is shown of a release must be a function of one noisy value a key, all independent and of the plain law, whatever
was asked for, listed and listed again in between. So every scenario ends with asking for all keys, and two things are
tested: that the listings show what that table says, which is certain, and that the table has the plain law, by
chi-square. Bytes are seeded: every run draws the same.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.support.parameters import for_each, sizes, tenth
from wpinq.noise import conditional
from wpinq.noise.conditional import ConditionalNoise, successes
from wpinq.noise.exact_bernoulli import exponential_bounds
from wpinq.sinks import count_above
from wpinq.sinks.count_above import draw_listing, least_cut
from wpinq.sinks.keys import GivenKeys, IntegerKeys, KeyDomain

FALSE_ALARM = 1e-6
SURE = 1e-9
"""What a planted error must be refuted with."""


def seeded(name: object) -> Callable[[int], bytes]:
    return random.Random(str(name)).randbytes


def chi_square(seen: Sequence[float], chances: Sequence[float]) -> float:
    expected = np.asarray(chances) / np.sum(chances) * np.sum(seen)
    assert expected.min() >= 5
    return float(stats.chisquare(seen, expected).pvalue)


# --- rare successes ---------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("p", [Fraction(49, 100), Fraction(1, 3), Fraction(1, 50)])
def test_each_trial_succeeds_by_itself(p: Fraction) -> None:
    """Patterns of 8 trials: all 256 of them have the chances of independent trials, so numbers are binomial."""
    random_bytes, runs = seeded(p), 3000
    seen: dict[tuple[int, ...], int] = {}
    for _ in range(runs):
        found = tuple(successes(8, lambda bits: (p, p), random_bytes))
        seen[found] = seen.get(found, 0) + 1
    by_count = [sum(n for found, n in seen.items() if len(found) == k) for k in range(9)]
    chances = stats.binom.pmf(range(9), 8, float(p))
    kept = max(k for k in range(9) if runs * chances[k:].sum() >= 20)
    assert chi_square([*by_count[:kept], sum(by_count[kept:])], [*chances[:kept], chances[kept:].sum()]) > FALSE_ALARM
    places = np.bincount([place for found in seen for place in found for _ in range(seen[found])], minlength=8)
    assert chi_square(places, np.ones(8)) > FALSE_ALARM
    both = sum(n for found, n in seen.items() if {2, 5} <= set(found))
    assert abs(both - runs * float(p) ** 2) < 5.5 * math.sqrt(runs * float(p) ** 2)


@pytest.mark.long
def test_of_a_million_million_trials_as_many_succeed_as_should() -> None:
    p, trials, runs = Fraction(1, 10**11), 10**12, 1500
    random_bytes = seeded("rare")
    found = [successes(trials, lambda bits: (p, p), random_bytes) for _ in range(runs)]
    counts = np.bincount([len(one) for one in found], minlength=40)
    law = stats.poisson.pmf(range(40), 10)  # of the binomial law the total variation is at most p
    classes = [slice(0, 5), *(slice(k, k + 1) for k in range(5, 17)), slice(17, 40)]
    assert chi_square([counts[c].sum() for c in classes], [law[c].sum() for c in classes]) > FALSE_ALARM
    assert stats.kstest([place / trials for one in found for place in one], "uniform").pvalue > FALSE_ALARM
    assert all(one == sorted(set(one)) for one in found)


def test_a_chance_that_is_off_by_a_tenth_would_be_seen() -> None:
    p, random_bytes, runs = Fraction(1, 3), seeded("off"), 3000
    counts = np.bincount([len(successes(8, lambda bits: (p, p), random_bytes)) for _ in range(runs)], minlength=9)
    wrong = stats.binom.pmf(range(9), 8, 0.9 / 3)
    assert chi_square([*counts[:6], counts[6:].sum()], [*wrong[:6], wrong[6:].sum()]) < SURE


@pytest.mark.parametrize("t", [Fraction(1, 2**1080), Fraction(1, 7), Fraction(3), Fraction(100), Fraction(10**9)])
def test_bounds_of_the_exponential_hold_and_close_in(t: Fraction) -> None:
    bounds = [exponential_bounds(t, bits) for bits in (64, 192, 400)]
    assert all(0 <= low <= high <= 1 for low, high in bounds)
    assert max(low for low, _ in bounds) <= min(high for _, high in bounds)
    assert all(high - low <= Fraction(128, 2**bits) for (low, high), bits in zip(bounds, (64, 192, 400), strict=True))
    low, high = bounds[-1]
    assert math.isclose(float(high), math.exp(-float(t)), rel_tol=1e-12, abs_tol=1e-110)
    assert low > 0 or t > 400


# --- noise under conditions -------------------------------------------------------------------------------------------


def laplace_survival(x: float, scale: float) -> float:
    return math.exp(-x / scale) / 2 if x >= 0 else 1 - math.exp(x / scale) / 2


@pytest.mark.parametrize("weight", [0.0, 1.5, 40.0])
@pytest.mark.parametrize("cut", [0.0, 2.0])
def test_laplace_noise_at_most_a_cut(weight: float, cut: float) -> None:
    noise = ConditionalNoise(1.3, whole=False, random=seeded((weight, cut)))
    drawn = noise.at_most([weight] * 4000, [cut] * 4000)
    assert max(drawn) <= cut
    whole = 1 - laplace_survival(cut - weight, 1.3)
    if weight > 30:  # far above: exponential below the cut, and drawn at once
        assert stats.kstest([(cut - x) / 1.3 for x in drawn], "expon").pvalue > FALSE_ALARM
    else:
        law = [(1 - laplace_survival(x - weight, 1.3)) / whole for x in drawn]
        assert stats.kstest(law, "uniform").pvalue > FALSE_ALARM


def test_laplace_noise_above_a_cut_and_how_often() -> None:
    noise = ConditionalNoise(1.3, whole=False, random=seeded("above"))
    drawn = noise.above(2.0, 5000)
    assert min(drawn) > 2
    assert stats.kstest([(x - 2) / 1.3 for x in drawn], "expon").pvalue > FALSE_ALARM
    low, high = noise.chance(2.0, 128)
    assert math.isclose(float(low), math.exp(-2 / 1.3) / 2, rel_tol=1e-12)
    assert 0 < high - low < Fraction(1, 2**100)


@pytest.mark.parametrize("weight", [0, 2, 30])
@pytest.mark.parametrize("cut", [0, 3])
def test_geometric_noise_at_most_and_above(weight: int, cut: int) -> None:
    scale, size = 1.7, 6000
    noise, a = ConditionalNoise(scale, whole=True, random=seeded((weight, cut))), math.exp(-1 / 1.7)
    drawn = noise.at_most([weight] * size, [float(cut)] * size)
    law = np.array([a ** abs(k - weight) for k in range(cut, cut - 200, -1)])
    most = int(np.flatnonzero(law / law.sum() * size >= 10)[-1])
    seen = [drawn.count(cut - k) for k in range(most)]
    assert max(drawn) <= cut
    assert chi_square([*seen, size - sum(seen)], [*law[:most], law[most:].sum()]) > FALSE_ALARM
    above = noise.above(float(cut), size)
    seen = [above.count(cut + 1 + k) for k in range(8)]
    assert chi_square([*seen, size - sum(seen)], [*((1 - a) * a**k for k in range(8)), a**8]) > FALSE_ALARM
    low, high = noise.chance(float(cut), 100)
    assert float(low) <= a ** (cut + 1) / (1 + a) * (1 + 1e-12)
    assert float(high) >= a ** (cut + 1) / (1 + a) * (1 - 1e-12)


def test_the_chance_is_that_of_the_rounded_number() -> None:
    """Where floats are as coarse as the noise, among the smallest of them, rounding decides: and is accounted for."""
    tiny, size = 2.0**-1073, 20_000  # twice the smallest float
    noise = ConditionalNoise(tiny, whole=False, random=seeded("tiny"))
    plain = noise.at_most([0.0] * size, [math.inf] * size)
    for cut in (0.0, 2.0**-1074, 2.0**-1073):
        p = float(noise.chance(cut, 100)[0])
        above = sum(x > cut for x in plain)
        assert stats.binomtest(above, size, p).pvalue > FALSE_ALARM
        assert stats.binomtest(above, size, math.exp(-cut / tiny) / 2).pvalue < SURE, "p of the noise before rounding"
        listed, straight = noise.above(cut, 3000), [x for x in plain if x > cut]
        steps = [cut + k * 2.0**-1074 for k in (1, 2, 3, 4)]
        seen = np.array([[drawn.count(x) for x in steps] for drawn in (listed, straight)])
        rest = [len(drawn) - n for drawn, n in zip((listed, straight), seen.sum(axis=1), strict=True)]
        assert stats.chi2_contingency(np.column_stack([seen, rest])).pvalue > FALSE_ALARM


# --- the law of all that is revealed ----------------------------------------------------------------------------------


class Book:
    """What a session and its ledger do with one release, over a small domain."""

    def __init__(self, weights: Mapping[int, float], noise: ConditionalNoise) -> None:
        self.weights, self.noise = weights, noise
        self.stored: dict[int, float] = {}
        self.past: list[tuple[KeyDomain, float]] = []
        self.shown: list[tuple[KeyDomain, float, dict[int, float]]] = []

    def at(self, keys: Sequence[int]) -> None:
        missing = [key for key in keys if key not in self.stored]
        held = [self.weights.get(key, 0.0) for key in missing]
        drawn = self.noise.at_most(held, [self.known(key) for key in missing])
        self.stored |= dict(zip(missing, drawn, strict=True))

    def known(self, key: int) -> float:
        return least_cut(self.past, key)

    def list(self, domain: KeyDomain, cut: float) -> None:
        rows = draw_listing(self.weights, self.asked(), self.past, domain, cut, self.noise)
        self.stored = rows | self.stored
        self.past.append((domain, cut))
        here = {key: x for key, x in self.stored.items() if key in domain and x > cut}
        self.shown.append((domain, cut, here | rows))

    def asked(self) -> Mapping[int, float]:
        return self.stored

    def agrees(self) -> bool:
        """Whether the listings say what the table of all keys says."""
        return all(
            rows == {key: x for key, x in self.stored.items() if key in domain and x > cut}
            for domain, cut, rows in self.shown
        )


ALL = IntegerKeys(0, 39)
WEIGHTS = {**dict.fromkeys(range(3, 11), 3.0), **dict.fromkeys(range(20, 30), 1.0), 77: 5.0}
GROUPS = {3.0: range(3, 11), 1.0: range(20, 30), 0.0: [*range(3), *range(11, 20), *range(30, 40)]}

Step = list[int] | tuple[KeyDomain, float]
"""Keys to ask for, or a domain with the cut above which it is listed."""

SCENARIOS: dict[str, list[Step]] = {
    "one listing": [(ALL, 2.0)],
    "at, then a listing": [[0, 1, 4, 5, 21, 35, 36], (ALL, 1.0)],
    "a lower threshold": [(ALL, 3.0), (ALL, 1.0), (ALL, 0.0)],
    "a higher threshold": [(ALL, 0.0), (ALL, 2.0)],
    "domains that overlap": [
        *((IntegerKeys(0, 24), 1.0), [2, 7, 33], (IntegerKeys(12, 39), 0.0), (IntegerKeys(0, 30), 2.0), (ALL, 0.0)),
    ],
}


def final_tables(
    scenario: str, *, whole: bool, book: type[Book] = Book, runs: int = 250
) -> tuple[list[dict[int, float]], bool]:
    noise = ConditionalNoise(1.5, whole, seeded((scenario, whole)))
    tables, agreed = [], True
    for _ in range(runs):
        one = book(WEIGHTS, noise)
        for step in SCENARIOS[scenario]:
            one.at(step) if isinstance(step, list) else one.list(*step)
        one.at(range(40))
        tables.append(one.stored)
        agreed = agreed and one.agrees()
    return tables, agreed


def evidence(tables: list[dict[int, float]], *, whole: bool) -> float:
    """The least p-value of the table's laws: of values by weight, of how many are large together, of single keys."""
    found = []
    a = math.exp(-1 / 1.5)
    for weight, keys in GROUPS.items():
        values = np.array([[table[key] for key in keys] for table in tables])
        if whole:
            classes = np.array([-math.inf, -4, -2, -1, 0, 1, 2, 3, 4, 6, math.inf])
            below = [0.0, *(sum(a ** abs(k) for k in range(-80, int(c - weight) + 1)) for c in classes[1:-1])]
            chances = np.diff([*below, sum(a ** abs(k) for k in range(-80, 81))])
            seen = np.array([np.sum((values > low) & (values <= high)) for low, high in pairwise(classes)])
            large = float(chances[5:].sum() / chances.sum())
        else:
            law = stats.laplace.cdf(values - weight, scale=1.5)
            seen, chances = np.histogram(law, bins=20, range=(0, 1))[0], np.ones(20)
            large = stats.laplace.sf(1.0 - weight, scale=1.5)
        found.append(chi_square(seen, chances))
        counts = np.bincount((values > 1).sum(axis=1), minlength=len(keys) + 1)
        together = stats.binom.pmf(range(len(keys) + 1), len(keys), large)
        classes_ = [0]
        for k in range(1, len(keys) + 2):  # neighbours are put together until each class has enough
            if together[classes_[-1] : k].sum() * len(tables) >= 8:
                classes_.append(k)
        classes_[-1] = len(keys) + 1
        found.append(
            chi_square(
                [counts[i:j].sum() for i, j in pairwise(classes_)],
                [together[i:j].sum() for i, j in pairwise(classes_)],
            )
        )
        by_key = (values > 1).sum(axis=0)
        spread = len(tables) * large * (1 - large)
        found.append(float(stats.chi2.sf(((by_key - len(tables) * large) ** 2 / spread).sum(), len(keys))))
    return min(found)


@for_each("whole", [False, True], ids=["Laplace", "geometric"])
@pytest.mark.parametrize("scenario", tenth([*SCENARIOS][::-1], 5))
def test_what_is_revealed_has_the_law_of_the_plain_mechanism(scenario: str, whole: bool) -> None:
    tables, agreed = final_tables(scenario, whole=whole)
    assert agreed
    assert evidence(tables, whole=whole) > FALSE_ALARM


class ForgetsListings(Book):
    """Draws anew for keys that a listing left out."""

    def known(self, key: int) -> float:
        return math.inf


class CountsAskedKeys(Book):
    """Takes keys that were asked for to be absent ones that could still be listed."""

    def asked(self) -> Mapping[int, float]:
        return {}


class KeepsWhatWasBelow(Book):
    """Takes a key that was not listed for one that weighs nothing."""

    def list(self, domain: KeyDomain, cut: float) -> None:
        super().list(domain, cut)
        self.weights = {key: w for key, w in self.weights.items() if key in self.stored or key not in domain}


@pytest.mark.parametrize(
    ("planted", "scenario"),
    [(ForgetsListings, "one listing"), (CountsAskedKeys, "at, then a listing"), (KeepsWhatWasBelow, "one listing")],
)
@pytest.mark.parametrize("whole", sizes(False, True))
def test_planted_errors_of_the_way_are_found(planted: type[Book], scenario: str, whole: bool) -> None:
    tables, agreed = final_tables(scenario, whole=whole, book=planted)
    assert not agreed or evidence(tables, whole=whole) < SURE


@pytest.mark.parametrize("whole", sizes(False, True))
@pytest.mark.parametrize("planted", ["chance", "past", "count"])
def test_planted_errors_of_the_draw_are_found(planted: str, whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """p of a threshold that is a tenth off; earlier listings forgotten; a count that leaves the present keys in."""
    honest = count_above.successes
    if planted == "chance":
        chance = ConditionalNoise.chance
        monkeypatch.setattr(
            conditional.ConditionalNoise,
            "chance",
            lambda self, cut, bits: tuple(p * Fraction(13, 10) for p in chance(self, cut, bits)),
        )
        scenario = "one listing"
    elif planted == "past":
        monkeypatch.setattr(count_above, "least_cut", lambda past, key: math.inf)
        scenario = "a lower threshold"
    else:
        monkeypatch.setattr(
            count_above, "successes", lambda trials, p, draw: [rank % trials for rank in honest(40, p, draw)]
        )
        scenario = "one listing"
    tables, agreed = final_tables(scenario, whole=whole, runs=1000)
    assert not agreed or evidence(tables, whole=whole) < SURE


# --- the same without chance: all that can be drawn is gone through ---------------------------------------------------

LAWS = {
    0.0: {0.0: Fraction(1, 2), 1.0: Fraction(3, 10), 2.0: Fraction(1, 5)},
    1.0: {0.0: Fraction(1, 7), 1.0: Fraction(2, 7), 2.0: Fraction(4, 7)},
}
"""By weight, a law of three values in the place of that of the noise."""


class Outcomes:
    """In the place of noise: one way after another in which draws can turn out, with its chance."""

    random = None

    def __init__(self) -> None:
        self.way: list[tuple[int, int]] = []
        self.begin()

    def begin(self) -> None:
        self.depth, self.chance_of_way = 0, Fraction(1)

    def draw(self, law: Mapping[Any, Fraction]) -> Any:
        if self.depth == len(self.way):
            self.way.append((0, len(law)))
        value, chance = list(law.items())[self.way[self.depth][0]]
        self.depth += 1
        self.chance_of_way *= chance / sum(law.values())
        return value

    def another(self) -> bool:
        while self.way and self.way[-1][0] + 1 == self.way[-1][1]:
            self.way.pop()
        if self.way:
            self.way[-1] = self.way[-1][0] + 1, self.way[-1][1]
        self.begin()
        return bool(self.way)

    def chance(self, cut: float, bits: int) -> Fraction:
        return sum((chance for value, chance in LAWS[0.0].items() if value > cut), Fraction(0))

    def successes(self, trials: int, chance: Callable[[int], Fraction], random: None) -> list[int]:
        return [trial for trial in range(trials) if self.draw({False: 1 - chance(0), True: chance(0)})]

    def at_most(self, weights: Sequence[float], cuts: Sequence[float]) -> list[float]:
        laws = [{x: p for x, p in LAWS[weight].items() if x <= cut} for weight, cut in zip(weights, cuts, strict=True)]
        return list(map(self.draw, laws))

    def above(self, cut: float, count: int) -> list[float]:
        return [self.draw({x: p for x, p in LAWS[0.0].items() if x > cut}) for _ in range(count)]


def is_exact(weights: Mapping[int, float], script: Sequence[Step], book: type[Book], outcomes: Outcomes) -> bool:
    """Whether the table of three keys has its law to the last digit, and the listings say what it says."""
    tables: dict[tuple[float, ...], Fraction] = {}
    more, agreed = True, True
    while more:
        one = book(weights, outcomes)
        for step in script:
            one.at(step) if isinstance(step, list) else one.list(*step)
        one.at(range(3))
        agreed = agreed and one.agrees()
        table = tuple(one.stored[key] for key in range(3))
        tables[table] = tables.get(table, Fraction(0)) + outcomes.chance_of_way
        more = outcomes.another()
    laws = [LAWS[weights.get(key, 0.0)] for key in range(3)]
    return agreed and tables == {
        table: math.prod(law[x] for law, x in zip(laws, table, strict=True)) for table in product(*laws)
    }


SOME_KEYS = [[0], [1, 2], [0, 1, 2]]
STEPS: list[Step] = [*SOME_KEYS[:2], *((GivenKeys(tuple(keys)), cut) for keys in SOME_KEYS for cut in (0.0, 1.0))]


@pytest.mark.parametrize("weights", [{}, {1: 1.0}, {0: 1.0, 2: 1.0, 9: 1.0}])
def test_small_tables_have_their_law_to_the_last_digit(
    weights: Mapping[int, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = Outcomes()
    monkeypatch.setattr(count_above, "successes", outcomes.successes)
    scripts = [[one, other] for one in STEPS for other in STEPS] + [[STEPS[-1], STEPS[0], STEPS[-2], STEPS[4]]]
    assert all(is_exact(weights, script, Book, outcomes) for script in scripts)
    script: list[Step] = [STEPS[0], STEPS[-1], STEPS[-2]]
    assert not any(is_exact(weights, script, planted, outcomes) for planted in (ForgetsListings, CountsAskedKeys))


# --- an audit of the loss ---------------------------------------------------------------------------------------------


def loss_at_least(one: int, other: int, runs: int) -> float:
    """A bound from below on ln(P/Q) of an event, from how often it happened: Clopper and Pearson, at 1e-6 each."""
    low = stats.beta.ppf(1e-6, one, runs - one + 1) if one else 0.0
    high = stats.beta.ppf(1 - 1e-6, other + 1, runs - other)
    return math.log(low / high) if low else -math.inf


def audited(book: type[Book], whole: bool) -> float:
    """The most that two listings and an `at` show of whether a key weighs 1 or nothing; ε is 1, so no more than 1.

    Keys are independent, which is tested above: many keys of one book stand for many runs over one.
    """
    runs = 20_000
    present, absent = range(runs), range(runs, 2 * runs)
    one = book(dict.fromkeys(present, 1.0), ConditionalNoise(1.0, whole, seeded((book, whole))))
    domain = IntegerKeys(0, 2 * runs - 1)
    one.list(domain, 1.0)
    one.list(domain, 0.0)
    one.at([*present, *absent])
    (_, _, first), (_, _, second) = one.shown
    events: tuple[Callable[[int], bool], ...] = (
        lambda key: key in first,
        lambda key: key in second,
        lambda key: key not in first and one.stored[key] <= 0,
        lambda key: key not in second and one.stored[key] <= 0,
        lambda key: one.stored[key] <= -1,
        lambda key: one.stored[key] > 2,
        lambda key: first.get(key, 0.0) > 2,
    )
    counts = [[sum(map(event, keys)) for keys in (present, absent)] for event in events]
    return max(loss_at_least(pair[i], pair[1 - i], runs) for pair in counts for i in (0, 1))


@pytest.mark.parametrize("whole", [False, True], ids=["Laplace", "geometric"])
def test_the_loss_is_what_is_billed_and_a_second_draw_would_show(whole: bool) -> None:
    assert 0.85 < audited(Book, whole) <= 1
    assert audited(ForgetsListings, whole) > 1
