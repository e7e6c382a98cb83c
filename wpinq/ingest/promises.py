"""What is checked of a dataset as a whole: the facts and the cap that its source declares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction

from wpinq.errors import PlanError
from wpinq.expr.facts import FACTS
from wpinq.expr.types import TupleOf, Type
from wpinq.expr.values import Value
from wpinq.ingest.rejection import reject


def check_facts(facts: frozenset[str], type_: Type) -> None:
    """Refuse facts that do not exist, or that records of the type cannot have."""
    unknown = sorted(set(facts) - set(FACTS))
    if unknown:
        raise PlanError(
            f"there is no fact {', '.join(map(repr, unknown))}: a source can declare {', '.join(sorted(FACTS))}"
        )
    if "symmetric" in facts and not (
        isinstance(type_, TupleOf) and len(type_.elements) == 2 and type_.elements[0] == type_.elements[1]
    ):
        raise PlanError(f"the fact 'symmetric' is for records of two fields of one type, not for {type_}")


def enforce(
    fact: str,
    dataset: Mapping[Value, float],
    records: Sequence[Value],
    weights: Sequence[float] | None,
    noun: str,
) -> None:
    """Refuse the data unless it keeps a fact. `records` and `weights` are the rows it came from."""
    reason, breaches = _CHECKS[fact]
    unkept = breaches(dataset)
    if unkept:
        faults = {
            position: reason
            for position, record in enumerate(records)
            if record in unkept and (weights is None or weights[position] != 0)
        }
        reject("the data", faults, noun=noun)


def _negative(dataset: Mapping[Value, float]) -> set[Value]:
    return {record for record, weight in dataset.items() if weight < 0}


def _not_one(dataset: Mapping[Value, float]) -> set[Value]:
    return {record for record, weight in dataset.items() if weight != 1}


def _asymmetric(dataset: Mapping[Value, float]) -> set[Value]:
    def reverse(record: Value) -> Value:
        return None if record is None else (record[1], record[0])

    return {record for record, weight in dataset.items() if dataset.get(reverse(record)) != weight}


_CHECKS: dict[str, tuple[str, Callable[[Mapping[Value, float]], set[Value]]]] = {
    "nonnegative": ("a negative weight, where the source declares nonnegative", _negative),
    "unit_weights": ("a weight that is not 1, where the source declares unit_weights", _not_one),
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
