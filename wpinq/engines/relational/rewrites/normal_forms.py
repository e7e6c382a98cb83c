"""Terms that have equal values in every row, by their form: what is the same whatever order it is written in.

Two terms get one number where they differ only in

- which of the columns that a condition makes equal they read;
- the order of the two sides of an equality;
- the way in which they choose among integers by `least` and `greatest`. These make a distributive lattice, in which
  every such term has one normal form, the greatest of leasts of which none implies another. So any two networks that
  sort the same values have the same numbers, place by place. Nulls, which are left out rather than compared, are no
  part of that: a term that can be null is taken as it is written.

Equal numbers mean equal values; different numbers mean nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from wpinq.engines.relational.blocks.term import SqlTerm, walk

Choices = frozenset[frozenset[int]]
"""The greatest of the leasts of some terms, by their numbers; no set contains another."""

_CHOICES_LIMIT = 256
"""How large a normal form gets, with ten values 252; beyond it a term is taken as it is written."""


class NormalForms:
    """Numbers of terms over columns of which some are known to be equal.

    Parameters
    ----------
    stands_for : callable
        The column that stands for all that are equal to a column.
    """

    def __init__(self, stands_for: Callable[[SqlTerm], SqlTerm]) -> None:
        self._stands_for = stands_for
        self._numbers: dict[Hashable, int] = {}
        self._known: dict[bytes, int] = {}
        self._choices: dict[int, Choices] = {}

    def number(self, root: SqlTerm) -> int:
        """The number of a term."""
        for term in walk([root]):
            if term.digest not in self._known:
                self._known[term.digest] = self._number(term, [self._known[part.digest] for part in term.arguments])
        return self._known[root.digest]

    def _number(self, term: SqlTerm, parts: list[int]) -> int:
        if term.kind == "column":
            return self._held(self._stands_for(term).digest)
        if term.kind == "call" and term.text in ("least", "greatest") and not term.nullable:
            chosen = self._chosen(term.text, *parts)
            if len(chosen) <= _CHOICES_LIMIT:
                return self._of_choices(chosen)
        if term.kind == "call" and term.text in ("equal", "same"):
            return self._held((term.text, frozenset(parts)))
        return self._held((term.kind, term.text, tuple(parts)))

    def _chosen(self, name: str, left: int, right: int) -> Choices:
        a, b = (self._choices.get(part, frozenset((frozenset((part,)),))) for part in (left, right))
        sets = a | b if name == "greatest" else {one | other for one in a for other in b}
        return frozenset(one for one in sets if not any(other < one for other in sets))

    def _of_choices(self, chosen: Choices) -> int:
        if len(chosen) == 1:
            (only,) = chosen
            if len(only) == 1:
                return next(iter(only))
        number = self._held(chosen)
        self._choices[number] = chosen
        return number

    def _held(self, form: Hashable) -> int:
        return self._numbers.setdefault(form, len(self._numbers))
