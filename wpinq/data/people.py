"""The rows of a person that count: at most so many, by a rule over the declared fields.

Of a person with more than `at_most` rows, equal rows are numbered, 1, 2, …. The rows are kept whose SHA-256 of (row,
number) is least. The row is in its canonical bytes, so that the rule is one for every engine. It is public and has no
seed, so that protecting the data again keeps the same rows. Neither the place of a row in its file, nor undeclared
columns, nor anything of other people has a say. The rows kept of a person are a function of that person's rows. So one
person's coming or going adds or removes what is kept of that person, and moves nothing else.

Here it is SQL, of DuckDB and Spark. Rows are columns `c0`, `c1`, … as `columns.records` lays records, beside `p`, their
person. All that is sized, numbered or placed is so by person. `tests/support/people.py` says the same in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from wpinq.columns.records import column_names, type_name
from wpinq.columns.storage import StoredColumns
from wpinq.columns.unlinked_file import cleanly
from wpinq.data.casts import struct
from wpinq.data.facts import enforce, refuse_records, same_reversed
from wpinq.data.relation import Relation, stored_rows
from wpinq.errors import SourceRejected
from wpinq.expr.declarations import Person
from wpinq.expr.types import BOOL, FLOAT, INT, NULL, STR, CategoryOf, ListOf, Logical, TupleOf, Type
from wpinq.plan.operators.source import Source

# Rows in columns, as SQL: in canonical bytes and in canonical order, as `expr.values` has both in Python.

_NULL = "'6E'"


@dataclass(frozen=True, slots=True)
class Words:
    """How a database says what two databases say differently; `{}` stands for a value.

    Attributes
    ----------
    mapped : str
        A function of `{1}`, `{2}`, of each element of a list, `{0}`; the texts that it gives are joined.
    empty : str
        A list without elements.
    """

    once: str
    bits: str
    octets: str
    hash: str
    copies: str
    mapped: str
    length: str
    listed: Callable[[Type], str]
    empty: str


def canonical_hex(type_: Type, words: Words) -> str:
    """The canonical bytes (`expr.values`) of the record in `c0`, `c1`, …, in hexadecimal.

    The digits are capitals.
    """
    return _flat_hex(iter(column_names(type_)), type_, words)


def _flat_hex(leaves: Iterator[str], type_: Type, words: Words) -> str:
    if not isinstance(type_, TupleOf):
        return _packed_hex(next(leaves), type_, words, 0)
    there = next(leaves) if type_.nullable else None
    parts = [_tag("t", str(len(type_.elements))), *(_flat_hex(leaves, element, words) for element in type_.elements)]
    return _or_null(there, " || ".join(parts))


def _packed_hex(term: str, type_: Type, words: Words, level: int) -> str:
    if isinstance(type_, TupleOf):
        fields = [_packed_hex(f"{term}.f{i}", item, words, level) for i, item in enumerate(type_.elements)]
        return _or_null(f"{term} IS NOT NULL", " || ".join([_tag("t", str(len(fields))), *fields]))
    if isinstance(type_, ListOf):
        item = f"y{level}"
        items = words.mapped.format(term, item, _packed_hex(item, type_.element, words, level + 1))
        return _or_null(f"{term} IS NOT NULL", f"{_tag('l', words.length.format(term))} || {items}")
    if type_ == NULL:
        return _NULL
    if isinstance(type_, Logical):
        name = ("category" if isinstance(type_, CategoryOf) else type_.name).encode()
        stored = _packed_hex(term, type_.stored.with_nullable(False), words, level)
        tag = f"'64' || {_tag('s', str(len(name)))} || '{name.hex().upper()}'"
        return _or_null(f"{term} IS NOT NULL", f"{tag} || {stored}")
    said: dict[Type, str] = {
        INT: f"'69' || lpad(hex({term}), 16, '0')",
        FLOAT: f"'66' || lpad(hex({words.bits.format(term)}), 16, '0')",
        BOOL: f"CASE WHEN {term} THEN '6231' ELSE '6230' END",
        STR: f"{_tag('s', words.octets.format(term))} || hex({term})",
    }
    return _or_null(f"{term} IS NOT NULL", said[type_])


def _tag(letter: str, count: str) -> str:
    return f"'{letter.encode().hex().upper()}' || lpad(hex(CAST({count} AS BIGINT)), 8, '0')"


def _or_null(there: str | None, text: str) -> str:
    return f"({text})" if there is None else f"(CASE WHEN {there} THEN {text} ELSE {_NULL} END)"


# --- lists of rows in canonical order --------------------------------------------------------------------------------


def packed_row(leaves: Iterator[str], type_: Type, struct: Callable[[Sequence[str], Type], str]) -> str:
    """A row as one value, packed as `columns.records` packs what stands in lists."""
    if not isinstance(type_, TupleOf):
        return next(leaves)
    there = next(leaves) if type_.nullable else None
    packed = struct([packed_row(leaves, element, struct) for element in type_.elements], type_)
    return packed if there is None else f"CASE WHEN {there} THEN {packed} ELSE NULL END"


def _order_keys(leaves: Iterator[str], type_: Type) -> Sequence[str]:
    """What sorts rows in canonical order, each null first."""
    if not isinstance(type_, TupleOf):
        return [_order_key(next(leaves), type_, 0)]
    there = [next(leaves)] if type_.nullable else []
    return there + [key for element in type_.elements for key in _order_keys(leaves, element)]


def _order_key(term: str, type_: Type, level: int) -> str:
    """A key that sorts as a packed value does.

    In lists and structs DuckDB has null last: there it is distinguished first.
    """
    if isinstance(type_, ListOf):
        item = f"z{level}"
        return f"list_transform({term}, lambda {item}: {_inside(item, type_.element, level + 1)})"
    if isinstance(type_, TupleOf):
        fields = [f"f{i} := {_inside(f'{term}.f{i}', element, level)}" for i, element in enumerate(type_.elements)]
        return f"struct_pack({', '.join(fields) or 'f := true'})"
    return term


def _inside(term: str, type_: Type, level: int) -> str:
    return f"struct_pack(t := {term} IS NOT NULL, v := {_order_key(term, type_, level)})"


def _listed(type_: Type) -> str:
    names = column_names(type_)
    keys = ", ".join(f"{key} ASC NULLS FIRST" for key in _order_keys(iter(names), type_))
    return f"list({packed_row(iter(names), type_, _struct)} ORDER BY {keys})"


def _struct(parts: Sequence[str], type_: Type) -> str:
    return f"CAST({struct(parts, type_)} AS {type_name(type_)})"


DUCKDB = Words(
    once="MATERIALIZED",
    bits="CAST(CAST({} AS BIT) AS BIGINT)",
    octets="strlen({})",
    hash="sha256({})",
    copies="unnest(range(1, {} + 1))",
    mapped="array_to_string(list_transform({0}, lambda {1}: {2}), '')",
    length="len({})",
    listed=_listed,
    empty="[]",
)


def counted(rows: str, type_: Type) -> str:
    """The query of the number (`m`) of each row of each person, from that of canonical rows.

    These are fit and have `p`.
    """
    names = ", ".join(column_names(type_))
    return f"SELECT p, {names}, count(*) AS m FROM ({rows}) AS offered GROUP BY p, {names}"


def kept_of(counted: str, type_: Type, at_most: int, words: Words, order: str = "", distinct: str = "") -> str:
    """The query of the rows that count: their columns, `p`, and how often each counts, `m`.

    Parameters
    ----------
    counted : str
        The query, or table, of `p`, `c0`, `c1`, … and how often the row stands there for the person, `m`. It is read
        once: a file or a relation may say something else the next time, and then more than `at_most` would be kept.
    type_ : Type
        Of a row.
    at_most : int
        How many rows of one person count.
    words : Words
        Of the database.
    order : str
        What is compared before the hash, as SQL, with a comma at its end.
    distinct : str
        A column of which each value counts once for a person: the first of its rows in the order.
    """
    names = ", ".join(column_names(type_))
    ordered = ", ".join(f"{name} ASC NULLS FIRST" for name in column_names(type_))
    place = words.hash.format("h || ':' || CAST(i AS VARCHAR(20))")
    if distinct:
        hashed = f"SELECT p, {names}, 1 AS i, {canonical_hex(type_, words)} AS h FROM {counted} AS counted"
        nth = f"row_number() OVER (PARTITION BY p, {distinct} ORDER BY {order}{place}, {ordered})"
        firsts = f"SELECT p, {names}, {nth} AS nth FROM ({hashed}) AS hashed"
        counted = f"(SELECT p, {names}, CAST(1 AS BIGINT) AS m FROM ({firsts}) AS firsts WHERE nth = 1)"
    return f"""
    WITH sized AS {words.once} (SELECT p, {names}, m, sum(m) OVER (PARTITION BY p) AS size FROM {counted} AS counted),
    copied AS (
        SELECT p, {names}, {words.copies.format("m")} AS i, {canonical_hex(type_, words)} AS h
        FROM sized WHERE size > {at_most:d}
    ),
    placed AS (
        SELECT p, {names}, row_number() OVER (PARTITION BY p ORDER BY {order}{place}, {ordered}, i) AS place FROM copied
    )
    SELECT p, {names}, m FROM sized WHERE size <= {at_most:d}
    UNION ALL
    SELECT p, {names}, count(*) AS m FROM placed WHERE place <= {at_most:d} GROUP BY p, {names}
    """


def weighed(kept: str, type_: Type, person: Person, words: Words) -> str:
    """The query of the dataset, the columns of its records and `w`, from the rows that count.

    Those are a query or a table.
    """
    names = column_names(type_)
    if not person.nested:
        listed = ", ".join(names)
        return f"SELECT {listed}, CAST(sum(m) AS DOUBLE) AS w FROM {kept} AS kept GROUP BY {listed}"
    copies = f"SELECT p, {', '.join(names)}, {words.copies.format('m')} AS i FROM {kept} AS kept"
    lists = f"SELECT {words.listed(type_)} AS c0 FROM ({copies}) AS copies GROUP BY p"
    return f"SELECT c0, CAST(count(*) AS DOUBLE) AS w FROM ({lists}) AS lists GROUP BY c0"


def asymmetric(kept: str, type_: Type) -> str:
    """The query of the rows that somebody has more or less often than their reverse.

    People whose rows are symmetric together, and not each alone, would leave an asymmetric dataset behind when one of
    them is left out: a neighbour that the fact says there is none of.
    """
    same = f"a.p = b.p AND a.m = b.m AND {same_reversed(type_)}"
    return f"SELECT a.* FROM {kept} AS a ANTI JOIN {kept} AS b ON {same}"


# From rows that say whose they are to what is held of them: cut by person first, then checked across people.

_KEPT = "kept_of_people"
#: How often a row counts of a person, where repeats are dropped: what others have has no say before the cut.
_ONCE = "CAST(1 AS BIGINT)"
#: The same where they are refused: of what is left after the cut, of all people.
_TWICE = "CASE WHEN sum(m) OVER (PARTITION BY {}) > 1 THEN error('twice') ELSE m END AS m"


def people_dataset(connection: Any, relation: Relation, declared: Source, person: Person) -> StoredColumns:
    """The dataset of the rows of each person that count.

    Nothing says how many rows that leaves out.

    Parameters
    ----------
    connection : DuckDBPyConnection
        Where they are scanned.
    relation : Relation
        Of rows of `person.identified(type_)`. All of them must be fit, kept or not.
    declared : Source
        Of these rows. Its facts are what the dataset, and what any people leave of it, must keep.
    person : Person
        Whose they are.
    """
    type_, facts, repeats = declared.row, frozenset(declared.facts), relation.repeats
    names = ", ".join(column_names(type_))
    times = _ONCE if repeats == "drop" else "m"

    def dataset(rows: str) -> str:
        owned = f"SELECT *, c{leaf_of(person.identified(type_), person.column)} AS p FROM ({rows}) AS rows"
        each = f"SELECT p, {names}, {times} AS m FROM ({counted(owned, type_)}) AS counted"
        distinct = f"c{leaf_of(type_, once)}" if (once := getattr(declared.epoch, "distinct", "")) else ""
        kept = kept_of(f"({each})", type_, person.at_most, DUCKDB, distinct=distinct)
        if repeats == "refuse":
            kept = f"SELECT p, {names}, {_TWICE.format(names)} FROM ({kept}) AS cut"
        if "symmetric" in facts:  # looked at once more by person, as it is held
            connection.execute(f"CREATE OR REPLACE TEMP TABLE {_KEPT} AS {kept}")
        together = weighed(_KEPT if "symmetric" in facts else f"({kept})", type_, person, DUCKDB)
        if repeats != "drop" or person.nested:
            return together
        return f"SELECT {names}, CAST(1 AS DOUBLE) AS w FROM ({together}) AS together"

    try:
        held, relation = stored_rows(connection, relation, declared.record, dataset)
        if person.nested:
            _check_lists(connection, held, facts)
            return held
        enforce(connection, facts, held, relation)
        if "symmetric" in facts:
            reason = "(a, b) and (b, a) of different weight for one person, where the source declares symmetric"
            refuse_records(connection, asymmetric(_KEPT, type_), held, relation, reason)
        return held
    finally:
        cleanly(connection.execute, f"DROP TABLE IF EXISTS {_KEPT}")


def leaf_of(row: Type, name: str) -> int:
    """The first column of a field, among those of a row."""
    assert isinstance(row, TupleOf)
    return sum(len(column_names(element)) for element in row.elements[: row.names.index(name)])


def _check_lists(connection: Any, held: StoredColumns, facts: frozenset[str]) -> None:
    with held.attached(connection, "checking") as table:
        found = connection.execute(f"SELECT 1 FROM {table} WHERE w <> 1 LIMIT 1").fetchall()
    if "unit_weights" in facts and found:
        raise SourceRejected("the data hold two people with the same rows, where the source declares unit_weights")
