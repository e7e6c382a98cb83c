"""A generated module and its array, driven by words: what is full or missing is seen to, and proposals made again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from wpinq.engines.incremental.compiled import runtime
from wpinq.engines.incremental.compiled.columns import Dictionary, Rows
from wpinq.engines.incremental.compiled.generate import Generated
from wpinq.engines.incremental.compiled.remembered import elements
from wpinq.engines.incremental.compiled.tables import Arena, Table, Words
from wpinq.engines.incremental.compiled.targets import Aim, huber

Changes = tuple[Words, Words, NDArray[np.float64]]
"""Changes of sources: the number of the source, the words of the record and the change, for each record."""
Loop = Callable[[ModuleType, Words, int], None]
"""Runs so many steps of a walk: `loop(module, array, steps)`."""

BATCH = 4096
REFUSALS = (runtime.NEGATIVE, runtime.NOT_UNIT, runtime.UNSTEADY)
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
    aims : sequence of Aim
        What each output is to come close to.
    """

    def __init__(self, generated: Generated, module: ModuleType, dictionary: Dictionary, aims: Sequence[Aim]) -> None:
        self._generated, self._module, self._dictionary = generated, module, dictionary
        self.arena = Arena(generated.tables)
        self.pending: list[Changes] = []
        numbers = self.arena.words.view(np.float64)
        each = runtime.PARAMETERS_EACH
        for position, aim in enumerate(aims):
            at = runtime.PARAMETERS + each * position
            numbers[at : at + each] = aim.epsilon, aim.epsilon if aim.outside else 0.0, aim.width

    @property
    def score(self) -> float:
        """The score, the pending proposal included."""
        return float(self.arena.words[runtime.SCORE : runtime.SCORE + 1].view(np.float64)[0])

    def changes(self, parts: Mapping[str, Rows]) -> Changes:
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

    def load(self, changes: Changes) -> int:
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

    def apply(self, changes: Changes) -> int:
        """Make changes, pending; 0, or the refusal, after which only `rollback` is of use."""
        while True:
            self._module.propose(self.arena.words, *changes)
            status = int(self.arena.words[runtime.STATUS])
            if status in REFUSALS:
                self.arena.words[runtime.STATUS] = 0
                return status
            if not self._grown():
                self.pending.append(changes)
                return 0

    def commit(self) -> None:
        """Keep what is pending."""
        self.arena.words[runtime.LOG] = self.arena.words[runtime.LOG_START]
        self.pending.clear()

    def rollback(self) -> None:
        """Take back what is pending."""
        self._module.rollback(self.arena.words, self.arena.words[runtime.LOG_START])
        self.pending.clear()

    def walk(self, loop: Loop, tallies: Words, end: int) -> int:
        """Run steps until `tallies` counts so many: 0, or the refusal of a step, which is not made."""
        while tallies[2] < end:
            loop(self._module, self.arena.words, end - int(tallies[2]))
            status = int(self.arena.words[runtime.STATUS])
            if status in REFUSALS:
                self.arena.words[runtime.STATUS] = 0
                return status
            self._grown()
        return 0

    def step_unchecked(self, loop: Loop, tallies: Words) -> None:
        """Make one step, however far norms grow."""
        with self._unchecked():
            self.walk(loop, tallies, int(tallies[2]) + 1)

    @contextmanager
    def _unchecked(self) -> Iterator[None]:
        self.arena.words[runtime.UNCHECKED] = 1
        yield
        self.arena.words[runtime.UNCHECKED] = 0

    def pin(self, position: int, words: Words, values: NDArray[np.float64]) -> None:
        """Give records of an output their targets."""
        for start in range(0, len(values), BATCH):
            while True:
                self._module.pin(
                    self.arena.words, position, words[start : start + BATCH], values[start : start + BATCH]
                )
                if not self._grown():
                    break
            self.commit()
        first = self.arena.words[runtime.SCORE : runtime.SCORE + 1].view(np.float64)
        each = runtime.PARAMETERS_EACH
        at = runtime.PARAMETERS + each * position
        price, _, width = self.arena.words[at : at + each].view(np.float64)
        first[0] += price * np.sum(huber(values, width))

    def _grown(self) -> bool:
        """Whether something was full or missing: what is pending is done again then, with it."""
        words = self.arena.words
        status = int(words[runtime.STATUS])
        if status == 0:
            return False
        pending = list(self.pending)
        self.rollback()
        words[runtime.STATUS] = 0
        if status == runtime.MISSING:
            self._learn()
        if self._generated.functions:
            self._module.forget(self.arena.words)
        if status == runtime.LOG_FULL:
            self.arena.grow_log()
        elif status != runtime.MISSING:
            self.arena.grow(status)
        for changes in pending:
            self.apply(changes)
        return True

    def _learn(self) -> None:
        """Compute what remembered functions miss."""
        dictionary = self._dictionary
        missed: dict[int, list[Sequence[int]]] = {function.number: [] for function, _, _ in self._generated.functions}
        for function, _, missing in self._generated.functions:
            for row in self.arena.gathered(missing)[:, : missing.width].tolist():
                missed[function.number].append(row)
                for follower, key in elements(dictionary, function, row):
                    missed[follower.number].append(key)
        for function, table, _ in self._generated.functions:
            if missed[function.number]:
                learnt = function.learn(missed[function.number], dictionary)
                self._remember(function.number, table, [key for key, _ in learnt], [value for _, value in learnt])

    def _remember(self, number: int, table: Table, keys: list[list[int]], values: list[list[int]]) -> None:
        held = np.array(keys, dtype=np.int64), np.array(values, dtype=np.int64)
        while True:
            self._module.remember(self.arena.words, number, *held)
            self.commit()
            status = int(self.arena.words[runtime.STATUS])
            if status == 0:
                return
            self.arena.words[runtime.STATUS] = 0
            if status == runtime.LOG_FULL:
                self.arena.grow_log()
            else:
                self.arena.grow(table.header)
