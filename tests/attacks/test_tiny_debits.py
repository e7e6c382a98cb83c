"""Absorption of tiny debits: many charges that are too small to change a sum, or that are rounded to nothing.

The attack: in floats `1e9 + 1e-9 == 1e9`, and a charge that is rounded down is 0: ask a billion times for a billionth.
Charges are integers of nano-epsilon, rounded up, and sums of them are exact; parts keep exact fractions.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

import wpinq as wp

NUMBERS = wp.source("numbers", int, weights=True)
NANO = Fraction(1, 10**9)


def test_a_charge_below_a_nano_epsilon_is_a_nano_epsilon() -> None:
    """A hundred releases of a millionth of it each: a hundred nano-epsilon."""
    with wp.Session() as session:
        session.protect(NUMBERS, [1], budget=1)
        for i in range(100):
            session.release(NUMBERS.noisy_count("1e-15", over=[i]), fresh=True)
        assert session.spent("numbers") == 100 * NANO


def test_a_batch_of_tiny_ones_is_charged_at_least_their_sum() -> None:
    with wp.Session() as session:
        session.protect(NUMBERS, [1], budget=1)
        batch = [NUMBERS.where(lambda x, i=i: x > i).noisy_count("1.5e-10", over=[1]) for i in range(150)]
        assert session.bill(batch)["numbers"] >= 150 * Fraction("1.5e-10")
        session.release(batch)
        assert session.spent("numbers") >= 150 * Fraction("1.5e-10")


def test_a_nano_epsilon_beside_a_huge_sum_is_there() -> None:
    """Where a float would absorb it: after a spent amount of a thousand million."""
    with wp.Session() as session:
        session.protect(NUMBERS, [1], budget=2**31)
        session.release(NUMBERS.noisy_count(2**30 - 1, over=[1]))
        before = session.spent("numbers")
        assert float(before) + float(NANO) == float(before)
        session.release(NUMBERS.noisy_count("1e-9", over=[1]))
        assert session.spent("numbers") == before + NANO
        assert session.remaining("numbers") == 2**31 - session.spent("numbers")


def test_the_last_nano_epsilon_can_be_spent_and_no_more() -> None:
    with wp.Session() as session:
        session.protect(NUMBERS, [1], budget="2e-9")
        session.release(NUMBERS.noisy_count("1e-10", over=[0]))
        session.release(NUMBERS.noisy_count("1e-10", over=[0]))  # replayed
        session.release(NUMBERS.where(lambda x: x > 0).noisy_count("1e-10", over=[0]))
        with pytest.raises(wp.BudgetExceeded):
            session.release(NUMBERS.noisy_count("1e-30", over=[1]))
        assert session.spent("numbers") == 2 * NANO


@pytest.mark.parametrize("unit", ["1e-12", "1e-3"])
def test_a_tiny_unit_does_not_make_a_release_free(unit: str) -> None:
    """Epsilon times the unit weight is rounded up like any charge."""
    light = wp.source("light", int, unit_weight=unit, weights=True)
    with wp.Session() as session:
        session.protect(light, {1: float(unit) / 2}, budget=1)
        for i in range(5):
            session.release(light.noisy_count("1e-3", over=[i]), fresh=True)
        assert session.spent("light") == 5 * max(NANO, Fraction("1e-3") * Fraction(unit))


def test_parts_that_creep_up_pay_for_all_of_it() -> None:
    """The maximum over parts is raised by a billionth of a nano-epsilon at a time: each step is paid, rounded up."""
    parts = NUMBERS.partition(lambda x: x % 2, [0, 1])
    with wp.Session() as session:
        session.protect(NUMBERS, [1, 2], budget=1)
        for i in range(40):
            session.release(parts[i % 2].noisy_count("1e-18", over=[i]), fresh=True)
        exact = 20 * Fraction("1e-18")
        assert session.spent("numbers") >= max(exact, NANO)
        session.release(parts[0].noisy_count(Fraction(1, 3), over=[0]))
        assert session.spent("numbers") >= Fraction(1, 3) + exact
