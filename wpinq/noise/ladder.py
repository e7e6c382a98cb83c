"""The ladder mechanism: an integer near a count, on a rung of the count's ladder, drawn exactly.

The rungs of a count T with local sensitivities `LS_t`: rung 0 is T alone, and rung j the next `LS_(j-1)` integers on
either side. Every integer on rung j is drawn with a chance in proportion to `q^j`, `q = exp(-1/scale)`. One edge
changes T and all `LS_t` in such a way that no integer moves by more than one rung (`docs/proofs/ladder.md`), so it
changes every chance by a factor of at most `exp(2/scale)`.

*How it is drawn.* Rung j > 0 weighs `2 · LS_t · q^j` with t = j − 1, and `LS_t ≤ Σ_m b_m · C(t, m)`. As
`Σ_t C(t, m) · q^t = q^m / (1 − q)^(m+1)`, the polynomial with all its rungs weighs `2 Σ_m b_m · z^(m+1)` for
`z = q/(1 − q)`, against 1 of rung 0. So one of these terms is chosen by its weight; t is m more than the sum of m + 1
geometric draws, which has `Pr[t] ∝ C(t, m) · q^t`; and it is kept with the chance `LS_t / Σ_m b_m · C(t, m)`, else
all begins anew. What is kept has the law of the ladder: every rung, however far, has its chance, and no float decides.

Source: Zhang, Cormode, Procopiuc, Srivastava, Xiao, "Private release of graph statistics using ladder functions",
SIGMOD 2015.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Sequence
from fractions import Fraction

from wpinq.kernel.coins import Coin, RandomBytes, below
from wpinq.kernel.geometric import geometric
from wpinq.ladders.rungs import Ladder

_WORD = 64


def draw_count(ladder: Ladder, scale: float, random: RandomBytes = os.urandom) -> int:
    """A draw from a ladder.

    Parameters
    ----------
    ladder : Ladder
        Protected.
    scale : float
        From 1/32 to 2⁶⁰, taken for the rational that it is; `ladder_scale` gives it.
    random : callable
        Where random bytes come from: the operating system, but for tests.

    Returns
    -------
    int
        Any integer, also below 0.

    Notes
    -----
    Privacy cost: `2 / scale` for each edge that is added or removed. How long a draw takes depends a little on the
    ladder: some two of three are kept.
    """
    bound = ladder.bound
    weights = (1, *(2 * b for b in bound))  # of the powers of z
    while True:
        power = choose_power(weights, scale, random)
        if power == 0:
            return ladder.count
        t = power - 1 + sum(size for _, size in geometric(power, scale, random))
        steps = ladder.sensitivity(t)
        if below(sum(b * math.comb(t, m) for m, b in enumerate(bound)), random) < steps:
            offset = ladder.reach(t) + 1 + below(steps, random)
            return ladder.count + (offset if below(2, random) else -offset)


def choose_power(weights: Sequence[int], scale: float, random: RandomBytes) -> int:
    """k with the chance `weights[k] · z^k / Σ_i weights[i] · z^i`, for `z = 1 / (exp(1/scale) − 1)`.

    Parameters
    ----------
    weights : sequence of int
        None below 0, the first above.
    scale : float
        As of `draw_count`.
    random : callable
        Where random bytes come from.

    Notes
    -----
    A uniform U, its digits drawn one word after another, is compared with the sums `S_k / S` of the chances: k is found
    where `S_(k-1) ≤ U · S ≤ S_k` is certain from the digits of U so far and from rational bounds on z, that are made as
    close as U is known. A boundary is hit for ever with probability 0.
    """
    bits, drawn = 0, 0
    while True:
        bits, drawn = bits + _WORD, drawn << _WORD | int.from_bytes(random(_WORD // 8), "little")
        bounds = odds(scale, bits)
        if bounds is None:
            continue
        low, high = (_partial_sums(weights, z) for z in bounds)
        least, most = Fraction(drawn, 2**bits) * low[-1], Fraction(drawn + 1, 2**bits) * high[-1]
        for k, (before, after) in enumerate(zip((Fraction(0), *high), low, strict=False)):
            if before <= least and most <= after:
                return k


def odds(scale: float, bits: int) -> tuple[Fraction, Fraction] | None:
    """Rationals on either side of `z = q/(1 − q)`, `q = exp(-1/scale)`; None where these bits do not bound it."""
    exponent = 1 / Fraction(scale)
    powers = max(1, math.ceil(exponent / 2))  # q as a power of a chance that a coin has
    leading = Coin(exponent / powers, logistic=False).leading(bits)
    if leading + 1 >= 2**bits:
        return None
    low, high = (Fraction(top, 2**bits) ** powers for top in (leading, leading + 1))
    return low / (1 - low), high / (1 - high)


def as_float(count: int) -> float:
    """The nearest float, and the largest in place of infinity."""
    limit = sys.float_info.max
    return float(max(-int(limit), min(int(limit), count)))


def _partial_sums(weights: Sequence[int], z: Fraction) -> list[Fraction]:
    sums, total = [], Fraction(0)
    for k, weight in enumerate(weights):
        total += weight * z**k
        sums.append(total)
    return sums
