"""A joint model of released marginals, with the attributes of the table: counts that are none below 0, and rows."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from wpinq.arrays import Floats
from wpinq.measure.answer_rows import CONFIDENCE
from wpinq.tables.attribute_cells import AttributeCells
from wpinq.tables.marginal_names import free_name, view_of
from wpinq.tables.synthetic_rows import SyntheticRows

if TYPE_CHECKING:
    import pandas

    from wpinq.marginals.models.joint_model import JointModel


@dataclass(frozen=True, eq=False, repr=False)
class FittedTable:
    """A model of all attributes together that fits released marginals: non-negative, consistent, with rows to draw.

    What is known of the table, and exactly how well, is `MarginalTables`. What no marginal told, a model fills in as
    evenly as it can.

    Attributes
    ----------
    attributes : tuple of AttributeCells
        Of the table.
    joint : JointModel
        The model, by the places of attributes and the numbers of cells.
    simulated : bool
        Whether it comes from `simulate`, which protects nothing.

    Notes
    -----
    Privacy cost: none. A model is computed from what was released.
    """

    attributes: tuple[AttributeCells, ...]
    joint: JointModel
    simulated: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Of the attributes."""
        return tuple(cells.name for cells in self.attributes)

    @property
    def total(self) -> float:
        """How many records the model is of: the noisy total."""
        return self.joint.total

    def counts(self, *names: str) -> Floats:
        """The counts of any marginal, also of more attributes than were measured together: an axis an attribute."""
        view = view_of(names, self.names)
        return np.transpose(self.joint.marginal(view), [view.index(self.names.index(name)) for name in names])

    def to_columns(self, *names: str) -> dict[str, list[Any]]:
        """A marginal of the model as lists, a row a cell: the attributes, then `modelled`, without an interval."""
        counts = self.counts(*names).ravel().tolist()
        labels = product(*(self.attributes[self.names.index(name)].labels for name in names))
        found: dict[str, list[Any]] = {name: list(c) for name, c in zip(names, zip(*labels, strict=True), strict=True)}
        return found | {free_name("modelled", found): counts}

    def to_pandas(self, *names: str) -> pandas.DataFrame:
        """A marginal of the model as a pandas frame; its columns are those of `to_columns`."""
        import pandas

        return pandas.DataFrame(self.to_columns(*names))

    def with_intervals(
        self, *names: str, confidence: float = CONFIDENCE, draws: int = 50, seed: int = 0
    ) -> dict[str, list[Any]]:
        """A marginal of the model as lists, with intervals: `modelled`, `low`, `high` and `method`.

        The model is fitted again to its own marginals with noise anew, and what that moves makes the interval: it is
        approximate, as `method` says. Where the model is farther from what was released than that explains, the exact
        interval of least squares stands instead, with its estimate; and a marginal that no measured view holds follows
        from the model only.

        Parameters
        ----------
        *names : str
            The attributes, slowest first.
        confidence : float
            Between 0 and 1: of each interval by itself.
        draws : int
            How many fits, at least 20: each takes as long as the first.
        seed : int
            Of their noise, which is public.
        """
        from wpinq.marginals.models.model_intervals import marginal_intervals

        found = self.to_columns(*names)
        view = view_of(names, self.names)
        interval = marginal_intervals(self.joint, [view], confidence, draws, seed)[view]
        axes = [view.index(self.names.index(name)) for name in names]
        (own,) = list(found)[len(names) :]
        low, high, method = (free_name(name, found) for name in ("low", "high", "method"))
        for name, numbers in ((own, interval.estimate), (low, interval.lower), (high, interval.upper)):
            found[name] = np.transpose(numbers, axes).ravel().tolist()
        return found | {method: [interval.label] * interval.estimate.size}

    def rows(self, count: int | None = None, seed: int = 0) -> SyntheticRows:
        """Rows drawn from the model, in even shares of it instead of one by one, so that few are lost to chance.

        Parameters
        ----------
        count : int, optional
            How many; the noisy total, rounded, unless told.
        seed : int
            Of the draw, which is public.
        """
        codes = self.joint.draw(count, seed)
        return SyntheticRows.of_codes(self.attributes, codes, _generator(seed), None, self.simulated)

    def weighted_rows(self, each: int = 10, seed: int = 0) -> SyntheticRows:
        """Several rows for each record, each with its share of the weight: nearer to the model than `rows`.

        Parameters
        ----------
        each : int
            How many rows for each record of the noisy total. Their weights add up to that total.
        seed : int
            Of the draw, which is public.
        """
        codes, weight = self.joint.weighted_draw(each, seed)
        weights = np.full(len(codes), weight)
        return SyntheticRows.of_codes(self.attributes, codes, _generator(seed), weights, self.simulated)

    def __repr__(self) -> str:
        stamp = "SIMULATED; " if self.simulated else ""
        return f"<FittedTable: {stamp}{len(self.names)} attributes, {self.total:,.0f} records, {self.joint!r}>"


def _generator(seed: int) -> np.random.Generator:
    """For values inside of bins: another stream than that of the cells."""
    return np.random.default_rng([seed, 1])
