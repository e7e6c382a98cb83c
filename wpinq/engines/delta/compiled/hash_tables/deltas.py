"""Delta rules: the changes of steps and formulas when one record changes.

A formula changes with each table entry that it looks up, at every record; a single step with a record or a group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack

from wpinq.engines.delta.compiled import formulas as fm
from wpinq.engines.delta.compiled.hash_table import sort_down, words_of
from wpinq.engines.delta.compiled.hash_tables.arena import Delta, Design, HashTable
from wpinq.engines.delta.compiled.routine import FLOAT64, CannotCompile, Routine, call, spelled
from wpinq.engines.delta.compiled.steps import GroupStep, MapStep, ShaveStep, Step


def write_delta(delta: Delta, design: Design) -> None:
    """Write `delta_k_p(words, old weight, new weight)`, one routine for each entry.

    Entries of one table whose routines walk through the same records share one: the first has the others' work too. For
    TbI, the common neighbours of an edge's ends serve all three places of the edge in a triangle.
    """
    walks: dict[tuple[object, ...], list[int]] = {}
    for number in range(len(delta.lookups)):
        place = _Place(delta, number, design)
        walks.setdefault(place.walk_alone() or (number,), []).append(number)
    for places in walks.values():
        first = _Place(delta, places[0], design)
        lines = _together(first, places) if len(places) > 1 else first.write()
        words, more = words_of("x", len(first.entry.variables)), {"old": FLOAT64, "new": FLOAT64}
        delta.routines[places[0]] = design.routine(f"delta_{delta.number}_{places[0]}", lines, words, more)


def _together(first: _Place, places: list[int]) -> list[str]:
    first.walk_alone()
    lines, depth = list(first.writer.lines), first.depth
    counter = first.writer.counter
    for number in places:
        place = _Place(first.delta, number, first.design)
        place.walk_alone()
        start = len(place.writer.lines)
        place.writer.counter = counter
        with ExitStack() as blocks:
            for _ in range(depth):
                blocks.enter_context(place.writer.block(""))
            # a loop of one round, so that skipping ends this place and not the others
            blocks.enter_context(place.writer.block(f"for {place.writer.name('once')} in range(1):"))
            place.skip = "continue"
            place.finish_alone()
        lines += place.writer.lines[start:]
    return lines


#: The code of a weight before and after the change.
BeforeAfter = tuple[str, str]


class _Place:
    """The routine for one entry."""

    def __init__(self, delta: Delta, place: int, design: Design) -> None:
        self.delta, self.place, self.design = delta, place, design
        self.entry = delta.lookups[place]
        self.writer = design.writer()
        self.names: dict[int, str] = {}
        self.weights: dict[fm.Lookup, BeforeAfter] = {self.entry: ("old", "new")}
        self.skip = "return"
        self.guarded: set[int] = set()
        self.deferred = False
        self.met: list[tuple[fm.Lookup, str]] = []
        self.doubtful: list[tuple[str, list[fm.Atom]]] = []
        self.depth = 0

    def _bind(self) -> None:
        for i, variable in enumerate(self.entry.variables):
            self._name(variable, f"x{i}")

    def _name(self, variable: int, word: str) -> None:
        """Note the word that a variable has; skip where it has another already."""
        if variable in self.names:
            self._unless(f"{word} == {self.names[variable]}")
        self.names.setdefault(variable, word)

    def walk_alone(self) -> tuple[object, ...] | None:
        """Write the walk through the records that change, and return its identity.

        Filters are left for later. The identity is None where it walks through nothing, or where what is passed on is
        summed first.
        """
        self.deferred = True
        self._bind()
        with ExitStack() as loops:
            self._walk(loops)
        if self.depth == 0 or self.delta.key is not None:
            return None
        return (type(self.entry), self.entry.step, *self.writer.lines)

    def finish_alone(self) -> None:
        """Write what is done at each record that `walk_alone` walks through."""
        self.deferred = False
        self._guards(self.delta.formula)
        for entry, weight in self.met:
            self._weigh(entry, weight)
        self._finish(at_once=False)

    def write(self) -> list[str]:
        """The lines of the routine."""
        self._bind()
        key = self.delta.key
        at_once = key is not None and set(key) <= set(self.names)
        if at_once:
            self.writer.line("change = 0.0")
        with ExitStack() as loops:
            self._walk(loops)
            self._finish(at_once)
        if at_once:  # whatever is enumerated goes to one record: it is passed on once
            self._pass_on("change")
        return self.writer.lines

    def _unless(self, condition: str) -> None:
        self.writer.when(f"not ({condition})", self.skip)

    def _walk(self, loops: ExitStack) -> None:
        """Look up, or walk through, what must hold a record: what is known most of comes first."""
        left = fm.required_with(self.delta.formula, self.entry)
        self._guards(self.delta.formula)
        while left:
            left.sort(key=self._order)
            atom = left.pop(0)
            if self._unknown(atom) == 0:
                self._look_up(atom)
            else:
                if not left and not self.deferred:
                    # every record that is met counts: what is known already is looked up once
                    self._look_up_known(atom)
                self._enumerate(atom, loops)
            self._guards(self.delta.formula)
        if not set(self.names) >= fm.variables_of(self.delta.formula):
            raise CannotCompile("a formula leaves a record open")  # pragma: no cover - expansions bind every variable

    def _look_up_known(self, aside: fm.Atom | None = None) -> None:
        for entry in self.delta.lookups:
            if entry != aside and entry not in self.weights and all(v in self.names for v in entry.variables):
                self._weigh(entry, self._weight_of(entry))

    def _unknown(self, atom: fm.Atom) -> int:
        return sum(variable not in self.names for variable in atom.variables)

    def _order(self, atom: fm.Atom) -> tuple[int, tuple[int, ...], tuple[str, ...]]:
        """Least unknown first; then by what is known, so that like places walk alike."""
        known = tuple(i for i, variable in enumerate(atom.variables) if variable in self.names)
        return self._unknown(atom), known, tuple(spelled(self.names[atom.variables[i]]) for i in known)

    def _look_up(self, atom: fm.Atom) -> None:
        row = self._row(atom)
        self._unless(f"{row} != 0")
        self._weigh(atom, self.writer.bind(self._weight_in(atom, row), "w"))

    def _found(self, lookup: fm.Lookup) -> str:
        """The code that finds the row of an entry."""
        return self.design.table_of(lookup).find(self.names[v] for v in lookup.variables)

    def _row(self, lookup: fm.Lookup) -> str:
        return self.writer.bind(self._found(lookup), "r")

    def _weight_in(self, lookup: fm.Lookup, row: str) -> str:
        return f"as_float(load(state, {self.design.table_of(lookup).after(row)}))"

    def _enumerate(self, atom: fm.Atom, loops: ExitStack) -> None:
        writer, table = self.writer, self.design.table_of(atom)
        known = tuple(i for i, variable in enumerate(atom.variables) if variable in self.names)
        if not known:
            raise CannotCompile(f"{atom.step.name}: its records are joined with others that share nothing")
        index, at = self.design.tables.index(table, known)
        key = [self.names[atom.variables[i]] for i in known]
        entry = writer.bind(index.find(key), "r")
        self._unless(f"{entry} != 0")
        row = writer.bind(f"load(state, {index.after(entry)})", "r")
        loops.enter_context(writer.block(f"while {row} != 0:"))
        self.skip = "continue"
        self.depth += 1
        base = writer.bind(table.row(row), "b")
        writer.line(f"{row} = load(state, {base} + {at})")
        for i, variable in enumerate(atom.variables):
            if i not in known:
                self._name(variable, writer.bind(f"load(state, {base} + {i})"))
        self._weigh(atom, writer.bind(f"as_float(load(state, {base} + {table.width}))", "w"))

    def _weigh(self, entry: fm.Lookup, weight: str) -> None:
        """Note an entry's weights before and after the change.

        They differ only where the entry is the record that changes.
        """
        mine = self.entry
        if self.deferred:
            self.met.append((entry, weight))
            return
        if (type(entry), entry.step) != (type(mine), mine.step):
            self.weights[entry] = weight, weight
            return
        pairs = zip(entry.variables, mine.variables, strict=True)
        same = " and ".join(f"{self.names[a]} == {self.names[b]}" for a, b in pairs if a != b)
        earlier = self.delta.lookups.index(entry) < self.place
        further = self._further(entry) if earlier else []
        if earlier and not further:
            self._unless(f"not ({same})")  # counted from there already
            self.weights[entry] = weight, weight
            return
        same = self.writer.bind(same)
        if earlier:
            self.doubtful.append((same, further))
        before, after = (self.writer.bind(f"{end} if {same} else {weight}", "w") for end in ("old", "new"))
        self.weights[entry] = before, after

    def _further(self, entry: fm.Lookup) -> list[fm.Atom]:
        """The atoms that another entry's place requires for a record, and this place does not."""
        mine = [self.entry, *fm.required_with(self.delta.formula, self.entry)]
        return [atom for atom in fm.required_with(self.delta.formula, entry) if atom not in mine]

    def _count_once(self) -> None:
        """Skip what an earlier place counts, where that depends on what it has to walk through."""
        for same, further in self.doubtful:
            found = [same, *(f"{self._found(atom)} != 0" for atom in further)]
            self._unless(f"not ({' and '.join(found)})")

    def _guards(self, formula: fm.Formula) -> None:
        """Skip, as soon as it is known, where a filter makes the whole formula 0."""
        if self.deferred:
            return
        if isinstance(formula, fm.Guard):
            self._guards(formula.child)
            if id(formula) not in self.guarded and all(v in self.names for v in formula.variables):
                self.guarded.add(id(formula))
                self._unless(self._condition(formula))
        elif not isinstance(formula, fm.Atom) and not (isinstance(formula, fm.MinMax) and not formula.both):
            self._guards(formula.left)
            self._guards(formula.right)

    def _condition(self, formula: fm.Guard) -> str:
        assert formula.step.condition is not None
        self.writer.known = {}
        return formula.step.condition(self.writer, [self.names[v] for v in formula.variables])

    def _pass_on(self, change: str) -> None:
        self.writer.known = {}
        words = self.delta.words(self.writer, self.names)
        self.writer.line(self.delta.consumer(words, change))

    def _finish(self, at_once: bool) -> None:
        writer = self.writer
        self._look_up_known()
        self._count_once()
        old, new = self._value(self.delta.formula)
        writer.line(f"old_value = {old}", f"new_value = {new}")
        if at_once:
            writer.line(f"change += {self.delta.change}")
            return
        with writer.block("if old_value != new_value:"):
            self._pass_on(self.delta.change)

    def _weight_of(self, entry: fm.Lookup) -> str:
        """The weight of an entry that may be absent."""
        row = self._row(entry)
        return self.writer.bind(f"0.0 if {row} == 0 else {self._weight_in(entry, row)}", "w")

    def _value(self, formula: fm.Formula) -> BeforeAfter:
        """The formula before and after; one name where nothing in it changes."""
        if isinstance(formula, fm.Atom):
            return self.weights[formula]
        if isinstance(formula, fm.Guard):
            below = self._value(formula.child)
            if id(formula) in self.guarded:
                return below
            condition = self.writer.bind(self._condition(formula), "p")
            return self._both([below], lambda value: f"({value[0]} if {condition} else 0.0)")
        sides = [self._value(formula.left), self._value(formula.right)]
        if isinstance(formula, fm.MinMax):
            choose = "min" if formula.smaller else "max"
            return self._both(sides, lambda value: f"{choose}({value[0]}, {value[1]})")
        given = formula.norm
        norm = self._both(sides, lambda v: f"abs({v[0]}) + abs({v[1]})") if given is None else self.weights[given]
        return self._both([*sides, norm], lambda v: f"({v[0]} * {v[1]} / {v[2]} if {v[2]} > 0.0 else 0.0)")

    def _both(self, parts: list[BeforeAfter], text: Callable[[list[str]], str]) -> BeforeAfter:
        old = self.writer.bind(text([before for before, _ in parts]), "w")
        if all(before == after for before, after in parts):
            return old, old
        return old, self.writer.bind(text([after for _, after in parts]), "w")


# --- routines of single steps: the change of the output by a change of a record, or of a group ------------------------


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
