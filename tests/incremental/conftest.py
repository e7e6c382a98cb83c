"""Generated modules, interpreted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.incremental.interpreted import interpret
from wpinq.engines.incremental.compiled import evaluator, neighbours


@pytest.fixture
def interpreted_modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(evaluator, "import_module", interpret)
    monkeypatch.setattr(neighbours, "import_module", interpret)
    yield
