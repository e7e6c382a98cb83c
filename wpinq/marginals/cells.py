"""The cells of an attribute: bins or categories that are public, one for null, and one for all else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpinq.arrays import Integers
from wpinq.errors import AnswersError, PlanError
from wpinq.expr.logical_values import presenter
from wpinq.expr.types import BOOL, FLOAT, INT, STR, CategoryOf, Logical, Type
from wpinq.expr.values import Value
from wpinq.plan.format import type_from_json, type_to_json, value_from_json, value_to_json

MISSING, OTHER = "missing", "other"
"""What the cells of null and of all else are called unless told."""

CELLS_LIMIT = 10_000
"""The most cells of one attribute."""


@dataclass(frozen=True, slots=True)
class AttributeCells:
    """The cells that the values of an attribute fall in: public, numbered from 0, every value in one or none.

    Those of the bins or of the categories come first, in order; then that of null; then that of all other values. A
    bin holds its lower end and not its upper one, but the last, which holds both.

    Attributes
    ----------
    name : str
        Of the attribute.
    type : Type
        Of its values.
    edges : tuple or None
        The ends of the bins, ascending, in canonical form; one more than there are bins. None of categories.
    categories : tuple or None
        The categories, each a cell, in canonical form. None of bins.
    missing : str or None
        What the cell of null is called; None where there is none.
    other : str or None
        What the cell of all other values is called; None where there is none.
    """

    name: str
    type: Type
    edges: tuple[Value, ...] | None
    categories: tuple[Value, ...] | None
    missing: str | None
    other: str | None

    def __post_init__(self) -> None:
        check_cells(self)

    @property
    def named(self) -> int:
        """How many bins or categories there are."""
        return len(self.categories) if self.categories is not None else len(self.edges or ()) - 1

    @property
    def size(self) -> int:
        """How many cells there are."""
        return self.named + (self.missing is not None) + (self.other is not None)

    @property
    def labels(self) -> tuple[str, ...]:
        """What each cell is called: a text, each once. Bins are written `[18, 30)`."""
        present = presenter(self.type)
        if self.categories is not None:
            found = [_text(present(value)) for value in self.categories]
        else:
            ends = [_text(present(value)) for value in self.edges or ()]
            closing = [")"] * (self.named - 1) + ["]"]
            found = [f"[{low}, {high}{close}" for low, high, close in zip(ends, ends[1:], closing, strict=False)]
        return (*found, *(label for label in (self.missing, self.other) if label is not None))

    @property
    def holds_null(self) -> bool:
        """Whether values drawn for its cells may be null."""
        return self.missing is not None or (self.other is not None and self.type != STR)

    def draw(self, codes: Integers, generator: np.random.Generator) -> list[Any]:
        """A value for each number of a cell, as Python has it.

        A category is itself. Of a bin, a value is drawn uniformly among those that it holds: ints, dates and the like
        one by one, floats as real numbers. The cell of null gives null. That of all others gives its own name where
        values are strings, and null otherwise: which values there were is not known.
        """
        if len(codes) and (codes.min() < 0 or codes.max() >= self.size):
            raise AnswersError(f"{self.name} has the cells 0 to {self.size - 1}")
        present = presenter(self.type)
        if self.categories is not None:
            values: list[Any] = [present(value) for value in self.categories]
            values += [None] * (self.missing is not None)
            values += [self.other if self.type == STR else None] * (self.other is not None)
            return [values[code] for code in codes.tolist()]
        assert self.edges is not None
        inside = codes < self.named
        drawn = _uniform(self.edges, self.type, np.where(inside, codes, 0), generator)
        return [present(value) if held else None for value, held in zip(drawn, inside.tolist(), strict=True)]

    def to_json(self) -> dict[str, Any]:
        """The cells as plain data."""

        def values(given: Sequence[Value] | None) -> list[Any] | None:
            return None if given is None else [value_to_json(value, self.type) for value in given]

        return {
            "name": self.name,
            "type": type_to_json(self.type),
            "bins": values(self.edges),
            "categories": values(self.categories),
            "missing": self.missing,
            "other": self.other,
            "labels": list(self.labels),
        }

    @staticmethod
    def from_json(data: Any) -> AttributeCells:
        """The cells that plain data hold."""
        type_ = type_from_json(data["type"])

        def values(given: list[Any] | None) -> tuple[Value, ...] | None:
            return None if given is None else tuple(value_from_json(value, type_) for value in given)

        name, missing, other = data["name"], data["missing"], data["other"]
        if not isinstance(name, str) or not all(label is None or isinstance(label, str) for label in (missing, other)):
            raise AnswersError("attributes and their cells have names that are texts")
        return AttributeCells(name, type_, values(data["bins"]), values(data["categories"]), missing, other)


def check_cells(cells: AttributeCells) -> None:
    """Refuse cells that no value could tell apart, or that are called alike."""
    name = cells.name
    if (cells.edges is None) == (cells.categories is None):
        raise PlanError(f"the attribute {name!r} has bins or categories, one of the two")
    if cells.edges is not None:
        if not ordered(cells.type):
            raise PlanError(f"the attribute {name!r} is of type {cells.type}, which has no bins: give categories=[...]")
        if None in cells.edges:
            raise PlanError(f"null is no end of a bin of {name!r}: it has a cell of its own, see missing=")
        if len(cells.edges) < 2 or any(low >= high for low, high in zip(cells.edges, cells.edges[1:], strict=False)):
            raise PlanError(f"the bins of {name!r} are given by two or more ends that ascend: bins=[0, 18, 30, 65]")
    if cells.categories is not None and (not cells.categories or None in cells.categories):
        raise PlanError(
            f"the categories of {name!r} are one value or more, and null is none of them: it has a cell of its own, "
            "see missing="
        )
    if cells.categories is not None and len(set(cells.categories)) < len(cells.categories):
        raise PlanError(f"a category of {name!r} is listed twice: a value has one cell")
    if cells.size > CELLS_LIMIT:
        raise PlanError(f"the attribute {name!r} has {cells.size:,} cells, and at most {CELLS_LIMIT:,} are possible")
    labels = cells.labels
    for label in (cells.missing, cells.other):
        if label is not None and labels.count(label) > 1:
            raise PlanError(
                f"two cells of {name!r} would be called {label!r}: name those of null and of all else apart, "
                'missing="no answer", other="elsewhere"'
            )


def ordered(type_: Type) -> bool:
    """Whether values of a type have bins."""
    plain = type_ in (INT, FLOAT)
    return plain or (isinstance(type_, Logical) and not isinstance(type_, CategoryOf))


def _text(value: object) -> str:
    """A value as a label: whole numbers without a point, dates by ISO 8601."""
    if isinstance(value, float) and value.is_integer():
        return f"{value:.0f}" if abs(value) < 1e15 else repr(value)
    return str(value.isoformat()) if hasattr(value, "isoformat") else str(value)


def _uniform(
    edges: tuple[Value, ...], type_: Type, bins: NDArray[np.int64], generator: np.random.Generator
) -> list[Value]:
    """A value inside of each bin, in canonical form."""
    if type_ == FLOAT:
        ends = np.array(edges, dtype=np.float64)
        low, high = ends[bins], ends[bins + 1]
        share = generator.random(len(bins))
        # by parts, for the difference of two floats may be none; and never the upper end, which is the next bin's
        found = np.minimum(low * (1 - share) + high * share, np.nextafter(high, low))
        return [float(value) for value in np.maximum(found, low)]
    whole = [int(edge) for edge in edges]
    last = len(whole) - 2
    lows = np.array([whole[i] for i in range(last + 1)], dtype=np.int64)
    highs = np.array([whole[i + 1] - (i != last) for i in range(last + 1)], dtype=np.int64)
    return [int(value) for value in generator.integers(lows[bins], highs[bins], endpoint=True)]


def is_closed(type_: Type, values: Sequence[Value]) -> bool:
    """Whether no value of a type but null can be outside of these."""
    if type_ == BOOL:
        return len(set(values)) == 2
    return isinstance(type_, CategoryOf) and set(type_.listed) <= set(values)
