"""The text of the functions that apply gathered changes, table by table, and of the entry points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from wpinq.engines.incremental.compiled import runtime
from wpinq.engines.incremental.compiled.code import Writer
from wpinq.engines.incremental.compiled.columns import width
from wpinq.engines.incremental.compiled.formulas import Atom, Norm
from wpinq.engines.incremental.compiled.functions import function, insertion, numbered, removal
from wpinq.engines.incremental.compiled.steps import GroupStep, JoinStep, SourceStep, Step
from wpinq.engines.incremental.compiled.tables import Table
from wpinq.engines.incremental.compiled.walk import loop

if TYPE_CHECKING:
    from wpinq.engines.incremental.compiled.generate import Generator


def processing(generator: Generator, step: Step) -> list[str]:
    made = []
    if isinstance(step, JoinStep) and step in generator.norms:
        made.append(process_norm(generator, step))
    if step in generator.held:
        kept, _ = generator.held[step]
        made += [insertion(kept), removal(kept), process_table(generator, step)]
    return made


def process_table(generator: Generator, step: Step) -> str:
    (kept, moved), writer = generator.held[step], generator.writer()
    line, size = writer.line, step.width
    words = numbered("x", size)
    record = ", ".join(words)
    line(f"n = load(A, {moved.name} + COUNT)")
    with writer.block("if n == 0:"):
        line("return")
    groups = generator.groups.get(step, [])
    for group, touched in groups:
        with writer.block("for m in range(1, 1 + n):"):
            line(f"base = row_at(A, {moved.name}, m)")
            with writer.block(f"if abs(as_float(load(A, base + {size}))) >= DUST:"):
                keys = ", ".join(f"load(A, base + {i})" for i in group.key)
                line(f"gather_{touched.width}(A, {touched.name}, {keys}, 1.0)")
        regroup(generator, writer, group, touched, -1)
    with writer.block("for m in range(1, 1 + n):"):
        with writer.block("if load(A, STATUS) != 0:"):
            line("break")
        change(writer, kept, moved, words)
        if isinstance(step, SourceStep):
            check_source(generator, writer)
        with writer.block("if row == 0:"):
            with writer.block("if new == 0.0:"):
                line("continue")
            line(f"row = insert_{kept.name}(A, {record}, new)")
        calls(generator, writer, Atom, step, record)
        for shave in generator.shaves.get(step, []):
            line(f"shave_{shave.number}(A, {record}, old, new)")
        if isinstance(step, SourceStep) and step in generator.streams:
            line(f"emit_{step.number}(A, {record}, new - old)")
        with writer.block("if new == 0.0:"):
            line(f"remove_{kept.name}(A, {record}, row)")
        with writer.block("else:"):
            line(f"put(A, row_at(A, {kept.name}, row) + {size}, as_word(new))")
    for group, touched in groups:
        regroup(generator, writer, group, touched, 1)
        line(f"clear(A, {touched.name})")
    line(f"clear(A, {moved.name})")
    return function(f"process_{kept.name}", [], writer.lines)


def change(writer: Writer, kept: Table, moved: Table, words: Sequence[str]) -> None:
    """Read change m of a table: the record, its row if it has one, and its weight before and after."""
    line, size = writer.line, len(words)
    line(f"base = row_at(A, {moved.name}, m)")
    line(f"change = as_float(load(A, base + {size}))")
    with writer.block("if abs(change) < DUST:"):
        line("continue")
    for i, word in enumerate(words):
        line(f"{word} = load(A, base + {i})")
    line(f"row = find_{size}(A, {kept.name}, {', '.join(words)})")
    line(f"old = 0.0 if row == 0 else as_float(load(A, row_at(A, {kept.name}, row) + {size}))")
    line("new = settle(old + change)")


def check_source(generator: Generator, writer: Writer) -> None:
    checks = []
    if generator.assumptions.unit:
        checks.append(("new != 0.0 and new != 1.0", "NOT_UNIT"))
    elif generator.assumptions.nonnegative:
        checks.append(("new < 0.0", "NEGATIVE"))
    for check, status in checks:
        with writer.block(f"if {check}:"):
            with writer.block("if load(A, STATUS) == 0:"):
                writer.line(f"save(A, STATUS, {status})")
            writer.line("break")


def regroup(generator: Generator, writer: Writer, group: GroupStep, touched: Table, sign: int) -> None:
    with writer.block(f"for m in range(1, 1 + load(A, {touched.name} + COUNT)):"):
        writer.line(f"base = row_at(A, {touched.name}, m)")
        keys = ", ".join(f"load(A, base + {i})" for i in range(touched.width))
        writer.line(f"group_{group.number}(A, {keys}, {sign}.0)")


def calls(generator: Generator, writer: Writer, kind: type, step: Step, record: str) -> None:
    """Call every formula that looks an entry up, once for each place where it does."""
    for island in generator.islands:
        for place in island.leaders:
            entry = island.entries[place]
            mine = entry.step if isinstance(entry, Atom) else entry.join
            if isinstance(entry, kind) and mine is step:
                writer.line(f"island_{island.number}_{place}(A, {record}, old, new)")


def process_norm(generator: Generator, join: JoinStep) -> str:
    (kept, moved), writer = generator.norms[join], generator.writer()
    line, size = writer.line, kept.width
    words = numbered("x", size)
    record = ", ".join(words)
    line(f"n = load(A, {moved.name} + COUNT)")
    with writer.block("for m in range(1, 1 + n):"):
        with writer.block("if load(A, STATUS) != 0:"):
            line("break")
        change(writer, kept, moved, words)
        with writer.block("if old > 0.0 and new * new > GROWTH * old * max(1.0, new) and load(A, UNCHECKED) == 0:"):
            with writer.block("if load(A, STATUS) == 0:"):
                line("save(A, STATUS, UNSTEADY)")
            line("break")
        with writer.block("if row == 0:"):
            with writer.block("if new == 0.0:"):
                line("continue")
            line(f"row = insert_{size}(A, {kept.name}, {record})")
        calls(generator, writer, Norm, join, record)
        with writer.block("if new == 0.0:"):
            line(f"remove(A, {kept.name}, hash_{size}({record}), row)")
        with writer.block("else:"):
            line(f"put(A, row_at(A, {kept.name}, row) + {size}, as_word(new))")
    line(f"clear(A, {moved.name})")
    return function(f"process_{kept.name}", [], writer.lines)


def whole(generator: Generator) -> str:
    writer = generator.writer()
    for step in generator.steps.all:
        if isinstance(step, JoinStep) and step in generator.norms:
            writer.line(f"process_{generator.norms[step][0].name}(A)")
        if step in generator.held:
            writer.line(f"process_{generator.held[step][0].name}(A)")
    for number, (kept, moved) in enumerate(generator.outputs):
        process_output(generator, writer, number, kept, moved)
    if generator.functions:
        with writer.block("if load(A, MISSED) != 0:"):
            writer.line("save(A, MISSED, 0)")
            with writer.block("if load(A, STATUS) == 0:"):
                writer.line("save(A, STATUS, MISSING)")
    with writer.block("if load(A, STATUS) != 0:"):
        for table in generator.tables.all:
            if not table.logged and not table.name.startswith("MISS_"):
                writer.line(f"clear(A, {table.name})")
    return function("process", [], writer.lines)


def process_output(generator: Generator, writer: Writer, number: int, kept: Table, moved: Table) -> None:
    line, size = writer.line, kept.width
    words = numbered("x", size)
    record = ", ".join(words)
    at = runtime.PARAMETERS + runtime.PARAMETERS_EACH * number
    with writer.block(f"for m in range(1, 1 + load(A, {moved.name} + COUNT)):"):
        line(f"base = row_at(A, {moved.name}, m)")
        for i, word in enumerate(words):
            line(f"{word}_{number} = load(A, base + {i})")
        record = ", ".join(f"{word}_{number}" for word in words)
        line(f"change = as_float(load(A, base + {size}))")
        line(f"row = find_{size}(A, {kept.name}, {record})")
        with writer.block("if row == 0:"):
            with writer.block("if settle(change) == 0.0:"):
                line("continue")
            line(f"row = insert_{size}(A, {kept.name}, {record})")
            with writer.block("if row == 0:"):
                line("break")
            line(f"at = row_at(A, {kept.name}, row) + {size}")
            line("put(A, at, 0)")
            line("put(A, at + 1, 0)")
            line("put(A, at + 2, 0)")
        line(f"at = row_at(A, {kept.name}, row) + {size}")
        line("old, target, pinned = as_float(load(A, at)), as_float(load(A, at + 1)), load(A, at + 2)")
        line("new = settle(old + change)")
        line(f"price, rounding = as_float(load(A, {at} + (1 - pinned))), as_float(load(A, {at} + 2))")
        line("moved = price * (loss(new - target, rounding) - loss(old - target, rounding))")
        line("put(A, SCORE, as_word(as_float(load(A, SCORE)) + moved))")
        with writer.block("if new == 0.0 and pinned == 0:"):
            line(f"remove(A, {kept.name}, hash_{size}({record}), row)")
        with writer.block("else:"):
            line("put(A, at, as_word(new))")


def entries(generator: Generator) -> list[str]:
    writer = generator.writer()
    line = writer.line
    for _, moved in generator.outputs:
        line(f"clear(A, {moved.name})")
    with writer.block("for i in range(len(weights)):"):
        for step in generator.steps.all:
            if isinstance(step, SourceStep):
                words = ", ".join(f"words[i, {j}]" for j in range(step.width))
                with writer.block(f"if which[i] == {step.number}:"):
                    line(f"gather_{step.width}(A, {generator.held[step][1].name}, {words}, weights[i])")
    line("process(A)")
    propose = function("propose", ["which", "words", "weights"], writer.lines)
    entries = [propose, function("rollback", ["mark"], ["    undo(A, mark)"]), pin(generator), *learning(generator)]
    for step, (kept, moved) in generator.held.items():
        walk = generator.walk
        if walk is not None and isinstance(step, SourceStep) and step.source == walk.source:
            entries += loop(walk.swaps, kept, moved, [moved for _, moved in generator.outputs])
    return entries


def pin(generator: Generator) -> str:
    writer = generator.writer()
    line = writer.line
    with writer.block("for i in range(len(targets)):"):
        for number, (kept, _) in enumerate(generator.outputs):
            with writer.block(f"if which == {number}:"):
                words = ", ".join(f"words[i, {j}]" for j in range(kept.width))
                line(f"row = find_{kept.width}(A, {kept.name}, {words})")
                with writer.block("if row == 0:"):
                    line(f"row = insert_{kept.width}(A, {kept.name}, {words})")
                    with writer.block("if row == 0:"):
                        line("return")
                    line(f"put(A, row_at(A, {kept.name}, row) + {kept.width}, 0)")
                line(f"at = row_at(A, {kept.name}, row) + {kept.width}")
                line("put(A, at + 1, as_word(targets[i]))")
                line("put(A, at + 2, 1)")
    return function("pin", ["which", "words", "targets"], writer.lines)


def learning(generator: Generator) -> list[str]:
    """The functions that take in what Python computed, and forget what was missing."""
    if not generator.functions:
        return []
    writer = generator.writer()
    line = writer.line
    with writer.block("for i in range(len(words)):"):
        for held in generator.functions:
            size, more = held.key_width, width(held.value)
            key = ", ".join(f"words[i, {j}]" for j in range(size))
            with writer.block(f"if which == {held.number} and find_{size}(A, MEMO_{held.number}, {key}) == 0:"):
                line(f"row = insert_{size}(A, MEMO_{held.number}, {key})")
                with writer.block("if row == 0:"):
                    line("return")
                for j in range(more):
                    line(f"save(A, row_at(A, MEMO_{held.number}, row) + {size + j}, results[i, {j}])")
    forget = [f"    clear(A, MISS_{held.number})" for held in generator.functions]
    return [function("remember", ["which", "words", "results"], writer.lines), function("forget", [], forget)]
