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


@dataclass(slots=True)
class Stored:
    """What was stored of a measurement, up to an entry.

    Attributes
    ----------
    entry : int
        The last entry of those that are in it; 0 where none is.
    answers : dict
        Key -> value.
    listings : list
        Listings as they were stored, in order.
    """

    entry: int = 0
    answers: dict[bytes, float] = field(default_factory=dict)
    listings: list[Any] = field(default_factory=list)

    def catch_up(self, connection: sqlite3.Connection, measurement: str) -> int | None:
        """Take in what was stored since; None, or an entry, 0 where none is known, of which something else is there.

        The caller is in a transaction. Where it gives an entry, or raises one of `ledger_history.IMPOSSIBLE` for one
        that was forged, this is of no use any more.
        """
        kept, told, listed = (
            connection.execute(
                f"SELECT entry, {columns} WHERE measurement = (SELECT id FROM measurements WHERE digest = ?) "
                "AND entry > ? ORDER BY entry",
                (measurement, self.entry),
            )
            for columns in (
                "answers FROM answer_sets",
                "content FROM answered JOIN entries ON sequence = entry",
                "TRUE FROM listings",
            )
        )
        listings = {entry for entry, _ in listed}
        for (entry, answers), (told_by, text) in itertools.zip_longest(kept, told, fillvalue=(0, b"null")):
            if entry != told_by:
                return int(told_by)
            content = json.loads(text)
            said = summary(measurement, answers, content["count"])
            if content | said != content or ("listing" in content) != (entry in listings):
                return int(entry)
            found = unpacked(answers)
            if len(found) != content["count"] or not found.keys().isdisjoint(self.answers.keys()):
                return int(entry)
            self.answers |= found
            if entry in listings:
                self.listings.append(content["listing"])
                listings.remove(entry)
            self.entry = entry
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
