"""Closed wedges by tag are known by what their plan does, however it is written, and nothing else is taken for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import pytest

import wpinq as wp
from wpinq.graphs import tags
from wpinq.query import Query

SIMPLE = ("unit_weights", "simple")


def edges(facts: Sequence[str] = SIMPLE, type_: Any = int) -> Query:
    return wp.source("edges", one=type_, other=type_, facts=list(facts))


def tagged(piece: Any) -> Any:
    return piece.index % 3, piece.record


def counted(
    source: Query,
    *,
    differ: bool = True,
    wide: float = 0.5,
    limit: int | None = None,
    tag: Callable[[Any], Any] = tagged,
    shown: Callable[[Any], Any] = lambda met: met[0],
    ends: Callable[[Any], Any] = lambda wedge: wp.sort((wedge[1], wedge[2])),
    weight: float = 1.0,
) -> Query:
    """Closed wedges by tag, with other fields in another order than in the recipe, and with its parts to change."""
    half = source.select_many(lambda e: [wp.weighted((e.other, e.one), weight), wp.weighted((e.one, e.other), weight)])
    met = half.join(half, lambda x: x[0], lambda y: y[0], lambda x, y: (x[0], x[1], y[1]))
    kept = met.where(lambda wedge: wedge[1] != wedge[2]) if differ else met
    tags_of = source.select_many(lambda e: [e.other, e.one]).shave(wide, limit=limit).select(tag)
    wedges = kept.join(tags_of, lambda w: w[0], lambda t: t[1], lambda w, t: (t[0], ends(w)))
    closing = source.select(lambda e: (0, wp.sort((e.one, e.other))))
    return closing.intersect(wedges).select(shown)


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


@pytest.mark.parametrize(
    "other",
    [
        {"differ": False},
        {"wide": 0.25},
        {"limit": 2},
        {"shown": lambda met: met},
        {"shown": lambda met: met[1]},
        {"tag": lambda piece: (piece.index, piece.index % 3)},
        {"ends": lambda wedge: wp.sort((wedge[0], wedge[2]))},
        {"ends": lambda wedge: (wedge[1], wedge[2])},
        {"weight": 0.25},
    ],
    ids=lambda other: next(iter(other)),
)
def test_what_does_something_else_is_something_else(other: dict[str, Any]) -> None:
    assert counted(edges(), **other).stability()["edges"] > 2


def test_edges_that_were_put_together_are_something_else() -> None:
    source = edges()
    assert counted(source.where(lambda e: e.one > 0)).stability()["edges"] > 2
    assert counted(source.concat(source)).stability()["edges"] > 4
