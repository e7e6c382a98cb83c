"""Views: the histograms of some of a table's attributes, and what was measured of them."""

from __future__ import annotations

from dataclasses import dataclass

from wpinq.arrays import Floats

View = tuple[int, ...]
"""The places of the attributes of a view, from 0, each once and ascending. () is the total."""


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredView:
    """A noisy marginal: what was released of a view, in units of counts.

    Attributes
    ----------
    view : tuple of int
        The attributes.
    counts : array
        An unbiased count of every cell, an axis an attribute, in the order of the view.
    scale : float
        The scale of the Laplace noise in each cell, more than 0: `1 / (θ · ε)` for a view of weight θ.
    """

    view: View
    counts: Floats
    scale: float

    @property
    def variance(self) -> float:
        """The variance of each cell's noise."""
        return 2 * self.scale**2
