"""How many records a step can have, and how many rows it handles: upper bounds from what the sources declare.

Beside the number of all records stands, for some fields, the most records that hold the same values there. Each
operator says its own part (`Operator.rows`). No bill and no noise follows from these.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from wpinq.plan.sensitivity.records import Term
from wpinq.plan.sensitivity.weight_bound import Fields

KEYS_LIMIT = 32
"""The most sets of fields that are followed."""


@dataclass(frozen=True, slots=True)
class RowBounds:
    """Bounds on the records of a step.

    Attributes
    ----------
    records : int or None
        The most records; None where nothing declared bounds them.
    a_key : mapping
        Fields to the most records that hold the same values there.
    handled : int or None
        The most rows that the step makes or looks at, before equal ones are added up.
    """

    records: int | None = None
    a_key: Mapping[Fields, int] = field(default_factory=dict)
    handled: int | None = None

    def at_key(self, record: Term) -> int | None:
        """The most records of which a key shows what is known in this symbolic record."""
        known = [most for fields, most in self.a_key.items() if all(record.at(path).known for path in fields)]
        return fewest([self.records, *known])


@dataclass(frozen=True, slots=True)
class Sized:
    """What is known of an input: its records, a bound on its norm, what no weight exceeds, and what all are.

    Attributes
    ----------
    rows : RowBounds
        Its records.
    norm_bound : Fraction
        A bound on its norm.
    largest : Fraction or None
        What no weight exceeds, where none is negative.
    even : bool
        Whether all records weigh the same.
    nonnegative : bool
        Whether no weight is negative.
    """

    rows: RowBounds
    norm_bound: Fraction
    largest: Fraction | None = None
    even: bool = False
    nonnegative: bool = False


def fewest(bounds: Iterable[int | None]) -> int | None:
    """The smallest bound that there is."""
    return min((bound for bound in bounds if bound is not None), default=None)


def both(one: int | None, other: int | None) -> int | None:
    """A sum, of which nothing is known where one is unknown."""
    return None if one is None or other is None else one + other


def times(one: int | None, other: int | None) -> int | None:
    """A product, of which nothing is known where one is unknown and the other is not 0."""
    if one == 0 or other == 0:
        return 0
    return None if one is None or other is None else one * other


def pieces(below: Sized, width: Fraction, limit: int | None) -> tuple[int | None, int | None]:
    """The pieces of one width: of all records together, and of one record."""
    largest = None
    if below.largest is not None:  # a weight that was rounded up leaves one rest more
        ratio = below.largest / width
        largest = math.ceil(ratio) if below.even else math.floor(ratio) + 1
    one = fewest([limit, largest])
    shared = both(
        below.rows.records, math.floor(below.norm_bound / width) + 1
    )  # whole ones share the norm; a rest each
    return fewest([times(below.rows.records, one), shared]), one


def kept(a_key: Mapping[Fields, int], limit: int = KEYS_LIMIT) -> dict[Fields, int]:
    """As many keys as are followed, those of the fewest records first."""
    order = sorted(a_key.items(), key=lambda item: (item[1], len(item[0]), sorted(item[0])))
    return dict(order[:limit])


def lower(a_key: dict[Fields, int], fields: Fields, most: int) -> None:
    """Take the smaller of two bounds on one key."""
    a_key[fields] = min(most, a_key.get(fields, most))


def followed(a_key: Mapping[Fields, int], record: Term, image: Term) -> dict[Fields, int]:
    """Bounds a key on the images of records: they stay where the image shows the fields of the key."""
    shown = {term: path for path, term in reversed(list(image.paths()))}
    found: dict[Fields, int] = {}
    for fields, most in a_key.items():
        terms = [record.at(path) for path in fields]
        if all(term.known and term in shown for term in terms):
            key = frozenset(shown[term] for term in terms)
            found[key] = min(most, found.get(key, most))
    return found
