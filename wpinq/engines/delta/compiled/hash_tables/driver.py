"""A generated module and its array, driven by words: what is full or missing is seen to, and proposals made again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType

import numpy as np

from wpinq.arrays import Floats, Integers
from wpinq.engines.incremental.compiled.routines import header as layout
from wpinq.engines.incremental.compiled.tables.arena import Arena
from wpinq.engines.incremental.compiled.tables.generate import Generated
from wpinq.engines.incremental.compiled.words.encoding import Dictionary, Rows
from wpinq.engines.incremental.compiled.words.memo import elements
from wpinq.engines.incremental.goals import Goal
from wpinq.engines.incremental.loss import loss

SourceChanges = tuple[Integers, Integers, Floats]
"""SourceChanges of sources: the number of the source, the words of the record and the change, for each record."""
RunChunk = Callable[[ModuleType, Integers, int], None]
"""Runs so many steps of a walk: `run(module, array, steps)`."""

BATCH = 4096
REFUSALS = (layout.NEGATIVE, layout.NOT_UNIT, layout.UNSTEADY)
"""What the driver cannot see to: the candidate is not what the module is for, or digits would be lost."""


class Driver:
    """A module on an array of its own, which holds nothing at first.

    Parameters
    ----------
    generated : Generated
        What is known about the module.
    module : module
        The module itself.
    dictionary : Dictionary
        The numbers of strings and lists.
    goals : sequence of Goal
        What each output is to come close to.
    """

    def __init__(self, generated: Generated, module: ModuleType, dictionary: Dictionary, goals: Sequence[Goal]) -> None:
        self._generated, self._module, self._dictionary = generated, module, dictionary
        self.arena = Arena(generated.tables)
        self.pending: list[SourceChanges] = []
        numbers = self.arena.words.view(np.float64)
        each = layout.PARAMETERS_EACH
        for position, goal in enumerate(goals):
            at = layout.PARAMETERS + each * position
            numbers[at : at + each] = goal.epsilon, goal.epsilon if goal.outside else 0.0, goal.width

    @property
    def score(self) -> float:
        """The score, the pending proposal included."""
        return float(self.arena.words[layout.SCORE : layout.SCORE + 1].view(np.float64)[0])

    def changes(self, parts: Mapping[str, Rows]) -> SourceChanges:
        """The rows of several sources together."""
        width = max(table.width for _, table, _ in self._generated.sources.values())
        numbers, words = [np.zeros(0, dtype=np.int64)], [np.zeros((0, width), dtype=np.int64)]
        for name, rows in parts.items():
            number, table, _ = self._generated.sources[name]
            numbers.append(np.full(len(rows.words), number, dtype=np.int64))
            words.append(np.zeros((len(rows.words), width), dtype=np.int64))
            words[-1][:, : table.width] = rows.words
        weights = np.concatenate([np.zeros(0), *(rows.weights for rows in parts.values())])
        return np.concatenate(numbers), np.concatenate(words), weights

    def load(self, changes: SourceChanges) -> int:
        """Make changes of an empty candidate, and keep them: the heaviest first, so that no norm grows far."""
        order = np.argsort(-np.abs(changes[2]), kind="stable")
        with self._unchecked():
            for start in range(0, len(order), BATCH):
                batch = order[start : start + BATCH]
                status = self.apply((changes[0][batch], changes[1][batch], changes[2][batch]))
                if status:
                    return status
                self.commit()
        return 0

    def apply(self, changes: SourceChanges) -> int:
        """Make changes, pending; 0, or the refusal, after which only `rollback` is of use."""
        while True:
            self._module.propose(self.arena.words, *changes)
            if refusal := self._refusal():
                return refusal
            if not self._grown():
                self.pending.append(changes)
                return 0

    def commit(self) -> None:
        """Keep what is pending."""
        self.arena.words[layout.LOG] = self.arena.words[layout.LOG_START]
        self.pending.clear()

    def rollback(self) -> None:
        """Take back what is pending."""
        self._module.rollback(self.arena.words, self.arena.words[layout.LOG_START])
        self.pending.clear()

    def walk(self, run: RunChunk, tallies: Integers, end: int) -> int:
        """Run steps until `tallies` counts so many: 0, or the refusal of a step, which is not made."""
        while tallies[2] < end:
            run(self._module, self.arena.words, end - int(tallies[2]))
            if refusal := self._refusal():
                return refusal
            self._grown()
        return 0

    def step_unchecked(self, run: RunChunk, tallies: Integers) -> None:
        """Make one step, however far norms grow."""
        with self._unchecked():
            self.walk(run, tallies, int(tallies[2]) + 1)

    @contextmanager
    def _unchecked(self) -> Iterator[None]:
        self.arena.words[layout.UNCHECKED] = 1
        yield
        self.arena.words[layout.UNCHECKED] = 0

    def pin(self, position: int, targets: Rows) -> None:
        """Give records of an output their targets."""
        for start in range(0, len(targets.weights), BATCH):
            batch = slice(start, start + BATCH)
            while True:
                self._module.pin(self.arena.words, position, targets.words[batch], targets.weights[batch])
                if not self._grown():
                    break
            self.commit()
        first = self.arena.words[layout.SCORE : layout.SCORE + 1].view(np.float64)
        each = layout.PARAMETERS_EACH
        at = layout.PARAMETERS + each * position
        price, _, width = self.arena.words[at : at + each].view(np.float64)
        first[0] += price * np.sum([loss(value, width) for value in targets.weights.tolist()])

    def _refusal(self) -> int:
        """The refusal that the module left, which is taken from it; 0 where there is none."""
        status = int(self.arena.words[layout.STATUS])
        if status not in REFUSALS:
            return 0
        self.arena.words[layout.STATUS] = 0
        return status

    def _grown(self) -> bool:
        """Whether something was full or missing: what is pending is done again then, with it."""
        words = self.arena.words
        status = int(words[layout.STATUS])
        if status == 0:
            return False
        pending = list(self.pending)
        self.rollback()
        words[layout.STATUS] = 0
        if status == layout.MISSING:
            self._learn()
        if self._generated.memos:
            self._module.forget(self.arena.words)
        if status == layout.LOG_FULL:
            self.arena.grow_log()
        elif status != layout.MISSING:
            self.arena.grow(status)
        for changes in pending:
            self.apply(changes)
        return True

    def _learn(self) -> None:
        """Compute what memos miss."""
        dictionary = self._dictionary
        missed: dict[int, list[Sequence[int]]] = {memo.number: [] for memo, _, _ in self._generated.memos}
        for memo, _, missing in self._generated.memos:
            for row in self.arena.gathered(missing).words.tolist():
                missed[memo.number].append(row)
                for follower, key in elements(dictionary, memo, row):
                    missed[follower.number].append(key)
        for memo, _, _ in self._generated.memos:
            learnt = memo.learn(missed[memo.number], dictionary)
            full = bool(learnt)
            while full:
                keys, values = (np.array(part, dtype=np.int64) for part in zip(*learnt, strict=True))
                self._module.learn(self.arena.words, memo.number, keys, values)
                self.commit()  # what there was room for
                full = self._grown()
