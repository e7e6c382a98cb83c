"""The module of one set of plans, and the driver of its array.

A proposal gathers the changes of the sources. Then every table, inputs before users, applies its gathered changes one
record at a time. For each, the change of every formula that looks the record up is passed on, and gathered in turn.
A formula's change under a sequence of single changes adds up to its change under all of them, in whatever order. So
norms stay as they were while records change, and change after them.

The driver works on words. Where a table is full or a memo missing, it makes room and makes the proposal again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import ModuleType

import numpy as np

from wpinq.engines.delta.compiled import hash_table as layout
from wpinq.engines.delta.compiled import steps as st
from wpinq.engines.delta.compiled.expressions import Memo, elements
from wpinq.engines.delta.compiled.formulas import Assumptions, Atom, Formula, NamedWords, lookups_of
from wpinq.engines.delta.compiled.hash_tables import process as pr
from wpinq.engines.delta.compiled.hash_tables.arena import Arena, Consumer, Delta, Design, HashTable, HashTables
from wpinq.engines.delta.compiled.hash_tables.deltas import write_delta
from wpinq.engines.delta.compiled.routine import Routine, call, module_text
from wpinq.engines.delta.compiled.values import Dictionary, Rows, Writer, width
from wpinq.engines.delta.evaluator import Goal, loss
from wpinq.runtime.arrays import Floats, Integers

# --- the module of one set of plans -----------------------------------------------------------------------------------


ExtraLoops = Callable[[HashTable, HashTable, Sequence[HashTable], Routine], list[Routine]]
"""Makes entry points that a module of one source has besides its own: from the source's table and that of its changes,
the changes of outputs, and the routine that applies changes."""


@dataclass
class Generated:
    """The text of a module and what must be known to drive it."""

    text: str
    tables: HashTables
    sources: dict[str, tuple[int, HashTable, HashTable]]
    outputs: list[HashTable]
    changes: list[HashTable]
    memos: list[tuple[Memo, HashTable, HashTable]]


def generate(steps: st.Steps, assumptions: Assumptions, extra: ExtraLoops | None) -> Generated:
    """The module of some steps under assumptions."""
    design = Design(steps, assumptions)
    for step in steps.all:
        if isinstance(step, st.SourceStep):
            _table(design, step)
    for number, root in enumerate(steps.roots):
        kept = design.tables.add(f"OUT_{number}", root.width, 3, logged=True)
        moved = design.tables.add(f"MOVED_{number}", root.width, 2, logged=False)
        design.outputs.append((kept, moved))
        _stream(design, root, moved.gather)
    for delta in design.deltas:
        write_delta(delta, design)
    for step in design.consumers:
        pr.write_emission(design, step)
    for step in steps.all:
        pr.process_step(design, step)
    memos = [(memo, *_memo_tables(design, memo)) for memo in steps.dictionary.memos.values()]
    process = pr.process_all(design, memos)
    more: list[Routine] = []
    sources = {step.source: (step.number, *design.held[step]) for step in steps.all if isinstance(step, st.SourceStep)}
    outputs, changes = [kept for kept, _ in design.outputs], [moved for _, moved in design.outputs]
    if extra is not None:
        ((_, kept, moved),) = sources.values()
        more = extra(kept, moved, changes, process)
    pr.entries(design, process, memos)
    constants = {**layout.CONSTANTS, **{table.name: table.header for table in design.tables.all}}
    text = module_text([*design.routines, *more], constants)
    return Generated(text, design.tables, sources, outputs, changes, memos)


def _memo_tables(design: Design, memo: Memo) -> tuple[HashTable, HashTable]:
    if memo.member is not None:
        design.tables.add(memo.members, width(memo.member), 2, logged=False)
    kept = design.tables.add(memo.table, memo.key_width, width(memo.value), logged=True)
    return kept, design.tables.add(memo.missing, memo.missing_width, 2, logged=False)


def _key_words(key: tuple[int, ...], writer: Writer, names: dict[int, str]) -> list[str]:
    return [names[variable] for variable in key]


# Which tables a module needs, and who takes the changes of whom.


def _table(design: Design, step: st.Step) -> HashTable:
    """The table that holds a step's output."""
    if step not in design.held:
        kept = design.tables.add(f"T_{step.number}", step.width, 1, logged=True)
        moved = design.tables.add(f"D_{step.number}", step.width, 2, logged=False)
        design.held[step] = kept, moved
        if not isinstance(step, st.SourceStep):
            _stream(design, step, moved.gather)
    return design.held[step][0]


def _stream(design: Design, step: st.Step, consumer: Consumer) -> None:
    """Have a step's changes passed to a consumer."""
    known = step in design.consumers
    design.consumers.setdefault(step, []).append(consumer)
    if known:
        return
    emission = design.emission(step)
    if isinstance(step, st.MapStep):
        _stream(design, step.inputs[0], partial(_called, pr.map_routine(design, step)))
    elif isinstance(step, st.SumStep):
        for below, coefficient in zip(step.inputs, step.coefficients, strict=True):
            _stream(design, below, partial(_scaled, emission, coefficient))
    elif isinstance(step, st.ShaveStep):
        _table(design, step.inputs[0])
        design.shaves.setdefault(step.inputs[0], []).append(pr.shave_routine(design, step))
    elif isinstance(step, st.GroupStep):
        table = _table(design, step.inputs[0])
        touched = design.tables.add(f"K_{step.number}", len(step.key), 2, logged=False)
        held = step, touched, pr.group_routine(design, step, table)
        design.groups.setdefault(step.inputs[0], []).append(held)
    elif isinstance(step, (st.JoinStep, st.ExtremeStep)):
        root = design.expander.root(step)
        _add_delta(design, *root, partial(_called, emission), "new_value - old_value", None)


def _add_norm(design: Design, join: st.JoinStep) -> None:
    """Have the table of a join's norms."""
    if join in design.norms:
        return
    size = len(join.keys[0])
    kept = design.tables.add(f"N_{join.number}", size, 1, logged=True)
    moved = design.tables.add(f"DN_{join.number}", size, 2, logged=False)
    design.norms[join] = kept, moved
    for side in (0, 1):
        formula, key = design.expander.side(join, side)
        change = "abs(new_value) - abs(old_value)"
        _add_delta(design, formula, partial(_key_words, key), moved.gather, change, key)


def _add_delta(
    design: Design, formula: Formula, words: NamedWords, consumer: Consumer, change: str, key: tuple[int, ...] | None
) -> None:
    lookups = tuple(dict.fromkeys(lookups_of(formula)))
    for lookup in lookups:
        if isinstance(lookup, Atom):
            _table(design, lookup.step)
        else:
            _add_norm(design, lookup.step)
    design.deltas.append(Delta(len(design.deltas), formula, lookups, words, consumer, change, key))


def _called(routine: Routine, words: list[str], weight: str) -> str:
    return call(routine, *words, weight)


def _scaled(routine: Routine, coefficient: int, words: list[str], weight: str) -> str:
    return call(routine, *words, f"{coefficient}.0 * ({weight})")


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
        for position, goal in enumerate(goals):
            self._parameters(position)[:] = goal.epsilon, goal.epsilon if goal.outside else 0.0, goal.width

    def _parameters(self, position: int) -> Floats:
        """The parameters of an output."""
        at = layout.PARAMETERS + layout.PARAMETERS_EACH * position
        return self.arena.words[at : at + layout.PARAMETERS_EACH].view(np.float64)

    @property
    def score(self) -> float:
        """The score, the pending proposal included."""
        return float(self.arena.words.view(np.float64)[layout.SCORE])

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
        """Make changes of an empty candidate and keep them, heaviest first: no norm grows far."""
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
        score, (price, _, width) = self.arena.words[layout.SCORE :].view(np.float64), self._parameters(position)
        score[0] += price * np.sum([loss(value, width) for value in targets.weights.tolist()])

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
