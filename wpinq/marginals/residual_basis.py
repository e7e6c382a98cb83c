"""Least squares over measured views, in the residual basis, where it is diagonal.

Along each axis a view is turned by Helmert's orthonormal matrix: index 0 is the sum over `√n`, and the others are what
a value differs by from those before it. A coefficient of the view a belongs to the set S of the axes where its index is
not 0, and is that of the table's marginal S, times `√(n_S/n_a)`, plus noise of a's own scale. So the coefficients of
the marginal T are

    Σ_{a⊇S} b_a⁻² n_a^{−1/2} · (those of a) / (v_S √n_T)

and turning back gives its cells. No array is larger than the largest view, and the time is linear in the cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import prod

import numpy as np
from numpy.typing import NDArray

from wpinq.errors import AnswersError, PlanError
from wpinq.inference.least_squares import minimise
from wpinq.marginals.cells import Attributes, MeasuredView, View, by_order
from wpinq.runtime.arrays import Floats, Integers

# --- variances of all views, in closed form ---------------------------------------------------------------------------

# With M_a the matrix of a view's sums, all `M_aᵀM_a` have the same eigenspaces, one for each set S of attributes: what
# varies with all attributes of S and cancels over each of them. Its dimension is `d_S = Π_{i∈S} (n_i − 1)`. Noise of
# scale b_a in the view a gives that space the precision `v_S = Σ_{a⊇S} 1/(b_a² n_a)`, so that least squares has, in
# each cell of the view T, the variance `2 n_T⁻² Σ_{S⊆T} d_S / v_S`. The size of the full table cancels, and for one T
# only the subsets of T count: arrays here have an axis for each attribute of T, of length 2, index 1 where it is in S.
#
# The coefficient of a cell of the view a in the estimate of a cell of T depends on the set G of attributes of both in
# which the cells agree: `1/(b_a² n_a) Σ_{S⊆a∩T} (n_S/n_T)/v_S Π_{i∈S} (1[i∈G] − 1/n_i)`. So an estimate's error is a
# sum of a few kinds of noise, each many times, and its quantiles are found exactly.
#
# Source: McKenna et al. (HDMM), PVLDB 11(10), 2018, section 6.3 (OPT_M), for the eigenspaces.

#: Of one view that is asked for: it has 2²⁴ eigenspaces.
_MOST_ATTRIBUTES = 24


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
        self.holds = rows_of(views, len(attributes.sizes)).astype(np.int64)
        self.cells = np.array([float(attributes.cells(view)) for view in views])
        self.scales = np.asarray(scales, dtype=np.float64)
        self.weights = 1 / (self.scales**2 * self.cells)

    def _meets(self, wanted: View) -> Integers:
        """The attributes of a view in each measured view, as the bits of a number.

        The first attribute is the highest bit.
        """
        if len(wanted) > _MOST_ATTRIBUTES:
            raise PlanError(f"a view of {len(wanted)} attributes is too large: at most {_MOST_ATTRIBUTES}")
        found = np.zeros(len(self.holds), dtype=np.int64)
        for i in wanted:
            found = 2 * found + self.holds[:, i]
        return found

    def precisions(self, wanted: View) -> Floats:
        """`v_S` for every subset S of a view, of shape (2, …, 2).

        PlanError where no measured view has it.
        """
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
        dimensions = outer((1.0, size - 1.0) for size in self.attributes.shape(wanted))
        return 2 * float((dimensions / self.precisions(wanted)).sum()) / float(self.attributes.cells(wanted)) ** 2

    def kinds(self, wanted: View) -> tuple[Floats, Floats]:
        """The scale of each kind of noise in a cell of a view, and how often it is in it."""
        sizes, meets = self.attributes.shape(wanted), self._meets(wanted)
        cells = float(self.attributes.cells(wanted))
        shares = outer((1.0, float(size)) for size in sizes) / cells / self.precisions(wanted)
        scales, repeats = [], []
        for code in np.unique(meets).tolist():
            inside = [bool(code >> (len(wanted) - 1 - axis) & 1) for axis in range(len(wanted))]
            found = shares[tuple(slice(None) if some else 0 for some in inside)]
            common = [size for size, some in zip(sizes, inside, strict=True) if some]
            for axis, size in enumerate(common):  # index 1: the cells agree here
                front = np.moveaxis(found, axis, 0)
                apart = front[0] - front[1] / size
                found = np.moveaxis(np.stack((apart, apart + front[1])), 0, axis)
            alike = outer((size - 1.0, 1.0) for size in common)
            some_views = meets == code
            scales.append(np.outer((self.weights * self.scales)[some_views], np.abs(found).ravel()).ravel())
            elsewhere = self.cells[some_views] / float(prod(common))
            repeats.append(np.outer(elsewhere, alike.ravel()).ravel())
        return np.concatenate(scales), np.concatenate(repeats)


def outer(factors: Iterable[float | tuple[float, float]]) -> Floats:
    """The outer product of numbers and pairs: an axis a pair."""
    found = np.ones(())
    for factor in factors:
        found = np.multiply.outer(found, np.asarray(factor))
    return found


class ConsistentMarginals(Mapping[View, Floats]):
    """Consistent marginals: the best linear unbiased estimates from measured views.

    They agree wherever they overlap.

    A mapping from the views that were wanted to their counts, an axis an attribute. `marginal` gives any other view
    that a measured one holds. Views are written by place, or by name where attributes have names.

    Parameters
    ----------
    views : sequence of MeasuredView
        The measured views; a view may occur more than once.
    attributes : Attributes, sizes, or dict from names to sizes
        The attributes of the table.
    wanted : sequence of views, optional
        The keys of the mapping; the measured views when left out.

    Raises
    ------
    AnswersError
        When counts have not the shape of their view.
    PlanError
        When a view is asked for that no measured one holds.

    Notes
    -----
    Nothing is kept that is larger than a measured view. Counts may be negative: least squares keeps them unbiased.

    Examples
    --------
    >>> pair = MeasuredView((0, 1), np.array([[1.0, 2.0], [3.0, 6.0]]), scale=2.0)
    >>> single = MeasuredView((1,), np.array([5.0, 7.0]), scale=2.0)
    >>> found = ConsistentMarginals([pair, single], (2, 2))
    >>> found[(1,)], found.marginal(())
    (array([4.66666667, 7.33333333]), array(12.))
    >>> found[(0, 1)].sum(axis=0)
    array([4.66666667, 7.33333333])
    """

    def __init__(self, views: Sequence[MeasuredView], attributes: object, wanted: Sequence[View] | None = None) -> None:
        self.attributes = Attributes.of(attributes)
        self.views = tuple(views)
        for measured in self.views:
            if measured.counts.shape != self.attributes.shape(measured.view):
                raise AnswersError(
                    f"counts of the view {self.attributes.shown(measured.view)} are an array of shape "
                    f"{self.attributes.shape(measured.view)}, not {measured.counts.shape}"
                )
        given = [measured.view for measured in self.views] if wanted is None else wanted
        self.wanted = tuple(sorted(dict.fromkeys(map(self.attributes.view, given)), key=by_order))
        views_, scales = [measured.view for measured in self.views], [measured.scale for measured in self.views]
        self.algebra = MarginalAlgebra(self.attributes, views_, scales)
        self._turned: dict[int, Floats] = {}
        self._spaces: dict[View, Floats] = {}
        self._found: dict[View, Floats] = {}

    def __getitem__(self, view: object) -> Floats:
        found = self.attributes.view(view)
        if found not in self.wanted:
            raise KeyError(view)
        return self.marginal(found)

    def __iter__(self) -> Iterator[View]:
        return iter(self.wanted)

    def __len__(self) -> int:
        return len(self.wanted)

    def __repr__(self) -> str:
        return f"<ConsistentMarginals: {len(self.wanted)} views of {len(self.attributes.sizes)} attributes>"

    def marginal(self, view: object) -> Floats:
        """The counts of any view that a measured one holds."""
        wanted = self.attributes.view(view)
        if wanted not in self._found:
            self._found[wanted] = self._solved(wanted)
        return self._found[wanted]

    def _solved(self, wanted: View) -> Floats:
        known = self.algebra.precisions(wanted)
        # by eigenspaces, which wanted views share; of a view of many attributes all at once
        blocks = 2 ** len(wanted) <= max(64, len(self.views))
        found = self._by_spaces(wanted, known) if blocks else self._at_once(wanted, known)
        found /= np.sqrt(float(self.attributes.cells(wanted)))
        for axis in range(found.ndim):
            found = _turned_back(found, axis)
        return found

    def _by_spaces(self, wanted: View, known: Floats) -> Floats:
        found = np.zeros(self.attributes.shape(wanted))
        for inside in product((0, 1), repeat=len(wanted)):
            space = tuple(i for i, some in zip(wanted, inside, strict=True) if some)
            if space not in self._spaces:
                holding = np.flatnonzero(self.algebra.holds[:, list(space)].all(axis=1)).tolist()
                total: Floats = np.zeros(tuple(size - 1 for size in self.attributes.shape(space)))
                for number in holding:
                    total += self._coefficients(number)[_block(self.views[number].view, space)]
                self._spaces[space] = total / known[inside]
            found[_block(wanted, space)] = self._spaces[space]
        return found

    def _at_once(self, wanted: View, known: Floats) -> Floats:
        found = np.zeros(self.attributes.shape(wanted))
        for number, measured in enumerate(self.views):
            common = tuple(slice(None) if i in measured.view else 0 for i in wanted)
            found[common] += self._coefficients(number)[tuple(slice(None) if i in wanted else 0 for i in measured.view)]
        # along each axis, 0 is outside of S and all else inside
        found /= known[np.ix_(*(np.minimum(np.arange(size), 1) for size in found.shape))]
        return found

    def _coefficients(self, number: int) -> Floats:
        """Those of a measured view, times `b_a⁻² n_a^{−1/2}`."""
        if number not in self._turned:
            counts = np.asarray(self.views[number].counts, dtype=np.float64)
            for axis in range(counts.ndim):
                counts = _turned(counts, axis)
            self._turned[number] = counts * (self.algebra.weights * np.sqrt(self.algebra.cells))[number]
        return self._turned[number]


def _block(view: View, space: View) -> tuple[slice | int, ...]:
    """Where the coefficients of an eigenspace are among those of a view."""
    return tuple(slice(1, None) if i in space else 0 for i in view)


def _turned(values: Floats, axis: int) -> Floats:
    """Helmert's transform along an axis."""
    size = values.shape[axis]
    front = np.moveaxis(values, axis, 0)
    sums = np.cumsum(front, axis=0)
    found = np.empty_like(front)
    found[0] = sums[-1] / np.sqrt(size)
    k = _steps(size, front.ndim)
    found[1:] = (sums[:-1] - k * front[1:]) / np.sqrt(k * (k + 1))
    return np.moveaxis(found, 0, axis)


def _turned_back(values: Floats, axis: int) -> Floats:
    """Its inverse, which is its transpose."""
    size = values.shape[axis]
    front = np.moveaxis(values, axis, 0)
    k = _steps(size, front.ndim)
    parts = front[1:] / np.sqrt(k * (k + 1))
    found = np.empty_like(front)
    found[-1] = 0.0
    found[:-1] = np.cumsum(parts[::-1], axis=0)[::-1]
    found[1:] -= k * parts
    found += front[0] / np.sqrt(size)
    return np.moveaxis(found, 0, axis)


def _steps(size: int, dimensions: int) -> Floats:
    return np.arange(1.0, size).reshape((-1,) + (1,) * (dimensions - 1))


# The error of a plan of marginals, and the best shares for given views.
#
# Views are rows of booleans here, one an attribute; an eigenspace S is a subset of a wanted view. With x_a = θ_a² and
# `m_aS = 1/n_a` where a holds S, the precisions are `v = xᵀ m`, and wanted view T has the variance `Σ_S u_TS / v_S`.
#
# The weighted total `Σ_S c_S / v_S` falls with every step `θ_a ← θ_a · (θ_a h_a)^{1/3}`, divided by the sum, where
# `h_a = Σ_S m_aS c_S / v_S²`: 1/v is convex, so that Jensen's inequality over the views bounds the total from above by
# `Σ_a B_a/θ_a²`, equal to it here and least there. The largest variance is bounded by its p-norm, and found by
# quasi-Newton steps on the logarithms of the shares.

#: As many numbers take numpy as long as a call.
_NUMBERS = 700


@dataclass(slots=True)
class CountedWork:
    """A budget of work, in calls of numpy (about a microsecond each).

    Examples
    --------
    >>> work = CountedWork(100)
    >>> work.done(calls=10, numbers=70_000)
    >>> work.spent, work.over
    (110.0, True)
    """

    budget: float
    spent: float = 0.0

    def done(self, calls: int, numbers: float = 0) -> None:
        """Adds calls and the numbers that they went through."""
        self.spent += calls + numbers / _NUMBERS

    @property
    def over(self) -> bool:
        """Whether the budget is spent."""
        return self.spent >= self.budget


#: Views as rows of booleans: shape (views, attributes).
ViewRows = NDArray[np.bool_]

#: Wanted views times their subsets: a step of a search goes through as many numbers.
_LARGEST_PROBLEM = 1 << 22
#: Logarithms of shares below that of the largest, from where on a view counts for nothing.
_LEAST = -80.0


class TotalError:
    """The errors of wanted views in arrays, and the weighted sum of the variances, to be small."""

    def __init__(self, attributes: Attributes, wanted: tuple[View, ...], weights: Floats) -> None:
        sizes, count = attributes.sizes, len(attributes.sizes)
        # nothing varies with an attribute of one value
        many = [tuple(i for i in view if sizes[i] > 1) for view in wanted]
        if sum(2 ** len(view) for view in many) > _LARGEST_PROBLEM:
            raise self._too_large(len(wanted))
        spaces = {space for view in many for size in range(len(view) + 1) for space in combinations(view, size)}
        if len(wanted) * len(spaces) > _LARGEST_PROBLEM:
            raise self._too_large(len(wanted))
        self.wanted = rows_of(wanted, count)
        self.logarithms = np.log(np.array(sizes, dtype=np.float64))
        self.spaces = np.packbits(rows_of(sorted(spaces, key=by_order), count), axis=1)
        self.weights = weights
        cells = np.array([float(attributes.cells(view)) for view in wanted])
        dimensions = np.array([float(prod(sizes[i] - 1 for i in space)) for space in sorted(spaces, key=by_order)])
        self.shares_of_variance = 2 * self._held(self.wanted) * dimensions / cells[:, None] ** 2
        self._slopes: Floats = np.einsum("ts,t->s", self.shares_of_variance, weights)

    @staticmethod
    def _too_large(count: int) -> PlanError:
        mend = "want fewer or smaller views, or give the shares"
        return PlanError(f"{count} wanted views have too many subsets to plan for: {mend}")

    def _held(self, views: ViewRows) -> Floats:
        """Which eigenspaces each view holds, as 0 and 1: those without a bit that the view lacks."""
        held = np.ones((len(views), len(self.spaces)), dtype=np.bool_)
        for lacking, space in zip(np.packbits(~views, axis=1).T, self.spaces.T, strict=True):
            held &= lacking[:, None] & space == 0
        return held.astype(np.float64)

    def precision_shares(self, views: ViewRows) -> Floats:
        """`m_aS`: shape (views, eigenspaces)."""
        found: Floats = self._held(views) * np.exp(-1.0 * (views @ self.logarithms))[:, None]
        return found

    def slopes(self, precisions: Floats) -> Floats:
        """c for which `Σ_S c_S / v_S` is the number that is to be small, or goes as it does nearby."""
        return self._slopes

    def best_shares(
        self, held: Floats, shares: Floats, work: CountedWork, steps: int = 60, tolerance: float = 1e-7
    ) -> tuple[Floats, float]:
        """Better shares of views, from some, and the number that is to be small: a local minimum."""
        last = np.inf
        for _ in range(steps):
            precisions = np.einsum("as,a->s", held, shares**2)
            parts = self._slopes / precisions
            total = float(parts.sum())
            work.done(18, 3 * held.size)
            if last - total < tolerance * total:
                break
            last = total
            shares = shares * np.cbrt(shares * np.einsum("as,s->a", held, parts / precisions))
            shares = shares / shares.sum()
        else:
            total = float((self._slopes / np.einsum("as,a->s", held, shares**2)).sum())
        return shares, total


class LargestError(TotalError):
    """The p-norm of the weighted variances: their largest, nearly."""

    power = 32

    def slopes(self, precisions: Floats) -> Floats:
        return self._norm(precisions, self.power)[1]

    def _norm(self, precisions: Floats, power: int) -> tuple[float, Floats]:
        variances = self.weights * np.einsum("ts,s->t", self.shares_of_variance, 1 / precisions)
        largest = float(variances.max())
        raised = (variances / largest) ** (power - 1)
        norm = float((raised * variances).sum()) / largest
        value = largest * norm ** (1 / power)
        slopes = np.einsum("ts,t->s", self.shares_of_variance, self.weights * raised) * (value / largest / norm)
        return value, slopes

    def best_shares(
        self, held: Floats, shares: Floats, work: CountedWork, steps: int = 60, tolerance: float = 1e-7, power: int = 0
    ) -> tuple[Floats, float]:
        def objective(logarithms: Floats) -> tuple[float, Floats]:
            work.done(140, 4 * (held.size + self.shares_of_variance.size))
            found = np.exp(np.maximum(logarithms - logarithms.max(), _LEAST))
            total = float(found.sum())
            precisions = np.einsum("as,a->s", held, found**2)
            value, slopes = self._norm(precisions, power or self.power)
            through = np.einsum("as,s->a", held, slopes / precisions**2)
            return float(np.log(value) + 2 * np.log(total)), 2 * found / total - 2 * found**2 * through / value

        logarithms, value = minimise(objective, np.log(shares), steps, tolerance)
        found = np.exp(np.maximum(logarithms - logarithms.max(), _LEAST))
        return found / found.sum(), float(np.exp(value))


def rows_of(views: Sequence[View], count: int) -> ViewRows:
    """Views as rows of booleans.

    Examples
    --------
    >>> rows_of([(0,), (0, 2)], 3).astype(int)
    array([[1, 0, 0],
           [1, 0, 1]])
    """
    found = np.zeros((len(views), count), dtype=np.bool_)
    for row, view in zip(found, views, strict=True):
        row[list(view)] = True
    return found
