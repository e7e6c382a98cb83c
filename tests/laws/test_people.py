"""One whole person, in every table at once: outputs move by no more than one account is charged, exactly.

Neighbours differ by a person with all rows, kept and cut. Plans are random, of every operator, over up to three tables
that share an account, in both forms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from random import Random
from typing import Any

import pytest

import wpinq as wp
from tests.support import people
from tests.support.parameters import sizes
from tests.support.people import PEOPLE, PeopleCase, counted, people_case, random_table
from tests.support.plans import OPERATORS, distance
from wpinq.api.query import Query
from wpinq.engines import reference
from wpinq.expr.types import INT, record_type
from wpinq.plan.arithmetic import EXACT
from wpinq.plan.node import sources

PLANS = 100
ROW = record_type({"x": INT})


def ratios(case: PeopleCase) -> Iterator[Fraction]:
    """For each person, how far the output moves without that person, over what an epsilon of 1 costs the account."""
    (cost,) = wp.bill(Query(case.plan).noisy_count(1)).values()
    output = reference.evaluate(case.plan, case.data(), EXACT)
    for who in range(PEOPLE):
        yield distance(output, reference.evaluate(case.plan, case.data(without=who), EXACT)) / cost


@pytest.mark.parametrize("plans", sizes(10, PLANS))
@pytest.mark.parametrize("operator", OPERATORS)
def test_a_person_moves_every_plan_by_at_most_the_bill(operator: str, plans: int) -> None:
    rng = Random(f"people {operator}")
    largest = [max(ratios(people_case(rng, operator))) for _ in range(plans)]
    assert max(largest) <= 1
    assert sum(ratio > 0 for ratio in largest) >= plans // 2
    assert max(largest) >= Fraction(1, 8)


@pytest.mark.parametrize("nested", [False, True], ids=["rows", "lists"])
def test_a_person_moves_a_source_by_at_most_its_unit_weight_and_so_much_is_reached(nested: bool) -> None:
    rng = Random(7)
    largest = Fraction(0)
    for _ in range(300):
        at_most = rng.choice([1, 2, 3])
        query = wp.source("s", x=int, person="who", at_most=at_most, nested=nested)
        case = PeopleCase(query.plan, {"s": random_table(rng, ROW)})
        (source,) = sources([query.plan]).values()
        for who in range(PEOPLE):
            moved = distance(case.data()["s"], case.data(without=who)["s"])
            rows = sum(whose == who for whose, _ in case.tables["s"])
            assert moved == (min(1, rows) if nested else min(at_most, rows)) <= source.unit_weight
            largest = max(largest, moved / source.unit_weight)
    assert largest == 1


def test_two_tables_of_one_account_are_moved_by_both_of_a_persons_parts_at_once() -> None:
    a, b = (wp.source(name, x=int, person="who", at_most=2, account="people") for name in "ab")
    parts = [*a.partition(lambda r: r.x, [0]).values(), *b.partition(lambda r: r.x, [1]).values()]
    both = parts[0].concat(parts[1])
    case = PeopleCase(both.plan, {"a": [(0, (0,)), (0, (0,))], "b": [(0, (1,)), (0, (1,))]})
    assert max(ratios(case)) == 1  # a maximum over parts, or over tables, would bill half of what is lost
    assert wp.bill([part.noisy_count(1) for part in parts]) == {"people": 4}


Cut = Any
CUTS: dict[str, Cut] = {}


def planted(cut: Cut) -> Cut:
    """A cut that reads more than it may: the law must find it."""
    CUTS[cut.__name__] = cut
    return cut


@planted
def first_rows_of_the_file(ids: list[int], rows: list[Any], at_most: int) -> dict[int, tuple[Any, ...]]:
    """Not by person: so many rows for each person on the average."""
    kept: dict[int, tuple[Any, ...]] = {}
    for who, row in list(zip(ids, rows, strict=True))[: at_most * len(set(ids))]:
        kept[who] = (*kept.get(who, ()), row)
    return kept


@planted
def rare_rows_first(ids: list[int], rows: list[Any], at_most: int) -> dict[int, tuple[Any, ...]]:
    often = Counter(rows)
    theirs = {who: [row for whose, row in zip(ids, rows, strict=True) if whose == who] for who in ids}
    return {who: tuple(sorted(own, key=lambda row: (often[row], row))[:at_most]) for who, own in theirs.items()}


@planted
def repeats_dropped_before_the_cut(ids: list[int], rows: list[Any], at_most: int) -> dict[int, tuple[Any, ...]]:
    seen: set[Any] = set()
    theirs: dict[int, list[Any]] = {}
    for who, row in zip(ids, rows, strict=True):
        if row not in seen:
            theirs.setdefault(who, []).append(row)
        seen.add(row)
    return {who: tuple(own[:at_most]) for who, own in theirs.items()}


@pytest.mark.parametrize("name", CUTS)
def test_a_cut_that_looks_across_people_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def kept_rows(ids: Any, rows: Any, type_: object, at_most: int) -> Any:
        return CUTS[name](list(ids), list(rows), at_most)

    monkeypatch.setattr(people, "kept_rows", kept_rows)
    rng, largest = Random(3), Fraction(0)
    query = wp.source("s", x=int, person="who", at_most=2)
    (source,) = sources([query.plan]).values()
    for _ in range(300):
        table = random_table(rng, ROW)
        for gone in range(PEOPLE):
            left = [(who, row) for who, row in table if who != gone]
            largest = max(largest, distance(counted(source, table), counted(source, left)))
    assert largest > source.unit_weight
