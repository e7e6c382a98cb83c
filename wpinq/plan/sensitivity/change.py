"""The change of a dataset, as far as the plan tells: a sum of atoms, each with what it adds and takes away.

When one protected unit appears, a step's output changes by Δ. Δ is a sum of atoms; that of a term is zero but for
records which match the term, and

    ‖Δ⁺‖ ≤ increase      ‖Δ⁻‖ ≤ decrease      ‖Δ‖ ≤ total.

When the unit disappears, increase and decrease change places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from wpinq.plan.moves.terms import UNKNOWN, Term

ATOMS_LIMIT = 256
"""The most atoms that are told apart at a step; more become one of unknown record, which is sound and less sharp."""

_BITS = 96
"""The longest denominators that are kept; a longer one is rounded up: bounds of deep plans stay short numbers."""


@dataclass(frozen=True, slots=True)
class Move:
    """What a change adds, takes away, and is in all: each at least 0, neither part above the total, which is no more
    than their sum.

    Any three bounds come down to such: see `Move.of`.
    """

    increase: Fraction
    decrease: Fraction
    total: Fraction

    @staticmethod
    def of(increase: Fraction, decrease: Fraction, total: Fraction) -> Move:
        """The least move that three bounds allow."""
        increase, decrease = shorter(increase), shorter(decrease)
        total = min(shorter(total), increase + decrease)
        return Move(min(increase, total), min(decrease, total), total)

    @staticmethod
    def any_sign(total: Fraction) -> Move:
        """A change that may add or take away all of its total."""
        return Move.of(total, total, total)

    def __add__(self, other: Move) -> Move:
        return Move.of(self.increase + other.increase, self.decrease + other.decrease, self.total + other.total)

    def __mul__(self, share: Fraction) -> Move:
        return Move.of(self.increase * share, self.decrease * share, self.total * share)

    @property
    def reversed(self) -> Move:
        """What it is with the opposite sign."""
        return Move(self.decrease, self.increase, self.total)

    @property
    def of_one_record(self) -> Move:
        """What it is where all of it falls on one record: that gains or loses, and not both."""
        return Move.of(self.increase, self.decrease, max(self.increase, self.decrease))


NOTHING = Move(Fraction(0), Fraction(0), Fraction(0))
ONE = Move(Fraction(1), Fraction(0), Fraction(1))
"""One record of weight 1 appears."""


def shorter(number: Fraction) -> Fraction:
    """The number, or a slightly larger one of a shorter denominator."""
    excess = number.denominator.bit_length() - _BITS
    if excess <= 0:
        return number
    return Fraction(-(-number.numerator >> excess), number.denominator >> excess)


@dataclass(frozen=True, slots=True)
class Change:
    """How one unit changes a step's output.

    Attributes
    ----------
    atoms : mapping
        Term to the bounds of its atom.
    rules : frozenset of str
        The rules that made it less than what paths count, in words for bills.
    """

    atoms: Mapping[Term, Move]
    rules: frozenset[str] = frozenset()

    @property
    def total(self) -> Fraction:
        """The most that all of it is, in norm."""
        return sum((move.total for move in self.atoms.values()), Fraction(0))

    def mapped(self, term: Callable[[Term], Term]) -> Change:
        """The change of records that become others, each with its whole weight."""
        return added(((term(of), move) for of, move in self.atoms.items()), self.rules)

    def each(self, move: Callable[[Move], Move]) -> Change:
        """The change with every atom's bounds put through a function."""
        return added(((of, move(bounds)) for of, bounds in self.atoms.items()), self.rules)

    def by(self, term: Callable[[Term], Term]) -> Iterator[tuple[Term, Move]]:
        """Its atoms added up by a term, as the key of their records."""
        sums: dict[Term, Move] = {}
        for of, move in self.atoms.items():
            key = term(of)
            sums[key] = sums.get(key, NOTHING) + move
        return iter(sums.items())


ONE_RECORD = "what falls on one record is gain or loss, not both"


def added(atoms: Iterable[tuple[Term, Move]], rules: Iterable[str] = ()) -> Change:
    """The change that is the sum of these atoms.

    Atoms of one term become one. What falls on one record known by its term is no more than the larger of what that
    record gains and loses.
    """
    sums: dict[Term, Move] = {}
    for term, move in atoms:
        if move.total:
            sums[term] = sums.get(term, NOTHING) + move
    used = set(rules)
    for term, move in sums.items():
        if term.known and move.of_one_record.total < move.total:
            used.add(ONE_RECORD)
            sums[term] = move.of_one_record
    if len(sums) > ATOMS_LIMIT:
        sums = {UNKNOWN: sum(sums.values(), NOTHING)}
    return Change(sums, frozenset(used))


def together(changes: Iterable[Change]) -> Change:
    """The sum of changes."""
    changes = list(changes)
    return added(
        (item for change in changes for item in change.atoms.items()), [r for change in changes for r in change.rules]
    )


def anything(changes: Iterable[Change]) -> Change:
    """All that stability tells: as much as the inputs change, at whatever records, of either sign."""
    changes = list(changes)
    total = sum((change.total for change in changes), Fraction(0))
    return added([(UNKNOWN, Move.any_sign(total))], [r for change in changes for r in change.rules])
