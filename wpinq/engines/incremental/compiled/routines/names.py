"""Names in code under construction: a character each, so that what code uses is on record and nobody reads it back.

A spelling gets its character once, and code holds the character until `spelled` writes it out. Whatever else stands in
generated code is ASCII. So the names in a line are its other characters, and renaming is translation.
"""

from __future__ import annotations

import sys
from threading import Lock

from wpinq.engines.incremental.compiled.refusal import CannotCompile

_FIRST = 0x10000
_characters: dict[tuple[str, str], str] = {}
_spellings: dict[int, str] = {}
_lock = Lock()


def name(spelling: str, kind: str = "value") -> str:
    """The character of a name. Names of two kinds have two, though they be spelled alike.

    Examples
    --------
    >>> x, y = name("x"), name("y")
    >>> line = f"{x} = {y} + 1"
    >>> spelled(line), names_in(line) == [x, y]
    ('x = y + 1', True)
    """
    key = kind, spelling
    if key not in _characters:
        with _lock:
            place = _FIRST + len(_spellings)
            if place > sys.maxunicode:
                raise CannotCompile("its functions need more names than there are")
            _spellings[place] = spelling
            _characters.setdefault(key, chr(place))
    return _characters[key]


def spelled(code: str) -> str:
    """The code with its names written out."""
    return code.translate(_spellings)


def names_in(*codes: str) -> list[str]:
    """The names in code, each once, in order."""
    return [c for c in dict.fromkeys("".join(codes)) if ord(c) >= _FIRST]
