"""Contradicting declarations: one dataset under two promises, of which the cheaper is billed and the dearer used.

The attack: a plan, a file, an account or a second session declares the source with a smaller unit, a smaller cap, more
facts or fewer rows a person than the data were protected with, and is billed or scaled by that.
The same data under two names is in `tests/session/test_people.py`.
"""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest

import wpinq as wp
from wpinq.plan.format import plan_from_json, plan_to_json

HONEST: dict[str, Any] = {"unit_weight": 2, "cap": 1000}
DATA = [(1, 2), (2, 1), (1, 3), (3, 1)]

CHEAPER: dict[str, dict[str, Any]] = {
    "a smaller unit": {"unit_weight": 1},
    "a smaller cap": {"cap": 10},
    "another word for the unit": {"unit": "one row"},
    "weights that are one": {"facts": ["unit_weights"]},
    "both directions": {"facts": ["symmetric"]},
    "a number of records": {"records_at_most": 2},
    "a number of records of a key": {"keys_at_most": {"src": 1}},
}


def edges(**more: Any) -> wp.Query:
    return wp.source("edges", src=int, dst=int, **{**HONEST, **more})


@pytest.mark.parametrize("name", CHEAPER)
def test_a_plan_over_another_declaration_is_refused_before_the_debit(name: str) -> None:
    """The source that was protected is the one that may be asked, to the last fact."""
    other = edges(**CHEAPER[name])
    with wp.Session() as session:
        session.protect(edges(), DATA, budget=10)
        for query in (other, plan_from_json(json.loads(json.dumps(plan_to_json(other.plan))))):
            asked = (query if isinstance(query, wp.Query) else wp.Query(query)).noisy_count(1, over=[(1, 2)])
            with pytest.raises(wp.WpinqError):
                session.release(asked)
        assert session.spent("edges") == 0


@pytest.mark.parametrize("name", CHEAPER)
def test_one_plan_with_two_declarations_of_a_source_is_refused(name: str) -> None:
    """Joined or put together: neither declaration would hold for both."""
    for make in (
        lambda: edges().concat(edges(**CHEAPER[name])),
        lambda: edges().join(edges(**CHEAPER[name]), lambda e: e.src, lambda e: e.src),
    ):
        with pytest.raises(wp.PlanError), wp.Session() as session:
            session.protect(edges(), DATA, budget=10)
            query = make()
            session.release(query.noisy_count(1, over=[query.plan.type and ((1, 2), (1, 2))][:0]))


@pytest.mark.parametrize("more", [{"unit_weight": 1}, {"unit": "one row"}, {"facts": ["symmetric"]}])
def test_an_account_keeps_the_declaration_that_it_was_opened_with(tmp_path: pathlib.Path, more: dict[str, Any]) -> None:
    """A later session under the same ledger cannot pay less for the same source."""
    path = tmp_path / "ledger.db"
    with wp.Session(path) as session:
        session.protect(edges(), DATA, budget=10)
    with wp.Session(path) as session, pytest.raises(wp.WpinqError):
        session.protect(edges(**more), DATA, budget=10)
    with wp.Session(path) as session:
        session.protect(edges(), DATA, budget=10)


@pytest.mark.parametrize(
    ("more", "data"),
    [
        ({"facts": ["unit_weights"]}, {(1, 2): 2.0}),
        ({"facts": ["nonnegative"]}, {(1, 2): -1.0}),
        ({"facts": ["symmetric"]}, [(1, 2)]),
        ({"facts": ["simple"]}, [(1, 1)]),
        ({"records_at_most": 1}, DATA),
        ({"keys_at_most": {"src": 1}}, DATA),
        ({"cap": 3}, DATA),
    ],
)
def test_a_promise_that_the_data_break_is_refused_when_they_are_protected(more: dict[str, Any], data: Any) -> None:
    """Nothing is billed by a promise that was not checked."""
    with wp.Session() as session, pytest.raises(wp.SourceRejected):
        session.protect(edges(**more), data, budget=10)


def test_facts_that_contradict_one_another_are_no_declaration() -> None:
    with pytest.raises(wp.PlanError):
        edges(facts=["symmetric", "simple"])
    with pytest.raises(wp.PlanError):
        wp.source("numbers", int, facts=["symmetric"])
