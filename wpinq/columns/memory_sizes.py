"""Sizes of memory, as DuckDB writes them."""

from __future__ import annotations

import re

_SIZE = re.compile(r"([\d.]+)\s*([KMGTP]?)i?B|([\d.]+) bytes")


def bytes_of(size: str) -> int:
    """How many bytes a size is, as DuckDB writes it.

    Examples
    --------
    >>> bytes_of("1.5 GiB"), bytes_of("512 bytes"), bytes_of("0 bytes")
    (1610612736, 512, 0)
    """
    found = _SIZE.fullmatch(size.strip())
    if found is None:
        return 0  # what cannot be read leaves room for nothing
    number, unit, plain = found.groups()
    return int(float(plain or number) * 1024 ** " KMGTP".index(unit or " "))
