"""The facts that a source may declare: what rewrites may use, and what every bill must say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

from wpinq.errors import PlanError
from wpinq.expr.types import INT, STR, ListOf, Scalar, TupleOf, Type, check_field_name

#: Fact name -> the curator's declaration, in words.
#: It narrows the neighbours that are covered, so bills print it, but for whole numbers of rows, which are the rule.
FACTS: Mapping[str, str] = MappingProxyType(
    {
        "nonnegative": "no weight is negative",
        "unit_weights": "every record weighs exactly 1",
        "whole_weights": "every record weighs a whole number of equal rows (otherwise declare weights=True)",
        "symmetric": "(a, b) and (b, a) have the same weight",
        "simple": "no loops (a, a), and at most one of (a, b) and (b, a)",
        "simple_digraph": "no loops (a, a), and no (a, b) twice",
    }
)


def check_listed(facts: Iterable[str]) -> Iterable[str]:
    """Facts in a list; PlanError for a single string.

    Python would take the string for a list of its letters.
    """
    if isinstance(facts, str):
        raise PlanError(f'facts are a list: facts=["{facts}"]')
    return facts


def check_facts(facts: Iterable[str], type_: Type, unit_weight: Fraction) -> None:
    """Refuse facts that are unknown, do not fit the record type, or need a larger unit weight.

    Raises
    ------
    PlanError
        With what to declare instead.

    Notes
    -----
    Two datasets that keep `symmetric` and differ at all, but for loops, differ by a weight in each of two records. With
    a unit weight of 1 a whole edge would be two units, and half the loss would be billed.
    """
    declared = set(facts)
    unknown = sorted(declared - set(FACTS))
    if unknown:
        raise PlanError(f"there is no fact {', '.join(map(repr, unknown))}: sources have {', '.join(sorted(FACTS))}")
    for fact in sorted(declared & {"symmetric", "simple", "simple_digraph"}):
        pairs = isinstance(type_, TupleOf) and len(type_.elements) == 2 and _alike(*type_.elements)
        if not pairs or type_.nullable:
            raise PlanError(f"the fact {fact!r} is for records of two fields of one type, never null, not for {type_}")
    if {"symmetric", "simple"} <= declared:
        raise PlanError("no edge is both symmetric and simple: declare one of the two facts")
    if "symmetric" in declared and unit_weight < 2:
        raise PlanError(
            "with the fact 'symmetric' one edge is two records, (a, b) and (b, a), of weight 2 together: declare "
            "unit_weight=2 (or more), for a smaller one bills less than one edge loses"
        )


def _alike(left: Type, right: Type) -> bool:
    """Whether two fields are of one type and null alike, so that they have as many columns."""
    if isinstance(left, TupleOf) and isinstance(right, TupleOf) and left == right:
        return left.nullable == right.nullable and all(map(_alike, left.elements, right.elements))
    return left == right


def is_column_name(name: object) -> bool:
    """Whether a column of data can be found by a name: text in UTF-8, not empty and without NUL."""
    return isinstance(name, str) and re.search("^$|[\0\ud800-\udfff]", name) is None


# The person as the unit: where a source's rows say whose they are, and how many of one person's it takes.

#: The type of ids without a declared field.
#: No record has them: they identify the person of a row.
ID = Scalar("int or str")

#: Types of ids that several tables share: ints in their own spelling, or texts as they are.
INT_ID, STR_ID = Scalar("int id"), Scalar("str id")

IDS = frozenset({ID, INT_ID, STR_ID})

#: The most rows that a source may take of one person.
AT_MOST_LIMIT = 1_000_000

NO_ID = "null as the id of a person (leave out these rows, or give each an id of its own)"


@dataclass(frozen=True, slots=True)
class Person:
    """The person of each row of a source.

    It is part of the source's declaration, and so of every plan, bill and account.

    Attributes
    ----------
    column : str
        The column of the data with the ids of people, int or str. It is no field of the records unless the source
        declares a field of this name.
    at_most : int
        How many rows of one person the source takes. Further ones are left out, by a rule that reads the declared
        fields of that person's rows only (`wpinq.data.people`).
    nested : bool
        Whether a record is one person, the list of its rows, of weight 1; else each row is a record of weight 1.
    account : str
        The account that pays for the source, where several tables of the same people share one; else empty.
    """

    column: str
    at_most: int
    nested: bool = False
    account: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column or not self.column.isprintable():
            raise PlanError("person names the column that holds the ids of people: printable text on one line")
        if isinstance(self.at_most, bool) or not isinstance(self.at_most, int):
            raise PlanError("at_most is the number of rows that a source takes of one person: an integer")
        if not 1 <= self.at_most <= AT_MOST_LIMIT:
            raise PlanError(f"at_most is at least 1 and at most {AT_MOST_LIMIT:,} rows of one person")
        if not isinstance(self.nested, bool) or not isinstance(self.account, str):
            raise PlanError("nested is True or False, and account the name of an account")
        if self.account:
            check_field_name(self.account)

    @property
    def weight(self) -> int:
        """The most by which one person can change the source: kept rows or their list weigh 1."""
        return 1 if self.nested else self.at_most

    def id_field(self, row: Type) -> int | None:
        """The place of the ids among the fields of a row, or None where they are no field.

        Raises
        ------
        PlanError
            When the field cannot be the id of a person, or fields have no names to find columns by.
        """
        if not isinstance(row, TupleOf) or row.nullable or not row.names or None in row.names:
            raise PlanError(f"rows of persons have named fields beside {self.column!r}: declare fields, as page=str")
        if self.column not in row.names:
            return None
        place = row.names.index(self.column)
        if row.elements[place] not in (INT, STR) or row.elements[place].nullable:
            raise PlanError(f"ids of people are int or str and never null, but {self.column!r} is declared otherwise")
        return place

    def record(self, row: Type) -> Type:
        """The type of a record of the source: a row, or a person's rows."""
        return ListOf(row, bound=self.at_most) if self.nested else row

    def identified(self, row: Type) -> TupleOf:
        """The type of a row as it is offered: with the ids as its last field, unless they are one."""
        place = self.id_field(row)
        assert isinstance(row, TupleOf)
        return row if place is not None else TupleOf((*row.names, self.column), (*row.elements, ID))
