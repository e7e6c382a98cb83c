"""Bounds on the weights of a step's output, for sources with every record at weight 1.

No unit is counted here: these are bounds on the data before a unit appears and after, and rule M uses both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice, product
from typing import TypeVar

from wpinq.expr.types import Type
from wpinq.plan.sensitivity.change import Change, Path, Term, any_record, together

#: Fields of a record: those in which records may agree.
Fields = frozenset[Path]


@dataclass(frozen=True, slots=True)
class WeightBound:
    """Bounds on the weights of a dataset in which none is negative.

    Attributes
    ----------
    largest : Fraction or None
        What no weight exceeds.
    a_key : mapping
        Fields to the most that all records with the same values there weigh together.
    oriented : tuple of (str, bool), or None
        The simple source of which it holds no more than a part, and whether its records stand reversed: two parts of
        opposite direction share no record.
    """

    largest: Fraction | None = None
    a_key: Mapping[Fields, Fraction] = field(default_factory=dict)
    oriented: tuple[str, bool] | None = None

    def at_key(self, record: Term) -> Fraction | None:
        """The most total weight of the records that agree with a symbolic record at a key."""
        return at_key(self.a_key, record)


NO_WEIGHT_BOUND = WeightBound()

# Bounds a key: fields to the most that all records with the same values there are together, in weight or number.

N = TypeVar("N", int, Fraction)


def least(bounds: Iterable[N | None]) -> N | None:
    """The smallest bound that there is."""
    return min((bound for bound in bounds if bound is not None), default=None)


def at_key(a_key: Mapping[Fields, N], record: Term) -> N | None:
    """The bound on the records of which a key shows what is known in this symbolic record."""
    return least(bound for fields, bound in a_key.items() if all(record.at(path).known for path in fields))


def lower(a_key: dict[Fields, N], fields: Fields, most: N) -> None:
    """Take the smaller of two bounds on one key."""
    a_key[fields] = min(most, a_key.get(fields, most))


def of_both(left: Mapping[Fields, N], right: Mapping[Fields, N]) -> dict[Fields, N]:
    """Bounds a key on two datasets together."""
    return {fields: left[fields] + right[fields] for fields in left if fields in right}


def of_either(left: Mapping[Fields, N], right: Mapping[Fields, N]) -> dict[Fields, N]:
    """Bounds a key on what is no more than either of two datasets."""
    a_key = dict(left)
    for fields, bound in right.items():
        lower(a_key, fields, bound)
    return a_key


def followed(a_key: Mapping[Fields, N], record: Term, image: Term) -> dict[Fields, N]:
    """Bounds a key on the images of records.

    They stay where the image shows the fields of the key: records that merge had the same values there.
    """
    shown = {term: path for path, term in reversed(list(image.paths()))}
    found: dict[Fields, N] = {}
    for fields, bound in a_key.items():
        terms = [record.at(path) for path in fields]
        if all(term.known and term in shown for term in terms):
            lower(found, frozenset(shown[term] for term in terms), bound)
    return found


def injective(record: Term, image: Term) -> bool:
    """Whether no two records have one image.

    Every field that is distinct in the record then stands in the image.
    """
    shown = {term for _, term in image.paths()}
    return all(_stands(term, shown) for term in (record.fields or (record,)))


def _stands(term: Term, shown: set[Term]) -> bool:
    return term in shown or (bool(term.fields) and all(_stands(part, shown) for part in term.fields))


# What a dataset's weight descends from: the records of one below, put through functions, in fixed parts.
#
# Where the weights of both sides of a Join at every key are fixed multiples of one number, the ratio of the sides is
# known, and so is how the scale of the key moves: rule R of docs/proofs/stability.md.

#: The most `Proportions` of a step that are kept, and the most parts of one: so that deep plans take no longer than
#: they are deep. To know fewer is sound, and may miss a ratio.
_KEPT, _PARTS = 4, 64


#: Digest of a ground, and a term over the fields of its record, to a coefficient above 0.
Parts = Mapping[tuple[bytes, Term], Fraction]


@dataclass(frozen=True, slots=True)
class Proportions:
    """A dataset without negative weights, as a sum of images of datasets below.

    These datasets are its *grounds*.

    In all data, the weight that any function of the fields known here has at any value is the sum over `parts` of the
    coefficient times the weight of the ground's records that the term takes there.

    Attributes
    ----------
    parts : mapping
        The ground is part of the key: a constant is one term, of as many weights as there are datasets.
    change : Change
        What the ground's change makes of that sum.
    """

    parts: Parts
    change: Change

    def mapped(self, function: Callable[[Term], Term]) -> Proportions:
        """Of records that become others, each with its whole weight."""
        parts = _added(((ground, function(term)), factor) for (ground, term), factor in self.parts.items())
        return Proportions(parts, self.change.mapped(function))

    def times(self, factor: Fraction) -> Proportions:
        """Of all weights times a factor above 0."""
        parts = {part: coefficient * factor for part, coefficient in self.parts.items()}
        return Proportions(parts, self.change.each(lambda move: move * factor))


KnownProportions = tuple[Proportions, ...]


def with_itself(known: KnownProportions, digest: bytes, type_: Type, change: Change) -> KnownProportions:
    """The known proportions of a dataset, and the dataset as its own ground.

    All of its fields are known there.
    """
    itself = Proportions({(digest, any_record("ground", type_)): Fraction(1)}, change)
    return (*known[: _KEPT - 1], itself)


def summed(ways: Iterable[Sequence[Proportions]]) -> KnownProportions:
    """Of datasets that are put together, in each of the ways in which they descend."""
    return some(map(_sum, ways))


def some(found: Iterable[Proportions]) -> KnownProportions:
    """As many as are kept of what is known of one dataset."""
    return tuple(islice((one for one in found if len(one.parts) <= _PARTS), _KEPT))


def _sum(chosen: Sequence[Proportions]) -> Proportions:
    parts = _added(item for one in chosen for item in one.parts.items())
    return Proportions(parts, together(one.change for one in chosen))


def _added(items: Iterable[tuple[tuple[bytes, Term], Fraction]]) -> Parts:
    sums: dict[tuple[bytes, Term], Fraction] = {}
    for part, factor in items:
        sums[part] = sums.get(part, Fraction(0)) + factor
    return sums


@dataclass(frozen=True, slots=True)
class Ratio:
    """At every key the sides of a Join weigh `a = c·m` and `b = c′·m`, with c and c′ fixed.

    Attributes
    ----------
    left, right : Fraction
        What a change of either side makes of the output: `b/(a + b)` and `a/(a + b)`.
    scale : Change
        By key, what the move of m takes from all pairs there: `c·c′/(c + c′)` times it, with the opposite sign.
    """

    left: Fraction
    right: Fraction
    scale: Change


def ratio_of(left: KnownProportions, right: KnownProportions, keys: Sequence[Callable[[Term], Term]]) -> Ratio | None:
    """The ratio of the sides of a Join by these keys, where their grounds show it."""
    by_key, others = ([one.mapped(key) for one in side] for side, key in zip((left, right), keys, strict=True))
    for one, other in product(by_key, others):
        times = _multiple(one.parts, other.parts)
        if times is not None:  # c = times · c′
            of_left = 1 / (1 + times)
            return Ratio(of_left, 1 - of_left, one.times(of_left).change.each(lambda move: move.reversed))
    return None


def _multiple(one: Parts, other: Parts) -> Fraction | None:
    """The factor between two sums of parts, if it is one number and all terms are known."""
    if not one or one.keys() != other.keys() or not all(term.known for _, term in one):
        return None
    found = {factor / other[part] for part, factor in one.items()}
    return found.pop() if len(found) == 1 else None
