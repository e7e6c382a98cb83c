"""The samplers: coins, digits and rounding against slow exact arithmetic, and the laws of what they draw.

Where bytes come from a seeded generator the tests always give the same result. Those on the bytes of the operating
system fail by chance with a probability of at most 1e-9 each.
"""

from __future__ import annotations

import decimal
import math
import os
import random
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from tests.support.parameters import for_each
from wpinq.noise import laplace
from wpinq.noise.exact_bernoulli import CELL_DIGITS, WORD, Coin, Exponential
from wpinq.noise.geometric import double_geometric
from wpinq.noise.laplace import add_laplace

FALSE_ALARM = 1e-9
LARGEST = sys.float_info.max
SIZE = WORD // 8
"""Bytes of a word."""
CONTEXT = decimal.Context(prec=120)


@cache
def chance(exponent: Fraction, logistic: bool) -> Fraction:
    """The chance of heads to 110 digits, by Python's decimals: another algorithm than that of the coins."""
    t = CONTEXT.divide(decimal.Decimal(-exponent.numerator), decimal.Decimal(exponent.denominator))
    p = Fraction(CONTEXT.exp(t))
    return p / (1 + p) if logistic else p


class Tape:
    """Bytes of a seeded generator, some words of which are replaced; all are kept to be played again."""

    def __init__(self, seed: int, words: dict[int, int] | None = None) -> None:
        self.generator = random.Random(seed)
        self.words = words or {}
        self.written = b""

    def __call__(self, count: int) -> bytes:
        drawn = bytearray(self.generator.randbytes(count))
        for place, word in self.words.items():
            start = place - len(self.written)
            if 0 <= start <= count - SIZE:
                drawn[start : start + SIZE] = word.to_bytes(SIZE, "little")
        self.written += drawn
        return bytes(drawn)


class Replay:
    def __init__(self, written: bytes) -> None:
        self.left = written

    def __call__(self, count: int) -> bytes:
        assert len(self.left) >= count
        taken, self.left = self.left[:count], self.left[count:]
        return taken

    def number(self, size: int = SIZE) -> int:
        return int.from_bytes(self(size), "little")

    def flip(self, p: Fraction) -> bool:
        return self.below(p, self.number(), WORD)

    def below(self, p: Fraction, number: int, bits: int) -> bool:
        """Whether the real number with these first binary digits, and those that follow, is below p."""
        while math.floor(p * 2**bits) == number:
            number, bits = number << WORD | self.number(), bits + WORD
        return bool(number < p * 2**bits)


# --- coins ---


@settings(deadline=None, derandomize=True, max_examples=150)
@given(
    st.fractions(min_value=Fraction(1, 10**30), max_value=90), st.booleans(), st.sampled_from([1, 31, 32, 64, 200, 320])
)
def test_the_digits_of_a_coin_are_those_of_its_chance(exponent: Fraction, logistic: bool, bits: int) -> None:
    assert Coin(exponent, logistic=logistic).leading(bits) == math.floor(chance(exponent, logistic) * 2**bits)


@pytest.mark.parametrize("exponent", [Fraction(-1, 10**9), Fraction(-1)])
def test_a_coin_outside_of_its_range_is_refused(exponent: Fraction) -> None:
    with pytest.raises(ValueError, match="exponent"):
        Coin(exponent, logistic=True)


@pytest.mark.parametrize("ties", [0, 1, 3])
@pytest.mark.parametrize(("offset", "heads"), [(-1, True), (1, False)])
def test_a_tie_is_decided_by_the_words_that_follow(ties: int, offset: int, heads: bool) -> None:
    coin = Coin(Fraction(5, 7), logistic=True)
    expected = coin.leading(WORD * (ties + 1))
    words = [expected >> WORD * (ties - k) & 2**WORD - 1 for k in range(ties + 1)]
    words[-1] += offset
    drawn = b"".join(word.to_bytes(SIZE, "little") for word in words)
    one, drawn_before = Replay(drawn), Replay(drawn)
    assert coin.flip(one) == heads
    assert coin.decide(drawn_before.number(), WORD, drawn_before) == heads
    assert one.left == drawn_before.left == b""


@pytest.mark.parametrize("relative", [Fraction(1), Fraction(5, 3), Fraction(2)])
def test_every_word_decides_the_digits_of_a_cell_as_their_chance_does(relative: Fraction) -> None:
    """All 2^16 words, after five digits 1, beside nine numbers.

    They are heads below the chance and tails above it, and further words are drawn at it alone. Five digits of which
    one is 0 are below the chance of any number.
    """
    assert 32 * chance(Fraction(2) * (2**58 - 1) / 2**64, False) > 31
    law, words = Exponential(1.0), np.arange(2**WORD, dtype="<u2").tobytes()
    law._relative = relative
    # of the seventh the chance is a whole number of units and a little more, and less by floats
    for number in (0, 1, 2**30, 2**52 - 1, 2**55, 2**57, 2**58 - 11 * 2**40, 2**58 - 2**20, 2**58 - 1):
        replay = Replay(words + bytes(SIZE))
        kept = law._kept(np.full(2**WORD, number, dtype=np.uint64), replay)
        exact = chance(relative * number / 2**64, False) * 2 ** (5 + WORD) - 31 * 2**WORD
        expected = np.arange(2**WORD) < math.floor(exact)
        if exact != math.floor(exact):
            expected[math.floor(exact)] = True  # by a further word of zeros
        assert (kept == expected).all()
        assert bool(replay.left) == (exact == math.floor(exact))


@pytest.mark.parametrize("scale", [1.0, 0.7, math.nextafter(0.5, 1), 10.1])
def test_the_cuts_of_cells_are_the_words_of_their_chances(scale: float) -> None:
    law, b = Exponential(scale), Fraction(scale)
    cuts = [int(cut) for cut in law._cuts[::-1]]
    assert cuts[-1] == 0 < cuts[-2]
    for i, cut in enumerate(cuts, start=1):
        assert math.floor(cell(power_of_two_from(b), b, i) * 2**32) in (cut, cut + 1)


@pytest.mark.parametrize("scale", [1.0, 0.7, math.nextafter(0.5, 1), 10.1, 19.05])
def test_the_first_word_tells_a_cell_only_where_all_numbers_that_begin_with_it_are_in_it(scale: float) -> None:
    """All 2^16 first words, and the two numbers at the ends of what begins with each; few words leave it open."""
    law, b = Exponential(scale), Fraction(scale)
    ends = [cell(power_of_two_from(b), b, i) * 2**WORD for i in range(len(law._cuts) + 1)]
    for first, found in enumerate(law._by_first.tolist()):
        assert found == -1 or ends[found + 1] <= first < first + 1 <= ends[found]
    assert np.mean(law._by_first < 0) < 0.02
    for cut in law._cuts.tolist():  # of 19.05 one ends in 16 digits 1: the number after it begins with the next word
        assert law._by_first[cut >> WORD] == law._by_first[cut + 1 >> WORD] == -1


class Given:
    """Bytes for requests of their sizes, one after another; between them those of a tape. All are kept for a replay."""

    def __init__(self, *given: bytes) -> None:
        self.left, self.tape, self.written = [*given], Tape(1), b""

    def __call__(self, count: int) -> bytes:
        drawn = self.left.pop(0) if self.left and len(self.left[0]) == count else self.tape(count)
        self.written += drawn
        return drawn


def in_two_words(law: Exponential, numbers: list[int]) -> tuple[bytes, bytes]:
    """The first words of numbers of 32 bits, and the second words of those whose first leaves the cell open."""
    first = [number >> WORD for number in numbers]
    second = [number & 2**WORD - 1 for number in numbers if law._by_first[number >> WORD] < 0]
    return np.array(first, "<u2").tobytes(), np.array(second, "<u2").tobytes()


@pytest.mark.parametrize("scale", [2.5, 0.7206357736425046])
def test_words_next_to_a_cut_are_decided_exactly(scale: float) -> None:
    """Of the second scale end 199 is above the word after its cut."""
    law, b = Exponential(scale), Fraction(scale)
    end = partial(cell, power_of_two_from(b), b)
    numbers = [math.floor(end(i) * 2**32) + off for i in range(1, 400, 3) for off in (-2, -1, 0, 1, 2, 3)]
    given = Given(*in_two_words(law, numbers))
    found = law._cells(len(numbers), given)
    replay = Replay(given.tape.written)
    assert found.tolist() == [slow_cell(number, 32, end, replay) for number in numbers]
    assert len(given.tape.written) >= SIZE * 100
    assert replay.left == b""


# --- the whole sampler against one that is slow and obvious ---


def slow(values: list[float], scale: float, replay: Replay) -> list[float]:
    """The same noise from the same bytes, in rationals throughout, and with as many digits as rounding asks for."""
    b = Fraction(scale)
    c = power_of_two_from(b)
    signs, noise = slow_draws(len(values), c, b, replay)
    results = []
    for value, sign, start in zip(values, signs, noise, strict=True):
        low, place = start, 64
        while True:
            ends = {nearest(Fraction(value) + sign * c * end) for end in (low, low + Fraction(1, 2**place))}
            if len(ends) == 1:
                break
            place += 1
            low += Fraction(replay.flip(digit(c, b, place)), 2**place)
        results.append(ends.pop())
    return results


def power_of_two_from(b: Fraction) -> Fraction:
    c = Fraction(1)
    while c >= 2 * b:
        c /= 2
    while c < b:
        c *= 2
    return c


def slow_draws(count: int, c: Fraction, b: Fraction, replay: Replay) -> tuple[list[int], list[Fraction]]:
    """Signs, and E/c to 64 digits after the point; the table of first words says only where a second is drawn."""
    going = list(range(count))
    told, end = Exponential(float(b))._by_first, partial(cell, c, b)
    cells = [(replay.number(), WORD) for _ in range(count)]
    cells = [(n << WORD | replay.number(), 32) if told[n] < 0 else (n, bits) for n, bits in cells]
    cells = [slow_cell(number, bits, end, replay) for number, bits in cells]
    drawn = [replay.number(8) for _ in range(count)]
    while going := [i for i in going if drawn[i] & 62 == 62]:
        words = [(i, 31 << WORD | replay.number()) for i in going]
        chances = ((i, word, chance(c / b * (drawn[i] >> CELL_DIGITS) / 2**64, False)) for i, word in words)
        going = [i for i, word, p in chances if not replay.below(p, word, 5 + WORD)]
        for i in going:
            drawn[i] = replay.number(8)
    noise = [Fraction(n, 2**CELL_DIGITS) + Fraction(d >> CELL_DIGITS, 2**64) for n, d in zip(cells, drawn, strict=True)]
    return [-1 if number & 1 else 1 for number in drawn], noise


def cell(c: Fraction, b: Fraction, i: int) -> Fraction:
    """The chance of the cell i or one beyond."""
    return chance(c / b * i / 2**CELL_DIGITS, False)


def slow_cell(known: int, bits: int, end: Callable[[int], Fraction], replay: Replay) -> int:
    """In how many of the chances the real number with these first digits is, and those that follow."""
    cells = 0
    while True:
        cut = math.floor(end(cells + 1) * 2**bits)
        if known > cut:
            return cells
        if known < cut:
            cells += 1
        else:
            known, bits = known << WORD | replay.number(), bits + WORD


def digit(c: Fraction, b: Fraction, place: int) -> Fraction:
    return chance(c / b / 2**place, True)


def nearest(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return LARGEST if number > 0 else -LARGEST


CASES: list[tuple[float, Callable[[random.Random], float]]] = [
    (1.0, lambda r: 0.0),
    (10.1, lambda r: r.uniform(-50, 50)),
    (0.7, lambda r: float(r.randrange(-3, 3))),
    (3.0, lambda r: r.uniform(-1, 1) * 2.0 ** r.randrange(-80, 80)),
    (1e-3, lambda r: 2.0 ** r.randrange(-60, 60)),
    (1e300, lambda r: r.choice([LARGEST, -LARGEST, 1e299, 0.0])),
    (LARGEST, lambda r: r.choice([LARGEST, -LARGEST, 5e-324])),
    (5e-324, lambda r: r.choice([0.0, 5e-324, -1e-323, 1e-310, 1.0])),
    (3e-308, lambda r: r.uniform(-1e-307, 1e-307)),
    (2.0**900, lambda r: r.choice([2.0**1000, 2.0**1001, -1.0, 0.0])),
    (2.0**-900, lambda r: r.choice([1e-310, -1e-271, 1e-250])),
]


@for_each(("scale", "value"), CASES, ids=[str(scale) for scale, _ in CASES])
def test_it_is_bit_for_bit_the_slow_one(scale: float, value: Callable[[random.Random], float]) -> None:
    generator = random.Random(17)
    values = [value(generator) for _ in range(60)]
    for seed in range(3):
        tape = Tape(seed)
        fast = add_laplace(np.array(values), scale, tape).tolist()
        replay = Replay(tape.written)
        assert fast == slow(values, scale, replay)
        assert replay.left == b""


def test_ties_are_decided_as_in_the_slow_one() -> None:
    """Words of cells are put on their cuts, and words of flips on their thresholds."""
    law, generator = Exponential(2.5), random.Random(5)
    cells = [law._end(10 * i).leading(32) for i in range(1, 40, 3)]
    cells += [n for n in (generator.getrandbits(32) for _ in range(100)) if law._by_first[n >> WORD] >= 0][:27]
    numbers = [generator.getrandbits(64) | 62 if i % 3 == 0 else generator.getrandbits(64) & ~2 for i in range(40)]
    flips = [Coin(law._relative * (n >> CELL_DIGITS) / 2**64, logistic=False).leading(5 + WORD) for n in numbers[::3]]
    assert {flip >> WORD for flip in flips} == {31}
    words = np.array([flip & 2**WORD - 1 for flip in flips], "<u2").tobytes()
    given = Given(*in_two_words(law, cells), np.array(numbers, "<u8").tobytes(), words)
    values = [0.3] * 40
    fast = add_laplace(np.array(values), 2.5, given).tolist()
    assert not given.left
    replay = Replay(given.written)
    assert fast == slow(values, 2.5, replay)
    assert replay.left == b""
    assert len(given.tape.written) >= SIZE * (13 + 14)


def test_chunks_are_drawn_independently(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(laplace, "AT_ONCE", 16)
    values = [float(k) for k in range(40)]
    tape = Tape(9)
    fast = add_laplace(np.array(values), 2.0, tape).tolist()
    replay = Replay(tape.written)
    assert fast == [noisy for start in (0, 16, 32) for noisy in slow(values[start : start + 16], 2.0, replay)]


# --- rounding ---


def ends(value: float, exponent: int, sign: float, whole: int, digits: int) -> set[float]:
    unit = Fraction(2) ** exponent
    return {nearest(Fraction(value) + int(sign) * unit * (whole + Fraction(digits + more, 2**64))) for more in (0, 1)}


def check_rounded(values: Any, exponent: int, signs: Any, whole: Any, digits: Any) -> float:
    sums, sure = laplace._rounded(
        np.array(values, dtype=np.float64),
        exponent,
        np.array(signs, dtype=np.float64),
        np.array(whole, dtype=np.int64),
        np.array(digits, dtype=np.uint64),
    )
    for i in np.flatnonzero(sure):
        assert ends(values[i], exponent, signs[i], whole[i], digits[i]) == {sums[i]}
    return float(sure.mean())


@for_each("exponent", [-900, -40, 0, 7, 60, 900])
@for_each("spread", [0, 3, 50, 90])
def test_what_is_sure_is_right(exponent: int, spread: int) -> None:
    r = random.Random(exponent * 100 + spread)
    size = 1500
    values = [math.ldexp(r.uniform(-1, 1), exponent + r.randint(-spread, spread)) for _ in range(size)]
    signs = [r.choice([-1.0, 1.0]) for _ in range(size)]
    whole = [min(int(r.expovariate(1)), 9) for _ in range(size)]
    digits = [r.getrandbits(64) for _ in range(size)]
    assert check_rounded(values, exponent, signs, whole, digits) > 0.9


@for_each("power", range(44, 60, 2))
def test_what_is_sure_is_right_beside_midpoints_of_large_values(power: int) -> None:
    """There the float of what two-sum leaves is rounded by more than the last digit."""
    r, values, signs, wholes, digits = random.Random(power), [], [], [], []
    for _ in range(1500):
        value, sign = math.ldexp(r.choice([1.0, r.uniform(0.5, 1)]), power), r.choice([-1, 1])
        near = value + sign * math.ldexp(r.random(), 5)
        midpoint = (Fraction(near) + Fraction(math.nextafter(near, r.choice([-1, 1]) * math.inf))) / 2
        known = math.floor((midpoint - Fraction(value)) * sign * 2**64) + r.choice([-1, 1]) * 2 ** r.randrange(24)
        if 0 <= known < 2**74:
            values.append(value)
            signs.append(float(sign))
            wholes.append(known >> 64)
            digits.append(known & 2**64 - 1)
    assert len(values) > 500
    assert check_rounded(values, 0, signs, wholes, digits) > 0


def test_sums_next_to_a_midpoint_are_not_sure() -> None:
    # The sums with the known digits begin or end at the midpoint of two floats, or end or begin a digit beside it.
    values, size = [1.0 + k * 2.0**-52 for k in range(200)], 200
    for off, sure in ((-2, 1), (-1, 0), (0, 0), (1, 1)):
        digits = (1 << 63) + (1 << 11) + off  # 1/2 + half a unit in the last place of a sum from 1 to 2
        assert check_rounded(values, 0, [1.0] * size, [0] * size, [digits] * size) == sure


def test_what_is_out_of_its_range_is_not_sure() -> None:
    for exponent in (-1074, -901, 901, 1024):
        assert check_rounded([0.0, 1.0], exponent, [1.0, 1.0], [0, 0], [1 << 63, 1 << 62]) == 0
    assert check_rounded([2.0**1001, -LARGEST], 0, [1.0, 1.0], [0, 0], [1 << 63, 1 << 62]) == 0
    assert check_rounded([0.0, 0.0], 0, [1.0, 1.0], [2**10, 2**40], [1 << 63, 1 << 62]) == 0


def test_no_zero_has_a_sign() -> None:
    # The float below 0 would be -0.0, and the one above 0.0: which of them would tell from which value it came.
    tiny = 5e-324
    for value, sign in ((0.0, -1), (tiny, -1), (-tiny, 1), (-0.0, 1)):
        zeros = 0
        for known in (0, 1, 2**62, 2**64 + 2**62):
            noisy = laplace._refined(value, Exponential(tiny), sign, known, Tape(3))
            assert math.copysign(1.0, noisy) == 1.0 or noisy < 0
            zeros += noisy == 0
        assert zeros


@pytest.mark.parametrize("scale", [5e-324, 1e-300, 0.1, 1.0, 2.5, 1e300, LARGEST])
def test_further_digits_give_the_float_nearest_to_the_sum_of_fractions(scale: float) -> None:
    law, generator = Exponential(scale), random.Random(5)
    for value in (0.0, 1.5, -3e17, 1e308, -LARGEST, 5e-324, scale / 3):
        for sign, known in ((1, 0), (-1, 1), (1, generator.getrandbits(64)), (-1, generator.getrandbits(70))):
            tape, place, digits = Tape(generator.randrange(2**32)), 64, known
            noisy = laplace._refined(value, law, sign, known, tape)
            replay = Replay(tape.written)
            while True:
                unit = Fraction(2) ** (law.exponent - place)
                near, far = (nearest(Fraction(value) + sign * unit * end) for end in (digits, digits + 1))
                if near == far:
                    break
                place += 1
                digits = 2 * digits + Coin(law._relative / 2**place, logistic=True).flip(replay)
            assert noisy == near
            assert not replay.left


def test_a_long_whole_part_is_exact() -> None:
    # The first 80 binary digits of the number that tells the cell are 0.
    tape = Tape(11, {SIZE * k: 0 for k in range(5)})
    fast = add_laplace(np.array([0.3]), 2.5, tape).tolist()
    replay = Replay(tape.written)
    assert fast == slow([0.3], 2.5, replay)
    assert replay.left == b""
    assert abs(fast[0]) > 80 * math.log(2) * 2.5 - 1


# --- the law ---


def test_the_noise_is_that_of_opendp() -> None:
    """Two samples; Kolmogorov and Smirnov's test, exact at the sizes given."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="f64", nan=False)), dp.l1_distance(T="f64")
    theirs = dp.m.make_laplace(*space, scale=7.3)([0.7] * 20_000)
    ours = add_laplace(np.full(100_000, 0.7), 7.3, os.urandom)
    assert stats.ks_2samp(ours, theirs, method="asymp").pvalue > FALSE_ALARM
    assert stats.ks_2samp(ours * 1.3, theirs, method="asymp").pvalue < FALSE_ALARM


def test_a_million_draws_have_the_laplace_law() -> None:
    """Dvoretzky, Kiefer, Wolfowitz, Massart: the distance is above the limit with probability at most 1e-9."""
    size, scale = 10**6, 3.3
    drawn = np.sort(add_laplace(np.zeros(size), scale, os.urandom))
    limit = math.sqrt(math.log(2 / FALSE_ALARM) / (2 * size))
    distance = np.abs(stats.laplace(scale=scale).cdf(drawn) - np.arange(size) / size).max()
    assert distance <= limit + 1 / size
    wrong = np.abs(stats.laplace(scale=scale * 1.02).cdf(drawn) - np.arange(size) / size).max()
    assert wrong > limit + 1 / size


def test_digits_are_independent_with_their_chances() -> None:
    law = Exponential(5.0)  # c = 8
    signs, whole, digits = law.draw(100_000, os.urandom)
    bits = [(signs < 0).astype(int), (whole > 0).astype(int)]
    chances = [0.5, math.exp(-8 / 5)]
    for place in (1, 2, 3, 10, 33, 64):
        bits.append((digits >> np.uint64(64 - place) & np.uint64(1)).astype(int))
        chances.append(1 / (1 + math.exp(8 / 5 / 2**place)))
    cells = [(i, j) for i in range(len(bits)) for j in range(i + 1)]
    for i, j in cells:
        both = int((bits[i] & bits[j]).sum())
        law_ = stats.binom(100_000, chances[i] if i == j else chances[i] * chances[j])
        share = FALSE_ALARM / (2 * len(cells))
        assert law_.ppf(share) <= both <= law_.isf(share)


# --- double-geometric noise ---


@pytest.mark.parametrize("scale", [0.05, 0.7, 1.0, 2.5, 1000.1, 2.0**40, 2.0**60])
def test_geometric_noise_is_bit_for_bit_the_slow_one(scale: float) -> None:
    """The whole part of exponential noise in rationals, from the same bytes; −0 is drawn again."""
    tape = Tape(4)
    fast = double_geometric(50, scale, tape)
    replay, b, expected = Replay(tape.written), Fraction(scale), list[int]()
    c = power_of_two_from(b)
    while len(expected) < 50:
        signs, parts = slow_draws(50 - len(expected), c, b, replay)
        for sign, part in zip(signs, parts, strict=True):
            size = math.floor(c * part)
            if size or sign > 0:
                expected.append(sign * size)
    assert fast == expected
    assert replay.left == b""


@pytest.mark.parametrize("scale", [0.3, 1.0, 5.0])
def test_geometric_noise_has_its_law(scale: float) -> None:
    """Each frequency within its exact binomial bounds, which share the false-alarm rate."""
    size, a = 200_000, math.exp(-1 / scale)
    drawn = np.array(double_geometric(size, scale, os.urandom))
    for k in range(-8, 9):
        law, share = stats.binom(size, (1 - a) / (1 + a) * a ** abs(k)), FALSE_ALARM / 34
        assert law.ppf(share) <= int((drawn == k).sum()) <= law.isf(share)
