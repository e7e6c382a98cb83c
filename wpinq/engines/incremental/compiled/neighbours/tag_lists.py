"""The tags that vertices have in invariant steps, as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpinq.arrays import Integers
from wpinq.engines.incremental.compiled.neighbours.formula_code import InvariantList
from wpinq.engines.incremental.compiled.steps.steps import Step
from wpinq.engines.incremental.compiled.words.encoding import Rows


class TagLists:
    """For each list and vertex, the tags that the vertex has there, and their weights.

    `words` has those of the tags of each list; a list that is a number holds the tags of rows, which come later.
    """

    def __init__(self, lists: Sequence[InvariantList | int], records: Mapping[Step, Rows], labels: Integers) -> None:
        self._order = np.argsort(labels[:, 0], kind="stable")
        self._labels = labels[self._order, 0]
        count = len(labels)
        places = np.zeros((max(1, len(lists)), count + 1), dtype=np.uint64)
        tags, amounts = [np.zeros(0, np.uint32)], [np.zeros(0)]
        self.words: list[Integers] = []
        used = 0
        for number, held in enumerate(lists):
            known: Integers = np.zeros((0, 1), dtype=np.int64)
            if isinstance(held, InvariantList):
                rows = records[held.step]
                vertex, inside = self._vertices_of(rows.words[:, held.column])
                known, numbers = distinct(np.delete(rows.words[inside], held.column, axis=1))
                order = np.lexsort((numbers, vertex[inside]))  # whatever the order of evaluation was
                places[number] = used + np.concatenate([[0], np.cumsum(np.bincount(vertex[inside], minlength=count))])
                tags.append(numbers[order].astype(np.uint32))
                amounts.append(rows.weights[inside][order])
                used += len(numbers)
            self.words.append(known)
        self.arrays: dict[str, NDArray[Any]] = {"places": places, "tags": np.concatenate(tags)}
        self.arrays |= {"amounts": np.concatenate(amounts), **self.joined}

    def _vertices_of(self, labels: Integers) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        at = np.minimum(np.searchsorted(self._labels, labels), len(self._labels) - 1)
        return self._order[at], self._labels[at] == labels

    @property
    def joined(self) -> dict[str, NDArray[Any]]:
        """`words`: those of the tags of all lists; `sizes`: for each list, how many tags, and where they begin."""
        starts = np.concatenate([[0], np.cumsum([len(words) for words in self.words])]).astype(np.int64)
        joined = np.zeros((max(1, starts[-1]), max([1, *(words.shape[1] for words in self.words)])), dtype=np.int64)
        for start, words in zip(starts[:-1], self.words, strict=True):
            joined[start : start + len(words), : words.shape[1]] = words
        return {"words": joined, "sizes": np.stack([np.diff(starts), starts[:-1]], axis=1).reshape(-1)}


def distinct(rows: Integers) -> tuple[Integers, NDArray[np.int64]]:
    """The distinct rows, and for each row the number of its like."""
    if rows.shape[1] == 0:
        return np.zeros((min(1, len(rows)), 0), dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
    found, numbers = np.unique(rows, axis=0, return_inverse=True)
    return found, numbers.reshape(-1).astype(np.int64)
