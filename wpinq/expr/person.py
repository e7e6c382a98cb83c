"""The person as the unit: where a source's rows say whose they are, and how many of one person's it takes."""

from __future__ import annotations

from dataclasses import dataclass

from wpinq.errors import PlanError
from wpinq.expr.types import INT, STR, ListOf, Scalar, TupleOf, Type, check_field_name

ID = Scalar("int or str")
"""What ids are where no field declares them. No record holds them: they say whose a row is, and are left behind."""

AT_MOST_LIMIT = 1_000_000
"""The most rows that a source may take of one person."""

NO_ID = "null where the id of a person is due (leave out the rows of nobody, or give each an id of its own)"


@dataclass(frozen=True, slots=True)
class Person:
    """Whose rows the rows of a source are. Part of its declaration, and so of every plan, bill and account.

    Attributes
    ----------
    column : str
        The column of the data that holds the ids of people, int or str. It is no field of the records unless the source
        declares a field of this name.
    at_most : int
        How many rows of one person the source takes. Further ones are left out, by a rule that reads the declared
        fields of that person's rows only (`wpinq.ingest.people`).
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
        """The most by which one person can change the source: each kept row, or the list of them, weighs 1."""
        return 1 if self.nested else self.at_most

    def id_field(self, row: Type) -> int | None:
        """The place of the ids among the fields of a row, or None where they are no field.

        Raises
        ------
        PlanError
            When the field holds what cannot be the id of a person, or fields have no names to find columns by.
        """
        if not isinstance(row, TupleOf) or row.nullable or not row.names or None in row.names:
            raise PlanError(
                f"rows that say whose they are have named fields, beside a column {self.column!r}: declare fields, as "
                "in page=str"
            )
        if self.column not in row.names:
            return None
        place = row.names.index(self.column)
        if row.elements[place] not in (INT, STR) or row.elements[place].nullable:
            raise PlanError(
                f"the ids of people are int or str and never null, but {self.column!r} is declared otherwise"
            )
        return place

    def record(self, row: Type) -> Type:
        """The type of a record of the source: a row, or a person's rows."""
        return ListOf(row, bound=self.at_most) if self.nested else row

    def identified(self, row: Type) -> TupleOf:
        """The type of a row as it is offered: with the ids as its last field, unless they are one."""
        place = self.id_field(row)
        assert isinstance(row, TupleOf)
        return row if place is not None else TupleOf((*row.names, self.column), (*row.elements, ID))
