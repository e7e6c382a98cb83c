"""Amounts that grow with what a record holds: sums of products of unknown sizes, with whole factors.

The sizes are at least 1. A list that nothing bounds has an unknown size, and so has each of its elements, whose sizes
add up to no more than that of the list: so going over all pieces of a text takes a time in proportion to the text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from wpinq.errors import ExpressionError

Factors = tuple[int, ...]
"""Unknown sizes that are multiplied, by number, in order."""

DEGREE_LIMIT = 32
"""The most unknown sizes in a product."""


@dataclass(frozen=True, slots=True)
class Amount:
    """A bound: products of unknown sizes, each with how often it is added."""

    terms: Mapping[Factors, int] = field(default_factory=dict)

    @classmethod
    def of(cls, number: int | Amount) -> Amount:
        """A whole number of at least 0 as an amount."""
        return number if isinstance(number, Amount) else cls({(): number} if number else {})

    def __add__(self, other: int | Amount) -> Amount:
        terms = dict(self.terms)
        for sizes, factor in Amount.of(other).terms.items():
            terms[sizes] = terms.get(sizes, 0) + factor
        return Amount(terms)

    __radd__ = __add__

    def __mul__(self, other: int | Amount) -> Amount:
        terms: dict[Factors, int] = {}
        for one, times in self.terms.items():
            for another, factor in Amount.of(other).terms.items():
                sizes = tuple(sorted(one + another))
                if len(sizes) > DEGREE_LIMIT:
                    raise ExpressionError("functions of lists stand too deep inside one another")
                terms[sizes] = terms.get(sizes, 0) + times * factor
        return Amount(terms)

    __rmul__ = __mul__

    def __bool__(self) -> bool:
        return bool(self.terms)

    def capped(self, most: int) -> Amount:
        """The same, where it is known to be no more than a number."""
        return Amount({sizes: min(factor, most) for sizes, factor in self.terms.items()})

    def over(self, size: int, count: Amount, total: Amount) -> Amount:
        """The sum over elements of a list, one of which has this unknown size: so many, of so much together."""
        added = Amount()
        for sizes, factor in self.terms.items():
            others = Amount({tuple(one for one in sizes if one != size): factor})
            times = len(sizes) - len(*others.terms)
            for _ in range(times):  # a sum of powers is at most the power of the sum
                others = others * total
            added = added + (others if times else others * count)
        return added

    @property
    def known(self) -> bool:
        """Whether it is a number, whatever the record holds."""
        return not any(self.terms)

    @property
    def factor(self) -> int:
        """How many times what it is in proportion to: its factors together."""
        return sum(self.terms.values())

    @property
    def degree(self) -> int:
        """How many unknown sizes are multiplied."""
        return max(map(len, self.terms), default=0)


def most(*amounts: int | Amount) -> Amount:
    """No less than any of some amounts."""
    terms: dict[Factors, int] = {}
    for amount in amounts:
        for sizes, factor in Amount.of(amount).terms.items():
            terms[sizes] = max(terms.get(sizes, 0), factor)
    return Amount(terms)
