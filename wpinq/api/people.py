"""People with several tables: declarations of one record a person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from wpinq.api.query import Query
from wpinq.api.source import DEFAULT_CAP, DEFAULT_PERSON, positive
from wpinq.errors import PlanError, described
from wpinq.expr.declarations import is_column_name
from wpinq.expr.person_tables import PersonTable, PersonTables
from wpinq.expr.types import ListOf, TupleOf, Type, type_from_annotation
from wpinq.plan.domain import sizes_of
from wpinq.plan.node import Node
from wpinq.plan.operators import Source


@dataclass(frozen=True, slots=True)
class TableOfPeople:
    """The declaration of one table of people, without its name: see `table`."""

    row: Type
    rule: PersonTable


def table(
    schema: object = None,
    /,
    *,
    at_most: int,
    keep: str = "",
    by: str = "",
    distinct: str = "",
    columns: Mapping[str, str] | None = None,
    **fields: object,
) -> TableOfPeople:
    """Declare one table of people, for `people`.

    Parameters
    ----------
    schema, **fields : types
        The fields of a row, as in `source`; the column of the ids is none of them.
    at_most : int
        The number of rows that count for one person: public, and never chosen from the data. Of 1, the table is a row
        that is null for people without one. Further rows are left out by a rule that reads the declared fields of that
        person's rows of this table: those of least SHA-256 are kept.
    keep : {"first", "last"}, optional
        Keep the first or last rows in the order of the field `by` instead. Ties, and rows without a value, follow the
        hash.
    by : str, optional
        The field for `keep`.
    distinct : str, optional
        A field of which each value counts once for a person, before the cut.
    columns : mapping, optional
        From fields, or the column of the ids, to the columns of the data that hold them, where the names differ, as in
        `source`: `{"day": "visit_start_date"}`.

    Returns
    -------
    TableOfPeople
        To be given to `people`. Privacy cost: none.

    Raises
    ------
    PlanError, ExpressionError
        For an unfit schema.

    Examples
    --------
    >>> import wpinq as wp
    >>> import datetime
    >>> visits = wp.table(day=datetime.date, ward=str, at_most=50, keep="last", by="day")
    >>> visits.rule.words.strip()
    'at most 50, the last by day'
    """
    if (schema is None) == (not fields):
        raise PlanError("table: give a schema or fields such as day=datetime.date, ward=str, one of the two")
    rule = PersonTable("", at_most, by, keep, distinct, tuple((columns or {}).items()))
    return TableOfPeople(type_from_annotation(fields if schema is None else schema), rule)


def people(
    name: str,
    /,
    *,
    id: tuple[str, type],
    unit: str = DEFAULT_PERSON,
    cap: object = DEFAULT_CAP,
    records_at_most: object = None,
    **tables: TableOfPeople,
) -> Query:
    """Declare people with several tables: one record a person, with the rows of each table.

    `A = Σ_p [(k₁(rows of p in table 1), k₂(rows of p in table 2), …)]`, over the ids that stand in any table; each k
    keeps at most `at_most` rows, in canonical order. A table of `at_most=1` is a row, null for people without one.

    Parameters
    ----------
    name : str
        The name of the source.
    id : tuple of str and type
        The column of the ids in all tables, and their type, int or str: `("person_id", int)`. Ids are in no record. In
        text files, an int is only its own spelling: 7, and not 007. Texts are compared as they are.
    unit : str
        The protected unit in words.
    cap : number
        A public bound on the number of people.
    records_at_most : int, optional
        A public upper bound on the number of different records, as in `source`.
    **tables : TableOfPeople
        The tables by name, which are the fields of the record: `visits=wp.table(day=datetime.date, at_most=50)`.

    Returns
    -------
    Query
        The people. `Session.protect` takes the data of all tables in one call: `{"visits": ..., "home": ...}`.

    Raises
    ------
    PlanError, ExpressionError
        For an unfit declaration.

    Notes
    -----
    One person, with all rows in all tables, changes the dataset by a weight of at most 1 (docs/proofs/source.md). So a
    question about people costs ε, whatever the bounds of the tables.

    Examples
    --------
    >>> import wpinq as wp
    >>> from wpinq import functions as F
    >>> patients = wp.people(
    ...     "patients",
    ...     id=("person_id", int),
    ...     home=wp.table(region=str, at_most=1),
    ...     visits=wp.table(cost=int, at_most=50),
    ... )
    >>> northern = patients.where(lambda p: (p.home.region == "north") & (F.sum(p.visits, lambda v: v.cost) > 100))
    >>> print(northern.count(epsilon=0.5).bill())
    patients: 0.5
      protects one person, at most 1 of home, 50 of visits in one record, of weight 1
      NoisyCount(0.5), spent once: 0.5 x 1 = 0.5
    """
    kinds = {int: "int", str: "str"}
    if not isinstance(id, tuple) or len(id) != 2 or id[1] not in kinds or not isinstance(id[0], str):
        raise PlanError(f'people {name!r}: id is the column of the ids with its type: id=("person_id", int)')
    for field, given in tables.items():
        if not isinstance(given, TableOfPeople):
            raise PlanError(f"people {name!r}: {field} is {described(given)}; a table is wp.table(day=..., at_most=50)")
    rules = [replace(given.rule, name=field) for field, given in tables.items()]
    rows = {field: given.row for field, given in tables.items()}
    return declared_people(name, rows, rules, id[0], kinds[id[1]], unit, cap, records_at_most)


def declared_people(
    name: str,
    rows: Mapping[str, Type],
    rules: list[PersonTable],
    column: str,
    id_type: str,
    unit: str = DEFAULT_PERSON,
    cap: object = DEFAULT_CAP,
    records_at_most: object = None,
) -> Query:
    """The source of people, from the types of rows and the rules of their tables."""
    if not isinstance(name, str) or not rules:
        raise PlanError('people have a name and tables: wp.people("patients", id=..., visits=wp.table(...))')
    fields: dict[str, TupleOf] = {}
    for rule in rules:
        row = rows[rule.name]
        rule.check(row, column)
        assert isinstance(row, TupleOf)
        held = {name: name for name in (*row.names, column)} | dict(rule.columns)
        if not len({*held.values()}) == len(held) == len(row.names) + 1 or not all(map(is_column_name, held.values())):
            raise PlanError(
                f"table {rule.name!r}: columns gives fields, or {column!r}, each a column of its own, a text"
            )
        fields[rule.name] = row
    person = PersonTables(column, sum(rule.at_most for rule in rules), True, "", tuple(rules), id_type)
    record, bound = person.table_record(fields), positive(cap, f"people {name!r}: cap")
    sizes = sizes_of(records_at_most, None)
    return Query(Node(Source(name, record, repr(record), unit, positive(1, ""), bound, (), person, sizes)))


def people_of_type(name: str, record: Type, options: Mapping[str, Any]) -> Query:
    """The source of people as a text program declares it.

    Bounds are those of the lists in the record. Of the options, `first` and `last` give tables the field by which rows
    are kept, and `distinct` that of which each value counts once; `columns` gives tables the columns of their fields.
    """
    given = dict(options)
    by = {**dict.fromkeys(given.get("first", ()), "first"), **dict.fromkeys(given.get("last", ()), "last")}
    ordered, distinct = {**given.pop("first", {}), **given.pop("last", {})}, given.pop("distinct", {})
    column, id_type, columns = given.pop("person", ""), given.pop("ids", ""), given.pop("columns", {})
    if twice := {*options.get("first", ())} & {*options.get("last", ())}:
        raise PlanError(f"table {min(twice)!r}: keep its first rows or its last")
    if other := {*given} - {"unit", "cap", "records_at_most"}:
        raise PlanError(f"people {name!r}: {min(other)} is no option beside ids")
    if not isinstance(record, TupleOf) or record.nullable or not record.names or None in record.names:
        raise PlanError(f"people {name!r}: the fields are tables: visits: list[(day: date, ward: str), 50]")
    rows: dict[str, Type] = {}
    rules = []
    for table, field in zip(map(str, record.names), record.elements, strict=True):
        rows[table] = field.element if isinstance(field, ListOf) else field.with_nullable(False)
        bound = field.bound if isinstance(field, ListOf) else 1
        if bound is None or field.nullable == isinstance(field, ListOf):
            raise PlanError(
                f"table {table!r}: declare list[(...), 50] with a bound of 2 or more, or (...)? for one row"
            )
        kept = ordered.get(table, ""), by.get(table, ""), distinct.get(table, "")
        rules.append(PersonTable(table, bound, *kept, tuple(columns.get(table, {}).items())))
    if unknown := sorted(({*ordered} | {*distinct} | {*columns}) - {*rows}):
        raise PlanError(f"people {name!r}: there is no table {unknown[0]!r}")
    return declared_people(name, rows, rules, column, id_type, **given)


def tables_of(source: Query) -> tuple[str, ...]:
    """The tables of a source of people; none of another source."""
    operator = source.plan.operator
    person = operator.person if isinstance(operator, Source) else None
    return tuple(table.name for table in person.tables) if isinstance(person, PersonTables) else ()
