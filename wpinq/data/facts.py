"""What is checked of a dataset as a whole: the facts and the cap that its source declares."""

from __future__ import annotations

import contextlib
import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

from wpinq.columns.records import column_names, column_types
from wpinq.columns.storage import StoredColumns
from wpinq.columns.unlinked_file import in_order
from wpinq.data.relation import Relation, Tally, listed
from wpinq.errors import SourceRejected
from wpinq.expr.types import TupleOf, Type
from wpinq.plan.domain import Sizes


def enforce(
    connection: Any, facts: frozenset[str], held: StoredColumns, relation: Relation, unit_weight: Fraction | None = None
) -> None:
    """Refuse data that does not keep a fact: `held`, which came from the rows of a relation.

    With a unit weight, that of the items of a mapping, they are held to it as well: a symmetric edge is two of them.
    """
    if held.each_weighs_one:
        facts -= _OF_ONES
    if unit_weight is None:
        facts -= _OF_ROWS
    if not facts:
        return
    with held.attached(connection, "checking") as table:
        for fact in sorted(facts):
            reason, query = breach(fact, table, held.type)
            refuse_records(connection, query, held, relation, reason)
        if "symmetric" in facts and unit_weight is not None:
            half = f"CAST({largest_float(unit_weight / 2)!r} AS DOUBLE)"
            heavy = f"abs(a.w) > {half} AND NOT ({same_reversed(held.type, 'a')})"
            reason = f"(a, b) and (b, a) that weigh more than the unit weight {unit_weight} together"
            refuse_records(connection, f"SELECT a.* FROM {table} AS a WHERE {heavy}", held, relation, reason)


def breach(fact: str, table: str, type_: Type) -> tuple[str, str]:
    """The reason for which records of a table break a fact, and the query of these records."""
    reason, rest = _CHECKS[fact]
    reverse, loop = (same_reversed(type_, each) if "{" in rest else "" for each in "ba")  # only pairs have one
    return reason, f"SELECT a.* FROM {table} AS a {rest.format(table=table, reverse=reverse, loop=loop)}"


def enforce_sizes(connection: Any, sizes: Sizes | None, held: StoredColumns) -> None:
    """Refuse data of more records than a source declares, in all or of one key.

    They are refused as a whole: no row is at fault.
    """
    if sizes is None:
        return
    with held.attached(connection, "checking") as table:
        for words, query in size_breaches(sizes, table, held.type):
            if connection.execute(f"{query} LIMIT 1").fetchall():
                raise SourceRejected(broken_size(words))


def size_breaches(sizes: Sizes | None, table: str, type_: Type) -> Iterator[tuple[str, str]]:
    """The words of each bound on the records of a table, and a query of rows that break it."""
    if sizes is None:
        return
    places: dict[str, list[str]] = {}
    if isinstance(type_, TupleOf):
        columns, fields = iter(column_names(type_)), zip(type_.names, type_.elements, strict=True)
        places = {str(name): [next(columns) for _ in column_names(part)] for name, part in fields}
    for words, (names, most) in zip(sizes.words, sizes.bounds, strict=True):
        grouped = f" GROUP BY {', '.join(column for name in names for column in places[name])}" if names else ""
        yield words, f"SELECT 1 FROM {table}{grouped} HAVING count(*) > {most}"


def enforce_content(connection: Any, most: int, held: StoredColumns) -> None:
    """Refuse data in which a text or a list is larger than some number of code points.

    A list counts with all that is in it.
    """
    columns = [
        f"length(CAST({name} AS VARCHAR)) > {most}"
        for name, kind in zip(column_names(held.type), column_types(held.type), strict=True)
        if kind == "VARCHAR" or kind.endswith("[]")
    ]
    if not columns:
        return
    with held.attached(connection, "checking") as table:
        if connection.execute(f"SELECT 1 FROM {table} WHERE {' OR '.join(columns)} LIMIT 1").fetchall():
            raise SourceRejected(
                f"Cannot read the data: a text, or a list as text, has more than the {most:,} code points that the "
                "limits of untrusted mode allow. Raise Limits(max_record_bytes=...), or cut "
                "the data"
            )


def broken_size(words: str) -> str:
    """The message for data beyond a bound: that it does not hold, and nothing of the data."""
    return f"Cannot read the data: they break the declaration of {words}"


def refuse_records(connection: Any, unkept: str, held: StoredColumns, relation: Relation, reason: str) -> None:
    """Refuse the rows whose records a query gives, if there are any."""
    import duckdb

    if not connection.execute(f"{unkept} LIMIT 1").fetchall():
        return
    same = " AND ".join(f"s.{name} IS NOT DISTINCT FROM b.{name}" for name in column_names(held.type))
    there = "" if relation.norm is None else "WHERE s.w <> 0"
    tally = Tally()
    with contextlib.suppress(duckdb.Error, OSError, MemoryError), in_order(connection):  # whose words may quote rows
        again = relation.anew() if not relation.places and relation.anew is not None else relation
        found = f"SELECT s.n, 0 AS reason FROM ({again.numbered()}) AS s SEMI JOIN ({unkept}) AS b ON {same} {there}"
        for _, number, first in listed(connection, found):
            tally.add(first, {reason: number})
    tally.refuse("the data", noun=relation.noun, first=relation.first)
    raise SourceRejected(f"Cannot read the data: {reason}. The rows cannot be found again.")


def same_reversed(type_: Type, other: str = "b") -> str:
    """Whether the record `a` is the reverse of another, in the columns of both."""
    assert isinstance(type_, TupleOf)
    names, there = column_names(type_), int(type_.nullable)
    half = (len(names) - there) // 2
    reverse = [*names[:there], *names[there + half :], *names[there : there + half]]
    return " AND ".join(f"a.{one} IS NOT DISTINCT FROM {other}.{two}" for one, two in zip(names, reverse, strict=True))


#: For each fact, what is said of records that break it, and how a query finds them.
_CHECKS = {
    "nonnegative": ("a negative weight, where the source declares nonnegative", "WHERE a.w < 0"),
    "unit_weights": ("a weight that is not 1, where the source declares unit_weights", "WHERE a.w <> 1"),
    "whole_weights": (
        "a weight that is no number of rows (a source of weights is declared with weights=True)",
        "WHERE a.w < 0 OR a.w <> floor(a.w)",
    ),
    "simple": (
        "(a, a), or both (a, b) and (b, a), where the source declares simple",
        "SEMI JOIN {table} AS b ON {reverse}",
    ),
    "simple_digraph": ("(a, a), or (a, b) twice, where the source declares simple_digraph", "WHERE {loop} OR a.w <> 1"),
    "symmetric": (
        "(a, b) and (b, a) of different weight, where the source declares symmetric",
        "ANTI JOIN {table} AS b ON {reverse} AND a.w = b.w",
    ),
}

#: What numbers of rows keep.
_OF_ROWS = frozenset({"nonnegative", "whole_weights"})

#: What weights of 1 keep.
_OF_ONES = _OF_ROWS | {"unit_weights"}


def norm(weights: Iterable[float]) -> Fraction:
    """The sum of the absolute weights, without rounding."""
    scaled = 0
    for weight, times in Counter(map(abs, weights)).items():
        numerator, denominator = weight.as_integer_ratio()
        # Every float is an integer times 2**-1074: one common scale spares the gcd of adding fractions.
        scaled += (numerator << (1075 - denominator.bit_length())) * times
    return Fraction(scaled, 1 << 1074)


def largest_float(bound: Fraction) -> float:
    """The largest float that is not above a positive bound, so that comparing with it is exact."""
    if bound >= Fraction(sys.float_info.max):
        return sys.float_info.max
    number = float(bound)
    return number if Fraction(number) <= bound else math.nextafter(number, 0.0)
