"""Walks by swaps: compiled against interpreted, neighbour lists against tables, and what every walk must keep."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

import wpinq as wp
from tests.incremental.interpreted import interpret
from wpinq import functions as F
from wpinq.engines import reference
from wpinq.engines.delta.compiled import CannotCompile, CompiledEvaluator, EdgeWalk, Goal, SwapWalk, hash_table, modules
from wpinq.engines.delta.compiled.adjacency import state
from wpinq.engines.delta.compiled.adjacency.state import NeighbourWalk
from wpinq.engines.delta.compiled.hash_tables import evaluator
from wpinq.errors import PlanError
from wpinq.graphs import recipes, tags
from wpinq.plan.arithmetic import FLOAT

EDGES = wp.source("edges", src=int, dst=int)
TRIANGLES = recipes.triangles_by_intersect(EDGES)

Edges = list[tuple[int, int]]


def graph(seed: int, nodes: int, edges: int) -> Edges:
    rng, chosen = Random(seed), set()
    while len(chosen) < edges:
        a, b = rng.sample(range(nodes), 2)
        chosen.add((3 * min(a, b) - 7, 3 * max(a, b) - 7))
    return sorted(chosen)


def use_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluator, "import_module", interpret)
    monkeypatch.setattr(state, "import_module", interpret)


def targets(query: wp.Query) -> list[Goal]:
    return [Goal(query.plan, 0.5, {"triangle!": 9.0})]


def degrees(edges: Edges) -> Counter[int]:
    return Counter(end for edge in edges for end in edge)


def test_neighbour_lists_and_tables_make_the_same_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    use_interpreter(monkeypatch)
    start = graph(3, 16, 40)
    fast = SwapWalk(targets(TRIANGLES), "edges", start, seed=5)
    slow = SwapWalk(targets(TRIANGLES), "edges", start, seed=5, virtual=False)
    assert fast.specialised
    assert not slow.specialised
    for _ in range(4):
        a, b = fast.run(40, 3.0), slow.run(40, 3.0)
        assert (a.steps, a.evaluated, a.accepted) == (b.steps, b.evaluated, b.accepted)
        assert a.score == pytest.approx(b.score, abs=1e-9)
        assert fast.edges == slow.edges
    assert 0 < a.accepted < a.evaluated < a.steps


@pytest.mark.parametrize("outside", [False, True])
def test_a_last_step_that_scales_weights_leaves_the_walk_what_it_is(
    monkeypatch: pytest.MonkeyPatch, outside: bool
) -> None:
    """Scores, outputs and every decision, below the width and above it, inside the domain and outside."""
    use_interpreter(monkeypatch)
    once = wp.source("edges", src=int, dst=int)
    closed = tags.closed_wedges_by_tag(once, [0, 2, 6, 40], [0.5, 0.25, 0.25], [1.0, 0.5, 0.125])
    paired = tags.joint_degrees_by_tag(once, [0, 2, 4]).select_many(lambda p: [F.weighted(p, 1.0 / (1 + p[0] + p[1]))])
    goals = [
        Goal(closed.plan, 0.7, {0: 1.0, 1: 0.3, 7: 2.0}, outside, width=0.25),
        Goal(paired.plan, 0.4, {(0, 0): 2.0, (5, 5): 1.0}, outside, width=0.5),
    ]
    start = graph(3, 16, 40)
    fast, slow = (
        SwapWalk(goals, "edges", start, symmetric=False, seed=5, virtual=virtual) for virtual in (True, False)
    )
    assert (fast.specialised, slow.specialised) == (True, False)
    for _ in range(3):
        a, b = fast.run(30, 3.0), slow.run(30, 3.0)
        assert (a.evaluated, a.accepted) == (b.evaluated, b.accepted)
        assert a.score == pytest.approx(b.score, abs=1e-9)
        assert fast.edges == slow.edges
    for one, other in zip(fast.outputs, slow.outputs, strict=True):
        assert one == pytest.approx(other, abs=1e-9)
    assert 0 < a.accepted < a.evaluated


@pytest.mark.parametrize(
    "last",
    [
        lambda tag: [F.weighted(tag, F.where(tag == 0, 0.0, 1.0))],
        lambda tag: [F.weighted(tag, F.where(tag == 0, -0.5, 0.5))],
        lambda tag: [F.weighted(tag, 1e-160)],
        lambda tag: [F.weighted(tag, F.where(tag == 0, 0.5, 0.25)), F.weighted(9, 0.125)],
        lambda tag: [F.weighted(tag % 2, F.where(tag == 0, 0.5, 0.25))],
    ],
    ids=["dropped", "negative", "next to nothing", "two", "another record"],
)
def test_a_last_step_that_does_more_is_served_by_tables(monkeypatch: pytest.MonkeyPatch, last: Any) -> None:
    use_interpreter(monkeypatch)
    closed = tags.closed_wedges_by_tag(wp.source("edges", src=int, dst=int), [0, 2, 6, 40]).select_many(last)
    walk = SwapWalk([Goal(closed.plan, 1.0, {0: 1.0})], "edges", graph(3, 9, 14), symmetric=False, seed=5)
    assert not walk.specialised
    walk.run(10, 1.0)
    fresh = reference.evaluate(closed.plan, {"edges": dict.fromkeys(walk.edges, 1.0)}, FLOAT)
    assert {**dict.fromkeys(fresh, 0.0), **walk.outputs[0]} == pytest.approx(fresh, abs=1e-9)


def test_compiled_and_interpreted_walks_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    start = graph(4, 30, 90)
    compiled = SwapWalk(targets(TRIANGLES), "edges", start, seed=11)
    compiled.run(3000, 2.0)
    use_interpreter(monkeypatch)
    interpreted = SwapWalk(targets(TRIANGLES), "edges", start, seed=11)
    interpreted.run(3000, 2.0)
    assert compiled.edges == interpreted.edges
    assert compiled.outputs[0]["triangle!"] == pytest.approx(interpreted.outputs[0]["triangle!"], abs=1e-9)


def test_tables_compiled_and_interpreted_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    near = EDGES.where(lambda e: (e.src - e.dst) * (e.src - e.dst) < 40).select(lambda e: e.src % 2)
    start = graph(5, 30, 90)

    def walk() -> SwapWalk:
        return SwapWalk([Goal(near.plan, 1.0, {0: 30.0, 1: 20.0})], "edges", start, seed=2)

    compiled = walk()
    compiled.run(1000, 0.3)
    use_interpreter(monkeypatch)
    interpreted = walk()
    interpreted.run(1000, 0.3)
    assert compiled.edges == interpreted.edges
    assert compiled.outputs == interpreted.outputs
    assert 0 < compiled.progress.accepted < compiled.progress.evaluated


def test_a_walk_keeps_degrees_and_a_simple_graph_and_its_outputs_are_true() -> None:
    start = graph(6, 40, 150)
    walk = SwapWalk(targets(TRIANGLES), "edges", start, seed=3)
    walk.run(20_000, 1.0)
    end = walk.edges
    assert degrees(end) == degrees(start)
    assert end != start
    assert len({frozenset(edge) for edge in end}) == len(start)
    assert all(a != b for a, b in end)
    both = {edge: 1.0 for a, b in end for edge in ((a, b), (b, a))}
    fresh = reference.evaluate(TRIANGLES.plan, {"edges": both}, FLOAT)
    assert walk.outputs[0]["triangle!"] == pytest.approx(fresh["triangle!"], abs=1e-9)
    assert walk.progress.score == pytest.approx(0.5 * abs(fresh["triangle!"] - 9.0), abs=1e-9)
    walk.resynchronize()
    assert walk.outputs[0]["triangle!"] == pytest.approx(fresh["triangle!"], abs=1e-12)


def test_without_a_score_every_graph_is_as_likely() -> None:
    # the 12 cycles through 5 vertices; chi-squared of 11 degrees of freedom exceeds 31.26 with probability 0.001
    walk = SwapWalk(targets(TRIANGLES), "edges", [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)], seed=8)
    counts: Counter[frozenset[frozenset[int]]] = Counter()
    for _ in range(2400):
        walk.run(25, 0.0)
        counts[frozenset(frozenset(edge) for edge in walk.edges)] += 1
    assert len(counts) == 12
    assert sum((count - 200) ** 2 / 200 for count in counts.values()) < 31.26


@pytest.mark.parametrize("outside", [False, True])
def test_scores_are_distances_over_the_domain(monkeypatch: pytest.MonkeyPatch, outside: bool) -> None:
    use_interpreter(monkeypatch)
    start = graph(7, 8, 14)
    values = {(i, j): 0.25 for i in range(4) for j in range(4)}
    walk = SwapWalk(
        [Goal(recipes.joint_degrees(EDGES).plan, 0.3, values, outside), *targets(TRIANGLES)], "edges", start, seed=1
    )
    walk.run(15, 0.5)
    joint, triangles = walk.outputs
    expected = sum(0.3 * abs(joint.get(key, 0.0) - value) for key, value in values.items())
    beyond = sum(0.3 * abs(weight) for key, weight in joint.items() if key not in values)
    assert beyond > 0.1
    expected += beyond * outside + 0.5 * abs(triangles.get("triangle!", 0.0) - 9.0)
    assert walk.progress.score == pytest.approx(expected, abs=1e-9)


def test_the_neighbour_lists_are_chosen_by_the_plan_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    use_interpreter(monkeypatch)
    wedges = EDGES.join(EDGES, lambda x: x.src, lambda y: y.src, lambda x, y: (x.dst, y.src, y.dst))
    closed = wedges.where(lambda p: p[2] != p[0]).intersect(wedges.select(lambda p: (p[1], p[2], p[0])))
    start = graph(8, 10, 24)
    walks = [
        SwapWalk([Goal(closed.select(lambda p: 7).plan, 1.0, {7: 4.0})], "edges", start, seed=4, virtual=virtual)
        for virtual in (True, False)
    ]
    assert walks[0].specialised
    for walk in walks:
        walk.run(60, 1.0)
    assert walks[0].edges == walks[1].edges
    assert walks[0].progress.score == pytest.approx(walks[1].progress.score, abs=1e-9)
    others = [closed.select(lambda p: p[0]), wedges.select(lambda p: 7), recipes.squares_by_degree(EDGES)]
    for query in others:
        assert not SwapWalk([Goal(query.plan, 1.0, {})], "edges", start).specialised


@pytest.mark.parametrize("changing", [None, 0.5])
def test_steps_at_which_norms_grow_far_are_made_all_the_same(
    monkeypatch: pytest.MonkeyPatch, changing: float | None
) -> None:
    use_interpreter(monkeypatch)
    ends = EDGES.join(EDGES, lambda x: x.src, lambda y: y.dst, lambda x, y: (x.dst, y.src)).select(lambda p: p[0] % 3)
    target, start = Goal(ends.plan, 0.5, {0: 5.0, 1: 2.0}), graph(8, 10, 16)

    def walk() -> SwapWalk | EdgeWalk:
        if changing is None:
            return SwapWalk([target], "edges", start, symmetric=False, seed=4, virtual=False)
        return EdgeWalk([target], "edges", start, range(9), symmetric=False, seed=4, changing=changing)

    plain = walk()
    monkeypatch.setitem(hash_table.CONSTANTS, "GROWTH", 0.9)
    checked = walk()
    assert plain.run(60, 1.0).score == pytest.approx(checked.run(60, 1.0).score, abs=1e-9)
    assert plain.edges == checked.edges
    assert 0 < plain.progress.accepted == checked.progress.accepted
    assert checked._engine.loads > 10 if isinstance(checked, EdgeWalk) else True


def test_a_walk_is_over_the_edges_of_a_simple_graph() -> None:
    for edges in ([(1, 2)], [(1, 2), (2, 1)], [(1, 1), (1, 2)]):
        with pytest.raises(PlanError, match="two edges or more, each edge once, and no loops"):
            SwapWalk(targets(TRIANGLES), "edges", edges)
    with pytest.raises(PlanError, match="'nodes' is not one here"):
        SwapWalk(targets(TRIANGLES), "nodes", [(1, 2), (3, 4)])


def test_the_compiled_evaluator_is_the_interpreted_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def history() -> list[object]:
        query = EDGES.group_by(lambda e: e.src % 3, lambda g: F.max(g, lambda e: e.dst)).select(lambda p: p.val)
        engine = CompiledEvaluator([query.plan], {"edges": {(i, i * i % 7): 1.0 + i % 2 for i in range(9)}})
        rng, seen = Random(9), []
        for step in range(200):
            engine.propose({"edges": {(rng.randrange(12), rng.randrange(7)): rng.choice([1.0, -0.5, 0.25])}})
            engine.rollback() if step % 3 == 0 else engine.commit()
            seen.append(sorted(engine.outputs[0].items()))
        return seen

    compiled = history()
    use_interpreter(monkeypatch)
    assert compiled == history()


TINY = """
from numba import njit


@njit(cache=True)
def double(x):
    return 2 * x


class compiler:
    def compile_inner():
        pass

    def compile_entries():
        double.compile("int64(int64)")
"""


@pytest.mark.parametrize("cause", ["no home", "a cache folder that is a file"])
def test_without_a_folder_of_the_users_own_nothing_is_written_but_temporary_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cause: str
) -> None:
    def no_home() -> Path:
        raise RuntimeError("could not determine home directory")

    for variable in (modules.CACHE_VARIABLE, "XDG_CACHE_HOME", "NUMBA_CACHE_DIR"):
        monkeypatch.delenv(variable, raising=False)
    if cause == "no home":
        monkeypatch.setattr(modules.Path, "home", no_home)
    else:
        (tmp_path / "file").touch()
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    modules._temporary.cache_clear()
    folders = set()
    for text in (f"CAUSE = {cause!r}\n{TINY}", f"MORE = {cause!r}\n{TINY}"):
        module = modules.import_module(text)
        assert module.double(21) == 42
        folders.add(Path(str(module.__file__)).parent)
    (folder,) = folders  # one for all modules
    assert folder.parent == tmp_path
    assert list((folder / "__pycache__").glob("*.nbi")), "numba keeps its code beside the module"
    modules._temporary().cleanup()
    modules._temporary.cache_clear()


def test_generated_modules_stand_in_a_folder_of_the_users_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    monkeypatch.setenv(modules.CACHE_VARIABLE, str(tmp_path))
    with pytest.raises(CannotCompile, match="must name a folder that its owner can write, and nobody else"):
        CompiledEvaluator([EDGES.where(lambda e: e.src == 12345).plan], {"edges": {}})
    assert not list(tmp_path.iterdir())


ONCE = wp.source("edges", src=int, dst=int)
CLOSED = tags.closed_wedges_by_tag(ONCE, [0, 2, 6, 40], [0.5, 0.25, 0.25], [1.0, 0.5, 0.125])
JOINT = tags.joint_degrees_by_tag(ONCE, [0, 2, 4])


def tagged(start: Edges, closing: float = 0.5) -> SwapWalk:
    goals = [Goal(CLOSED.plan, 0.7, {0: 1.0, 1: 2.0}, width=0.25), Goal(JOINT.plan, 0.4, {(0, 0): 2.0}, width=0.5)]
    return SwapWalk(goals, "edges", start, symmetric=False, seed=5, closing=closing)


def test_a_walk_with_rows_is_the_interpreted_one_in_as_many_calls_as_there_are_marks_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start = graph(3, 40, 160)
    walks = [tagged(start)]
    use_interpreter(monkeypatch)
    walks.append(tagged(start))
    walks.append(tagged(start))
    walks[0].run(600, 3.0)
    walks[1].run(600, 3.0)
    calls: list[str] = []
    call = state.NeighbourWalk._call
    monkeypatch.setattr(state, "MARKS", 500)
    monkeypatch.setattr(
        state.NeighbourWalk, "_call", lambda self, name, **given: (calls.append(name), call(self, name, **given))
    )
    walks[2].run(600, 3.0)
    assert calls.count("walk") > 10
    assert walks[0].edges == walks[1].edges == walks[2].edges
    assert walks[0].progress.accepted > 20
    assert walks[1].progress == walks[2].progress
    for one, other in zip(walks[0].outputs, walks[1].outputs, strict=True):
        assert one == pytest.approx(other, abs=1e-12)


def test_steps_that_tell_vertices_by_degrees_are_evaluated_for_one_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows are those of all vertices, to the bit; a step that asks what a vertex is called is evaluated whole."""
    found: list[dict[Any, Any]] = []
    sizes: list[int] = []
    rows, by_degree = NeighbourWalk._invariant_rows, NeighbourWalk._by_degree
    monkeypatch.setattr(
        NeighbourWalk, "_invariant_rows", lambda self, columns: (found.append(rows(self, columns)), found[-1])[1]
    )

    def counted(self: NeighbourWalk, node: Any, images: Any, vertices: Any) -> Any:
        sizes.append(len(vertices))
        return by_degree(self, node, images, vertices)

    monkeypatch.setattr(NeighbourWalk, "_by_degree", counted)
    use_interpreter(monkeypatch)
    start = graph(3, 40, 160)
    tagged(start)
    assert max(sizes) == len({*degrees(start).values()}) < 20
    monkeypatch.setattr(NeighbourWalk, "_vertex_column", lambda self, step: None)
    tagged(start)
    assert max(sizes) == 40
    for one, other in zip(*(list(each.values()) for each in found), strict=True):
        held = [sorted(zip(map(tuple, r.words.tolist()), r.weights.tolist(), strict=True)) for r in (one, other)]
        assert held[0] == held[1]


@pytest.mark.parametrize("asks", ["select", "shave"])
def test_a_step_that_asks_for_the_name_of_a_vertex_is_evaluated_for_all(
    monkeypatch: pytest.MonkeyPatch, asks: str
) -> None:
    ends = ONCE.select_many(lambda e: [F.weighted(e.src, 0.5), F.weighted(e.dst, 0.5)])
    if asks == "select":
        told = ends.shave(0.5).select(lambda p: (p.record, p.index + p.record % 3))
    else:
        told = ends.shave(lambda v: [F.where(v % 2 == 0, 0.5, 1.0)] * 3).select(lambda p: (p.record, p.index))
    half = ONCE.concat(ONCE.select(lambda e: (e.dst, e.src)))
    query = half.join(told, lambda e: e[0], lambda t: t[0], lambda e, t: t[1])
    use_interpreter(monkeypatch)
    start = graph(3, 16, 40)
    walk = SwapWalk([Goal(query.plan, 1.0, {0: 3.0})], "edges", start, symmetric=False, seed=1)
    assert walk.specialised
    fresh = reference.evaluate(query.plan, {"edges": dict.fromkeys(start, 1.0)}, FLOAT)
    assert walk.outputs[0] == pytest.approx(fresh, abs=1e-9)
