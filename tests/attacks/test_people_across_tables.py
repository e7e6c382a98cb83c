"""One record a person, a list for each table: the ways in which it could leak or charge too little."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest

import wpinq as wp
from tests.data.test_person_tables import named, patients, random_tables, read
from tests.support.parameters import for_each
from wpinq import functions as F
from wpinq.errors import PlanError, SourceRejected, WpinqError
from wpinq.expr.person_tables import PersonTables
from wpinq.plan.operators import Source


def distance(one: dict[Any, float], other: dict[Any, float]) -> float:
    return sum(abs(one.get(record, 0) - other.get(record, 0)) for record in {*one, *other})


def broken(seed: int) -> bool:
    """Whether leaving out a person moves the dataset by more than 1, or not by that person's record."""
    rng, source = Random(seed), patients()
    tables = random_tables(rng, list(range(6)))
    whole = read(source, named(source, tables))
    for who in range(6):
        rest = {name: [row for row in rows if row[0] != who] for name, rows in tables.items()}
        there = any(len(rows) > len(rest[name]) for name, rows in tables.items())
        if distance(whole, read(source, named(source, rest))) != float(there):
            return True
    return False


@for_each("seed", range(40), every=14)
def test_a_person_moves_one_record_of_weight_1(seed: int) -> None:
    assert not broken(seed)


PLANTED: dict[str, tuple[str, Callable[[Callable[..., Any]], Callable[..., Any]]]] = {
    "(a) a row counts only where another table has one": (
        "wpinq.data.person_tables.people_records",
        lambda real: lambda *given: real(*given).replace("FULL JOIN", "JOIN"),
    ),
    "(c) people without a row in the first table are left out": (
        "wpinq.data.person_tables.people_records",
        lambda real: lambda *given: real(*given).replace("FULL JOIN", "LEFT JOIN"),
    ),
    "the cut counts the rows of all people": (
        "wpinq.data.person_tables.kept_of",
        lambda real: lambda *given: real(*given).replace("PARTITION BY p", "PARTITION BY 1"),
    ),
    "equal records are one of weight 1": (
        "wpinq.data.person_tables._weighed",
        lambda real: lambda *given: real(*given).replace("count(*) AS DOUBLE", "1 AS DOUBLE"),
    ),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_planted_faults_are_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dataset that differs from the definition is caught by it or by the distance of neighbours."""
    from tests.support.person_tables import people_of

    place, mutant = PLANTED[fault]
    module, name = place.rsplit(".", 1)
    real = getattr(__import__(module, fromlist=[name]), name)
    monkeypatch.setattr(place, mutant(real))
    source = patients()

    def off(seed: int) -> bool:
        tables = random_tables(Random(seed), list(range(6)))
        return read(source, named(source, tables)) != people_of(source, tables)

    assert any(off(seed) or broken(seed) for seed in range(8))


def test_b_ids_have_one_type_and_their_own_spelling(tmp_path: Path) -> None:
    """An int is only itself in text, and a text is never taken for an int."""
    source = wp.people("p", id=("who", int), a=wp.table(x=int, at_most=2), b=wp.table(y=int, at_most=2))
    b = [{"who": 7, "y": 1}]
    for spelled in ("007", "+7", " 7", "7.0", "", "x"):
        (tmp_path / "a.csv").write_text(f"who,x\n{spelled},1\n")
        with pytest.raises(SourceRejected):
            read(source, {"a": tmp_path / "a.csv", "b": b})
    (tmp_path / "a.csv").write_text("who,x\n7,1\n-3,2\n")
    assert len(read(source, {"a": tmp_path / "a.csv", "b": b})) == 2
    for who in ("7", 7.0, True, None):
        with pytest.raises(SourceRejected):
            read(source, {"a": [{"who": who, "x": 1}], "b": b})
    texts = wp.people("p", id=("who", str), a=wp.table(x=int, at_most=2))
    assert read(texts, {"a": [{"who": "7", "x": 1}, {"who": "007", "x": 2}]}) == {(((1,),),): 1.0, (((2,),),): 1.0}
    for who in (7, None):
        with pytest.raises(SourceRejected):
            read(texts, {"a": [{"who": who, "x": 1}]})


def test_c_a_row_without_a_row_elsewhere_is_kept() -> None:
    source = wp.people("p", id=("who", int), a=wp.table(x=int, at_most=1), b=wp.table(y=int, at_most=2))
    held = read(source, {"a": [{"who": 1, "x": 5}], "b": [{"who": 2, "y": 6}]})
    assert held == {((5,), ()): 1.0, (None, ((6,),)): 1.0}


def test_d_rows_that_are_cut_are_checked_too() -> None:
    source = wp.people("p", id=("who", int), a=wp.table(x=int, at_most=1, keep="first", by="x"))
    with pytest.raises(SourceRejected):
        read(source, {"a": [{"who": 1, "x": 1}, {"who": 1, "x": "no int"}]})


def test_e_no_fact_but_what_any_people_leave_can_be_declared() -> None:
    """Symmetric tables of two lists look like edges: no fact is taken, in any form of the declaration."""
    source = wp.people("p", id=("who", int), a=wp.table(x=int, at_most=2), b=wp.table(x=int, at_most=2))
    declared = source.plan.operator
    assert isinstance(declared, Source)
    for facts in (("simple",), ("symmetric",), ("unit_weights",)):
        with pytest.raises(PlanError):
            Source(**dict(declared.arguments()) | {"facts": facts})
    assert not declared.exact
    with pytest.raises(WpinqError):
        wp.parse('source p(a: list[(x: int), 2]) with person = "who", ids = int, facts = [unit_weights];')


def test_f_all_tables_come_in_one_call() -> None:
    source, tables = patients(), random_tables(Random(1), [1, 2, 3])
    data = named(source, tables)
    for parts in ({}, {"home": data["home"]}, {**data, "more": []}, list(data.values()), data["home"]):
        with pytest.raises(SourceRejected), wp.Session() as session:
            session.protect(source, parts, budget=1)
    with pytest.raises(SourceRejected):
        read(source, {**data, "visits": "no/such/*.parquet"})
    reads: list[str] = []

    def once(name: str) -> Any:
        reads.append(name)
        yield from data[name]

    read(source, {name: once(name) for name in data})
    assert sorted(reads) == sorted(data)


def test_g_nothing_is_said_of_how_many(capfd: pytest.CaptureFixture[str]) -> None:
    source, tables = patients(), random_tables(Random(5), list(range(50)))
    with wp.Session() as session:
        session.protect(source, named(source, tables), budget=1)
        said = repr(session) + str(session.balances())
    out, err = capfd.readouterr()
    assert not out + err
    assert "50" not in said


def test_the_unit_weight_is_1_whatever_is_written() -> None:
    """A declaration by hand cannot weigh a person less, nor hold other bounds than its record."""
    source = patients()
    declared = source.plan.operator
    assert isinstance(declared, Source)
    person = declared.person
    assert isinstance(person, PersonTables)
    fewer = PersonTables("who", 4, True, "", person.tables[:2], "int")
    for change in ({"unit_weight": Fraction(1, 2)}, {"unit_weight": Fraction(2)}, {"person": fewer}):
        with pytest.raises(PlanError):
            Source(**dict(declared.arguments()) | change)
    with pytest.raises(PlanError):
        PersonTables("who", 1, True, "", person.tables, "int")
    with pytest.raises(PlanError):
        PersonTables("who", person.at_most, False, "", person.tables, "int")
    with pytest.raises(PlanError, match="account of their own"):  # which a text of the plan would lose
        PersonTables("who", person.at_most, True, "other", person.tables, "int")


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 49, 50])
def test_shares_of_unnested_rows_never_exceed_1_together(limit: int) -> None:
    """float(1/50) is above 1/50: the share is a rational of the plan, and 1/limit exactly in the reference."""
    source = wp.people("p", id=("who", int), a=wp.table(x=int, at_most=max(limit, 2)))
    data = {"a": [{"who": 1, "x": x} for x in range(max(limit, 2))]}
    weights = wp.evaluate(source.unnest("a"), {"p": data}, exact=True)
    assert {*weights.values()} == {Fraction(1, max(limit, 2))}
    assert sum(weights.values()) == 1
    few = source.unnest(lambda p: F.filter(p.a, lambda r: r.x < 1))
    assert {*wp.evaluate(few, {"p": data}, exact=True).values()} == {Fraction(1, max(limit, 2))}


def test_an_account_keeps_every_rule_of_its_tables(tmp_path: Path) -> None:
    def people(**change: Any) -> wp.Query:
        rule = {"at_most": 3, "keep": "last", "by": "x", "distinct": "x", **change}
        return wp.people("p", id=("who", rule.pop("id", int)), a=wp.table(x=int, y=int, **rule))

    path = tmp_path / "ledger.db"
    with wp.Session(path) as session:
        session.protect(people(), {"a": []}, budget=1)
    for change in ({"at_most": 2}, {"keep": "first"}, {"by": "y"}, {"distinct": "y"}, {"distinct": ""}, {"id": str}):
        with wp.Session(path) as session, pytest.raises(WpinqError):
            session.protect(people(**change), {"a": []}, budget=1)
