"""The text of a module for one set of plans: tables, the processing of changes table by table, and entry points.

A proposal gathers the changes of the sources. Then every table, inputs before users, applies its gathered changes
one record at a time, and for each the change of every formula that looks the record up is passed on to where it
is gathered in turn. A formula's change under a sequence of single changes adds up to its change under all of them,
in whatever order: so norms stay as they were while records change, and change after them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from wpinq.engines.incremental.compiled import proposals, runtime, table_text
from wpinq.engines.incremental.compiled.code import Writer
from wpinq.engines.incremental.compiled.columns import width
from wpinq.engines.incremental.compiled.formulas import (
    Assumptions,
    Atom,
    Expander,
    Formula,
    entries_of,
)
from wpinq.engines.incremental.compiled.functions import function, numbered
from wpinq.engines.incremental.compiled.islands import Island, write_island
from wpinq.engines.incremental.compiled.order import arrange, split
from wpinq.engines.incremental.compiled.process import entries, processing, whole
from wpinq.engines.incremental.compiled.remembered import Function
from wpinq.engines.incremental.compiled.steps import (
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
from wpinq.engines.incremental.compiled.tables import Table, Tables
from wpinq.engines.incremental.compiled.walk import Walk


@dataclass
class Generated:
    """The text of a module and what must be known to drive it."""

    text: str
    tables: Tables
    sources: dict[str, tuple[int, Table, Table]]
    outputs: list[Table]
    changes: list[Table]
    functions: list[tuple[Function, Table, Table]]


class Generator:
    """Writes the module of some steps under assumptions."""

    def __init__(self, steps: Steps, assumptions: Assumptions, walk: Walk | None) -> None:
        self.steps, self.assumptions, self.walk = steps, assumptions, walk
        self.expander = Expander(steps.all, assumptions)
        self.tables = Tables()
        self.held: dict[Step, tuple[Table, Table]] = {}
        self.norms: dict[JoinStep, tuple[Table, Table]] = {}
        self.islands: list[Island] = []
        self.streams: dict[Step, None] = {}
        self.consumers: dict[Step, list[str]] = {}
        self.shaves: dict[Step, list[ShaveStep]] = {}
        self.groups: dict[Step, list[tuple[GroupStep, Table]]] = {}
        self.outputs: list[tuple[Table, Table]] = []
        self.parts: list[str] = []

    def generate(self) -> Generated:
        """The module."""
        for step in self.steps.all:
            if isinstance(step, SourceStep):
                self.table(step)
        for number, root in enumerate(self.steps.roots):
            kept = self.tables.add(f"OUT_{number}", root.width, 3, logged=True)
            moved = self.tables.add(f"MOVED_{number}", root.width, 2, logged=False)
            self.outputs.append((kept, moved))
            self.stream(root, f"gather_{root.width}(A, {moved.name}, {{words}}, {{weight}})")
        for island in self.islands:
            self.parts += write_island(island, self)
        for step in self.streams:
            self.parts.append(self._emission(step))
        self.parts += [part for step in self.steps.all for part in processing(self, step)]
        self.functions: list[Function] = list(self.steps.dictionary.functions.values())
        for held in self.functions:
            self.tables.add(f"MEMO_{held.number}", held.key_width, width(held.value), logged=True)
            self.tables.add(f"MISS_{held.number}", held.missing_width, 2, logged=False)
            if held.member is not None:
                self.tables.add(f"GROUP_{held.number}", width(held.member), 2, logged=False)
        self.parts.append(whole(self))
        used = sorted({table.width for table in self.tables.all})
        constants = "\n".join(f"{table.name} = {table.header}" for table in self.tables.all)
        fixed = [
            *split(runtime.FUNCTIONS + table_text.FUNCTIONS + proposals.FUNCTIONS),
            *(f for size in used for f in split(table_text.of_width(size))),
        ]
        arranged = arrange([*fixed, *self.parts, *entries(self)])
        text = "\n\n\n".join([f"{runtime.PREFIX}\n{constants}\n{runtime.PRELUDE}", *arranged]) + "\n"
        sources = {
            step.source: (step.number, *self.held[step]) for step in self.steps.all if isinstance(step, SourceStep)
        }
        outputs, changes = [kept for kept, _ in self.outputs], [moved for _, moved in self.outputs]
        named = {table.name: table for table in self.tables.all}
        remembered = [(f, named[f"MEMO_{f.number}"], named[f"MISS_{f.number}"]) for f in self.functions]
        return Generated(text, self.tables, sources, outputs, changes, remembered)

    # --- what is needed ---------------------------------------------------------------------------------------

    def table(self, step: Step) -> Table:
        """The table that holds a step's output."""
        if step not in self.held:
            kept = self.tables.add(f"T_{step.number}", step.width, 1, logged=True)
            moved = self.tables.add(f"D_{step.number}", step.width, 2, logged=False)
            self.held[step] = kept, moved
            if not isinstance(step, SourceStep):
                self.stream(step, f"gather_{step.width}(A, {moved.name}, {{words}}, {{weight}})")
        return self.held[step][0]

    def norm(self, join: JoinStep) -> Table:
        """The table of a join's norms."""
        if join not in self.norms:
            size = len(join.keys[0])
            kept = self.tables.add(f"N_{join.number}", size, 1, logged=True)
            moved = self.tables.add(f"DN_{join.number}", size, 2, logged=False)
            self.norms[join] = kept, moved
            for side in (0, 1):
                formula, key = self.expander.side(join, side)
                target = f"gather_{size}(A, {moved.name}, {{words}}, {{weight}})"
                self._island(formula, partial(_key_words, key), target, "abs(new_value) - abs(old_value)", key)
        return self.norms[join][0]

    def stream(self, step: Step, consumer: str) -> None:
        """Have a step's changes passed to a consumer: code with places for words and weight."""
        self.consumers.setdefault(step, []).append(consumer)
        if step in self.streams or isinstance(step, SourceStep):
            self.streams[step] = None
            return
        self.streams[step] = None
        emission = f"emit_{step.number}(A, {{words}}, {{weight}})"
        if isinstance(step, MapStep):
            self.stream(step.inputs[0], f"map_{step.number}(A, {{words}}, {{weight}})")
            self.parts.append(self._map(step))
        elif isinstance(step, SumStep):
            for below, coefficient in zip(step.inputs, step.coefficients, strict=True):
                self.stream(below, emission.replace("{weight}", f"{coefficient}.0 * ({{weight}})"))
        elif isinstance(step, ShaveStep):
            self.table(step.inputs[0])
            self.shaves.setdefault(step.inputs[0], []).append(step)
            self.parts.append(self._shave(step))
        elif isinstance(step, GroupStep):
            self._need_group(step)
        elif isinstance(step, (JoinStep, ExtremeStep)):
            self._need_island(step)

    def _need_island(self, step: JoinStep | ExtremeStep) -> None:
        formula, left, right = self.expander.root(step)

        def words(writer: Writer, names: dict[int, str]) -> list[str]:
            if isinstance(step, JoinStep):
                return step.write(writer, [names[v] for v in left], [names[v] for v in right])
            return [names[v] for v in left]

        self._island(formula, words, f"emit_{step.number}(A, {{words}}, {{weight}})", "new_value - old_value", None)

    def _island(
        self,
        formula: Formula,
        words: Callable[[Writer, dict[int, str]], list[str]],
        target: str,
        change: str,
        key: tuple[int, ...] | None,
    ) -> None:
        entries = tuple(dict.fromkeys(entries_of(formula)))
        for entry in entries:
            if isinstance(entry, Atom):
                self.table(entry.step)
            else:
                self.norm(entry.join)
        self.islands.append(Island(len(self.islands), formula, entries, words, target, change, key))

    def _need_group(self, step: GroupStep) -> None:
        below = step.inputs[0]
        table = self.table(below)
        touched = self.tables.add(f"K_{step.number}", len(step.key), 2, logged=False)
        self.groups.setdefault(below, []).append((step, touched))
        index, at = self.tables.index(table, step.key)
        self.parts.append(self._group(step, table, index, at))

    # --- functions of steps -----------------------------------------------------------------------------------

    def writer(self) -> Writer:
        """A writer of a function's body."""
        return Writer(self.steps.dictionary)

    def _emission(self, step: Step) -> str:
        words = ", ".join(numbered("c", step.width))
        lines = [f"    {consumer.format(words=words, weight='w')}" for consumer in self.consumers[step]]
        head = f"@njit\ndef emit_{step.number}(A, {words}, w):\n    if w == 0.0:\n        return\n"
        return head + "\n".join(lines)

    def _map(self, step: MapStep) -> str:
        if step.merges:
            self.tables.add(f"SCRATCH_{step.number}", step.width, 2, logged=False)
        writer, words = self.writer(), numbered("c", step.inputs[0].width)

        def sink(out: Sequence[str], weight: str) -> None:
            writer.line(f"emit_{step.number}(A, {', '.join(out)}, {weight})")

        step.write(writer, words, "w", sink)
        return function(f"map_{step.number}", [*words, "w"], writer.lines)

    def _shave(self, step: ShaveStep) -> str:
        writer, words = self.writer(), numbered("c", step.inputs[0].width)
        line, record = writer.line, ", ".join(words)
        if step.loop is None:
            size = repr(float(step.constant))
            line("low, high = max(0.0, min(old, new)), max(0.0, old, new)")
            end = (
                f"np.ceil(high / {size})" if step.limit is None else f"min(float({step.limit}), np.ceil(high / {size}))"
            )
            with writer.block(f"for i in range(int(low / {size}), int({end})):"):
                line(f"before = min({size}, max(0.0, old - i * {size}))")
                line(f"after = min({size}, max(0.0, new - i * {size}))")
                line(f"emit_{step.number}(A, {record}, i, after - before)")
        else:
            line("old_left = max(0.0, old)")
            line("new_left = max(0.0, new)")

            def piece(index: str, size: str) -> None:
                line(f"before = min({size}, old_left)")
                line(f"after = min({size}, new_left)")
                line("old_left -= before")
                line("new_left -= after")
                line(f"emit_{step.number}(A, {record}, {index}, after - before)")

            step.loop(writer, words, piece)
        return function(f"shave_{step.number}", [*words, "old", "new"], writer.lines)

    def _group(self, step: GroupStep, table: Table, index: Table, at: int) -> str:
        writer, keys = self.writer(), numbered("k", len(step.key))
        line, weight = writer.line, table.width
        line(f"entry = find_{index.width}(A, {index.name}, {', '.join(keys)})")
        line(f"head = 0 if entry == 0 else load(A, row_at(A, {index.name}, entry) + {index.width})")
        line(f"rows, stride = load(A, {table.name} + ROWS), load(A, {table.name} + STRIDE)")

        def each_member(*then: str) -> None:
            line("n = 0")
            line("row = head")
            with writer.block("while row != 0:"):
                line(f"weight = as_float(load(A, rows + row * stride + {weight}))")
                with writer.block("if weight > 0.0:"):
                    for text in then:
                        line(text)
                    line("n += 1")
                line(f"row = load(A, rows + row * stride + {at})")

        line("first = 0.0")
        line("equal = True")
        each_member("first = weight if n == 0 else first", "equal = equal and weight == first")
        with writer.block("if n == 0:"):
            line("return")
        parts = step.group(writer, keys)
        if parts.count is not None:
            with writer.block("if equal:"):
                parts.count("n")
                line(f"emit_{step.number}(A, {', '.join(parts.result())}, sign * first / 2.0)")
                line("return")
        line("weights, members = np.empty(n, np.float64), np.empty(n, np.int64)")
        each_member("weights[n] = weight", "members[n] = row")
        with writer.block("if not equal:"):
            line("sort_down(weights, members)")
        parts.start()
        with writer.block("for m in range(n):"):
            line("base = rows + members[m] * stride")
            words = [writer.bind(f"load(A, base + {i})") for i in range(table.width)]
            parts.add(words)
            line("following = weights[m + 1] if m + 1 < n else 0.0")
            with writer.block("if weights[m] != following:"):
                out = parts.result()
                line(f"emit_{step.number}(A, {', '.join(out)}, sign * (weights[m] - following) / 2.0)")
        return function(f"group_{step.number}", [*keys, "sign"], writer.lines)


def _key_words(key: tuple[int, ...], writer: Writer, names: dict[int, str]) -> list[str]:
    return [names[variable] for variable in key]
