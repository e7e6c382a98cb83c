"""A function that fails on a victim only: a division, cast, overflow or index that would stop the run if it is there.

The attack: a query divides by `amount - 4711`, or casts the name, so that it fails where the victim is among the data
and on no other record; whether there is an answer tells. Every primitive is total: what fails is null, on each engine
and with the same record, and the other records are as if the victim were not there.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import pytest

import wpinq as wp
from tests.attacks.conftest import OnEngine
from tests.support.parameters import for_each
from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.engines import reference

PEOPLE = wp.source("people", name=str, amount=int, share=float | None, day=datetime.date, items=list[int])

VICTIM = ("4711-Müller\u0000🂡", -(2**63), -5e-324, -719_162, ())
"""The last but one is a day, as a number from 1970-01-01: the first that there is, and below the last."""
OTHER_VICTIMS = [
    ("9" * 400, 2**63 - 1, 1.7976931348623157e308, 2_932_896, (2**63 - 1,) * 5),
    ("", 4711, None, -700_000, (0,)),
    ("-0", 0, 0.0, -1, (-1, 10**18)),
    ("1e999", 1, float(2**63), 1, tuple(range(100))),
]
OTHERS = {("b" + str(i), i, i / 2, 18_000 + i, (i, 1)): 1.0 for i in range(10, 15)}

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "division by zero": lambda p: p.amount // (p.amount - 4711),
    "remainder of zero": lambda p: 7 % p.amount,
    "float division by zero": lambda p: p.share / (p.share - p.share),
    "overflow of a sum": lambda p: p.amount + p.amount,
    "overflow of a product": lambda p: p.amount * p.amount,
    "overflow of a sign": lambda p: -p.amount,
    "overflow of an absolute value": lambda p: F.absolute(p.amount - 1),
    "overflow of a float": lambda p: p.share * 1e308,
    "floor beyond the ints": lambda p: F.floor(p.share * 2.0),
    "a cast that is no int": lambda p: F.cast(p.name, int),
    "a cast that is no float": lambda p: F.cast(p.name, float),
    "a cast that is no date": lambda p: F.cast(p.name, datetime.date),
    "a cast that is no decimal": lambda p: F.cast(p.name, wp.decimal(2)),
    "a cast that is no category": lambda p: F.cast(p.name, wp.category("b10", "b11")),
    "an index out of range": lambda p: F.element(p.items, p.amount),
    "the least of nothing": lambda p: F.min(p.items),
    "a sum that overflows": lambda p: F.sum(p.items),
    "a substring far out": lambda p: F.substring(p.name, p.amount, p.amount),
    "a range that never ends": lambda p: F.count(F.range(p.amount, 2**63 - 1, limit=50)),
    "a bucket of the least int": lambda p: F.bucket(p.amount, 7),
    "the year of a far day": lambda p: F.year(p.day),
    "a day after the last": lambda p: p.day + datetime.timedelta(days=1),
    "a comparison with null": lambda p: p.share < 0.5,
    "a choice by null": lambda p: F.where(F.is_null(p.share), p.amount, 1),
    "a text grown and cut": lambda p: F.substring(p.name + p.name, 0, 5),
    "lower case of any letter": lambda p: F.lower(p.name),
}


def data(*victims: Any) -> dict[Any, float]:
    return OTHERS | dict.fromkeys(victims, 1.0)


def bits(weights: dict[Any, float]) -> dict[str, str]:
    return {repr(record): weight.hex() for record, weight in weights.items()}


def test_no_function_fails_on_a_victim_and_all_engines_agree_on_what_it_is(engine: OnEngine) -> None:
    """All functions at once, as fields of one record: each victim gives one, the same on every engine."""
    query = PEOPLE.select(lambda p: tuple(function(p) for function in FUNCTIONS.values()))
    assert not engine.refuses(query)
    given = data(VICTIM, *OTHER_VICTIMS)
    found = engine(query, people=given)
    assert sum(found.values()) == len(given)
    assert bits(found) == bits(reference.evaluate(query.plan, {"people": given}))


@pytest.mark.parametrize("where", ["Where", "SelectMany", "Shave", "GroupBy", "Join", "Partition"])
def test_a_function_that_fails_inside_a_step_moves_no_other_record(engine: OnEngine, where: str) -> None:
    """Null is a value like others: the records that are not the victim have the weights that they have without it."""

    def risky(p: Any) -> Any:
        return p.amount // (p.amount - 4711)

    steps: dict[str, Callable[[], Query]] = {
        "Where": lambda: PEOPLE.where(lambda p: risky(p) >= 0).select(lambda p: p.name),
        "SelectMany": lambda: PEOPLE.select_many(
            lambda p: [F.weighted(p.name, p.share * 1e308), F.weighted("all", 1.0 / p.share)]
        ).where(lambda n: n != "all"),
        "Shave": lambda: PEOPLE.shave(lambda p: F.map(p.items, lambda i: 1.0 / i), limit=5).select(
            lambda s: s.record.name
        ),
        "GroupBy": lambda: PEOPLE.group_by(lambda p: (p.name, risky(p)), lambda g: F.sum(g, lambda p: p.amount)).select(
            lambda g: g.key[0]
        ),
        "Join": lambda: PEOPLE.join(PEOPLE, lambda p: (risky(p), p.name), lambda p: (risky(p), p.name)).select(
            lambda a, b: a.name
        ),
        "Partition": lambda: PEOPLE.partition(risky, [0, 1, -1])[0].select(lambda p: p.name),
    }
    query = steps[where]()
    assert not engine.refuses(query)
    without = engine(query, people=data())
    for victim in (VICTIM, *OTHER_VICTIMS):
        found = engine(query, people=data(victim))
        names = {repr(record) for record in without if record is not None and record != victim[0]}
        assert {r: w for r, w in bits(found).items() if r in names} == {
            r: w for r, w in bits(without).items() if r in names
        }


@for_each("name", FUNCTIONS, every=4)
def test_a_release_over_a_victim_answers_as_one_without(name: str) -> None:
    """Through a session: an answer, its keys and its scale are there alike, whoever is in the data."""
    query = PEOPLE.select(FUNCTIONS[name])
    told = []
    for victims in ((), (VICTIM,), tuple(OTHER_VICTIMS)):
        epoch = datetime.date(1970, 1, 1).toordinal()
        rows = [(n, a, s, datetime.date.fromordinal(epoch + d), list(i)) for n, a, s, d, i in data(*victims)]
        with wp.Session() as session:
            session.protect(PEOPLE, rows, budget=10)
            answers = session.release(query.noisy_count(1, over=[None]))
            told.append((answers.keys, answers.scale, len(answers), session.spent("people")))
    assert told[0] == told[1] == told[2]
