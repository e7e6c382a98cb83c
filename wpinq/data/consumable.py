"""What can be read only once, and was: known again by the object alone, never by how many rows are left in it.

A generator, a reader of batches or a cursor gives its rows once. Offered again it would give what is left, mostly
nothing, and that would be protected without a word. So whatever reading began of is remembered, weakly and for the
whole process. Of what Python cannot refer to weakly (`zip`, `map`, `iter(list)`, `csv.reader`) nothing is known.
"""

from __future__ import annotations

import contextlib
import inspect
import weakref
from collections.abc import Iterator
from typing import Any

from wpinq.errors import SourceRejected

_begun: dict[int, tuple[weakref.ref[Any], object]] = {}
"""By the place of an object in memory: a way to it, which goes with it, and what it stood at."""


def check_unread(data: object, result: object = None) -> None:
    """Refuse what gives its rows once, and has begun to, as far as that is known.

    Parameters
    ----------
    data : object
        Of which rows are to be read; anything but an iterator or a cursor can be read again.
    result : object, optional
        What a cursor has for the query that it executed; another query gives another one.

    Raises
    ------
    SourceRejected
        Saying what to offer instead.
    """
    if not _is_one_shot(data, result):
        return
    reference, before = _begun.get(id(data), (None, None))
    again = reference is not None and reference() is data and before is result
    if again or (inspect.isgenerator(data) and inspect.getgeneratorstate(data) == inspect.GEN_CLOSED):
        raise SourceRejected(
            f"this {type(data).__qualname__} gives its rows once, and was read already: what is left would be "
            "protected as if it were all. Make it anew, or offer what can be read again: a list, a table or a file"
        )


def begin(data: object, result: object = None) -> None:
    """Remember that reading begins."""
    if not _is_one_shot(data, result):
        return
    place = id(data)
    with contextlib.suppress(TypeError):
        _begun[place] = weakref.ref(data, lambda gone: _forget(place, gone)), result


def _is_one_shot(data: object, result: object) -> bool:
    return result is not None or isinstance(data, Iterator)


def _forget(place: int, gone: weakref.ref[Any]) -> None:
    """Unless another object has its place by now."""
    if _begun.get(place, (None, None))[0] is gone:
        del _begun[place]
