"""What the plan tells of the weights of a step's output, for sources that hold every record with a weight of 1.

No unit is counted here: these are bounds on the data before a unit appears and after, and rule M uses both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from wpinq.plan.sensitivity.records import Path, Term

Fields = frozenset[Path]
"""Fields of a record: which records hold the same values there."""


@dataclass(frozen=True, slots=True)
class WeightBound:
    """Bounds on the weights of a dataset in which none is negative.

    Attributes
    ----------
    largest : Fraction or None
        What no weight exceeds.
    a_key : mapping
        Fields to what all records that hold the same values there weigh together, at most.
    oriented : tuple of (str, bool), or None
        The simple source of which it holds no more than a part, and whether its records stand reversed: two parts of
        opposite direction share no record.
    """

    largest: Fraction | None = None
    a_key: Mapping[Fields, Fraction] = field(default_factory=dict)
    oriented: tuple[str, bool] | None = None

    def at_key(self, record: Term) -> Fraction | None:
        """What the records together weigh of which a key shows what is known in this symbolic record, at most."""
        known = [bound for fields, bound in self.a_key.items() if all(record.at(path).known for path in fields)]
        return min(known, default=None)


NO_WEIGHT_BOUND = WeightBound()


def following(bounds: Mapping[Fields, Fraction], record: Term, image: Term) -> dict[Fields, Fraction]:
    """Bounds a key on the images of records, all of whose fields are told apart in `record`.

    They stay where the image shows the fields of the key: whatever merges held the same values there.
    """
    shown = {term: path for path, term in reversed(list(image.paths()))}
    kept: dict[Fields, Fraction] = {}
    for fields, bound in bounds.items():
        terms = [record.at(path) for path in fields]
        if all(term in shown for term in terms):
            kept[frozenset(shown[term] for term in terms)] = bound
    return kept


def injective(record: Term, image: Term) -> bool:
    """Whether no two records have one image: every field that is told apart in the record stands in the image."""
    shown = {term for _, term in image.paths()}
    return all(_stands(term, shown) for term in (record.fields or (record,)))


def _stands(term: Term, shown: set[Term]) -> bool:
    return term in shown or (bool(term.fields) and all(_stands(part, shown) for part in term.fields))


def least(bounds: Iterable[Fraction | None]) -> Fraction | None:
    """The smallest bound that there is."""
    return min((bound for bound in bounds if bound is not None), default=None)
