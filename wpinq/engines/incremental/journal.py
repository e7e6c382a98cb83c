"""An undo log: state changes through it, so that a proposal can be taken back exactly, bit by bit."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

_ABSENT = object()


class Journal:
    """Remembers what each dictionary entry was before a proposal changed it."""

    def __init__(self) -> None:
        self._undo: list[tuple[dict[Any, Any], Hashable, Any]] = []

    def put(self, table: dict[Any, Any], key: Hashable, value: Any) -> None:
        """Set an entry; None removes it."""
        self._undo.append((table, key, table.get(key, _ABSENT)))
        if value is None:
            table.pop(key, None)
        else:
            table[key] = value

    def commit(self) -> None:
        """Forget how to go back."""
        self._undo.clear()

    def rollback(self) -> None:
        """Go back to the last commit."""
        while self._undo:
            table, key, value = self._undo.pop()
            if value is _ABSENT:
                table.pop(key, None)
            else:
                table[key] = value
