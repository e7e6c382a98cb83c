"""Heads: the last entry of a ledger's chain, in short enough a form to be kept elsewhere."""

from __future__ import annotations

import re
from dataclasses import dataclass

from wpinq.errors import LedgerError

_WRITTEN = re.compile(r"([0-9]{1,18}):([0-9a-f]{64})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Head:
    """An entry of a ledger by its number and its hash, which stands for the whole history up to it.

    Attributes
    ----------
    sequence : int
        Its number, from 1; 0 where there is none yet.
    hash : bytes
        SHA-256, 32 bytes.

    Examples
    --------
    >>> str(Head(0, bytes(32)))[:10]
    '0:00000000'
    >>> Head.parse(str(Head(7, b"w" * 32))).sequence
    7
    """

    sequence: int
    hash: bytes

    def __str__(self) -> str:
        return f"{self.sequence}:{self.hash.hex()}"

    @staticmethod
    def parse(text: str) -> Head:
        """What `str` gave. Raises LedgerError where it is something else."""
        found = _WRITTEN.fullmatch(text.strip()) if isinstance(text, str) else None
        if found is None:
            raise LedgerError(
                "the head of a ledger is NUMBER:HASH, with 64 hexadecimal digits, as wpinq budget prints it"
            )
        return Head(int(found[1]), bytes.fromhex(found[2]))


START = Head(0, bytes(32))
"""Of a ledger in which nothing has happened."""
