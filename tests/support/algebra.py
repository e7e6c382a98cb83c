"""Laws of the operators as equations between queries, checked exactly on random operands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any

from tests.support import expressions
from tests.support.expressions import Recipe, compose, traced
from tests.support.plans import Data, distance, random_operands
from wpinq.api.query import Query
from wpinq.engines import reference
from wpinq.expr.compile import compile_lambda
from wpinq.plan.arithmetic import EXACT


@dataclass(frozen=True)
class Operands:
    """Three queries with records of one type over random public data."""

    rng: Random
    data: Data
    a: Query
    b: Query
    c: Query

    def output(self, query: Query) -> dict[Any, Fraction]:
        """The exact output of a query."""
        return reference.evaluate(query.plan, self.data, EXACT)

    def draw(self, kind: Callable[..., Recipe], query: Query | None = None) -> Recipe:
        """A random recipe over the records of a query."""
        return kind(self.rng, ((query or self.a).plan.type,))


def on(recipe: Recipe, query: Query) -> Any:
    """The lambda of a recipe over the records of a query."""
    return traced(recipe, (query.plan.type,))


Equation = Iterator[tuple[Query, Query]]
Law = Callable[[Operands], Equation]
LAWS: dict[str, Law] = {}


def law(function: Law) -> Law:
    """Enter a law: a function from operands to pairs of queries that must have equal outputs."""
    LAWS[function.__name__] = function
    return function


@law
def select_after_select_is_select_of_the_composition(o: Operands) -> Equation:
    f = o.draw(expressions.record)
    inner = o.a.select(on(f, o.a))
    g = o.draw(expressions.record, inner)
    yield inner.select(on(g, inner)), o.a.select(compose(g, f, (o.a.plan.type,)))


@law
def where_after_where_is_either_order(o: Operands) -> Equation:
    f, g = o.draw(expressions.predicate), o.draw(expressions.predicate)
    yield o.a.where(on(f, o.a)).where(on(g, o.a)), o.a.where(on(g, o.a)).where(on(f, o.a))


@law
def per_record_operators_are_linear(o: Operands) -> Equation:
    together, minus = o.a.concat(o.b), o.a.difference(o.b)
    for apply in _per_record(o):
        yield apply(together), apply(o.a).concat(apply(o.b))
        yield apply(minus), apply(o.a).difference(apply(o.b))


def _per_record(o: Operands) -> Iterator[Callable[[Query], Query]]:
    f, p = o.draw(expressions.record), o.draw(expressions.predicate)
    k, e = o.draw(expressions.scalar), o.draw(expressions.elements)
    yield lambda q: q.select(on(f, q))
    yield lambda q: q.where(on(p, q))
    yield lambda q: q.select_many(on(e, q), limit=4)
    key = compile_lambda(on(k, o.a))
    parts = [value for value in map(key, o.output(o.a)) if isinstance(value, (int, str))][:1]
    if parts:
        yield lambda q: q.partition(lambda x: _traced_in(k, x), parts)[parts[0]]


def _traced_in(recipe: Recipe, symbol: Any) -> Any:
    return expressions.render(recipe, (symbol,))


@law
def union_and_intersect_add_up_to_concat(o: Operands) -> Equation:
    yield o.a.union(o.b).concat(o.a.intersect(o.b)), o.a.concat(o.b)


@law
def except_of_itself_is_empty(o: Operands) -> Equation:
    yield o.a.difference(o.a), o.a.where(lambda x: _never(x))
    yield o.a.difference(o.b).concat(o.b), o.a


def _never(symbol: Any) -> Any:
    return (symbol == symbol) & (symbol != symbol)


@law
def union_and_intersect_of_itself_are_itself(o: Operands) -> Equation:
    yield o.a.union(o.a), o.a
    yield o.a.intersect(o.a), o.a


@law
def concat_union_and_intersect_commute_and_associate(o: Operands) -> Equation:
    for name in ("concat", "union", "intersect"):

        def apply(left: Query, right: Query, name: str = name) -> Query:
            result: Query = getattr(left, name)(right)
            return result

        yield apply(o.a, o.b), apply(o.b, o.a)
        yield apply(apply(o.a, o.b), o.c), apply(o.a, apply(o.b, o.c))


@law
def union_and_intersect_distribute(o: Operands) -> Equation:
    yield o.a.union(o.b.intersect(o.c)), o.a.union(o.b).intersect(o.a.union(o.c))
    yield o.a.concat(o.b.union(o.c)), o.a.concat(o.b).union(o.a.concat(o.c))


@law
def select_many_of_one_is_select(o: Operands) -> Equation:
    f = o.draw(expressions.record)
    yield o.a.select_many(on(("list", f), o.a)), o.a.select(on(f, o.a))


@law
def shave_is_undone_by_keeping_the_record(o: Operands) -> Equation:
    positive = o.a.union(o.a.difference(o.a))
    heaviest = max(map(float, o.output(positive).values()), default=1.0)
    width = o.rng.choice([heaviest / 7, heaviest / 2, heaviest, 2 * heaviest])
    pieces = positive.shave(max(width, 1e-5))  # a narrower one would cut a record of unit weight into too many
    yield pieces.select(lambda p: p.record), positive


@law
def join_is_symmetric(o: Operands) -> Equation:
    ka, kb = o.draw(expressions.scalar), o.draw(expressions.scalar)
    left, right = (ka, kb) if on(ka, o.a).type == on(kb, o.b).type else (ka, ka)
    yield (
        o.a.join(o.b, on(left, o.a), on(right, o.b), lambda x, y: (x, y)),
        o.b.join(o.a, on(right, o.b), on(left, o.a), lambda y, x: (x, y)),
    )


@law
def parts_add_up_to_the_whole(o: Operands) -> Equation:
    k = o.draw(expressions.scalar)
    values = set(map(compile_lambda(on(k, o.a)), o.output(o.a)))
    covered = [value for value in values if isinstance(value, (int, str))]
    if not covered or len(covered) < len(values):  # null, floats and lists as keys: not this law's matter
        return
    parts = iter(o.a.partition(lambda x: _traced_in(k, x), covered).values())
    total = next(parts)
    for part in parts:
        total = total.concat(part)
    yield total, o.a


@dataclass
class LawFindings:
    """How many equations were checked, how many of them had something on both sides, and how many were wrong."""

    equations: int = 0
    inhabited: int = 0
    wrong: int = 0


def check_law(name: str, seed: int, cases: int) -> LawFindings:
    """A law on random operands."""
    rng, findings = Random(seed), LawFindings()
    for _ in range(cases):
        data, nodes = random_operands(rng)
        operands = Operands(rng, data, *map(Query, nodes))
        for left, right in LAWS[name](operands):
            one, other = operands.output(left), operands.output(right)
            findings.equations += 1
            findings.inhabited += bool(one)
            findings.wrong += distance(one, other) != 0
    return findings
