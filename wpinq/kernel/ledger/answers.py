"""The answers of a measurement, as the ledger stores them: all that one entry stored is one value, hashed in the entry.

A key that has an answer keeps it: a second noisy value for a key could be averaged with the first.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wpinq.errors import LedgerError
from wpinq.kernel.ledger.chain import ANSWERS, START, Head, Transaction, append

_LENGTH, _DOUBLE = struct.Struct(">Q"), struct.Struct(">d")
_LARGEST = 2**28
"""Bytes that an entry stores, if its keys are more than one: SQLite keeps values below 10⁹."""


@dataclass(slots=True)
class Stored:
    """All that was stored of a measurement, up to an entry.

    Attributes
    ----------
    last : Head
        The last entry that is in it.
    answers : dict
        Key -> value.
    listings : list of str
        The listings, in order, as JSON.
    """

    last: Head = START
    answers: dict[bytes, float] = field(default_factory=dict)
    listings: list[str] = field(default_factory=list)

    def catch_up(self, transaction: Transaction, name: str, measurement: str) -> None:
        """Take in the later entries.

        Raises
        ------
        LedgerError
            When the answers of an entry are not those that it stored; this is of no use any more then.
        """
        query = (
            "SELECT entry, answers, kind, target, content, hash FROM answers JOIN entries ON sequence = entry "
            "WHERE measurement = ? AND entry > ? ORDER BY entry"
        )
        for entry, packed, *told, text, chained in transaction.execute(query, (measurement, self.last.sequence)):
            content = json.loads(text)
            own = told == [ANSWERS, measurement] and content.get("digest") == digest(packed)
            found = unpack(packed) if own else {}
            if not own or len(found) != content.get("count") or not found.keys().isdisjoint(self.answers.keys()):
                raise LedgerError(
                    f"{name} has been tampered with: the answers of entry {entry} are not those that were stored. "
                    "Restore it from a copy, or start a new one with the budget that is left"
                )
            self.answers |= found
            self.listings += [json.dumps(content["listing"])] if "listing" in content else []
            self.last = Head(entry, chained)

    def add(
        self, transaction: Transaction, measurement: str, answers: Mapping[bytes, float], more: dict[str, Any]
    ) -> None:
        """Append the new ones of some answers, as one entry, unless they are very large, or none without `more`.

        They are undone until they are committed, so they are not in this before they are read again.
        """
        new = {key: value for key, value in answers.items() if key not in self.answers} if self.answers else answers
        pieces = [*_pieces(new)] or [(0, b"")] * bool(more)
        for left, (count, packed) in zip(reversed(range(len(pieces))), pieces, strict=True):
            content = {"count": count, "digest": digest(packed)} | ({} if left else more)
            entry = append(transaction, ANSWERS, measurement, 0, content)
            transaction.execute("INSERT INTO answers VALUES (?, ?, ?)", (measurement, entry, packed))


def digest(packed: bytes) -> str:
    """SHA-256 over packed answers."""
    return hashlib.sha256(packed).hexdigest()


def _pieces(answers: Mapping[bytes, float]) -> Iterator[tuple[int, bytes]]:
    """The answers of each entry, and how many they are: by increasing key, in one entry unless they are very large."""
    keys = sorted(answers)
    many = max(1, _LARGEST // (_LENGTH.size + max(map(len, keys), default=0) + _DOUBLE.size))
    for start in range(0, len(keys), many):
        piece = keys[start : start + many]
        yield len(piece), pack(answers, piece)


def pack(answers: Mapping[bytes, float], keys: Sequence[bytes]) -> bytes:
    """Answers in the order of `keys`: the size of each key in 8 bytes, the key, and the 8 bytes of the double.

    All big-endian. A REAL column would turn -0.0 into 0.0.
    """
    sizes, written = [*map(len, keys)], [b""] * 3 * len(keys)
    lengths = {size: _LENGTH.pack(size) for size in set(sizes)}
    written[::3], written[1::3] = map(lengths.__getitem__, sizes), keys
    written[2::3] = map(_DOUBLE.pack, map(answers.__getitem__, keys))
    return b"".join(written)


def unpack(packed: bytes) -> dict[bytes, float]:
    """Answers as they were packed."""
    found, at = {}, 0
    while at < len(packed):
        start = at + _LENGTH.size
        end = start + _LENGTH.unpack_from(packed, at)[0]
        (found[packed[start:end]],) = _DOUBLE.unpack_from(packed, end)
        at = end + _DOUBLE.size
    return found
