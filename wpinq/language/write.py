"""From plans to text: any plan, however it was written, as a program that means the same.

Named queries and steps with several uses become variables; the rest is chained. Plans are DAGs of any depth, so nothing
here recurses over them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import count

from wpinq.api.query import Query
from wpinq.api.source import DEFAULT_CAP, DEFAULT_PERSON, DEFAULT_UNIT
from wpinq.errors import LanguageError
from wpinq.expr.epochs import Epoch
from wpinq.expr.nodes import RESERVED, Constant, Lambda, TooDeep, quote, write, write_public
from wpinq.expr.person_tables import PersonTables
from wpinq.expr.types import ListOf, Scalar, TupleOf, Type
from wpinq.language.syntax import LIMITS, shorten, too_long
from wpinq.language.tables import write_marginals, write_table
from wpinq.marginals.tabulation import MarginalTabulation
from wpinq.measure.measurement import Measurement
from wpinq.noise.epsilon_text import format_epsilon
from wpinq.plan.node import Node, sources as check_sources, topological
from wpinq.plan.operator import Operator
from wpinq.plan.operators import Source
from wpinq.tables.tabulation import Tabulation

#: What a program gives a name to.
Printed = Query | Measurement | Tabulation | MarginalTabulation

#: How deep chains stand inside one another's arguments; what is deeper becomes a variable.
NESTING = 2

#: Statements longer than this are broken, one operator a line.
LINE = 100


def unparse(named: Mapping[str, Printed]) -> str:
    """The program that defines these queries and measurements.

    Parameters
    ----------
    named : mapping
        Variable name to query or measurement.

    Returns
    -------
    str
        A program that parses to equal plans and equal measurements. What several of them share is named `q1`, `q2`, ….

    Raises
    ------
    LanguageError
        When a name cannot stand in a program, or an expression is too deep or too long to be written.
    PlanError
        When one source is declared in two ways.

    Notes
    -----
    Privacy cost: none; plans hold no data.

    Examples
    --------
    >>> import wpinq as wp
    >>> edges = wp.source("edges", src=int, dst=int)
    >>> print(unparse({"nodes": edges.select(lambda e: e.src).shave(0.5).where(lambda x, i: i == 0)}))
    source edges(src: int, dst: int);
    var nodes = edges.Select(e => e.src).Shave(0.5).Where(record => record.index == 0);
    <BLANKLINE>
    """
    return print_program(named, {})


def print_program(named: Mapping[str, Printed], declared: Mapping[str, Query]) -> str:
    """The program that defines `named`, with every source of `declared` whether used or not."""
    if not isinstance(named, Mapping):
        raise LanguageError('a program gives names: write unparse({"counts": query})')
    for name in named:
        if not (name.isidentifier() and name.isascii()) or name in RESERVED:
            raise LanguageError(f"{shorten(name)!r} cannot name a variable: take ASCII letters, digits, underscores")
    try:
        text = _print(named, declared)
    except TooDeep:
        raise LanguageError(
            "an expression of this plan nests deeper, or is longer, than a program may be; split it over several Select"
        ) from None
    if too_long(text):
        raise LanguageError(f"the program would have {len(text):,} characters, and could not be read back: {LIMITS}")
    return text


def _print(named: Mapping[str, Printed], declared: Mapping[str, Query]) -> str:
    while True:
        try:
            return _Printer(named, declared).print()
        except _Hidden as hidden:
            free, source = hidden.args
            named = {free: Query(source), **named}


class _Hidden(Exception):
    """A source is needed after a variable has taken its name, and must get a free one.

    Both are named.
    """


class _PrintedRelease:
    """A measurement or a table as it is written: the plan that it is called on, and the calls."""

    def __init__(self, measurement: Measurement | Tabulation | MarginalTabulation) -> None:
        self.reading = measurement.reading
        if isinstance(measurement, Tabulation):
            self.plan, self.calls = measurement.plan, write_table(measurement)
            return
        if isinstance(measurement, MarginalTabulation):
            self.plan, self.calls = measurement.plan, write_marginals(measurement)
            return
        for way in measurement.sink.syntax:
            if written := way.write(measurement):
                self.plan, arguments = written
                self.calls = [f".{way.name}({', '.join([format_epsilon(measurement.epsilon), *arguments])})"]
                break
        else:
            raise LanguageError(f"this {measurement.sink.name} was not made by a query's method and cannot be written")


class _Printer:
    def __init__(self, named: Mapping[str, Printed], declared: Mapping[str, Query]) -> None:
        self.named = {name: v if isinstance(v, Query) else _PrintedRelease(v) for name, v in named.items()}
        roots = [value.plan for value in (*declared.values(), *self.named.values())]
        self.order = list(topological(roots))
        used = [node for node in self.order if isinstance(node.operator, Source)]
        self.sources = {node.sources[0].source: node for node in map(_declared_node, used)}
        check_sources([*roots, *map(_declared_node, used)])
        self.first_names: dict[bytes, str] = {}
        for name, value in self.named.items():
            if isinstance(value, Query) and not isinstance(value.plan.operator, Source):
                self.first_names.setdefault(value.plan.digest, name)
        self.variables = self._choose_variables()
        taken = {*self.named, *self.sources}
        self.fresh = (name for name in (f"q{i}" for i in count(1)) if name not in taken)
        self.meaning = {name: node.digest for name, node in self.sources.items()}
        self.meaning |= {_written_source(node.operator): node.digest for node in used}
        self.names: dict[bytes, list[str]] = {digest: [name] for name, digest in self.meaning.items()}
        self.readings: dict[str, str] = {}
        self.lines: list[str] = []

    def _choose_variables(self) -> set[bytes]:
        """The nodes with a statement of their own: named, used twice or more, or nested too deep."""
        uses = Counter(child.digest for node in self.order for child in node.inputs)
        uses.update(value.plan.digest for value in self.named.values())
        variables = {digest for digest, times in uses.items() if times > 1} | set(self.first_names)
        nesting: dict[bytes, int] = {}
        for node in self.order:
            depth = 0
            for position, child in enumerate(node.inputs):
                if child.digest in variables or not child.inputs:
                    continue
                if position and nesting[child.digest] >= NESTING:
                    variables.add(child.digest)
                else:
                    depth = max(depth, nesting[child.digest] + (1 if position else 0))
            nesting[node.digest] = depth
        return variables

    def print(self) -> str:
        for node in self.sources.values():
            self.lines.append(write_source(node.operator))
        place = {node.digest: index for index, node in enumerate(self.order)}
        done = 0
        for name, value in self.named.items():
            reached = place[value.plan.digest] + 1
            for node in self.order[done:reached]:
                if node.digest in self.variables and node.inputs:
                    self._define(node)
            done = max(done, reached)
            if isinstance(value, _PrintedRelease):
                self._bind(name, self._read_as(self._reference(value.plan), value.reading), *value.calls)
                self.meaning[name] = b"a release"
            elif self.first_names.get(value.plan.digest) != name:
                self._bind(name, self._read_as(self._reference(value.plan), value.reading))
                self.meaning[name] = value.plan.digest
                self.names[value.plan.digest].append(name)
                self.readings[name] = value.reading
        return "".join(f"{line}\n" for line in self.lines)

    def _define(self, node: Node) -> None:
        """The statement of a variable."""
        name = self.first_names.get(node.digest) or next(self.fresh)
        value = self.named.get(name)
        reading = value.reading if isinstance(value, Query) else ""
        self._bind(name, self._read_as(self._chain(node), reading))
        self.meaning[name] = node.digest
        self.names.setdefault(node.digest, []).append(name)
        self.readings[name] = reading

    def _bind(self, name: str, steps: list[str], *more: str) -> None:
        steps = [*steps, *more]
        line = f"var {name} = {''.join(steps)};"
        if len(line) > LINE and len(steps) > 2:
            line = f"var {name} = {steps[0]}" + "".join(f"\n    {step}" for step in steps[1:]) + ";"
        self.lines.append(line)

    def _read_as(self, steps: list[str], reading: str) -> list[str]:
        """The steps with the note on how to read the weights, unless they carry it already."""
        carried = self.readings.get(steps[0], "") if len(steps) == 1 else ""
        return steps if carried == reading else [*steps, f".ReadAs({quote(reading)})"]

    def _reference(self, node: Node) -> list[str]:
        """The name of a node, or the chain that makes it."""
        if node.digest in self.names:
            for name in self.names[node.digest]:
                series, epoch, _ = name.partition(".")  # an epoch is hidden where its series is
                hidden = epoch and self.meaning[series] != self.sources[series].digest
                if self.meaning[name] == node.digest and not hidden:
                    return [name]
            raise _Hidden(next(self.fresh), node)
        return self._chain(node)

    def _chain(self, node: Node) -> list[str]:
        steps = []
        while True:
            steps.append(self._step(node))
            (node,) = node.inputs[:1]
            if node.digest in self.names:
                return [*self._reference(node), *reversed(steps)]

    def _step(self, node: Node) -> str:
        others = iter(node.inputs[1:])
        inside = []
        for parameter in node.operator.parameters:
            if parameter.kind == "query":
                inside.append("".join(self._reference(next(others))))
                continue
            value = getattr(node.operator, parameter.name)
            if value is not None:
                text = _argument(value)
                inside.append(f"{parameter.name}: {text}" if parameter.kind in ("limit", "constant") else text)
        return f".{node.operator.name}({', '.join(inside)})"


def _argument(value: object) -> str:
    if isinstance(value, Lambda):
        return write(value)
    if isinstance(value, Constant):
        return write_public(value.value, value.type)
    return repr(value)


def _declared_node(node: Node) -> Node:
    """The node that a program declares: of an epoch, the template of its series."""
    source = node.operator
    if not isinstance(source, Source) or source.epoch is None or not source.epoch.label:
        return node
    return Node(replace(source, source=source.epoch.series, epoch=replace(source.epoch, label="")))


def _written_source(source: Operator) -> str:
    """A source as a program refers to it."""
    assert isinstance(source, Source)
    epoch = source.epoch
    return source.source if epoch is None or not epoch.label else f"{epoch.series}.Epoch({quote(epoch.label)})"


def write_source(source: Operator) -> str:
    """The statement that declares a source."""
    assert isinstance(source, Source)
    record, person = source.row, source.person
    named = isinstance(record, TupleOf) and None not in record.names and record.names and not record.nullable
    text = f"source {source.source}{write_type(record) if named else ': ' + write_type(record)}"
    options = []
    if source.unit != (DEFAULT_UNIT if person is None else DEFAULT_PERSON):
        options.append(f"unit = {quote(source.unit)}")
    if isinstance(person, PersonTables):
        options += [f"person = {quote(person.column)}", f"ids = {person.id_type}"]
        for word in ("first", "last", "distinct"):
            chosen = {t.name: t.distinct if word == "distinct" else t.by * (t.keep == word) for t in person.tables}
            if named_fields := [f"{table} = {field}" for table, field in chosen.items() if field]:
                options.append(f"{word} = {{{', '.join(named_fields)}}}")
        columns_of = {t.name: ", ".join(f"{name} = {quote(held)}" for name, held in t.columns) for t in person.tables}
        each = ", ".join(f"{table} = {{{columns}}}" for table, columns in columns_of.items() if columns)
        options += [f"columns = {{{each}}}"] * bool(each)
    elif person is not None:
        options += [f"person = {quote(person.column)}", f"at_most = {person.at_most}"]
        options += ["nested = true"] * person.nested
        options += [f"account = {quote(person.account)}"] * bool(person.account)
    elif source.unit_weight != 1:
        options.append(f"unit_weight = {format_epsilon(source.unit_weight)}")
    if source.epoch is not None:
        options += _calendar(source.epoch)
    if source.cap != DEFAULT_CAP:
        options.append(f"cap = {format_epsilon(source.cap)}")
    options += ["weights = true"] * (not source.whole)
    rows = {"whole_weights"} if source.person is None and not source.exact else set()  # a source has it by default
    if facts := [fact for fact in source.facts if fact not in rows]:
        options.append(f"facts = [{', '.join(facts)}]")
    if source.sizes is not None:
        if source.sizes.records is not None:
            options.append(f"records_at_most = {source.sizes.records}")
        keys = ", ".join(f"({', '.join(names)}, {most})" for names, most in source.sizes.keys)
        options += [f"keys_at_most = [{keys}]"] * bool(keys)
    columns = zip(getattr(record, "names", ()), source.columns or (), strict=False)
    if named_columns := [f"{field} = {quote(column)}" for field, column in columns if field != column]:
        options.append(f"columns = {{{', '.join(named_columns)}}}")
    return f"{text}{' with ' + ', '.join(options) if options else ''};"


def _calendar(epoch: Epoch) -> list[str]:
    labels = [] if isinstance(epoch.every, str) else map(quote, epoch.every)
    options = [f"every = {epoch.every}" if isinstance(epoch.every, str) else f"every = [{', '.join(labels)}]"]
    options += [f"start = {quote(epoch.start)}", f"on = {epoch.on}"]
    options += [f"distinct = {epoch.distinct}"] * bool(epoch.distinct) + ["strict = true"] * epoch.strict
    for name, budget in (("budget_each", epoch.each), ("budget_all", epoch.total)):
        options += [f"{name} = {format_epsilon(budget)}"] if budget is not None else []
    return options


def write_type(type_: Type) -> str:
    """A record type as programs declare it."""
    if isinstance(type_, ListOf):
        bound = "" if type_.bound is None else f", {type_.bound}"
        text = f"list[{write_type(type_.element)}{bound}]"
    elif isinstance(type_, TupleOf):
        pairs = zip(type_.names, type_.elements, strict=True)
        fields = [write_type(part) if name is None else f"{name}: {write_type(part)}" for name, part in pairs]
        text = f"({fields[0]},)" if type_.names == (None,) else f"({', '.join(fields)})"
    elif isinstance(type_, Scalar) and type_.name != "null":
        text = type_.name  # what a logical type is called is how a program declares it
    else:
        raise LanguageError(f"a source of type {type_} cannot be declared in a program")
    return f"{text}?" if type_.nullable else text
