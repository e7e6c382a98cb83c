"""Rows that were drawn from a model of released marginals: columns of the declared types, in frames and files."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from wpinq.arrays import Floats, Integers
from wpinq.errors import AnswersError
from wpinq.expr.types import BOOL, FLOAT, INT, CategoryOf, Type
from wpinq.measure.answer_rows import arrow_type, polars_frame
from wpinq.tables.attribute_cells import AttributeCells
from wpinq.tables.marginal_names import view_of

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

_SHOWN = 6


@dataclass(frozen=True, eq=False, repr=False)
class SyntheticRows:
    """Rows that stand for nobody: drawn from a model, with the columns and types of the table that was measured.

    Attributes
    ----------
    attributes : tuple of AttributeCells
        Of the columns.
    columns : dict
        Attribute to its values, as Python has them.
    codes : array
        The number of the cell of each value, of shape (rows, attributes).
    weights : array or None
        How much each row counts; None where each counts 1.
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

    @staticmethod
    def of_codes(
        attributes: Sequence[AttributeCells],
        codes: Integers,
        generator: np.random.Generator,
        weights: Floats | None = None,
        simulated: bool = False,
    ) -> SyntheticRows:
        """Rows from the numbers of their cells, of shape (rows, attributes): see `AttributeCells.draw`."""
        if codes.ndim != 2 or codes.shape[1] != len(attributes):
            raise AnswersError("rows are numbers of cells, a column an attribute")
        drawn = {cells.name: cells.draw(codes[:, place], generator) for place, cells in enumerate(attributes)}
        return SyntheticRows(tuple(attributes), drawn, codes, weights, simulated)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """The rows as tuples, without their weights."""
        return zip(*self.columns.values(), strict=True)

    def counts(self, *names: str) -> Floats:
        """How many rows, or how much weight, are in each cell of a marginal: an axis an attribute."""
        known = [cells.name for cells in self.attributes]
        view_of(names, known)  # AnswersError for what is none
        places = [known.index(name) for name in names]
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
        name = "weight"
        while name in self.columns:
            name = f"row_{name}"
        return name

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a pandas frame with the declared types: categories categorical, ints that may be null `Int64`."""
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
    if type_ == FLOAT:
        return "float64"
    if type_ == INT:
        return "Int64" if nullable else "int64"
    if type_ == BOOL:
        return "boolean" if nullable else "bool"
    return "object"
