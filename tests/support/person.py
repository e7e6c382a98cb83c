"""The fields of the people of whom tables are asked."""

from __future__ import annotations

import datetime
from typing import Any

import wpinq as wp

PERSON: dict[str, Any] = {
    "city": str | None,
    "sex": wp.category("f", "m"),
    "age": int | None,
    "salary": wp.decimal(2),
    "joined": datetime.date,
}
