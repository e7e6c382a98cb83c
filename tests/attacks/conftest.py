"""Data that must not be seen: a record and a weight that can be searched for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

import wpinq as wp
from wpinq.api.query import Query
from wpinq.display.explanation import gap
from wpinq.engines import reference
from wpinq.engines.sql.duckdb.database import Database


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
    return wp.source("visits", who=str, amount=int, weights=True)


@pytest.fixture
def session(visits: wp.Query, secret: Secret) -> Iterator[wp.Session]:
    with wp.Session() as opened:
        opened.protect(visits, {(secret.word, secret.number): secret.weight}, budget=1000)
        yield opened


@dataclass(frozen=True)
class OnEngine:
    """One of the engines: its name, and how it evaluates."""

    name: str
    weights: Callable[[Any, Mapping[str, Mapping[Any, float]]], dict[Any, float]]

    def refuses(self, query: Query) -> bool:
        """Whether it takes no such plan, as it says before anything is spent."""
        return bool(gap(query.plan, self.name))

    def __call__(self, query: Query, **data: Mapping[Any, float]) -> dict[Any, float]:
        """The weights of a query's output."""
        return dict(self.weights(query.plan, data))


@pytest.fixture(params=["reference", "duckdb", pytest.param("spark", marks=pytest.mark.long)])
def engine(request: pytest.FixtureRequest) -> Iterator[OnEngine]:
    """Each engine in turn."""
    if request.param == "reference":
        yield OnEngine("reference", reference.evaluate)
    elif request.param == "duckdb":
        with Database(threads=1) as opened:
            yield OnEngine("duckdb", opened.evaluate)
    else:
        yield OnEngine("spark", request.getfixturevalue("database").evaluate)
