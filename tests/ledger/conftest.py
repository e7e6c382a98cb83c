"""Places of ledgers: the ledger's tests run over both stores."""

from __future__ import annotations

import pathlib

import pytest


@pytest.fixture(params=["file", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> str:
    """A file, or a ledger in PostgreSQL."""
    return str(tmp_path / "ledger.db" if request.param == "file" else request.getfixturevalue("postgres_ledger"))
