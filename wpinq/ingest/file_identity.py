"""Which files a path means, as far as tells them from every other: nothing of what they hold."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from wpinq.errors import SourceRejected
from wpinq.ingest.parquet_listing import parquet_files


def identities(path: str | os.PathLike[str]) -> frozenset[object]:
    """What tells the files that a path, a folder or a pattern means from every other.

    Device and inode of each; its name where it is on no disk of this machine.
    """
    named = os.fspath(path)
    if named.startswith("file:/"):  # as Spark may be told of a file of this machine; what follows is its name as it is
        path = named.removeprefix("file:")
        path = path[path.index("/", 2) :] if path.startswith("//") and "/" in path[2:] else path
    elif "://" in named:
        return frozenset([named])
    files: list[str] = []
    with suppress(SourceRejected, OSError, ValueError):
        files = list(map(str, parquet_files(Path(path)) or []))
    return frozenset(map(_identity, files or [os.fspath(path)]))


def _identity(path: str) -> object:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return os.path.abspath(path)
    return status.st_dev, status.st_ino
