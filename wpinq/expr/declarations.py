"""The facts that a source may declare: what rewrites may use, and what every bill must say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

from wpinq.errors import PlanError
from wpinq.expr.types import INT, STR, CategoryOf, ListOf, Scalar, TupleOf, Type, check_field_name

FACTS: Mapping[str, str] = MappingProxyType(
    {
        "nonnegative": "no weight is negative",
        "unit_weights": "every record weighs exactly 1",
        "whole_weights": "every record weighs a whole number of equal rows (otherwise declare weights=True)",
        "symmetric": "(a, b) and (b, a) have the same weight",
        "simple": "no loops (a, a), and at most one of (a, b) and (b, a)",
    }
)
"""Fact name -> the curator's declaration, in words.

It narrows the neighbours that are covered, so bills print it, but for whole numbers of rows, which are the rule.
"""


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
        raise PlanError(
            f"there is no fact {', '.join(map(repr, unknown))}: a source can declare {', '.join(sorted(FACTS))}"
        )
    for fact in sorted(declared & {"symmetric", "simple"}):
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

ID = Scalar("int or str")
"""The type of ids without a declared field.

No record has them: they identify the person of a row.
"""

INT_ID, STR_ID = Scalar("int id"), Scalar("str id")
"""Types of ids that several tables share: ints in their own spelling, or texts as they are."""

IDS = frozenset({ID, INT_ID, STR_ID})

AT_MOST_LIMIT = 1_000_000
"""The most rows that a source may take of one person."""

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
            raise PlanError(
                f"rows of persons have named fields, beside a column {self.column!r}: declare fields, as in page=str"
            )
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


# The person as one record: a list of rows for each of several tables.


@dataclass(frozen=True, slots=True)
class PersonTable:
    """The rows of one table that count for a person.

    Attributes
    ----------
    name : str
        The table, and the field of the record that holds its rows.
    at_most : int
        How many rows count. With 1, the field is a row that is null where there is none; otherwise a list.
    by : str
        The field by whose order rows are kept; ties, and all rows without it, by the hash of the row.
    keep : {"", "first", "last"}
        Whether the first or the last rows in that order are kept.
    distinct : str
        A field of which each value counts once, before the cut.
    """

    name: str
    at_most: int
    by: str = ""
    keep: str = ""
    distinct: str = ""

    def check(self, row: Type, column: str) -> None:
        """Refuse a rule that does not fit the rows; `column` has the ids."""
        where = f"table {self.name!r}"
        if isinstance(self.at_most, bool) or not isinstance(self.at_most, int) or not 1 <= self.at_most <= AT_MOST_LIMIT:
            raise PlanError(f"{where}: at_most is the number of rows of one person: 1 to {AT_MOST_LIMIT:,}")
        if not isinstance(row, TupleOf) or not row.names or None in row.names:
            raise PlanError(f"{where}: declare its fields, as in wp.table(day=datetime.date, at_most=50)")
        if column in row.names:
            raise PlanError(f"{where}: {column!r} holds the ids of people and is no field: records hold no ids")
        if self.keep not in ("", "first", "last") or bool(self.keep) != bool(self.by):
            raise PlanError(f'{where}: keep is "first" or "last", by the order of a field: keep="last", by="day"')
        for field in filter(None, (self.by, self.distinct)):
            if field not in row.names or not isinstance(row.elements[row.names.index(field)], Scalar):
                raise PlanError(f"{where}: {field!r} is no field of single values: {', '.join(map(str, row.names))}")
        if self.by and isinstance(row.elements[row.names.index(self.by)], CategoryOf):
            raise PlanError(f"{where}: categories are in no order; keep rows by another field")

    @property
    def words(self) -> str:
        """The rule, as declarations have it."""
        kept = f", the {self.keep} by {self.by}" if self.keep else ""
        return f"{self.name} at most {self.at_most}{kept}{f', distinct {self.distinct}' if self.distinct else ''}"


@dataclass(frozen=True, slots=True)
class PersonTables(Person):
    """The person of several tables: one record of weight 1, with the rows of each table.

    `at_most` is the number of rows in all tables together.

    Attributes
    ----------
    tables : tuple of PersonTable
        In the order of the record's fields.
    id_type : {"int", "str"}
        The type of ids in all tables.
    """

    tables: tuple[PersonTable, ...] = ()
    id_type: str = "int"

    def __post_init__(self) -> None:
        Person.__post_init__(self)
        if not self.tables or self.id_type not in ("int", "str") or not self.nested:
            raise PlanError('people have one or more tables, and an id of type int or str: id=("person_id", int)')
        if self.at_most != sum(table.at_most for table in self.tables):
            raise PlanError("at_most of people is the sum over their tables")

    def table_rows(self, record: Type) -> dict[str, TupleOf]:
        """The type of a row of each table, from that of records; PlanError where they do not fit."""
        if not isinstance(record, TupleOf) or record.nullable or record.names != tuple(t.name for t in self.tables):
            raise PlanError("records of people have a field for each table, in their order")
        rows: dict[str, TupleOf] = {}
        for table, field in zip(self.tables, record.elements, strict=True):
            row = field.with_nullable(False) if table.at_most == 1 else getattr(field, "element", None)
            bounded = field.nullable if table.at_most == 1 else getattr(field, "bound", None) == table.at_most
            if not isinstance(row, TupleOf) or row.nullable or not bounded or (field.nullable and table.at_most > 1):
                raise PlanError(f"table {table.name!r}: its field holds a row that may be null, or at most at_most rows")
            table.check(row, self.column)
            rows[table.name] = row
        return rows

    def table_record(self, rows: Mapping[str, TupleOf]) -> TupleOf:
        """The type of a record, from that of the rows of each table."""
        fields = [
            rows[t.name].with_nullable() if t.at_most == 1 else ListOf(rows[t.name], bound=t.at_most)
            for t in self.tables
        ]
        return TupleOf(tuple(t.name for t in self.tables), tuple(fields))

    def identified(self, row: Type) -> TupleOf:
        """The type of a row of one table as it is offered: with the ids as its last field."""
        assert isinstance(row, TupleOf)
        return TupleOf((*row.names, self.column), (*row.elements, self.id))

    @property
    def id(self) -> Scalar:
        """The type of the column of ids."""
        return INT_ID if self.id_type == "int" else STR_ID
