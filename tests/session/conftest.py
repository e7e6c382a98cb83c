"""A ledger file for each test, and datasets that tests share."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import pytest

import wpinq as wp


@pytest.fixture
def ledger(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def edges() -> wp.Query:
    return wp.source("edges", src=int, dst=int, unit="one directed edge")


@pytest.fixture
def people() -> wp.Query:
    return wp.source("people", region=str, age=int)


@pytest.fixture
def session(edges: wp.Query, people: wp.Query) -> Iterator[wp.Session]:
    with wp.Session() as opened:
        opened.protect(edges, [(1, 2), (2, 3), (3, 1), (1, 3)], budget=1000)
        opened.protect(people, [("north", 30), ("south", 40), ("south", 50)], budget=1000)
        yield opened
