"""Generated modules, interpreted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.incremental.interpreted import interpret
from wpinq.engines.incremental.compiled.neighbours import state
from wpinq.engines.incremental.compiled.tables import compiled_evaluator


@pytest.fixture
def interpreted_modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(compiled_evaluator, "import_module", interpret)
    monkeypatch.setattr(state, "import_module", interpret)
    yield
