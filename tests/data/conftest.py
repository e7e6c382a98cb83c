"""One DuckDB for the readings of all tests of data: to start one takes longer than most of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from wpinq.columns import storage


@pytest.fixture(scope="module", autouse=True)
def one_database_for_readings() -> Iterator[None]:
    """A reading without an engine has a connection of its own to this database; engines start theirs."""
    start, settings = duckdb.connect, dict(storage._SETTINGS)
    shared = start(":memory:", config=settings)

    def connect(database: str = ":memory:", *more: Any, config: dict[str, Any] | None = None, **options: Any) -> Any:
        if database == ":memory:" and config == settings:
            return shared.cursor()
        return start(database, *more, **options, **({} if config is None else {"config": config}))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(duckdb, "connect", connect)
        yield
    shared.close()
