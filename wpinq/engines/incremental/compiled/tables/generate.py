"""The module of one set of plans: tables, the processing of changes table by table, and entry points.

A proposal gathers the changes of the sources. Then every table, inputs before users, applies its gathered changes
one record at a time, and for each the change of every formula that looks the record up is passed on to where it
is gathered in turn. A formula's change under a sequence of single changes adds up to its change under all of them,
in whatever order: so norms stay as they were while records change, and change after them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Protocol

from wpinq.engines.incremental.compiled.routines.header import CONSTANTS
from wpinq.engines.incremental.compiled.routines.routine import Routine, call, module_text
from wpinq.engines.incremental.compiled.steps.formulas import Assumptions, Atom, Formula, NamedWords, lookups_of
from wpinq.engines.incremental.compiled.steps.steps import (
    ExtremeStep,
    GroupStep,
    JoinStep,
    MapStep,
    ShaveStep,
    SourceStep,
    Step,
    Steps,
    SumStep,
)
from wpinq.engines.incremental.compiled.tables.arena import HashTable, HashTables
from wpinq.engines.incremental.compiled.tables.deltas import write_delta
from wpinq.engines.incremental.compiled.tables.design import Consumer, Delta, Design
from wpinq.engines.incremental.compiled.tables.process import entries, process_all, process_step
from wpinq.engines.incremental.compiled.tables.step_routines import (
    group_routine,
    map_routine,
    shave_routine,
    write_emission,
)
from wpinq.engines.incremental.compiled.words.code import Writer
from wpinq.engines.incremental.compiled.words.encoding import width
from wpinq.engines.incremental.compiled.words.memo import Memo


class ExtraLoops(Protocol):
    """Entry points that a module has besides its own."""

    @property
    def source(self) -> str:
        """The source that they change."""

    def routines(self, kept: HashTable, moved: HashTable, outputs: list[HashTable], process: Routine) -> list[Routine]:
        """The routines, given the source's table and that of its changes, the changes of outputs, and what follows."""


@dataclass
class Generated:
    """The text of a module and what must be known to drive it."""

    text: str
    tables: HashTables
    sources: dict[str, tuple[int, HashTable, HashTable]]
    outputs: list[HashTable]
    changes: list[HashTable]
    memos: list[tuple[Memo, HashTable, HashTable]]


def generate(steps: Steps, assumptions: Assumptions, extra: ExtraLoops | None) -> Generated:
    """The module of some steps under assumptions."""
    design = Design(steps, assumptions)
    needs = _Needs(design)
    for step in steps.all:
        if isinstance(step, SourceStep):
            needs.table(step)
    for number, root in enumerate(steps.roots):
        kept = design.tables.add(f"OUT_{number}", root.width, 3, logged=True)
        moved = design.tables.add(f"MOVED_{number}", root.width, 2, logged=False)
        design.outputs.append((kept, moved))
        needs.stream(root, moved.gather)
    for delta in design.deltas:
        write_delta(delta, design)
    for step in design.consumers:
        write_emission(design, step)
    for step in steps.all:
        process_step(design, step)
    memos = [(memo, *_memo_tables(design, memo)) for memo in steps.dictionary.memos.values()]
    process = process_all(design, memos)
    more: list[Routine] = []
    sources = {step.source: (step.number, *design.held[step]) for step in steps.all if isinstance(step, SourceStep)}
    outputs, changes = [kept for kept, _ in design.outputs], [moved for _, moved in design.outputs]
    if extra is not None:
        _, kept, moved = sources[extra.source]
        more = extra.routines(kept, moved, changes, process)
    entries(design, process, memos)
    constants = {**CONSTANTS, **{table.name: table.header for table in design.tables.all}}
    text = module_text([*design.routines, *more], constants)
    return Generated(text, design.tables, sources, outputs, changes, memos)


def _memo_tables(design: Design, memo: Memo) -> tuple[HashTable, HashTable]:
    if memo.member is not None:
        design.tables.add(memo.members, width(memo.member), 2, logged=False)
    kept = design.tables.add(memo.table, memo.key_width, width(memo.value), logged=True)
    return kept, design.tables.add(memo.missing, memo.missing_width, 2, logged=False)


def _key_words(key: tuple[int, ...], writer: Writer, names: dict[int, str]) -> list[str]:
    return [names[variable] for variable in key]


class _Needs:
    """Which tables a module needs, and who takes the changes of whom."""

    def __init__(self, design: Design) -> None:
        self._design = design

    def table(self, step: Step) -> HashTable:
        """The table that holds a step's output."""
        design = self._design
        if step not in design.held:
            kept = design.tables.add(f"T_{step.number}", step.width, 1, logged=True)
            moved = design.tables.add(f"D_{step.number}", step.width, 2, logged=False)
            design.held[step] = kept, moved
            if not isinstance(step, SourceStep):
                self.stream(step, moved.gather)
        return design.held[step][0]

    def stream(self, step: Step, consumer: Consumer) -> None:
        """Have a step's changes passed to a consumer."""
        design = self._design
        known = step in design.consumers
        design.consumers.setdefault(step, []).append(consumer)
        if known:
            return
        emission = design.emission(step)
        if isinstance(step, MapStep):
            self.stream(step.inputs[0], partial(_called, map_routine(design, step)))
        elif isinstance(step, SumStep):
            for below, coefficient in zip(step.inputs, step.coefficients, strict=True):
                self.stream(below, partial(_scaled, emission, coefficient))
        elif isinstance(step, ShaveStep):
            self.table(step.inputs[0])
            design.shaves.setdefault(step.inputs[0], []).append(shave_routine(design, step))
        elif isinstance(step, GroupStep):
            table = self.table(step.inputs[0])
            touched = design.tables.add(f"K_{step.number}", len(step.key), 2, logged=False)
            held = step, touched, group_routine(design, step, table)
            design.groups.setdefault(step.inputs[0], []).append(held)
        elif isinstance(step, (JoinStep, ExtremeStep)):
            self._root(step)

    def _root(self, step: JoinStep | ExtremeStep) -> None:
        consumer = partial(_called, self._design.emission(step))
        self._delta(*self._design.expander.root(step), consumer, "new_value - old_value", None)

    def _norm(self, join: JoinStep) -> None:
        """The table of a join's norms."""
        design = self._design
        if join in design.norms:
            return
        size = len(join.keys[0])
        kept = design.tables.add(f"N_{join.number}", size, 1, logged=True)
        moved = design.tables.add(f"DN_{join.number}", size, 2, logged=False)
        design.norms[join] = kept, moved
        for side in (0, 1):
            formula, key = design.expander.side(join, side)
            words = partial(_key_words, key)
            self._delta(formula, words, moved.gather, "abs(new_value) - abs(old_value)", key)

    def _delta(
        self, formula: Formula, words: NamedWords, consumer: Consumer, change: str, key: tuple[int, ...] | None
    ) -> None:
        lookups = tuple(dict.fromkeys(lookups_of(formula)))
        for lookup in lookups:
            if isinstance(lookup, Atom):
                self.table(lookup.step)
            else:
                self._norm(lookup.step)
        deltas = self._design.deltas
        deltas.append(Delta(len(deltas), formula, lookups, words, consumer, change, key))


def _called(routine: Routine, words: list[str], weight: str) -> str:
    return call(routine, *words, weight)


def _scaled(routine: Routine, coefficient: int, words: list[str], weight: str) -> str:
    return call(routine, *words, f"{coefficient}.0 * ({weight})")
