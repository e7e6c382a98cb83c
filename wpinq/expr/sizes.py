"""Upper bounds that a source may declare: on its records, and on those that agree in some fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from wpinq.errors import PlanError
from wpinq.expr.types import TupleOf, Type

SIZE_LIMIT = 2**53
"""The largest bound that may be declared."""

Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sizes:
    """At most so many records, and at most so many with one value of some fields. Part of a source's declaration.

    Upper bounds only: what holds of a dataset holds without any one unit too. They bound the work of plans, and never
    cut rows nor sharpen a bill.

    Attributes
    ----------
    records : int or None
        The most records, each counted once.
    keys : tuple of (tuple of str, int)
        Fields, and the most records that hold the same values there.
    """

    records: int | None = None
    keys: tuple[tuple[Names, int], ...] = ()

    def check(self, record: Type) -> None:
        """Refuse bounds that records of a type cannot have.

        Raises
        ------
        PlanError
            With what to declare instead.
        """
        if not isinstance(self.keys, tuple) or not (self.records is not None or self.keys):
            raise PlanError("sizes bound the records of a source, or those of a key")
        for number in [*([] if self.records is None else [self.records]), *(most for _, most in self.keys)]:
            if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= SIZE_LIMIT:
                raise PlanError(f"a bound on records is an integer from 1 to 2^53, not {number!r}")
        for names, _ in self.keys:
            fields = record.names if isinstance(record, TupleOf) and not record.nullable else ()
            if not names or len(set(names)) < len(names) or not all(name in fields for name in names):
                named = ", ".join(str(field) for field in fields if field is not None) or "none with a name"
                raise PlanError(
                    f"keys_at_most bounds the records that agree in fields of the source, which are {named}: write "
                    'keys_at_most={"src": 500}, or {("src", "dst"): 3} for several fields together'
                )
        if len({frozenset(names) for names, _ in self.keys}) < len(self.keys):
            raise PlanError("keys_at_most has one bound for the same fields")

    @property
    def words(self) -> tuple[str, ...]:
        """What is promised, for bills."""
        records = () if self.records is None else (f"at most {_records(self.records)}",)
        return (*records, *(f"at most {_records(most)} with one {' and '.join(names)}" for names, most in self.keys))

    @property
    def bounds(self) -> tuple[tuple[Names, int], ...]:
        """Each bound, with the fields that its records agree in: none where it is on all of them."""
        return (*(() if self.records is None else (((), self.records),)), *self.keys)

    @property
    def text(self) -> str:
        """The same for the ledger: what an account fixes."""
        records = [] if self.records is None else [f"at most {self.records} records"]
        # repr: no name of a field may read like the rest of a declaration
        return ", ".join([*records, *(f"at most {most} a key {names!r}" for names, most in self.keys)])


def sizes_of(records: object, keys: object) -> Sizes | None:
    """The bounds as they are declared in Python, in one order; None where there are none."""
    if records is None and keys is None:
        return None
    if keys is not None and not isinstance(keys, Mapping):
        raise PlanError('keys_at_most names fields and how many records may agree there: keys_at_most={"src": 500}')
    pairs = [(_names(names), _whole(most)) for names, most in (keys or {}).items()]
    return Sizes(None if records is None else _whole(records), tuple(sorted(pairs)))


def _names(names: object) -> Names:
    found = (names,) if isinstance(names, str) else tuple(names) if isinstance(names, Iterable) else ()
    if not found or not all(isinstance(name, str) for name in found):
        raise PlanError('keys_at_most names fields: keys_at_most={"src": 500, ("src", "dst"): 3}')
    return tuple(sorted(found))


def _whole(number: Any) -> int:
    """An integer, numpy's too; anything else is refused by `Sizes.check`, which says what it is for."""
    whole = isinstance(number, Integral) and not isinstance(number, bool)
    return int(number) if whole else number


def _records(number: int) -> str:
    return "1 record" if number == 1 else f"{number:,} records"
