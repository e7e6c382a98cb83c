"""What admission goes by: costs that grow with all that is declared, and hang on nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import wpinq as wp
from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.kernel.sandbox.admission import Content, Cost, contents, cost_of


def edges(records: int = 1000, key: int = 20, cap: int = 2000) -> Query:
    return wp.source("edges", src=int, dst=int, records_at_most=records, keys_at_most={"src": key}, cap=cap)


def texts(records: int = 100, key: int = 10) -> Query:
    return wp.source("texts", t=str, k=int, records_at_most=records, keys_at_most={"k": key}, cap=1000)


def paths(source: Query) -> Query:
    return source.join(source, lambda x: x.src, lambda y: y.src, lambda x, y: (x.dst, y.dst))


def cost(query: Query, keys: int = 1, whole: bool = False, record: int = 100) -> Cost:
    found = cost_of(query.plan, keys, whole, record)
    assert isinstance(found, Cost)
    return found


def content(query: Query, record: int) -> Content:
    return contents(query.plan, record)[query.plan.digest]


@pytest.mark.parametrize(
    ("less", "more"),
    [
        (lambda: cost(paths(edges())), lambda: cost(paths(edges(records=2000)))),
        (lambda: cost(paths(edges())), lambda: cost(paths(edges(key=40)))),
        (lambda: cost(edges().shave(0.1)), lambda: cost(edges(cap=4000).shave(0.1))),
        (lambda: cost(edges()), lambda: cost(edges(), keys=1000)),
        (lambda: cost(edges()), lambda: cost(edges(), whole=True)),
        (lambda: cost(texts()), lambda: cost(texts(), record=1000)),
        (
            lambda: cost(texts().select(lambda r: F.length(r.t))),
            lambda: cost(texts().select(lambda r: F.length(r.t + r.t + r.t))),
        ),
    ],
)
def test_a_cost_grows_with_what_is_declared_and_asked(less: Callable[[], Cost], more: Callable[[], Cost]) -> None:
    assert less().seconds < more().seconds
    assert less().bytes < more().bytes


def test_the_most_that_a_record_holds_follows_groups_joins_and_texts() -> None:
    lists = texts().group_by(lambda r: r.k)
    joined = lists.join(lists, lambda x: x.key, lambda y: y.key, lambda x, y: (x.val, y.val))
    counted = lists.select(lambda g: F.count(g.val))
    doubled = texts().select(lambda r: r.t + r.t)
    held = [content(query, 50).largest for query in (texts(), lists, joined, counted, doubled, edges())]
    assert held == [50, 500, 1000, 0, 100, 0]


def test_all_rows_of_a_list_hold_no_more_than_the_list() -> None:
    people = wp.people("p", id=("id", int), visits=wp.table(ward=str, day=int, at_most=50), records_at_most=1000)
    rows = people.unnest("visits")
    of_ward, repeated = rows.select(lambda v: v.ward), rows.select(lambda v: v.ward + v.ward)
    totals = [content(query, 200).total for query in (people, rows, rows.where(lambda v: v.day > 1), of_ward, repeated)]
    assert totals == [200_000, 200_000, 200_000, 200_000, 400_000]
    constants = people.select_many(lambda p: F.map(p.visits, lambda v: "ward"))
    assert content(constants, 200).total == 50 * 4 * 1000
    outside = people.select_many(lambda p: F.map(p.visits, lambda v: F.element(p.visits, 0).ward))
    assert content(outside, 200).total == 50 * 200_000
    assert content(rows.shave(0.01), 200).total >= 100 * 200_000  # each piece repeats its record


def test_numbers_do_not_hang_on_the_size_of_records() -> None:
    assert cost(paths(edges())) == cost(paths(edges()), record=10**6)


def test_where_something_is_not_bounded_the_work_is_told_instead_of_a_cost() -> None:
    unbounded = wp.source("edges", src=int, dst=int)
    assert not isinstance(cost_of(unbounded.plan, 1, False, 1), Cost)
    assert cost_of(unbounded.plan, 1, False, 1).unbounded == ("edges",)
