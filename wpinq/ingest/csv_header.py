"""The first line of a csv file, which names its columns: of the file no byte beyond it is looked at."""

from __future__ import annotations

import csv
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from wpinq.errors import SourceRejected

MOST = 2**20
"""The longest line of column names, in bytes."""

_GZIP = b"\x1f\x8b"


def names_in_csv(path: Path) -> list[str]:
    """The names of the columns of a csv file, plain or gzip.

    Raises
    ------
    SourceRejected
        When there is no such file, or it does not begin with a line of names.
    """
    try:
        with path.open("rb", buffering=0) as file:  # a buffer would be filled with rows
            names = next(csv.reader(_lines(file), strict=True), [])
    except FileNotFoundError:
        raise SourceRejected(f"there is no file {path}: check the path") from None
    except OSError:
        raise SourceRejected(f"{path} cannot be read: check the path and its rights") from None
    except (_TooLong, UnicodeDecodeError, csv.Error, zlib.error):
        names = []
    if not names:
        raise SourceRejected(f"{path} does not begin with a line of column names, in UTF-8 and with commas between")
    return names


class _TooLong(Exception):
    pass


def _lines(file: BinaryIO) -> Iterator[str]:
    """The lines of a file, as they are asked for: more than one where a name in quotes holds the end of a line."""
    line, encoding = bytearray(), "utf-8-sig"
    for place, byte in enumerate(_content(file)):
        line.append(byte)
        if place >= MOST:
            raise _TooLong
        if byte == ord("\n"):
            yield line.decode(encoding)
            line, encoding = bytearray(), "utf-8"
    if line:
        yield line.decode(encoding)


def _content(file: BinaryIO) -> Iterator[int]:
    """The bytes of a file one by one, decompressed where it is gzip."""
    start = b""
    while len(start) < len(_GZIP) and (byte := file.read(1)):
        start += byte
    if start != _GZIP:
        yield from start
        while byte := file.read(1):
            yield from byte
        return
    unpack = zlib.decompressobj(wbits=31)
    yield from unpack.decompress(start)
    while not unpack.eof and (byte := file.read(1)):
        yield from unpack.decompress(byte)
