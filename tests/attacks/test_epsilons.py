"""Edge cases of ε: an object that is one number when it is priced and another when noise is drawn, or none at all.

The attack: nan compares false with every budget, a bool or an infinity passes for a number, a float is not the decimal
that it shows, a lying subclass says one thing to the bill and another to the scale, an exponent eats the memory.
"""

from __future__ import annotations

import decimal
import fractions
import math
import pickle
from typing import Any

import numpy
import pytest

import wpinq as wp
from tests.support.parameters import for_each
from wpinq.measure.measurement import Measurement
from wpinq.sinks.laplace import NoisyCount

NUMBERS = wp.source("numbers", int)

NO_EPSILON: list[Any] = [
    0, -1, -0.0, 0.0, math.nan, math.inf, -math.inf, True, False, None, "", " ", "nan", "inf", "-1", "0", "0.0",
    "1/0", "1/-2",
    "1e-9999999999", "1e9999999999", "0x1", "1_0", "١", "1,5", "1 2", b"1", 1j, [1], (1,), {1: 1}, object(), lambda: 1,
    decimal.Decimal("NaN"), decimal.Decimal("sNaN"), decimal.Decimal("Infinity"), decimal.Decimal("-0"),
    fractions.Fraction(0),
    numpy.float64("nan"), numpy.bool_(True), numpy.array([1.0]), numpy.array(["1"]), "9" * 10_000, 10**5000, 1e300,
    1e400, 5e-324, 2**31 + 1,
]  # fmt: skip


@for_each("number", range(len(NO_EPSILON)))
def test_what_is_no_epsilon_buys_nothing(number: int) -> None:
    """Refused when the measurement is written, on every way to write it, and echoed in a few letters at most."""
    given = NO_EPSILON[number]
    for write in (
        lambda: NUMBERS.noisy_count(given, over=[1]),
        lambda: NUMBERS.noisy_sum(given, lambda x: x, 0, 1),
        lambda: NUMBERS.median(given, [1, 2]),
        lambda: NUMBERS.most_common(given, [1, 2]),
    ):
        with pytest.raises(wp.WpinqError) as refused:
            write()
        assert len(str(refused.value)) < 500


def test_a_measurement_made_by_hand_with_no_epsilon_buys_nothing() -> None:
    """Past the methods that read it: refused before the debit."""
    with wp.Session() as session:
        session.protect(NUMBERS, [1], budget=1)
        for epsilon in NO_EPSILON:
            with pytest.raises((wp.WpinqError, TypeError)):
                session.release(Measurement(NUMBERS.plan, NoisyCount(), epsilon, (1,)))
            assert session.spent("numbers") == 0


class Twofold(float):
    """One number to who compares it, another to who computes with it."""

    def __new__(cls, shown: float, real: float) -> Twofold:
        made = super().__new__(cls, real)
        made.shown = shown
        return made

    def __repr__(self) -> str:
        return repr(self.shown)

    __str__ = __repr__

    def as_integer_ratio(self) -> tuple[int, int]:
        return float(self.shown).as_integer_ratio()


class Changing(fractions.Fraction):
    """Cheap at first, dear afterwards."""

    asked = 0

    def __mul__(self, other: Any) -> Any:
        Changing.asked += 1
        return fractions.Fraction(1, 10**6) * other

    __rmul__ = __mul__


@pytest.mark.parametrize("given", [Twofold(0.001, 1000.0), Twofold(1000.0, 0.001), Changing(1), Changing(1000)])
def test_an_epsilon_that_lies_is_one_number_for_bill_and_noise(given: Any) -> None:
    """Whatever it is read as, what is charged is what the noise is for: scale times charge is the stability."""
    with wp.Session() as session:
        session.protect(NUMBERS, [1], budget=10**6)
        try:
            asked = NUMBERS.noisy_count(given, over=[1])
        except wp.WpinqError:
            return
        assert type(asked.epsilon) is fractions.Fraction
        answers = session.release(asked)
        charged = session.spent("numbers")
        assert fractions.Fraction(answers.scale) * charged >= 1
        assert fractions.Fraction(answers.scale) * charged < fractions.Fraction(1001, 1000)
        assert pickle.loads(pickle.dumps(answers)).epsilon == asked.epsilon


@pytest.mark.parametrize("given", ["1e-9", "1e-30", "1/3", 2**30, "12345678912345678/70000000"])
def test_the_noise_is_never_for_more_than_is_charged(given: Any) -> None:
    """From the least to the largest: charges are rounded up, scales too."""
    with wp.Session() as session:
        session.protect(NUMBERS, [1], budget=2**31)
        answers = session.release(NUMBERS.noisy_count(given, over=[1]))
        assert fractions.Fraction(answers.scale) * session.spent("numbers") >= 1


def test_two_spellings_of_one_epsilon_are_one_release() -> None:
    """1, 1.0, "1.000", 1e0 and Fraction(3, 3): else each would draw noise anew, or be charged anew."""
    spellings = [1, 1.0, "1", "1.000", "1e0", fractions.Fraction(3, 3), decimal.Decimal("1.0"), numpy.float64(1)]
    with wp.Session() as session:
        session.protect(NUMBERS, [1], budget=1)
        values = {session.release(NUMBERS.noisy_count(given, over=[1])).value for given in spellings}
        assert len(values) == 1
        assert session.spent("numbers") == 1
