"""Which rows of a person count: at most so many, by a rule that reads nothing but the declared fields of that person.

Of a person with more than `at_most` rows, equal rows are numbered, 1, 2, …, and those rows are kept whose SHA-256 of
(row, number) is least. The row is in its canonical bytes, so that the rule is one for every engine; it is public and
has no seed, so that protecting the data again keeps the same rows. Neither the place of a row in its file, nor
undeclared columns, nor anything of other people has a say: what is kept of a person is a function of that person's
rows, so that one person's coming or going adds or removes what is kept of that person, and moves nothing else.

Here it is SQL, of DuckDB and Spark. Rows are columns `c0`, `c1`, … as `columns.flat` lays records, beside `p`, whose
they are. All that is sized, numbered or placed is so by person. `tests/support/people.py` says the same in Python.
"""

from __future__ import annotations

from wpinq.columns.flat import column_names
from wpinq.expr.person import Person
from wpinq.expr.types import Type
from wpinq.ingest.canonical_rows import Words, canonical_hex
from wpinq.ingest.promises import same_reversed


def counted(rows: str, type_: Type) -> str:
    """The query of how often (`m`) each row stands there for each person, from that of canonical, fit rows and `p`."""
    names = ", ".join(column_names(type_))
    return f"SELECT p, {names}, count(*) AS m FROM ({rows}) AS offered GROUP BY p, {names}"


def kept_of(counted: str, type_: Type, at_most: int, words: Words) -> str:
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
    """
    names = ", ".join(column_names(type_))
    ordered = ", ".join(f"{name} ASC NULLS FIRST" for name in column_names(type_))
    place = words.hash.format("h || ':' || CAST(i AS VARCHAR(20))")
    return f"""
    WITH sized AS {words.once} (SELECT p, {names}, m, sum(m) OVER (PARTITION BY p) AS size FROM {counted} AS counted),
    copied AS (
        SELECT p, {names}, {words.copies.format("m")} AS i, {canonical_hex(type_, words)} AS h
        FROM sized WHERE size > {at_most:d}
    ),
    placed AS (
        SELECT p, {names}, row_number() OVER (PARTITION BY p ORDER BY {place}, {ordered}, i) AS place FROM copied
    )
    SELECT p, {names}, m FROM sized WHERE size <= {at_most:d}
    UNION ALL
    SELECT p, {names}, count(*) AS m FROM placed WHERE place <= {at_most:d} GROUP BY p, {names}
    """


def weighed(kept: str, type_: Type, person: Person, words: Words) -> str:
    """The query of the dataset, from the query or table of the rows that count: the columns of its records, and `w`."""
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
