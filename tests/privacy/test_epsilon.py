"""Epsilon is read exactly, billed upwards, and written so that it reads back."""

import copy
import pickle
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import wpinq as wp
from tests.support.parameters import for_each
from tests.support.processor import bounded_work
from wpinq.errors import EpsilonError
from wpinq.noise.epsilon import MAX_DENOMINATOR, MAX_EPSILON, from_nano, parse_budget, parse_epsilon, to_nano
from wpinq.noise.epsilon_text import Epsilon, format_epsilon

epsilons = st.fractions(min_value=Fraction(1, 10**30), max_value=MAX_EPSILON, max_denominator=MAX_DENOMINATOR)


@for_each(
    ("value", "expected"),
    [
        (1, Fraction(1)),
        (2**31, Fraction(2**31)),
        (0.1, Fraction(1, 10)),
        (1e-9, Fraction(1, 10**9)),
        (0.1 + 0.2, Fraction(30000000000000004, 10**17)),
        (np.float64(0.1), Fraction(1, 10)),
        (Fraction(1, 3), Fraction(1, 3)),
        (Fraction(1, 10**30), Fraction(1, 10**30)),
        (Decimal("0.10"), Fraction(1, 10)),
        (Decimal("1E+3"), Fraction(1000)),
        ("0.1", Fraction(1, 10)),
        (" 0.1 ", Fraction(1, 10)),
        ("+.5", Fraction(1, 2)),
        ("5.", Fraction(5)),
        ("1/3", Fraction(1, 3)),
        ("2/6", Fraction(1, 3)),
        ("1e-3", Fraction(1, 1000)),
        ("1E2", Fraction(100)),
        ("0." + "3" * 30, Fraction(int("3" * 30), 10**30)),
        ("0.1" + "0" * 200, Fraction(1, 10)),
    ],
)
def test_parse_is_exact(value: object, expected: Fraction) -> None:
    assert parse_epsilon(value) == expected
    assert type(parse_epsilon(value)) is Fraction


def test_parse_does_not_depend_on_the_decimal_context() -> None:
    with localcontext() as context:
        context.prec = 3
        assert parse_epsilon("0.123456789") == Fraction(123456789, 10**9)
        assert format_epsilon(Fraction(123456789, 10**9)) == "0.123456789"


@for_each(
    ("value", "reason"),
    [
        (True, "boolean"),
        (False, "boolean"),
        (0, "more than 0"),
        (-1, "more than 0"),
        (0.0, "more than 0"),
        (-0.1, "more than 0"),
        (Fraction(-1, 3), "more than 0"),
        (Decimal("-1e999999"), "more than 0"),
        ("0", "more than 0"),
        ("-0.5", "more than 0"),
        ("-1/3", "more than 0"),
        ("0e99999999", "more than 0"),
        (float("nan"), "finite"),
        (float("inf"), "finite"),
        (float("-inf"), "finite"),
        (Decimal("NaN"), "finite"),
        (Decimal("sNaN"), "finite"),
        (Decimal("Infinity"), "finite"),
        ("nan", "not a number"),
        ("inf", "not a number"),
        ("", "not a number"),
        ("abc", "not a number"),
        ("0x10", "not a number"),
        ("1_000", "not a number"),
        ("0,1", "not a number"),
        ("1/2/3", "not a number"),
        ("1 / 3", "not a number"),
        ("0.1/0.3", "not a number"),
        ("٣", "not a number"),
        ("1/0", "divides by zero"),
        (2**31 + 1, "at most"),
        (1e300, "at most"),
        ("1e11", "at most"),
        (Fraction(2**31 * 10 + 1, 10), "at most"),
        (5e-324, "finer"),
        ("1e-31", "finer"),
        (Fraction(1, 10**30 + 1), "finer"),
        ("1/3" + "0" * 30, "finer"),
        (None, "NoneType"),
        (b"0.1", "bytes"),
        ([0.1], "list"),
        (1j, "complex"),
        (np.int64(1), "int64"),
        (np.float32(0.5), "float32"),
    ],
)
def test_parse_refuses_and_says_what_to_do(value: object, reason: str) -> None:
    with pytest.raises(EpsilonError, match=reason) as caught:
        parse_epsilon(value)
    assert any(word in str(caught.value) for word in ("pass", "take", "round"))


@for_each(
    "value",
    [
        "1e999999999",
        "1e-999999999",
        "1e" + "9" * 500,
        "1e-" + "9" * 500,
        "9" * 5000,
        "1/" + "9" * 990,
        "0." + "1" * 5000,
        Decimal("1e999999"),
        Decimal("1e-999999"),
        Decimal("0." + "1" * 100_000),
        10**1_000_000,
        Fraction(1, 10**1_000_000),
    ],
    ids=lambda value: type(value).__name__,
)
def test_hostile_sizes_are_refused_at_once_and_never_echoed(value: Any) -> None:
    with bounded_work(), pytest.raises(EpsilonError) as caught:
        parse_epsilon(value)
    assert len(str(caught.value)) < 200


@given(epsilons)
def test_what_is_written_reads_back(epsilon: Fraction) -> None:
    assert parse_epsilon(format_epsilon(epsilon)) == epsilon
    assert parse_epsilon(str(epsilon)) == epsilon


@given(st.floats(min_value=1e-13, max_value=2.0**31))
def test_a_float_is_its_shortest_decimal(value: float) -> None:
    assert parse_epsilon(value) == Fraction(repr(value)) == parse_epsilon(repr(value))
    assert float(parse_epsilon(value)) == value


@for_each(
    ("epsilon", "text"),
    [
        (Fraction(0), "0"),
        (Fraction(2), "2"),
        (Fraction(1, 10), "0.1"),
        (Fraction(-1, 10), "-0.1"),
        (Fraction(1, 3), "1/3"),
        (Fraction(1, 8), "0.125"),
        (Fraction(1, 10**6), "0.000001"),
        (Fraction(12, 10**8), "1.2e-7"),
        (Fraction(10**16), "10000000000000000"),
        (Fraction(10**20), "1e20"),
        (Fraction(1, 2**40), "1/1099511627776"),
        (Fraction(2**5000), "about 2**5000"),
        (Fraction(-1, 2**5000), "about -2**-5000"),
        (Fraction(2**40000), "about 2**40000"),
    ],
)
def test_format(epsilon: Fraction, text: str) -> None:
    assert format_epsilon(epsilon) == text


@pytest.mark.parametrize(
    ("epsilon", "nano"),
    [
        (Fraction(0), 0),
        (Fraction(1, 10), 100_000_000),
        (Fraction(1, 3), 333_333_334),
        (Fraction(1, 10**9), 1),
        (Fraction(1, 10**30), 1),
        (Fraction(10**9 + 1, 10**18), 2),
        (Fraction(2**200), 2**200 * 10**9),
    ],
)
def test_a_charge_is_rounded_up(epsilon: Fraction, nano: int) -> None:
    assert to_nano(epsilon) == nano


@given(st.fractions(min_value=0, max_value=10**12))
def test_a_charge_covers_its_epsilon_and_no_more_than_one_nano_above(epsilon: Fraction) -> None:
    assert 0 <= from_nano(to_nano(epsilon)) - epsilon < Fraction(1, 10**9)


@given(st.integers(min_value=0))
def test_nano_epsilon_is_kept(nano: int) -> None:
    assert to_nano(from_nano(nano)) == nano


def test_negative_charges_and_balances_are_refused() -> None:
    with pytest.raises(EpsilonError, match="negative"):
        to_nano(Fraction(-1, 10))
    with pytest.raises(EpsilonError, match="negative"):
        from_nano(-1)


def test_a_budget_may_be_0_and_not_less_than_it_can_be_kept() -> None:
    assert [parse_budget(zero) for zero in (0, 0.0, "0", "0.0", Fraction(0), Decimal(0))] == [0] * 6
    assert [parse_budget(given) for given in ("1e-9", 1, "0.25", Fraction(1, 3))] == [
        1,
        10**9,
        250_000_000,
        333_333_333,
    ]
    for wrong in (False, -1, "-0", "1e-10", "", "nothing", None, float("nan")):
        with pytest.raises(EpsilonError):
            parse_budget(wrong)


LEFT = Epsilon(1, 10)
SHOWN: dict[str, tuple[object, object]] = {
    "repr": (repr([Epsilon(1), Epsilon(1, 4), Epsilon(1, 3), Epsilon(0)]), "[1, 0.25, 1/3, 0]"),
    "text": (f"{LEFT} {LEFT:.2f} {str(LEFT)!r}", "0.1 0.10 '0.1'"),
    "float": ((LEFT == 0.1, LEFT != 0.1, LEFT < 0.2, LEFT >= 0.1, LEFT > -1.0), (True, False, True, True, True)),
    "numpy": (np.float64(0.1) == LEFT, True),
    "string": ((LEFT == "0.1", LEFT == "1/10", LEFT < "1/3", LEFT > "1e-3"), (True, True, True, True)),
    "no number": ((LEFT == "a", LEFT == "1/0", float("nan") == LEFT, LEFT is None), (False, False, False, False)),
    "cheap": ((LEFT < "1e999999999", float("inf") > LEFT, LEFT > "1e-999999999"), (True, True, True)),
    "exact": ((Fraction(1, 10) == LEFT, Fraction(1, 10) == LEFT, hash(LEFT)), (True, True, hash(Fraction(1, 10)))),
    "sums": (
        (repr(LEFT + LEFT), repr(sum([LEFT, LEFT])), repr(1 - LEFT), repr(3 * LEFT / 4)),
        ("0.2", "0.2", "0.9", "0.075"),
    ),
    "sums with floats": ((repr(3 * LEFT - 0.1), repr(np.float64(0.7) + LEFT), LEFT + 0.2 <= 0.3), ("0.2", "0.8", True)),
    "copies": ((pickle.loads(pickle.dumps(LEFT)), type(copy.deepcopy(LEFT))), (LEFT, Epsilon)),
}


@for_each("name", SHOWN)
def test_an_epsilon_prints_and_compares_as_a_number(name: str) -> None:
    found, wanted = SHOWN[name]
    assert found == wanted


def test_an_epsilon_in_no_order_with_other_text_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        assert LEFT < "much"


def test_the_identity_of_a_measurement_does_not_hang_on_how_its_epsilon_prints() -> None:
    items = wp.source("items", int)
    plain = items.noisy_count("1/10")
    for same in (items.noisy_count(LEFT), replace(plain, epsilon=LEFT)):
        assert (same.digest, same.canonical_plan) == (plain.digest, plain.canonical_plan)


@for_each(
    ("wrong", "words"), [(-1, "a budget may be 0"), ("-0.5", "a budget may be 0"), ("1e-10", "give 0 or at least")]
)
def test_a_budget_that_is_none_is_told_that_it_may_be_0(wrong: object, words: str) -> None:
    with pytest.raises(EpsilonError, match=words):
        parse_budget(wrong)
