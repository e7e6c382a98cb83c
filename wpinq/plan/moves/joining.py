"""What a Join does to changes of its inputs: rule J where weights have any sign, rule S where none is negative.

At one key, with a = ‖A_k‖, b = ‖B_k‖ and p = a/(a + b), every rate of `A_k ⊗ B_k / (a + b)` along the straight line
between two inputs is a function of p and of the rates of the inputs; its largest value over p and over what the inputs
may do is the bound. docs/proofs/stability.md derives the forms.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import product

from wpinq.plan.moves.change import Move, shorter

_ZERO, _ONE = Fraction(0), Fraction(1)


@lru_cache(maxsize=4096)
def at_one_key(left: Move, right: Move) -> Move:
    """The change of a Join's output at one key, where no input weight is negative (rule S).

    With d = p_L − n_L + p_R − n_R, the rates of gain, loss and both are at most

        p_L(1−p) + p_R·p + p(1−p)·max(0, −d)        n_L(1−p) + n_R·p + p(1−p)·max(0, d)
        (p_L+n_L)(1−p) + (p_R+n_R)·p + p(1−p)·|d|

    They are convex in (p_L, n_L, p_R, n_R), so the largest value is at a corner of what the inputs may do.

    Examples
    --------
    >>> from wpinq.plan.moves.change import ONE
    >>> at_one_key(ONE, ONE)
    Move(increase=Fraction(1, 1), decrease=Fraction(1, 2), total=Fraction(3, 2))
    """
    gain = loss = both = _ZERO
    for (gained, lost), (won, missed) in product(_corners(left), _corners(right)):
        drift = gained - lost + won - missed
        gain = max(gain, _largest(gained, won, max(_ZERO, -drift)))
        loss = max(loss, _largest(lost, missed, max(_ZERO, drift)))
        both = max(both, _largest(gained + lost, won + missed, abs(drift)))
    return Move.of(gain, loss, both)


@lru_cache(maxsize=4096)
def at_one_key_of_any_sign(left: Fraction, right: Fraction) -> Move:
    """The change at one key where weights may be negative (rule J): `α + β − αβ/(α + β)`, all of it of either sign."""
    if not left + right:
        return Move.any_sign(_ZERO)
    return Move.any_sign(shorter(left + right - left * right / (left + right)))


@lru_cache(maxsize=4096)
def at_unknown_keys(move: Move) -> Move:
    """The change of the output where that of one input lies at keys that are unknown, and may be many.

    At each, what is gained can be lost by up to a quarter at once, as the scale of the key moves, and each key has a
    scale of its own: `max (p + n/4)` over what the input may do.
    """
    gain = max(gained + lost / 4 for gained, lost in _corners(move))
    loss = max(lost + gained / 4 for gained, lost in _corners(move))
    return Move.of(gain, loss, move.total)


def _corners(move: Move) -> Iterator[tuple[Fraction, Fraction]]:
    """The corners of `0 ≤ gained ≤ increase, 0 ≤ lost ≤ decrease, gained + lost ≤ total`."""
    yield _ZERO, _ZERO
    yield move.increase, _ZERO
    yield _ZERO, move.decrease
    yield move.increase, move.total - move.increase
    yield move.total - move.decrease, move.decrease


def _largest(left: Fraction, right: Fraction, scale: Fraction) -> Fraction:
    """The largest value over 0 ≤ p ≤ 1 of `left·(1−p) + right·p + scale·p(1−p)`."""
    ends = max(left, right)
    if abs(right - left) >= scale:  # the slope has one sign between the ends
        return ends
    return (left + right) / 2 + scale / 4 + (right - left) ** 2 / (4 * scale)
