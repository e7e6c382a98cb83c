"""Marginals of records of codes, and how far they are from public ones: in exact arithmetic, without a rounding.

A record is a tuple of codes, one an attribute; code i of an attribute of size n is in a cell where `0 ≤ i < n`. A
record that has another code, or null, in an attribute of a view is in no cell of that view, and counts in the others.
One that is null itself is in no cell at all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpinq.errors import PlanError
from wpinq.expr.values import Value
from wpinq.runtime.arrays import Floats, Integers

CELLS_LIMIT = 2**20
"""The most cells of all views of a choice together."""

VIEWS_LIMIT = 10_000
"""The most views of a choice."""

LARGEST = Fraction(1e100)
"""The largest cell of a public marginal, and the largest penalty: scores stay far within the floats."""

_WHOLE = 2**53  # up to here floats add integers exactly
_OUTSIDE = -1


@dataclass(frozen=True, slots=True)
class ComparedMarginal:
    """A candidate: a view, the public marginal that its own is compared with, and a public penalty.

    Attributes
    ----------
    view : tuple of int
        The places of its attributes in a record, from 0, rising; at least one.
    factors : sequence of arrays
        Their outer product is the public marginal, in C order: one array with a number for each cell, or an array for
        each attribute, or for several neighbouring ones together; an array of one number scales the others. Any finite
        numbers, their product in units of weight. They are kept as tuples of floats.
    penalty : float
        What is taken off the distance, in units of weight.

    Notes
    -----
    Privacy cost: none. All of it is public: known beforehand, or made of answers that were paid for.

    Examples
    --------
    >>> ComparedMarginal((0, 2), ([1, 3], [0.5, 0.5]), penalty=2).table
    array([0.5, 0.5, 1.5, 1.5])
    """

    view: tuple[int, ...]
    factors: Sequence[Any]
    penalty: float = 0.0

    def __post_init__(self) -> None:
        try:
            view = tuple(index(place) for place in self.view)
            factors = tuple(_numbers(factor) for factor in self.factors)
            (penalty,) = _numbers([self.penalty])
        except (TypeError, ValueError, OverflowError):
            raise PlanError(
                "a candidate is the places of its attributes, arrays of finite numbers whose outer product is the "
                "public marginal, and a penalty: ComparedMarginal((0, 1), ([5.0, 5.0], [0.2, 0.8]), penalty=3)"
            ) from None
        rising = all(a < b for a, b in zip((-1, *view), view, strict=False))
        if not (view and rising and factors and all(factors)):
            raise PlanError("a view is the places of its attributes in a record, from 0, rising; and it has a factor")
        if max(abs(penalty), math.prod(Fraction(max(map(abs, factor))) for factor in factors)) > LARGEST:
            raise PlanError(f"a public marginal and its penalty stay below {float(LARGEST):g}: count in larger units")
        object.__setattr__(self, "view", view)
        object.__setattr__(self, "factors", factors)
        object.__setattr__(self, "penalty", penalty)

    @property
    def table(self) -> Floats:
        """The public marginal, in floats."""
        return np.asarray(reduce(_outer, map(np.asarray, self.factors)), dtype=np.float64)

    def check(self, sizes: Sequence[int]) -> None:
        """Refuse a view that these attributes do not have, or factors that do not cover its cells."""
        if self.view[-1] >= len(sizes):
            raise PlanError(f"the view {self.view} needs {self.view[-1] + 1} attributes, and there are {len(sizes)}")
        left, covered = [sizes[place] for place in self.view], True
        for factor in self.factors:
            cells = 1
            while left and cells * left[0] <= len(factor):
                cells *= left.pop(0)
            covered = covered and cells == len(factor)
        if left or not covered:
            shape = " x ".join(str(sizes[place]) for place in self.view)
            raise PlanError(
                f"the view {self.view} has {shape} cells: give one array of as many numbers, or one for each attribute"
            )

    @property
    def identity(self) -> tuple[bytes | str, ...]:
        """What two candidates share exactly where they are the same."""
        arrays = (np.array(numbers, dtype=">f8").tobytes() for numbers in ((self.penalty,), *self.factors))
        return (repr(self.view), str(len(self.factors)), *arrays)

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {"view": list(self.view), "factors": [list(f) for f in self.factors], "penalty": self.penalty}


def marginal_distances(
    weights: Mapping[Value, Any], sizes: Sequence[int], candidates: Iterable[ComparedMarginal]
) -> list[Fraction]:
    """`‖m_r − p_r‖₁` for each candidate: `Σ |m_r(cell) − p_r(cell)|` over all cells, present or not.

    Parameters
    ----------
    weights : mapping
        Record to weight, protected: floats or Fractions, taken for the rationals that they are.
    sizes : sequence of int
        Of the attributes.
    candidates : iterable of ComparedMarginal
        Public, and checked against the sizes.

    Returns
    -------
    list of Fraction
        Exact.
    """
    codes, (units, unit) = _columns(list(weights), len(sizes)), _over_one_denominator(weights.values())
    inside = [(column >= 0) & (column < size) for column, size in zip(codes, sizes, strict=True)]
    found = []
    for candidate in candidates:
        cells = math.prod(sizes[place] for place in candidate.view)
        here = np.logical_and.reduce([inside[place] for place in candidate.view])
        cell = np.zeros(int(here.sum()), dtype=np.int64)
        for place in candidate.view:
            cell = cell * sizes[place] + codes[place][here]
        factors = [_over_one_denominator(factor) for factor in candidate.factors]
        public = reduce(_outer, (numbers.astype(object) for numbers, _ in factors))
        share = math.prod(denominator for _, denominator in factors)
        off = np.abs(_sums(cell, units[here], cells) * share - public * unit)
        found.append(Fraction(int(off.sum()), unit * share))
    return found


def _columns(records: list[Value], width: int) -> list[Integers]:
    """The codes of each attribute; where one is null, or the whole record, a code that no cell has."""
    if not records:
        return [np.zeros(0, dtype=np.int64)] * width
    rows = (record if isinstance(record, tuple) else (record,) * width for record in records)
    return [_column(codes) for codes in zip(*rows, strict=True)]


def _column(codes: Sequence[Value]) -> Integers:
    try:
        return np.fromiter(codes, dtype=np.int64, count=len(codes))
    except TypeError:  # a null
        return np.fromiter((_OUTSIDE if code is None else code for code in codes), dtype=np.int64, count=len(codes))


def _over_one_denominator(numbers: Iterable[Any]) -> tuple[NDArray[Any], int]:
    """Rationals as integers over one denominator: machine integers where floats could add them exactly."""
    ratios = [number.as_integer_ratio() for number in numbers]
    shared = math.lcm(*{under for _, under in ratios})
    whole = [over * (shared // under) for over, under in ratios]
    return np.array(whole, dtype=np.int64 if sum(map(abs, whole)) < _WHOLE else object), shared


def _sums(cell: Integers, units: NDArray[Any], cells: int) -> NDArray[Any]:
    """What each cell weighs, as Python's integers."""
    if units.dtype == np.int64:
        return np.bincount(cell, weights=units, minlength=cells).astype(np.int64).astype(object)
    sums = np.zeros(cells, dtype=object)
    np.add.at(sums, cell, units)
    return sums


def _outer(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    found: NDArray[Any] = np.multiply.outer(left, right)
    return found.ravel()


def _numbers(given: Any) -> tuple[float, ...]:
    numbers = np.asarray(given, dtype=np.float64).ravel() + 0.0  # no -0.0
    if not np.isfinite(numbers).all():
        raise ValueError
    return tuple(numbers.tolist())
