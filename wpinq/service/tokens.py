"""Tokens: what analysts and curators show to be known. Random, shown once; only their hashes are kept."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable

_PREFIX = "wpinq_"
"""So that scanners for leaked secrets, and people, know one when they see it."""

_BYTES = 32
"""256 bits: nobody guesses one, so a plain hash is all that must be kept."""

LONGEST = 128
"""The most characters of what is looked up as a token."""


def new_token() -> str:
    """A fresh token."""
    return _PREFIX + secrets.token_urlsafe(_BYTES)


def token_hash(token: str) -> bytes:
    """What is kept of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def matching(token: str, held: Iterable[tuple[str, bytes]]) -> str | None:
    """Whose token this is, of names with hashes: all are compared, each in constant time."""
    shown, found = token_hash(token), None
    for name, kept in held:
        if hmac.compare_digest(shown, kept):
            found = name
    return found
