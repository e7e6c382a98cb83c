"""The module of one set of plans.

A proposal gathers the changes of the sources. Then every table, inputs before users, applies its gathered changes one
record at a time. For each, the change of every formula that looks the record up is passed on, and gathered in turn.
A formula's change under a sequence of single changes adds up to its change under all of them, in whatever order. So
norms stay as they were while records change, and change after them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from wpinq.engines.delta.compiled import hash_table as layout
from wpinq.engines.delta.compiled import steps as st
from wpinq.engines.delta.compiled.expressions import Memo
from wpinq.engines.delta.compiled.formulas import Assumptions, Atom, Formula, NamedWords, lookups_of
from wpinq.engines.delta.compiled.hash_tables import process as pr
from wpinq.engines.delta.compiled.hash_tables.arena import Consumer, Delta, Design, HashTable, HashTables
from wpinq.engines.delta.compiled.hash_tables.deltas import write_delta
from wpinq.engines.delta.compiled.routine import Routine, call, module_text
from wpinq.engines.delta.compiled.values import Writer, width

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
