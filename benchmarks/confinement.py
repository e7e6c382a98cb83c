"""What confined children take on the worst data that a plan's bound allows, against what limits grant them.

    python benchmarks/confinement.py [--records 100000] [--group 50] [--texts 2000] [--record 1000] [NAME ...]

For each operator and each function of texts and lists: data as many and as large as its sources declare, evaluated
step by step in a child as untrusted mode has it, once for a key and once for the whole output. Processor time and peak
memory of the child, over what `kernel/sandbox/admission.py` says of the plan: 1 is the bound without a margin. The
margin of `Limits` comes on top, so what is printed has to stay below 1. Its rates were set by these figures.
"""

from __future__ import annotations

import argparse
import math
import os
import resource
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import wpinq as wp
from wpinq import functions as F
from wpinq.api.query import Query
from wpinq.engines.sql.duckdb.database import UnoptimisedDatabase
from wpinq.expr.types import ListOf, TupleOf, Type, physical
from wpinq.kernel.noisy_evaluation import NoisyEvaluator
from wpinq.kernel.prepare import PreparedMeasurement, prepare
from wpinq.kernel.sandbox import process
from wpinq.kernel.sandbox.admission import Cost, admit, cost_of
from wpinq.measure.measurement import Measurement
from wpinq.plan.node import Node, topological
from wpinq.plan.operators import Source
from wpinq.plan.work import plan_work
from wpinq.runtime.progress import StepDisplay

LISTS: dict[str, Callable[[Any], Any]] = {
    "split": lambda r: F.split(r.text, ","),
    "map": lambda r: F.map(r.items, lambda s: F.length(s)),
    "flatten": lambda r: F.flatten(F.map(F.split(r.text, ","), lambda s: F.split(s, "b"))),
    "subsets": lambda r: F.subsets(F.split(r.text, ","), 2),
    "first": lambda r: F.first(F.split(r.text, ","), 20),
    "range": lambda r: F.range(0, r.number, limit=1000),
    "sort": lambda r: F.sort(F.split(r.text, ",")),
    "collect": lambda r: F.collect(r.items, lambda s: F.lower(s)),
    "list": lambda r: [r.text, r.text, F.lower(r.text)],
    "weighted": lambda r: [F.weighted(r.text, 1e300), F.weighted("", 1e-300), F.weighted(r.text, -1e300)],
    "weights of elements": lambda r: F.map(r.numbers, lambda n: F.weighted(n, 0.1)),
}
"""Functions that give a list: of a SelectMany with a limit of 10."""

VALUES: dict[str, Callable[[Any], Any]] = {
    "count": lambda r: F.count(F.split(r.text, ",")),
    "length": lambda r: F.length(r.text),
    "sum": lambda r: F.sum(F.map(r.numbers, lambda n: F.sum(F.range(0, n, limit=20)))),
    "sum of floats": lambda r: F.sum(F.map(r.numbers, lambda n: F.cast(n, float) * 1e303)),
    "min": lambda r: F.min(r.items),
    "max": lambda r: F.max(r.numbers, lambda n: -n),
    "element": lambda r: F.element(F.sort(r.items), 7),
    "concatenate": lambda r: r.text + r.text + r.text,
    "lower": lambda r: F.lower(r.text),
    "contains": lambda r: F.contains(r.text, ",,,x"),
    "substring": lambda r: F.substring(r.text, 5, r.number),
    "to_float": lambda r: F.cast(r.text, float),
    "to_decimal": lambda r: F.cast(r.text, wp.decimal(2)),
    "map inside map": lambda r: F.sum(F.map(r.numbers, lambda n: F.sum(F.map(F.first(r.numbers, 9), lambda m: n * m)))),
    "sort inside map": lambda r: F.map(F.range(0, 9, limit=9), lambda i: F.element(F.sort(F.split(r.text, ",")), i)),
    "subsets inside a value": lambda r: F.count(F.subsets(F.first(r.items, 20), 3)),
}
"""Functions of a Select."""

PAIRS: dict[str, Callable[[Query, Query], Query]] = {
    "Select": lambda rows, few: rows.select(lambda r: (r.a, r.b, r.a + r.b)),
    "Where": lambda rows, few: rows.where(lambda r: r.a >= 0),
    "SelectMany": lambda rows, few: rows.select_many(
        lambda r: F.map(F.range(0, 10, limit=10), lambda i: (r.a, r.b, i))
    ),
    "SelectMany, weighted": lambda rows, few: rows.select_many(
        lambda r: [F.weighted((r.a, r.b, 0), 1e300), F.weighted((r.a, r.b, 1), -1e-300)]
    ),
    "Shave": lambda rows, few: rows.shave(0.3),
    "Shave by widths": lambda rows, few: rows.shave(lambda r: [0.1, 0.2, 0.3]),
    "Concat": lambda rows, few: rows.concat(rows.select(lambda r: F.record(a=r.b, b=r.a + 1))),
    "Except": lambda rows, few: rows.difference(rows.select(lambda r: F.record(a=r.b, b=r.a + 1))),
    "Union": lambda rows, few: rows.union(rows.select(lambda r: F.record(a=r.b, b=r.a + 1))),
    "Intersect": lambda rows, few: rows.intersect(rows.select(lambda r: F.record(a=r.a, b=r.b))),
    "Partition": lambda rows, few: rows.partition(lambda r: r.a * 0, [0, 1])[0],
    "GroupBy, count": lambda rows, few: few.group_by(lambda r: r.a, lambda g: F.count(g)),
    "GroupBy, list": lambda rows, few: few.group_by(lambda r: r.a),
    "GroupBy, float sum": lambda rows, few: few.group_by(
        lambda r: r.a, lambda g: F.sum(F.map(g, lambda r: F.cast(r.b, float) * 1e300))
    ),
    "GroupBy, sorted": lambda rows, few: few.group_by(
        lambda r: r.a, lambda g: F.element(F.sort(F.map(g, lambda r: -r.b)), 3)
    ),
    "GroupBy, then its list": lambda rows, few: few.group_by(lambda r: r.a).select(
        lambda r: F.sum(F.map(r.val, lambda x: x.b))
    ),
    "Join": lambda rows, few: few.join(few, lambda x: x.a, lambda y: y.a, lambda x, y: (x.a, x.b, y.b)),
    "Join, triangles": lambda rows, few: (
        few.join(few, lambda x: x.a, lambda y: y.a, lambda x, y: (x.a, x.b, y.b))
        .where(lambda t: t[1] != t[2])
        .join(few, lambda t: (t[0], t[1]), lambda e: (e.a, e.b), lambda t, e: t)
    ),
    "Join, list of all pairs": lambda rows, few: few.join(
        few, lambda x: x.a, lambda y: y.a, lambda x, y: F.record(a=x.a, b=x.b, c=y.b)
    ).group_by(lambda r: (r.a, r.b), lambda g: F.sum(F.map(g, lambda r: r.c))),
}
"""Operators, on pairs of numbers: all rows, and as few as a key of at most so many needs."""


class AtTheEnd(process.Clock):
    """Does not wait for a moment, but for the child."""

    def sleep_until(self, moment: float) -> None:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)


def main() -> None:
    """Print a line for each."""
    options = parsed()
    print(f"{'':28} {'rows':>12} {'seconds':>8} {'of bound':>8} {'MB':>7} {'of bound':>8}")
    worst = [0.0, 0.0]
    for name, plan, data, record in cases(options):
        if options.names and name not in options.names:
            continue
        with wp.Session(threads=1) as session:
            for source in {id(node): node for node in sources_of(plan.plan)}.values():
                session.protect(source, data[source.plan.operator.source], budget=1)
            held = {each: session._protected[each].weights for each in data if each in session._protected}
            for whole in (False, True):
                work = partial(evaluated, plan, held, whole)
                show(name + ", whole" * whole, plan, cost_of(plan.plan, 1, whole, record), taken(work, held), worst)
    for name, measurement, rows in sinks(options):
        if options.names and name not in options.names:
            continue
        with wp.Session(threads=1) as session:
            session.protect(next(sources_of(measurement.plan)), rows, budget=1000)
            order = prepare(measurement, session._protected, False)
            cost = admit(order, order.keys_at_once, wp.Limits(seconds=10**9, memory="9999GB"))
            held = {each: protected.weights for each, protected in session._protected.items()}
            work = partial(drawn, order, session._protected)
            show(name, Query(measurement.plan), cost, taken(work, held), worst)
    print(f"worst: {worst[0]:.2f} of the time and {worst[1]:.2f} of the memory that the bound says, without a margin")


def show(name: str, plan: Query, cost: Any, found: tuple[float, int, bool], worst: list[float]) -> None:
    """Print a line, and keep the worst ratios."""
    assert isinstance(cost, Cost), name
    seconds, size, ended = found
    ratios = seconds / cost.seconds, size / cost.bytes
    worst[:] = [max(*pair) for pair in zip(worst, ratios, strict=True)]
    print(
        f"{name:28} {plan_work(plan.plan).rows or 0:12,} {seconds:8.2f} {ratios[0]:8.2f} {size / 1e6:7.0f} "
        f"{ratios[1]:8.2f}{'' if ended else '  FAILED'}",
        flush=True,
    )


def evaluated(plan: Query, held: Any, whole: bool) -> bytes:
    """Evaluate a plan, in a child."""
    with UnoptimisedDatabase("20GB") as database:
        database.evaluate(plan.plan, held, keys=None if whole else [some_value(plan.plan.type)])
    return b"done"


def drawn(order: PreparedMeasurement, protected: Any) -> bytes:
    """Evaluate and draw noise, in a child."""
    looking = NoisyEvaluator(UnoptimisedDatabase("20GB"), protected, StepDisplay(None))
    if order.measurement.listing is not None:
        looking.draw_above(order, order.measurement.listing, {}, ())
    else:
        looking.draw(order, order.measurement.domain or (), ())
    return b"done"


def sinks(options: argparse.Namespace) -> Iterator[tuple[str, Measurement, Any]]:
    """Name, measurement and worst data of one source."""
    many = options.records
    numbers = wp.source("numbers", int, records_at_most=many, cap=many, facts=["nonnegative"], weights=True)
    wide = {i: 2.0 ** -(i % 1000) for i in range(many)}
    yield "NoisyCount, many keys", numbers.noisy_count(1, over=range(many)), wide
    yield "most_common", numbers.most_common(1, range(many)), wide
    yield "quantile", numbers.quantile(epsilon=1, q=0.3, candidates=range(0, many, 10)), wide
    yield "listing", numbers.noisy_count_above(1, range(10 * many), above=0), wide
    yield "listing, high", numbers.noisy_count_above(1, range(10**9), above=20), wide
    yield "NoisySum", numbers.noisy_sum(1, lambda x: x, 0, 5), wide
    yield "NoisyAverage", numbers.noisy_average(1, lambda x: x, 0, 5), wide
    whole = wp.source("whole", int, records_at_most=many, cap=many, facts=["unit_weights"])
    yield "GeometricCount, many keys", whole.geometric_count(1, over=range(many)), list(range(many))


def taken(work: Callable[[], bytes], held: Any) -> tuple[float, int, bool]:
    """Processor time and memory of a child, and whether it got there."""
    UnoptimisedDatabase.rest()
    usage: list[Any] = []

    def waited(child: int, options: int) -> tuple[int, int]:
        found, status, used = os.wait4(child, options)
        usage.append(used)
        return found, status

    before = resident()
    real, process.os.waitpid = os.waitpid, waited
    try:
        files = [file for columns in held.values() for file in columns.files]
        done = process.run_in_child(work, 600.0, 20 * 10**9, math.inf, AtTheEnd(), files)
    finally:
        process.os.waitpid = real
    (used,) = usage
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 - before, done is not None


def some_value(type_: Type) -> Any:
    """A record of a type."""
    if isinstance(type_, TupleOf):
        return tuple(map(some_value, type_.elements))
    if isinstance(type_, ListOf):
        return ()
    return {"str": "", "float": 0.0, "bool": False}.get(physical(type_).name, 0)


def resident() -> int:
    """How much memory the process has now, which a child begins with."""
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


def cases(options: argparse.Namespace) -> Iterator[tuple[str, Query, dict[str, Any], int]]:
    """Name, query, worst data by source, and the most that a record of these holds."""
    many, group, texts, record = options.records, options.group, options.texts, options.record
    rows = wp.source("rows", a=int, b=int, records_at_most=many, cap=many, weights=True)
    pairs = many // 5
    few = wp.source(
        "few", a=int, b=int, records_at_most=pairs, keys_at_most={"a": group, "b": group}, cap=pairs, weights=True
    )
    data: dict[str, Any] = {
        "rows": {(i, i * 7919 % many): 0.5 + i % 977 / 2000 for i in range(many)},
        "few": {(i // group, i // group * 1000 + i % group): 0.5 + i % 977 / 2000 for i in range(pairs)},
    }
    for name, of_pairs in PAIRS.items():
        yield name, of_pairs(rows, few), data, 1
    keyed = wp.source("keyed", s=str, k=int, records_at_most=texts, keys_at_most={"k": 40}, cap=texts, weights=True)
    long = {(f"{i:08}" + "," * (record - 8), i // 40): 0.5 + i / 10 / texts for i in range(texts)}
    for name, of_groups in GROUPS.items():
        yield name, of_groups(keyed), {"keyed": long}, record
    fields: dict[str, Any] = {"text": str, "items": list[str], "numbers": list[int], "number": int}
    wide = wp.source("wide", fields, records_at_most=texts, cap=texts, weights=True)
    for name, function in LISTS.items():
        yield name, wide.select_many(function, limit=10), {"wide": texts_of(texts, record)}, record
    for name, function in VALUES.items():
        yield name, wide.select(function), {"wide": texts_of(texts, record)}, record

    for name, (query, data) in of_people(texts, record).items():
        yield name, query, data, record


def of_people(texts: int, record: int) -> dict[str, tuple[Query, dict[str, Any]]]:
    """People with 50 short texts each in a list, and with one long text."""
    people = wp.people("people", id=("id", int), rows=wp.table(code=str, number=int, at_most=50), records_at_most=texts)
    many = [{"id": i, "code": f"{50 * i + j:0{record // 60}}", "number": j} for i in range(texts) for j in range(50)]
    one = [{"id": i, "code": f"{i:0{record - 40}}", "number": i} for i in range(texts)]
    rows = people.unnest("rows")
    queries = {
        "any of a list": people.where(lambda p: F.any(p.rows, lambda r: r.code == "1")),
        "filtered list": people.select(lambda p: F.map(F.filter(p.rows, lambda r: r.number > 1), lambda r: r.code)),
        "flat view": rows.select(lambda r: r.code),
        "flat view, filtered": rows.where(lambda r: r.number > 1).select(lambda r: r.code),
        "flat view, text made": rows.select(lambda r: r.code + r.code),
    }
    kinds = {"": many, ", long": one}
    return {
        name + kind: (query, {"people": {"rows": data}})
        for name, query in queries.items()
        for kind, data in kinds.items()
    }


GROUPS: dict[str, Callable[[Query], Query]] = {
    "groups of texts": lambda rows: rows.group_by(lambda r: r.k),
    "parts of groups of texts": lambda rows: rows.group_by(
        lambda r: r.k, lambda g: F.count(F.flatten(F.map(g, lambda r: F.split(r.s, ","))))
    ),
    "joined texts": lambda rows: rows.join(rows, lambda x: x.k, lambda y: y.k, lambda x, y: x.s + y.s),
}


def texts_of(count: int, record: int) -> dict[Any, float]:
    """Records of which each field is as large as it may be, and a text nothing but separators."""
    items, numbers = record // 5, record // 10  # as many as a list can have that is written so long
    return {
        (
            f"{i:08}" + "," * (record - 8),
            (f"{i:08}", *["é"] * (items - 2)),
            (i, *range(10**5, 10**5 + numbers - 1)),
            2**62 + i,
        ): 0.5
        for i in range(count)
    }


def sources_of(root: Node) -> Iterator[Query]:
    """The sources of a plan, as queries."""
    for node in topological([root]):
        if isinstance(node.operator, Source):
            yield Query(node)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--group", type=int, default=50)
    parser.add_argument("--texts", type=int, default=2000)
    parser.add_argument("--record", type=int, default=1000)
    parser.add_argument("names", nargs="*")
    return parser.parse_args()


if __name__ == "__main__":
    main()
