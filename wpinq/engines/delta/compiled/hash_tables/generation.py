"""The module of one set of plans.

A proposal gathers the changes of the sources. Then every table, inputs before users, applies its gathered changes one
record at a time. For each, the change of every formula that looks the record up is passed on, and gathered in turn.
A formula's change under a sequence of single changes adds up to its change under all of them, in whatever order. So
norms stay as they were while records change, and change after them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from wpinq.engines.delta.compiled import hash_table as layout, routine as rt, steps as st
from wpinq.engines.delta.compiled.expressions import Memo
from wpinq.engines.delta.compiled.formulas import Assumptions, Atom, Formula, NamedWords, lookups_of
from wpinq.engines.delta.compiled.hash_tables import deltas
from wpinq.engines.delta.compiled.hash_tables.arena import Consumer, Delta, Design, HashTable
from wpinq.engines.delta.compiled.values import Writer, width
from wpinq.engines.delta.evaluator import loss

#: Makes entry points that a module of one source has besides its own: from the source's table and that of its changes,
#: the changes of outputs, and the routine that applies changes.
ExtraLoops = Callable[[HashTable, HashTable, Sequence[HashTable], rt.Routine], list[rt.Routine]]


def generate(steps: st.Steps, assumptions: Assumptions, extra: ExtraLoops | None) -> Design:
    """The module of some steps under assumptions."""
    design = Design(steps, assumptions)
    for step in steps.all:
        if isinstance(step, st.SourceStep):
            _table(design, step)
            design.sources[step.source] = step.number, *design.held[step]
    for number, root in enumerate(steps.roots):
        kept = design.tables.add(f"OUT_{number}", root.width, 3, logged=True)
        moved = design.tables.add(f"MOVED_{number}", root.width, 2, logged=False)
        design.outputs.append((kept, moved))
        _stream(design, root, moved.gather)
    for delta in design.deltas:
        deltas.write_delta(delta, design)
    for step in design.consumers:
        deltas.write_emission(design, step)
    for step in steps.all:
        if isinstance(step, st.JoinStep) and step in design.norms:
            _process_norm(design, step)
        if step in design.held:
            _process_table(design, step)
    design.memos = [(memo, *_memo_tables(design, memo)) for memo in steps.dictionary.memos.values()]
    process = _process_all(design)
    more: list[rt.Routine] = []
    if extra is not None:
        ((_, kept, moved),) = design.sources.values()
        more = extra(kept, moved, [moved for _, moved in design.outputs], process)
    _entries(design, process)
    constants = {**layout.CONSTANTS, **{table.name: table.header for table in design.tables.all}}
    design.text = rt.module_text([*design.routines, *more], constants)
    return design


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
        _stream(design, step.inputs[0], partial(_called, deltas.map_routine(design, step)))
    elif isinstance(step, st.SumStep):
        for below, coefficient in zip(step.inputs, step.coefficients, strict=True):
            _stream(design, below, partial(_scaled, emission, coefficient))
    elif isinstance(step, st.ShaveStep):
        _table(design, step.inputs[0])
        design.shaves.setdefault(step.inputs[0], []).append(deltas.shave_routine(design, step))
    elif isinstance(step, st.GroupStep):
        table = _table(design, step.inputs[0])
        touched = design.tables.add(f"K_{step.number}", len(step.key), 2, logged=False)
        held = step, touched, deltas.group_routine(design, step, table)
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


def _called(routine: rt.Routine, words: list[str], weight: str) -> str:
    return rt.call(routine, *words, weight)


def _scaled(routine: rt.Routine, coefficient: int, words: list[str], weight: str) -> str:
    return rt.call(routine, *words, f"{coefficient}.0 * ({weight})")


# --- the routines that apply gathered changes, table by table, and the entry points ----------------------------------


def _process_all(design: Design) -> rt.Routine:
    """The routine that applies all changes, inputs before users."""
    writer = design.writer()
    writer.line(*map(rt.call, design.processes))
    for number in range(len(design.outputs)):
        _process_output(design, writer, number)
    if design.memos:
        with writer.block("if load(state, MISSED) != 0:"):
            writer.line("save(state, MISSED, 0)", *_status("MISSING"))
    missing = [table for _, _, table in design.memos]
    gathered = [table for table in design.tables.all if not table.logged and table not in missing]
    writer.when("load(state, STATUS) != 0", *(table.clear() for table in gathered))
    return design.routine("process", writer.lines)


def _status(status: str) -> tuple[str, str]:
    return "if load(state, STATUS) == 0:", f"    save(state, STATUS, {status})"


def _put(table: HashTable, row: str, value: str) -> str:
    return rt.call(layout.put, table.after(row), value)


def _insertion(design: Design, table: HashTable) -> rt.Routine:
    """Put a record into a table and its indexes."""
    words, writer = layout.words_of("x", table.width), design.writer()
    writer.line(f"row = {table.insert(words)}")
    writer.when("row == 0", "return 0")
    writer.line(_put(table, "row", "as_word(new)"))
    for columns, index, at in table.indexes:
        key = [words[i] for i in columns]
        writer.line(f"entry = {index.find(key)}")
        with writer.block("if entry == 0:"):
            writer.line(f"entry = {index.insert(key)}")
            writer.when("entry == 0", "return 0")
            writer.line(_put(index, "entry", "0"))
        writer.line(rt.call(layout.link, table.name, "row", str(at), index.name, "entry", str(index.width)))
    writer.line("return row")
    return design.routine(f"insert_{table.name}", writer.lines, words, {"new": rt.FLOAT64}, rt.INT64)


def _removal(design: Design, table: HashTable) -> rt.Routine:
    """Take a record out of a table and its indexes."""
    words, writer = layout.words_of("x", table.width), design.writer()
    for columns, index, at in table.indexes:
        key = [words[i] for i in columns]
        writer.line(f"entry = {index.find(key)}")
        unlinked = rt.call(layout.unlink, table.name, "row", str(at), index.name, "entry", str(index.width))
        writer.when(unlinked, index.remove(key, "entry"))
    writer.line(table.remove(words, "row"))
    return design.routine(f"remove_{table.name}", writer.lines, words, {"row": rt.INT64})


def _process_table(design: Design, step: st.Step) -> None:
    (kept, moved), writer, size = design.held[step], design.writer(), step.width
    insertion, removal = _insertion(design, kept), _removal(design, kept)
    line, words = writer.line, layout.words_of("x", size)
    line(f"n = load(state, {moved.name} + COUNT)")
    writer.when("n == 0", "return")
    groups = design.groups.get(step, [])
    for group, touched, routine in groups:
        with writer.block("for m in range(1, 1 + n):"):
            line(f"base = {moved.row('m')}")
            keys = [f"load(state, base + {i})" for i in group.key]
            writer.when(f"abs(as_float(load(state, base + {size}))) >= DUST", touched.gather(keys, "1.0"))
        _regroup(writer, touched, routine, -1)
    with writer.block("for m in range(1, 1 + n):"):
        _read_change(writer, kept, moved, words)
        if isinstance(step, st.SourceStep):
            _check_source(design, writer)
        _find_row(writer, rt.call(insertion, *words, "new"))
        _call_deltas(design, writer, kept, words)
        line(*(rt.call(shave, *words, "old", "new") for shave in design.shaves.get(step, [])))
        if isinstance(step, st.SourceStep) and step in design.consumers:
            line(rt.call(design.emission(step), *words, "new - old"))
        _write_change(writer, kept, rt.call(removal, *words, "row"))
    for _, touched, routine in groups:
        _regroup(writer, touched, routine, 1)
        line(touched.clear())
    line(moved.clear())
    design.processes.append(design.routine(f"process_{kept.name}", writer.lines))


def _process_norm(design: Design, join: st.JoinStep) -> None:
    (kept, moved), writer = design.norms[join], design.writer()
    words = layout.words_of("x", kept.width)
    writer.line(f"n = load(state, {moved.name} + COUNT)")
    with writer.block("for m in range(1, 1 + n):"):
        _read_change(writer, kept, moved, words)
        grown = "old > 0.0 and new * new > GROWTH * old * max(1.0, new) and load(state, UNCHECKED) == 0"
        writer.when(grown, *_status("UNSTEADY"), "break")
        _find_row(writer, kept.insert(words))
        _call_deltas(design, writer, kept, words)
        _write_change(writer, kept, kept.remove(words, "row"))
    writer.line(moved.clear())
    design.processes.append(design.routine(f"process_{kept.name}", writer.lines))


def _read_change(writer: Writer, kept: HashTable, moved: HashTable, words: Sequence[str]) -> None:
    """Read change m of a table: the record, its row if any, and its weight before and after."""
    writer.when("load(state, STATUS) != 0", "break")
    writer.line(f"base = {moved.row('m')}", f"change = as_float(load(state, base + {kept.width}))")
    writer.when("abs(change) < DUST", "continue")
    writer.line(*(f"{word} = load(state, base + {i})" for i, word in enumerate(words)))
    writer.line(f"row = {kept.find(words)}")
    writer.line(f"old = 0.0 if row == 0 else as_float(load(state, {kept.after('row')}))")
    writer.line(f"new = {rt.call(layout.settle, 'old + change')}")


def _find_row(writer: Writer, inserted: str) -> None:
    with writer.block("if row == 0:"):
        writer.when("new == 0.0", "continue")
        writer.line(f"row = {inserted}")


def _write_change(writer: Writer, kept: HashTable, removed: str) -> None:
    writer.when("new == 0.0", removed)
    writer.line("else:", f"    {_put(kept, 'row', 'as_word(new)')}")


def _check_source(design: Design, writer: Writer) -> None:
    if design.assumptions.unit:
        writer.when("new != 0.0 and new != 1.0", *_status("NOT_UNIT"), "break")
    elif design.assumptions.nonnegative:
        writer.when("new < 0.0", *_status("NEGATIVE"), "break")


def _regroup(writer: Writer, touched: HashTable, group: rt.Routine, sign: int) -> None:
    with writer.block(f"for m in range(1, 1 + load(state, {touched.name} + COUNT)):"):
        keys = [f"load(state, base + {i})" for i in range(touched.width)]
        writer.line(f"base = {touched.row('m')}", rt.call(group, *keys, f"{sign}.0"))


def _call_deltas(design: Design, writer: Writer, table: HashTable, words: Sequence[str]) -> None:
    """Call the delta of every formula that looks up a table, once for each place where it does."""
    for delta in design.deltas:
        for place, routine in delta.routines.items():
            if design.table_of(delta.lookups[place]) is table:
                writer.line(rt.call(routine, *words, "old", "new"))


def _process_output(design: Design, writer: Writer, number: int) -> None:
    kept, moved = design.outputs[number]
    line, size = writer.line, kept.width
    words = [f"{word}_{number}" for word in layout.words_of("x", size)]
    at = layout.PARAMETERS + layout.PARAMETERS_EACH * number
    with writer.block(f"for m in range(1, 1 + load(state, {moved.name} + COUNT)):"):
        line(f"base = {moved.row('m')}", *(f"{word} = load(state, base + {i})" for i, word in enumerate(words)))
        line(f"change = as_float(load(state, base + {size}))", f"row = {kept.find(words)}")
        with writer.block("if row == 0:"):
            writer.when(f"{rt.call(layout.settle, 'change')} == 0.0", "continue")
            line(f"row = {kept.insert(words)}")
            writer.when("row == 0", "break")
            line(f"at = {kept.after('row')}", *(rt.call(layout.put, cell, "0") for cell in ("at", "at + 1", "at + 2")))
        line(f"at = {kept.after('row')}")
        line("old, target, pinned = as_float(load(state, at)), as_float(load(state, at + 1)), load(state, at + 2)")
        line(f"new = {rt.call(layout.settle, 'old + change')}")
        line(f"price, rounding = as_float(load(state, {at} + (1 - pinned))), as_float(load(state, {at} + 2))")
        losses = [rt.call(loss, f"{weight} - target", "rounding") for weight in ("new", "old")]
        line(f"moved = price * ({' - '.join(losses)})")
        line(rt.call(layout.put, "SCORE", "as_word(as_float(load(state, SCORE)) + moved)"))
        writer.when("new == 0.0 and pinned == 0", kept.remove(words, "row"))
        line("else:", f"    {rt.call(layout.put, 'at', 'as_word(new)')}")


def _entries(design: Design, process: rt.Routine) -> None:
    """Write the entry points."""
    _propose(design, process)
    design.routine("rollback", [f"    {rt.call(layout.undo, 'mark')}"], more={"mark": rt.INT64}, entry=True)
    _pin(design)
    if design.memos:
        _learn(design)
        forgotten = [f"    {missing.clear()}" for _, _, missing in design.memos]
        design.routine("forget", forgotten, entry=True)


def _row_words(size: int) -> list[str]:
    return [f"words[i, {j}]" for j in range(size)]


def _propose(design: Design, process: rt.Routine) -> None:
    """Make changes of the sources."""
    writer = design.writer()
    writer.line(*(moved.clear() for _, moved in design.outputs))
    with writer.block("for i in range(len(weights)):"):
        for step in design.steps.all:
            if isinstance(step, st.SourceStep):
                gathered = design.held[step][1].gather(_row_words(step.width), "weights[i]")
                writer.when(f"which[i] == {step.number}", gathered)
    writer.line(rt.call(process))
    arguments = {"which": rt.INT64S, "words": rt.INT64_ROWS, "weights": rt.FLOAT64S}
    design.routine("propose", writer.lines, more=arguments, entry=True)


def _pin(design: Design) -> None:
    """Give records of an output their targets."""
    writer = design.writer()
    with writer.block("for i in range(len(targets)):"):
        for number, (kept, _) in enumerate(design.outputs):
            with writer.block(f"if which == {number}:"):
                words = _row_words(kept.width)
                writer.line(f"row = {kept.find(words)}")
                with writer.block("if row == 0:"):
                    writer.line(f"row = {kept.insert(words)}")
                    writer.when("row == 0", "return")
                    writer.line(_put(kept, "row", "0"))
                writer.line(f"at = {kept.after('row')}", rt.call(layout.put, "at + 1", "as_word(targets[i])"))
                writer.line(rt.call(layout.put, "at + 2", "1"))
    arguments = {"which": rt.INT64, "words": rt.INT64_ROWS, "targets": rt.FLOAT64S}
    design.routine("pin", writer.lines, more=arguments, entry=True)


def _learn(design: Design) -> None:
    """Take in what Python computed."""
    writer = design.writer()
    with writer.block("for i in range(len(words)):"):
        for memo, kept, _ in design.memos:
            key = _row_words(kept.width)
            with writer.block(f"if which == {memo.number} and {kept.find(key)} == 0:"):
                writer.line(f"row = {kept.insert(key)}")
                writer.when("row == 0", "return")
                for j in range(width(memo.value)):
                    writer.line(f"save(state, {kept.after('row')} + {j}, results[i, {j}])")
    arguments = {"which": rt.INT64, "words": rt.INT64_ROWS, "results": rt.INT64_ROWS}
    design.routine("learn", writer.lines, more=arguments, entry=True)
