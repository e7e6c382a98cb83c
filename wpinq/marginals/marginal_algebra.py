"""The algebra of marginals: how exact every view becomes by all that were measured together, in closed form.

With M_a the matrix of a view's sums, all `M_aᵀM_a` have the same eigenspaces, one for each set S of attributes: what
varies with all attributes of S and cancels over each of them. Its dimension is `d_S = Π_{i∈S} (n_i − 1)`. Noise of
scale b_a in the view a gives that space the precision `v_S = Σ_{a⊇S} 1/(b_a² n_a)`, so that least squares has, in
each cell of the view T, the variance `2 n_T⁻² Σ_{S⊆T} d_S / v_S`. The size of the full table cancels, and for one T
only the subsets of T count: arrays here have an axis for each attribute of T, of length 2, index 1 where it is in S.

The coefficient of a cell of the view a in the estimate of a cell of T depends on the set G of attributes of both in
which the cells agree: `1/(b_a² n_a) Σ_{S⊆a∩T} (n_S/n_T)/v_S Π_{i∈S} (1[i∈G] − 1/n_i)`. So an estimate's error is a sum
of a few kinds of noise, each many times, and its quantiles are found exactly.

Source: McKenna et al. (HDMM), PVLDB 11(10), 2018, section 6.3 (OPT_M), for the eigenspaces.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

import numpy as np

from wpinq.arrays import Floats, Integers
from wpinq.errors import PlanError
from wpinq.marginals.attributes import Attributes
from wpinq.marginals.measured_views import View

_MOST_ATTRIBUTES = 24
"""Of one view that is asked for: it has 2²⁴ eigenspaces."""


class MarginalAlgebra:
    """What views, measured with Laplace noise of these scales in each count, tell of others.

    Examples
    --------
    >>> apart = MarginalAlgebra(Attributes((2, 2, 2)), [(0, 1), (0, 2), (1, 2)], [3.0, 3.0, 3.0])
    >>> (apart.precisions((0, 1)) * 36).round(6)
    array([[3., 2.],
           [2., 1.]])
    >>> round(apart.variance((0, 1)), 6)
    10.5
    """

    def __init__(self, attributes: Attributes, views: Sequence[View], scales: Sequence[float]) -> None:
        self.attributes = attributes
        self.holds = np.zeros((len(views), len(attributes.sizes)), dtype=np.int64)
        for row, view in zip(self.holds, views, strict=True):
            row[list(view)] = 1
        self.cells = np.array([float(attributes.cells(view)) for view in views])
        self.scales = np.asarray(scales, dtype=np.float64)
        self.weights = 1 / (self.scales**2 * self.cells)

    def _meets(self, wanted: View) -> Integers:
        """For each measured view, what it has of a view, as the bits of a number, the first attribute highest."""
        if len(wanted) > _MOST_ATTRIBUTES:
            raise PlanError(f"a view of {len(wanted)} attributes is too large: at most {_MOST_ATTRIBUTES}")
        found = np.zeros(len(self.holds), dtype=np.int64)
        for i in wanted:
            found = 2 * found + self.holds[:, i]
        return found

    def precisions(self, wanted: View) -> Floats:
        """`v_S` for every subset S of a view, of shape (2, …, 2); PlanError where no measured view holds it."""
        count, sizes = len(wanted), self.attributes.shape(wanted)
        flat = np.bincount(self._meets(wanted), self.weights, 2**count)
        found: Floats = flat.astype(np.float64).reshape((2,) * count)
        for axis in range(count):  # from sums over what S meets to sums over what holds S
            front = np.moveaxis(found, axis, 0)
            front[0] += front[1]
        if not found[tuple(int(size > 1) for size in sizes)] > 0:
            raise PlanError(f"no view that is measured holds {self.attributes.shown(wanted)}: measure one that does")
        for axis, size in enumerate(sizes):
            if size == 1:  # nothing varies with it
                front = np.moveaxis(found, axis, 0)
                front[1] = front[0]
        return found

    def variance(self, wanted: View) -> float:
        """The variance of each cell of a view by least squares, all cells alike."""
        dimensions = _outer((1.0, size - 1.0) for size in self.attributes.shape(wanted))
        return 2 * float((dimensions / self.precisions(wanted)).sum()) / float(self.attributes.cells(wanted)) ** 2

    def kinds(self, wanted: View) -> tuple[Floats, Floats]:
        """The scale of each kind of noise in a cell of a view, and how often it is in it."""
        sizes, meets = self.attributes.shape(wanted), self._meets(wanted)
        cells = float(self.attributes.cells(wanted))
        shares = _outer((1.0, float(size)) for size in sizes) / cells / self.precisions(wanted)
        scales, repeats = [], []
        for code in np.unique(meets).tolist():
            inside = [bool(code >> (len(wanted) - 1 - axis) & 1) for axis in range(len(wanted))]
            found = shares[tuple(slice(None) if some else 0 for some in inside)]
            common = [size for size, some in zip(sizes, inside, strict=True) if some]
            for axis, size in enumerate(common):  # index 1: the cells agree here
                front = np.moveaxis(found, axis, 0)
                apart = front[0] - front[1] / size
                found = np.moveaxis(np.stack((apart, apart + front[1])), 0, axis)
            alike = _outer((size - 1.0, 1.0) for size in common)
            some_views = meets == code
            scales.append(np.outer((self.weights * self.scales)[some_views], np.abs(found).ravel()).ravel())
            elsewhere = self.cells[some_views] / float(prod(common))
            repeats.append(np.outer(elsewhere, alike.ravel()).ravel())
        return np.concatenate(scales), np.concatenate(repeats)


def _outer(pairs: Iterable[tuple[float, float]]) -> Floats:
    """The outer product of pairs: an axis a pair."""
    found = np.ones(())
    for pair in pairs:
        found = np.multiply.outer(found, np.asarray(pair))
    return found
