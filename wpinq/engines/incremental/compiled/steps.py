"""A plan as steps over columns: what the compiled engine generates code from.

Keys become columns: where a key is computed, a step before adds it to the record. So Join and GroupBy know only
column numbers, and what a step does to columns without computing (Where, a permuting Select) shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from wpinq.engines.incremental.compiled import code, lists
from wpinq.engines.incremental.compiled.code import Held, Writer
from wpinq.engines.incremental.compiled.columns import Dictionary, width
from wpinq.engines.incremental.compiled.errors import CannotCompile
from wpinq.engines.incremental.compiled.scalars import emit, same, shaped, truth
from wpinq.expr.nodes import Lambda
from wpinq.expr.types import Type, unify
from wpinq.plan.node import Node, topological
from wpinq.plan.operators import (
    Concat,
    Except,
    GroupBy,
    Intersect,
    Join,
    Partition,
    Select,
    SelectMany,
    Shave,
    Source,
    Union,
    Where,
)

Words = Sequence[str]
Sink = Callable[[Words, str], None]
"""Takes the words of an output record and the code of its weight, and writes what is done with them."""


@dataclass(eq=False)
class Step:
    """One step: its number, what it is called in messages, the words of its records, and its inputs."""

    number: int
    name: str
    width: int
    inputs: tuple[Step, ...]


@dataclass(eq=False)
class SourceStep(Step):
    """The candidate itself."""

    source: str


@dataclass(eq=False)
class MapStep(Step):
    """Linear in the weights: each record gives outputs of its own.

    `write(writer, words, weight, sink)`. A filter keeps its records; a permutation says which input word each
    output word is. `images` are the words of each output of a record, where every record has as many, of like weight.
    """

    write: Callable[[Writer, Words, str, Sink], None]
    condition: Callable[[Writer, Words], str] | None = None
    permutation: tuple[int, ...] | None = None
    weighted: bool = False
    images: tuple[Callable[[Writer, Words], list[str]], ...] = ()


@dataclass(eq=False)
class SumStep(Step):
    """Inputs added with coefficients."""

    coefficients: tuple[int, ...]


@dataclass(eq=False)
class JoinStep(Step):
    """Pairs by key. `write(writer, left words, right words)` gives the output's words."""

    keys: tuple[tuple[int, ...], tuple[int, ...]]
    write: Callable[[Writer, Words, Words], list[str]]
    permutation: tuple[int, ...] | None = None


@dataclass(eq=False)
class ExtremeStep(Step):
    """The smaller or the larger weight."""

    smaller: bool


@dataclass(eq=False)
class ShaveStep(Step):
    """Pieces. `widths` writes the loop over the widths of a record; None for a constant width."""

    constant: float
    limit: int | None
    loop: Callable[[Writer, Words, Callable[[str, str], None]], None] | None


@dataclass(frozen=True, slots=True)
class Running:
    """Code for a group that grows: at its start, as a record joins, and the output's words for it as it is.

    `count` makes it a group of so many records at once, where the reducer asks for nothing but their number.
    """

    start: Callable[[], None]
    add: Callable[[Words], None]
    result: Callable[[], list[str]]
    count: Callable[[str], None] | None


@dataclass(eq=False)
class GroupStep(Step):
    """Prefixes of the records of a key, reduced. The key's words come first in the output."""

    key: tuple[int, ...]
    group: Callable[[Writer, Words], Running]


@dataclass
class Steps:
    """The steps of several plans, inputs before users, the step of each plan, and a plan of each step that has one."""

    dictionary: Dictionary
    all: list[Step] = field(default_factory=list)
    roots: list[Step] = field(default_factory=list)
    nodes: dict[Step, Node] = field(default_factory=dict)

    def add(self, kind: type[Step], name: str, width: int, inputs: tuple[Step, ...], **arguments: Any) -> Step:
        """A further step."""
        step = kind(len(self.all), name, width, inputs, **arguments)
        self.all.append(step)
        return step


def lower(plans: Sequence[Node], dictionary: Dictionary) -> Steps:
    """The steps of plans; CannotCompile names the step that has no integer form."""
    steps = Steps(dictionary)
    done: dict[bytes, Step] = {}
    for node in topological(plans):
        name = f"step {len(done) + 1}, {node.operator.name}"
        try:
            done[node.digest] = _lower(steps, name, node, [done[child.digest] for child in node.inputs])
        except CannotCompile as reason:
            raise CannotCompile(f"{name}: {reason}; the python engine runs it") from None
        steps.nodes.setdefault(done[node.digest], node)
    steps.roots = [done[plan.digest] for plan in plans]
    return steps


def _lower(steps: Steps, name: str, node: Node, inputs: list[Step]) -> Step:
    operator, size = node.operator, width(node.type)
    types = [child.type for child in node.inputs]
    if isinstance(operator, Source):
        return steps.add(SourceStep, name, size, (), source=operator.source)
    if isinstance(operator, (Where, Partition)):
        return _filter(steps, name, operator, types[0], inputs[0])
    if isinstance(operator, Select):
        return _select(steps, name, operator.function, types[0], inputs[0])
    if isinstance(operator, SelectMany):
        return _select_many(steps, name, operator, node.type, types[0], inputs[0])
    if isinstance(operator, (Concat, Except, Union, Intersect)):
        fitted = tuple(_fitted(steps, name, step, a, node.type) for step, a in zip(inputs, types, strict=True))
        if isinstance(operator, (Concat, Except)):
            return steps.add(SumStep, name, size, fitted, coefficients=operator.coefficients)
        return steps.add(ExtremeStep, name, size, fitted, smaller=isinstance(operator, Intersect))
    if isinstance(operator, Join):
        return _join(steps, name, operator, node.type, types, inputs)
    if isinstance(operator, GroupBy):
        return _group(steps, name, operator, types[0], inputs[0])
    if isinstance(operator, Shave):
        return _shave(steps, name, operator, types[0], inputs[0])
    raise CannotCompile("it has no compiled rule")


def _call(writer: Writer, function: Lambda, *records: Held) -> Held:
    core = function.core
    for parameter, record in zip(core.parameters, records, strict=True):
        writer.known[parameter.digest] = record
    return shaped(emit(writer, core.body), function.type)


def _probe(steps: Steps, size: int, compute: Callable[[Writer, list[str]], list[str]]) -> tuple[int, ...] | None:
    """Which input word each output word is, where nothing is computed. It also finds out what cannot be compiled."""
    words = [f"c{i}" for i in range(size)]
    places = {word: i for i, word in enumerate(words)}
    out = compute(Writer(steps.dictionary), words)
    return tuple(places[word] for word in out) if all(word in places for word in out) else None


def _map(steps: Steps, name: str, below: Step, compute: Callable[[Writer, Words], list[str]]) -> Step:
    def write(writer: Writer, words: Words, weight: str, sink: Sink) -> None:
        sink(compute(writer, words), weight)

    permutation = _probe(steps, below.width, compute)
    size = len(compute(Writer(steps.dictionary), [f"c{i}" for i in range(below.width)]))
    if permutation == tuple(range(below.width)):
        return below
    return steps.add(MapStep, name, size, (below,), write=write, permutation=permutation, images=(compute,))


def _select(steps: Steps, name: str, function: Lambda, type_: Type, below: Step) -> Step:
    return _map(
        steps,
        name,
        below,
        lambda writer, words: code.to_words(_call(writer, function, code.from_words(type_, words)), function.type),
    )


def _fitted(steps: Steps, name: str, below: Step, type_: Type, wanted: Type) -> Step:
    """The step's records laid out as a type that differs at most in what may be null."""
    return _map(
        steps, name, below, lambda writer, words: code.to_words(shaped(code.from_words(type_, words), wanted), wanted)
    )


def _filter(steps: Steps, name: str, operator: Where | Partition, type_: Type, below: Step) -> Step:
    def condition(writer: Writer, words: Words) -> str:
        record = code.from_words(type_, words)
        if isinstance(operator, Where):
            return truth(_call(writer, operator.predicate, record))
        part = code.constant(writer, operator.part.value, operator.part.type)
        return same(writer, _call(writer, operator.key, record), part)

    def write(writer: Writer, words: Words, weight: str, sink: Sink) -> None:
        with writer.block(f"if {condition(writer, words)}:"):
            sink(words, weight)

    condition(Writer(steps.dictionary), [f"c{i}" for i in range(below.width)])
    return steps.add(MapStep, name, below.width, (below,), write=write, condition=condition)


def _select_many(steps: Steps, name: str, operator: SelectMany, wanted: Type, type_: Type, below: Step) -> Step:
    function, bound = operator.function.core, operator.bound
    weighted = lists.is_weighted(operator.function)

    def elements(writer: Writer, words: Words, body: Callable[[list[str], str], None]) -> None:
        writer.known[function.parameters[0].digest] = code.from_words(type_, words)
        taken, writer.most = writer.bind("0", "n"), bound

        def element(item: lists.Element) -> None:
            with writer.block(f"if {taken} < {bound}:"):
                writer.line(f"{taken} += 1")
                if weighted:
                    record, weight = lists.weighted_parts(writer, item)
                    with writer.block(f"if {weight.present or 'True'}:"):
                        body(code.to_words(record, wanted), weight.text)
                else:
                    body(code.to_words(shaped(lists.value_of(writer, item), wanted), wanted), "1.0")

        known = dict(writer.known)
        lists.loop(writer, function.body, element)
        writer.known = known

    def image(item: lists.Element, writer: Writer, words: Words) -> list[str]:
        writer.known[function.parameters[0].digest] = code.from_words(type_, words)
        return code.to_words(shaped(lists.value_of(writer, item), wanted), wanted)

    def write(writer: Writer, words: Words, weight: str, sink: Sink) -> None:
        # two walks: the norm must be known before the first element is passed on
        if weighted:
            _write_weighted(writer, words, weight, sink)
            return
        total = writer.bind("0.0", "t")
        elements(writer, words, lambda out, w: writer.line(f"{total} += 1.0"))
        share = writer.bind(f"{weight} / max(1.0, {total})")
        elements(writer, words, lambda out, w: sink(out, share))

    def _write_weighted(writer: Writer, words: Words, weight: str, sink: Sink) -> None:
        # scaled by the largest weight, so that no sum overflows; repeats meet in a scratch table
        top = writer.bind("1.0", "t")
        elements(writer, words, lambda out, w: writer.line(f"{top} = max({top}, abs({w}))"))
        scratch = f"SCRATCH_{number}"
        elements(
            writer, words, lambda out, w: writer.line(f"gather_{len(out)}(A, {scratch}, {', '.join(out)}, {w} / {top})")
        )
        norm = writer.bind(f"max(1.0 / {top}, gathered_norm(A, {scratch}, {size}))")
        row = writer.name("r")
        with writer.block(f"for {row} in range(1, 1 + load(A, {scratch} + COUNT)):"):
            base = writer.bind(f"load(A, {scratch} + ROWS) + {row} * load(A, {scratch} + STRIDE)")
            out = [writer.bind(f"load(A, {base} + {i})") for i in range(size)]
            sink(out, f"{weight} * (as_float(load(A, {base} + {size})) / {norm})")
        writer.line(f"clear(A, {scratch})")

    size, number = width(wanted), len(steps.all)
    write(Writer(steps.dictionary), [f"c{i}" for i in range(below.width)], "w", lambda words, weight: None)
    images: tuple[Callable[[Writer, Words], list[str]], ...] = ()
    if not weighted and (items := lists.written(function.body, bound)) is not None:
        images = tuple(partial(image, item) for item in items)
    return steps.add(MapStep, name, size, (below,), write=write, weighted=weighted, images=images)


def _join(steps: Steps, name: str, operator: Join, wanted: Type, types: list[Type], inputs: list[Step]) -> Step:
    common = _common_key(operator.left_key.type, operator.right_key.type)
    keyed = [
        _with_key(steps, name, step, key, type_, common)
        for step, key, type_ in zip(inputs, (operator.left_key, operator.right_key), types, strict=True)
    ]
    (left, left_key), (right, right_key) = keyed
    sizes = inputs[0].width, inputs[1].width

    def write(writer: Writer, left_words: Words, right_words: Words) -> list[str]:
        x = code.from_words(types[0], left_words[: sizes[0]])
        y = code.from_words(types[1], right_words[: sizes[1]])
        return code.to_words(_call(writer, operator.result, x, y), wanted)

    permutation = _probe(
        steps, left.width + right.width, lambda writer, words: write(writer, words[: left.width], words[left.width :])
    )
    return steps.add(
        JoinStep,
        name,
        width(wanted),
        (left, right),
        keys=(left_key, right_key),
        write=write,
        permutation=permutation,
    )


def _common_key(left: Type, right: Type) -> Type:
    common = unify(_unnamed(left), _unnamed(right))
    assert common is not None
    return common


def _unnamed(type_: Type) -> Type:
    from wpinq.expr.types import TupleOf

    if not isinstance(type_, TupleOf):
        return type_
    elements = tuple(_unnamed(element) for element in type_.elements)
    return TupleOf((None,) * len(elements), elements, nullable=type_.nullable)


def _with_key(
    steps: Steps, name: str, below: Step, key: Lambda, type_: Type, wanted: Type
) -> tuple[Step, tuple[int, ...]]:
    """The step and the numbers of its key's columns; where a key is computed, a step that adds them."""

    def compute(writer: Writer, words: Words) -> list[str]:
        return code.to_words(shaped(_call(writer, key, code.from_words(type_, words)), wanted), wanted)

    permutation = _probe(steps, below.width, compute)
    if permutation is not None and len(set(permutation)) == len(permutation):
        return below, permutation
    extended = _map(steps, name, below, lambda writer, words: [*words, *compute(writer, words)])
    return extended, tuple(range(below.width, extended.width))


def _group(steps: Steps, name: str, operator: GroupBy, type_: Type, below: Step) -> Step:
    keyed, key = _with_key(steps, name, below, operator.key, type_, operator.key.type)

    def group(writer: Writer, key_words: Words) -> Running:
        state = lists.Group(writer, operator.reduce)
        reduced = operator.reduce.type

        def result() -> list[str]:
            return [*key_words, *code.to_words(shaped(state.result(), reduced), reduced)]

        def add(words: Words) -> None:
            state.add(code.from_words(type_, words[: below.width]))

        return Running(state.start, add, result, state.count if state.counts_only else None)

    running = group(Writer(steps.dictionary), [f"k{i}" for i in range(len(key))])
    running.start()
    running.add([f"c{i}" for i in range(keyed.width)])
    size = len(running.result())
    return steps.add(GroupStep, name, size, (keyed,), key=key, group=group)


def _shave(steps: Steps, name: str, operator: Shave, type_: Type, below: Step) -> Step:
    widths = operator.widths
    if not isinstance(widths, Lambda):
        return steps.add(ShaveStep, name, below.width + 1, (below,), constant=widths, limit=operator.bound, loop=None)
    function, bound = widths.core, operator.bound

    def walk_widths(writer: Writer, words: Words, body: Callable[[str, str], None]) -> None:
        writer.known[function.parameters[0].digest] = code.from_words(type_, words)
        index, writer.most = writer.bind("-1", "n"), bound

        def element(item: lists.Element) -> None:
            with writer.block(f"if {index} + 1 < {bound}:"):
                writer.line(f"{index} += 1")
                value = lists.value_of(writer, item)
                assert isinstance(value, code.Term)
                with writer.block(f"if {value.present or 'True'} and {value.text} > 0:"):
                    body(index, f"float({value.text})")

        lists.loop(writer, function.body, element)

    walk_widths(Writer(steps.dictionary), [f"c{i}" for i in range(below.width)], lambda index, width: None)
    return steps.add(ShaveStep, name, below.width + 1, (below,), constant=0.0, limit=None, loop=walk_widths)
