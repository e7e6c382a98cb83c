"""Plans of marginals, and the search for one: which views to measure, with which shares.

The error is not convex in the shares, and they enter it squared, so that descent never takes up a view that has none.
So the search is one over sets of views. It climbs from a set by putting two views into one, with the share of both,
many pairs at a time at first, as long as the best shares of the new set have less error. Sets to begin with are the
wanted views, the full table, covers by larger views; then the best set so far without some of its views, and of few
attributes random pools. All of it is drawn with one seed and ends after a count of work: the same plan on any machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import count, product
from typing import Any, Literal

import numpy as np

from wpinq.errors import PlanError, described
from wpinq.inference.checks import MOST_BINS, count_of, is_one_of
from wpinq.inference.least_squares import single_blas_thread
from wpinq.marginals.cells import Attributes, MeasuredView, View, by_order, weight_of
from wpinq.marginals.residual_basis import CountedWork, LargestError, MarginalAlgebra, TotalError, ViewRows
from wpinq.runtime.arrays import Floats, Integers

# A plan of marginals: the measured views, each with a share of every record's weight.

_GRID = 2**30


@dataclass(frozen=True)
class MarginalPlan:
    """Views with their shares: public, stored, never looked for again.

    Attributes
    ----------
    attributes : Attributes
        The attributes of the table.
    wanted : tuple of views
        The wanted views, each inside a measured view.
    measured : tuple of views
        The measured views, ascending.
    shares : tuple of float
        Of each measured view: multiples of 2⁻³⁰ of more than 0, whose sum is 1 exactly, in floats and in any order.

    Examples
    --------
    >>> plan = MarginalPlan.of((2, 3), {(0, 1): 2, (1,): 1})
    >>> plan.measured, sum(plan.shares), plan.cells
    (((1,), (0, 1)), 1.0, 9)
    """

    attributes: Attributes
    wanted: tuple[View, ...]
    measured: tuple[View, ...]
    shares: tuple[float, ...]

    @staticmethod
    def of(attributes: Any, shares: Any, wanted: Any = None) -> MarginalPlan:
        """The plan of shares of any positive size, which are divided by their sum; or PlanError."""
        known = Attributes.of(attributes)
        exact = _exact_shares(known, shares)
        views = tuple(exact) if wanted is None else known.views(wanted)
        plan = MarginalPlan(known, views, tuple(exact), tuple(exact.values()))
        if plan.cells > MOST_BINS:
            raise PlanError(f"the measured views have {plan.cells} cells, more than {MOST_BINS}: measure smaller ones")
        for view in views:
            plan.algebra.precisions(view)  # PlanError where no measured view holds it
        return plan

    @property
    def cells(self) -> int:
        """The number of measured cells."""
        return sum(map(self.attributes.cells, self.measured))

    @property
    def keys(self) -> tuple[tuple[int, int], ...]:
        """The records that are released: each measured view's number with each of its cells.

        The last attribute is the fastest.
        """
        counts = enumerate(map(self.attributes.cells, self.measured))
        return tuple(key for number, cells in counts for key in product((number,), range(cells)))

    @cached_property
    def algebra(self) -> MarginalAlgebra:
        """Variances and kinds of noise, for Laplace noise of scale 1 in released weights."""
        return MarginalAlgebra(self.attributes, self.measured, [1 / share for share in self.shares])

    def measured_views(self, weights: Floats, scale: float) -> tuple[MeasuredView, ...]:
        """Released weights as counts with their noise, view by view.

        Within each view the last attribute is the fastest. `scale` is that of the noise in the weights.
        """
        ends = np.cumsum([self.attributes.cells(view) for view in self.measured])[:-1]
        parts = zip(self.measured, self.shares, np.split(weights, ends), strict=True)
        return tuple(
            MeasuredView(view, part.reshape(self.attributes.shape(view)) / share, scale / share)
            for view, share, part in parts
        )

    def title(self, view: View) -> str:
        """A view in words."""
        return " x ".join(self.attributes.named(view)) or "total"

    def cell(self, record: Any, view: View) -> Any:
        """The number of a record's cell in a view in mixed radix, as a lambda over its values."""
        found: Any = 0
        for place, i in enumerate(view):
            found = found * self.attributes.sizes[i] + record[i] if place else record[i]
        return found


def _exact_shares(attributes: Attributes, given: Any) -> dict[View, float]:
    """Shares on the grid that sum to 1: rounded down, and what is left given to the largest."""
    if not isinstance(given, Mapping) or not given:
        raise PlanError("shares are a dict from measured views to numbers of more than 0, one view at least")
    views = attributes.views(list(given))
    numbers = {attributes.view(v): Fraction(weight_of(s, f"the share of the view {v}")) for v, s in given.items()}
    total = sum(numbers.values())
    steps = {view: int(numbers[view] / total * _GRID) for view in views}
    largest = max(views, key=lambda view: (steps[view], -views.index(view)))
    steps[largest] += _GRID - sum(steps.values())
    for view, some in steps.items():
        if not some:
            raise PlanError(f"the share of the view {attributes.shown(view)} is below 2**-30 of all: leave it out")
    return {view: steps[view] / _GRID for view in sorted(views, key=by_order)}


def distinct(views: ViewRows, shares: Floats) -> tuple[ViewRows, Floats]:
    """Every view once, where it is first, with the sum of its shares."""
    places: dict[bytes, int] = {}
    which = [places.setdefault(view.tobytes(), len(places)) for view in views]
    first = np.unique(which, return_index=True)[1]
    return views[first], np.bincount(which, shares).astype(np.float64)


#: What a plan is to make small.
Objective = Literal["balanced", "total", "max", "apart"]

_WORK = 600_000
#: With fewer eigenspaces there is less to be searched, and less work is given in proportion.
_SPACES = 20
#: The share of the work that goes to the total before, where the largest error is wanted: its plan is a good begin.
_FIRST = 0.4
#: So many attributes have few enough views for random pools of all of them.
_FEW = 7
#: Covers have up to so many attributes more than the largest wanted view, less one.
_LARGER = 6
_PAIRS = 2000
_TRIED = 6
_LEAST_SHARE = 1e-4
_GAIN = 1e-6
#: The share of a view that matters next to nothing, by its weight, and is the only one that tells of something.
_SMALLEST = 2.0**-20

#: Views, their shares and the error.
FoundViews = tuple[ViewRows, Floats, float]


def check_objective(objective: object) -> None:
    """Refuse what is no objective."""
    if not is_one_of(objective, ("balanced", "total", "max", "apart")):
        raise PlanError(f"an objective is 'balanced', 'total', 'max' or 'apart', not {described(objective)}")


def plan_marginals(
    attributes: Any, views: Any = "all pairs", objective: Objective = "balanced", most_cells: int = 10**6
) -> MarginalPlan:
    """The plan for wanted views, found without data in about a second or less.

    Parameters
    ----------
    attributes : Attributes, sizes, or dict from names to sizes
        The attributes of the table.
    views : "singles", "all pairs", "all triples", sequence of views, or dict from views to weights
        What is wanted; weights are finite and more than 0, and multiply the variances of the view's cells.
    objective : {"balanced", "total", "max", "apart"}
        What is made small: the sum of all cells' variances ("total", which starves small views for the sake of large
        ones), the same with each view divided by the square root of its cells ("balanced"), the largest variance
        ("max"), or the total if each view is measured by itself ("apart", with the best shares, `∝ (w_T n_T)^{1/3}`).
    most_cells : int
        The most cells of a measured view that is not wanted.

    Returns
    -------
    MarginalPlan
        The same for the same parameters.

    Raises
    ------
    PlanError
        Before any work, when the wanted views have too many subsets to plan for.

    Examples
    --------
    >>> plan = plan_marginals((2, 2, 2), "all pairs")
    >>> plan.measured, plan.algebra.variance((0, 1))
    (((0, 1, 2),), 4.0)
    """
    known = Attributes.of(attributes)
    check_objective(objective)
    count_of(most_cells, "the most cells of a view", 1, MOST_BINS, PlanError)
    weighted = views if isinstance(views, Mapping) else dict.fromkeys(known.views(views), 1.0)
    wanted = known.views(list(weighted))
    given = {known.view(view): weight_of(weight, "a weight") for view, weight in weighted.items()}
    cells = np.array([float(known.cells(view)) for view in wanted])
    weights = np.array([given[view] for view in wanted]) * {"balanced": cells**0.5, "max": 1.0}.get(objective, cells)
    if objective == "apart":
        return MarginalPlan.of(known, dict(zip(wanted, np.cbrt(weights).tolist(), strict=True)), wanted)
    total = TotalError(known, wanted, weights)
    budget = _WORK * min(1.0, len(total.spaces) / _SPACES)
    work = CountedWork(budget)
    if objective == "max":
        largest = LargestError(known, wanted, weights)
        first = _Search(total, most_cells, CountedWork(budget * _FIRST)).best()
        with single_blas_thread():
            views_, shares, _ = _Search(largest, most_cells, work, first[:2]).best()
            shares, _ = largest.best_shares(largest.precision_shares(views_), shares, work, power=128)
    else:
        views_, shares, _ = _Search(total, most_cells, work).best()
    views_, shares = _pruned(total, views_, shares, work)
    measured = [tuple(np.flatnonzero(view).tolist()) for view in views_]
    shares = np.maximum(shares, _SMALLEST)
    return MarginalPlan.of(known, dict(zip(measured, shares.tolist(), strict=True)), wanted)


class _Search:
    """A search for the best views, until its work is spent."""

    def __init__(
        self, errors: TotalError, most_cells: float, work: CountedWork, first: tuple[ViewRows, Floats] | None = None
    ) -> None:
        self.errors, self.most_cells, self.work, self.first = errors, most_cells, work, first
        self.random = np.random.default_rng(0)
        self.found: FoundViews | None = None

    def best(self) -> FoundViews:
        """The best of all starts; the first, the wanted views, is climbed from in any case."""
        for views, shares in self._starts():
            climbed = self._climbed(views, shares)
            if self.found is None or climbed[2] < self.found[2]:
                self.found = climbed
            if self.work.over:
                break
        assert self.found is not None
        return self.found

    def _starts(self) -> Iterator[tuple[ViewRows, Floats]]:
        errors, wanted = self.errors, self.errors.wanted
        if self.first is not None:
            yield self.first
        yield _evenly(wanted)
        if float(errors.logarithms.sum()) <= np.log(self.most_cells):
            yield _evenly(np.ones((1, wanted.shape[1]), dtype=np.bool_))
        order = int(wanted.sum(axis=1).max())
        if self.first is None:
            for size in range(order, order + _LARGER):
                yield _evenly(self._cover(wanted, size))
        for number in count(1):
            if wanted.shape[1] <= _FEW and number % 2:
                yield self._pool()
            else:
                size = order + int(self.random.integers(_LARGER))
                assert self.found is not None
                yield self._disturbed(*self.found[:2], size)

    # Starting sets of views: each determines every wanted view.

    def _cover(self, wanted: ViewRows, attributes: int) -> ViewRows:
        """Views of so many attributes that hold all wanted ones.

        Each grows from a wanted view that none holds yet, by the attribute with which it holds most of the others.
        """
        logarithms = self.errors.logarithms
        found: list[ViewRows] = []
        left = wanted.copy()
        while len(left):
            view = left[self.random.integers(len(left))].copy()
            while view.sum() < attributes:
                cells = np.exp(logarithms + view @ logarithms)
                further = np.flatnonzero(~view & (cells <= self.most_cells))
                if not len(further):
                    break
                grown = np.repeat(view[None], len(further), axis=0)
                grown[np.arange(len(further)), further] = True
                held = (left.astype(np.float64) @ (~grown).astype(np.float64).T == 0).sum(axis=0)
                view = grown[np.argmax(held + self.random.random(len(further)))]
                self.work.done(30, 3 * left.size * len(further) / left.shape[1])
            found.append(view)
            left = left[(left & ~view).any(axis=1)]
            self.work.done(8, left.size)
        return distinct(np.array(found), np.ones(len(found)))[0]

    def _pool(self) -> tuple[ViewRows, Floats]:
        """Some of all possible views, for a few attributes.

        Their random shares prefer some size.
        """
        wanted, logarithms, random = self.errors.wanted, self.errors.logarithms, self.random
        every = np.array(list(product((False, True), repeat=wanted.shape[1])))
        every = every[every @ logarithms <= np.log(self.most_cells) + 1e-9]
        share = random.choice([0.15, 0.3, 0.6])
        views = np.concatenate((every[random.random(len(every)) < share], wanted))
        views, _ = distinct(views, np.ones(len(views)))
        self.work.done(100, 2 * every.size)
        preferred, strength = random.uniform(0, logarithms.sum()), random.uniform(0, 0.5)
        shares = random.exponential(size=len(views)) * np.exp(-strength * np.abs(views @ logarithms - preferred))
        return views, shares / shares.sum()

    def _disturbed(self, views: ViewRows, shares: Floats, attributes: int) -> tuple[ViewRows, Floats]:
        """A plan without some of its views, and other views for what only these held."""
        many = max(1, round(len(views) * self.random.uniform(0.1, 0.5)))
        kept = np.ones(len(views), dtype=np.bool_)
        kept[self.random.choice(len(views), many, replace=False)] = False
        rest, left = views[kept], self.errors.wanted
        if len(rest):
            left = left[(left.astype(np.float64) @ (~rest).astype(np.float64).T > 0).all(axis=1)]
        self.work.done(20, left.shape[0] * views.size)
        if not len(left):
            return rest, shares[kept] / shares[kept].sum()
        new = self._cover(left, attributes)
        freed = float(shares[~kept].sum()) / len(new)
        return distinct(np.concatenate((rest, new)), np.concatenate((shares[kept], np.full(len(new), freed))))

    def _climbed(self, views: ViewRows, shares: Floats) -> FoundViews:
        errors = self.errors
        shares, error = errors.best_shares(errors.precision_shares(views), shares, self.work)
        views, shares = _pruned(errors, views, shares, self.work)
        many = max(1, len(views) // 6)
        while len(views) > 1 and not self.work.over:
            pairs = self._unions(views, shares)
            better, many = self._merged(views, shares, error, pairs, many)
            if better is None:
                break
            views, shares = _pruned(errors, *better[:2], self.work)
            error = better[2]
        shares, error = errors.best_shares(errors.precision_shares(views), shares, self.work)
        return views, shares, error

    def _merged(
        self, views: ViewRows, shares: Floats, error: float, pairs: list[tuple[int, int, bool]], many: int
    ) -> tuple[FoundViews | None, int]:
        """Less error from as many disjoint pairs at once as bring it, or from one of the best.

        None if no pair brings it.
        """
        while many > 1 and not self.work.over:
            taken: dict[int, int] = {}
            for one, other, gains in pairs:
                if gains and one not in taken and other not in taken and len(taken) < many:
                    taken[one] = other
                    taken.setdefault(other, -1)
            some = [(one, other) for one, other in taken.items() if other >= 0]
            if len(some) > 1:
                found = self._with_unions(views, shares, some, 1e-5)
                if found[2] < error * (1 - _GAIN):
                    return found, many
            many = many // 2 if len(some) > 1 else 1
        for one, other, _ in pairs[:_TRIED]:
            found = self._with_unions(views, shares, [(one, other)], 1e-6)
            if found[2] < error * (1 - _GAIN):
                return found, 1
        return None, 1

    def _with_unions(
        self, views: ViewRows, shares: Floats, pairs: list[tuple[int, int]], tolerance: float
    ) -> FoundViews:
        """Pairs of views each as one view, with the best shares."""
        ends = np.array(pairs)
        kept = np.ones(len(views), dtype=np.bool_)
        kept[ends.ravel()] = False
        unions, together = views[ends[:, 0]] | views[ends[:, 1]], shares[ends].sum(axis=1)
        new, given = distinct(np.concatenate((views[kept], unions)), np.concatenate((shares[kept], together)))
        self.work.done(30, 2 * new.size)
        better, error = self.errors.best_shares(self.errors.precision_shares(new), given, self.work, 20, tolerance)
        return new, better, error

    def _unions(self, views: ViewRows, shares: Floats) -> list[tuple[int, int, bool]]:
        """Pairs of views, best first, and whether their union has less error.

        The order is by the error of their union with the share of both.
        """
        errors = self.errors
        one, other = np.triu_indices(len(views), 1)
        if len(one) > 4 * _PAIRS:
            some = np.sort(self.random.choice(len(one), 4 * _PAIRS, replace=False))
            one, other = one[some], other[some]
        sizes = views @ errors.logarithms
        union = (views[one] | views[other]) @ errors.logarithms
        fits = union <= np.log(self.most_cells) + 1e-9
        grown: Floats = union - np.maximum(sizes[one], sizes[other])
        order = np.flatnonzero(fits)
        if len(order) > _PAIRS:  # those that grow least
            order = order[np.argsort(grown[order], kind="stable")[:_PAIRS]]
        one, other = one[order], other[order]
        if not len(one):
            return []
        scores, now = self._scores(views, shares, one, other)
        best = np.argsort(scores, kind="stable")
        self.work.done(40, 4 * views.shape[1] * len(union))
        return list(zip(one[best].tolist(), other[best].tolist(), (scores[best] < now).tolist(), strict=True))

    def _scores(self, views: ViewRows, shares: Floats, one: Integers, other: Integers) -> tuple[Floats, float]:
        held = self.errors.precision_shares(views)
        parts = (shares**2)[:, None] * held
        precisions = parts.sum(axis=0)
        slopes = self.errors.slopes(precisions)
        together = (shares[one] + shares[other]) ** 2
        new = self.errors.precision_shares(views[one] | views[other])
        new *= together[:, None]
        new += precisions
        new -= parts[one]
        new -= parts[other]
        np.maximum(new, 1e-300, out=new)
        self.work.done(20, 10 * new.size)
        return (slopes / new).sum(axis=1), float((slopes / precisions).sum())


def _pruned(errors: TotalError, views: ViewRows, shares: Floats, work: CountedWork) -> tuple[ViewRows, Floats]:
    """Without views of hardly any share, unless one is the last to hold something wanted."""
    kept = shares >= _LEAST_SHARE
    if kept.all():
        return views, shares
    held = errors.precision_shares(views) > 0
    covered = held[kept].any(axis=0)
    for i in np.argsort(-shares, kind="stable").tolist():
        if not kept[i] and (held[i] & ~covered).any():
            kept[i] = True
            covered |= held[i]
    work.done(10 + 5 * int((~kept).sum()), 2 * held.size)
    return views[kept], shares[kept] / shares[kept].sum()


def _evenly(views: ViewRows) -> tuple[ViewRows, Floats]:
    return views, np.full(len(views), 1 / len(views))
