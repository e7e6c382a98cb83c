"""What the mechanisms share: OpenDP's constructors, scales that its privacy maps certify, and silent failure.

Selection is a measurement of OpenDP, exact over floats, scaled so that OpenDP's own privacy map bounds the loss.
Nothing that goes wrong while a mechanism runs may say with which values.
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import lru_cache
from typing import Any

from wpinq.errors import EpsilonError, EvaluationFailed

Measurement = Any
"""A measurement of OpenDP, which is imported only when first used."""

FAILED = "the mechanism failed on the evaluated values: the charge stands, and the reason is withheld"

_MAX_STEPS = 16
_features = threading.Lock()


@contextmanager
def contrib() -> Iterator[None]:
    """OpenDP's feature `contrib`, which its constructors ask for, switched on inside the block only.

    The feature set belongs to the whole process: left on, it would answer for the user's own use of OpenDP. A
    thread that switches it on during the block, some 0.1 ms for each new scale, finds it off afterwards.

    Examples
    --------
    >>> from opendp.mod import GLOBAL_FEATURES
    >>> before = set(GLOBAL_FEATURES)
    >>> with contrib():
    ...     "contrib" in GLOBAL_FEATURES
    True
    >>> set(GLOBAL_FEATURES) == before
    True
    """
    from opendp.mod import GLOBAL_FEATURES, disable_features, enable_features

    with _features:
        if "contrib" in GLOBAL_FEATURES:
            yield
            return
        enable_features("contrib")
        try:
            yield
        finally:
            disable_features("contrib")


def certified_scale(
    build: Callable[[float], Measurement],
    factor: int,
    epsilon: Fraction,
    slack: Fraction,
    distances: Iterable[Fraction],
) -> float:
    """The least scale, to a few units in the last place, whose loss OpenDP certifies to be at most the bill.

    The search starts at `factor * (1 + slack) / epsilon`, rounded up, and takes one `nextafter` at a time until
    for every distance d, with `d_in` the least float that is at least `d * (1 + slack)`:
    `Fraction(build(scale).map(d_in)) <= d * epsilon`. Arithmetic is exact but for these directed roundings.

    Parameters
    ----------
    build : callable
        The measurement with a given scale. Its map must be affine with a non-negative intercept. A function of a
        module, not a lambda: results are cached by it.
    factor : int
        The slope of the map times the scale: 2 for selection.
    epsilon : Fraction
        More than 0.
    slack : Fraction
        Rounding slack, at least 0: an output moves by at most `d * (1 + slack)`.
    distances : iterable of Fraction
        `uses * unit_weight` of every source: how far one unit of it moves the output in exact arithmetic. At
        least one, each more than 0.

    Returns
    -------
    float
        The scale.

    Raises
    ------
    EpsilonError
        When the parameters are outside these ranges, or floating point cannot hold the scale, a distance, or
        the loss billed for it, with full precision.

    Notes
    -----
    One unit is enough. A source that changes by k ≥ 1 units moves the output by at most `k * d_in`. The map is
    `loss(x) = a + b·x` with a, b ≥ 0, so `loss(k·d_in) ≤ k·(a + b·d_in) ≤ k·d·epsilon`, the billed loss of k
    units. The map of selection has a = 0, up to its rounding up to a float.

    Privacy cost: none. Everything here is known before data is touched.
    """
    billed = sorted({exact_number(d, "uses × unit weight of a source") for d in distances})
    if exact_number(epsilon, "epsilon") <= 0:
        raise EpsilonError("epsilon must be more than 0 to scale noise: parse it with parse_epsilon")
    if exact_number(slack, "the rounding slack") < 0:
        raise EpsilonError("the rounding slack must be at least 0: take the bound that the plan analysis gives")
    if not billed or billed[0] <= 0:
        raise EpsilonError("noise needs at least one source, each with uses × unit weight of more than 0")
    return _search(build, factor, epsilon, slack, tuple(billed))


@lru_cache(maxsize=1024)
def _search(
    build: Callable[[float], Measurement],
    factor: int,
    epsilon: Fraction,
    slack: Fraction,
    billed: tuple[Fraction, ...],
) -> float:
    for d in billed:
        round_up(d * epsilon, "the billed epsilon of a source")
    limits = [(round_up(d * (1 + slack), "uses × unit weight of a source"), d * epsilon) for d in billed]
    scale = round_up(factor * (1 + slack) / epsilon, "the noise scale")
    for _ in range(_MAX_STEPS):
        measurement = build(scale)
        if all(Fraction(measurement.map(d_in)) <= loss for d_in, loss in limits):
            return scale
        scale = math.nextafter(scale, math.inf)
    raise EpsilonError("OpenDP does not certify this noise within the bill: report it with the version of OpenDP")


def exact_number(number: object, what: str) -> Fraction:
    """An int or a Fraction as a Fraction; EpsilonError, which names it, for anything else."""
    if isinstance(number, bool) or not isinstance(number, (int, Fraction)):
        raise EpsilonError(f"{what} must be an exact number: pass a Fraction or an int")
    return Fraction(number)


def round_up(number: Fraction, what: str) -> float:
    """The least float that is at least a positive number; EpsilonError, which names it, outside of normal floats."""
    # Normal floats only, where one rounding is a relative error of 2**-53; half the range leaves room for a map
    # that doubles a distance.
    if not sys.float_info.min <= number <= sys.float_info.max / 2:
        raise EpsilonError(
            f"{what} is out of the range of floating point: use a source fewer times, or choose a unit weight "
            "and an epsilon nearer to 1"
        )
    rounded = float(number)
    return rounded if rounded >= number else math.nextafter(rounded, math.inf)


def invoke(measurement: Callable[[list[float]], Any], values: Sequence[float]) -> Any:
    """What the measurement releases about protected values, or one constant error.

    Parameters
    ----------
    measurement : callable
        Takes a list of floats. A measurement of OpenDP, for one.
    values : sequence of float
        Protected. OpenDP would take nan for 0 and infinity for the largest float: both are refused.

    Returns
    -------
    object
        The release.

    Raises
    ------
    EvaluationFailed
        When anything fails, a value that is not finite included. The message is constant, and no cause and no
        context is attached.

    Notes
    -----
    Privacy cost: that of the measurement, debited before the values were evaluated. The frames of a traceback
    still refer to the values, as those of any caller do: do not print the locals of frames.
    """
    try:
        release = _invoke_on_finite(measurement, values)
    except Exception:
        release = None
    if release is None:
        # Outside of the handler: there, even `from None` would keep the original error as its context.
        raise EvaluationFailed(FAILED)
    return release


def _invoke_on_finite(measurement: Callable[[list[float]], Any], values: Sequence[float]) -> Any:
    numbers = [float(value) for value in values]
    return measurement(numbers) if all(map(math.isfinite, numbers)) else None
