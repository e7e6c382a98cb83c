"""Generated modules, interpreted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.incremental.interpreted import interpret
from wpinq.engines.delta.compiled.adjacency import state
from wpinq.engines.delta.compiled.hash_tables import evaluator


@pytest.fixture
def interpreted_modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(evaluator, "import_module", interpret)
    monkeypatch.setattr(state, "import_module", interpret)
    yield
