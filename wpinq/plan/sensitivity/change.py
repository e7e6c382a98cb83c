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
from functools import lru_cache
from itertools import product

from wpinq.plan.sensitivity.records import UNKNOWN, Term

ATOMS_LIMIT = 256
"""The most atoms that are told apart at a step; more become one of unknown record, which is sound and less sharp."""

_BITS = 96
"""The longest denominators that are kept; a longer one is rounded up: bounds of deep plans stay short numbers."""


@dataclass(frozen=True, slots=True)
class ChangeBounds:
    """What a change adds, takes away, and is in all: each at least 0, neither part above the total, which is no more
    than their sum.

    Any three bounds come down to such: see `ChangeBounds.of`.
    """

    increase: Fraction
    decrease: Fraction
    total: Fraction

    @staticmethod
    def of(increase: Fraction, decrease: Fraction, total: Fraction) -> ChangeBounds:
        """The least move that three bounds allow."""
        increase, decrease = shorter(increase), shorter(decrease)
        total = min(shorter(total), increase + decrease)
        return ChangeBounds(min(increase, total), min(decrease, total), total)

    @staticmethod
    def any_sign(total: Fraction) -> ChangeBounds:
        """A change that may add or take away all of its total."""
        return ChangeBounds.of(total, total, total)

    def __add__(self, other: ChangeBounds) -> ChangeBounds:
        return ChangeBounds.of(self.increase + other.increase, self.decrease + other.decrease, self.total + other.total)

    def __mul__(self, share: Fraction) -> ChangeBounds:
        return ChangeBounds.of(self.increase * share, self.decrease * share, self.total * share)

    @property
    def reversed(self) -> ChangeBounds:
        """What it is with the opposite sign."""
        return ChangeBounds(self.decrease, self.increase, self.total)

    @property
    def of_one_record(self) -> ChangeBounds:
        """What it is where all of it falls on one record: that gains or loses, and not both."""
        return ChangeBounds.of(self.increase, self.decrease, max(self.increase, self.decrease))


NOTHING = ChangeBounds(Fraction(0), Fraction(0), Fraction(0))
ONE = ChangeBounds(Fraction(1), Fraction(0), Fraction(1))
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

    atoms: Mapping[Term, ChangeBounds]
    rules: frozenset[str] = frozenset()

    @property
    def total(self) -> Fraction:
        """The most that all of it is, in norm."""
        return sum((move.total for move in self.atoms.values()), Fraction(0))

    def mapped(self, term: Callable[[Term], Term]) -> Change:
        """The change of records that become others, each with its whole weight."""
        return added(((term(of), move) for of, move in self.atoms.items()), self.rules)

    def each(self, move: Callable[[ChangeBounds], ChangeBounds]) -> Change:
        """The change with every atom's bounds put through a function."""
        return added(((of, move(bounds)) for of, bounds in self.atoms.items()), self.rules)

    def by(self, term: Callable[[Term], Term]) -> Iterator[tuple[Term, ChangeBounds]]:
        """Its atoms added up by a term, as the key of their records."""
        sums: dict[Term, ChangeBounds] = {}
        for of, move in self.atoms.items():
            key = term(of)
            sums[key] = sums.get(key, NOTHING) + move
        return iter(sums.items())


ONE_RECORD = "what falls on one record is gain or loss, not both"


def added(atoms: Iterable[tuple[Term, ChangeBounds]], rules: Iterable[str] = ()) -> Change:
    """The change that is the sum of these atoms.

    Atoms of one term become one. What falls on one record known by its term is no more than the larger of what that
    record gains and loses.
    """
    sums: dict[Term, ChangeBounds] = {}
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
    return added([(UNKNOWN, ChangeBounds.any_sign(total))], [r for change in changes for r in change.rules])


# What a Join does to changes of its inputs: rule J where weights have any sign, rule S where none is negative.
#
# At one key, with a = ‖A_k‖, b = ‖B_k‖ and p = a/(a + b), every rate of `A_k ⊗ B_k / (a + b)` along the straight line
# between two inputs is a function of p and of the rates of the inputs; its largest value over p and over what the
# inputs may do is the bound. docs/proofs/stability.md derives the forms.

_ZERO, _ONE = Fraction(0), Fraction(1)


@lru_cache(maxsize=4096)
def at_one_key(left: ChangeBounds, right: ChangeBounds) -> ChangeBounds:
    """The change of a Join's output at one key, where no input weight is negative (rule S).

    With d = p_L − n_L + p_R − n_R, the rates of gain, loss and both are at most

        p_L(1−p) + p_R·p + p(1−p)·max(0, −d)        n_L(1−p) + n_R·p + p(1−p)·max(0, d)
        (p_L+n_L)(1−p) + (p_R+n_R)·p + p(1−p)·|d|

    They are convex in (p_L, n_L, p_R, n_R), so the largest value is at a corner of what the inputs may do.

    Examples
    --------
    >>> from wpinq.plan.sensitivity.change import ONE
    >>> at_one_key(ONE, ONE)
    ChangeBounds(increase=Fraction(1, 1), decrease=Fraction(1, 2), total=Fraction(3, 2))
    """
    gain = loss = both = _ZERO
    for (gained, lost), (won, missed) in product(_corners(left), _corners(right)):
        drift = gained - lost + won - missed
        gain = max(gain, _largest(gained, won, max(_ZERO, -drift)))
        loss = max(loss, _largest(lost, missed, max(_ZERO, drift)))
        both = max(both, _largest(gained + lost, won + missed, abs(drift)))
    return ChangeBounds.of(gain, loss, both)


@lru_cache(maxsize=4096)
def at_one_key_of_any_sign(left: Fraction, right: Fraction) -> ChangeBounds:
    """The change at one key where weights may be negative (rule J): `α + β − αβ/(α + β)`, all of it of either sign."""
    if not left + right:
        return ChangeBounds.any_sign(_ZERO)
    return ChangeBounds.any_sign(shorter(left + right - left * right / (left + right)))


@lru_cache(maxsize=4096)
def at_unknown_keys(move: ChangeBounds) -> ChangeBounds:
    """The change of the output where that of one input lies at keys that are unknown, and may be many.

    At each, what is gained can be lost by up to a quarter at once, as the scale of the key moves, and each key has a
    scale of its own: `max (p + n/4)` over what the input may do.
    """
    gain = max(gained + lost / 4 for gained, lost in _corners(move))
    loss = max(lost + gained / 4 for gained, lost in _corners(move))
    return ChangeBounds.of(gain, loss, move.total)


def _corners(move: ChangeBounds) -> Iterator[tuple[Fraction, Fraction]]:
    """The corners of `0 ≤ gained ≤ increase, 0 ≤ lost ≤ decrease, gained + lost ≤ total`."""
    yield _ZERO, _ZERO
    yield move.increase, _ZERO
    yield _ZERO, move.decrease
    yield move.increase, move.total - move.increase
    yield move.total - move.decrease, move.decrease


def _largest(left: Fraction, right: Fraction, scale: Fraction) -> Fraction:
    """The largest value over 0 ≤ p ≤ 1 of `left·(1−p) + right·p + scale·p(1−p)`."""
    ends = max(left, right)
    if abs(right - left) >= scale:  # the slope has one sign between the ends
        return ends
    return (left + right) / 2 + scale / 4 + (right - left) ** 2 / (4 * scale)
