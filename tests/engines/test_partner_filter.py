"""A partner filters before equal records are added up: the rows that it lets through, and the bits, which all stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

import wpinq as wp
from tests.support.parameters import for_each, tenth
from tests.support.plans import distance, random_case
from tests.support.relational import without
from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.engines import reference
from wpinq.engines.sql.compile import Plan
from wpinq.engines.sql.duckdb.database import Database
from wpinq.graphs import tags
from wpinq.plan.arithmetic import EXACT
from wpinq.plan.properties import plan_properties

PARTNER = ("partner_filter", "sorted_pairs")
WEIGHTS = (1.0, 0.5, 1 / 3, 2.0, 1e-9)
SCHEMAS: dict[str, Any] = {"int": int, "str": str, "null": int | None}


def source(name: str, node: str, *facts: str) -> Query:
    return wp.source(name, src=SCHEMAS[node], dst=SCHEMAS[node], facts=facts, weights=True)


def pairs(edges: Query) -> Query:
    """The ends of edges with a common target, in order: many rows a record."""
    return edges.join(edges, lambda x: x.dst, lambda y: y.dst, lambda x, y: F.sort((x.src, y.src)))


def turned(edges: Query) -> Query:
    return edges.select_many(lambda e: [F.record(src=e[0], dst=e[1]), F.record(src=e[1], dst=e[0])])


def tagged(edges: Query) -> Query:
    pieces = edges.select(lambda e: e.dst).shave(lambda node: [0.5, 0.75, 2.0])
    wedges = edges.join(edges, lambda x: x.dst, lambda y: y.dst, lambda x, y: F.record(a=x.src, b=x.dst, c=y.src))
    return wedges.join(
        pieces, lambda x: x.b, lambda p: p.record, lambda x, p: F.record(e=F.sort((x.a, x.c)), i=p.index)
    )


def spread(edges: Query) -> Query:
    return edges.select_many(lambda e: [F.record(e=F.sort((e[0], e[1])), i=i) for i in (0, 0, 1, 2)])


def counted(edges: Query) -> Query:
    return pairs(edges).group_by(lambda e: e[0], lambda group: F.count(group))


SHAPES: dict[str, Callable[[Query, Query], Query]] = {
    "pairs in edges": lambda a, b: pairs(a).intersect(b),
    "edges in pairs": lambda a, b: b.intersect(pairs(a)),
    "pairs in summed edges": lambda a, b: pairs(a).intersect(turned(b)),
    "two pairs": lambda a, b: pairs(a).intersect(pairs(b)),
    "several blocks": lambda a, b: pairs(a).concat(pairs(a).select(lambda e: (e[1], e[0]))).intersect(turned(b)),
    "pieces": lambda a, b: tagged(a).intersect(spread(b)).select(lambda pair: pair.i),
    "grouped above": lambda a, b: pairs(a).intersect(b).group_by(lambda e: e[0], lambda group: F.count(group)),
    "grouped below": lambda a, b: (
        counted(a).join(b, lambda x: x.key, lambda e: e[0], lambda x, e: x.val).intersect(pairs(b).select(lambda e: 1))
    ),
    "a constant": lambda a, b: pairs(a).select(lambda e: (e[0], 7)).intersect(b.select(lambda e: (e[0], 7))),
}  # fmt: skip


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with Database(threads=1) as opened:
        yield opened


def data(rng: Random, node: str, weights: tuple[float, ...]) -> dict[str, dict[Any, float]]:
    nodes: list[Any] = {"int": [*range(7)], "str": [*"abBcdz"], "null": [None, *range(5)]}[node]
    return {
        name: {(rng.choice(nodes), rng.choice(nodes)): rng.choice(weights) for _ in range(18)} for name in ("a", "b")
    }


def bits(weights: dict[Any, float]) -> list[tuple[Any, str]]:
    return [(record, weight.hex()) for record, weight in weights.items()]


def keeps_all(database: Database, query: Query, given: dict[str, dict[Any, float]]) -> dict[Any, float]:
    """The output, which has the bits that it has without the rewrites, and keeps the bound."""
    found = database.evaluate(query.plan, given)
    for off in (PARTNER, PARTNER[:1], PARTNER[1:]):
        assert bits(database.evaluate(query.plan, given, rewrites=without(*off))) == bits(found)
    assert distance(reference.evaluate(query.plan, given, EXACT), found) <= plan_properties(query.plan).rounding_error
    return found


@for_each("shape", SHAPES, every=8)
@for_each("node", SCHEMAS)
def test_the_bits_are_those_of_all_rows(database: Database, shape: str, node: str) -> None:
    rng = Random(f"{shape} {node}")
    seen = 0
    for facts, weights in ((("unit_weights",), (1.0,)), (("nonnegative",), WEIGHTS), ((), (*WEIGHTS, -1.0, -1 / 3))):
        query = SHAPES[shape](source("a", node, *facts), source("b", node, *facts))
        mixed = SHAPES[shape](source("a", node, "nonnegative"), source("b", node))
        for _ in range(2):
            seen += len(keeps_all(database, query, data(rng, node, weights)))
            signed = data(rng, node, (*WEIGHTS, -1.0, -1 / 3))
            keeps_all(database, mixed, {**signed, "a": data(rng, node, WEIGHTS)["a"]})
    assert seen


@pytest.mark.parametrize("operator", tenth(["Intersect", "Select", "GroupBy", "Shave"], 4))
def test_random_plans_keep_their_bits(database: Database, operator: str) -> None:
    rng = Random(f"{operator} beside a partner")
    for _ in range(12):
        case = random_case(rng, operator)
        given = {name: {record: float(w) for record, w in held.items()} for name, held in case.data.items()}
        kept = database.evaluate(case.plan, given, rewrites=without(*PARTNER))
        assert bits(database.evaluate(case.plan, given)) == bits(kept)


def filters(query: Query, **options: Any) -> bool:
    """Whether the rewrite changes the program."""
    return Plan(query.plan).program().queries != Plan(query.plan, without("partner_filter")).program().queries


def test_only_where_nothing_is_negative() -> None:
    unsigned, signed = source("a", "int", "nonnegative"), source("b", "int")
    assert filters(pairs(unsigned).intersect(source("b", "int", "nonnegative")))
    assert filters(pairs(unsigned).intersect(signed)), "of the partner's sign nothing is asked"
    assert not filters(pairs(signed).intersect(unsigned))


def test_never_below_a_group() -> None:
    edges = source("a", "int", "nonnegative")
    made = Plan(counted(edges).plan).program().statements
    query = counted(edges).select(lambda g: (g.key, g.val)).intersect(edges.select(lambda e: (e[0], e[1])))
    assert [statement.step for statement in made][:3] == ["Join", "GroupBy", "GroupBy"]
    assert Plan(query.plan).program().statements[:3] == made[:3], "what is grouped is made of all rows"


def test_closed_wedges_are_found_from_their_edges() -> None:
    edges = source("a", "int", "unit_weights")
    query = tags.closed_wedges_by_tag(edges, [0, 2, 8, 32], [0.75, 0.375, 0.375])
    ((_, summed),) = [
        held
        for held in Plan(query.plan, without("mirror_images")).program().queries
        if " UNION ALL " in held[1] and 'n" < ' in held[1]
    ]
    assert summed.count(" UNION ALL ") == 3, "two ways round, each in the order of fewer partners"
    assert "least(" not in summed.split(" WHERE ")[-1], "columns are compared with columns"


def test_pieces_are_no_part_of_the_filter() -> None:
    edges = source("a", "int", "unit_weights")
    statements = [sql for _, sql in Plan(tagged(edges).intersect(spread(edges)).plan).program().queries]
    (filtering,) = [sql for sql in statements if "DISTINCT *" in sql]
    assert "c1" in filtering
    assert "AS c2" not in filtering.split("FROM")[1]
