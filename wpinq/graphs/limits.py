"""Public limits between degree tags, and what the tags of a node weigh by its degree: closed forms of `tags`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from wpinq.arrays import Floats
from wpinq.errors import PlanError


def checked_limits(limits: Sequence[int]) -> list[int]:
    """The limits as a list; PlanError where they do not rise from 0."""
    given = [int(limit) for limit in limits]
    if len(given) < 2 or given[0] != 0 or any(b <= a for a, b in pairwise(given)):
        raise PlanError("the limits of degree tags are integers that rise from 0, two or more: 0, 2, 4, 8, …")
    return given


def tag_weights(limits: Sequence[int], largest: int, *, whole: bool = False) -> Floats:
    """`t_i(d)` for d = 0, 1, …, largest, as an array of shape (largest + 1, tags).

    With `whole` the last tag takes all degree above its lower limit, as that of `joint_degrees_by_tag` does.

    Examples
    --------
    >>> tag_weights([0, 2, 8], 3).tolist()
    [[0.0, 0.0], [0.5, 0.0], [1.0, 0.0], [1.0, 0.5]]
    """
    given = np.asarray(checked_limits(limits), dtype=np.float64)
    if whole:
        given[-1] = np.inf
    return np.asarray(np.clip(np.arange(largest + 1)[:, None] - given[:-1], 0, np.diff(given)) / 2)


def wedge_weights(limits: Sequence[int], largest: int) -> Floats:
    """`w_i(d)` of `closed_wedges_by_tag` for d = 0, 1, …, largest, as an array of shape (largest + 1, tags).

    Examples
    --------
    >>> wedge_weights([0, 2, 8], 2).tolist()
    [[0.0, 0.0], [0.5, 0.0], [0.2, 0.0]]
    """
    tags = tag_weights(limits, largest)
    degree = np.arange(largest + 1)[:, None]
    norm = degree * ((degree - 1) / 2 + 2 * tags.sum(axis=1, keepdims=True))
    return np.asarray(np.divide(tags, norm, out=np.zeros_like(tags), where=norm > 0))
