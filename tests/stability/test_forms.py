"""Closed wedges by tag are known by what their plan does, however it is written, and nothing else is taken for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import pytest

import wpinq as wp
from tests.support.ends import ENDS, form, largest_by_hand, moved_by_one_end
from tests.support.graph_queries import Measured, simple_graphs
from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.expr.types import INT, STR, TupleOf
from wpinq.graphs import tags
from wpinq.plan.sensitivity.closed_wedges import closed_wedges

SIMPLE = ("unit_weights", "simple")


def edges(facts: Sequence[str] = SIMPLE, type_: Any = int) -> Query:
    return wp.source("edges", one=type_, other=type_, facts=list(facts), weights=True)


def counted(
    source: Query,
    *,
    differ: Callable[[Any], Any] | None = lambda wedge: wedge[1] != wedge[2],
    halves: Callable[[Any], Any] = lambda e: [(e.other, e.one), (e.one, e.other)],
    again: Callable[[Query], Query] = lambda half: half,
    met_in: Callable[[Any, Any], Any] = lambda x, y: (x[0], x[1], y[1]),
    nodes: Callable[[Any], Any] = lambda e: [e.other, e.one],
    tags_from: Query | None = None,
    keys: tuple[int, int] = (0, 0),
    paired: Callable[[Any, Any], Any] | None = None,
    widths: Callable[[Any], Any] = lambda node: [0.5, 1, 400.0],
    limit: int | None = None,
    shown: Callable[[Any], Any] = lambda met: met[0],
    ends: Callable[[Any], Any] = lambda wedge: F.sort((wedge[1], wedge[2])),
    closing: Callable[[Any], Any] = lambda e: F.sort((e.one, e.other)),
    weight: float = 1.0,
) -> Query:
    """Closed wedges by tag, with other fields in another order than in the recipe, and with its parts to change."""
    half = source.select_many(lambda e: [F.weighted(item, weight) for item in halves(e)])
    met = half.join(again(half), lambda x: x[0], lambda y: y[0], met_in)
    kept = met if differ is None else met.where(differ)
    tags_of = (tags_from or source).select_many(nodes).shave(widths, limit=limit)
    wedges = kept.join(tags_of, lambda w: w[keys[0]], lambda t: t[keys[1]], paired or (lambda w, t: (t[1], ends(w))))
    return source.select(lambda e: (0, closing(e))).intersect(wedges).select(shown)


def test_it_is_known_however_it_is_written() -> None:
    assert counted(edges()).stability() == {"edges": Fraction(2)}
    assert counted(edges(type_=str)).stability() == {"edges": Fraction(2)}
    assert tags.closed_wedges_by_tag(edges(), [0, 2, 800], [3.5, 1.5]).stability() == {"edges": Fraction(6)}
    assert tags.closed_wedges_by_tag(edges(), [0, 2, 10**300], [3.5, 1.5]).stability() == {"edges": Fraction(6)}


def test_it_stays_known_below_other_steps() -> None:
    twice = counted(edges()).concat(counted(edges()))
    assert twice.stability() == {"edges": Fraction(4)}
    assert counted(edges()).where(lambda tag: tag == 0).select(lambda tag: "low").stability() == {
        "edges": Fraction(77, 64)
    }


@pytest.mark.parametrize("facts", [(), ("nonnegative",), ("unit_weights",), ("nonnegative", "simple")])
def test_edges_that_may_weigh_more_or_stand_twice_are_something_else(facts: Sequence[str]) -> None:
    assert counted(edges(facts)).stability()["edges"] > 2
    assert closed_wedges(counted(edges(facts)).plan) is None


@pytest.mark.parametrize(
    "other",
    [
        {"differ": None},
        {"differ": lambda wedge: wedge[1] == wedge[2]},
        {"differ": lambda wedge: wedge[0] != wedge[2]},
        {"halves": lambda e: [(e.other, e.one), (e.other, e.one)]},
        {"halves": lambda e: [(e.other, e.one), (e.one, e.other), (e.other, e.one)]},
        {"halves": lambda e: [(e.other, e.one), (e.one, e.other), (e.one, e.one)]},
        {"again": lambda half: half.where(lambda x: x[0] != 0)},
        {"met_in": lambda x, y: (y[1], x[1], y[1])},
        {"met_in": lambda x, y: (0, x[1], y[1])},
        {"met_in": lambda x, y: (x[0], x[1], y[1], x[0])},
        {"nodes": lambda e: [e.one, e.one]},
        {"nodes": lambda e: [e.one, e.other, e.one]},
        {"tags_from": wp.source("others", one=int, other=int, facts=SIMPLE)},
        {"keys": (1, 0)},
        {"keys": (0, 1)},
        {"paired": lambda wedge, tag: (tag[0], F.sort((wedge[1], wedge[2])))},
        {"widths": lambda node: [0.25, 4.0]},
        {"widths": lambda node: [0.5, 0.75]},
        {"widths": lambda node: [0.5, -1.0]},
        {"widths": lambda node: [F.where(node == 0, 0.5, 1.0), 4.0]},
        {"widths": lambda node: [0.5, node * 1.0]},
        {"limit": 2},
        {"shown": lambda met: met},
        {"shown": lambda met: met[1]},
        {"ends": lambda wedge: F.sort((wedge[0], wedge[2]))},
        {"ends": lambda wedge: (wedge[1], wedge[2])},
        {"weight": 0.25},
    ],
    ids=lambda other: next(iter(other)),
)
def test_what_does_something_else_is_something_else(other: dict[str, Any]) -> None:
    assert closed_wedges(counted(edges(), **other).plan) is None
    assert counted(edges(), **other).stability()["edges"] > 2


def test_edges_that_were_put_together_are_something_else() -> None:
    source = edges()
    assert counted(source.where(lambda e: e.one > 0)).stability()["edges"] > 2
    assert counted(source.concat(source)).stability()["edges"] > 4


def test_nodes_that_cannot_be_sorted_are_something_else() -> None:
    """Lists have no order. A plan that shows wedges unsorted is as good as any, and is billed by the rules."""
    unsorted = counted(
        edges(type_=list[int]), ends=lambda wedge: (wedge[1], wedge[2]), closing=lambda e: (e.one, e.other)
    )
    assert unsorted.stability()["edges"] > 2


@pytest.mark.parametrize("type_", [int | None, TupleOf(("place", "name"), (INT, STR))], ids=str)
def test_nodes_may_be_null_or_records(type_: Any) -> None:
    """Null is a node as any other, for `!=` holds between it and others, and records may be equal in a part."""
    assert counted(edges(type_=type_)).stability() == {"edges": Fraction(2)}


@pytest.mark.long
@pytest.mark.parametrize("limits", [[0, 1, 2], [0, 2], [0, 1, 3]])
def test_degrees_beyond_the_last_limit_move_no_further(limits: list[int]) -> None:
    room = [0.5, 0.25][: len(limits) - 1]
    measured = Measured(tags.closed_wedges_by_tag(edges(), limits, room))
    assert measured.bound < 1 + sum(map(Fraction, room))
    assert max(measured.moved(graph, [edge]) for graph, edge in simple_graphs(6)) <= measured.bound


@pytest.mark.parametrize(("limits", "weights"), ENDS, ids=str)
def test_both_ends_move_no_further_than_is_said(limits: Sequence[int], weights: Sequence[Fraction]) -> None:
    """By the formulas, at all degrees; and what is said is the largest bound of the proof, rounded up."""
    said = form(limits, weights).of_both_ends
    worst = max(moved_by_one_end(limits, weights, degree) for degree in range(3 * limits[-1] + 3))
    assert 2 * worst <= largest_by_hand(limits, weights) <= said < largest_by_hand(limits, weights) + Fraction(1, 64)


@pytest.mark.parametrize(
    ("weigh", "moved"),
    [
        (lambda met: met.where(lambda tag: tag > 0), Fraction(1)),
        (lambda met: met.where(lambda tag: tag < 1), Fraction(77, 64)),
        (lambda met: met.select(lambda tag: tag * 2), Fraction(2)),
        (lambda met: met.select_many(lambda tag: [tag, tag + 1]), Fraction(2)),
        (lambda met: met.select_many(lambda tag: [F.weighted(tag, 4.0)]), Fraction(2)),
        (lambda met: met.select_many(lambda tag: [F.weighted(tag, 0.25)]), Fraction(1, 2)),
        (lambda met: met.select_many(lambda tag: [F.weighted(tag, -0.25), F.weighted(9, 0.25)]), Fraction(1)),
        (lambda met: met.select_many(lambda tag: [F.weighted(tag, F.where(tag == 2, 0.25, 0.0))]), Fraction(1, 4)),
    ],
)
def test_a_step_over_tags_counts_with_what_it_makes_of_each(weigh: Callable[[Query], Query], moved: Fraction) -> None:
    """Wedges are closed under tag 0 alone: what that becomes counts for the edge, and the most at ends for both."""
    assert weigh(counted(edges())).stability() == {"edges": moved}


def test_a_step_that_leaves_no_tag_is_billed_by_paths() -> None:
    assert counted(edges()).where(lambda tag: tag > 2).stability() == {"edges": Fraction(4)}


@pytest.mark.parametrize(
    "tag",
    [lambda e: -3, lambda e: 3, lambda e: e.one, lambda e: F.where(e.one > 100, 1, None)],
    ids=["below", "beyond", "computed", "null"],
)
def test_what_closes_under_no_tag_of_the_list_may_pass_through(tag: Callable[[Any], Any]) -> None:
    """Nothing is there of wedges, so that a negative weight is less, and stays as it is."""
    source = edges()
    (pairs,) = counted(source).plan.inputs
    (wedges,) = (Query(side) for side in pairs.inputs if side.operator.name == "Join")
    closing = source.select_many(lambda e: [F.weighted((tag(e), F.sort((e.one, e.other))), -1.0)])
    by_tag = wedges.intersect(closing).select(lambda met: met[0])

    def is_listed(number: Any) -> Any:
        return ~F.is_null(number) & (number * (number - 2) <= 0)

    listed = by_tag.select_many(lambda t: [F.weighted(t, F.where(is_listed(t), 1 / 64, 1.0))])
    assert listed.stability()["edges"] == Fraction(65, 64)
    kept = by_tag.where(lambda t: ~is_listed(t))
    assert kept.concat(source.select(lambda e: 99)).stability()["edges"] == 2


def test_a_partition_by_tag_is_billed_as_what_it_divides() -> None:
    (part,) = counted(edges()).partition(lambda tag: tag, [1]).values()
    assert part.noisy_count(1, [1]).costs == {"edges": Fraction(2)}
