"""Where protected data came from, as far as a session can tell without looking at them, and what a curator is told.

Told by path, inode and object, never by content or a digest of it. What is said here is of the call alone. No object is
kept alive for it: files, frames, arrays and graphs are known again, lists and dicts are not.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from wpinq.errors import warn
from wpinq.ingest import EdgeList
from wpinq.ingest.reading import is_directed_edge_list
from wpinq.plan.operators.source import Source


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Origin:
    """What was offered for a source: the file it is, or the object."""

    file: object
    object_: Callable[[], Any]
    account: str

    def same(self, other: Origin) -> bool:
        """Whether both are one file, or one object that still lives."""
        if self.file is not None or other.file is not None:
            return self.file == other.file
        mine = self.object_()
        return mine is not None and mine is other.object_()


@dataclass(slots=True, repr=False, eq=False)
class Origins:
    """The origins of what a session protects, by source."""

    _by_source: dict[str, Origin] = field(default_factory=dict)

    def check(self, source: Source, unit: str, data: object) -> Origin:
        """Where the data of a source come from; the curator is warned of what is probably not meant."""
        origin = Origin(_file(data), _reference(data), source.account)
        for name, before in list(self._by_source.items()):
            if before.account != source.account and origin.same(before):
                warn(
                    f"what is protected as {source.source!r} is what {name!r} protects already, from another account: "
                    "who is in it loses what both spend. Protect it once, or, where a person is the unit, let both "
                    'share one account: account="..."'
                )
        undirected = "undirected" in unit.lower() and {"symmetric", "simple"}.isdisjoint(source.facts)
        if undirected and source.unit_weight < 2 and is_directed_edge_list(data):
            warn(
                f"the unit of {source.source!r} is undirected, and its list is read as directed: an edge that stands "
                "there as (a, b) and as (b, a) would be two units. Read it with directed=False"
            )
        return origin

    def keep(self, source: str, origin: Origin) -> None:
        """Remember the origin of data that were taken."""
        self._by_source[source] = origin

    def clear(self) -> None:
        """Let go of what was offered."""
        self._by_source.clear()


def _file(data: object) -> object:
    """What tells a file from every other: device and inode; its name where it is on no disk of this machine."""
    path = _offered(data)
    if not isinstance(path, (str, os.PathLike)):
        return None
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return os.path.abspath(path) if "://" not in os.fspath(path) else os.fspath(path)
    return status.st_dev, status.st_ino


def _reference(data: object) -> Callable[[], Any]:
    """A way back to an object, which it does not keep alive.

    Lists, dicts and tuples give none. To know them again they would have to be held, and with them every raw row,
    its undeclared columns included, for as long as the session lives.
    """
    try:
        return weakref.ref(_offered(data))
    except TypeError:
        return lambda: None


def _offered(data: object) -> Any:
    """The path or object itself, of an edge list that says how to read it."""
    return data.graph if isinstance(data, EdgeList) else data
