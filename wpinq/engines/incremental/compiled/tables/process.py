"""The routines that apply gathered changes, table by table, and the entry points."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wpinq.engines.incremental.compiled.routines.header import PARAMETERS, PARAMETERS_EACH
from wpinq.engines.incremental.compiled.routines.routine import (
    FLOAT64,
    FLOAT64S,
    INT64,
    INT64_ROWS,
    INT64S,
    Routine,
    call,
)
from wpinq.engines.incremental.compiled.routines.store import (
    clear,
    finding,
    gathering,
    hashing,
    inserting,
    link,
    put,
    remove,
    row_at,
    settle,
    undo,
    unlink,
    words_of,
)
from wpinq.engines.incremental.compiled.steps.steps import JoinStep, SourceStep, Step
from wpinq.engines.incremental.compiled.tables.arena import HashTable
from wpinq.engines.incremental.compiled.tables.design import Design
from wpinq.engines.incremental.compiled.words.code import Writer
from wpinq.engines.incremental.compiled.words.encoding import width
from wpinq.engines.incremental.compiled.words.memo import Memo
from wpinq.engines.incremental.loss import loss

Memos = Sequence[tuple[Memo, HashTable, HashTable]]


def process_step(design: Design, step: Step) -> None:
    """Write what applies the changes of a step's norms and table."""
    if isinstance(step, JoinStep) and step in design.norms:
        _process_norm(design, step)
    if step in design.held:
        _process_table(design, step)


def process_all(design: Design, memos: Memos) -> Routine:
    """The routine that applies all changes, inputs before users."""
    writer = design.writer()
    for routine in design.processes:
        writer.line(call(routine))
    for number in range(len(design.outputs)):
        _process_output(design, writer, number)
    if memos:
        with writer.block("if load(state, MISSED) != 0:"):
            writer.line("save(state, MISSED, 0)")
            _set_status(writer, "MISSING")
    missing = [table for _, _, table in memos]
    with writer.block("if load(state, STATUS) != 0:"):
        for table in design.tables.all:
            if not table.logged and table not in missing:
                writer.line(call(clear, table.name))
    routine = design.routine("process")
    routine.lines = writer.lines
    return routine


def _process(design: Design, kept: HashTable, writer: Writer) -> None:
    routine = design.routine(f"process_{kept.name}")
    routine.lines = writer.lines
    design.processes.append(routine)


def _set_status(writer: Writer, status: str) -> None:
    with writer.block("if load(state, STATUS) == 0:"):
        writer.line(f"save(state, STATUS, {status})")


def _key(words: Sequence[str], columns: Iterable[int]) -> list[str]:
    return [words[i] for i in columns]


def _insertion(design: Design, table: HashTable) -> Routine:
    """Put a record into a table and its indexes."""
    words, writer = words_of("x", table.width), design.writer()
    line = writer.line
    line(f"row = {call(inserting(table.width), table.name, *words)}")
    with writer.block("if row == 0:"):
        line("return 0")
    line(call(put, f"{call(row_at, table.name, 'row')} + {table.width}", "as_word(new)"))
    for columns, index, at in table.indexes:
        key = _key(words, columns)
        line(f"entry = {call(finding(index.width), index.name, *key)}")
        with writer.block("if entry == 0:"):
            line(f"entry = {call(inserting(index.width), index.name, *key)}")
            with writer.block("if entry == 0:"):
                line("return 0")
            line(call(put, f"{call(row_at, index.name, 'entry')} + {index.width}", "0"))
        line(call(link, table.name, "row", str(at), index.name, "entry", str(index.width)))
    line("return row")
    routine = design.routine(f"insert_{table.name}", words, {"new": FLOAT64}, INT64)
    routine.lines = writer.lines
    return routine


def _removal(design: Design, table: HashTable) -> Routine:
    """Take a record out of a table and its indexes."""
    words, writer = words_of("x", table.width), design.writer()
    for columns, index, at in table.indexes:
        key = _key(words, columns)
        writer.line(f"entry = {call(finding(index.width), index.name, *key)}")
        unlinked = call(unlink, table.name, "row", str(at), index.name, "entry", str(index.width))
        with writer.block(f"if {unlinked}:"):
            writer.line(call(remove, index.name, call(hashing(index.width), *key), "entry"))
    writer.line(call(remove, table.name, call(hashing(table.width), *words), "row"))
    routine = design.routine(f"remove_{table.name}", words, {"row": INT64})
    routine.lines = writer.lines
    return routine


def _process_table(design: Design, step: Step) -> None:
    (kept, moved), writer, size = design.held[step], design.writer(), step.width
    insertion, removal = _insertion(design, kept), _removal(design, kept)
    line, words = writer.line, words_of("x", size)
    line(f"n = load(state, {moved.name} + COUNT)")
    with writer.block("if n == 0:"):
        line("return")
    groups = design.groups.get(step, [])
    for group, touched, routine in groups:
        with writer.block("for m in range(1, 1 + n):"):
            line(f"base = {call(row_at, moved.name, 'm')}")
            with writer.block(f"if abs(as_float(load(state, base + {size}))) >= DUST:"):
                keys = [f"load(state, base + {i})" for i in group.key]
                line(call(gathering(touched.width), touched.name, *keys, "1.0"))
        _regroup(writer, touched, routine, -1)
    with writer.block("for m in range(1, 1 + n):"):
        with writer.block("if load(state, STATUS) != 0:"):
            line("break")
        _read_change(writer, kept, moved, words)
        if isinstance(step, SourceStep):
            _check_source(design, writer)
        with writer.block("if row == 0:"):
            with writer.block("if new == 0.0:"):
                line("continue")
            line(f"row = {call(insertion, *words, 'new')}")
        _call_deltas(design, writer, kept, words)
        for shave in design.shaves.get(step, []):
            line(call(shave, *words, "old", "new"))
        if isinstance(step, SourceStep) and step in design.consumers:
            line(call(design.emission(step), *words, "new - old"))
        with writer.block("if new == 0.0:"):
            line(call(removal, *words, "row"))
        with writer.block("else:"):
            line(call(put, f"{call(row_at, kept.name, 'row')} + {size}", "as_word(new)"))
    for _, touched, routine in groups:
        _regroup(writer, touched, routine, 1)
        line(call(clear, touched.name))
    line(call(clear, moved.name))
    _process(design, kept, writer)


def _read_change(writer: Writer, kept: HashTable, moved: HashTable, words: Sequence[str]) -> None:
    """Read change m of a table: the record, its row if it has one, and its weight before and after."""
    line, size = writer.line, len(words)
    line(f"base = {call(row_at, moved.name, 'm')}")
    line(f"change = as_float(load(state, base + {size}))")
    with writer.block("if abs(change) < DUST:"):
        line("continue")
    for i, word in enumerate(words):
        line(f"{word} = load(state, base + {i})")
    line(f"row = {call(finding(size), kept.name, *words)}")
    line(f"old = 0.0 if row == 0 else as_float(load(state, {call(row_at, kept.name, 'row')} + {size}))")
    line(f"new = {call(settle, 'old + change')}")


def _check_source(design: Design, writer: Writer) -> None:
    if design.assumptions.unit:
        check, status = "new != 0.0 and new != 1.0", "NOT_UNIT"
    elif design.assumptions.nonnegative:
        check, status = "new < 0.0", "NEGATIVE"
    else:
        return
    with writer.block(f"if {check}:"):
        _set_status(writer, status)
        writer.line("break")


def _regroup(writer: Writer, touched: HashTable, group: Routine, sign: int) -> None:
    with writer.block(f"for m in range(1, 1 + load(state, {touched.name} + COUNT)):"):
        writer.line(f"base = {call(row_at, touched.name, 'm')}")
        keys = [f"load(state, base + {i})" for i in range(touched.width)]
        writer.line(call(group, *keys, f"{sign}.0"))


def _call_deltas(design: Design, writer: Writer, table: HashTable, words: Sequence[str]) -> None:
    """Call the delta of every formula that looks up a table, once for each place where it does."""
    for delta in design.deltas:
        for place, routine in delta.routines.items():
            if design.table_of(delta.lookups[place]) is table:
                writer.line(call(routine, *words, "old", "new"))


def _process_norm(design: Design, join: JoinStep) -> None:
    (kept, moved), writer = design.norms[join], design.writer()
    line, size = writer.line, kept.width
    words = words_of("x", size)
    line(f"n = load(state, {moved.name} + COUNT)")
    with writer.block("for m in range(1, 1 + n):"):
        with writer.block("if load(state, STATUS) != 0:"):
            line("break")
        _read_change(writer, kept, moved, words)
        with writer.block("if old > 0.0 and new * new > GROWTH * old * max(1.0, new) and load(state, UNCHECKED) == 0:"):
            _set_status(writer, "UNSTEADY")
            line("break")
        with writer.block("if row == 0:"):
            with writer.block("if new == 0.0:"):
                line("continue")
            line(f"row = {call(inserting(size), kept.name, *words)}")
        _call_deltas(design, writer, kept, words)
        with writer.block("if new == 0.0:"):
            line(call(remove, kept.name, call(hashing(size), *words), "row"))
        with writer.block("else:"):
            line(call(put, f"{call(row_at, kept.name, 'row')} + {size}", "as_word(new)"))
    line(call(clear, moved.name))
    _process(design, kept, writer)


def _process_output(design: Design, writer: Writer, number: int) -> None:
    kept, moved = design.outputs[number]
    line, size = writer.line, kept.width
    words = [f"{word}_{number}" for word in words_of("x", size)]
    at = PARAMETERS + PARAMETERS_EACH * number
    with writer.block(f"for m in range(1, 1 + load(state, {moved.name} + COUNT)):"):
        line(f"base = {call(row_at, moved.name, 'm')}")
        for i, word in enumerate(words):
            line(f"{word} = load(state, base + {i})")
        line(f"change = as_float(load(state, base + {size}))")
        line(f"row = {call(finding(size), kept.name, *words)}")
        with writer.block("if row == 0:"):
            with writer.block(f"if {call(settle, 'change')} == 0.0:"):
                line("continue")
            line(f"row = {call(inserting(size), kept.name, *words)}")
            with writer.block("if row == 0:"):
                line("break")
            line(f"at = {call(row_at, kept.name, 'row')} + {size}")
            for place in ("at", "at + 1", "at + 2"):
                line(call(put, place, "0"))
        line(f"at = {call(row_at, kept.name, 'row')} + {size}")
        line("old, target, pinned = as_float(load(state, at)), as_float(load(state, at + 1)), load(state, at + 2)")
        line(f"new = {call(settle, 'old + change')}")
        line(f"price, rounding = as_float(load(state, {at} + (1 - pinned))), as_float(load(state, {at} + 2))")
        losses = [call(loss, f"{weight} - target", "rounding") for weight in ("new", "old")]
        line(f"moved = price * ({' - '.join(losses)})")
        line(call(put, "SCORE", "as_word(as_float(load(state, SCORE)) + moved)"))
        with writer.block("if new == 0.0 and pinned == 0:"):
            line(call(remove, kept.name, call(hashing(size), *words), "row"))
        with writer.block("else:"):
            line(call(put, "at", "as_word(new)"))


def entries(design: Design, process: Routine, memos: Memos) -> None:
    """Write the entry points."""
    writer = design.writer()
    line = writer.line
    for _, moved in design.outputs:
        line(call(clear, moved.name))
    with writer.block("for i in range(len(weights)):"):
        for step in design.steps.all:
            if isinstance(step, SourceStep):
                words = _row_words(step.width)
                with writer.block(f"if which[i] == {step.number}:"):
                    line(call(gathering(step.width), design.held[step][1].name, *words, "weights[i]"))
    line(call(process))
    _entry(design, "propose", {"which": INT64S, "words": INT64_ROWS, "weights": FLOAT64S}, writer)
    writer = design.writer()
    writer.line(call(undo, "mark"))
    _entry(design, "rollback", {"mark": INT64}, writer)
    _pin(design)
    if memos:
        _remember(design, memos)


def _entry(design: Design, spelling: str, arguments: dict[str, str], writer: Writer) -> None:
    routine = design.routine(spelling, more=arguments)
    routine.lines, routine.entry = writer.lines, True


def _row_words(size: int) -> list[str]:
    return [f"words[i, {j}]" for j in range(size)]


def _pin(design: Design) -> None:
    """Give records of an output their targets."""
    writer = design.writer()
    line = writer.line
    with writer.block("for i in range(len(targets)):"):
        for number, (kept, _) in enumerate(design.outputs):
            with writer.block(f"if which == {number}:"):
                words = _row_words(kept.width)
                line(f"row = {call(finding(kept.width), kept.name, *words)}")
                with writer.block("if row == 0:"):
                    line(f"row = {call(inserting(kept.width), kept.name, *words)}")
                    with writer.block("if row == 0:"):
                        line("return")
                    line(call(put, f"{call(row_at, kept.name, 'row')} + {kept.width}", "0"))
                line(f"at = {call(row_at, kept.name, 'row')} + {kept.width}")
                line(call(put, "at + 1", "as_word(targets[i])"))
                line(call(put, "at + 2", "1"))
    _entry(design, "pin", {"which": INT64, "words": INT64_ROWS, "targets": FLOAT64S}, writer)


def _remember(design: Design, memos: Memos) -> None:
    """Take in what Python computed, and forget what was missing."""
    writer = design.writer()
    line = writer.line
    with writer.block("for i in range(len(words)):"):
        for memo, kept, _ in memos:
            size, key = kept.width, _row_words(kept.width)
            with writer.block(f"if which == {memo.number} and {call(finding(size), kept.name, *key)} == 0:"):
                line(f"row = {call(inserting(size), kept.name, *key)}")
                with writer.block("if row == 0:"):
                    line("return")
                for j in range(width(memo.value)):
                    line(f"save(state, {call(row_at, kept.name, 'row')} + {size + j}, results[i, {j}])")
    _entry(design, "remember", {"which": INT64, "words": INT64_ROWS, "results": INT64_ROWS}, writer)
    writer = design.writer()
    for _, _, missing in memos:
        writer.line(call(clear, missing.name))
    _entry(design, "forget", {}, writer)
