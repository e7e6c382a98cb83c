"""Names that were misspelt, and which were meant: the end of many a message."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def suggest(name: str, known: Iterable[str]) -> str:
    """The names nearest to a misspelt one, as the end of a message; all of them where none is near."""
    known = list(known)
    near = nearest(name, known)
    if near:
        return f"did you mean {' or '.join(f'`{match}`' for match in near)}?"
    names = sorted({_folded(candidate): candidate for candidate in reversed(known)}.values())
    if not names:
        return "there is none"
    rest = f" and {len(names) - 40} more" if len(names) > 40 else ""
    return f"there is {', '.join(names[:40])}{rest}"


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """The names nearest to a misspelt one, at most three; none where none is near.

    Examples
    --------
    >>> nearest("Salry", ["city", "salary"]), nearest("x", ["city", "salary"])
    (['salary'], [])
    """
    by_folded: dict[str, str] = {}
    for candidate in known:
        by_folded.setdefault(_folded(candidate), candidate)
    folded = _folded(name[:100])
    matches = difflib.get_close_matches(folded, by_folded, n=3, cutoff=0.6)
    return [by_folded[match] for match in matches or [other for other in by_folded if other.startswith(folded)][:3]]


def _folded(name: str) -> str:
    return name.casefold().replace("_", "")


def shorten(name: str) -> str:
    """A name as a message quotes it."""
    return name if len(name) <= 60 else name[:57] + "…"
