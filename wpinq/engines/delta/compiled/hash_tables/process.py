"""The routines that apply gathered changes, table by table, and the entry points."""

from __future__ import annotations

from collections.abc import Sequence

from wpinq.engines.delta.compiled import hash_table as layout
from wpinq.engines.delta.compiled import routine as rt
from wpinq.engines.delta.compiled.expressions import Memo
from wpinq.engines.delta.compiled.hash_tables.arena import Design, HashTable
from wpinq.engines.delta.compiled.steps import GroupStep, JoinStep, MapStep, ShaveStep, SourceStep, Step
from wpinq.engines.delta.compiled.values import Writer, width
from wpinq.engines.delta.evaluator import loss

Memos = Sequence[tuple[Memo, HashTable, HashTable]]


def process_step(design: Design, step: Step) -> None:
    """Write what applies the changes of a step's norms and table."""
    if isinstance(step, JoinStep) and step in design.norms:
        _process_norm(design, step)
    if step in design.held:
        _process_table(design, step)


def process_all(design: Design, memos: Memos) -> rt.Routine:
    """The routine that applies all changes, inputs before users."""
    writer = design.writer()
    writer.line(*map(rt.call, design.processes))
    for number in range(len(design.outputs)):
        _process_output(design, writer, number)
    if memos:
        with writer.block("if load(state, MISSED) != 0:"):
            writer.line("save(state, MISSED, 0)", *_status("MISSING"))
    missing = [table for _, _, table in memos]
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


def _process_table(design: Design, step: Step) -> None:
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
        if isinstance(step, SourceStep):
            _check_source(design, writer)
        _find_row(writer, rt.call(insertion, *words, "new"))
        _call_deltas(design, writer, kept, words)
        line(*(rt.call(shave, *words, "old", "new") for shave in design.shaves.get(step, [])))
        if isinstance(step, SourceStep) and step in design.consumers:
            line(rt.call(design.emission(step), *words, "new - old"))
        _write_change(writer, kept, rt.call(removal, *words, "row"))
    for _, touched, routine in groups:
        _regroup(writer, touched, routine, 1)
        line(touched.clear())
    line(moved.clear())
    design.processes.append(design.routine(f"process_{kept.name}", writer.lines))


def _process_norm(design: Design, join: JoinStep) -> None:
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


def entries(design: Design, process: rt.Routine, memos: Memos) -> None:
    """Write the entry points."""
    _propose(design, process)
    design.routine("rollback", [f"    {rt.call(layout.undo, 'mark')}"], more={"mark": rt.INT64}, entry=True)
    _pin(design)
    if memos:
        _learn(design, memos)
        forgotten = [f"    {missing.clear()}" for _, _, missing in memos]
        design.routine("forget", forgotten, entry=True)


def _row_words(size: int) -> list[str]:
    return [f"words[i, {j}]" for j in range(size)]


def _propose(design: Design, process: rt.Routine) -> None:
    """Make changes of the sources."""
    writer = design.writer()
    writer.line(*(moved.clear() for _, moved in design.outputs))
    with writer.block("for i in range(len(weights)):"):
        for step in design.steps.all:
            if isinstance(step, SourceStep):
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


def _learn(design: Design, memos: Memos) -> None:
    """Take in what Python computed."""
    writer = design.writer()
    with writer.block("for i in range(len(words)):"):
        for memo, kept, _ in memos:
            key = _row_words(kept.width)
            with writer.block(f"if which == {memo.number} and {kept.find(key)} == 0:"):
                writer.line(f"row = {kept.insert(key)}")
                writer.when("row == 0", "return")
                for j in range(width(memo.value)):
                    writer.line(f"save(state, {kept.after('row')} + {j}, results[i, {j}])")
    arguments = {"which": rt.INT64, "words": rt.INT64_ROWS, "results": rt.INT64_ROWS}
    design.routine("learn", writer.lines, more=arguments, entry=True)


# --- routines of single steps: the change of the output by a change of a record, or of a group ------------------------


def write_emission(design: Design, step: Step) -> None:
    """Pass a change of a step's output on to whoever takes it."""
    words = layout.words_of("c", step.width)
    lines = ["    if w == 0.0:", "        return"]
    lines += [f"    {consumer(words, 'w')}" for consumer in design.consumers[step]]
    design.emission(step).lines = lines


def map_routine(design: Design, step: MapStep) -> rt.Routine:
    """The outputs of a record whose weight changes by w."""
    if step.scratch is not None:
        design.tables.add(step.scratch, step.width, 2, logged=False)
    writer, words = design.writer(), layout.words_of("c", step.inputs[0].width)

    def sink(out: Sequence[str], weight: str) -> None:
        writer.line(rt.call(design.emission(step), *out, weight))

    if step.condition is not None:
        with writer.block(f"if {step.condition(writer, words)}:"):
            sink(words, "w")
    if step.loop is not None:
        step.loop(writer, words, "w", sink)
    for image in step.images:
        sink(image.words(writer, words), "w" if image.share == 1.0 else f"w * {image.share!r}")
    return design.routine(f"map_{step.number}", writer.lines, words, {"w": rt.FLOAT64})


def shave_routine(design: Design, step: ShaveStep) -> rt.Routine:
    """The pieces of a record whose weight changes from old to new."""
    writer, words = design.writer(), layout.words_of("c", step.inputs[0].width)
    line, emission = writer.line, design.emission(step)
    if step.loop is None:
        size = repr(float(step.constant))
        line("low, high = max(0.0, min(old, new)), max(0.0, old, new)")
        end = f"np.ceil(high / {size})" if step.limit is None else f"min(float({step.limit}), np.ceil(high / {size}))"
        with writer.block(f"for i in range(int(low / {size}), int({end})):"):
            line(f"before = min({size}, max(0.0, old - i * {size}))")
            line(f"after = min({size}, max(0.0, new - i * {size}))")
            line(rt.call(emission, *words, "i", "after - before"))
    else:
        line("old_left = max(0.0, old)", "new_left = max(0.0, new)")

        def piece(index: str, size: str) -> None:
            line(f"before = min({size}, old_left)")
            line(f"after = min({size}, new_left)")
            line("old_left -= before")
            line("new_left -= after")
            line(rt.call(emission, *words, index, "after - before"))

        step.loop(writer, words, piece)
    return design.routine(f"shave_{step.number}", writer.lines, words, {"old": rt.FLOAT64, "new": rt.FLOAT64})


def group_routine(design: Design, step: GroupStep, table: HashTable) -> rt.Routine:
    """The output for the group of a key as it is, of this sign."""
    index, at = design.tables.index(table, step.key)
    writer, keys, emission = design.writer(), layout.words_of("k", len(step.key)), design.emission(step)
    line, weight = writer.line, table.width
    line(f"entry = {index.find(keys)}")
    line(f"head = 0 if entry == 0 else load(state, {index.after('entry')})")
    line(f"rows, stride = load(state, {table.name} + ROWS), load(state, {table.name} + STRIDE)")

    def each_member(*then: str) -> None:
        line("n = 0", "row = head")
        with writer.block("while row != 0:"):
            line(f"weight = as_float(load(state, rows + row * stride + {weight}))")
            with writer.block("if weight > 0.0:"):
                for text in then:
                    line(text)
                line("n += 1")
            line(f"row = load(state, rows + row * stride + {at})")

    line("first = 0.0", "equal = True")
    each_member("first = weight if n == 0 else first", "equal = equal and weight == first")
    writer.when("n == 0", "return")
    parts = step.group(writer, keys)
    if parts.counts_only:
        with writer.block("if equal:"):
            parts.count("n")
            line(rt.call(emission, *parts.result(), "sign * first / 2.0"), "return")
    line("weights, members = np.empty(n, np.float64), np.empty(n, np.int64)")
    each_member("weights[n] = weight", "members[n] = row")
    writer.when("not equal", rt.call(layout.sort_down, "weights", "members"))
    parts.start()
    with writer.block("for m in range(n):"):
        line("base = rows + members[m] * stride")
        words = [writer.bind(f"load(state, base + {i})") for i in range(table.width)]
        parts.add(words)
        line("following = weights[m + 1] if m + 1 < n else 0.0")
        with writer.block("if weights[m] != following:"):
            line(rt.call(emission, *parts.result(), "sign * (weights[m] - following) / 2.0"))
    return design.routine(f"group_{step.number}", writer.lines, keys, {"sign": rt.FLOAT64})
