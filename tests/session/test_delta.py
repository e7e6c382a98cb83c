"""What sessions record of their releases, and what it comes to at a δ: for every way in which something is charged."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import pytest

import wpinq as wp
from wpinq import graphs
from wpinq.kernel.ledger.ledger import Ledger
from wpinq.measure.delta_reading import Charged, spent_at
from wpinq.measure.renyi import BOUNDED_RANGE, DOUBLE_GEOMETRIC, LAPLACE

DELTA = Fraction(1, 10**6)
TENTH = Fraction(1, 10)
REGIONS = ["north", "south"]


def read(charged: Iterable[Charged], spent: object = 1000) -> Fraction:
    return spent_at(DELTA, charged, Fraction(str(spent)))


def recorded(ledger: pathlib.Path, account: str) -> list[dict[str, Any]]:
    """The releases that the entries of an account record, in order."""
    asked = "SELECT content FROM entries WHERE kind = 'debit' AND source = ?"
    with Ledger(ledger, create=False) as opened:
        rows = opened._file.read(lambda connection: connection.execute(asked, (account,)).fetchall())
    return [release for (text,) in rows for release in json.loads(text)["releases"].values()]


def counts(query: wp.Query, number: int, epsilon: object = "0.1") -> list[wp.Measurement]:
    """Different measurements of one cost, of which no key is asked for."""
    return [query.where(lambda r, i=i: r.age > i).noisy_count(epsilon) for i in range(number)]


def often(session: wp.Session, measurement: wp.Measurement, times: int = 50) -> None:
    """Many draws of one measurement: of a single one no delta tells more than its epsilon."""
    for _ in range(times):
        session.release(measurement, fresh=True)


def test_many_small_releases_are_less_than_their_sum(session: wp.Session, people: wp.Query) -> None:
    session.release(counts(people, 100))
    assert session.spent("people") == 10
    assert (
        session.spent("people", delta="1e-6")
        == session.spent("people", delta=1e-6)
        == read([Charged(LAPLACE, TENTH)] * 100)
    )
    assert f"{float(session.spent('people', delta=DELTA)):.2f}" == "4.98"
    assert session.remaining("people") == 990  # what is enforced stays pure
    with pytest.raises(wp.EpsilonError, match="between 0 and 1"):
        session.spent("people", delta=1)


def test_nothing_spent_is_nothing_at_any_delta(session: wp.Session) -> None:
    assert session.spent("people", delta="1e-30") == 0


def test_replays_cost_nothing_and_fresh_draws_do(session: wp.Session, people: wp.Query) -> None:
    batch = counts(people, 30)
    session.release(batch)
    once = session.spent("people", delta=DELTA)
    session.release([*batch, *batch])
    assert session.spent("people", delta=DELTA) == once == read([Charged(LAPLACE, TENTH)] * 30)
    session.release(batch[0], fresh=True)
    assert session.spent("people", delta=DELTA) == read([Charged(LAPLACE, TENTH)] * 31) > once


def test_each_kind_of_noise_has_its_curve(ledger: pathlib.Path) -> None:
    people = wp.source("people", region=str, age=int, facts=["unit_weights"])
    ages = people.select(lambda r: r.age)
    with wp.Session(ledger) as session:
        session.protect(people, [("north", 30)], budget=100)
        for measurement in (
            people.noisy_count("0.1"),
            people.geometric_count("0.1"),
            people.noisy_sum("0.1", lambda r: r.age, 0, 100),
            people.noisy_average("0.1", lambda r: r.age, 0, 100),
            ages.most_common("0.1", [30, 40]),
            ages.median("0.1", [30, 40]),
        ):
            often(session, measurement, times=10)
        found = session.spent("people", delta=DELTA)
    noises = [release["noise"] for release in recorded(ledger, "people")]
    expected = ["Laplace", "double-geometric", "Laplace", "Laplace", "permute-and-flip", "permute-and-flip"]
    assert noises == [noise for noise in expected for _ in range(10)]
    assert found == read([Charged(LAPLACE, TENTH)] * 30 + [Charged("", TENTH)] * 30) < 6


def test_geometric_noise_is_dearer_than_laplace_noise() -> None:
    people = wp.source("people", region=str, age=int, facts=["unit_weights"])
    with wp.Session() as session:
        session.protect(people, [("north", 30)], budget=100)
        session.release([people.where(lambda r, i=i: r.age > i).geometric_count("0.1") for i in range(100)])
        assert f"{float(session.spent('people', delta=DELTA)):.2f}" == "5.07"


@pytest.mark.parametrize(("share", "noise"), [(None, BOUNDED_RANGE), ("0.1", "TriangleCount")])
@pytest.mark.parametrize("facts", [["unit_weights"], ["unit_weights", "symmetric"]])
def test_counts_on_ladders_are_cheaper_without_an_interval(
    ledger: pathlib.Path, share: object, noise: str, facts: list[str]
) -> None:
    weight = len(facts)
    edges = wp.source("edges", src=int, dst=int, unit_weight=weight, facts=facts)
    with wp.Session(ledger) as session:
        session.protect(edges, [(1, 2), (2, 1)], budget=100)
        for _ in range(20):
            session.release(graphs.triangle_count(edges, "0.1", interval_share=share), fresh=True)
        assert session.spent("edges", delta=DELTA) == read([Charged(noise, TENTH)] * 20, 2) < 2
    assert {release["noise"] for release in recorded(ledger, "edges")} == {noise}


@pytest.mark.parametrize("facts", [["unit_weights"], ["unit_weights", "symmetric"]])
def test_a_largest_degree_is_the_worst_case_of_its_epsilon(ledger: pathlib.Path, facts: list[str]) -> None:
    edges = wp.source("edges", src=int, dst=int, unit_weight=len(facts), facts=facts)
    with wp.Session(ledger) as session:
        session.protect(edges, [(1, 2), (2, 1)], budget=100)
        often(session, graphs.largest_degree(edges, "0.1"))
        found = session.spent("edges", delta=DELTA)
    assert found == read([Charged(DOUBLE_GEOMETRIC, TENTH)] * 50, 5) == read([Charged("", TENTH)] * 50, 5) < 5
    assert found > read([Charged(LAPLACE, TENTH)] * 50, 5)
    assert {release["noise"] for release in recorded(ledger, "edges")} == {DOUBLE_GEOMETRIC}


def test_what_counts_is_the_epsilon_that_is_billed(ledger: pathlib.Path) -> None:
    """Times the bound on the move and the unit weight, and not the epsilon of the noise."""
    edges = wp.source("edges", src=int, dst=int, unit="one edge", unit_weight=2, facts=["symmetric"])
    paths = graphs.paths(edges)
    with wp.Session(ledger) as session:
        session.protect(edges, [(1, 2), (2, 1)], budget=100)
        often(session, paths.noisy_count("0.01"))
        billed = paths.bill(epsilon="0.01")["edges"]
        assert session.spent("edges", delta=DELTA) == read([Charged(LAPLACE, billed)] * 50) < 50 * billed
    release, *_ = recorded(ledger, "edges")
    assert Fraction(release["epsilon"], 10**9) == billed == TENTH / 10 * Fraction(release["moves"]["edges"]) * 2
    assert release["scale"] == pytest.approx(100, rel=1e-3)


def test_parts_are_read_part_by_part(session: wp.Session, people: wp.Query) -> None:
    """Ten of .1 on one part, and then one of 1 on another: the ledger's increment for it is 0."""
    north, south = people.partition(lambda p: p.region, REGIONS).values()
    session.release(counts(north, 10))
    ten = session.spent("people", delta=DELTA)
    session.release(counts(south, 1, epsilon=1))
    assert session.spent("people") == 1
    assert ten == read([Charged(LAPLACE, TENTH)] * 10, 1) < session.spent("people", delta=DELTA)
    assert session.spent("people", delta=DELTA) == read([Charged(LAPLACE, Fraction(1))], 1)
    session.release([*counts(people, 50), *counts(north, 60)[10:]])
    one, other = (("p", "north"),), (("p", "south"),)
    history = [Charged(LAPLACE, TENTH, one)] * 60 + [Charged(LAPLACE, TENTH)] * 50
    assert session.spent("people", delta=DELTA) == read([*history, Charged(LAPLACE, Fraction(1), other)])
    assert session.spent("people") == 11


def test_partitions_of_one_dataset_by_two_keys_add_up(session: wp.Session, people: wp.Query) -> None:
    by_region = people.partition(lambda p: p.region, REGIONS)
    by_age = people.partition(lambda p: p.age, [30, 40])
    session.release([m for part in (*by_region.values(), *by_age.values()) for m in counts(part, 40)])
    assert session.spent("people") == 8
    assert session.spent("people", delta=DELTA) == read([Charged(LAPLACE, TENTH)] * 80)


def test_parts_within_parts(ledger: pathlib.Path, people: wp.Query) -> None:
    with wp.Session(ledger) as session:
        session.protect(people, [("north", 30)], budget=100)
        regions = people.partition(lambda p: p.region, REGIONS)
        ages = {region: part.partition(lambda p: p.age, [30, 40]) for region, part in regions.items()}
        session.release(counts(ages["north"][30], 30))
        session.release(counts(ages["north"][40], 40))
        session.release(counts(ages["south"][30], 50))
        assert session.spent("people", delta=DELTA) == read([Charged(LAPLACE, TENTH)] * 50)
        session.release(counts(regions["north"], 20))
        assert session.spent("people") == 6
        assert session.spent("people", delta=DELTA) == read([Charged(LAPLACE, TENTH)] * 60)
    chains = {tuple(map(tuple, release["parts"])) for release in recorded(ledger, "people")}
    assert sorted(map(len, chains)) == [1, 2, 2, 2]
    assert {chain[0] for chain in chains} == {chain[0] for chain in chains if len(chain) == 2}
    assert {demand for chain in chains for _, _, demand in chain} == {"1/10"}


def test_what_reads_more_than_one_part_is_counted_by_itself(session: wp.Session, people: wp.Query) -> None:
    """Two parts that a query joins move it together with neither: it counts in full, beside the largest part."""
    north, south = people.partition(lambda p: p.region, REGIONS).values()
    session.release([*counts(north, 20), *counts(south, 30), *counts(north.concat(south), 40)])
    assert session.spent("people", delta=DELTA) == read([Charged(LAPLACE, TENTH)] * 70)
    twice = counts(north.concat(people), 1)
    session.release(twice)
    assert session.spent("people", delta=DELTA) == read(
        [Charged(LAPLACE, TENTH)] * 70 + [Charged(LAPLACE, Fraction(1, 5))]
    )


def test_new_data_are_another_partition(people: wp.Query) -> None:
    with wp.Session() as session:
        parts = people.partition(lambda p: p.region, REGIONS)
        for version, region in (("one", "north"), ("two", "south")):
            session.protect(people, [(version, 30)], budget=100, version=version)
            session.release(counts(parts[region], 40))
        assert session.spent("people", delta=DELTA) == read([Charged(LAPLACE, TENTH)] * 80)


def test_tables_of_one_account_move_together(ledger: pathlib.Path) -> None:
    bought = wp.source("bought", shop=str, person="customer", at_most=20, account="customers")
    visits = wp.source("visits", shop=str, person="user", at_most=5, account="customers")
    both = bought.concat(visits)
    north = both.partition(lambda r: r.shop, REGIONS)["north"]
    with wp.Session(ledger) as session:
        session.protect(bought, [{"customer": 1, "shop": "a"}], budget=100)
        session.protect(visits, [{"user": 1, "shop": "a"}], budget=100)
        often(session, both.noisy_count("0.01"))
        for name in ("customers", "bought", "visits"):
            assert session.spent(name, delta=DELTA) == read([Charged(LAPLACE, Fraction(1, 4))] * 50) < 12
        often(session, north.noisy_count("0.01"))
        often(session, visits.noisy_count("0.1"))
        billed = [Fraction(1, 4), Fraction(1, 4), Fraction(1, 2)]
        assert session.spent("customers", delta=DELTA) == read([Charged(LAPLACE, each) for each in billed] * 50)
    first, *_ = recorded(ledger, "customers")
    assert first["moves"] == {"bought": "1", "visits": "1"}


def test_two_accounts_are_read_apart(ledger: pathlib.Path, edges: wp.Query, people: wp.Query) -> None:
    both = edges.select(lambda e: e.src).concat(people.select(lambda p: p.age))
    with wp.Session(ledger) as session:
        session.protect(edges, [(1, 2)], budget=100)
        session.protect(people, [("north", 30)], budget=100)
        session.release([both.noisy_count("0.1"), *counts(people, 20)])
        often(session, both.noisy_count("0.1"), times=49)
        assert session.spent("edges", delta=DELTA) == read([Charged(LAPLACE, TENTH)] * 50) < 5
        assert session.spent("people", delta=DELTA) == read([Charged(LAPLACE, TENTH)] * 70)
    assert (len(recorded(ledger, "edges")), len(recorded(ledger, "people"))) == (50, 70)


def test_a_person_counts_with_all_rows() -> None:
    rows = wp.source("rows", shop=str, person="customer", at_most=20)
    lists = wp.source("lists", shop=str, person="customer", at_most=20, nested=True)
    with wp.Session() as session:
        for name, source, billed in (("rows", rows, Fraction(1, 5)), ("lists", lists, TENTH / 10)):
            session.protect(source, [{"customer": 1, "shop": "a"}], budget=100)
            often(session, source.noisy_count("0.01"))
            assert session.spent(name, delta=DELTA) == read([Charged(LAPLACE, billed)] * 50) < 50 * billed


def test_what_failed_after_its_debit_counts(people: wp.Query, monkeypatch: pytest.MonkeyPatch) -> None:
    with wp.Session(engine="reference") as session:
        session.protect(people, [("north", 30)], budget=100)

        def fail(*_: object, **__: object) -> None:
            raise RuntimeError

        monkeypatch.setattr(session._engine, "evaluate", fail)
        with pytest.raises(wp.EvaluationFailed):
            session.release(people.noisy_count(1, over=[("north", 30)]))
        assert session.spent("people", delta=DELTA) == read([Charged(LAPLACE, Fraction(1))], 1)


def test_ledgers_last_beyond_a_session(ledger: pathlib.Path, people: wp.Query) -> None:
    for number in (1, 2):
        with wp.Session(ledger) as session:
            session.protect(people, [("north", 30)], budget=100)
            session.release(counts(people, 30))
            assert session.spent("people", delta=DELTA) == read([Charged(LAPLACE, TENTH)] * (30 * number)) < 3 * number
    with Ledger(ledger, create=False) as opened:
        opened.verify()
