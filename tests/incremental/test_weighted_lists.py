"""SelectMany of weighted elements: where the list is written out and its weights are, it is as fast as any other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

import pytest

import wpinq as wp
from tests.incremental import research
from tests.incremental.test_compiled_swaps import graph
from wpinq.engines.incremental import Evaluator
from wpinq.engines.incremental.compiled import CannotCompile, CompiledEvaluator, SwapWalk, Target
from wpinq.query import Query

EDGES = research.EDGES


def turned(edges: Query, there: float, back: float) -> Query:
    """Both directions of each edge, each of a weight of its own."""
    return edges.select_many(
        lambda e: [wp.weighted(wp.record(a=e.a, b=e.b), there), wp.weighted(wp.record(a=e.b, b=e.a), back)]
    )


def triangles(links: Query) -> Query:
    paths = links.join(links, lambda x: x.b, lambda y: y.a, lambda x, y: wp.record(a=x.a, b=x.b, c=y.b))
    around = paths.where(lambda w: w.a != w.c)
    return around.intersect(around.select(lambda w: wp.record(a=w.b, b=w.c, c=w.a))).select(lambda w: "triangle")


def closed(pairs: Callable[[Query], Query]) -> Callable[[Query], Query]:
    """Closed wedges by the tags of their middle, each pair counted up to what `pairs` gives its tag."""
    return lambda edges: research.tagged_pairs(edges).intersect(pairs(edges)).select(lambda p: p.i)


def by_tag(edges: Query) -> Query:
    return edges.select_many(
        lambda e: [wp.weighted(wp.record(ends=wp.sort((e.a, e.b)), i=i), 2.0**-i) for i in range(4)]
    )


def by_tag_mapped(edges: Query) -> Query:
    return edges.select_many(
        lambda e: wp.map(
            wp.map([0, 1, 2], lambda i: i + 1),
            lambda i: wp.weighted(wp.record(ends=wp.sort((e.a, e.b)), i=i - 1), wp.where(i == 2, None, i * 1.5)),
        )
    )


LISTS: dict[str, Callable[[Query], Query]] = {
    "halves": lambda e: triangles(turned(e, 0.5, 0.5)),
    "halves by direction": lambda e: turned(e, 0.75, 0.25).select(lambda e: wp.where(e.a < e.b, 1, 2)),
    "heavier than 1": lambda e: turned(e, 3.0, 1.0).where(lambda e: e.a < e.b).select(lambda e: "up"),
    "lighter than 1": lambda e: triangles(turned(e, 0.125, 0.125)),
    "weights of 0": lambda e: turned(e, 0.5, 0.0).select(lambda e: wp.where(e.a < e.b, 1, 2)),
    "repeats": lambda e: e.select_many(lambda e: [wp.weighted(1, 0.5), wp.weighted(2, 1.5), wp.weighted(1, 1)]),
    "cut at the limit": lambda e: e.select_many(lambda e: [wp.weighted(i, 0.25) for i in range(9)], limit=6),
    "tags": closed(by_tag),
    "mapped": closed(by_tag_mapped),
    "ends": lambda e: e.select_many(lambda e: [wp.weighted(e.a, 0.25), wp.weighted(e.b, 0.25)])
    .shave(0.25).select(lambda p: p.index),
}  # fmt: skip
TABLES: dict[str, Callable[[Query], Query]] = {
    "weights of the record's own": lambda e: e.select_many(
        lambda e: [wp.weighted(e.a % 2, (e.b % 4) * 0.5), wp.weighted(2, 1.0)]
    ),
    "negative": lambda e: turned(e, 0.5, -0.5).select(lambda e: wp.where(e.a < e.b, 1, 2)),
    "negative, minima": lambda e: triangles(turned(e, 0.5, -0.5)),
    "one end heavier": lambda e: e.select_many(lambda e: [wp.weighted(e.a, 0.75), wp.weighted(e.b, 0.25)])
    .shave(0.5).select(lambda p: p.index),
}  # fmt: skip


def close(left: Mapping[object, float], right: Mapping[object, float]) -> bool:
    return all(abs(left.get(x, 0.0) - right.get(x, 0.0)) < 1e-9 for x in {*left, *right})


@pytest.mark.parametrize("name", [*LISTS, *TABLES])
def test_walks_agree_step_by_step(interpreted_modules: None, name: str) -> None:
    query = {**LISTS, **TABLES}[name](EDGES)
    start = graph(5, 9, 18)
    python = Evaluator([query.plan], {"edges": dict.fromkeys(start, 1.0)})
    target = Target(query.plan, 0.5, {record: 0.7 * weight for record, weight in python.outputs[0].items()})
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


@pytest.mark.parametrize("name", [*LISTS, *TABLES])
@pytest.mark.parametrize("virtual", [True, False])
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
            each.rollback() if step % 3 == 0 else each.commit()  # type: ignore[attr-defined]


def test_lists_that_are_written_out_need_no_scratch_table(interpreted_modules: None) -> None:
    def state(query: Query) -> int:
        return CompiledEvaluator([query.plan], {"edges": {(1, 2): 1.0}}).memory

    alike = EDGES.select_many(lambda e: [wp.record(a=e.a, b=e.b), wp.record(a=e.b, b=e.a)])
    assert state(turned(EDGES, 0.5, 0.5)) == state(alike) < state(turned(EDGES, 0.5, -0.5))


def test_weighted_elements_that_a_condition_chooses_are_refused() -> None:
    query = EDGES.select_many(lambda e: [wp.where(e.a > e.b, wp.weighted(1, 0.5), wp.weighted(2, 1.0))])
    with pytest.raises(CannotCompile, match="choose the weights instead"):
        CompiledEvaluator([query.plan], {"edges": {}})
