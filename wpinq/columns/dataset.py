"""Weighted datasets: functions from records to weights, with a norm, distance and sums."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from wpinq.expr.values import Value
from wpinq.runtime.public import public


@dataclass(frozen=True, slots=True, weakref_slot=True, repr=False, eq=False)
class EngineDataset:
    """A weighted dataset that stays in an engine: a frame of it.

    Spark's are frames with the columns of the records, `c0`, `c1`, …, and the weight `w`, whose rows Spark holds
    (`stored`), so that what was checked is what plans read.
    """

    frame: Any


def stored(frame: Any, eager: bool = True) -> Any:
    """A frame of the rows of a Spark frame, which Spark holds and does not read again.

    Each executor's rows have a copy in another, so that the loss of one loses none.
    """
    from pyspark import StorageLevel

    alone = frame.sparkSession.sparkContext._jsc.sc().isLocal()
    return frame.localCheckpoint(eager, None if alone else StorageLevel.MEMORY_AND_DISK_2)


def let_go(*frames: Any) -> None:
    """Have Spark forget the stored rows of frames; no error if they are gone."""
    for frame in frames:
        with contextlib.suppress(Exception):
            frame._jdf.queryExecution().analyzed().rdd().unpersist(False)


@public
class WeightedDataset(Mapping[Value, Any]):
    """A public weighted dataset: records with real weights; absent records weigh 0.

    Zero weights are dropped; `dataset[x]` of an absent record is 0. Weights are floats, or Fractions from an
    exact evaluation. (Paper, section 2.1.)

    Examples
    --------
    >>> a = WeightedDataset({"1": 0.75, "2": 2.0, "3": 1.0})
    >>> a.norm(), a["0"]
    (3.75, 0)
    >>> a.distance(WeightedDataset({"2": 2.0}))
    1.75
    """

    __slots__ = ("_weights",)

    def __init__(self, weights: Mapping[Value, Any]) -> None:
        self._weights = {record: weight for record, weight in weights.items() if weight != 0}

    def __getitem__(self, record: Value) -> Any:
        return self._weights.get(record, 0)

    def __contains__(self, record: object) -> bool:
        return record in self._weights

    def __iter__(self) -> Iterator[Value]:
        return iter(self._weights)

    def __len__(self) -> int:
        return len(self._weights)

    def __repr__(self) -> str:
        return f"WeightedDataset({self._weights!r})"

    def norm(self) -> Any:
        """`‖A‖ = Σ_x |A(x)|`."""
        return _total(abs(weight) for weight in self._weights.values())

    def distance(self, other: Mapping[Value, Any]) -> Any:
        """`‖A − B‖ = Σ_x |A(x) − B(x)|`."""
        return (self - other).norm()

    def __add__(self, other: Mapping[Value, Any]) -> WeightedDataset:
        return WeightedDataset({x: self[x] + other.get(x, 0) for x in {**self._weights, **other}})

    def __sub__(self, other: Mapping[Value, Any]) -> WeightedDataset:
        return WeightedDataset({x: self[x] - other.get(x, 0) for x in {**self._weights, **other}})


def _total(weights: Iterator[Any] | Any) -> Any:
    """The exact sum, rounded once where the weights are floats."""
    items = list(weights)
    exact = sum(map(Fraction, items), Fraction(0))
    return exact if any(isinstance(item, Fraction) for item in items) else float(exact)
