"""The interface of joint models, and the full table, which has one probability a cell."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wpinq.errors import AnswersError
from wpinq.inference.checks import MOST_BINS, MOST_RECORDS, count_of, positive, vector
from wpinq.inference.least_squares import project_to_total
from wpinq.marginals.cells import Attributes, MeasuredView, View
from wpinq.marginals.residual_basis import ConsistentMarginals
from wpinq.runtime.arrays import Floats, Integers

# The target of a fit, noisy marginals with weights and a total, and mirror descent to it.

#: The least count of a value that a fit begins with, in deviations of its noise: from 0 no step leads away.
_FLOOR = 0.25
_CLOSEST = 0.4
_SLOPE = 0.35


@dataclass(frozen=True, slots=True, eq=False)
class FitTarget:
    """Noisy marginals as a fit needs them.

    The loss of a model with marginals m is `L = ½ Σ_a ‖m_a − y_a‖² / (2 b_a²)`. At the truth it is half the number of
    measured cells, in expectation.

    Attributes
    ----------
    attributes : Attributes
        The attributes of the table.
    views : tuple of MeasuredView
        What was measured, but for totals, which no cell of a model tells.
    total : float
        The best linear unbiased estimate of the number of records; 1 where that is less.
    singles : tuple of arrays
        For each attribute, the share of each value by least squares made non-negative, more than 0: where fits begin.
    limit : float
        The loss at which a fit stops.
    """

    attributes: Attributes
    views: tuple[MeasuredView, ...]
    total: float
    singles: tuple[Floats, ...]
    limit: float

    @staticmethod
    def of(views: Sequence[MeasuredView], attributes: Attributes, stop: float | None) -> FitTarget:
        """The target of measured views.

        `stop` is the loss to stop at over that of the truth, `stopping_ratio` where None.
        """
        held = tuple(measured for measured in views if measured.view)
        if not held:
            raise AnswersError("a joint model needs a measured view of one attribute at least: measure some")
        for measured in held:
            vector(measured.counts.ravel(), f"counts of the view {attributes.shown(measured.view)}")
            positive(measured.scale, "the scale of a measured view")
        answers = ConsistentMarginals(list(views), attributes)
        total = max(float(answers.marginal(())), 1.0)
        known = {place for measured in held for place in measured.view}
        singles = tuple(
            _shares(answers, held, place, total) if place in known else np.full(size, 1 / size)
            for place, size in enumerate(attributes.sizes)
        )
        cells = sum(measured.counts.size for measured in held)
        ratio = stopping_ratio(held, total) if stop is None else positive(stop, "stop")
        return FitTarget(attributes, held, total, singles, ratio * cells / 2)

    @property
    def cells(self) -> int:
        """The number of measured cells."""
        return sum(measured.counts.size for measured in self.views)


def stopping_ratio(views: Sequence[MeasuredView], total: float) -> float:
    """How close a fit should come to noisy marginals: its loss over that of the truth.

    `c = 1 − 0.35 · F² · log₁₀ x`, at least 0.4 and at most 1, with `x = N Σ_a (1/b_a) / cells`, the records for each
    measured cell, in units of its noise, and `F = rank / cells`, the share of cells that the others do not determine.
    It looks at public sizes and the noisy total, and at no other answer.

    Parameters
    ----------
    views : sequence of MeasuredView
        What was measured: N records, noise of scale b_a in each cell of the view a.
    total : float
        The noisy number of records, more than 0.

    Notes
    -----
    A fit that follows its answers farther follows the noise. Where there are few records to a cell, the truth's own
    loss, c = 1, is where to stop. Where there are many, there is much to tell, and on the way there a model comes
    closer to the answers than the truth is, by the numbers that it is free to choose. The form and the constants were
    read off fits to tables of nine kinds.

    Examples
    --------
    >>> pair = MeasuredView((0, 1), np.zeros((9, 16)), scale=1.0)
    >>> stopping_ratio([pair], 144.0), round(stopping_ratio([pair], 1440.0), 2), stopping_ratio([pair], 1e6)
    (1.0, 0.65, 0.4)
    """
    cells = sum(measured.counts.size for measured in views)
    records = total * sum(1 / measured.scale for measured in views) / cells
    return min(1.0, max(_CLOSEST, 1 - _SLOPE * (_rank(views) / cells) ** 2 * math.log10(records)))


def _rank(views: Sequence[MeasuredView]) -> int:
    """The number of independent numbers that the views have together.

    It is the sum of `Π_{i∈S} (n_i − 1)` over every S inside one of them.
    """
    dimensions: dict[View, int] = {}
    for measured in views:
        many = [(i, size - 1) for i, size in zip(measured.view, measured.counts.shape, strict=True) if size > 1]
        spaces: list[tuple[View, int]] = [((), 1)]
        for place, dimension in many:
            spaces += [((*space, place), known * dimension) for space, known in spaces]
        dimensions.update(spaces)
    return sum(dimensions.values())


def _shares(answers: ConsistentMarginals, views: Sequence[MeasuredView], place: int, total: float) -> Floats:
    """The shares of one attribute's values, none of them 0."""
    counts = project_to_total(answers.marginal((place,)), total)
    precision = sum(len(counts) / (m.variance * m.counts.size) for m in views if place in m.view)
    floor = min(_FLOOR / math.sqrt(precision), total / len(counts))
    shares = np.maximum(counts, floor)
    return np.asarray(shares / shares.sum())


# --- entropic mirror descent over `p ∝ exp(Σ_a θ_a)` ------------------------------------------------------------------

#: From a potential for each measured view to the probabilities of its cells under `p ∝ exp(Σ_a θ_a)`.
Beliefs = Callable[[list[Floats]], list[Floats]]

_SUFFICIENT = 0.45
_LONGER = 1.5
#: A step that promises less than this share of the loss is the last.
_SETTLED = 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class Descent:
    """The end of a mirror descent: a potential for each view, the loss, and the steps taken."""

    potentials: list[Floats]
    loss: float
    steps: int


def mirror_descent(target: FitTarget, beliefs: Beliefs, steps: int) -> Descent:
    """Steps `θ ← θ − s ∇_μ L` until the loss is at the target's limit.

    A step is halved until the loss falls by 0.45 of what its slope promises, and the next one is half as long again.
    The first is one that surely descends: `L` curves by at most `Σ_a N²/(2 b_a²)` in units of relative entropy
    (Pinsker). The start is the product of the target's single shares.

    Source: Beck and Teboulle, *Mirror descent and nonlinear projected subgradient methods*, 2003; McKenna, Sheldon and
    Miklau, *Graphical-model based estimation and inference for differential privacy*, ICML 2019, Algorithm 1.
    """
    potentials = starting_potentials(target)
    now = beliefs(potentials)
    loss, slopes = loss_and_slopes(target, now)
    length = 1 / sum(target.total**2 / measured.variance for measured in target.views)
    for step in range(steps):
        if loss <= target.limit:
            return Descent(potentials, loss, step)
        while True:
            tried = [theta - length * slope for theta, slope in zip(potentials, slopes, strict=True)]
            then = beliefs(tried)
            left, steeper = loss_and_slopes(target, then)
            promised = sum(float(np.vdot(g, a - b)) for g, a, b in zip(slopes, now, then, strict=True))
            if promised <= _SETTLED * loss:
                return Descent(potentials, loss, step)
            if loss - left >= _SUFFICIENT * promised:
                break
            length /= 2
        potentials, now, loss, slopes = tried, then, left, steeper
        length *= _LONGER
    return Descent(potentials, loss, steps)


def loss_and_slopes(target: FitTarget, beliefs: list[Floats]) -> tuple[float, list[Floats]]:
    """The loss of a model with these probabilities of the views' cells, and its derivatives."""
    loss, slopes = 0.0, []
    for measured, shares in zip(target.views, beliefs, strict=True):
        gap = target.total * shares - measured.counts
        loss += float(np.vdot(gap, gap)) / (2 * measured.variance)
        slopes.append(gap * (target.total / measured.variance))
    return loss, slopes


def starting_potentials(target: FitTarget) -> list[Floats]:
    """Potentials of the product of the single shares.

    Each attribute's are in the first view that has it.
    """
    potentials = [np.zeros_like(measured.counts, dtype=np.float64) for measured in target.views]
    waiting = set(range(len(target.attributes.sizes)))
    for potential, measured in zip(potentials, target.views, strict=True):
        for axis, place in enumerate(measured.view):
            if place in waiting:
                waiting.remove(place)
                shape = [1] * potential.ndim
                shape[axis] = -1
                potential += np.log(target.singles[place]).reshape(shape)
    return potentials


#: The most cells of a marginal that a model writes down.
MOST_CELLS = 2**26


@dataclass(eq=False, repr=False)
class JointModel(ABC):
    """A distribution over all records of a table, fitted to noisy marginals by `fit`.

    `total` is the number of records.

    Its marginals are never negative, and agree wherever they overlap. It is made of released numbers alone, so whatever
    is read off it costs no privacy.

    Attributes
    ----------
    attributes : Attributes
        The attributes of the table.
    total : float
        The estimated number of records, more than 0.
    measured : tuple of MeasuredView
        The measured views of the fit.
    loss : float
        What is left of the distance to the answers, over what is expected of the truth: about 1 is the noise.
    steps : int
        The number of steps of the fit.
    options : mapping
        The options of `fit` without the seed, for the same fit of other answers.
    """

    attributes: Attributes
    total: float
    measured: tuple[MeasuredView, ...]
    loss: float
    steps: int
    options: Mapping[str, Any] = field(default_factory=dict, init=False)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self.attributes.sizes)} attributes, {len(self.measured)} views measured>"

    def marginal(self, view: Any) -> Floats:
        """The expected counts of any view, measured or not.

        There is an axis an attribute, in ascending order of place.

        At least 0; of the sum `total`, and the same sums wherever two views overlap, up to rounding.
        """
        wanted = self.attributes.view(view)
        if self.attributes.cells(wanted) > MOST_CELLS:
            raise AnswersError(
                f"the view {self.attributes.shown(wanted)} has more than {MOST_CELLS} cells: ask for fewer attributes"
            )
        return np.asarray(self.total * self._shares(wanted))

    def supported(self, view: Any) -> bool:
        """Whether a measured view has all of these attributes.

        If not, the marginal follows from the model only.
        """
        wanted = set(self.attributes.view(view))
        return not wanted or any(wanted <= set(each.view) for each in self.measured)

    def draw(self, rows: int | None = None, seed: int = 0) -> Integers:
        """Stratified rows of codes.

        Their marginals are closer to the model's than those of independent draws.

        Parameters
        ----------
        rows : int, optional
            The number of rows; by default the rounded estimate of the number of records.
        seed : int
            The same seed gives the same rows.

        Returns
        -------
        numpy array of int64, shape (rows, attributes)
            Codes from 0 to the size of their attribute, exclusive, in random order of rows.
        """
        if rows is None:
            rows = max(1, round(self.total))
        check_rows(rows, len(self.attributes.sizes))
        random = np.random.default_rng(count_of(seed, "a seed", 0))
        return random.permutation(self._rows(rows, random), axis=0)

    def weighted_draw(self, copies: int = 10, seed: int = 0) -> tuple[Integers, float]:
        """Several lighter rows for every record: as `draw`, with less error from drawing.

        Parameters
        ----------
        copies : int
            The number of rows for each record, at least 1.
        seed : int
            The same seed gives the same rows.

        Returns
        -------
        codes : numpy array of int64, shape (rows, attributes)
            As of `draw`.
        weight : float
            The weight of every row: `total / rows`, so that together they weigh what the model does.
        """
        codes = self.draw(max(1, round(self.total * count_of(copies, "the copies", 1))), seed)
        return codes, self.total / len(codes)

    @abstractmethod
    def _shares(self, view: View) -> Floats:
        """The marginal of a view as probabilities, an axis an attribute."""

    @abstractmethod
    def _rows(self, rows: int, random: np.random.Generator) -> Integers:
        """Stratified rows, in any order."""


def check_rows(rows: object, attributes: int) -> None:
    """Refuse numbers of rows that are too large for an array.

    Their codes are at most 2³⁰ together, which take 8 GiB.
    """
    many = count_of(rows, "the rows to draw", 1, MOST_RECORDS)
    if many * attributes > MOST_BINS:
        raise AnswersError(
            f"{many:,} rows of {attributes} attributes are more than can be drawn at once, at most "
            f"{MOST_BINS // attributes:,}: draw fewer"
        )


def systematic(shares: Floats, number: int, random: np.random.Generator) -> Integers:
    """So many members of a distribution, ascending, each as often as its share of the number.

    Numbers are rounded up or down.

    Examples
    --------
    >>> systematic(np.array([0.5, 0.25, 0.25]), 4, np.random.default_rng(0)).tolist()
    [0, 0, 1, 2]
    """
    places = (np.arange(number) + random.random()) / number
    ends = np.cumsum(shares)
    return np.minimum(np.searchsorted(ends / ends[-1], places, side="right"), len(shares) - 1).astype(np.int64)


# --- the full table, of the largest entropy for its fit ---------------------------------------------------------------

#: The most cells of a full table.
MOST_TABLE_CELLS = 2**20


@dataclass(eq=False, repr=False)
class FullTable(JointModel):
    """A distribution with a share for each cell of the table.

    Attributes
    ----------
    shares : array
        An axis an attribute.
    """

    shares: Floats

    def _shares(self, view: View) -> Floats:
        return _sums(self.shares, view)

    def _rows(self, rows: int, random: np.random.Generator) -> Integers:
        cells = systematic(self.shares.ravel(), rows, random)
        return np.stack(np.unravel_index(cells, self.shares.shape), axis=1).astype(np.int64)


def check_table(attributes: Attributes) -> None:
    """Refuse a table that is too large to be written down."""
    if attributes.cells(range(len(attributes.sizes))) > MOST_TABLE_CELLS:
        raise AnswersError(f"a full table has at most {MOST_TABLE_CELLS} cells, this one more: fit a mixture")


def fit_full_table(target: FitTarget, steps: int) -> FullTable:
    """The table of at most 2²⁰ cells; AnswersError where it is larger."""
    attributes = target.attributes
    every = tuple(range(len(attributes.sizes)))
    measured = [each.view for each in target.views]

    def table(potentials: Sequence[Floats]) -> Floats:
        logits = np.zeros(attributes.sizes)
        for view, potential in zip(measured, potentials, strict=True):
            logits += potential.reshape([attributes.sizes[i] if i in view else 1 for i in every])
        weights = np.exp(logits - logits.max())
        return np.asarray(weights / weights.sum())

    def beliefs(potentials: list[Floats]) -> list[Floats]:
        shares = table(potentials)
        return [_sums(shares, view) for view in measured]

    found = mirror_descent(target, beliefs, steps)
    ratio = 2 * found.loss / target.cells
    return FullTable(attributes, target.total, target.views, ratio, found.steps, table(found.potentials))


def _sums(shares: Floats, view: View) -> Floats:
    return np.asarray(shares.sum(axis=tuple(i for i in range(shares.ndim) if i not in view)))
