"""One small dataset with everything that groups can be made of, and its declaration."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from typing import Any

import pytest

import wpinq as wp
from tests.support.person import PERSON
from wpinq.api.query import Query

DAYS = [datetime.date(2024, 1, day) for day in range(1, 6)]


@pytest.fixture
def people() -> Query:
    return wp.source("people", PERSON)


@pytest.fixture
def rows() -> list[tuple[Any, ...]]:
    draw = random.Random(7)
    return [
        (
            draw.choice(["Oslo", "Bergen", "Hamar", None]),
            draw.choice("fm"),
            draw.choice([None, *range(18, 80)]),
            Decimal(draw.randrange(0, 30_000)) / 100,
            draw.choice(DAYS),
        )
        for _ in range(600)
    ]
