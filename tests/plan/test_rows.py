"""Bounds on the records of a step and on the work of a plan, from what sources declare of their sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import pytest

import wpinq as wp
from tests.support.parameters import for_each
from tests.support.plans import OPERATORS, Case, random_case
from wpinq import functions as F
from wpinq.engines import reference
from wpinq.expr.compile import compile_lambda
from wpinq.expr.types import TupleOf
from wpinq.graphs import symmetrize
from wpinq.plan.arithmetic import EXACT
from wpinq.plan.domain import RowBounds, Sized, Sizes, pieces
from wpinq.plan.format import plan_from_json, plan_to_json
from wpinq.plan.node import Node, topological, upward
from wpinq.plan.operators import GroupBy, Join, Source
from wpinq.plan.properties import plan_properties
from wpinq.plan.work import plan_work, row_bounds

PLANS = 12  # for each operator at the root


def tightly_declared(case: Case) -> Node:
    """The plan over sources that declare what their data have, no more: the facts, and the sizes to the last record."""

    def declared(node: Node, inputs: list[Node]) -> Node:
        operator = node.operator
        if not isinstance(operator, Source):
            return Node(operator, tuple(inputs))
        held = {record: weight for record, weight in case.data[operator.source].items() if weight}
        facts = set(operator.facts)
        if all(weight > 0 for weight in held.values()):
            facts.add("nonnegative")
        if all(weight == 1 for weight in held.values()):
            facts.add("unit_weights")
        keys: list[tuple[tuple[str, ...], int]] = []
        if isinstance(operator.record, TupleOf) and None not in operator.record.names and held:
            for place, name in enumerate(operator.record.names):
                most = max(Counter(record[place] for record in held).values())
                keys.append(((str(name),), most))
        sizes = Sizes(max(1, len(held)), tuple(keys))
        return Node(replace(operator, facts=tuple(sorted(facts)), sizes=sizes))

    return upward(case.plan, declared)[case.plan.digest]


def at(record: Any, path: tuple[int, ...]) -> Any:
    for place in path:
        record = None if record is None else record[place]
    return record


def handled(node: Node, outputs: Mapping[bytes, Mapping[Any, Any]]) -> int:
    """The pairs of a Join, the prefixes of a GroupBy, and the records that they read; of others the latter alone."""
    sides = [outputs[child.digest] for child in node.inputs]
    read = sum(map(len, sides)) if sides else len(outputs[node.digest])
    if isinstance(node.operator, GroupBy):
        groups: dict[Any, list[Any]] = {}
        key = compile_lambda(node.operator.key)
        for record, weight in sides[0].items():
            groups.setdefault(key(record), []).append(weight)
        prefixes = ((least, group) for group in groups.values() for least in set(group) if least > 0)
        return read + sum(weight >= least for least, group in prefixes for weight in group)
    if not isinstance(node.operator, Join):
        return read
    counts = [
        Counter(map(compile_lambda(function), side))
        for side, function in zip(sides, (node.operator.left_key, node.operator.right_key), strict=True)
    ]
    return read + sum(number * counts[1][key] for key, number in counts[0].items())


@for_each("operator", OPERATORS)
def test_no_step_has_more_records_than_its_bound(operator: str) -> None:
    rng, told = Random(f"{operator} rows"), 0
    for _ in range(PLANS):
        case = random_case(rng, operator)
        plan = tightly_declared(case)
        rows, outputs = row_bounds(plan), dict[bytes, Mapping[Any, Any]]()
        for node in topological([plan]):
            found = {record: weight for record, weight in reference.evaluate(node, case.data, EXACT).items() if weight}
            outputs[node.digest], bound = found, rows[node.digest]
            assert bound.records is not None, f"nothing bounds the records of {node.operator.name}"
            assert bound.handled is not None
            assert len(found) <= bound.records
            assert handled(node, outputs) <= bound.handled
            for fields, most in bound.a_key.items():
                agreeing = Counter(tuple(at(record, path) for path in sorted(fields)) for record in found)
                assert max(agreeing.values(), default=0) <= most
                told += 1
    assert told > PLANS


EDGES = wp.source("edges", src=int, dst=int, records_at_most=1000, keys_at_most={"src": 50})


def bound(query: wp.Query) -> int | None:
    return row_bounds(query.plan)[query.plan.digest].records


def test_bounds_worked_out_by_hand() -> None:
    paths = EDGES.join(EDGES, lambda x: x.dst, lambda y: y.src, lambda x, y: (x.src, x.dst, y.dst))
    assert bound(paths) == 1000 * 50  # each edge meets the edges that begin where it ends
    assert bound(paths.intersect(paths.select(lambda p: (p[1], p[2], p[0])))) == 50_000
    signed = wp.source("edges", src=int, dst=int, weights=True, records_at_most=1000, keys_at_most={"src": 50})
    again = signed.join(signed, lambda x: x.dst, lambda y: y.src, lambda x, y: (x.src, x.dst, y.dst))
    assert bound(again.where(lambda p: p[0] != p[2]).intersect(again)) == 2 * 50_000  # of any sign: perhaps both sides
    assert bound(EDGES.select_many(lambda e: [e.src, e.dst])) == 2000
    assert bound(symmetrize(EDGES)) == 2000
    unit = wp.source("edges", src=int, dst=int, facts=["unit_weights"], records_at_most=1000)
    degrees = unit.group_by(lambda e: e.src, lambda g: F.count(g))
    assert bound(degrees) == 1000
    assert bound(unit.join(degrees, lambda e: e.src, lambda d: d.key)) == 1000  # a vertex has one degree
    assert bound(unit.join(unit, lambda e: e.src, lambda e: e.src)) == 1000**2
    assert bound(unit.shave(1.0)) == 1000
    assert bound(unit.select(lambda e: e.src).shave(1.0)) == 2001  # whole ones share the mass; a rest each
    assert bound(wp.source("edges", src=int, dst=int).select(lambda e: e.src)) is None


def test_the_work_of_a_plan_names_the_step_that_takes_most() -> None:
    paths = EDGES.join(EDGES, lambda x: x.dst, lambda y: y.src, lambda x, y: (x.src, x.dst, y.dst))
    found = plan_work(paths.where(lambda p: p[0] != p[2]).plan)
    assert found.dominant.node.operator.name == "Join"
    assert (found.rows, found.dominant.rows) == (1000 + 52_000 + 50_000, 52_000)
    unknown = plan_work(EDGES.join(wp.source("other", src=int), lambda x: x.dst, lambda y: y.src).plan)
    assert (unknown.rows, unknown.unbounded) == (None, ("other",))
    assert "Work: at most 103,000 rows" in paths.where(lambda p: p[0] != p[2]).explain()
    assert "other declares no records_at_most" in wp.source("other", src=int, keys_at_most={"src": 1}).explain()
    assert "Work" not in wp.source("other", src=int).explain()


def test_what_takes_most_is_told_by_what_functions_do_and_not_by_rows_alone() -> None:
    texts = wp.source("texts", text=str, records_at_most=1000)
    words = texts.select_many(lambda r: F.split(r.text, " "), limit=3)
    plan = words.select(lambda word: word == "").plan
    assert plan_work(words.plan).dominant.rows == 4000
    found = plan_work(plan).dominant
    assert (found.node.operator.name, found.rows) == ("Select", 3000)


@pytest.mark.parametrize(("even", "made"), [(True, (10, 2)), (False, (15, 3))])
def test_a_weight_that_was_rounded_up_leaves_one_piece_more(even: bool, made: tuple[int, int]) -> None:
    """Of weights that are one exact number for all data there is no such rest."""
    below = Sized(RowBounds(5), norm_bound=Fraction(10**6), largest=Fraction(1), even=even)
    assert pieces(below, Fraction(1, 2), None) == made


def test_the_bounds_are_part_of_the_declaration() -> None:
    plain = wp.source("edges", src=int, dst=int)
    assert EDGES.plan != plain.plan
    assert plan_from_json(plan_to_json(EDGES.plan)) == EDGES.plan
    text = "source edges(src: int, dst: int) with records_at_most = 1000, keys_at_most = [(src, 50)];\n"
    assert wp.parse(text).sources["edges"].plan == EDGES.plan
    assert str(wp.parse(text)) == text
    assert [line.strip() for line in str(EDGES.bill(epsilon=1)).splitlines()[2:4]] == [
        "declared: at most 1,000 records",
        "declared: at most 50 records with one src",
    ]
    assert EDGES.bill(epsilon=1) == plain.bill(epsilon=1)


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"records_at_most": 0}, "integer from 1"),
        ({"records_at_most": 1.5}, "integer from 1"),
        ({"records_at_most": True}, "integer from 1"),
        ({"keys_at_most": {"to": 3}}, "src, dst"),
        ({"keys_at_most": {("src", "src"): 3}}, "agree in fields"),
        ({"keys_at_most": {}}, "bound the records"),
        ({"keys_at_most": ["src"]}, "names fields"),
        ({"keys_at_most": {("src", "dst"): 3, ("dst", "src"): 4}}, "one bound for the same fields"),
    ],
)
def test_what_cannot_be_declared(declared: dict[str, Any], said: str) -> None:
    with pytest.raises(wp.PlanError, match=said):
        wp.source("edges", src=int, dst=int, **declared)


@pytest.mark.parametrize(
    "options",
    [
        "keys_at_most = src",
        "keys_at_most = [src]",
        "keys_at_most = []",
        "keys_at_most = [(3, 3)]",
        "records_at_most = 1.5",
    ],
)
def test_what_text_cannot_declare(options: str) -> None:
    with pytest.raises(wp.LanguageError):
        wp.parse(f"source edges(src: int, dst: int) with {options};")


OVER = {
    "records": ({"records_at_most": 2}, [(1, 1), (2, 2), (3, 3)]),
    "a key": ({"keys_at_most": {"src": 2}}, [(1, 1), (1, 2), (1, 3)]),
    "two fields": ({"keys_at_most": {("src", "dst"): 1, "dst": 1}}, [(1, 7), (2, 7)]),
}


@pytest.mark.parametrize("case", OVER)
def test_data_beyond_a_bound_are_refused_and_nothing_more_is_said(case: str) -> None:
    declared, rows = OVER[case]
    source = wp.source("edges", src=int, dst=int, weights=True, **declared)
    messages = set()
    for data in (rows, [*rows, (9, 5), (1, 8), (1, 9), (2, 9)], rows[::-1], dict.fromkeys(rows, 0.5)):
        with wp.Session() as session:
            with pytest.raises(wp.SourceRejected) as refused:
                session.protect(source, data, budget=1)
            assert not session.balances(), "a refused source opens no account"
        messages.add(str(refused.value))
        if not isinstance(data, dict):
            with pytest.raises(wp.SourceRejected):
                wp.evaluate(source, {"edges": data})
    if case != "two fields":  # there another bound may be the first that is broken
        assert len(messages) == 1
    assert not any(word.isdigit() and word not in "12" for message in messages for word in message.split())


def test_data_within_the_bounds_are_taken_and_repeats_count_once() -> None:
    source = wp.source("edges", src=int, dst=int, records_at_most=2, keys_at_most={"src": 1})
    with wp.Session() as session:
        session.protect(source, [(1, 1), (1, 1), (2, 2)], budget=1)
        other = wp.source("edges", src=int, dst=int, records_at_most=3, keys_at_most={"src": 1})
        with pytest.raises(wp.WpinqError, match="at most 2 records, at most 1 a key"):
            session.protect(other, [(1, 1)], budget=1)


def test_bounds_are_checked_after_the_cut_of_each_persons_rows() -> None:
    source = wp.source("visits", page=int, person="who", at_most=2, records_at_most=4)
    rows = [{"who": who, "page": 10 * who + i} for who in range(2) for i in range(5)]
    with wp.Session() as session:
        session.protect(source, rows, budget=1)
    with wp.Session() as session, pytest.raises(wp.SourceRejected, match="at most 4 records"):
        session.protect(source, [*rows, {"who": 7, "page": 1}], budget=1)


def test_a_release_costs_and_gives_the_same_with_and_without_bounds() -> None:
    plain = wp.source("edges", src=int, dst=int)
    for source in (plain, EDGES):
        degrees = source.group_by(lambda e: e.src, lambda g: F.count(g))
        assert plan_properties(degrees.plan).slack() == plan_properties(plain.group_by(lambda e: e.src).plan).slack()
        assert dict(wp.evaluate(degrees, {"edges": [(1, 2), (1, 3)]}, exact=True)) == {(1, 2): Fraction(1, 2)}


def test_a_key_of_more_fields_than_are_followed_is_not_taken_for_some_of_them() -> None:
    fields: dict[str, Any] = {f"f{place}": int for place in range(70)}
    wide = wp.source("wide", **fields, facts=["unit_weights"], records_at_most=100)
    groups = wide.group_by(lambda r: r, lambda g: F.count(g))
    first = groups.select(lambda g: (g.key.f0, g.key.f1))
    assert bound(groups.join(groups, lambda x: x.key, lambda y: y.key)) == 100
    for query in (groups, first):
        for known, most in row_bounds(query.plan)[query.plan.digest].a_key.items():
            assert most == 100 or frozenset([(0,)]) <= known or len(known) == 70
    rows = [tuple([0] * place + [1] + [0] * (69 - place)) for place in range(70)]
    assert len(wp.evaluate(groups.where(lambda g: g.key.f0 == 0), {"wide": rows})) == 69  # that agree in what is shown
    held = wp.source("held", key=dict.fromkeys(fields, int), v=int, keys_at_most={"key": 3})
    assert [len(known) for known in row_bounds(held.plan)[held.plan.digest].a_key] == [1]
