"""The routines of single steps: what a change of a record, or of a group, changes in the step's output."""

from __future__ import annotations

from collections.abc import Sequence

from wpinq.engines.incremental.compiled.routines.routine import FLOAT64, Routine, call
from wpinq.engines.incremental.compiled.routines.store import sort_down, words_of
from wpinq.engines.incremental.compiled.steps.steps import GroupStep, MapStep, ShaveStep, Step
from wpinq.engines.incremental.compiled.tables.arena import HashTable
from wpinq.engines.incremental.compiled.tables.design import Design


def write_emission(design: Design, step: Step) -> None:
    """Pass a change of a step's output on to whoever takes it."""
    words = words_of("c", step.width)
    lines = ["    if w == 0.0:", "        return"]
    lines += [f"    {consumer(words, 'w')}" for consumer in design.consumers[step]]
    design.emission(step).lines = lines


def map_routine(design: Design, step: MapStep) -> Routine:
    """The outputs of a record whose weight changes by w."""
    if step.scratch is not None:
        design.tables.add(step.scratch, step.width, 2, logged=False)
    writer, words = design.writer(), words_of("c", step.inputs[0].width)

    def sink(out: Sequence[str], weight: str) -> None:
        writer.line(call(design.emission(step), *out, weight))

    if step.condition is not None:
        with writer.block(f"if {step.condition(writer, words)}:"):
            sink(words, "w")
    if step.loop is not None:
        step.loop(writer, words, "w", sink)
    for image in step.images:
        sink(image.words(writer, words), "w" if image.share == 1.0 else f"w * {image.share!r}")
    return design.routine(f"map_{step.number}", writer.lines, words, {"w": FLOAT64})


def shave_routine(design: Design, step: ShaveStep) -> Routine:
    """The pieces of a record whose weight changes from old to new."""
    writer, words = design.writer(), words_of("c", step.inputs[0].width)
    line, emission = writer.line, design.emission(step)
    if step.loop is None:
        size = repr(float(step.constant))
        line("low, high = max(0.0, min(old, new)), max(0.0, old, new)")
        end = f"np.ceil(high / {size})" if step.limit is None else f"min(float({step.limit}), np.ceil(high / {size}))"
        with writer.block(f"for i in range(int(low / {size}), int({end})):"):
            line(f"before = min({size}, max(0.0, old - i * {size}))")
            line(f"after = min({size}, max(0.0, new - i * {size}))")
            line(call(emission, *words, "i", "after - before"))
    else:
        line("old_left = max(0.0, old)", "new_left = max(0.0, new)")

        def piece(index: str, size: str) -> None:
            line(f"before = min({size}, old_left)")
            line(f"after = min({size}, new_left)")
            line("old_left -= before")
            line("new_left -= after")
            line(call(emission, *words, index, "after - before"))

        step.loop(writer, words, piece)
    return design.routine(f"shave_{step.number}", writer.lines, words, {"old": FLOAT64, "new": FLOAT64})


def group_routine(design: Design, step: GroupStep, table: HashTable) -> Routine:
    """The output for the group of a key as it is, of this sign."""
    index, at = design.tables.index(table, step.key)
    writer, keys, emission = design.writer(), words_of("k", len(step.key)), design.emission(step)
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
            line(call(emission, *parts.result(), "sign * first / 2.0"), "return")
    line("weights, members = np.empty(n, np.float64), np.empty(n, np.int64)")
    each_member("weights[n] = weight", "members[n] = row")
    writer.when("not equal", call(sort_down, "weights", "members"))
    parts.start()
    with writer.block("for m in range(n):"):
        line("base = rows + members[m] * stride")
        words = [writer.bind(f"load(state, base + {i})") for i in range(table.width)]
        parts.add(words)
        line("following = weights[m + 1] if m + 1 < n else 0.0")
        with writer.block("if weights[m] != following:"):
            line(call(emission, *parts.result(), "sign * (weights[m] - following) / 2.0"))
    return design.routine(f"group_{step.number}", writer.lines, keys, {"sign": FLOAT64})
