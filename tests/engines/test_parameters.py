"""Programs that are filled in with the numbers of a plan: the same as those that are written for it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest

import wpinq as wp
from tests.engines.test_agreement import bits, floats
from tests.support.parameters import tenth
from tests.support.plans import OPERATORS, random_case
from wpinq import functions as F
from wpinq.engines import reference
from wpinq.engines.sql import compile
from wpinq.engines.sql.compile import Compiled, Plan, compile_uncached, parameters, with_constants
from wpinq.engines.sql.dialect import DUCKDB
from wpinq.engines.sql.duckdb.database import Database
from wpinq.engines.sql.script import PrefixCache
from wpinq.expr.nodes import Constant, Lambda
from wpinq.plan.lowering import over, physical_plan
from wpinq.plan.node import Node
from wpinq.plan.operator import Operator
from wpinq.plan.work import equal_weights

NUMBERS = wp.source("numbers", int)
ROWS = wp.source("rows", a=int, b=float)
EDGES = wp.source("edges", src=int, dst=int)


@pytest.fixture(autouse=True)
def _without_templates() -> Iterator[None]:
    compile._templates.cache_clear()
    compile._marked.cache_clear()
    compile._compiled.cache_clear()
    yield
    compile._templates.cache_clear()
    compile._marked.cache_clear()
    compile._compiled.cache_clear()


def with_others(root: Node, move: int) -> Node:
    """The plan with other parameters: as many, each equal to no more numbers than before."""
    others = {each: Constant(each.type, each.value + move) for each in parameters(root)}

    def changed(operator: Operator) -> Operator:
        given = {n: with_constants(held, others) for n, held in operator.arguments() if isinstance(held, Lambda)}
        return replace(operator, **given)

    return over(root, changed) if others else root


def written(root: Node, keyed: bool = False) -> Compiled:
    program = compile_uncached(Plan(root, keyed=keyed), DUCKDB, PrefixCache())
    return replace(program, added=None)


def filled(root: Node, keyed: bool = False) -> Compiled | None:
    """The program of a plan of which several of its shape were compiled before."""
    for move in (101, 102):
        compile._filled_in(Plan(with_others(root, move), keyed=keyed, alone=True))
    return compile._filled_in(Plan(root, keyed=keyed, alone=True))


@pytest.mark.parametrize("operator", tenth(OPERATORS, 4))
def test_weights_of_random_plans_have_the_bits_of_their_own_programs(
    operator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, found = Random(f"{operator} parameters"), 0
    for _ in range(6):
        case = random_case(rng, operator)
        root = physical_plan(case.plan)
        with Database(threads=1) as database, monkeypatch.context() as patch:
            patch.setattr(compile, "_filled_in", lambda plan: None)
            whole = database.evaluate(root, floats(case))
            keys = [*whole][:5]
            some = database.evaluate(root, floats(case), keys=keys)
        compile._compiled.cache_clear()
        found += filled(root) is not None
        each, other = (equal_weights(plan) for plan in (root, with_others(root, 103)))
        assert [*each.values()] == [*other.values()], "no parameter decides what every record weighs"
        filled(root, keyed=True)
        with Database(threads=1) as database:
            assert bits(database.evaluate(root, floats(case))) == bits(whole)
            assert bits(database.evaluate(root, floats(case), keys=keys)) == bits(some)
        compile._compiled.cache_clear()
    assert found or operator in ("Concat", "Except", "Union", "Intersect", "Shave", "Partition"), (
        "a parameter, by chance"
    )


@pytest.mark.parametrize("n", [2, -7, 10**12])
@pytest.mark.parametrize(
    "query",
    [
        lambda n: NUMBERS.where(lambda x: x < n),
        lambda n: ROWS.where(lambda r: (r.a == n) & (r.b > n + 0.5)).select(lambda r: r.a + 3 * r.a),
        lambda n: ROWS.select(lambda r: F.where(r.b < n + 0.25, r.a, r.a * n)),
        lambda n: ROWS.where(lambda r: r.a > n).group_by(lambda r: r.a % 5, lambda g: F.count(g)),
        lambda n: NUMBERS.where(lambda x: (x < n) | (x > n)).select_many(lambda x: [x, x + n]),
        lambda n: NUMBERS.select(lambda x: (x / (abs(n) + 0.5), F.max(F.min(x / 3, n + 0.25), n - 1.0))),
        lambda n: wp.Query(ROWS.noisy_sum(0.1, lambda r: r.a, -1000, abs(n) + 1000).plan),
    ],
)
def test_filled_programs_are_those_written_to_the_letter(query: Callable[[int], wp.Query], n: int) -> None:
    program = filled(query(n).plan)
    assert program == written(query(n).plan)


def test_joins_for_keys_have_the_bits_of_their_own_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables of norms go by names that the numbers are in, and stand in the order of these."""
    edges = {(i % 7, i % 11): 1.0 for i in range(60)}

    def walks(n: int) -> Node:
        kept = EDGES.where(lambda e: e.src != n)
        return kept.join(EDGES, lambda e: e.dst, lambda e: e.src, lambda x, y: x.src + n).plan

    def weights(n: int) -> list[tuple[Any, str]]:
        with Database(threads=1) as database:
            return bits(database.evaluate(walks(n), {"edges": edges}, keys=[n, n + 1, n + 3]))

    assert filled(walks(9), keyed=True) is not None
    found = [weights(n) for n in (3, 4, 5, 6)]
    monkeypatch.setattr(compile, "_filled_in", lambda plan: None)
    compile._compiled.cache_clear()
    assert [weights(n) for n in (3, 4, 5, 6)] == found


def test_numbers_that_mean_more_are_no_parameters() -> None:
    def held(query: wp.Query) -> list[object]:
        return [each.value for each in parameters(physical_plan(query.plan))]

    assert held(NUMBERS.select(lambda x: x // 7)) == held(NUMBERS.select(lambda x: x % 7)) == []
    assert held(NUMBERS.select(lambda x: x / 7)) == [7]
    assert held(NUMBERS.select(lambda x: x / 0.5)) == held(NUMBERS.select(lambda x: x / -7)) == [], "below 1"
    assert held(ROWS.select(lambda r: r.b + 1e308)) == [], "a sum with it may be no number"
    assert held(ROWS.select(lambda r: F.min(r.a, 5))) == [5]
    assert held(ROWS.select(lambda r: F.where(r.a == 3, 5, 6))) == [3], "the condition may be known"
    assert held(NUMBERS.select(lambda x: 5)) == held(NUMBERS.select_many(lambda x: [1, 2])) == []
    assert held(NUMBERS.shave(0.5).where(lambda p: p[1] == 0)) == [], "the number of a piece"
    assert held(NUMBERS.where(lambda x: x == 3)) == [3]
    assert held(NUMBERS.where(lambda x: x < 7).select(lambda x: x // 7)) == [], "it divides, too"
    assert held(NUMBERS.select(lambda x: F.sum(F.range(x, x + 4, limit=9)))) == [4]
    assert held(NUMBERS.select_many(lambda x: [F.weighted(x, 0.5)])) == []
    assert held(wp.source("names", str).where(lambda x: x < "m")) == [], "texts are none"


def test_what_is_the_same_number_twice_is_another_shape() -> None:
    one, other = (ROWS.where(lambda r, n=n: (r.a < 5) & (r.a > n)).plan for n in (5, 6))
    assert compile._marked(one)[0] != compile._marked(other)[0]
    assert compile._marked(other)[0] == compile._marked(with_others(other, 3))[0]


@pytest.mark.parametrize(
    ("primitive", "query"),
    [
        ("floor_divide", lambda n: NUMBERS.select(lambda x: x // n)),
        ("modulo", lambda n: NUMBERS.select(lambda x: x % n)),
        ("divide", lambda n: NUMBERS.select(lambda x: x / (n - 4.5))),
        ("equal", lambda n: NUMBERS.shave(0.5).where(lambda p: p[1] == n)),
    ],
)
def test_mutants_with_further_parameters_are_caught(
    primitive: str, query: Callable[[int], wp.Query], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A number that a rule looks at: were it a parameter, the comparison above would fail."""
    root = physical_plan(query(4).plan)
    assert filled(root) is None
    if primitive == "equal":
        monkeypatch.setattr(compile, "Shave", ())
    monkeypatch.setattr(compile, "_OPAQUE", compile._OPAQUE | {primitive})
    compile._templates.cache_clear()
    compile._marked.cache_clear()
    assert filled(root) != written(root)


def test_other_facts_are_another_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    """A number from which facts or bounds follow: the program has weights or a grid of its own."""
    root = NUMBERS.where(lambda x: x < 4).plan
    with monkeypatch.context() as patch:
        patch.setattr(compile, "_all_facts", lambda root: (root,))
        assert filled(root) is None
    compile._templates.cache_clear()
    assert filled(root) is not None
    with monkeypatch.context() as patch:
        patch.setattr(compile, "_all_facts", lambda root: ("others",))
        assert compile._filled_in(Plan(root, alone=True)) is None


@pytest.mark.parametrize("guard", ["shape", "facts"])
def test_widths_chosen_by_a_comparison_make_the_weights_of_their_own_plan(
    guard: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole widths make the weight of every record 1: a program from them would count pieces of an eighth as whole."""
    if guard == "facts":
        monkeypatch.setattr(compile, "Shave", ())

    def shaved(widths: list[float]) -> Node:
        pairs = [*zip(widths[::2], widths[1::2], strict=True)]
        pieces = EDGES.shave(lambda e: [F.where(e.src < e.dst, a, b) for a, b in pairs], limit=len(pairs))
        return pieces.concat(pieces.where(lambda p: p[0].src < 9)).plan

    data = {"edges": {(1, 2): 1.0}}
    with contextlib.closing(Database()) as database:
        for first in (1, 2):
            database.evaluate(shaved([float(first + i) for i in range(16)]), data)
        asked = shaved([1 / 8 - i / 1000 for i in range(16)])
        found = sum(map(float, database.evaluate(asked, data).values()))
    assert found == pytest.approx(float(sum(reference.evaluate(asked, data).values())))
