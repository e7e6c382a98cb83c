"""People with several tables: one record a person, with the kept rows of each table.

`A = Σ_p [(k₁(rows of p in table 1), k₂(rows of p in table 2), …)]`, over all ids of any table. Each table is read once.
The rows kept of a person in a table are a function of that person's rows there (`data.people`). No row is joined,
filtered or coded across ids before the records are made. So all rows of one id move one record of weight 1.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from wpinq.columns.records import column_names, column_types
from wpinq.columns.storage import StoredColumns, store
from wpinq.columns.unlinked_file import cleanly
from wpinq.data.people import DUCKDB, Words, counted, kept_of, leaf_of
from wpinq.data.relation import Relation, staged, table_of_rows
from wpinq.errors import SourceRejected
from wpinq.expr.person_tables import PersonTable, PersonTables
from wpinq.expr.types import ListOf, TupleOf, Type
from wpinq.plan.operators.source import Source

#: Rows whose lists are made at a time: lists cannot leave memory while they are made.
_PART = 2_000_000

#: The relation of the offered rows of a table, by the type of a row.
ReadTable = Callable[[PersonTable, TupleOf, ExitStack], Relation]


def tables_dataset(connection: Any, read: ReadTable, declared: Source, person: PersonTables) -> StoredColumns:
    """The dataset of people: for each id in any table, one record of the rows that count.

    Nothing says how many people there are, how many rows are cut, or which ids are in one table only.

    Parameters
    ----------
    connection : DuckDBPyConnection
        Where rows are scanned, sorted and grouped.
    read : callable
        Gives the rows of a table with the ids as their last field; it is called once for each.
    declared, person : Source, PersonTables
        The declaration. All rows must be fit, kept or not.
    """
    rows, names = person.table_rows(declared.record), column_names(declared.record)
    kept: list[str] = []
    with ExitStack() as dropped:

        def tables(name: str) -> str:
            dropped.callback(cleanly, connection.execute, f"DROP TABLE IF EXISTS people_{name}")
            return f"people_{name}"

        size = 0
        for i, table in enumerate(person.tables):  # by number: DuckDB takes "A" and "a" for one name
            row = rows[table.name]
            offered, over = tables(f"offered_{i}"), tables(f"over_{i}")
            ids = f"c{len(column_names(row))} AS p, {', '.join(column_names(row))}"
            try:
                with staged(connection), ExitStack() as stack:
                    table_of_rows(connection, read(table, row, stack), offered, ids)
            except SourceRejected as refusal:
                raise SourceRejected(f"table {table.name!r}: {refusal}") from None
            kept.append(_kept_rows(connection, offered, over, table, row))
            ((count,),) = connection.execute(f"SELECT count(*) FROM {offered}").fetchall()
            size += count
        made, parts = tables("made_people"), 1 + size // _PART
        kinds = zip(names, column_types(declared.record), strict=True)
        connection.execute(
            f"CREATE TEMP TABLE {made} ({', '.join(f'{name} {kind}' for name, kind in kinds)}, h UBIGINT)"
        )
        for part in range(parts):
            chosen = [f"SELECT * FROM ({each}) AS kept WHERE hash(p) % {parts} = {part}" for each in kept]
            records = people_records(chosen, person, declared.record, DUCKDB)
            connection.execute(f"INSERT INTO {made} SELECT *, hash({', '.join(names)}) FROM ({records}) AS records")
        return store(connection, declared.record, _weighed(connection, made, tables("twins"), names), in_memory=False)


def kept_table(counted_rows: str, row: Type, table: PersonTable, words: Words) -> str:
    """The query of the rows of a table that count: `p`, `c0`, …, and how often each counts, `m`."""
    order = ""
    if table.keep:
        order = f"c{leaf_of(row, table.by)} {'ASC' if table.keep == 'first' else 'DESC'} NULLS LAST, "
    distinct = f"c{leaf_of(row, table.distinct)}" if table.distinct else ""
    return kept_of(counted_rows, row, table.at_most, words, order, distinct)


def people_records(kept: list[str], person: PersonTables, record: Type, words: Words) -> str:
    """The query of one record a person, from those of the rows that count, with copies."""
    assert isinstance(record, TupleOf)
    made, leaves = [], []
    for i, (table, query, field) in enumerate(zip(person.tables, kept, record.elements, strict=True)):
        if table.at_most == 1:
            columns = [f"r{i}_{name}" for name in column_names(field)]
            listed = ", ".join(f"{name} AS {as_}" for name, as_ in zip(column_names(field), columns[1:], strict=False))
            made.append(f"(SELECT p, true AS {columns[0]}, {listed} FROM ({query}) AS kept)")
            leaves += [f"coalesce({columns[0]}, false)", *columns[1:]]
        else:
            assert isinstance(field, ListOf)
            made.append(f"(SELECT p, {words.listed(field.element)} AS l{i} FROM ({query}) AS kept GROUP BY p)")
            leaves.append(f"coalesce(l{i}, {words.empty})")
    joined = made[0] + " AS t0" + "".join(f" FULL JOIN {each} AS t{i} USING (p)" for i, each in enumerate(made) if i)
    return f"SELECT {', '.join(f'{leaf} AS c{i}' for i, leaf in enumerate(leaves))} FROM {joined}"


def _kept_rows(connection: Any, offered: str, over: str, table: PersonTable, row: TupleOf) -> str:
    """The query of the rows of a table that count.

    Most people have no more than they may: only the rows of the others are ranked.
    """
    names = ", ".join(column_names(row))
    if table.distinct:
        ranked, whole = offered, ""
    else:
        people = f"SELECT p FROM {offered} GROUP BY p HAVING count(*) > {table.at_most:d}"
        ranked = f"(SELECT * FROM {offered} SEMI JOIN ({people}) AS more USING (p))"
        whole = f"SELECT p, {names} FROM {offered} ANTI JOIN {over} USING (p) UNION ALL "
    cut = kept_table(f"({counted(f'SELECT * FROM {ranked} AS ranked', row)})", row, table, DUCKDB)
    connection.execute(f"CREATE TEMP TABLE {over} AS {cut}")
    return f"{whole}SELECT p, {names} FROM (SELECT p, {names}, {DUCKDB.copies.format('m')} AS i FROM {over}) AS copies"


def _weighed(connection: Any, made: str, twins: str, names: list[str]) -> str:
    """The query of the records with their weights: only those of equal hashes can be equal."""
    connection.execute(f"CREATE TEMP TABLE {twins} AS SELECT h FROM {made} GROUP BY h HAVING count(*) > 1")
    listed = ", ".join(names)
    return (
        f"SELECT {listed}, CAST(1 AS DOUBLE) AS w FROM {made} ANTI JOIN {twins} USING (h) UNION ALL "
        f"SELECT {listed}, CAST(count(*) AS DOUBLE) AS w FROM {made} SEMI JOIN {twins} USING (h) GROUP BY {listed}"
    )
