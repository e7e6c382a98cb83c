"""The listings of the paper, in examples/: what they cost, what they give, and the same queries as fluent chains."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import pytest

import wpinq as wp
from tests.support.parameters import for_each
from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.language import Program, parse

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.wpq"))

# two triangles that share an edge, a square, a square with a diagonal, a pendant and a loose edge
UNDIRECTED = [(1, 2), (2, 3), (1, 3), (3, 4), (2, 4), (4, 5), (5, 6), (6, 7), (7, 4), (7, 5), (7, 8), (9, 10)]
DIRECTED = [*UNDIRECTED, *((b, a) for a, b in UNDIRECTED)]
NEIGHBOURS: dict[int, set[int]] = defaultdict(set)
for _a, _b in DIRECTED:
    NEIGHBOURS[_a].add(_b)
DEGREE = {node: len(around) for node, around in NEIGHBOURS.items()}
ONE = Fraction(1)


def load(name: str, **parameters: object) -> Program:
    path = EXAMPLES / f"{name}.wpq"
    return parse(path.read_text(encoding="utf-8"), parameters, name=path.name)


def output(query: Query, data: list[tuple[int, int]], source: str = "edges") -> dict[Any, Fraction]:
    return dict(wp.evaluate(query, {source: data}, exact=True))


def added(pairs: Any) -> dict[Any, Fraction]:
    total: dict[Any, Fraction] = defaultdict(Fraction)
    for record, weight in pairs:
        total[record] += weight
    return {record: weight for record, weight in total.items() if weight}


def triangles() -> list[tuple[int, int, int]]:
    return [t for t in combinations(DEGREE, 3) if all(b in NEIGHBOURS[a] for a, b in combinations(t, 2))]


def squares() -> list[tuple[int, int, int, int]]:
    """Each cycle of length four once."""
    cycles = {}
    for a, b, c, d in permutations(DEGREE, 4):
        if b in NEIGHBOURS[a] and c in NEIGHBOURS[b] and d in NEIGHBOURS[c] and a in NEIGHBOURS[d]:
            cycles[frozenset((frozenset((a, b)), frozenset((b, c)), frozenset((c, d)), frozenset((d, a))))] = (
                a,
                b,
                c,
                d,
            )
    return list(cycles.values())


@for_each("name", NAMES)
def test_every_example_prints_and_reads_back(name: str) -> None:
    program = load(name)
    again = parse(str(program))
    assert dict(program.items()).items() <= dict(again.items()).items()
    assert str(again) == str(program)


USES = [
    ("degree_ccdf", "ccdfCounts", "edges", 1),
    ("degree_sequence", "degSeqCounts", "edges", 1),
    ("nodes", "count", "graph", 1),
    ("joint_degrees", "jddCount", "edges", 4),
    ("triangles_by_degree", "output", "edges", 18),
    ("triangles_by_degree_bucketed", "output", "edges", 18),
    ("squares_by_degree", "output", "edges", 24),
    ("triangles_by_intersect", "result", "edges", 8),
    ("graph", "degree_ccdf", "edges", 2),
    ("graph", "degree_sequence", "edges", 2),
]


STABILITY = {
    "joint_degrees": Fraction(5, 2),
    "triangles_by_degree": 9,
    "triangles_by_degree_bucketed": 9,
    "squares_by_degree": 12,
    "triangles_by_intersect": 4,
}
"""What moves by less than it is used: listings, of edges in rows."""


@for_each(("name", "measurement", "source", "uses"), USES)
def test_listings_use_what_the_paper_says_and_cost_what_they_move(
    name: str, measurement: str, source: str, uses: int
) -> None:
    asked = load(name).measurements[measurement]
    moved = STABILITY.get(name, uses)
    assert Query(asked.plan).uses() == {source: uses}
    assert wp.bill(asked) == {source: moved * Fraction(1, 10)}


@pytest.mark.parametrize(
    ("name", "query", "uses"),
    [
        ("triangles_by_degree", "order", 9),
        ("squares_by_degree", "order", 12),
        ("triangles_by_intersect", "triangles", 4),
    ],
)
def test_listings_cost_half_from_symmetric_edges(name: str, query: str, uses: int) -> None:
    lines = (EXAMPLES / f"{name}.wpq").read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if not line.startswith("var edges = edges")]
    assert len(kept) == len(lines) - 1
    assert parse("\n".join(kept)).queries[query].uses() == {"edges": uses}


def test_the_main_job_costs_what_it_says() -> None:
    measurements = load("graph").measurements
    assert wp.bill(list(measurements.values())) == {"edges": Fraction(12, 10)}
    assert {m.kind.name for m in measurements.values()} == {"count"}


def test_nodes() -> None:
    program = load("nodes")
    nodes = output(program.queries["nodes"], DIRECTED, "graph")
    assert nodes == dict.fromkeys(DEGREE, ONE / 2)
    assert output(Query(program.measurements["count"].plan), DIRECTED, "graph") == {"node": Fraction(len(DEGREE), 2)}


def test_degrees() -> None:
    assert output(load("degrees").queries["degrees"], DIRECTED) == dict.fromkeys(DEGREE.items(), ONE / 2)


def test_paths() -> None:
    expected = {(a, b, c): ONE / (2 * DEGREE[b]) for b in DEGREE for a in NEIGHBOURS[b] for c in NEIGHBOURS[b]}
    assert output(load("paths").queries["paths"], DIRECTED) == expected


CCDF = {i: Fraction(sum(d > i for d in DEGREE.values())) for i in range(max(DEGREE.values()))}
SEQUENCE = {j: Fraction(degree) for j, degree in enumerate(sorted(DEGREE.values(), reverse=True))}


def test_degree_ccdf_and_sequence() -> None:
    assert output(load("degree_ccdf").queries["degCCDF"], DIRECTED) == CCDF
    program = load("degree_sequence")
    assert output(program.queries["degCCDF"], DIRECTED) == CCDF
    assert output(program.queries["degSeq"], DIRECTED) == SEQUENCE


def test_joint_degrees() -> None:
    expected = added(((DEGREE[a], DEGREE[b]), ONE / (2 + 2 * DEGREE[a] + 2 * DEGREE[b])) for a, b in DIRECTED)
    assert output(load("joint_degrees").queries["jdd"], DIRECTED) == expected


def _triangles_by_degree(k: int = 1) -> dict[Any, Fraction]:
    degrees = [[DEGREE[node] for node in triangle] for triangle in triangles()]
    return added((tuple(sorted(d // k for d in ds)), Fraction(3, sum(d * d for d in ds))) for ds in degrees)


def test_triangles_by_degree() -> None:
    assert len(triangles()) == 4
    assert output(load("triangles_by_degree").queries["order"], UNDIRECTED) == _triangles_by_degree()


@pytest.mark.parametrize("k", [1, 2, 3, 20])
def test_triangles_by_degree_in_buckets(k: int) -> None:
    order = load("triangles_by_degree_bucketed", k=k).queries["order"]
    assert output(order, UNDIRECTED) == _triangles_by_degree(k)


def test_squares_by_degree() -> None:
    def f(b: int, c: int) -> int:
        return DEGREE[b] ** 2 * (DEGREE[c] - 1) + DEGREE[c] ** 2 * (DEGREE[b] - 1)

    def weight(a: int, b: int, c: int, d: int) -> Fraction:
        return Fraction(2, f(b, c) + f(d, a)) + Fraction(2, f(a, b) + f(c, d))

    expected = added((tuple(sorted(DEGREE[node] for node in square)), weight(*square)) for square in squares())
    assert len(squares()) == 2
    assert output(load("squares_by_degree").queries["order"], UNDIRECTED) == expected


def test_triangles_by_intersect() -> None:
    total = sum(
        (min(ONE / DEGREE[a], ONE / DEGREE[b]) for triangle in triangles() for a, b in combinations(triangle, 2)),
        Fraction(0),
    )
    program = load("triangles_by_intersect")
    assert output(Query(program.measurements["result"].plan), UNDIRECTED) == {"triangle!": total}
    assert program.measurements["result"].domain == ("triangle!",)
    job = load("graph")
    assert str(job.measurements["triangles"].kind) == "number of triangles"
    assert output(job.queries["ccdf"], UNDIRECTED) == CCDF
    assert output(Query(job.measurements["degree_sequence"].plan), UNDIRECTED) == SEQUENCE


def test_the_small_examples_of_section_2() -> None:
    program = load("operators")
    quarter = Fraction(1, 4)
    a = {1: 3 * quarter, 2: 2, 3: 1}
    data = {"A": a, "B": {1: 3, 4: 2}, "C": {1: 3 * quarter, 2: 2, 3: 1, 4: 2, 5: 2}}
    expected = {
        "where": {1: 3 * quarter, 2: 2},
        "select": {0: 2, 1: 7 * quarter},
        "select_many": {1: Fraction(25, 12), 2: Fraction(4, 3), 3: Fraction(1, 3)},
        "group_by": {
            ("odd", (5,)): ONE / 2,
            ("odd", (3, 5)): ONE / 8,
            ("odd", (1, 3, 5)): Fraction(3, 8),
            ("even", (2, 4)): ONE,
        },
        "concat": {1: 15 * quarter, 2: 2, 3: 1, 4: 2},
        "intersect": {1: 3 * quarter},
        "union": {1: 3, 2: 2, 3: 1, 4: 2},
        "except": {1: -9 * quarter, 2: 2, 3: 1, 4: -2},
        "join": {(2, 4): 1, (1, 1): Fraction(9, 19), (3, 1): Fraction(12, 19)},
        "shave": {(1, 0): 3 * quarter, (2, 0): 1, (2, 1): 1, (3, 0): 1},
        "unshave": a,
    }
    assert {name: dict(wp.evaluate(query, data, exact=True)) for name, query in program.queries.items()} == expected


edges = wp.source("edges", src=int, dst=int)
undirected = wp.source("edges", src=int, dst=int, unit="one undirected edge")
simple = wp.source("edges", src=int, dst=int, unit="one undirected edge", facts=["unit_weights"])


def _symmetric(e: Query = undirected) -> Query:
    return e.select(lambda x: F.record(src=x.dst, dst=x.src)).concat(e)


def _path(x: Any, y: Any) -> Any:
    return F.record(a=x.src, b=x.dst, c=y.dst)


def _paths(e: Query) -> Query:
    return e.join(e, lambda x: x.dst, lambda y: y.src, _path).where(lambda p: p.a != p.c)


def _paths_with_degrees(e: Query, k: int | None = None) -> Query:
    reducer = F.count if k is None else (lambda group: F.count(group) // k)
    degs = e.group_by(lambda e: e.src, reducer)
    return _paths(e).join(degs, lambda p: p.b, lambda d: d.key, lambda p, d: F.record(path=p, deg=d.val))


def _tbd(e: Query, k: int | None = None) -> Query:
    abc = _paths_with_degrees(e, k)
    bca = abc.select(lambda x: F.record(path=F.rotate(x.path), deg=x.deg))
    cab = bca.select(lambda x: F.record(path=F.rotate(x.path), deg=x.deg))
    two = abc.join(bca, lambda x: x.path, lambda y: y.path, lambda x, y: F.record(path=x.path, deg1=x.deg, deg2=y.deg))
    three = two.join(
        cab, lambda x: x.path, lambda y: y.path, lambda x, y: F.record(deg=y.deg, deg1=x.deg1, deg2=x.deg2)
    )
    return three.select(lambda degrees: F.sort(degrees))


def _sbd(e: Query) -> Query:
    abc = _paths_with_degrees(e)
    abcd = abc.join(
        abc,
        lambda x: (x.path.b, x.path.c),
        lambda y: (y.path.a, y.path.b),
        lambda x, y: F.record(abcd=F.record(a=x.path.a, b=x.path.b, c=x.path.c, d=y.path.c), dc=y.deg, db=x.deg),
    ).where(lambda y: y.abcd.a != y.abcd.d)
    cdab = abcd.select(lambda x: F.record(abcd=F.rotate(F.rotate(x.abcd)), dd=x.db, da=x.dc))
    found = abcd.join(
        cdab, lambda x: x.abcd, lambda y: y.abcd, lambda x, y: F.record(da=y.da, db=x.db, dc=x.dc, dd=y.dd)
    )
    return found.select(lambda degrees: F.sort(degrees))


def _ccdf(e: Query) -> Query:
    return e.select(lambda e: e.src).shave(1.0).select(lambda p: p.index)


def _jdd() -> Query:
    degs = edges.group_by(lambda e: e.src, lambda g: F.count(g))
    temp = degs.join(edges, lambda d: d.key, lambda e: e.src, lambda d, e: F.record(edge=e, val=d.val))
    return temp.join(temp, lambda a: a.edge, lambda b: F.reverse(b.edge), lambda a, b: F.record(da=a.val, db=b.val))


graph = wp.source("graph", a=int, b=int)
FLUENT = {
    ("degrees", "degrees"): edges.group_by(lambda e: e.src, lambda g: F.count(g)),
    ("paths", "paths"): edges.join(edges, lambda x: x.dst, lambda y: y.src, _path),
    ("nodes", "nodes"): graph.select_many(lambda e: [e.a, e.b])
    .shave(0.5)
    .where(lambda x, i: i == 0)
    .select(lambda x, i: x),
    ("degree_ccdf", "degCCDF"): _ccdf(edges),
    ("degree_ccdf", "ccdfCounts"): _ccdf(edges).noisy_count(0.1, range(100)),
    ("degree_sequence", "degSeq"): _ccdf(edges).shave(1.0).select(lambda p: p.index),
    ("joint_degrees", "jdd"): _jdd(),
    ("triangles_by_degree", "order"): _tbd(_symmetric()),
    ("triangles_by_degree_bucketed", "order"): _tbd(_symmetric(), 20),
    ("squares_by_degree", "order"): _sbd(_symmetric()),
    ("triangles_by_intersect", "triangles"): _paths(_symmetric())
    .select(lambda p: F.rotate(p))
    .intersect(_paths(_symmetric())),
    ("triangles_by_intersect", "result"): _paths(_symmetric())
    .select(lambda p: F.rotate(p))
    .intersect(_paths(_symmetric()))
    .select(lambda t: "triangle!")
    .noisy_count(0.1),
    ("graph", "degree_ccdf"): _ccdf(_symmetric(simple))
    .read_as("number of nodes with more than key edges")
    .noisy_count(0.1, range(100)),
    ("graph", "degree_sequence"): _ccdf(_symmetric(simple))
    .shave(1.0)
    .select(lambda p: p.index)
    .read_as("degree of the node at rank key, from 0 for the largest")
    .noisy_count(0.1, range(6000)),
}


@for_each(("name", "variable"), FLUENT)
def test_fluent_chains_and_listings_are_the_same_plans(name: str, variable: str) -> None:
    assert load(name)[variable] == FLUENT[name, variable]


# --- the listing of nodes as the paper prints it ----------------------------------------------------------------------

NODES = """source graph(a: int, b: int);
var nodes = graph.SelectMany(e => [e.a, e.b]).Shave(0.5)
                 .Where({})
                 .Select({});
"""


@pytest.mark.parametrize(
    ("where", "select", "line", "column"),
    [
        ("(i, x) => i == 0", "(i, x) => x", 3, 25),
        ("(x, i) => i == 0", "(i, x) => x", 4, 26),
        ("(index, record) => index == 0", "p => p.record", 3, 25),
        ("(i, x) => true", "p => p.record", 3, 25),
    ],
)
def test_pieces_taken_backwards_are_refused_when_parsed(where: str, select: str, line: int, column: int) -> None:
    with pytest.raises(wp.LanguageError, match=r"is the record here: write the parameters as \(x, i\)") as caught:
        wp.parse(NODES.format(where, select))
    assert (caught.value.line, caught.value.column) == (line, column)


def test_pieces_taken_backwards_are_refused_in_a_chain_too() -> None:
    pieces = wp.source("graph", a=int, b=int).select(lambda e: e.a).shave(0.5)
    with pytest.raises(wp.ExpressionError, match=r"the first parameter is the record .* take the piece whole"):
        pieces.where(lambda i, x: i == 0)
    with pytest.raises(wp.ExpressionError, match="the first parameter is the record"):
        pieces.where(lambda p: p.index == 0).select(lambda index, piece: piece)


def test_a_record_of_a_piece_that_is_compared_with_a_number_is_warned_of() -> None:
    with pytest.warns(wp.errors.WpinqWarning, match="`k` is the record here, and compared with a number"):
        wp.parse(NODES.format("(k, x) => k == 0", "p => p.record"))
    with pytest.warns(wp.errors.WpinqWarning, match="compared with a number"):
        wp.source("graph", int).shave(0.5).where(lambda a, b: (a < 3) & (a != 1))


@pytest.mark.parametrize(
    ("where", "select"),
    [
        ("(x, i) => i == 0", "(x, i) => x"),
        ("(x, i) => x == 0", "(i, j) => i"),  # both are named as indices: of which kind is anybody's guess
        ("(a, b) => a == 0 && b == 0", "(a, b) => a"),
        ("(a, b) => b == 0", "(a, b) => (a, b)"),
        ("p => p.record == 0", "p => p.index"),
    ],
)
def test_pieces_taken_as_they_are_pass_in_silence(where: str, select: str, recwarn: pytest.WarningsRecorder) -> None:
    wp.parse(NODES.format(where, select))
    assert not recwarn.list


def test_other_records_may_start_with_an_index(recwarn: pytest.WarningsRecorder) -> None:
    wp.source("graph", a=int, b=int).where(lambda i, x: i == 0)
    wp.source("names", str).shave(0.5).where(lambda name, piece: name == "ann")
    assert not recwarn.list
