"""Shares of weighted lists: the quick way has the bits of the exact one."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, strategies as st

import wpinq as wp
from tests.support.relational import evaluate
from wpinq import functions as F
from wpinq.engines.sql import sums
from wpinq.engines.sql.compile import Plan

WEIGHTS = st.one_of(
    st.integers(-9, 9).map(float), st.integers(-(2**20), 2**20).map(lambda i: i / 2**20), st.floats(-1e308, 1e308)
)


@given(weights=st.lists(WEIGHTS, max_size=12))
def test_the_quick_way_has_the_bits_of_the_exact_one(weights):
    places = list(range(1, len(weights) + 1))
    quick = sums._quick_shares(places, weights)
    exact = sums._exact_shares(places, weights)
    if quick is not None:
        assert [struct.pack("d", x + 0.0) for x in quick] == [struct.pack("d", x) for x in exact]


def test_the_quick_way_is_taken_where_it_is_exact_only():
    assert sums._quick_shares([1, 2, 3], [0.5, -2.0, 0.25]) == [0.5 / 2.75, -2.0 / 2.75, 0.25 / 2.75]
    assert sums._quick_shares([1, 2], [0.25, 0.5]) == [0.25, 0.5]
    assert sums._quick_shares([1, 1], [1.0, 1.0]) is None  # a repeat
    assert sums._quick_shares([1, 2], [1.0, None]) is None
    assert sums._quick_shares([1, 2], [1.0, 2.0**-60]) is None  # the norm has more than 53 bits
    assert sums._quick_shares([1, 2], [1e308, 1e308]) is None


@pytest.mark.parametrize("record", [0, 1, 2, 5])
def test_repeats_are_merged_before_the_norm_is_taken(record):
    source = wp.source("s", int, weights=True)
    query = source.select_many(
        lambda x: [F.weighted((x, x % 2), 2.0), F.weighted((1, 1), -1.0), F.weighted((x, 0), 0.5)]
    )
    expected = wp.evaluate(query, {"s": {record: 3.0}}, engine="reference")
    assert dict(evaluate(query.plan, {"s": {record: 3.0}})) == dict(expected)


SOURCE = wp.source("s", int, weights=True)
WRITTEN = {
    "constants tell them apart": (
        lambda x: [F.weighted((x, i), each) for i, each in enumerate([0.5, 0.3, 0.1])],
        True,
    ),
    "two places together": (
        lambda x: [F.weighted((i, (j, x % 3)), 1 / 3) for i in range(2) for j in range(3)],
        True,
    ),
    "a weight of none": (lambda x: [F.weighted((x, i), each) for i, each in enumerate([0.5, 0.0, 7.0])], True),
    "a constant twice": (lambda x: [F.weighted((x, i), 0.7) for i in (0, 1, 1)], False),
    "a place without a constant": (lambda x: [F.weighted((x, i), 0.7) for i in (0, 1, x)], False),
    "a weight of the record": (lambda x: [F.weighted((x, i), x * 0.1) for i in range(3)], False),
    "a weight below none": (lambda x: [F.weighted((x, i), each) for i, each in enumerate([0.5, -0.3, 0.1])], False),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_shares_that_the_plan_tells_are_constants(name):
    function, told = WRITTEN[name]
    query = SOURCE.select_many(function)
    assert any("wpinq_share" in sql for _, sql in Plan(query.plan).program().queries) is not told
    given = {"s": {0: 1.5, 1: 0.1, 2: 7.0}}
    found, expected = evaluate(query.plan, given), wp.evaluate(query, given, engine="reference")
    assert {record: weight.hex() for record, weight in found.items()} == {
        record: weight.hex() for record, weight in expected.items()
    }


def test_of_a_list_that_is_cut_the_norm_is_that_of_what_is_left():
    for limit, share in ((4, 0.25), (3, 0.5 / 1.5)):
        query = SOURCE.select_many(lambda x: [F.weighted((x, i), 0.5) for i in range(4)], limit=limit)
        assert evaluate(query.plan, {"s": {3: 1.0}}) == {(3, i): share for i in range(limit)}
