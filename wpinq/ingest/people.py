"""Which rows of a person count: at most so many, by a rule that reads nothing but the declared fields of that person.

The meaning, on Python rows; databases are held to it. Of a person with more than `at_most` rows, equal rows are
numbered, 1, 2, …, and those rows are kept whose SHA-256 of (row, number) is least. The row is in its canonical bytes,
so that the rule is one for every engine; it is public and has no seed, so that protecting the data again keeps the same
rows. Neither the place of a row in its file, nor undeclared columns, nor anything of other people has a say: what is
kept of a person is a function of that person's rows, so that one person's coming or going adds or removes what is kept
of that person, and moves nothing else.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from wpinq.expr.person import Person
from wpinq.expr.types import Type
from wpinq.expr.values import Value, canonical_bytes, order_key

Id = int | str
"""Who a person is: told apart, and never looked into."""


def kept_rows(ids: Iterable[Id], rows: Iterable[Value], type_: Type, at_most: int) -> dict[Id, tuple[Value, ...]]:
    """The rows of each person that count, in canonical order.

    Parameters
    ----------
    ids : iterable of int or str
        Whose the rows are.
    rows : iterable
        The rows, in canonical form.
    type_ : Type
        What a row is declared to be.
    at_most : int
        How many rows of one person count.

    Examples
    --------
    >>> from wpinq.expr.types import INT
    >>> kept_rows(["a", "b", "a", "a"], [3, 1, 1, 3], INT, at_most=3)
    {'a': (1, 3, 3), 'b': (1,)}
    >>> kept_rows(["b", "a"], [1, 2], INT, at_most=1) == {"b": (1,), "a": (2,)}
    True
    """
    by_person: dict[Id, list[Value]] = {}
    for person, row in zip(ids, rows, strict=True):
        by_person.setdefault(person, []).append(row)
    return {person: _kept(theirs, type_, at_most) for person, theirs in by_person.items()}


def _kept(rows: list[Value], type_: Type, at_most: int) -> tuple[Value, ...]:
    if len(rows) > at_most:
        numbered = [(row, number) for row, times in Counter(rows).items() for number in range(1, times + 1)]
        numbered.sort(key=lambda copy: (place(copy[0], copy[1], type_), order_key(copy[0]), copy[1]))
        rows = [row for row, _ in numbered[:at_most]]
    return tuple(sorted(rows, key=order_key))


def place(row: Value, number: int, type_: Type) -> str:
    """What orders the rows of a person: SHA-256, in hexadecimal, of the row's canonical bytes and its number.

    >>> from wpinq.expr.types import INT
    >>> place(7, 1, INT)[:16] < place(7, 2, INT)[:16]
    False
    """
    return hashlib.sha256(f"{canonical_bytes(row, type_).hex().upper()}:{number}".encode("ascii")).hexdigest()


def weigh(kept: Mapping[Id, Sequence[Value]], person: Person) -> dict[Value, float]:
    """The dataset of what is kept: each row weighs 1, or each person's list of rows; equal ones add up.

    >>> weigh({"a": (1, 3, 3), "b": (1,)}, Person("who", at_most=3))
    {1: 2.0, 3: 2.0}
    >>> weigh({"a": (1, 3), "b": (1, 3)}, Person("who", at_most=3, nested=True))
    {(1, 3): 2.0}
    """
    records = kept.values() if person.nested else (row for rows in kept.values() for row in rows)
    return {record: float(count) for record, count in Counter(records).items()}


def asymmetric_people(kept: Mapping[Id, Sequence[Value]]) -> set[Value]:
    """The rows that break `symmetric` for somebody: (a, b) kept more or less often than (b, a) of the same person.

    People whose rows are symmetric together, and not each alone, would leave an asymmetric dataset behind when one of
    them is left out: a neighbour that the fact says there is none of.
    """
    broken: set[Value] = set()
    for rows in kept.values():
        counts = Counter(rows)
        broken |= {row for row, count in counts.items() if row is not None and counts[row[1], row[0]] != count}
    return broken
