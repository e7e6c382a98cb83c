"""The interface of joint models, and the full table of one probability a cell."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wpinq.errors import AnswersError
from wpinq.inference.checks import MOST_BINS, MOST_RECORDS, count_of
from wpinq.marginals.attributes import Attributes, MeasuredView, View
from wpinq.marginals.models.fit_target import FitTarget, mirror_descent
from wpinq.runtime.arrays import Floats, Integers

MOST_CELLS = 2**26
"""The most cells of a marginal that a model writes down."""


@dataclass(eq=False, repr=False)
class JointModel(ABC):
    """A distribution over all records of a table, and how many there are: fitted to noisy marginals by `fit`.

    Its marginals are never negative, and agree wherever they overlap. It is made of released numbers alone, so whatever
    is read off it costs no privacy.

    Attributes
    ----------
    attributes : Attributes
        The attributes of the table.
    total : float
        The estimated number of records, more than 0.
    measured : tuple of MeasuredView
        What it was fitted to.
    loss : float
        What is left of the distance to the answers, over what is expected of the truth: about 1 is the noise.
    steps : int
        How many steps the fit took.
    options : mapping
        What `fit` was told, but for the seed: with it the same fit is made of other answers.
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
        """The expected counts of any view, measured or not: an axis an attribute, in ascending order of place.

        At least 0; of the sum `total`, and the same sums wherever two views overlap, up to rounding.
        """
        wanted = self.attributes.view(view)
        if self.attributes.cells(wanted) > MOST_CELLS:
            raise AnswersError(
                f"the view {self.attributes.shown(wanted)} has more than {MOST_CELLS} cells: ask for fewer attributes"
            )
        return np.asarray(self.total * self._shares(wanted))

    def supported(self, view: Any) -> bool:
        """Whether a measured view holds all of these attributes. If not, the marginal follows from the model only."""
        wanted = set(self.attributes.view(view))
        return not wanted or any(wanted <= set(each.view) for each in self.measured)

    def draw(self, rows: int | None = None, seed: int = 0) -> Integers:
        """Rows of codes, stratified: their marginals are closer to the model's than those of independent draws.

        Parameters
        ----------
        rows : int, optional
            How many; the estimated number of records, rounded, when left out.
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
            How many rows for each record, at least 1.
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
    """Refuse numbers of rows that no array holds: their codes are at most 2³⁰ together, which take 8 GiB."""
    count_of(rows, "the rows to draw", 1, MOST_RECORDS)
    assert isinstance(rows, int)
    if rows * attributes > MOST_BINS:
        raise AnswersError(
            f"{rows:,} rows of {attributes} attributes are more than can be drawn at once, at most "
            f"{MOST_BINS // attributes:,}: draw fewer"
        )


def systematic(shares: Floats, number: int, random: np.random.Generator) -> Integers:
    """That many members of a distribution, ascending: each as often as its share of the number, rounded up or down.

    Examples
    --------
    >>> systematic(np.array([0.5, 0.25, 0.25]), 4, np.random.default_rng(0)).tolist()
    [0, 0, 1, 2]
    """
    places = (np.arange(number) + random.random()) / number
    ends = np.cumsum(shares)
    return np.minimum(np.searchsorted(ends / ends[-1], places, side="right"), len(shares) - 1).astype(np.int64)


# --- the full table, of the largest entropy for its fit ---------------------------------------------------------------

MOST_TABLE_CELLS = 2**20
"""The most cells of a full table."""


@dataclass(eq=False, repr=False)
class FullTable(JointModel):
    """A distribution that is written down: a share for each cell of the table.

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
    check_table(attributes)
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
