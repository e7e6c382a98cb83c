"""What is checked of a dataset as a whole: the facts and the cap that its source declares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from wpinq.columns.flat import column_names
from wpinq.columns.held import HeldColumns
from wpinq.errors import PlanError
from wpinq.expr.facts import FACTS
from wpinq.expr.types import TupleOf, Type
from wpinq.ingest.rejection import Tally
from wpinq.ingest.scan import Scan, in_order, listed


def check_facts(facts: frozenset[str], type_: Type) -> None:
    """Refuse facts that do not exist, or that records of the type cannot have."""
    unknown = sorted(set(facts) - set(FACTS))
    if unknown:
        raise PlanError(
            f"there is no fact {', '.join(map(repr, unknown))}: a source can declare {', '.join(sorted(FACTS))}"
        )
    if "symmetric" in facts and not (isinstance(type_, TupleOf) and len(type_.elements) == 2 and _alike(type_)):
        raise PlanError(f"the fact 'symmetric' is for records of two fields of one type, not for {type_}")


def _alike(type_: TupleOf) -> bool:
    """Whether the two fields of a record are of one type, and lie in as many columns."""
    left, right = type_.elements
    return left == right and len(column_names(left)) == len(column_names(right))


def enforce(connection: Any, facts: frozenset[str], held: HeldColumns, scan: Scan) -> None:
    """Refuse data that does not keep a fact: `held`, which came from the rows of a scan."""
    with held.shown(connection, "checking") as table:
        for fact in sorted(facts):
            reason, breaches = _CHECKS[fact]
            unkept = f"SELECT a.* FROM {table} AS a {breaches(table, held.type)}"
            if not connection.execute(f"{unkept} LIMIT 1").fetchall():
                continue
            if not scan.places and scan.anew is not None:
                scan = scan.anew()
            same = " AND ".join(f"s.{name} IS NOT DISTINCT FROM b.{name}" for name in column_names(held.type))
            there = "" if scan.norm is None else "WHERE s.w <> 0"
            found = f"SELECT s.n, 0 AS reason FROM ({scan.numbered()}) AS s SEMI JOIN ({unkept}) AS b ON {same} {there}"
            tally = Tally()
            with in_order(connection):
                for _, number, first in listed(connection, found):
                    tally.add(first, {reason: number})
            tally.refuse("the data", noun=scan.noun, first=scan.first)


def _asymmetric(table: str, type_: Type) -> str:
    assert isinstance(type_, TupleOf)
    names, there = column_names(type_), int(type_.nullable)
    half = (len(names) - there) // 2
    reverse = [*names[:there], *names[there + half :], *names[there : there + half]]
    same = " AND ".join(f"a.{name} IS NOT DISTINCT FROM b.{other}" for name, other in zip(names, reverse, strict=True))
    return f"ANTI JOIN {table} AS b ON {same} AND a.w = b.w"


def _where(condition: str) -> Callable[[str, Type], str]:
    return lambda table, type_: f"WHERE {condition}"


_CHECKS: dict[str, tuple[str, Callable[[str, Type], str]]] = {
    "nonnegative": ("a negative weight, where the source declares nonnegative", _where("a.w < 0")),
    "unit_weights": (
        "a weight that is not 1, where the source declares unit_weights",
        _where("a.w <> 1"),
    ),
    "symmetric": ("(a, b) and (b, a) of different weight, where the source declares symmetric", _asymmetric),
}


def norm(weights: Iterable[float]) -> Fraction:
    """The sum of the absolute weights, without rounding."""
    scaled = 0
    for weight, times in Counter(map(abs, weights)).items():
        numerator, denominator = weight.as_integer_ratio()
        # Every float is an integer times 2**-1074: one common scale spares the gcd of adding fractions.
        scaled += (numerator << (1075 - denominator.bit_length())) * times
    return Fraction(scaled, 1 << 1074)
