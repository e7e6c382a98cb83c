"""Bills and explanations as text: what people read before anything is spent. None of it holds data."""

from __future__ import annotations

from fractions import Fraction

import pytest

import wpinq as wp
from wpinq import functions as F

EDGES = wp.source("edges", src=int, dst=int, unit="one undirected edge", unit_weight=2, facts=["symmetric"])
PEOPLE = wp.source("people", region=str, age=int, unit="one person")


def test_a_bill_itemises_every_source() -> None:
    nodes = EDGES.select(lambda e: e.src)
    joined = nodes.join(nodes.concat(nodes), lambda a: a, lambda b: b, lambda a, b: a)
    both = joined.union(PEOPLE.select(lambda p: p.age))
    cost = wp.bill([both.noisy_count("0.1"), PEOPLE.select(lambda p: p.age).median("1/3", [1, 2])])
    assert str(cost) == (
        "edges: 4/15\n"
        "  protects one undirected edge, of weight 2\n"
        "  declared: (a, b) and (b, a) have the same weight\n"
        "  NoisyCount(0.1), spent 4/3 times (Concat, Join use edges 3 times): 0.1 x 4/3 x 2 = 4/15\n"
        "    4/3 instead of 3 due to: sides of a join in one ratio at every key (R); "
        "what falls on one record is gain or loss, not both\n"
        "people: 13/30\n"
        "  protects one person, of weight 1\n"
        "  NoisyCount(0.1), spent once: 0.1 x 1 = 0.1\n"
        "  Choose(1/3), spent once: 1/3 x 1 = 1/3"
    )
    assert dict(cost) == {"edges": Fraction(4, 15), "people": Fraction(13, 30)}
    assert repr(cost) == "Bill({'edges': 4/15, 'people': 13/30})"
    assert len(cost) == 2


def test_a_bill_says_where_parts_cost_less_than_their_sum() -> None:
    parts = PEOPLE.partition(lambda p: p.region, ["north", "south"])
    assert str(wp.bill([part.noisy_count(epsilon) for part, epsilon in zip(parts.values(), (1, 2), strict=True)])) == (
        "people: 2\n"
        "  protects one person, of weight 1\n"
        "  NoisyCount(1), spent once: 1 x 1 = 1\n"
        "  NoisyCount(2), spent once: 2 x 1 = 2\n"
        "  parts of one partition cost their maximum, not the sum 3"
    )


def test_the_bill_of_one_measurement_is_that_of_a_batch_of_one() -> None:
    one = PEOPLE.noisy_count(1, over=[])
    assert str(wp.bill(one)) == str(wp.bill([one])) == str(PEOPLE.bill(epsilon=1))
    with pytest.raises(KeyError):
        wp.bill(one)["edges"]


def test_an_explanation_holds_plan_types_uses_weights_noise_and_reading() -> None:
    query = EDGES.select(lambda e: e.src).shave(1.0).select(lambda p: p.index).read_as("weight is count")
    text = query.explain()
    for part in (
        "Select(p => p.index)",
        "Shave(1.0)",
        "Select(e => e.src)",
        "(record: int, index: int)",
        "used once, weight left 1",
        "Uses edges once: a release costs epsilon x 1 x 2 (its unit weight).",
        "Protects one undirected edge of edges.",
        "/epsilon to every weight",
        "95 % of answers",
        "Gives: weight is count.",
    ):
        assert part in text, part
    assert "= 0.2" in query.explain(epsilon="0.1")


def test_bills_and_explanations_do_not_change_with_the_data() -> None:
    query = EDGES.group_by(lambda e: e.src, lambda group: F.count(group))
    texts = set()
    for data in ([], [(1, 2), (2, 1)], [(i, i) for i in range(1000)]):
        with wp.Session() as session:
            session.protect(EDGES, data, budget=1)
            asked = query.noisy_count("0.1", over=[(1, 1)])
            texts.add((str(session.bill(asked)), query.explain(epsilon="0.1"), repr(asked), repr(session)))
    assert len(texts) == 1


def test_a_bill_of_fresh_releases_is_what_they_are_charged() -> None:
    ages = PEOPLE.select(lambda p: p.age)
    one, other = ages.noisy_count("0.1", over=[1]), ages.noisy_count("0.2", over=[1])
    table = PEOPLE.by("region", keys=["north"]).agg(rows=wp.count(), epsilon="0.2")
    parts = PEOPLE.partition(lambda p: p.region, ["north", "south"])
    north, south = (part.noisy_count("0.1", over=[("north", 3)]) for part in parts.values())
    with wp.Session() as session:
        session.protect(PEOPLE, [("north", 3)], budget=100)
        for batch in ([one, one], [one, other, one], {"a": one, "b": one}, [table, table], [north, north, south], one):
            for fresh in (False, True):
                session.protect(PEOPLE, [("north", 3)], budget=100)  # so that nothing was paid for before
                quoted, before = session.bill(batch, fresh=fresh), session.spent("people")
                session.release(batch, fresh=fresh)
                assert session.spent("people") - before == quoted["people"], (batch, fresh)
        assert dict(session.bill([one, one])) == {"people": Fraction(1, 10)}
        assert dict(session.bill([one, one], fresh=True)) == {"people": Fraction(2, 10)}
        assert "released already" not in str(session.bill([one, one], fresh=True))
        times = session.affords([one, one])
        for _ in range(3):
            session.release([one, one], fresh=True)
        assert session.affords([one, one]) == times - 3
