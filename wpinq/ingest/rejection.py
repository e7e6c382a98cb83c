"""How data is refused: all of it at once, with the first positions, the reasons and no value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NoReturn

from wpinq.errors import SourceRejected

SHOWN = 10
"""How many positions a rejection names. How many there are in all is said as well."""

Faults = dict[int, str]
"""Position of an unfit row, from 0 -> the reason, which never holds a value."""


def reject(what: str, faults: Mapping[int, str], *, noun: str = "row", first: int = 0) -> NoReturn:
    """Refuse `what` for these faults. Positions are printed counted from `first`."""
    shown = sorted(faults)[:SHOWN]
    count = len(faults)
    places = ", ".join(str(position + first) for position in shown)
    more = f" and {count - len(shown)} more" if count > len(shown) else ""
    reasons = "; ".join(f"{reason} ({times})" for reason, times in Counter(faults.values()).most_common())
    amount = f"1 {noun} is" if count == 1 else f"{count} {noun}s are"
    raise SourceRejected(
        f"Refused as a whole, {what}: {amount} unfit, at {noun} {places}{more}, counted from {first}. "
        f"Reasons: {reasons}. Correct or leave out what is named here, and start again.",
        tuple(shown),
    )
