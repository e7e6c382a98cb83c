"""The full table: one probability a cell, of the largest entropy for its fit. What the other models are held to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wpinq.arrays import Floats, Integers
from wpinq.errors import AnswersError
from wpinq.marginals.attributes import Attributes
from wpinq.marginals.measured_views import View
from wpinq.marginals.models.fit_target import FitTarget
from wpinq.marginals.models.joint_model import JointModel, systematic
from wpinq.marginals.models.mirror_descent import mirror_descent

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
