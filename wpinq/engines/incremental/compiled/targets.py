"""What a walk is scored against, and how far it is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from wpinq.arrays import Floats
from wpinq.errors import PlanError
from wpinq.expr.values import Value
from wpinq.plan.node import Node


class Aim(NamedTuple):
    """What an output is to come close to: `epsilon · Σ_x loss(Q(x) − values[x])` over the domain, its keys.

    `outside` is whether weight on records outside the domain counts too, against 0. The loss is the absolute value,
    or, with a width, `huber`.
    """

    epsilon: float
    values: Mapping[Value, float]
    outside: bool = False
    width: float = 0.0

    def check(self) -> None:
        """Raise PlanError where the price or the width is negative or not finite."""
        if not (0 <= self.epsilon < math.inf and 0 <= self.width < math.inf):
            raise PlanError(
                f"the price of a unit of distance and the width must be finite and at least 0, "
                f"not {self.epsilon!r} and {self.width!r}"
            )


@dataclass(frozen=True, slots=True)
class Target:
    """What a plan's output is to come close to: its `aim`, in parts."""

    plan: Node
    epsilon: float
    values: Mapping[Value, float]
    outside: bool = False
    width: float = 0.0

    @property
    def aim(self) -> Aim:
        """The target without its plan."""
        return Aim(self.epsilon, self.values, self.outside, self.width)


def huber(differences: Floats, widths: Floats | float) -> Floats:
    """`u²/(2w)` where |u| is below the width w, else `|u| − w/2`: the absolute value, rounded at its corner.

    Examples
    --------
    >>> huber(np.array([-3.0, 1.0, 0.5]), 1.0).tolist()
    [2.5, 0.5, 0.125]
    >>> huber(np.array([-3.0, 1.0, 0.5]), 0.0).tolist()
    [3.0, 1.0, 0.5]
    """
    size = np.abs(differences)
    near = size < widths
    small = np.where(near, size, 0.0)  # squares of the others may overflow
    return np.where(near, small * small / np.where(near, 2 * np.asarray(widths), 1.0), size - 0.5 * np.asarray(widths))


@dataclass(frozen=True, slots=True)
class Progress:
    """A walk so far: steps, proposals that were evaluated, those accepted, and the score."""

    steps: int
    evaluated: int
    accepted: int
    score: float
