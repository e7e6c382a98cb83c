"""What a difference from an answer costs."""

from __future__ import annotations

from typing import Annotated


def loss(difference: Annotated[float, "float64"], width: Annotated[float, "float64"]) -> Annotated[float, "float64"]:
    """`u²/(2w)` where |u| is below the width w, else `|u| − w/2`: the absolute value, rounded at its corner.

    Source: Huber, Ann. Math. Stat. 1964. The compiled engine takes its source as it stands.

    Examples
    --------
    >>> [loss(u, 1.0) for u in (-3.0, 1.0, 0.5)], [loss(u, 0.0) for u in (-3.0, 1.0, 0.5)]
    ([2.5, 0.5, 0.125], [3.0, 1.0, 0.5])
    """
    size = abs(difference)
    return size * size / (2.0 * width) if size < width else size - 0.5 * width
