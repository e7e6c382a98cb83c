"""Digests, stored words, bills and seeded draws are those that were recorded."""

from __future__ import annotations

import json

import pytest

from tests.golden.values import RECORDED, found
from wpinq.plan.operator import REGISTRY

EXPECTED = json.loads(RECORDED.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def values() -> dict[str, object]:
    return json.loads(json.dumps(found()))


@pytest.mark.parametrize("name", EXPECTED)
def test_as_recorded(values: dict[str, object], name: str) -> None:
    assert values[name] == EXPECTED[name]


def test_each_value_is_recorded(values: dict[str, object]) -> None:
    assert list(values) == list(EXPECTED)
    assert {name.lower() for name in REGISTRY} <= {name.split()[1].replace("_", "") for name in values}
