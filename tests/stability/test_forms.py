"""Closed wedges by tag are known by what their plan does, however it is written, and nothing else is taken for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import pytest

import wpinq as wp
from tests.support.graph_queries import Measured, simple_graphs
from wpinq.expr.types import INT, STR, TupleOf
from wpinq.graphs import tags
from wpinq.plan.closed_wedges import closed_wedges
from wpinq.query import Query

SIMPLE = ("unit_weights", "simple")


def edges(facts: Sequence[str] = SIMPLE, type_: Any = int) -> Query:
    return wp.source("edges", one=type_, other=type_, facts=list(facts))


def tagged(piece: Any) -> Any:
    return piece.index % 3, piece.record


def counted(
    source: Query,
    *,
    differ: Callable[[Any], Any] | None = lambda wedge: wedge[1] != wedge[2],
    halves: Callable[[Any], Any] = lambda e: [(e.other, e.one), (e.one, e.other)],
    again: Callable[[Query], Query] = lambda half: half,
    met_in: Callable[[Any, Any], Any] = lambda x, y: (x[0], x[1], y[1]),
    nodes: Callable[[Any], Any] = lambda e: [e.other, e.one],
    tags_from: Query | None = None,
    keys: tuple[int, int] = (0, 1),
    paired: Callable[[Any, Any], Any] | None = None,
    wide: float = 0.5,
    limit: int | None = None,
    tag: Callable[[Any], Any] = tagged,
    shown: Callable[[Any], Any] = lambda met: met[0],
    ends: Callable[[Any], Any] = lambda wedge: wp.sort((wedge[1], wedge[2])),
    closing: Callable[[Any], Any] = lambda e: wp.sort((e.one, e.other)),
    weight: float = 1.0,
) -> Query:
    """Closed wedges by tag, with other fields in another order than in the recipe, and with its parts to change."""
    half = source.select_many(lambda e: [wp.weighted(item, weight) for item in halves(e)])
    met = half.join(again(half), lambda x: x[0], lambda y: y[0], met_in)
    kept = met if differ is None else met.where(differ)
    tags_of = (tags_from or source).select_many(nodes).shave(wide, limit=limit).select(tag)
    wedges = kept.join(tags_of, lambda w: w[keys[0]], lambda t: t[keys[1]], paired or (lambda w, t: (t[0], ends(w))))
    return source.select(lambda e: (0, closing(e))).intersect(wedges).select(shown)


def test_it_is_known_however_it_is_written() -> None:
    assert counted(edges()).stability() == {"edges": Fraction(2)}
    assert counted(edges(type_=str)).stability() == {"edges": Fraction(2)}
    assert tags.closed_wedges_by_tag(edges(), [0, 2, 8], copies=5).stability() == {"edges": Fraction(6)}


def test_it_stays_known_below_other_steps() -> None:
    twice = counted(edges()).concat(counted(edges()))
    assert twice.stability() == {"edges": Fraction(4)}
    assert counted(edges()).where(lambda tag: tag == 0).stability() == {"edges": Fraction(2)}


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
        {"keys": (1, 1)},
        {"keys": (0, 0)},
        {"paired": lambda wedge, tag: (tag[1], wp.sort((wedge[1], wedge[2])))},
        {"wide": 0.25},
        {"limit": 2},
        {"shown": lambda met: met},
        {"shown": lambda met: met[1]},
        {"tag": lambda piece: (piece.index, piece.index % 3)},
        {"tag": lambda piece: (piece.index % 3, piece.record, 1)},
        {"ends": lambda wedge: wp.sort((wedge[0], wedge[2]))},
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


@pytest.mark.parametrize("limits", [[0, 1, 2], [0, 2], [0, 1, 3]])
def test_degrees_beyond_the_last_limit_move_no_further(limits: list[int]) -> None:
    measured = Measured(tags.closed_wedges_by_tag(edges(), limits))
    assert measured.bound == 2
    assert max(measured.moved(graph, [edge]) for graph, edge in simple_graphs(6)) <= measured.bound


def test_both_ends_move_less_than_one_by_the_formulas() -> None:
    """All degrees up to 60, below a list of widths and beyond it: what is gained in each tag, or lost."""
    for cut in (1, 2, 7, 30, 100):
        for degree in range(1, 60):
            full = [
                Fraction(min(max(d - low, 0), high - low), 2)
                for d in (degree, degree + 1)
                for low, high in ((0, cut // 2), (cut // 2, cut))
            ]
            before, after = full[:2], full[2:]
            gained = lost = total = Fraction(0)
            for one, other in zip(before, after, strict=True):
                share = [
                    2 * t / (d * ((d - 1) + 4 * sum(ts)))
                    for t, d, ts in ((one, degree, before), (other, degree + 1, after))
                ]
                change = Fraction(degree * (degree - 1), 2) * (share[1] - share[0])
                gained, lost = degree * share[1] + max(change, Fraction(0)), max(-change, Fraction(0))
                total += max(gained, lost)
            assert total < Fraction(1, 2)


@pytest.mark.parametrize(
    ("widths", "known"),
    [([0.5, 3.5], True), ([1, 3], True), ([0.25, 4.0], False), ([0.5, 0.75], False), ([0.5, -1.0], False)],
)
def test_widths_that_split_half_an_edge_are_something_else(widths: list[float], known: bool) -> None:
    (met,) = tags.closed_wedges_by_tag(edges(), [0, 1, 8]).plan.inputs
    wedges, closing = Query(met.inputs[0].inputs[0]), Query(met.inputs[1])
    pieces = edges().select_many(lambda e: [e.one, e.other]).shave(lambda node: widths)
    tagged = wedges.join(
        pieces,
        lambda wedge: wedge.b,
        lambda tag: tag.record,
        lambda wedge, tag: wp.record(ends=wp.sort((wedge.a, wedge.c)), tag=tag.index),
    )
    found = tagged.intersect(closing).select(lambda pair: pair.tag).stability()["edges"]
    assert found == (2 if known else Fraction(8, 3))
