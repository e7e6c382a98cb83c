"""The two functions that SQL cannot say exactly: sums of floats rounded once, in Python."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

FUNCTIONS = ("wpinq_sum", "wpinq_share")
"""What SQL calls them: `list_sum` and `share`."""


def list_sum(items: Sequence[float | None] | None) -> float | None:
    """The correctly rounded sum of the floats that are not null; null where 64 bits cannot say it."""
    if items is None:
        return None
    numbers = [item for item in items if item is not None]
    try:
        total = math.fsum(numbers)
    except OverflowError:  # an intermediate sum overflowed; the exact total may still fit
        try:
            total = float(sum(map(Fraction, numbers)))
        except OverflowError:
            return None
    return total + 0.0 if math.isfinite(total) else None


def share(places: Sequence[int] | None, weights: Sequence[float | None] | None) -> list[float] | None:
    """The share of each element of a weighted list: merged weight over norm at its first place, 0 at its repeats.

    Merging and norm are exact, for opposite signs may cancel.
    """
    if places is None or weights is None:
        return None
    quick = _quick_shares(places, weights)
    return _exact_shares(places, weights) if quick is None else quick


def _quick_shares(places: Sequence[int], weights: Sequence[float | None]) -> list[float] | None:
    """The same for a list without repeats and nulls whose norm a float says exactly: each quotient rounds once."""
    given = [weight for weight in weights if weight is not None]
    if len(given) < len(weights) or any(place != i for i, place in enumerate(places, 1)):
        return None
    sizes = list(map(abs, given))
    try:
        norm = math.fsum(sizes)
        exact = math.fsum([*sizes, -norm]) == 0
    except OverflowError:
        return None
    return [weight / max(norm, 1.0) for weight in given] if exact else None


def _exact_shares(places: Sequence[int], weights: Sequence[float | None]) -> list[float]:
    merged: dict[int, Fraction] = {}
    for place, weight in zip(places, weights, strict=True):
        if weight is not None:
            merged[place] = merged.get(place, Fraction(0)) + Fraction(weight)
    norm = max(Fraction(1), sum(map(abs, merged.values()), Fraction(0)))
    result = [0.0] * len(places)
    for place, total in merged.items():
        result[place - 1] = float(total / norm)
    return result


def register(connection: Any) -> None:
    """Make the functions known to a connection."""
    special, (sum_name, share_name) = "special", FUNCTIONS  # nulls are passed on to the function
    connection.create_function(sum_name, list_sum, ["DOUBLE[]"], "DOUBLE", null_handling=special)
    connection.create_function(share_name, share, ["BIGINT[]", "DOUBLE[]"], "DOUBLE[]", null_handling=special)
