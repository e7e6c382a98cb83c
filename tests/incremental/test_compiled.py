"""The compiled engine against the reference, the python engine and itself with every step materialised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from random import Random

import pytest

import wpinq as wp
from tests.incremental.interpreted import interpret
from tests.incremental.state_sizes import state_size
from tests.support.parameters import sizes
from tests.support.plans import CHANGES, OPERATORS, Case, random_case, random_record
from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.engines import reference
from wpinq.engines.delta import Evaluator
from wpinq.engines.delta.compiled import CannotCompile, CompiledEvaluator
from wpinq.engines.delta.compiled.hash_tables import evaluator
from wpinq.errors import PlanError
from wpinq.graphs import recipes
from wpinq.plan.arithmetic import EXACT, FLOAT
from wpinq.plan.node import Node, sources

CASES_PER_OPERATOR = 10
STEPS = 6
TOLERANCE = 1e-8  # weights below 1e-12 are dropped at each step, and random plans have weights up to 4000


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(evaluator, "import_module", interpret)
    yield


def distance(left: Mapping[object, float], right: Mapping[object, float]) -> float:
    return sum(abs(float(left.get(x, 0)) - float(right.get(x, 0))) for x in {*left, *right})


def random_changes(rng: Random, case: Case, candidate: Mapping[str, Mapping[object, float]]) -> dict[str, dict]:
    name, source = rng.choice(sorted(sources([case.plan]).items()))
    changes: dict[object, float] = {}
    for _ in range(rng.randint(1, 3)):
        held = sorted(candidate[name].items(), key=repr)
        if held and rng.random() < 0.6:
            record, weight = rng.choice(held)
            changes[record] = -weight if rng.random() < 0.5 else float(rng.choice(CHANGES))
        else:
            changes[random_record(rng, source.record)] = float(rng.choice(CHANGES))
    return {name: changes}


def floats(case: Case) -> dict[str, dict]:
    return {name: {x: float(w) for x, w in case.data[name].items()} for name in sources([case.plan])}


@pytest.mark.parametrize("cases_per_operator", sizes(1, CASES_PER_OPERATOR))
@pytest.mark.parametrize("virtual", [True, False])
@pytest.mark.parametrize("operator", OPERATORS)
def test_outputs_equal_the_reference_after_any_history(
    interpreted: None, operator: str, virtual: bool, cases_per_operator: int
) -> None:
    rng = Random(f"compiled {operator}")
    done = 0
    while done < cases_per_operator:
        case = random_case(rng, operator)
        data = floats(case)
        try:
            engine = CompiledEvaluator([case.plan], data, virtual=virtual)
        except CannotCompile:
            continue
        done += 1
        assert distance(engine.outputs[0], reference.evaluate(case.plan, data, EXACT)) < TOLERANCE
        for _ in range(STEPS):
            before_candidate, before, loads = engine.candidate, engine.outputs, engine.loads
            (change,) = engine.propose(random_changes(rng, case, before_candidate))
            fresh = reference.evaluate(case.plan, engine.candidate, FLOAT)
            assert distance(engine.outputs[0], fresh) < TOLERANCE
            added = Counter(before[0])
            added.update(change)
            assert distance(added, fresh) < TOLERANCE
            if rng.random() < 0.5:
                engine.rollback()
                assert engine.candidate == before_candidate
                if engine.loads == loads:
                    assert engine.outputs == before, "a rollback restores every bit"
                assert distance(engine.outputs[0], before[0]) < TOLERANCE
            else:
                engine.commit()


@pytest.mark.parametrize("cases_per_operator", sizes(2, CASES_PER_OPERATOR))
@pytest.mark.parametrize("virtual", [True, False])
@pytest.mark.parametrize("operator", OPERATORS)
def test_retracting_everything_leaves_nothing(
    interpreted: None, operator: str, virtual: bool, cases_per_operator: int
) -> None:
    rng = Random(f"retraction {operator}")
    for _ in range(cases_per_operator // 2):
        case = random_case(rng, operator)
        data = floats(case)
        try:
            engine = CompiledEvaluator([case.plan], data, virtual=virtual)
        except CannotCompile:
            continue
        engine.propose({name: {x: -w for x, w in weights.items()} for name, weights in data.items()})
        engine.commit()
        assert distance(engine.outputs[0], {}) < TOLERANCE
        assert engine.candidate == {name: {} for name in data}


def test_most_random_plans_compile(interpreted: None) -> None:
    rng = Random("coverage")
    counts: Counter[bool] = Counter()
    for operator in OPERATORS:
        for _ in range(10):
            case = random_case(rng, operator)
            try:
                CompiledEvaluator([case.plan], floats(case))
                counts[True] += 1
            except CannotCompile as reason:
                assert "step" in str(reason)
                assert "the python engine runs it" in str(reason)
                counts[False] += 1
    assert counts[False] <= counts.total() / 20


EDGES = wp.source("edges", src=int, dst=int)


def graph(rng: Random, nodes: int, edges: int) -> dict[tuple[int, int], float]:
    chosen: dict[tuple[int, int], float] = {}
    while len(chosen) < 2 * edges:
        a, b = rng.randrange(nodes), rng.randrange(nodes)
        if a != b:
            chosen[a, b] = chosen[b, a] = 1.0
    return chosen


RECIPES: dict[str, Callable[[Query], Query]] = {
    "nodes": recipes.nodes,
    "ccdf": recipes.degree_ccdf,
    "sequence": recipes.degree_sequence,
    "joint": recipes.joint_degrees,
    "triangles": lambda edges: recipes.triangles_by_degree(edges, 2),
    "squares": recipes.squares_by_degree,
    "intersect": recipes.triangles_by_intersect,
}


@pytest.mark.parametrize("virtual", sizes(True, False))
@pytest.mark.parametrize("recipe", RECIPES)
def test_recipes_agree_with_the_python_engine(interpreted: None, recipe: str, virtual: bool) -> None:
    rng = Random(recipe)
    plan = RECIPES[recipe](EDGES).plan
    data = {"edges": graph(rng, 7, 11)}
    engine, python = CompiledEvaluator([plan], data, virtual=virtual), Evaluator([plan], data)
    for step in range(8):
        changes = {}
        for _ in range(rng.randint(1, 3)):
            a, b = rng.sample(range(8), 2)
            weight = -1.0 if (a, b) in python.candidate["edges"] else 1.0
            weight *= 0.5 if step > 5 else 1.0  # no longer unit weights: the module is generated for less
            changes[a, b] = changes[b, a] = weight
        assert distance(engine.propose({"edges": changes})[0], python.propose({"edges": changes})[0]) < 1e-9
        assert distance(engine.outputs[0], python.outputs[0]) < 1e-9
        for each in (engine, python):
            each.rollback() if step % 2 else each.commit()


def test_negative_weights_after_non_negative_ones(interpreted: None) -> None:
    a, b = wp.source("a", int), wp.source("b", int)
    plan = a.intersect(b).select(lambda x: x % 2).plan
    data = {"a": {1: 2.0, 2: 0.5}, "b": {1: 1.0}}
    engine = CompiledEvaluator([plan], data)
    engine.propose({"a": {2: -3.0, 4: -1.0}})
    assert engine.outputs == [{0: -3.5, 1: 1.0}]
    engine.rollback()
    assert engine.outputs == [{1: 1.0}]


@pytest.mark.parametrize("name", ["intersect", "union"])
def test_a_record_that_meets_itself_on_one_side_alone_is_counted(interpreted: None, name: str) -> None:
    half = EDGES.select_many(lambda e: [F.weighted((e.src, e.dst), 0.5), F.weighted((e.dst, e.src), -0.5)])
    paths = half.join(EDGES, lambda x: x[1], lambda y: y.src, lambda x, y: (x[0], x[1], y.dst))
    turned = half.join(half, lambda x: x[1], lambda y: y[0], lambda x, y: (x[0], x[1], y[1]))
    ways = paths.select(lambda p: (p[2], p[1], p[0])), turned.where(lambda p: p[0] != p[2])
    query = ways[1].intersect(ways[0]) if name == "intersect" else ways[1].union(ways[0])
    rng, data = Random(4), {"edges": dict.fromkeys([(0, 1), (1, 2), (0, 2), (2, 3)], 1.0)}
    engine, python = CompiledEvaluator([query.plan], data), Evaluator([query.plan], data)
    for _ in range(60):
        held = python.candidate["edges"]
        pairs = [tuple(rng.sample(range(5), 2)) for _ in range(3)]
        change = {"edges": {pair: -1.0 if pair in held else 1.0 for pair in pairs}}
        assert distance(engine.propose(change)[0], python.propose(change)[0]) < 1e-9
        engine.commit()
        python.commit()
    assert engine.loads == 1


PAIRS = wp.source("a", int).join(wp.source("a", int), lambda x: x % 2, lambda y: y % 2, lambda x, y: (x, y))


@pytest.mark.parametrize("virtual", [True, False])
@pytest.mark.parametrize("query", [PAIRS, PAIRS.where(lambda p: p[0] != p[1]).select(lambda p: p[0]).shave(0.5)])
def test_weights_under_a_key_may_grow_by_many_orders_of_magnitude(
    interpreted: None, query: Query, virtual: bool
) -> None:
    engine = CompiledEvaluator([query.plan], {"a": {2: 1e-11, 3: -1.0}}, virtual=virtual)
    first, loads = engine.outputs, engine.loads
    python = Evaluator([query.plan], {"a": {2: 1e-11, 3: -1.0}})
    engine.propose({"a": {1: 2.0}})
    python.propose({"a": {1: 2.0}})
    for change in ({0: 1e6, 3: 1.5}, {4: 3.0}, {0: -1e6}):
        expected = python.propose({"a": change})[0]
        assert distance(engine.propose({"a": change})[0], expected) < 1e-3 * TOLERANCE * sum(map(abs, change.values()))
        assert distance(engine.outputs[0], reference.evaluate(query.plan, engine.candidate, FLOAT)) < 1e-3
    assert engine.loads == loads + 1
    engine.rollback()
    assert engine.outputs == first
    engine.propose({"a": {0: 1e6}})
    engine.commit()
    engine.rollback()
    fresh = reference.evaluate(query.plan, {"a": {0: 1e6, 2: 1e-11, 3: -1.0}}, FLOAT)
    assert distance(engine.outputs[0], fresh) < TOLERANCE


def test_dust_of_weights_that_went_does_not_stay_in_norms(interpreted: None) -> None:
    rng = Random(3)
    for _ in range(6):
        engine = CompiledEvaluator([PAIRS.plan], {"a": {2 * i: 1 / (3 + i) for i in range(9)}})
        for scale in (1e3, -1e3, 1e4):
            engine.propose({"a": {2 * i: scale * rng.random() for i in range(9)}})
            engine.commit()
        for record, weight in engine.candidate["a"].items():
            engine.propose({"a": {record: -weight}})
            engine.commit()
        engine.propose({"a": {0: 1000.0, 2: -1000.0}})
        fresh = reference.evaluate(PAIRS.plan, {"a": {0: 1000.0, 2: -1000.0}}, FLOAT)
        assert distance(engine.outputs[0], fresh) < TOLERANCE


def virtual_and_state(plan: Node) -> tuple[int, int]:
    data = {"edges": graph(Random(1), 10, 20)}
    virtual, whole = CompiledEvaluator([plan], data), CompiledEvaluator([plan], data, virtual=False)
    assert distance(virtual.outputs[0], whole.outputs[0]) < 1e-9
    return state_size(virtual), state_size(whole)


def test_virtual_steps_keep_no_state(interpreted: None) -> None:
    # the candidate (40) and a norm for each vertex (10), however many paths there are
    assert virtual_and_state(recipes.triangles_by_intersect(EDGES).plan)[0] == 50
    for query in (recipes.joint_degrees(EDGES), recipes.triangles_by_degree(EDGES, 20)):
        virtual, whole = virtual_and_state(query.plan)
        assert virtual <= 80
        assert whole > 2 * virtual


def test_tables_and_log_grow_while_a_proposal_is_pending(interpreted: None) -> None:
    engine = CompiledEvaluator([EDGES.select(lambda e: e.src).plan], {"edges": {(0, 0): 1.0}})
    before, size = engine.outputs, engine.memory
    engine.propose({"edges": {(1, 0): 1.0}})
    engine.propose({"edges": {(i, j): 1.0 for i in range(2, 60) for j in range(40)}})
    assert engine.outputs == [{0: 1.0, 1: 1.0, **dict.fromkeys(range(2, 60), 40.0)}]
    assert engine.memory > size
    engine.rollback()
    assert engine.outputs == before


def test_what_cannot_compile_is_refused_by_name() -> None:
    lists = wp.source("s", list[int]).select(lambda x: [x, F.map(x, lambda y: y + 1)])
    flat = lists.select_many(lambda x: F.flatten(x), limit=3)
    with pytest.raises(CannotCompile, match="step 3, SelectMany: it walks a list of lists of the data"):
        CompiledEvaluator([flat.plan], {"s": {}})


REMEMBERED: dict[str, tuple[Query, list[object]]] = {
    "functions of strings": (wp.source("s", str).select(lambda x: F.lower(x)), ["Ann", "BOB", "ann"]),
    "order of strings": (wp.source("s", str).where(lambda x: x < "b"), ["ann", "bob", "ba"]),
    "words of a string": (
        wp.source("s", str).select_many(lambda x: F.split(x, " "), limit=3), ["a b a", "b", "c d e f"],
    ),
    "lists as records": (wp.source("s", list[int]).select(lambda x: F.count(x)), [(1, 2), (), (3,)]),
    "elements of lists": (wp.source("s", list[int]).select_many(lambda x: x, limit=2), [(1, 2), (2, 3, 4), (1,)]),
    "elements of lists that may be null": (
        wp.source("s", list[int] | None).select_many(lambda x: x, limit=2), [(1, 2), None, (2, 3, 4), ()],
    ),
    "lists of elements that may be null beside others": (
        wp.source("s", list[int]).select_many(lambda x: x, limit=2).concat(
            wp.source("s", list[int]).select(lambda x: F.map(x, lambda y: F.where(y == 2, None, y)))
            .select_many(lambda x: x, limit=3)
        ),
        [(1, 2), (), (2, 3, 4), (3,)],
    ),
    "groups as lists": (wp.source("s", int).group_by(lambda x: x % 2), [1, 2, 3, 4, 8]),
    "groups of strings": (
        wp.source("s", str).group_by(lambda x: F.length(x), lambda g: F.min(g)), ["b", "a", "cc", "bb", "c"],
    ),
    "sums of floats": (
        wp.source("s", float).group_by(lambda x: x < 0.0, lambda g: F.sum(g)), [0.1, 0.2, 0.3, 1e17, -1.0, -0.1],
    ),
    "lists of groups": (
        wp.source("s", int).group_by(lambda x: x % 3, lambda g: F.collect(g)).select_many(
            lambda p: F.map(p.val, lambda x: (p.key, x, F.count(p.val))), limit=4
        ),
        [1, 2, 3, 4, 7, 10, 13],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REMEMBERED)
def test_memos_agree_with_the_python_engine(interpreted: None, name: str) -> None:
    query, records = REMEMBERED[name]
    rng = Random(name)
    data = {"s": {records[0]: 1.0, records[1]: 0.5}}
    engine, python = CompiledEvaluator([query.plan], data), Evaluator([query.plan], data)
    for step in range(25):
        changes = {"s": {rng.choice(records): rng.choice([1.0, -0.5, 0.25]) for _ in range(2)}}
        assert distance(engine.propose(changes)[0], python.propose(changes)[0]) < 1e-9
        if step % 5 == 0:  # further proposals before the decision
            assert distance(engine.propose(changes)[0], python.propose(changes)[0]) < 1e-9
        assert distance(engine.outputs[0], python.outputs[0]) < 1e-9
        for each in (engine, python):
            each.rollback() if step % 2 else each.commit()


def test_large_groups_are_memos_as_a_whole(interpreted: None) -> None:
    query = wp.source("s", int).group_by(lambda x: 0, lambda g: F.collect(g))
    engine = CompiledEvaluator([query.plan], {"s": dict.fromkeys(range(300), 1.0)})
    assert engine.outputs == [{(0, tuple(range(300))): 0.5}]


def test_strings_nulls_and_floats_are_records(interpreted: None) -> None:
    people = wp.source("people", name=str, age=int | None, height=float)
    query = people.where(lambda p: (p.name != "bob") & (p.height < 2.0)).select(lambda p: (p.name, p.age, p.height / 2))
    data = {"people": {("ann", None, 1.5): 1.0, ("bob", 3, 1.0): 1.0, ("eve", 7, -0.0): 2.0}}
    assert CompiledEvaluator([query.plan], data).outputs == [{("ann", None, 0.75): 1.0, ("eve", 7, 0.0): 2.0}]


def test_a_change_of_an_unknown_source_is_refused(interpreted: None) -> None:
    with pytest.raises(PlanError, match="no plan uses a source 'nodes'"):
        CompiledEvaluator([EDGES.plan], {"edges": {}}).propose({"nodes": {1: 1.0}})


def test_numba_missing_is_a_typed_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(CannotCompile, match="needs numba"):
        CompiledEvaluator([EDGES.plan], {"edges": {}})
