"""Answers as a ledger keeps them: what one entry stored is one value, of which the entry says the hash.

A key that has an answer keeps it: whoever stores more has taken in all that was stored before.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import sqlite3
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_LENGTH, _DOUBLE = struct.Struct(">Q"), struct.Struct(">d")
_LARGEST = 2**28
"""Bytes that an entry stores, if its keys are more than one: SQLite keeps values below 10⁹."""

_TABLES = ("answer_sets", "answered", "listings")
_NONE: tuple[int, Any, Any] = (0, "null", b"")
_OF = "WHERE measurement = (SELECT id FROM measurements WHERE digest = :digest) AND entry"


@dataclass(slots=True)
class Stored:
    """What was stored of a measurement, up to an entry.

    Attributes
    ----------
    since : int
        The entry after the last of those that are in it: at first the least integer of SQLite, so that what stands
        before all entries is found.
    last : bytes
        The hash of the last, which stands for the history that it is of.
    entries : int
        How many there are.
    answers : dict
        Key -> value.
    listings : list of str
        Those that have a listing, in order, as they are written.
    """

    since: int = -(2**63)
    last: bytes = b""
    entries: int = 0
    answers: dict[bytes, float] = field(default_factory=dict)
    listings: list[str] = field(default_factory=list)

    def stands(self, connection: sqlite3.Connection, measurement: str) -> bool:
        """Whether all entries that are in it are still there, and of the same history."""
        tables = ", ".join(f"(SELECT count(*) FROM {table} {_OF} < :since)" for table in _TABLES)
        query = f"SELECT hash, {tables} FROM entries WHERE sequence = :since - 1"
        found = connection.execute(query, {"digest": measurement, "since": self.since}).fetchone()
        return not self.entries or found == (self.last, self.entries, self.entries, len(self.listings))

    def catch_up(self, connection: sqlite3.Connection, measurement: str) -> int | None:
        """Take in what was stored since; None, or an entry, 0 where none is known, of which something else is there.

        The caller is in a transaction. Where it gives an entry, or raises one of `ledger_history.IMPOSSIBLE` for one
        that was forged, this is of no use any more.
        """
        given = {"digest": measurement, "since": self.since}
        columns = ("answers, NULL", "content, hash", "NULL, NULL")
        joins = ("", "JOIN entries ON sequence = entry", "")
        kept, told, listed = (
            connection.execute(f"SELECT entry, {found} FROM {table} {join} {_OF} >= :since ORDER BY entry", given)
            for found, table, join in zip(columns, _TABLES, joins, strict=True)
        )
        listings = {entry for entry, *_ in listed}
        for (entry, answers, _), (told_by, text, chained) in itertools.zip_longest(kept, told, fillvalue=_NONE):
            if entry != told_by:
                return int(told_by)
            content = json.loads(text)
            said = summary(measurement, answers, content["count"])
            sound = content | said == content and ("listing" in content) == (entry in listings)
            found = unpacked(answers) if sound else {}
            if not sound or len(found) != content["count"] or not found.keys().isdisjoint(self.answers.keys()):
                return int(entry)
            self.answers |= found
            self.listings += [text] * (entry in listings)
            listings.discard(entry)
            self.since, self.last, self.entries = entry + 1, chained, self.entries + 1
        return min(listings, default=None)


def packed(answers: Mapping[bytes, float], keys: Sequence[bytes]) -> bytes:
    """Answers in the order of `keys`: the size of each key in 8 bytes, the key, and the 8 bytes of the double.

    All big-endian. A REAL column would turn -0.0 into 0.0.
    """
    sizes, written = [*map(len, keys)], [b""] * 3 * len(keys)
    lengths = {size: _LENGTH.pack(size) for size in set(sizes)}
    written[::3], written[1::3] = map(lengths.__getitem__, sizes), keys
    written[2::3] = map(_DOUBLE.pack, map(answers.__getitem__, keys))
    return b"".join(written)


def unpacked(stored: bytes) -> dict[bytes, float]:
    """Answers as they were packed."""
    found, at = {}, 0
    while at < len(stored):
        start = at + _LENGTH.size
        end = start + _LENGTH.unpack_from(stored, at)[0]
        (found[stored[start:end]],) = _DOUBLE.unpack_from(stored, end)
        at = end + _DOUBLE.size
    return found


def summary(measurement: str, answers: bytes, count: int) -> dict[str, Any]:
    """What an entry says of answers that it stored: how many, and SHA-256 over them as they are kept."""
    return {"measurement": measurement, "count": count, "digest": hashlib.sha256(answers).hexdigest()}


def pieces(answers: Mapping[bytes, float]) -> Iterator[tuple[int, bytes]]:
    """How many answers an entry is to store, and these: by increasing key, in one entry unless they are very large."""
    keys = sorted(answers)
    many = max(1, _LARGEST // (_LENGTH.size + max(map(len, keys), default=0) + _DOUBLE.size))
    for start in range(0, len(keys), many):
        piece = keys[start : start + many]
        yield len(piece), packed(answers, piece)
