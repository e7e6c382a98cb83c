"""Strategies as text programs, on the relational engine, and through a session."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

import wpinq as wp
from tests.support.parameters import for_each
from tests.support.processor import bounded_work
from tests.support.relational import evaluate as evaluate_relational
from wpinq.histograms import (
    CountOfCounts,
    Hierarchical,
    HierarchicalCounts,
    Identity,
    MatrixMechanism,
    PIdentity,
    Product,
    Sorted,
    Tree,
    Wavelet,
)
from wpinq.language import parse, unparse

items = wp.source("items", group=int, bin=int, weights=True)
STRATEGIES = {
    "identity": Identity(6),
    "sorted": Sorted(6),
    "hierarchical": Hierarchical(6, 3),
    "wavelet": Wavelet(6),
    "matrix": MatrixMechanism([[1, 1, 1, 1], [2, 0, 0, -1], [0, 0, 1.5, 0]]),
    "optimised": PIdentity(np.random.default_rng(0).uniform(0, 1, (2, 6))),
    "naive": CountOfCounts(5, 9, "naive"),
    "cumulative": CountOfCounts(5, 9, "cumulative"),
    "unattributed": CountOfCounts(5, 9, "unattributed"),
}
QUERIES = {
    **{name: strategy.query(items, bin=lambda r: r.bin) for name, strategy in STRATEGIES.items()},
    "product": Product(Hierarchical(4), Wavelet(4)).query(items, bin=lambda r: (r.group, r.bin)),
    "locations": HierarchicalCounts(Tree([[2], [1, 2]]), [2, 2, 2], 9).query(
        items, 1, group=lambda r: r.group, location=lambda r: r.bin
    ),
}
DATA = {(g, b): float(1 + (g * b) % 3) for g in range(5) for b in range(-1, 7)}


@for_each("name", QUERIES)
def test_text_states_the_same_plan(name):
    assert parse(unparse({name: QUERIES[name]}))[name] == QUERIES[name]


def test_large_tables_are_stated_and_evaluated():
    rng = np.random.default_rng(3)
    strategy = PIdentity(rng.uniform(0, 0.1, (8, 2000)))
    query = strategy.query(items, bin=lambda r: r.bin)
    assert parse(unparse({"q": query}))["q"] == query
    bins = rng.integers(0, 2000, 5000)
    with bounded_work():
        found = evaluate_relational(query.plan, {"items": {(i, int(b)): 1.0 for i, b in enumerate(bins)}})
    released = [found[key] for key in strategy.keys if key in found]
    answers = strategy.apply(np.bincount(bins, minlength=2000).astype(float))
    np.testing.assert_allclose(released, answers[answers != 0], rtol=1e-12)


def test_programs_written_by_hand():
    program = parse("""
        source items(group: int, bin: int) with weights = true;
        var bins = items.Select(r => r.bin).Where(x => x >= 0 && x < 6);
        var hierarchical = bins.SelectMany(x => [
            new { height = 0, position = x }, new { height = 1, position = x / 3 },
            new { height = 2, position = x / 9 }]);
        var sorted = bins.Shave(1.0).Select(p => p.index).Shave(1.0).Select(p => p.index);
        var cumulative = items.Select(r => r.bin).Shave(1.0).Select(p => p.index);
    """)
    for name in ("hierarchical", "sorted", "cumulative"):
        assert program[name] == QUERIES[name]


@for_each("name", QUERIES)
def test_the_relational_engine_agrees(name):
    expected = wp.evaluate(QUERIES[name], {"items": DATA})
    found = wp.WeightedDataset(evaluate_relational(QUERIES[name].plan, {"items": DATA}))
    assert expected.distance(found) < 1e-12


def test_through_a_session():
    people = wp.source("people", age=int, unit="one person", cap=10**6)
    strategy = Hierarchical(8, 2)
    with wp.Session() as session:
        session.protect(people, [{"age": a} for a in (1, 1, 1, 5, 7)], budget=10_000)
        answers = session.release(strategy.measure(people, 9_999, bin=lambda r: r.age))
        assert session.remaining("people") == Fraction(1)
    assert strategy.infer(answers).round(1).tolist() == [0, 3, 0, 0, 0, 1, 0, 1]
    lower, upper = strategy.interval(answers, [1, 1, 1, 1, 0, 0, 0, 0], 0.99)
    assert lower < upper < lower + 0.1
