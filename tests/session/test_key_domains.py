"""Public domains of keys, described and not enumerated."""

from __future__ import annotations

import datetime
from itertools import islice, product

import hypothesis.strategies as st
import pytest
from hypothesis import given

import wpinq as wp
from tests.support.parameters import for_each
from wpinq.expr.types import BOOL, DATE, INT, STR, ListOf, Type, tuple_type
from wpinq.expr.values import canonical_bytes, from_canonical_bytes, order_key
from wpinq.sinks.keys import KeyDomain, domain_from_json, key_domain, ranges


@st.composite
def domains(draw: st.DrawFn, depth: int = 2) -> tuple[KeyDomain, Type]:
    kind = draw(st.sampled_from(["integers", "digits", "given", "product"][: 4 if depth else 3]))
    if kind == "integers":
        first = draw(st.integers(-(2**63), 2**63 - 6))
        return wp.integers(first, first + draw(st.integers(0, 5))), INT.with_nullable(draw(st.booleans()))
    if kind == "digits":
        return wp.digits(1), STR.with_nullable(draw(st.booleans()))
    if kind == "given":
        type_ = draw(st.sampled_from([STR.with_nullable(), BOOL, ListOf(INT)]))
        values = {"bool": st.booleans(), "str": st.none() | st.text(max_size=3)}
        of = values.get(getattr(type_, "name", ""), st.lists(st.integers(0, 3), max_size=2))
        return key_domain(draw(st.lists(of, min_size=1, max_size=6))).of(type_), type_
    parts = draw(st.lists(domains(depth=depth - 1), min_size=1, max_size=2))
    return wp.product(*(part for part, _ in parts)), tuple_type(type_ for _, type_ in parts)


@given(domains())
def test_keys_are_numbered_in_canonical_order(made: tuple[KeyDomain, Type]) -> None:
    domain, type_ = made
    domain = domain.of(type_)
    keys = [domain.key(i) for i in range(min(domain.size, 200))]
    assert keys == sorted(keys, key=order_key)
    assert len(set(keys)) == len(keys)
    assert all(key in domain and domain.index(key) == i for i, key in enumerate(keys))
    assert all(from_canonical_bytes(canonical_bytes(key, type_), type_) == key for key in keys)
    assert domain_from_json(domain.to_json(type_), type_) == domain
    assert len(ranges(domain, type_)) >= 1


def test_large_domains_are_numbered_as_products_are() -> None:
    domain = wp.product(wp.digits(5), wp.integers(-3, 9_999_996))
    assert domain.size == 10**12
    for index in (0, 1, 10**7 - 1, 10**7, 123_456_789_012, 10**12 - 1):
        key = domain.key(index)
        assert key in domain
        assert domain.index(key) == index
        assert key == (f"{index // 10**7:05d}", index % 10**7 - 3)
    small = wp.product(range(3), ["b", "a"], [True, False]).of(tuple_type([INT, STR, BOOL]))
    assert [small.key(i) for i in range(small.size)] == list(product(range(3), ["a", "b"], [False, True]))


@pytest.mark.parametrize("key", ["1234", "123456", "1234a", "１２３４５", "١٢٣٤٥", 12345, None, ("12345",)])
def test_digits_are_ascii_digits(key: object) -> None:
    assert key not in wp.digits(5)
    assert "12345" in wp.digits(5)


def test_every_type_is_read_back_from_its_bytes() -> None:
    record = {"day": datetime.date, "at": datetime.datetime, "price": wp.decimal(2), "size": wp.category("S", "L")}
    type_ = wp.source("x", {**record, "tags": list[str | None], "score": float | None, "ok": bool}).plan.type
    value = (19_000, -5, 1250, "L", ("a", None, ""), -0.5, True)
    for one in (value, (*value[:5], None, False)):
        form = canonical_bytes(one, type_)
        assert from_canonical_bytes(form, type_) == one
        with pytest.raises(ValueError, match="more than one"):
            from_canonical_bytes(form + b"n", type_)


def test_keys_outside_are_outside() -> None:
    assert True not in wp.integers(0, 3)
    assert 1.0 not in wp.integers(0, 3)
    assert -1 not in wp.integers(0, 3)
    assert (1,) not in wp.product(range(3), range(3))
    assert None not in wp.product(range(3), range(3))
    assert (1, "2") not in wp.product(range(3), range(3))


def test_days_and_records_are_given_one_by_one() -> None:
    days = key_domain([datetime.date(2024, 5, 2), datetime.date(2024, 5, 1)] * 2).of(DATE)
    assert days.size == 2
    assert days.to_json(DATE) == {"keys": ["2024-05-01", "2024-05-02"]}
    assert domain_from_json(days.to_json(DATE), DATE) == days
    pairs = key_domain([[1, "a"], (0, "b")]).of(tuple_type([INT, STR]))
    assert [pairs.key(i) for i in range(2)] == [(0, "b"), (1, "a")]


@for_each(
    ("make", "message"),
    [
        (lambda: wp.integers(3, 2), "from 1 to 1,000,000,000,000 keys"),
        (lambda: wp.integers(0, 10**12), "from 1 to 1,000,000,000,000 keys"),
        (lambda: wp.integers(0.0, 3), "from one int"),
        (lambda: wp.integers(True, 3), "from one int"),
        (lambda: wp.integers(0, 2**63), "from one int"),
        (lambda: wp.digits(0), "from 1 to 12"),
        (lambda: wp.digits(13), "from 1 to 12"),
        (lambda: wp.product(), "at least one part"),
        (lambda: wp.product(wp.digits(12), range(2)), "from 1 to 1,000,000,000,000 keys"),
        (lambda: wp.product("ab", range(2)), "is no domain of keys"),
        (lambda: wp.product(range(2)).of(INT), "are records of 1 field"),
        (lambda: wp.product(range(2)).of(tuple_type([STR])), "keys are of type str"),
    ],
)
def test_what_is_no_domain_is_refused(make: object, message: str) -> None:
    with pytest.raises(wp.PlanError, match=message):
        make()


def test_ranges_say_nothing_where_ends_are_no_ints_or_texts() -> None:
    assert ranges(key_domain([2.5, 1.5]), wp.source("x", float).plan.type) == [None]
    nullable = tuple_type([INT, STR]).with_nullable()
    assert ranges(wp.product(range(2), wp.digits(1)), nullable) == [None, (0, 1), ("0", "9")]
    assert len(list(islice(ranges(key_domain([(1, "a")]), nullable), 9))) == 3
