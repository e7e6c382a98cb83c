"""The facts that a source may declare: what rewrites may use, and what every bill must say."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

FACTS: Mapping[str, str] = MappingProxyType(
    {
        "nonnegative": "no record has a negative weight",
        "unit_weights": "every record weighs exactly 1",
        "symmetric": "the records (a, b) and (b, a) weigh the same",
    }
)
"""Fact name -> what the curator promises. It narrows which neighbours are covered, so bills print it."""
