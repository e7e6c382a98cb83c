"""What a listing tells of a pair: whether a key is shown, with which number; and the number if asked for later.

One listing holds many keys that are all alike, absent on one side and present on the other, so it is as many draws of
what a listing says of one key.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np

from tests.audit.noisy_numbers import BEYOND, Fit
from tests.audit.pairs import ALPHA, Measured, Pair, Ready, told
from wpinq.api.simulate import PublicOutput
from wpinq.sinks.count_above import draw_above, draw_keys


def _revealed(ready: Ready) -> tuple[np.ndarray, np.ndarray]:
    """Of every key of the domain what it is in the end, and whether the listing shows it."""
    order = ready.order
    listing = order.measurement.listing
    assert listing is not None
    sink, output, type_ = order.measurement.sink, PublicOutput(ready.outputs), order.measurement.key_type
    shown = draw_above(sink, listing, type_, output, (), (), order.scale, os.urandom)
    domain = [listing.domain.key(place) for place in range(listing.domain.size)]
    rest = [key for key in domain if key not in shown]
    past = [(listing.domain, sink.cut(listing.above))]
    values = shown | dict(zip(rest, draw_keys(sink, output, rest, past, order.scale, os.urandom), strict=True))
    return np.array([values[key] for key in domain]), np.array([key in shown for key in domain])


def measure(pair: Pair, noise: float, size: int, over: Callable[[], bool]) -> Measured:
    """As many keys of listings of either side, fewer where time is over, and what they tell."""
    ((before,), (after,)) = pair.ready(pair.before, noise), pair.ready(pair.after, noise)
    sides = {"before": before, "after": after}
    order, listing = before.order, before.order.measurement.listing
    assert listing is not None
    whole = order.measurement.sink.lattice is not None
    cut, scale, moved = order.measurement.sink.cut(listing.above), order.scale, next(iter(after.outputs.values()))
    fit, counts, drawn = Fit(scale, whole), {side: np.zeros(2 + 2 * len(BEYOND), dtype=np.int64) for side in sides}, 0
    while drawn < size and not (drawn and over()):
        for side, ready in sides.items():
            values, shown = _revealed(ready)
            fit.take(values - (moved if side == "after" else 0.0))
            events = [shown, ~shown, *(shown & (values >= cut + x * scale) for x in BEYOND)]
            events += [values <= -x * scale for x in BEYOND]
            counts[side] += np.array([event.sum() for event in events])
        drawn += listing.domain.size
    bound, error = 0.0, ALPHA / (2 * (2 + 2 * len(BEYOND)))
    for likely, rare in (("before", "after"), ("after", "before")):
        pairs = zip(counts[likely].tolist(), counts[rare].tolist(), strict=True)
        bound = max(bound, *(told(high, low, drawn, drawn, error) for high, low in pairs))
    return Measured(moved / scale, bound, fit.p_value(), drawn)
