"""Equal rows of a table added up where there are any: found by a hash, so that only those are grouped.

Most tables of people repeat few records or none, and grouping by all columns takes longer than all else that protecting
does. Equal rows have equal hashes. So rows whose hash no other row has are records already, to the last bit, and rows
that share a hash are grouped by what they are, whether equal or of one hash by chance: no hash decides what is equal.

The hashes are sorted outside of the database, at most `AT_ONCE` or so of them at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from wpinq.columns.records import LOADING, column_names, column_types
from wpinq.expr.types import Type

AT_ONCE = 2**23
"""About how many hashes are sorted at a time: 64 MB of them."""

LOOKED_AT = 2**14
"""How many rows are looked at first, to see whether it is worth while to look for the few that repeat."""

_OFTEN = 1 / 8
"""The share of rows with a hash in common from which on all rows are grouped."""

_VARIED = 1 / 2
"""The share of different ones among a column's first texts from which on no repeats are looked for."""

_SUSPECTS = "suspects"
_TAKEN = "taken"


def repeats_often(connection: Any, rows: str, names: Sequence[str]) -> bool:
    """Whether the first rows of a query are few, or repeat often, so that grouping all of them takes less time."""
    first = f"SELECT {hash_sql(names)} AS h FROM (SELECT * FROM ({rows}) LIMIT {LOOKED_AT})"
    ((count, distinct),) = connection.execute(f"SELECT count(*), count(DISTINCT h) FROM ({first})").fetchall()
    return bool(count < LOOKED_AT or often(count - distinct, count))


def varied_texts(connection: Any, rows: str, type_: Type) -> frozenset[str]:
    """The columns of text that hardly repeat in the first rows of a query, if there are so many.

    Looking for repeats to write less of them takes most of the time of protecting such a column.
    """
    columns = zip(column_names(type_), column_types(type_), strict=True)
    texts = [name for name, kind in columns if kind == "VARCHAR"]
    if not texts:
        return frozenset()
    distinct = ", ".join(f"count(DISTINCT {name})" for name in texts)
    first = f"SELECT * FROM ({rows}) LIMIT {LOOKED_AT}"
    ((count, *found),) = connection.execute(f"SELECT count(*), {distinct} FROM ({first})").fetchall()
    return frozenset(
        name for name, values in zip(texts, found, strict=True) if values > _VARIED * max(count, LOOKED_AT)
    )


def hashed_first(connection: Any, rows: str, type_: Type) -> list[tuple[str, ...]]:
    """The columns by whose hash to look for the few rows that repeat, the quickest first; none where there are many.

    They are the integers, the numbers, and all columns, as far as they tell the first rows apart as well as all do: to
    hash texts takes several times as long. Equal rows have equal hashes in any case.
    """
    columns = list(zip(column_names(type_), column_types(type_), strict=True))
    names = tuple(name for name, _ in columns)
    kinds = (("BIGINT",), ("BIGINT", "DOUBLE", "BOOLEAN"))
    offered = [tuple(name for name, kind in columns if kind in some) or names for some in kinds] + [names]
    hashes = ", ".join(f"{hash_sql(some)} AS h{i}" for i, some in enumerate(offered))
    found = connection.execute(f"SELECT {hashes} FROM ({rows}) LIMIT {LOOKED_AT}").fetchnumpy()
    count, repeated = len(found["h0"]), [len(shared_hashes(found[f"h{i}"])) for i, _ in enumerate(offered)]
    if count < LOOKED_AT or often(repeated[-1], count):
        return []
    return list(dict.fromkeys(some for some, times in zip(offered, repeated, strict=True) if times == repeated[-1]))


def shared_hashes(hashes: Any) -> Any:
    """The hashes that several rows have, of an array of the hashes of all rows, which is sorted.

    In order, each as often as rows have it, but for one of them.
    """
    hashes.sort()
    return hashes[1:][hashes[1:] == hashes[:-1]]


def places_of(hashes: Any, shared: Any) -> Any:
    """The places of some sorted hashes in an array of the hashes of all rows in order."""
    import numpy as np

    # Most rows are left out by a few bits of their hash, some at a time, in a table that a core keeps at hand.
    few, some = hashes.dtype.type(2**18 - 1), 2**16
    may = np.zeros(2**18, dtype=np.bool_)
    may[shared & few] = True
    looked_at = [np.flatnonzero(may[hashes[at : at + some] & few]) + at for at in range(0, len(hashes), some)]
    places = np.concatenate(looked_at)
    found = hashes[places]
    return places[np.searchsorted(shared, found, side="left") < np.searchsorted(shared, found, side="right")]


def often(rows: int, count: int) -> bool:
    """Whether so many of some rows repeat that grouping all of them takes less time than finding which."""
    return rows > _OFTEN * count


def merge(connection: Any, table: str, names: Sequence[str], weight: str) -> None:
    """Have equal rows of a table stand once.

    Parameters
    ----------
    connection : DuckDBPyConnection
        To the database of the table.
    table : str
        With columns of records, and the weight `w`, which is 1 in each row.
    names : sequence of str
        The columns of the records.
    weight : str
        The SQL of what equal rows weigh together; for a row alone it is 1.
    """
    import numpy as np

    ((count,),) = connection.execute(f"SELECT count(*) FROM {table}").fetchall()
    shared, rows = [], 0
    for hashes in _hashes(connection, table, names, count):
        shared.append(shared_hashes(hashes))
        rows += len(shared[-1])
        if often(rows, count):  # what repeats would take memory for nothing
            break
    if often(rows, count):
        _group(connection, table, names, weight, "TRUE")
    elif rows:
        connection.register(LOADING, {"h": np.concatenate(shared)})
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {_SUSPECTS} AS SELECT h FROM {LOADING}")
        connection.unregister(LOADING)
        _group(connection, table, names, weight, f"{hash_sql(names)} IN (SELECT h FROM {_SUSPECTS})")
        connection.execute(f"DROP TABLE {_SUSPECTS}")


def _hashes(connection: Any, table: str, names: Sequence[str], count: int) -> Iterator[Any]:
    """The hashes of all rows, in parts such that equal ones are in one part."""
    bits = max(0, (count // AT_ONCE).bit_length())
    hashes = f"SELECT {hash_sql(names)} AS h FROM {table}"
    for part in range(2**bits):
        where = f" WHERE h >> {64 - bits} = {part}" if bits else ""
        found = connection.execute(f"SELECT h FROM ({hashes}){where}").fetchnumpy()["h"]
        yield found


def _group(connection: Any, table: str, names: Sequence[str], weight: str, condition: str) -> None:
    """Group the rows that satisfy a condition, which equal rows do together."""
    listed = ", ".join(names)
    taken = f"SELECT {listed}, rowid AS place FROM {table} WHERE {condition}"
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {_TAKEN} AS {taken}")
    connection.execute(f"DELETE FROM {table} WHERE rowid IN (SELECT place FROM {_TAKEN})")
    connection.execute(f"INSERT INTO {table} SELECT {listed}, {weight} AS w FROM {_TAKEN} GROUP BY {listed}")
    connection.execute(f"DROP TABLE {_TAKEN}")


def hash_sql(names: Sequence[str]) -> str:
    """The hash of some columns."""
    return f"hash({', '.join(names)})"
