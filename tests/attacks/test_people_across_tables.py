"""One record a person, a list for each table: the ways in which it could leak or charge too little."""

from __future__ import annotations

import contextlib
import io
import math
import pkgutil
import re
import sys
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
from wpinq.data.rows import rows_relation
from wpinq.errors import PlanError, SourceRejected, WpinqError
from wpinq.expr.person_tables import PersonTables
from wpinq.expr.types import INT
from wpinq.plan.operators import Source
from wpinq.plan.work import equal_weights


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


@for_each("seed", range(40), every=20)
def test_a_person_moves_one_record_of_weight_1(seed: int) -> None:
    assert not broken(seed)


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


def test_e_sizes_are_of_records_and_not_of_people() -> None:
    """Two people with equal rows are one record: the bound holds of them, and of either alone."""
    source = wp.people("p", id=("who", int), a=wp.table(x=int, at_most=2), records_at_most=1)
    assert read(source, {"a": [{"who": who, "x": 5} for who in range(3)]}) == {(((5,),),): 3.0}
    with pytest.raises(SourceRejected, match="at most 1 record"):
        read(source, {"a": [{"who": who, "x": who} for who in range(2)]})


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


def test_constants_are_compared_with_rows_and_not_with_weights() -> None:
    """Ten rows of one ward weigh .2 at a bound of 50: they are one ward, ten rows, and no ten wards."""
    source = wp.people("p", id=("who", int), a=wp.table(ward=str, x=int, at_most=50), b=wp.table(ward=str, at_most=20))
    rows = [{"who": who, "ward": ward, "x": x} for who in range(4) for ward in "AB" for x in range(5)]
    data = {"p": {"a": [*rows, {"who": 9, "ward": "C", "x": 1}], "b": []}}
    view = source.unnest("a")
    asked = view.by("ward", keys=["A", "C", "D"]).agg(n=wp.count_distinct("x"), s=wp.sum("x", 0, 9), epsilon=10**8)
    found = wp.simulate(asked, data, seed=1)
    assert [round(float(found[ward]["n"]), 2) for ward in "ACD"] == [5, 1, 0]
    assert [round(float(found[ward]["s"]), 2) for ward in "ACD"] == [40, 1, 0]
    wards = view.agg(n=wp.count_distinct("ward"), epsilon=1)
    assert (
        wards.kind("n").words == "number of different values of ward in rows of a of people in p, each of weight 1/50"
    )
    assert wards.bill()["p"] == 1
    assert wards.accuracy().rows[0].half_width == pytest.approx(50 * math.log(20), rel=1e-4)
    for operator in ("union", "intersect"):
        for other in (source.unnest("b"), source.select(lambda p: F.record(ward="A"))):
            with pytest.raises(PlanError, match="rows weigh 1/50 and 1"):
                getattr(view.select(lambda r: F.record(ward=r.ward)), operator)(other)
        same = view.where(lambda r: r.x > 1)
        assert "each of weight 1/50" in getattr(same, operator)(view).explain(1)
    assert "each times the weight 1/50 of its row" in str(view.noisy_sum(1, lambda r: r.x, 0, 9).kind)
    pieces = view.select("ward").shave(1 / 50)  # the float is above 1/50, and stands for it
    assert "each of weight 1/50" in str(pieces.noisy_count(1).kind)
    assert {*wp.evaluate(pieces, data, exact=True).values()} == {Fraction(1, 50)}
    inexact = wp.evaluate(pieces, data)  # sums of floats may leave a rest of an ulp: no engine takes it for a piece
    assert math.isclose(sum(inexact.values()), 41 / 50)
    assert not equal_weights(pieces.plan)
    assert "selected above 30," in view.by("ward", keys=["A"], above=30).agg(n=wp.count(), epsilon=1).explain()


def test_a_join_on_the_person_says_what_to_write_everywhere(tmp_path: Path) -> None:
    from wpinq.cli.main import main

    program = tmp_path / "join.wpq"
    program.write_text(
        'source one(x: int, who: int) with person = "who", at_most = 2, account = "people";\n'
        'source two(y: int, who: int) with person = "who", at_most = 3, account = "people";\n'
        "var j = one.Join(two, a => a.who, b => b.who, (a, b) => a.x).NoisyCount(1, over: [1, 2]);\n"
    )
    words = "declare them as tables of one wp.people"
    asked = wp.parse(program.read_text())["j"]
    assert words in str(asked.bill())
    assert words in asked.explain()
    assert asked.bill()["people"] == 5
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main(["explain", str(program)]) == 0
    assert words in out.getvalue()


def off(seed: int) -> bool:
    """Whether a dataset is another than that of the definition."""
    from tests.support.person_tables import people_of

    source, tables = patients(), random_tables(Random(seed), list(range(6)))
    return read(source, named(source, tables)) != people_of(source, tables)


def records(**_: Any) -> None:
    assert not any(off(seed) or broken(seed) for seed in range(8))


def instead(of: str, text: str) -> Callable[[Any], Any]:
    """A function that gives SQL with another text in the place of one."""
    return lambda real: lambda *given: real(*given).replace(of, text)


def trap(test: Callable[..., None], *fixtures: str) -> Callable[..., None]:
    return lambda **given: test(*(given[name] for name in fixtures))


PLANTED: dict[str, tuple[str, Callable[[Any], Any], Callable[..., None]]] = {
    "(a) a row counts only where another table has one": (
        "wpinq.data.person_tables.people_records",
        instead("FULL JOIN", "JOIN"),
        records,
    ),
    "(b) 007 is the person 7": (
        "wpinq.expr.person_tables.INT_ID",
        lambda real: INT,
        trap(test_b_ids_have_one_type_and_their_own_spelling, "tmp_path"),
    ),
    "(b) null is a person": (
        "wpinq.expr.person_tables.INT_ID",
        lambda real: INT.with_nullable(),
        trap(test_b_ids_have_one_type_and_their_own_spelling, "tmp_path"),
    ),
    "(b) texts of one number are one person": (
        "wpinq.data.person_tables.table_of_rows",
        lambda real: (
            lambda *given: real(*given[:-1], re.sub("(c\\d+) AS p", "ltrim(\\\\1::VARCHAR, '0') AS p", given[-1]))
        ),
        trap(test_b_ids_have_one_type_and_their_own_spelling, "tmp_path"),
    ),
    "(c) people without a row in the first table are left out": (
        "wpinq.data.person_tables.people_records",
        instead("FULL JOIN", "LEFT JOIN"),
        trap(test_c_a_row_without_a_row_elsewhere_is_kept),
    ),
    "(d) rows are cut before they are checked": (
        "wpinq.data.read.rows_relation",
        lambda real: lambda connection, rows, type_: real(connection, list(rows)[:1], type_),
        trap(test_d_rows_that_are_cut_are_checked_too),
    ),
    "(e) facts are taken": (
        "wpinq.plan.operators.source.Source._check_person",
        lambda real: lambda source, person: None,
        trap(test_e_no_fact_but_what_any_people_leave_can_be_declared),
    ),
    "(e) each person is a record": (
        "wpinq.data.person_tables._weighed",
        lambda real: (
            lambda connection, made, _, names: f"SELECT {', '.join(names)}, CAST(1 AS DOUBLE) AS w FROM {made}"
        ),
        trap(test_e_sizes_are_of_records_and_not_of_people),
    ),
    "(f) a table that is not given is empty": (
        "wpinq.data.read._tables",
        lambda real: lambda data, person: {t.name: dict(data).get(t.name, []) for t in person.tables},
        trap(test_f_all_tables_come_in_one_call),
    ),
    "(f) a table is read twice": (
        "wpinq.data.read.tables_dataset",
        lambda real: lambda connection, read, *rest: real(connection, lambda *a: (read(*a), read(*a))[1], *rest),
        trap(test_f_all_tables_come_in_one_call),
    ),
    "(f) a pattern without files is an empty table": (
        "wpinq.data.read.file_relation",
        lambda real: lambda connection, path, type_, stack: rows_relation(connection, [], type_),
        trap(test_f_all_tables_come_in_one_call),
    ),
    "(g) the number of rows of a table is told": (
        "wpinq.data.person_tables._kept_rows",
        lambda real: (
            lambda connection, offered, *rest: (
                sys.stdout.write(str(connection.execute(f"SELECT count(*) FROM {offered}").fetchall())),
                real(connection, offered, *rest),
            )[1]
        ),
        trap(test_g_nothing_is_said_of_how_many, "capfd"),
    ),
    "the cut counts the rows of all people": (
        "wpinq.data.person_tables.kept_of",
        instead("PARTITION BY p", "PARTITION BY 1"),
        records,
    ),
    "equal records are one of weight 1": (
        "wpinq.data.person_tables._weighed",
        instead("count(*) AS DOUBLE", "1 AS DOUBLE"),
        trap(test_e_sizes_are_of_records_and_not_of_people),
    ),
    "rows share a person's weight": (
        "wpinq.plan.operators.select_many.SelectMany.least_norm",
        lambda real: 1,
        lambda **_: test_shares_of_unnested_rows_never_exceed_1_together(5),
    ),
    "a value counts once for each row": (
        "wpinq.tables.aggregates.row_weight",
        lambda real: lambda rows: Fraction(1),
        trap(test_constants_are_compared_with_rows_and_not_with_weights),
    ),
    "rows of two weights are compared": (
        "wpinq.plan.construct._check_rows",
        lambda real: lambda *given: None,
        trap(test_constants_are_compared_with_rows_and_not_with_weights),
    ),
    "a join on the person is billed without a word": (
        "wpinq.measure.bill.joins_tables",
        lambda real: lambda *given: False,
        trap(test_a_join_on_the_person_says_what_to_write_everywhere, "tmp_path"),
    ),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_planted_faults_are_found(
    fault: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each error of the list fails the test of its trap, or of the records and their distance."""
    place, mutant, test = PLANTED[fault]
    monkeypatch.setattr(place, mutant(pkgutil.resolve_name(place)))
    with pytest.raises((AssertionError, pytest.fail.Exception, WpinqError)):
        test(tmp_path=tmp_path, capfd=capfd)
