"""What the mechanisms share: OpenDP's constructors, exact numbers as floats, and silent failure.

Nothing that goes wrong while a mechanism runs may say with which values.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from wpinq.errors import EvaluationFailed

Measurement = Any
"""A measurement of OpenDP, which is imported only when first used."""

FAILED = "the mechanism failed on the evaluated values: the charge stands, and the reason is withheld"

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
