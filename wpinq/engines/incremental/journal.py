"""An undo log: state changes through it, so that a proposal can be taken back exactly, bit by bit."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from sortedcontainers import SortedList

_ABSENT, _ADDED, _REMOVED = object(), object(), object()


class Journal:
    """Remembers what each entry of a dictionary was before a proposal changed it, and what came into a sorted list."""

    def __init__(self) -> None:
        self._undo: list[tuple[Any, Hashable, Any]] = []

    def put(self, table: dict[Any, Any], key: Hashable, value: Any) -> None:
        """Set an entry; None removes it."""
        self._undo.append((table, key, table.get(key, _ABSENT)))
        if value is None:
            table.pop(key, None)
        else:
            table[key] = value

    def add(self, ordered: SortedList, item: Hashable) -> None:
        """Put an item into a sorted list."""
        self._undo.append((ordered, item, _ADDED))
        ordered.add(item)

    def remove(self, ordered: SortedList, item: Hashable) -> None:
        """Take an item out of a sorted list."""
        self._undo.append((ordered, item, _REMOVED))
        ordered.remove(item)

    def commit(self) -> None:
        """Forget how to go back."""
        self._undo.clear()

    def rollback(self) -> None:
        """Go back to the last commit."""
        while self._undo:
            held, key, value = self._undo.pop()
            if value is _ADDED:
                held.remove(key)
            elif value is _REMOVED:
                held.add(key)
            elif value is _ABSENT:
                held.pop(key, None)
            else:
                held[key] = value
