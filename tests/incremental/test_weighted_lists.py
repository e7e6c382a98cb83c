"""SelectMany of weighted elements: where the list is written out and its weights are, it is as fast as any other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import pytest

import wpinq as wp
from tests.incremental import research
from tests.incremental.test_compiled_swaps import graph
from tests.support.parameters import for_each
from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.engines import reference
from wpinq.engines.delta import Evaluator
from wpinq.engines.delta.compiled import CannotCompile, CompiledEvaluator, Goal, SwapWalk
from wpinq.plan.arithmetic import FLOAT

EDGES = research.EDGES


def turned(edges: Query, there: float, back: float) -> Query:
    """Both directions of each edge, each of a weight of its own."""
    return edges.select_many(
        lambda e: [F.weighted(F.record(a=e.a, b=e.b), there), F.weighted(F.record(a=e.b, b=e.a), back)]
    )


def triangles(links: Query) -> Query:
    paths = links.join(links, lambda x: x.b, lambda y: y.a, lambda x, y: F.record(a=x.a, b=x.b, c=y.b))
    around = paths.where(lambda w: w.a != w.c)
    return around.intersect(around.select(lambda w: F.record(a=w.b, b=w.c, c=w.a))).select(lambda w: "triangle")


def closed(pairs: Callable[[Query], Query]) -> Callable[[Query], Query]:
    """Closed wedges by the tags of their middle, each pair counted up to what `pairs` gives its tag."""
    return lambda edges: research.tagged_pairs(edges).intersect(pairs(edges)).select(lambda p: p.i)


def by_tag(edges: Query) -> Query:
    return edges.select_many(lambda e: [F.weighted(F.record(ends=F.sort((e.a, e.b)), i=i), 2.0**-i) for i in range(4)])


def by_tag_mapped(edges: Query) -> Query:
    return edges.select_many(
        lambda e: F.map(
            F.map([0, 1, 2], lambda i: i + 1),
            lambda i: F.weighted(F.record(ends=F.sort((e.a, e.b)), i=i - 1), F.where(i == 2, None, i * 1.5)),
        )
    )


def by_tag_chosen(edges: Query) -> Query:
    return edges.select_many(
        lambda e: F.map(
            [1, 0, 2],
            lambda i: F.where(
                i == 1,
                F.weighted(F.record(ends=F.sort((e.a, e.b)), i=i), 0.75),
                F.weighted(F.record(ends=F.sort((e.b, e.a)), i=0), F.where(i == 2, None, 1.5)),
            ),
        )
    )


def turned_by_order(edges: Query) -> Query:
    """Both directions of each edge, the upward one first."""

    def halves(e: Any) -> list[object]:
        there, back = (F.weighted(F.record(a=a, b=b), 0.5) for a, b in ((e.a, e.b), (e.b, e.a)))
        return [F.where(e.a < e.b, there, back), F.where(e.a < e.b, back, there)]

    return edges.select_many(halves)


LISTS: dict[str, Callable[[Query], Query]] = {
    "halves": lambda e: triangles(turned(e, 0.5, 0.5)),
    "halves by direction": lambda e: turned(e, 0.75, 0.25).select(lambda e: F.where(e.a < e.b, 1, 2)),
    "heavier than 1": lambda e: turned(e, 3.0, 1.0).where(lambda e: e.a < e.b).select(lambda e: "up"),
    "lighter than 1": lambda e: triangles(turned(e, 0.125, 0.125)),
    "weights of 0": lambda e: turned(e, 0.5, 0.0).select(lambda e: F.where(e.a < e.b, 1, 2)),
    "repeats": lambda e: e.select_many(lambda e: [F.weighted(1, 0.5), F.weighted(2, 1.5), F.weighted(1, 1)]),
    "cut at the limit": lambda e: e.select_many(lambda e: [F.weighted(i, 0.25) for i in range(9)], limit=6),
    "tags": closed(by_tag),
    "mapped": closed(by_tag_mapped),
    "ends": lambda e: e.select_many(lambda e: [F.weighted(e.a, 0.25), F.weighted(e.b, 0.25)])
    .shave(0.25).select(lambda p: p.index),
    "chosen, of one weight": lambda e: triangles(turned_by_order(e)),
    "chosen by what is mapped": closed(by_tag_chosen),
}  # fmt: skip
TABLES: dict[str, Callable[[Query], Query]] = {
    "weights of the record's own": lambda e: e.select_many(
        lambda e: [F.weighted(e.a % 2, (e.b % 4) * 0.5), F.weighted(2, 1.0)]
    ),
    "negative": lambda e: turned(e, 0.5, -0.5).select(lambda e: F.where(e.a < e.b, 1, 2)),
    "negative, minima": lambda e: triangles(turned(e, 0.5, -0.5)),
    "one end heavier": lambda e: e.select_many(lambda e: [F.weighted(e.a, 0.75), F.weighted(e.b, 0.25)])
    .shave(0.5).select(lambda p: p.index),
    "chosen by the record": lambda e: e.select_many(
        lambda e: [F.where(e.a > e.b, F.weighted(e.a, 0.5), F.weighted(e.b, 2)), F.weighted(e.a, 1.0)]
    ),
}  # fmt: skip


def close(left: Mapping[object, float], right: Mapping[object, float]) -> bool:
    return all(abs(left.get(x, 0.0) - right.get(x, 0.0)) < 1e-9 for x in {*left, *right})


@for_each("name", [*LISTS, *TABLES])
def test_walks_agree_step_by_step(interpreted_modules: None, name: str) -> None:
    query = {**LISTS, **TABLES}[name](EDGES)
    start = graph(5, 9, 18)
    python = Evaluator([query.plan], {"edges": dict.fromkeys(start, 1.0)})
    target = Goal(query.plan, 0.5, {record: 0.7 * weight for record, weight in python.outputs[0].items()})
    fast, whole = (
        SwapWalk([target], "edges", start, symmetric=False, seed=3, closing=0.3, virtual=virtual)
        for virtual in (True, False)
    )
    assert fast.specialised == (name in LISTS)
    held = set(start)
    for _ in range(40):
        assert fast.run(1, 2.0).score == pytest.approx(whole.run(1, 2.0).score, abs=1e-9)
        assert fast.edges == whole.edges
        now = {(min(edge), max(edge)) for edge in fast.edges}
        python.propose({"edges": dict.fromkeys(held - now, -1.0) | dict.fromkeys(now - held, 1.0)})
        python.commit()
        held = now
        assert close(fast.outputs[0], python.outputs[0])
        assert close(whole.outputs[0], python.outputs[0])
    assert fast.progress.accepted > 0


@for_each("name", [*LISTS, *TABLES])
@for_each("virtual", [True, False], every=2)
def test_any_weights_of_the_source_agree_with_the_python_engine(
    interpreted_modules: None, name: str, virtual: bool
) -> None:
    plan, rng = {**LISTS, **TABLES}[name](EDGES).plan, Random(name)
    data = {"edges": dict.fromkeys(graph(6, 6, 9), 1.0)}
    compiled, python = CompiledEvaluator([plan], data, virtual=virtual), Evaluator([plan], data)
    for step in range(15):
        weights = [1.0] if step < 5 else [1.0, 0.5, -0.25] if step < 10 else [1.0, -2.0, 1 / 3]
        changes = {"edges": {(rng.randrange(6), rng.randrange(6)): rng.choice(weights) for _ in range(2)}}
        assert close(compiled.propose(changes)[0], python.propose(changes)[0])
        assert close(compiled.outputs[0], python.outputs[0])
        for each in (compiled, python):
            each.rollback() if step % 3 == 0 else each.commit()


def test_lists_that_are_written_out_need_no_scratch_table(interpreted_modules: None) -> None:
    def state(query: Query) -> int:
        return CompiledEvaluator([query.plan], {"edges": {(1, 2): 1.0}}).memory

    alike = EDGES.select_many(lambda e: [F.record(a=e.a, b=e.b), F.record(a=e.b, b=e.a)])
    assert state(turned(EDGES, 0.5, 0.5)) == state(alike) < state(turned(EDGES, 0.5, -0.5))


NUMBERS = wp.source("s", a=int | None, b=float | None)
CHOSEN: dict[str, Query] = {
    "a null condition": NUMBERS.select_many(
        lambda x: [F.where(x.a > 1, F.weighted(x.a, 0.5), F.weighted(7, 1)), F.weighted(x.a, 0.25)]
    ),
    "null records": NUMBERS.select_many(
        lambda x: [F.where(x.a == 1, F.weighted(None, 0.5), F.weighted(x.a, 1.5)), F.weighted(2, 0.5)]
    ),
    "null weights": NUMBERS.select_many(
        lambda x: [F.where(x.b < 1.0, F.weighted(x.a, x.b), F.weighted(x.a, None)), F.weighted(1, x.a)]
    ),
    "no weight at all": NUMBERS.select_many(
        lambda x: [F.where(x.b < 1.0, F.weighted(x.a, None), F.weighted(1, None)), F.weighted(x.a, 0.5)]
    ),
    "records of nullable parts": NUMBERS.select_many(
        lambda x: [
            F.where(x.a > 1, F.weighted((x.a, None), x.b), F.weighted((2, x.b), 0.5)),
            F.where(F.is_null(x.a), F.weighted(None, -1), F.weighted((x.a, x.b), 1.0)),
        ]
    ),
    "nested, of one branch": NUMBERS.select_many(
        lambda x: [
            F.where(
                x.a > 1,
                F.where(x.b > 0.0, F.weighted(x.a, x.b), F.weighted(3, -0.5)),
                F.where(x.a == 1, F.weighted(3, -0.5), F.where(x.b > 0.0, F.weighted(x.a, 2), F.weighted(3, 1))),
            )
        ]
    ),
    "one weight": NUMBERS.select_many(lambda x: [F.where(x.a > 1, F.weighted(x.a, 0.5), F.weighted(9, 0.5))]),
    "strings": NUMBERS.select_many(
        lambda x: [F.where(x.a > 1, F.weighted("many", x.b), F.weighted(F.cast(x.a, str), 1.0))]
    ),
    "mapped over a range": NUMBERS.select_many(
        lambda x: F.map(F.range(0, x.a, limit=3), lambda i: F.where(i < x.b, F.weighted(i, x.b), F.weighted(x.a, i)))
    ),
    "mapped over what is written out": NUMBERS.select_many(
        lambda x: F.map([x.a, 2, 0], lambda i: F.where(i > 1, F.weighted(i, x.b), F.weighted(None, 1)))
    ),
    "flattened": NUMBERS.select_many(
        lambda x: F.flatten(
            F.map(
                F.range(0, x.a, limit=2),
                lambda i: [F.where(x.b > 0.0, F.weighted(i, 0.5), F.weighted(-1, x.b)), F.weighted(x.a, 1.0)],
            )
        ),
        limit=3,
    ),
    "in a list that is chosen too": NUMBERS.select_many(
        lambda x: F.where(
            x.b > 0.0, [F.where(x.a > 1, F.weighted(x.a, 2.0), F.weighted(0, x.b))], [F.weighted(x.a, 0.5)]
        )
    ),
}


@for_each("name", CHOSEN)
@for_each("virtual", [True, False])
def test_weighted_elements_that_a_condition_chooses(interpreted_modules: None, name: str, virtual: bool) -> None:
    plan, rng = CHOSEN[name].plan, Random(name)
    records = [(a, b) for a in (None, 0, 1, 2, 3) for b in (None, -0.5, 0.0, 0.25, 3.0)]
    data = {"s": {record: rng.choice([1.0, -0.5, 2.0]) for record in rng.sample(records, 8)}}
    engine, python = CompiledEvaluator([plan], data, virtual=virtual), Evaluator([plan], data)
    assert close(engine.outputs[0], reference.evaluate(plan, data, FLOAT))
    for record in records:  # each meets the engine alone, so that no two can make up for one another
        change = {"s": {record: rng.choice([1.0, 0.5, -0.25])}}
        assert close(engine.propose(change)[0], python.propose(change)[0])
        assert close(engine.outputs[0], reference.evaluate(plan, engine.candidate, FLOAT))
        for each in (engine, python):
            each.rollback() if rng.random() < 0.3 else each.commit()
        assert close(engine.outputs[0], reference.evaluate(plan, engine.candidate, FLOAT))


def test_what_is_computed_for_one_element_is_not_taken_for_another(interpreted_modules: None) -> None:
    query = NUMBERS.select_many(
        lambda x: F.flatten(
            F.map(F.map([x.a, 2], lambda i: i + 1), lambda i: F.map([i, x.a], lambda j: F.weighted(i + j + 1, x.b)))
        )
    )
    data = {"s": {(3, 0.25): 1.0, (None, 2.0): 1.0}}
    assert close(CompiledEvaluator([query.plan], data).outputs[0], reference.evaluate(query.plan, data, FLOAT))


def test_a_function_mapped_twice_is_computed_twice(interpreted_modules: None) -> None:
    def turn(i: Any) -> Any:
        return F.where(i == 1, 5, 1)

    query = wp.source("s", int).select_many(lambda x: F.map(F.map(F.range(0, x, limit=3), turn), turn))
    assert close(CompiledEvaluator([query.plan], {"s": {3: 1.0}}).outputs[0], {5: 2 / 3, 1: 1 / 3})


def test_a_choice_of_one_weight_needs_no_scratch_table(interpreted_modules: None) -> None:
    def state(weight: float) -> int:
        query = EDGES.select_many(lambda e: [F.where(e.a > e.b, F.weighted(e.a, 0.5), F.weighted(e.b, weight))])
        return CompiledEvaluator([query.plan], {"edges": {(1, 2): 1.0}}).memory

    assert state(0.5) < state(0.25)


def test_choices_that_share_branches_are_written_once(interpreted_modules: None) -> None:
    def doubled(e: Any) -> list[object]:
        element = F.weighted(e.a, 0.5)
        for i in range(30):  # 2 to the power of 30 elements, written out each time
            element = F.where(e.a == i, element, F.where(e.b == i, element, F.weighted(i, 1.0)))
        return [element]

    query, data = EDGES.select_many(doubled), {"edges": {(1, 2): 1.0, (3, 3): 1.0}}
    assert close(CompiledEvaluator([query.plan], data).outputs[0], reference.evaluate(query.plan, data, FLOAT))


REFUSED: dict[str, tuple[Callable[[Any], object], str]] = {
    "looked up in a list": (
        lambda e: F.element([[F.weighted(e.a, 0.5)], [F.weighted(e.b, 1.0)]], e.a), "walks a weighted list",
    ),
    "mapped": (lambda e: F.map([F.weighted(e.a, 0.5)], lambda x: x), "the parameter of a map"),
    "chosen while mapped": (
        lambda e: F.map(
            F.map(F.range(0, e.a, limit=3), lambda i: F.weighted(i, 0.5)),
            lambda x: F.where(e.a > 1, x, F.weighted(e.b, 1.0)),
        ),
        "the parameter of a map",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_weighted_elements_that_are_values_are_refused(name: str) -> None:
    function, reason = REFUSED[name]
    with pytest.raises(CannotCompile, match=reason):
        CompiledEvaluator([EDGES.select_many(function).plan], {"edges": {}})
