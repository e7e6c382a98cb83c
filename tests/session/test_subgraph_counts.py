"""Counts of triangles, stars and 4-cliques: which plans they take, what they cost, and what becomes of them."""

from __future__ import annotations

import contextlib
import io
import math
import pathlib
import pickle
import random
from collections.abc import Callable
from datetime import date
from fractions import Fraction
from itertools import accumulate, combinations
from typing import Any

import pytest

import wpinq as wp
from tests.support.parameters import for_each, tenth
from wpinq import functions as F, graphs
from wpinq.api.simulate import weights_of
from wpinq.cli.main import main
from wpinq.columns.records import fetch
from wpinq.engines.sql.duckdb import database
from wpinq.engines.sql.duckdb.database import Database
from wpinq.errors import EpsilonError
from wpinq.language import parse
from wpinq.measure.measurement import Measurement
from wpinq.noise.geometric import add_geometric
from wpinq.noise.ladder import draw_count
from wpinq.plan.arithmetic import FLOAT
from wpinq.sinks import graph_counts
from wpinq.sinks.answer_kinds import Stated
from wpinq.sinks.graph_counts import FourCliqueCount, StarCount, SubgraphCount, TriangleCount, edges_of
from wpinq.sinks.graph_ladders import clique_ladder, simple_graph, star_ladder, triangle_ladder

ONCE = wp.source("edges", src=int, dst=int, unit="one edge", facts=["unit_weights"])
BOTH = wp.source("edges", src=int, dst=int, unit_weight=2, facts=["unit_weights", "symmetric"])
TIE = wp.source("ties", a=str, b=str, person="who", at_most=7, facts=["unit_weights"])
NAMES = wp.source("edges", src=str, dst=str, unit="one edge", facts=["unit_weights"])
HUGE = 10**6
"""An epsilon at which noise is 0 but with a chance of 1e-13."""

GRAPH = [*combinations(range(6), 2), (5, 6), (6, 7), (7, 5)]
COUNTS: dict[str, tuple[Callable[..., Measurement], int]] = {
    "triangles": (graphs.triangle_count, 21),
    "3-stars": (lambda edges, **given: graphs.star_count(edges, 3, **given), 5 * 10 + 35),
    "4-cliques": (graphs.four_clique_count, 15),
}


def pairs(query: wp.Query, data: Any, engine: str) -> set[frozenset[int]]:
    """The graph that a count would see."""
    (weights,) = weights_of([query.plan], data, engine, FLOAT)
    return {frozenset(e) for e in edges_of(weights) if e[0] != e[1]}


PLANS: dict[str, Callable[[wp.Query], wp.Query]] = {
    "itself": lambda e: e,
    "its reverse": lambda e: e.select(lambda r: (r.dst, r.src)),
    "renamed": lambda e: e.select(lambda r: F.record(one=r.dst, other=r.src)),
    "symmetrized": graphs.symmetrize,
    "union with its reverse": lambda e: e.union(e.select(lambda r: F.reverse(r))),
    "where": lambda e: graphs.symmetrize(e.where(lambda r: r.src != 3)),
    "where above": lambda e: graphs.symmetrize(e).where(lambda r: (r[0] != 3) & (r[1] != 3)),
    "twice": lambda e: e.concat(e),
}


@for_each("engine", ["reference", "duckdb"])
@for_each("plan", PLANS)
def test_plans_give_the_pairs_of_either_direction(plan: str, engine: str) -> None:
    data = {"edges": [*GRAPH, (1, 0), (2, 2), (9, 8)]}
    expected = {frozenset(e) for e in [*GRAPH, (9, 8)]}
    if plan == "where":
        expected -= {frozenset(e) for e in GRAPH if e[0] == 3}
    if plan == "where above":
        expected = {e for e in expected if 3 not in e}
    assert pairs(PLANS[plan](ONCE), data, engine) == expected


@for_each("plan", PLANS)
@for_each("count", COUNTS)
def test_every_plan_over_one_source_costs_epsilon_an_edge(count: str, plan: str) -> None:
    make, _ = COUNTS[count]
    for source, unit in (
        (ONCE, 1),
        (BOTH, 1),
        (wp.source("edges", src=int, dst=int, unit_weight=3, facts=["unit_weights"]), 3),
    ):
        assert dict(wp.bill(make(PLANS[plan](source), epsilon="0.3"))) == {"edges": Fraction(3, 10) * unit}


def test_a_person_pays_for_each_row() -> None:
    bill = wp.bill(graphs.triangle_count(TIE, epsilon="0.1"))
    assert str(bill) == (
        "ties: 0.7\n"
        "  protects one person, at most 7 rows, of weight 7\n"
        "  declared: every record weighs exactly 1\n"
        "  TriangleCount(0.1), spent once for each edge: 0.1 x 1 x 7 = 0.7"
    )
    assert "spent once for each edge, which is two records: 0.1 x 1/2 x 2 = 0.1" in str(
        wp.bill(graphs.triangle_count(BOTH, epsilon="0.1"))
    )


def test_a_unit_of_the_bill_changes_no_more_edges_than_it_pays_for() -> None:
    """Whatever the plan, and for either declaration: edges that change, against weight that does."""
    chance = random.Random(1)
    for plan in PLANS.values():
        for _ in range(60):
            held = {(chance.randrange(5), chance.randrange(5)) for _ in range(8)}
            moved = held ^ {(chance.randrange(5), chance.randrange(5)) for _ in range(chance.randint(1, 3))}
            query = plan(ONCE)
            one, other = (pairs(query, {"edges": sorted(data)}, "reference") for data in (held, moved))
            assert len(one ^ other) <= len(held ^ moved)
            mirrored = [data | {(b, a) for a, b in data} for data in (held, moved)]
            query = plan(BOTH)
            one, other = (pairs(query, {"edges": sorted(data)}, "reference") for data in mirrored)
            assert 2 * len(one ^ other) <= len(mirrored[0] ^ mirrored[1])


LISTED = wp.source("edges", src=int, dst=int)
OTHER = wp.source("others", src=int, dst=int, facts=["unit_weights"])
WIDE = wp.source("wide", src=int, dst=int, at=int, facts=["unit_weights"])
UNFIT: dict[str, tuple[Callable[[], wp.Query], str]] = {
    "any weights": (lambda: LISTED, r'declare facts=\["unit_weights"\]'),
    "other select": (lambda: ONCE.select(lambda e: (e.src, e.dst % 2)), "exchange the two ends"),
    "one end twice": (lambda: ONCE.select(lambda e: (e.src, e.src)), "exchange the two ends"),
    "constants": (lambda: ONCE.select(lambda e: (1, 2)), "exchange the two ends"),
    "three fields": (lambda: WIDE.select(lambda e: (e.src, e.dst)), "two fields of one type"),
    "paths": (lambda: graphs.paths(ONCE).select(lambda p: (p[0], p[2])), "Join is none of these"),
    "two sources": (lambda: ONCE.concat(OTHER), "one source"),
    "shave": (lambda: ONCE.shave(0.5).select(lambda p: p.record), "none of these"),
    "partition": (lambda: ONCE.partition(lambda e: e.src % 2, [0])[0], "Partition is none of these"),
    "except": (lambda: ONCE.difference(ONCE.where(lambda e: e.src > 3)), "Except is none of these"),
    "intersect": (lambda: ONCE.intersect(ONCE.select(lambda e: (e.dst, e.src))), "Intersect is none of these"),
}


@for_each("count", COUNTS)
@for_each("case", UNFIT)
def test_what_one_record_does_not_decide_is_refused(case: str, count: str) -> None:
    make, why = UNFIT[case]
    with pytest.raises(wp.PlanError, match=why):
        COUNTS[count][0](make(), epsilon=1)


def test_what_is_asked_for_must_make_sense() -> None:
    for share in (1, "1.5", 0, -1):
        with pytest.raises(wp.WpinqError):
            graphs.triangle_count(ONCE, 1, interval_share=share)
    for k in (1, 0, 21, True, 2.0, "3"):
        with pytest.raises(wp.PlanError, match="edges"):
            graphs.star_count(ONCE, k, 1)
    for epsilon in (0, -1, float("nan"), True):
        with pytest.raises(EpsilonError):
            graphs.triangle_count(ONCE, epsilon)
    for share in (0.5, 1, Fraction(1), Fraction(0)):
        with pytest.raises(wp.PlanError, match="share"):
            TriangleCount(share)
    with pytest.raises(wp.PlanError, match="expected the query of"):
        graphs.triangle_count([(1, 2)], 1)


def test_what_was_made_by_hand_is_refused_before_the_debit() -> None:
    with wp.Session() as session:
        session.protect(ONCE, GRAPH, budget=10)
        for domain in (None, (), ("count", "common neighbours"), ("other",)):
            with pytest.raises(wp.PlanError, match="keys of its own"):
                session.release(Measurement(ONCE.plan, TriangleCount(), Fraction(1), domain))
        for epsilon in (Fraction(0), Fraction(-1)):
            with pytest.raises(EpsilonError):
                session.release(Measurement(ONCE.plan, TriangleCount(), epsilon, ("count",)))
        doubled = ONCE
        for _ in range(60):
            doubled = doubled.concat(doubled)
        with pytest.raises(EpsilonError, match="exact evaluation"):
            session.release(graphs.triangle_count(doubled, 1))
        assert session.spent("edges") == 0


@for_each("engine", ["reference", "duckdb"])
@for_each("source", [ONCE, BOTH], ids=["once", "both"])
@for_each("count", COUNTS)
def test_a_count_is_released_debited_and_replayed(
    count: str, source: wp.Query, engine: str, tmp_path: pathlib.Path
) -> None:
    make, true = COUNTS[count]
    data = GRAPH if source is ONCE else [*GRAPH, *((b, a) for a, b in GRAPH)]
    path = tmp_path / "ledger.db"
    with wp.Session(path, engine=engine) as session:
        session.protect(source, data, budget=10 * HUGE, version="one")
        answers = session.release(make(source, epsilon=HUGE, interval_share="0.5"))
        assert answers.value == answers["count"] == true
        low, high = answers.value_interval(0.95)
        assert low <= true <= high
        assert session.spent("edges") == HUGE
        again = session.release(make(source, epsilon="0.5", interval_share="0.5"))
        without = session.release(make(source, epsilon="0.5"))
        assert session.spent("edges") == HUGE + 1
        assert list(without.keys) == ["count"]
        with pytest.raises(wp.AnswersError, match=r"interval_share=0\.1"):
            without.value_interval()
        assert session.release(make(source, epsilon="0.5", interval_share="0.5"), fresh=True).keys == again.keys
    with wp.Session(path, engine=engine) as session:
        session.protect(source, data, budget=10 * HUGE, version="one")
        replayed = session.release(make(source, epsilon="0.5", interval_share="0.5"))
        assert list(replayed.values) == list(again.values)
        assert session.spent("edges") == HUGE + Fraction(3, 2)
    for kept in (wp.Answers.from_json(again.to_json()), pickle.loads(pickle.dumps(again))):
        assert kept.to_json() == again.to_json()
        assert kept.value_interval(0.9) == again.value_interval(0.9)
        assert kept.at(["count"])[0] == again["count"]
    (row,) = again.rows()
    assert (row.estimate, (row.low, row.high), row.kind) == (again.value, again.value_interval(), "count")
    with pytest.raises(wp.AnswersError, match="one interval"):
        again.interval("count")


def test_a_file_with_other_keys_or_another_plan_is_refused() -> None:
    data = wp.simulate(graphs.star_count(ONCE, 3, 1, interval_share="0.1"), {"edges": GRAPH}, seed=1).to_json()
    assert data["sink"] == {"name": "StarCount", "interval_share": "1/10", "edges": 3}
    for change in (
        {"keys": ["highest degree", "count"]},
        {"keys": ["count", "other"]},
        {"sink": {"name": "StarCount", "interval_share": None, "edges": 3}},
        {"sink": {"name": "StarCount", "interval_share": "3/2", "edges": 3}},
        {"sink": {"name": "StarCount", "interval_share": "1/10", "edges": 99}},
        {"sink": {"name": "FourCliqueCount", "interval_share": "1/10"}},
        {"plan": wp.simulate(LISTED.noisy_count(1, over=[(1, 2)]), {"edges": []}, seed=1).to_json()["plan"]},
    ):
        with pytest.raises(wp.AnswersError):
            wp.Answers.from_json({**data, **change})


def test_what_fails_is_hidden_and_stays_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(records: object) -> None:
        raise MemoryError("405,740 edges are too many")

    monkeypatch.setattr(graph_counts, "simple_graph", exhausted)
    with wp.Session() as session:
        session.protect(ONCE, GRAPH, budget=1)
        with pytest.raises(wp.EvaluationFailed) as caught:
            session.release(graphs.triangle_count(ONCE, 1))
        assert "405" not in str(caught.value)
        assert caught.value.__cause__ is caught.value.__context__ is None
        assert session.remaining("edges") == 0


def test_no_repr_shows_a_ladder() -> None:
    graph = simple_graph(GRAPH)
    for held in (graph, triangle_ladder(graph), star_ladder(graph, 3), clique_ladder(graph)):
        assert repr(held).startswith(("<wpinq.noise.ladder.", "<wpinq.sinks.graph_ladders."))


def test_text_and_methods_are_equal() -> None:
    for share in (None, "0.1"):
        given = "" if share is None else f", interval_share: {share}"
        program = parse(
            'source edges(src: int, dst: int) with unit = "one edge", facts = [unit_weights];\n'
            f"var a = edges.TriangleCount(0.5{given});\n"
            f"var b = edges.Select(e => reverse(e)).Concat(edges).StarCount(0.5, 4{given});\n"
            f"var c = edges.FourCliqueCount(0.5{given});\n"
        )
        assert str(parse(str(program))) == str(program)
        assert [program[name] for name in "abc"] == [
            graphs.triangle_count(ONCE, 0.5, share),
            graphs.star_count(graphs.symmetrize(ONCE), 4, 0.5, share),
            graphs.four_clique_count(ONCE, 0.5, share),
        ]
    with pytest.raises(wp.LanguageError, match="unit_weights"):
        parse("source edges(src: int, dst: int);\nvar a = edges.TriangleCount(0.5);\n")
    with pytest.raises(wp.LanguageError, match="integer"):
        parse("source edges(src: int, dst: int) with facts = [unit_weights];\nvar a = edges.StarCount(1, 2.5);\n")


@pytest.mark.parametrize(
    ("type_", "vertices"),
    [(str, ["a", "b", "c"]), (date, [date(2026, 1, day) for day in (1, 2, 3)]), (int | None, [1, 2, None])],
)
def test_vertices_are_of_any_type(type_: Any, vertices: list[Any]) -> None:
    named = wp.source("named", one=type_, other=type_, facts=["unit_weights"])
    rows = [*combinations(vertices, 2), (vertices[0], vertices[0])]
    with wp.Session() as session:
        session.protect(named, rows, budget=3 * HUGE)
        for edges in (named, graphs.symmetrize(named), named.select(lambda e: (e.other, e.one))):
            assert session.release(graphs.triangle_count(edges, HUGE)).value == 1


def test_explanations_say_what_a_count_costs_and_what_to_expect(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "count.wpq"
    path.write_text(
        "source edges(src: int, dst: int) with unit_weight = 2, facts = [unit_weights, symmetric];\n"
        "var t = edges.TriangleCount(0.5, interval_share: 0.2);\n"
    )
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        assert main(["explain", str(path)]) in (None, 0)
    text = shown.getvalue()
    assert "An edge of the graph is two records of edges: a release costs epsilon x 0.5 x 2" in text
    reach = TriangleCount(Fraction(1, 5)).error(ONCE.plan, Fraction(1, 2), None, 0.95, Stated(width=100))
    assert f"common neighbours 100: 95 % of answers lie within {reach:.4g} of the count." in text
    assert "A share 0.2 of epsilon buys an interval" in text
    assert "NoisyCount" not in text


SPARSE = [*combinations(range(25), 2), *((0, v) for v in range(25, 80)), *((v, v + 1) for v in range(80, 400))]
CLIQUE = [*combinations(range(120), 2)]


@pytest.mark.parametrize(("edges", "share"), [(SPARSE, "0.2"), (CLIQUE, "0.5")], ids=["sparse", "clique"])
@pytest.mark.parametrize("kind", tenth(COUNTS, 3))
def test_intervals_cover(kind: str, edges: list[tuple[int, int]], share: str) -> None:
    """At 80 %, of 300 draws with fixed seeds; where the noise of the width is small they cover not much more.

    Of 4-cliques it is small in neither graph: they cover nearly all.
    """
    asked = COUNTS[kind][0](ONCE, epsilon=1, interval_share=share)
    sink = asked.sink
    assert isinstance(sink, SubgraphCount)
    ladder, bytes_of, covered = sink.ladder(simple_graph(edges)), random.Random(7).randbytes, 0
    for_count, for_width = sink.epsilons(asked.epsilon)
    scale = float(2 / for_count)
    for _ in range(300):
        (width,) = add_geometric([ladder.width], float(1 / for_width), bytes_of)
        numbers = {"count": float(draw_count(ladder, scale, bytes_of)), sink.width_key: float(width)}
        low, high = sink.value_interval(numbers, scale, 0.8)
        covered += low <= ladder.count <= high
    most = {"triangles": 0.94, "3-stars": 0.98}.get(kind, 1) if edges is CLIQUE else 1
    assert 0.8 * 300 - 3 * (300 * 0.8 * 0.2) ** 0.5 <= covered <= most * 300


@pytest.mark.parametrize("kind", COUNTS)
def test_what_is_expected_for_a_width_is_what_a_graph_of_this_width_has(kind: str) -> None:
    """A clique of 102: the distance that 95 % of its law lies within, by adding up, and by the bounds."""
    sink = COUNTS[kind][0](ONCE, epsilon="0.4").sink
    assert isinstance(sink, SubgraphCount)
    ladder = sink.ladder(simple_graph(combinations(range(102), 2)))
    weights = [1.0, *(2 * ladder.sensitivity(t) * math.exp(-0.2 * (t + 1)) for t in range(300))]
    held = list(accumulate(weights))
    within = ladder.reach(next(j for j, weight in enumerate(held) if weight >= 0.95 * held[-1]))
    assert within <= sink.error(ONCE.plan, Fraction(2, 5), None, 0.95, Stated(width=ladder.width)) <= 2 * within


def test_the_width_bounds_every_local_sensitivity() -> None:
    chance = random.Random(6)
    sinks: list[SubgraphCount] = [TriangleCount(), FourCliqueCount(), StarCount(None, 2), StarCount(None, 4)]
    for _ in range(60):
        n = chance.randint(2, 12)
        graph = simple_graph([pair for pair in combinations(range(n), 2) if chance.random() < 0.5])
        for sink in sinks:
            ladder = sink.ladder(graph)
            low, high = Polynomial(sink.lower(ladder.width)), Polynomial(sink.upper(ladder.width))
            for t in range(15):
                assert low.at(t) <= ladder.sensitivity(t) <= high.at(t)


class Polynomial:
    def __init__(self, differences: Any) -> None:
        self.differences = differences

    def at(self, t: int) -> float:
        total, term = 0.0, 1.0
        for m, difference in enumerate(self.differences):
            total += difference * term
            term = term * (t - m) / (m + 1)
        return total


def test_a_table_shows_the_count() -> None:
    from wpinq.cli.output import answers_table

    asked = graphs.triangle_count(ONCE, HUGE, interval_share="0.5")
    _, heads, row, *_ = answers_table("t", wp.simulate(asked, {"edges": GRAPH}, seed=1)).splitlines()
    assert heads.split() == ["estimate", "95", "%", "interval", "kind"]
    assert row.split()[0] == "21"
    assert row.endswith("count")
    asked = graphs.triangle_count(ONCE, HUGE)
    _, _, row, last = answers_table("t", wp.simulate(asked, {"edges": GRAPH}, seed=1)).splitlines()
    assert row.split() == ["21", "none", "count"]
    assert last == "  number of triangles; no interval was bought (interval_share)"


@pytest.mark.parametrize("plan", [plan for plan in PLANS if "where" not in plan])
def test_a_graph_of_integers_comes_by_column_and_no_record_as_an_object(
    monkeypatch: pytest.MonkeyPatch, plan: str
) -> None:
    query, asked = PLANS[plan](ONCE), list[str]()
    rows = Database().integer_rows(query.plan, {"edges": dict.fromkeys(GRAPH, 1.0)})
    assert rows is not None
    assert {frozenset(row) for row in rows.tolist() if row[0] != row[1]} == pairs(query, {"edges": GRAPH}, "reference")

    def fetched(*given: Any) -> Any:
        asked.append("whole")
        return fetch(*given)

    monkeypatch.setattr(database, "fetch", fetched)
    for source, data in ((ONCE, GRAPH), (NAMES, [(str(a), str(b)) for a, b in GRAPH])):
        with wp.Session() as session:
            session.protect(source, data, budget=HUGE)
            asked.clear()
            assert session.release(graphs.triangle_count(PLANS[plan](source), HUGE)).value == 21
        assert asked == (["whole"] if source is NAMES else [])
