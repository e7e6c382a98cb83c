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
from wpinq.ingest.file_identity import identities
from wpinq.ingest.graph_objects import graph_of
from wpinq.ingest.reading import may_be_directed
from wpinq.plan.operators.source import Source


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Origin:
    """What was offered for a source: the files, or the object."""

    files: frozenset[object]
    object_: Callable[[], Any]
    account: str

    def same(self, other: Origin) -> bool:
        """Whether a file is of both, or both are one object that still lives."""
        if self.files or other.files:
            return not self.files.isdisjoint(other.files)
        mine = self.object_()
        return mine is not None and mine is other.object_()


@dataclass(slots=True, repr=False, eq=False)
class Origins:
    """The origins of what a session protects or did, by source: what was spent on them stays spent."""

    _by_source: dict[str, list[Origin]] = field(default_factory=dict)

    def check(self, source: Source, unit: str, data: object) -> Origin:
        """Where the data of a source come from; the curator is warned of what is probably not meant."""
        origin = Origin(_files(data), _reference(data), source.account)
        for name, before in list(self._by_source.items()):
            if any(each.account != source.account and origin.same(each) for each in list(before)):
                warn(
                    f"what is protected as {source.source!r} is what {name!r} protects, or did, from another account: "
                    "who is in it loses what both spend. Protect it once, or, where a person is the unit, let both "
                    'share one account: account="..."'
                )
        undirected = "undirected" in unit.lower() and {"symmetric", "simple"}.isdisjoint(source.facts)
        if undirected and source.unit_weight < 2 and may_be_directed(data, source.record):
            warn(
                f"the unit of {source.source!r} is undirected, and its data are read as directed: what stands there as "
                "(a, b) and as (b, a) is two units. Declare it simple, or offer an EdgeList with directed=False"
            )
        return origin

    def keep(self, source: str, origin: Origin) -> None:
        """Remember the origin of data that were taken."""
        known = [each for each in self._by_source.get(source, ()) if each.files or each.object_() is not None]
        if not any(origin.same(each) and origin.files <= each.files for each in known):
            known.append(origin)
        self._by_source[source] = known

    def clear(self) -> None:
        """Let go of what was offered."""
        self._by_source.clear()


def _files(data: object) -> frozenset[object]:
    path = _offered(data)
    return identities(path) if isinstance(path, (str, os.PathLike)) else frozenset()


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
    """The path or object itself, of an edge list that says how to read it; of a graph's edges the graph."""
    return graph_of(data.graph if isinstance(data, EdgeList) else data)
