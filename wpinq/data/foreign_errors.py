"""Code of others that runs while data are read: its own words, of whatever kind, may quote values, and end here."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TypeVar

from wpinq.errors import SourceRejected

_T = TypeVar("_T")


def computed(compute: Callable[[], _T], refusal: str) -> _T:
    """What it computes, or a refusal."""
    with contextlib.suppress(Exception):
        return compute()
    raise SourceRejected(refusal)
