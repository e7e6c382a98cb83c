"""Outputs of which only some ranges are wanted: what is given up weighs the same, to the last bit."""

from __future__ import annotations

import pytest

import wpinq as wp
from wpinq.engines.contract import find_engine
from wpinq.expr.types import INT, STR, tuple_type
from wpinq.sinks.keys import product, ranges

sales = wp.source("sales", zip=str, shop=int, price=float, weights=True)
PLANS = {
    "rows": sales.select(lambda s: (s.zip, s.shop)),
    "pairs": sales.join(sales, lambda s: s.shop, lambda t: t.shop, lambda s, t: (s.zip, t.shop)),
}
DATA = {"sales": {(f"{i % 61:05d}", i % 17, i / 7): 0.1 + (i % 5) / 3 for i in range(500)}}
DOMAIN = product(wp.digits(5), range(3, 9))


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
@pytest.mark.parametrize("name", PLANS)
def test_what_is_wanted_weighs_what_it_weighs_in_the_whole(engine: str, name: str) -> None:
    plan = PLANS[name].plan
    with find_engine(engine)() as opened:
        whole = opened.evaluate(plan, DATA)
        some = opened.evaluate(plan, DATA, within=ranges(DOMAIN, tuple_type([STR, INT])))
    assert {key: w for key, w in some.items() if key in DOMAIN} == {k: w for k, w in whole.items() if k in DOMAIN}
    assert len(some) < len(whole) or engine == "reference"
    assert len(some) > 0


def test_ends_that_would_need_care_in_sql_are_left_out() -> None:
    plan = PLANS["rows"].plan
    with find_engine("duckdb")() as opened:
        whole = opened.evaluate(plan, DATA)
        for ends in (("it's", "z"), ("\u00e9", "\u00ea"), ("", "\U0010ffff"), (None, "9")):
            assert opened.evaluate(plan, DATA, within=[ends, None]) == whole
        below = opened.evaluate(plan, DATA, within=[None, (-(2**63), 4)])
    assert below == {key: weight for key, weight in whole.items() if key[1] <= 4}
