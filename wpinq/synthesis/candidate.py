"""A candidate as walks see it: records that can be drawn uniformly, looked up, and changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from wpinq.expr.values import Value

_DUST = 1e-12


class Dataset(Mapping[Value, float]):
    """A public weighted dataset from which a record can be drawn in constant time.

    The order of the records is part of its state: a draw depends on it, so a chain that goes on from a checkpoint
    keeps it.

    Examples
    --------
    >>> dataset = Dataset({"a": 1.0, "b": 1.0, "c": 1.0})
    >>> dataset.change({"a": -1.0, "d": 2.0})
    >>> dict(dataset)
    {'c': 1.0, 'b': 1.0, 'd': 2.0}
    """

    def __init__(self, weights: Mapping[Value, float]) -> None:
        self._records = [record for record, weight in weights.items() if abs(weight) >= _DUST]
        self._places = {record: place for place, record in enumerate(self._records)}
        self._weights = {record: float(weights[record]) for record in self._records}

    def __getitem__(self, record: Value) -> float:
        return self._weights[record]

    def __contains__(self, record: object) -> bool:
        return record in self._weights

    def __iter__(self) -> Iterator[Value]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def draw(self, rng: np.random.Generator) -> Value:
        """A record, each with the same probability whatever it weighs."""
        return self._records[int(rng.integers(len(self._records)))]

    def change(self, changes: Mapping[Value, float]) -> None:
        """Add changes to the weights; a record whose weight becomes 0 is gone."""
        for record, change in changes.items():
            weight = self._weights.get(record, 0.0) + change
            if abs(weight) >= _DUST:
                if record not in self._weights:
                    self._places[record] = len(self._records)
                    self._records.append(record)
                self._weights[record] = weight
            elif record in self._weights:
                del self._weights[record]
                place, last = self._places.pop(record), self._records.pop()
                if last != record:
                    self._records[place] = last
                    self._places[last] = place


Candidate = Mapping[str, Dataset]
"""Source name to dataset."""
