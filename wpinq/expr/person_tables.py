"""The person of several tables: one record, with a list of rows for each table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from wpinq.errors import PlanError
from wpinq.expr.declarations import AT_MOST_LIMIT, INT_ID, STR_ID, Person
from wpinq.expr.types import CategoryOf, ListOf, Scalar, TupleOf, Type


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
    columns : tuple of pairs of str
        Fields, or the ids, with the columns of the data that hold them, where names differ: layout, and no part of
        the identity.
    """

    name: str
    at_most: int
    by: str = ""
    keep: str = ""
    distinct: str = ""
    columns: tuple[tuple[str, str], ...] = field(default=(), compare=False, repr=False)

    def check(self, row: Type, column: str) -> None:
        """Refuse a rule that does not fit the rows; `column` has the ids."""
        where = f"table {self.name!r}"
        if type(self.at_most) is not int or not 1 <= self.at_most <= AT_MOST_LIMIT:
            raise PlanError(f"{where}: at_most is the number of rows of one person: 1 to {AT_MOST_LIMIT:,}")
        if not isinstance(row, TupleOf) or not row.names or None in row.names:
            raise PlanError(f"{where}: declare its fields, as in wp.table(day=datetime.date, at_most=50)")
        if column in row.names:
            raise PlanError(f"{where}: {column!r} holds the ids of people and is no field: records hold no ids")
        if self.keep not in ("", "first", "last") or bool(self.keep) != bool(self.by):
            raise PlanError(f'{where}: keep is "first" or "last", by the order of a field: keep="last", by="day"')
        for name in filter(None, (self.by, self.distinct)):
            if name not in row.names or not isinstance(row.elements[row.names.index(name)], Scalar):
                raise PlanError(f"{where}: {name!r} is no field of single values: {', '.join(map(str, row.names))}")
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
        # no text has an account of theirs: written and read again, a plan would bill another
        if self.account or self.at_most != sum(table.at_most for table in self.tables):
            raise PlanError("people have an account of their own, and their at_most is the sum over their tables")

    def table_rows(self, record: Type) -> dict[str, TupleOf]:
        """The type of a row of each table, from that of records; PlanError where they do not fit."""
        if not isinstance(record, TupleOf) or record.nullable or record.names != tuple(t.name for t in self.tables):
            raise PlanError("records of people have a field for each table, in their order")
        rows: dict[str, TupleOf] = {}
        for table, held in zip(self.tables, record.elements, strict=True):
            row = held.with_nullable(False) if table.at_most == 1 else getattr(held, "element", None)
            bounded = held.nullable if table.at_most == 1 else getattr(held, "bound", None) == table.at_most
            if not isinstance(row, TupleOf) or row.nullable or not bounded or (held.nullable and table.at_most > 1):
                raise PlanError(f"table {table.name!r}: its field is a row that may be null, or at most at_most rows")
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

    def offered(self, table: PersonTable, row: TupleOf) -> tuple[TupleOf, PersonTables]:
        """The row of a table and the person by the names of the columns of its data."""
        held = dict(table.columns)
        names = tuple(held.get(str(name), name) for name in row.names)
        return replace(row, names=names), replace(self, column=held.get(self.column, self.column))

    def identified(self, row: Type) -> TupleOf:
        """The type of a row of one table as it is offered: with the ids as its last field."""
        assert isinstance(row, TupleOf)
        return TupleOf((*row.names, self.column), (*row.elements, self.id))

    @property
    def id(self) -> Scalar:
        """The type of the column of ids."""
        return INT_ID if self.id_type == "int" else STR_ID
