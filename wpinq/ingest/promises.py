"""What is checked of a dataset as a whole: the facts and the cap that its source declares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from wpinq.expr.values import Value
from wpinq.ingest.people import Id, asymmetric_people
from wpinq.ingest.rejection import reject


def enforce_all(
    facts: frozenset[str],
    dataset: Mapping[Value, Any],
    records: Sequence[Value],
    weights: Sequence[float | Fraction] | None,
    noun: str = "row",
) -> None:
    """Refuse the data unless it keeps the declared facts.

    Parameters
    ----------
    facts : frozenset of str
        The facts.
    dataset : mapping
        Record to weight, none of them 0.
    records, weights : sequence
        The rows that it came from; weights of their own are those of the items of a mapping.
    noun : str
        What messages call a row.
    """
    for fact in sorted(facts):
        reason, breaches = _CHECKS[fact]
        _refuse(reason, breaches(dataset), records, weights, noun)


def enforce_unit_of_edges(records: Sequence[Value], weights: Sequence[float], unit_weight: Fraction) -> None:
    """Refuse items whose weight with that of their reverse is more than a unit: an edge is both of them."""
    heavy = {
        record
        for record, weight in zip(records, weights, strict=True)
        if record is not None and record[0] != record[1] and 2 * abs(Fraction(weight)) > unit_weight
    }
    reason = f"(a, b) and (b, a) that weigh more than the unit weight {unit_weight} together"
    _refuse(reason, heavy, records, weights, "item")


def _refuse(
    reason: str,
    unkept: set[Value],
    records: Sequence[Value],
    weights: Sequence[float | Fraction] | None,
    noun: str,
) -> None:
    faults = {
        position: reason
        for position, record in enumerate(records)
        if record in unkept and (weights is None or weights[position] != 0)
    }
    if unkept:
        reject("the data", faults, noun=noun)


def enforce_symmetry(kept: Mapping[Id, Sequence[Value]], records: Sequence[Value]) -> None:
    """Refuse people whose rows are not symmetric by themselves: one of them left out would leave the fact untrue."""
    reason = "(a, b) and (b, a) of different weight for one person, where the source declares symmetric"
    _refuse(reason, asymmetric_people(kept), records, None, "row")


def _negative(dataset: Mapping[Value, float]) -> set[Value]:
    return {record for record, weight in dataset.items() if weight < 0}


def _not_one(dataset: Mapping[Value, float]) -> set[Value]:
    return {record for record, weight in dataset.items() if weight != 1}


def _asymmetric(dataset: Mapping[Value, float]) -> set[Value]:
    def reverse(record: Value) -> Value:
        return None if record is None else (record[1], record[0])

    return {record for record, weight in dataset.items() if dataset.get(reverse(record)) != weight}


def _not_simple(dataset: Mapping[Value, float]) -> set[Value]:
    return {record for record in dataset if record is not None and (record[1], record[0]) in dataset}


_CHECKS: dict[str, tuple[str, Callable[[Mapping[Value, float]], set[Value]]]] = {
    "nonnegative": ("a negative weight, where the source declares nonnegative", _negative),
    "unit_weights": ("a weight that is not 1, where the source declares unit_weights", _not_one),
    "simple": ("(a, a), or both (a, b) and (b, a), where the source declares simple", _not_simple),
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
