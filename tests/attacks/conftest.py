"""Data that must not be seen: a record and a weight that can be searched for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

import wpinq as wp


@dataclass(frozen=True, repr=False)  # tracebacks of tests show their locals
class Secret:
    """A word and numbers that occur nowhere but in the protected data."""

    word: str = "xyzzy-record-4711"
    number: int = 918273645
    weight: float = 0.7310585786300049

    def in_text(self, text: str) -> bool:
        return any(trace in text for trace in (self.word, str(self.number), repr(self.weight)[:12]))


@pytest.fixture
def secret() -> Secret:
    return Secret()


@pytest.fixture
def visits() -> wp.Query:
    return wp.source("visits", who=str, amount=int)


@pytest.fixture
def session(visits: wp.Query, secret: Secret) -> Iterator[wp.Session]:
    with wp.Session() as opened:
        opened.protect(visits, {(secret.word, secret.number): secret.weight}, budget=1000)
        yield opened
