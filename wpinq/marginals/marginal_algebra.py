"""The algebra of marginals: how exact every view becomes by all that were measured together, in closed form.

With M_a the matrix of a view's sums, all `M_aᵀM_a` have the same eigenspaces, one for each set S of attributes: what
varies with all attributes of S and cancels over each of them. Its dimension is `d_S = Π_{i∈S} (n_i − 1)`. Noise of
scale b_a in the view a gives that space the precision `v_S = Σ_{a⊇S} 1/(b_a² n_a)`, so that least squares has, in each cell
of the view T, the variance `2 n_T⁻² Σ_{S⊆T} d_S / v_S`. The size of the full table cancels, and for one T only the
subsets of T count: all here are arrays of an axis an attribute of T, of length 2, index 1 where it is in S.

Source: McKenna et al. (HDMM), PVLDB 11(10), 2018, section 6.3 (OPT_M), for the eigenspaces.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wpinq.arrays import Floats
from wpinq.errors import PlanError
from wpinq.marginals.attributes import Attributes
from wpinq.marginals.measured_views import View

_MOST_ATTRIBUTES = 24
"""Of one view that is asked for: it has 2²⁴ eigenspaces."""


def precisions(attributes: Attributes, views: Sequence[View], scales: Sequence[float], wanted: View) -> Floats:
    """`v_S` for every subset S of a view, of shape (2, …, 2); PlanError where the views do not determine it.

    Examples
    --------
    >>> apart = [(0, 1), (0, 2), (1, 2)]
    >>> (precisions(Attributes((2, 2, 2)), apart, [3.0] * 3, (0, 1)) * 36).round(6)
    array([[3., 2.],
           [2., 1.]])
    """
    if len(wanted) > _MOST_ATTRIBUTES:
        raise PlanError(f"a view of {len(wanted)} attributes is too large: at most {_MOST_ATTRIBUTES}")
    found = np.zeros((2,) * len(wanted))
    for view, scale in zip(views, scales, strict=True):
        found[tuple(int(i in view) for i in wanted)] += 1 / (scale**2 * attributes.cells(view))
    for axis in range(len(wanted)):  # from sums over what S meets to sums over what holds S
        front = np.moveaxis(found, axis, 0)
        front[0] += front[1]
    many = tuple(int(attributes.sizes[i] > 1) for i in wanted)  # attributes of one value vary with nothing
    if not found[many] > 0:
        raise PlanError(f"no view that was measured holds {attributes.shown(wanted)}: measure one that does")
    for axis, some in enumerate(many):
        if not some:
            front = np.moveaxis(found, axis, 0)
            front[1] = front[0]
    return found


def cell_variance(attributes: Attributes, views: Sequence[View], scales: Sequence[float], wanted: View) -> float:
    """The variance of each cell of a view, all cells alike, by least squares over Laplace noise of these scales.

    Examples
    --------
    >>> apart = [(0, 1), (0, 2), (1, 2)]
    >>> round(cell_variance(Attributes((2, 2, 2)), apart, [3.0] * 3, (0, 1)), 6)
    10.5
    """
    dimensions = outer((1.0, size - 1.0) for size in attributes.shape(wanted))
    shares = dimensions / precisions(attributes, views, scales, wanted)
    return 2 * float(shares.sum()) / attributes.cells(wanted) ** 2


def outer(pairs: object) -> Floats:
    """The outer product of pairs: an axis a pair."""
    found = np.ones(())
    for pair in pairs:  # type: ignore[attr-defined]
        found = np.multiply.outer(found, np.asarray(pair))
    return found
