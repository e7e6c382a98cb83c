"""Output domains that follow from the query."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import wpinq as wp
from tests.support.parameters import for_each
from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.plan import domain
from wpinq.plan.domain import DOMAIN_LIMIT
from wpinq.plan.properties import PlanProperties, plan_properties

X = wp.source("x", int)
FLAGS = wp.source("flags", bool)
ROWS = wp.source("rows", a=int, b=bool, s=str)

TABLE: list[tuple[Callable[[], Query], object]] = [
    (lambda: X, None),
    (lambda: FLAGS, (False, True)),
    (lambda: X.select(lambda x: 7), (7,)),
    (lambda: X.select(lambda x: x % 3), (0, 1, 2)),
    (lambda: X.select(lambda x: x % 0), None),
    (lambda: X.select(lambda x: x % -3), None),
    (lambda: X.select(lambda x: x % DOMAIN_LIMIT).select(lambda x: "all"), ("all",)),
    (lambda: X.select(lambda x: x % (DOMAIN_LIMIT + 1)), None),
    (lambda: X.select(lambda x: x > 1), (False, True)),
    (lambda: ROWS.select(lambda r: r.b), (False, True)),
    (lambda: ROWS.select(lambda r: F.where(r.a > 1, r.b, True)), (False, True)),
    (lambda: X.select(lambda x: F.where(x > 1, "big", "small")), ("big", "small")),
    (lambda: X.select(lambda x: F.where(x > 1, x, 0)), None),
    (lambda: X.select(lambda x: F.where(x > 1, 0, None)), (0, None)),
    (lambda: X.select(lambda x: (x % 2, x > 1)), ((0, False), (0, True), (1, False), (1, True))),
    (lambda: X.select(lambda x: (x % 2000, x % 2000)), None),
    (lambda: X.select(lambda x: (x % 2, x)), None),
    (lambda: X.select(lambda x: (x % 2, "a")).select(lambda p: p[0]), (0, 1)),
    (lambda: X.select(lambda x: x % 2).where(lambda x: x > 0), (0, 1)),
    (lambda: X.select(lambda x: x % 2).select(lambda x: x + 1), None),
    (lambda: X.select(lambda x: [x % 2]), None),
    (lambda: X.select_many(lambda x: [x % 2, 5]), (0, 1, 5)),
    (lambda: X.select_many(lambda x: F.where(x > 1, [1], [F.where(x > 2, 2, 3)])), (1, 2, 3)),
    (lambda: X.select_many(lambda x: [F.weighted("a", x), F.weighted("b", 1)]), ("a", "b")),
    (lambda: X.select_many(lambda x: [x, 1]), None),
    (lambda: X.select_many(lambda x: F.range(0, x, limit=3)), None),
    (lambda: X.group_by(lambda x: x % 2, lambda g: F.count(g) > 3), ((0, False), (0, True), (1, False), (1, True))),
    (lambda: X.group_by(lambda x: x % 2, lambda g: F.count(g)), None),
    (
        lambda: X.join(FLAGS, lambda x: x, lambda b: F.cast(b, int), lambda x, b: (x % 2, b)).select(lambda p: p[1]),
        (False, True),
    ),
    (lambda: X.select(lambda x: x % 2).union(X.select(lambda x: x % 3)), (0, 1, 2)),
    (lambda: X.select(lambda x: x % 2).concat(X), None),
    (lambda: X.select(lambda x: x % 3).intersect(X.select(lambda x: x % 2)), (0, 1)),
    (lambda: X.select(lambda x: x % 3).intersect(X), (0, 1, 2)),
    (lambda: X.partition(lambda x: x, [4, 5])[4], (4,)),
    (lambda: X.partition(lambda x: x % 2, [1])[1], None),
    (lambda: X.select(lambda x: x % 2).shave(1.0), None),
]


@for_each("number", range(len(TABLE)))
def test_a_domain_is_inferred_where_the_query_fixes_it(number: int) -> None:
    make, expected = TABLE[number]
    assert repr(plan_properties(make().plan).domain) == repr(expected)


def test_inference_gives_up_rather_than_be_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    query = X.select(lambda x: F.where(x > 0, x % 90, x % 91))
    monkeypatch.setattr(domain, "WORK_LIMIT", 2 * (90 + 91))
    assert PlanProperties(query.plan).domain == tuple(range(91))
    monkeypatch.setattr(domain, "WORK_LIMIT", 2 * (90 + 91) - 1)
    assert PlanProperties(query.plan).domain is None
