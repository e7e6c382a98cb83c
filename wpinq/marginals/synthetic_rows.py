"""A joint model over the cells of a table, and rows of the declared types drawn from it."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from wpinq.errors import AnswersError, PlanError
from wpinq.expr.types import BOOL, FLOAT, INT, CategoryOf, Type
from wpinq.marginals.cells import AttributeCells, Attributes, View
from wpinq.measure.answer_rows import CONFIDENCE, arrow_type, polars_frame
from wpinq.runtime.arrays import Floats, Integers
from wpinq.runtime.public import public

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from wpinq.marginals.joint_model import JointModel


def view_of(names: Sequence[object], attributes: Iterable[AttributeCells]) -> View:
    """The view of some attributes of a table, each named once, or AnswersError."""
    if not all(isinstance(name, str) for name in names):
        raise AnswersError("a marginal is named by its attributes, counts('age', 'sex')")
    try:
        return Attributes.of_cells(attributes).view(names)
    except PlanError as reason:
        raise AnswersError(str(reason)) from None


def free_name(name: str, taken: Container[str], before: str = "marginal") -> str:
    """A name for a column of ours that no attribute has."""
    while name in taken:
        name = f"{before}_{name}"
    return name


_SHOWN = 6


@public
@dataclass(frozen=True, eq=False, repr=False)
class SyntheticRows:
    """Synthetic rows drawn from a model; none represents a person.

    They have the columns and types of the table that was measured.

    Attributes
    ----------
    attributes : tuple of AttributeCells
        The attributes of the columns.
    columns : dict
        Attribute to its values, as Python has them.
    codes : array
        The number of the cell of each value, of shape (rows, attributes).
    weights : array or None
        The weight of each row; None if all weigh 1.
    simulated : bool
        Whether the model comes from `simulate`, which protects nothing.

    Notes
    -----
    Privacy cost: none. They follow from what was released.
    """

    attributes: tuple[AttributeCells, ...]
    columns: Mapping[str, list[Any]]
    codes: Integers
    weights: Floats | None = None
    simulated: bool = False

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """The rows as tuples, without their weights."""
        return zip(*self.columns.values(), strict=True)

    def counts(self, *names: str) -> Floats:
        """How many rows, or how much weight, are in each cell of a marginal: an axis an attribute."""
        view_of(names, self.attributes)  # AnswersError for what is none
        places = [list(self.columns).index(name) for name in names]
        shape = tuple(self.attributes[place].size for place in places)
        if not places:
            return np.asarray(float(len(self)) if self.weights is None else self.weights.sum())
        cells = np.ravel_multi_index(tuple(self.codes[:, place] for place in places), shape)
        return np.bincount(cells, self.weights, math.prod(shape)).astype(np.float64).reshape(shape)

    def to_columns(self) -> dict[str, list[Any]]:
        """The rows as lists: the attributes, and `weight` where rows have weights."""
        found = dict(self.columns)
        if self.weights is not None:
            found[self._weight] = self.weights.tolist()
        return found

    @property
    def _weight(self) -> str:
        return free_name("weight", self.columns, "row")

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a pandas frame with the declared types.

        Categories are categorical, and ints that may be null are `Int64`.
        """
        import pandas

        made = {
            cells.name: pandas.Series(self.columns[cells.name], dtype=_pandas_type(cells.type, cells.holds_null))
            for cells in self.attributes
        }
        if self.weights is not None:
            made[self._weight] = pandas.Series(self.weights)
        return pandas.DataFrame(made)

    def to_polars(self) -> polars.DataFrame:
        """The rows as a polars frame with the declared types."""
        return polars_frame(self.to_arrow())

    def to_arrow(self) -> pyarrow.Table:
        """The rows as an Arrow table with the declared types."""
        import pyarrow

        arrays = [pyarrow.array(self.columns[c.name], type=arrow_type(c.type)) for c in self.attributes]
        names = [cells.name for cells in self.attributes]
        if self.weights is not None:
            arrays.append(pyarrow.array(self.weights))
            names.append(self._weight)
        return pyarrow.Table.from_arrays(arrays, names=names)

    def __repr__(self) -> str:
        stamp = "SIMULATED; " if self.simulated else ""
        weighted = "" if self.weights is None else ", weighted"
        lines = [f"<SyntheticRows: {stamp}{len(self):,} rows of {len(self.attributes)} attributes{weighted}>"]
        lines += [f"  {row}" for row, _ in zip(self, range(_SHOWN), strict=False)]
        return "\n".join([*lines, *["  …"] * (len(self) > _SHOWN)])

    def _repr_html_(self) -> str:
        return str(self.to_pandas()._repr_html_())


def _pandas_type(type_: Type, nullable: bool) -> Any:
    if isinstance(type_, CategoryOf):
        import pandas

        return pandas.CategoricalDtype(list(type_.listed))
    plain: dict[Type, str] = {FLOAT: "float64", INT: "int64", BOOL: "bool"}
    with_null: dict[Type, str] = {**plain, INT: "Int64", BOOL: "boolean"}
    return (with_null if nullable else plain).get(type_, "object")


# --- fitted tables ----------------------------------------------------------------------------------------------------


@public
@dataclass(frozen=True, eq=False, repr=False)
class FittedTable:
    """A model of all attributes together, fitted to released marginals; it draws rows.

    It is non-negative and consistent. Knowledge of the table, with its exact error, is in `MarginalTables`. Where no
    marginal was measured, the model is as even as it can be.

    Attributes
    ----------
    attributes : tuple of AttributeCells
        The attributes of the table.
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
        """The names of the attributes."""
        return tuple(cells.name for cells in self.attributes)

    @property
    def total(self) -> float:
        """The noisy number of records."""
        return self.joint.total

    def counts(self, *names: str) -> Floats:
        """The counts of any marginal, with an axis for each attribute.

        It may be of more attributes than were measured together.
        """
        view = view_of(names, self.attributes)
        return np.transpose(self.joint.marginal(view), [view.index(self.names.index(name)) for name in names])

    def to_columns(self, *names: str) -> dict[str, list[Any]]:
        """A marginal of the model as lists, with a row for each cell.

        The columns are the attributes, then `modelled`, without an interval.
        """
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
            The number of fits, at least 20; each takes as long as the first.
        seed : int
            Of their noise, which is public.
        """
        from wpinq.marginals.models import marginal_intervals

        found = self.to_columns(*names)
        view = view_of(names, self.attributes)
        interval = marginal_intervals(self.joint, [view], confidence, draws, seed)[view]
        axes = [view.index(self.names.index(name)) for name in names]
        (own,) = list(found)[len(names) :]
        low, high, method = (free_name(name, found) for name in ("low", "high", "method"))
        for name, numbers in ((own, interval.estimate), (low, interval.lower), (high, interval.upper)):
            found[name] = np.transpose(numbers, axes).ravel().tolist()
        return found | {method: [interval.label] * interval.estimate.size}

    def rows(self, count: int | None = None, seed: int = 0) -> SyntheticRows:
        """Rows drawn from the model, stratified rather than independent.

        So few are lost to chance.

        Parameters
        ----------
        count : int, optional
            The number of rows; by default the rounded noisy total.
        seed : int
            The public seed of the draw.
        """
        return self._drawn(self.joint.draw(count, seed), seed)

    def weighted_rows(self, each: int = 10, seed: int = 0) -> SyntheticRows:
        """Several weighted rows for each record; their weights add up to 1.

        They are nearer to the model than `rows`.

        Parameters
        ----------
        each : int
            The number of rows for each record of the noisy total. The weights add up to that total.
        seed : int
            The public seed of the draw.
        """
        codes, weight = self.joint.weighted_draw(each, seed)
        return self._drawn(codes, seed, np.full(len(codes), weight))

    def _drawn(self, codes: Integers, seed: int, weights: Floats | None = None) -> SyntheticRows:
        generator = np.random.default_rng([seed, 1])  # for values inside of bins: another stream than that of the cells
        drawn = {cells.name: cells.draw(codes[:, place], generator) for place, cells in enumerate(self.attributes)}
        return SyntheticRows(self.attributes, drawn, codes, weights, self.simulated)

    def __repr__(self) -> str:
        stamp = "SIMULATED; " if self.simulated else ""
        return f"<FittedTable: {stamp}{len(self.names)} attributes, {self.total:,.0f} records, {self.joint!r}>"
