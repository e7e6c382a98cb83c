"""What weights count: a public factor such that every weight is that many times a number of things, for all data.

Static, from the plan and what its sources declare, never from whether weights happen to be whole. Each operator says
its own part (`Operator.counted`); where it does not, its output is weights and no counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

NUMBERED = ", as Shave numbers them"


@dataclass(frozen=True, slots=True)
class Counted:
    """Weights of a step's output that are multiples of a public factor: `A(x) = factor · #{things with record x}`.

    Attributes
    ----------
    factor : Fraction
        What one thing weighs, more than 0.
    of : str
        What the things are, in the plural.
    even : bool
        Whether no record stands for more than one thing: every record that is there weighs the factor.
    """

    factor: Fraction
    of: str
    even: bool = False


@dataclass(frozen=True, slots=True)
class NoCount:
    """A step whose weights are no counts, as far as the plan tells, and why."""

    step: str
    reason: str


def counted_together(step: str, left: Counted, right: Counted, joined: str, *, even: bool = False) -> Counted | NoCount:
    """What two sides count together, where one thing weighs the same on both; `joined` has the words for it."""
    if left.factor != right.factor:
        return NoCount(step, f"puts together things that weigh {left.factor} and {right.factor}")
    return Counted(left.factor, joined, even)


def numbered(things: Counted, width: Fraction) -> Counted | NoCount:
    """The pieces of things that are cut by one width: each whole, or some to each, or each of several."""
    if (width / things.factor).denominator == 1:
        of = things.of if things.of.endswith(NUMBERED) else things.of + NUMBERED
        return Counted(things.factor, of, things.even or width == things.factor)
    if (things.factor / width).denominator == 1:  # every piece is a whole one
        return Counted(width, f"slices of {things.of}", even=True)
    return NoCount("Shave", f"cuts what weighs {things.factor} into pieces of {width}, neither a multiple of the other")
