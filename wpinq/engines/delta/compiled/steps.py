"""Steps over columns, made of plans by `lower`: the input of the code generators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

from wpinq.engines.delta.compiled import lists, values
from wpinq.engines.delta.compiled.expressions import Memo, emit, group_looked_up, memo_of, same, shaped, truth
from wpinq.engines.delta.compiled.hash_table import clear, gathering, words_of
from wpinq.engines.delta.compiled.routine import CannotCompile, call, mix, mix_too, plus
from wpinq.engines.delta.compiled.values import Dictionary, ScalarCode, ValueCode, Writer, from_words, to_words, width
from wpinq.expr.compile import compile_lambda
from wpinq.expr.nodes import Call, Lambda, walk
from wpinq.expr.types import FLOAT, TupleOf, Type, unify
from wpinq.plan import operators as ops
from wpinq.plan.node import Node, topological

# --- groups of GroupBy as running reductions, or as a memo of the whole group -----------------------------------------

#: The reducers of a list that can be kept up record by record.
_RUNNING = ("length", "sum_list", "min_list", "max_list")


class Group:
    """A group that grows record by record, and the reductions of it in a reducer, as code.

    `record` is the type of the records, whose words may have a key's after them; `key` has the words of the group's.
    """

    def __init__(self, reduce: Lambda, record: Type, writer: Writer, key: Sequence[str]) -> None:
        self.writer, self.reduce = writer, reduce.core
        self.type, self.record, self.key = reduce.type, record, key
        (self.parameter,) = self.reduce.parameters
        self.held: list[tuple[Call, Lambda | None, str]] = []
        for node in walk(self.reduce.body):
            if isinstance(node, Call) and node.name in _RUNNING:
                over, function = node.arguments[0], None
                if isinstance(over, Call) and over.name == "map":
                    over, mapped = over.arguments
                    assert isinstance(mapped, Lambda)
                    function = mapped
                if over == self.parameter:
                    self.held.append((node, function, writer.name("g")))
        self.memo: Memo | None = None if self._runs() else self._whole()

    def _whole(self) -> Memo:
        """The reducer as a function of the group, where a part of it has no running form."""
        if not self.writer.memoizes:
            raise CannotCompile("the reducer has no running form")
        key, reduce = ("group", self.reduce.digest), compile_lambda(self.reduce)
        return memo_of(self.writer.dictionary, key, (self.parameter.type,), self.reduce.type, reduce, self.record)

    def _runs(self) -> bool:
        """Whether all of it can be kept up record by record."""
        writer, self.writer, self.memo = self.writer, Writer(self.writer.dictionary), None
        self.writer.memoizes = False
        try:
            self.add(words_of("c", width(self.record)))
            self.result()
        except CannotCompile:
            return False
        finally:
            self.writer = writer
        return True

    def start(self) -> None:
        """Write what the reductions of an empty group are."""
        if self.memo is not None:
            self.writer.line("group_a = 0", "group_b = 0", call(clear, self.memo.members))
            return
        for node, _, name in self.held:
            zero = "0.0" if node.type == FLOAT else "False" if str(node.type) == "bool" else "0"
            self.writer.line(f"{name} = {zero}", f"{name}_high = 0", f"{name}_any = False")

    def add(self, words: Sequence[str]) -> None:
        """Write how they change as a record joins the group."""
        writer, record = self.writer, from_words(self.record, words[: width(self.record)])
        if self.memo is not None:
            self._join(self.memo, record)
            return
        for node, function, name in self.held:
            if node.name == "length":
                writer.line(f"{name} += 1")
                continue
            value = record
            if function is not None:
                known = dict(writer.known)
                writer.known[function.parameters[0].digest] = record
                value = emit(writer, function.body)
                writer.known = known
            inexact = ("str", "float") if node.name == "sum_list" else ("str",)
            if not isinstance(value, ScalarCode) or value.kind in inexact:
                raise CannotCompile(f"the reducer {node.name} has no exact running form")
            with writer.block(f"if {value.present or 'True'}:"):
                if node.name == "sum_list":  # in two halves, so that no intermediate sum overflows
                    writer.line(f"{name} += {value.text} & 4294967295", f"{name}_high += {value.text} >> 32")
                else:
                    sign = "<" if node.name == "min_list" else ">"
                    writer.when(f"not {name}_any or {value.text} {sign} {name}", f"{name} = {value.text}")
                    writer.line(f"{name}_any = True")

    def _join(self, memo: Memo, record: ValueCode) -> None:
        assert memo.member is not None
        writer = self.writer
        words = [writer.bind(word) for word in to_words(record, memo.member)]
        for seed, (total, mixer) in enumerate((("group_a", mix), ("group_b", mix_too))):
            mixed = f"{1442695040888963407 + seed}"
            for word in words:
                mixed = call(mixer, mixed, word)
            writer.line(f"{total} = {call(plus, total, mixed)}")
        writer.line(call(gathering(len(words)), memo.members, *words, "1.0"))

    @property
    def counts_only(self) -> bool:
        """Whether the reducer asks for nothing but the number of records."""
        return self.memo is None and all(node.name == "length" for node, _, _ in self.held)

    def count(self, number: str) -> None:
        """Write what the reductions are of a group of so many records, where it `counts_only`."""
        for _, _, name in self.held:
            self.writer.line(f"{name} = {number}")

    def result(self) -> list[str]:
        """Write the record of the group as it is: the words of its key, and the reducer's value."""
        return [*self.key, *to_words(shaped(self._value(), self.type), self.type)]

    def _value(self) -> ValueCode:
        writer = self.writer
        if self.memo is not None:
            return from_words(self.memo.value, group_looked_up(writer, self.memo))
        known = dict(writer.known)
        for node, _, name in self.held:
            if node.name == "length":
                value = ScalarCode("int", writer.bind(name))
            elif node.name == "sum_list":
                high = writer.bind(f"{name}_high + ({name} >> 32)")
                present = writer.bind(f"-2147483648 <= {high} <= 2147483647", "p")
                value = ScalarCode("int", writer.bind(f"({high} << 32) | ({name} & 4294967295)"), present)
            else:
                kind = {"float": "float", "bool": "bool"}.get(str(node.type), "int")
                value = ScalarCode(kind, writer.bind(name), writer.bind(f"{name}_any", "p"))
            writer.known[node.digest] = value
        found = emit(writer, self.reduce.body)
        writer.known = known
        return found


#: Writes the words of an output of a record, from the record's.
RecordWords = Callable[[Writer, Sequence[str]], list[str]]


@dataclass(frozen=True, slots=True)
class Image:
    """One output of a record: what writes its words, and its share of the record's weight."""

    words: RecordWords
    share: float


@dataclass(eq=False)
class Step:
    """One step: its number, its name in messages, the words of its records, and its inputs."""

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

    A filter has a condition, and keeps its records; a permutation says which input word each output word is. `images`
    are the outputs of a record, where every record has as many, of the same shares of its weight. Any other step has
    `loop(writer, words, weight, sink)`, which writes what passes a record's outputs to the sink. `scratch` is the table
    in which outputs of a record, of weights of any sign, are added up before their norm is taken.
    """

    condition: Callable[[Writer, Sequence[str]], str] | None = None
    permutation: tuple[int, ...] | None = None
    scratch: str | None = None
    images: tuple[Image, ...] = ()
    loop: Callable[[Writer, Sequence[str], str, lists.EmitRecord], None] | None = None


@dataclass(eq=False)
class SumStep(Step):
    """Inputs added with coefficients."""

    coefficients: tuple[int, ...]


@dataclass(eq=False)
class JoinStep(Step):
    """Pairs by key.

    `write(writer, left words, right words)` gives the output's words.
    """

    keys: tuple[tuple[int, ...], tuple[int, ...]]
    write: Callable[[Writer, Sequence[str], Sequence[str]], list[str]]
    permutation: tuple[int, ...] | None = None


@dataclass(eq=False)
class ExtremeStep(Step):
    """The smaller or the larger weight."""

    smaller: bool


@dataclass(eq=False)
class ShaveStep(Step):
    """Pieces.

    `widths` writes the loop over the widths of a record; None for a constant width.
    """

    constant: float
    limit: int | None
    loop: Callable[[Writer, Sequence[str], Callable[[str, str], None]], None] | None


@dataclass(eq=False)
class GroupStep(Step):
    """Prefixes of the records of a key, reduced; the key's words come first in the output."""

    key: tuple[int, ...]
    group: Callable[[Writer, Sequence[str]], Group]


@dataclass
class Steps:
    """The steps of several plans, inputs before users, and the step of each plan.

    `nodes` has a plan of each step that has one.

    `name` is what the steps that are being added are called in messages.
    """

    dictionary: Dictionary
    name: str = ""
    all: list[Step] = field(default_factory=list)
    roots: list[Step] = field(default_factory=list)
    nodes: dict[Step, Node] = field(default_factory=dict)

    def add(self, kind: type[Step], width: int, *inputs: Step, **arguments: Any) -> Step:
        """A further step."""
        step = kind(len(self.all), self.name, width, inputs, **arguments)
        self.all.append(step)
        return step


# Plans as steps over columns.
#
# Keys become columns: where a key is computed, a step before adds it to the record. So Join and GroupBy know only
# column numbers, and what a step does to columns without computing (Where, a permuting Select) shows.


def lower(plans: Sequence[Node], dictionary: Dictionary) -> Steps:
    """The steps of plans; CannotCompile names the step that has no integer form."""
    steps = Steps(dictionary)
    done: dict[bytes, Step] = {}
    for node in topological(plans):
        steps.name = f"step {len(done) + 1}, {node.operator.name}"
        try:
            done[node.digest] = _lower(steps, node, [done[child.digest] for child in node.inputs])
        except CannotCompile as reason:
            raise CannotCompile(f"{steps.name}: {reason}; the python engine runs it") from None
        steps.nodes.setdefault(done[node.digest], node)
    steps.roots = [done[plan.digest] for plan in plans]
    return steps


def _lower(steps: Steps, node: Node, inputs: list[Step]) -> Step:
    operator, size = node.operator, width(node.type)
    types = [child.type for child in node.inputs]
    if isinstance(operator, ops.Source):
        return steps.add(SourceStep, size, source=operator.source)
    if isinstance(operator, (ops.Concat, ops.Except, ops.Union, ops.Intersect)):
        fitted = [_fitted(steps, step, type_, node.type) for step, type_ in zip(inputs, types, strict=True)]
        if isinstance(operator, (ops.Concat, ops.Except)):
            return steps.add(SumStep, size, *fitted, coefficients=operator.coefficients)
        return steps.add(ExtremeStep, size, *fitted, smaller=isinstance(operator, ops.Intersect))
    if isinstance(operator, ops.Join):
        return _join(steps, operator, node.type, types, inputs)
    if isinstance(operator, (ops.Where, ops.Partition)):
        return _filter(steps, operator, types[0], inputs[0])
    if isinstance(operator, ops.Select):
        return _map(steps, inputs[0], partial(_applied, operator.function, operator.function.type, types[0]))
    if isinstance(operator, ops.SelectMany):
        return _select_many(steps, operator, node.type, types[0], inputs[0])
    if isinstance(operator, ops.GroupBy):
        return _group(steps, operator, types[0], inputs[0])
    if isinstance(operator, ops.Shave):
        return _shave(steps, operator, types[0], inputs[0])
    raise CannotCompile("it has no compiled rule")


def _call(writer: Writer, function: Lambda, *records: ValueCode) -> ValueCode:
    core = function.core
    for parameter, record in zip(core.parameters, records, strict=True):
        writer.known[parameter.digest] = record
    return shaped(emit(writer, core.body), function.type)


def _applied(function: Lambda, wanted: Type, type_: Type, writer: Writer, words: Sequence[str]) -> list[str]:
    """The words of a function's value at a record, in the layout of a wanted type.

    The wanted type differs at most in what may be null.
    """
    return to_words(shaped(_call(writer, function, from_words(type_, words)), wanted), wanted)


def _probe(steps: Steps, size: int, compute: RecordWords) -> tuple[int, tuple[int, ...] | None]:
    """The width of what is computed from so many words, and the permutation where it is one.

    The permutation has, for each output word, the place of its input word; it is None where a word is computed. Errors
    of what cannot be compiled are raised here.
    """
    words = words_of("c", size)
    places = {word: i for i, word in enumerate(words)}
    out = compute(Writer(steps.dictionary), words)
    return len(out), tuple(places[word] for word in out) if all(word in places for word in out) else None


def _map(steps: Steps, below: Step, compute: RecordWords) -> Step:
    size, permutation = _probe(steps, below.width, compute)
    if permutation == tuple(range(below.width)):
        return below
    return steps.add(MapStep, size, below, permutation=permutation, images=(Image(compute, 1.0),))


def _fitted(steps: Steps, below: Step, type_: Type, wanted: Type) -> Step:
    """The step's records laid out as a type that differs at most in what may be null."""
    return _map(steps, below, lambda writer, words: to_words(shaped(from_words(type_, words), wanted), wanted))


def _filter(steps: Steps, operator: ops.Where | ops.Partition, type_: Type, below: Step) -> Step:
    def condition(writer: Writer, words: Sequence[str]) -> str:
        record = from_words(type_, words)
        if isinstance(operator, ops.Where):
            return truth(_call(writer, operator.predicate, record))
        part = values.constant(writer, operator.part.value, operator.part.type)
        return same(writer, _call(writer, operator.key, record), part)

    condition(Writer(steps.dictionary), words_of("c", below.width))
    return steps.add(MapStep, below.width, below, condition=condition)


def _join(steps: Steps, operator: ops.Join, wanted: Type, types: list[Type], inputs: list[Step]) -> Step:
    common = unify(_unnamed(operator.left_key.type), _unnamed(operator.right_key.type))
    assert common is not None
    functions = operator.left_key, operator.right_key
    sides = zip(inputs, functions, types, strict=True)
    (left, left_key), (right, right_key) = (_with_key(steps, *side, common) for side in sides)
    sizes = inputs[0].width, inputs[1].width

    def write(writer: Writer, left_words: Sequence[str], right_words: Sequence[str]) -> list[str]:
        x, y = from_words(types[0], left_words[: sizes[0]]), from_words(types[1], right_words[: sizes[1]])
        return to_words(_call(writer, operator.result, x, y), wanted)

    def write_joined(writer: Writer, words: Sequence[str]) -> list[str]:
        return write(writer, words[: left.width], words[left.width :])

    size, permutation = _probe(steps, left.width + right.width, write_joined)
    return steps.add(JoinStep, size, left, right, keys=(left_key, right_key), write=write, permutation=permutation)


def _unnamed(type_: Type) -> Type:
    if not isinstance(type_, TupleOf):
        return type_
    elements = tuple(_unnamed(element) for element in type_.elements)
    return TupleOf((None,) * len(elements), elements, nullable=type_.nullable)


def _with_key(steps: Steps, below: Step, key: Lambda, type_: Type, wanted: Type) -> tuple[Step, tuple[int, ...]]:
    """The step and the numbers of its key's columns, with a step that adds computed ones."""
    compute = partial(_applied, key, wanted, type_)
    _, permutation = _probe(steps, below.width, compute)
    if permutation is not None and len(set(permutation)) == len(permutation):
        return below, permutation
    extended = _map(steps, below, lambda writer, words: [*words, *compute(writer, words)])
    return extended, tuple(range(below.width, extended.width))


def _group(steps: Steps, operator: ops.GroupBy, type_: Type, below: Step) -> Step:
    keyed, key = _with_key(steps, below, operator.key, type_, operator.key.type)
    group = partial(Group, operator.reduce, type_)
    trial = group(Writer(steps.dictionary), words_of("k", len(key)))
    trial.add(words_of("c", keyed.width))
    return steps.add(GroupStep, len(trial.result()), keyed, key=key, group=group)


def _select_many(steps: Steps, operator: ops.SelectMany, wanted: Type, type_: Type, below: Step) -> Step:
    """The step of a SelectMany: of images where its list is written out, else of a loop."""
    trial, words, size = Writer(steps.dictionary), words_of("c", below.width), width(wanted)
    images = _images(operator, wanted, type_)
    if images:
        for image in images:
            image.words(trial, words)
        return steps.add(MapStep, size, below, images=images)
    scratch = f"SCRATCH_{len(steps.all)}" if lists.is_weighted(operator.function) else None
    loop = lists.ListLoop(operator, wanted, type_)
    write = loop.write_counted if scratch is None else partial(loop.write_merged, scratch)
    write(trial, words, "w", lambda out, weight: None)
    return steps.add(MapStep, size, below, loop=write, scratch=scratch)


def _images(operator: ops.SelectMany, wanted: Type, type_: Type) -> tuple[Image, ...]:
    """The outputs of a record, where their number and weights are the same for all records.

    Empty where they are not, or where a weight is negative.
    """
    items = lists.written(operator.function.core.body, operator.bound)
    if items is None:
        return ()
    weighted = lists.is_weighted(operator.function)
    weights = [lists.weighed(item) if weighted else Fraction(1) for item in items]
    known = [(item, weight) for item, weight in zip(items, weights, strict=True) if weight is not None]
    if len(known) < len(items) or any(weight < 0 for _, weight in known):
        return ()
    (parameter,) = operator.function.core.parameters
    # no weight is negative, so that repeats add up to what their weights do
    norm = max(Fraction(operator.least_norm), sum(weight for _, weight in known))

    def image(item: lists.Item, writer: Writer, words: Sequence[str]) -> list[str]:
        if parameter.digest not in writer.known:
            writer.known[parameter.digest] = from_words(type_, words)
        return to_words(shaped(lists.item_value(writer, item), wanted), wanted)

    return tuple(Image(partial(image, item), float(weight / norm)) for item, weight in known if weight > 0)


def _shave(steps: Steps, operator: ops.Shave, type_: Type, below: Step) -> Step:
    widths = operator.widths
    if not isinstance(widths, Lambda):
        return steps.add(ShaveStep, below.width + 1, below, constant=widths, limit=operator.bound, loop=None)
    loop = partial(lists.loop_widths, widths.core, operator.bound, type_)
    loop(Writer(steps.dictionary), words_of("c", below.width), lambda index, width: None)
    return steps.add(ShaveStep, below.width + 1, below, constant=0.0, limit=None, loop=loop)
