"""Steps over columns: the input of the code generators. `plan_steps` makes them of plans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from wpinq.engines.delta.compiled.expressions import Memo, emit, group_looked_up, memo_of, shaped
from wpinq.engines.delta.compiled.hash_table import clear, gathering
from wpinq.engines.delta.compiled.routine import CannotCompile, call, mix, mix_too, plus
from wpinq.engines.delta.compiled.values import Dictionary, ScalarCode, ValueCode, Writer, from_words, to_words, width
from wpinq.expr.compile import compile_lambda
from wpinq.expr.nodes import Call, Lambda, walk
from wpinq.expr.types import FLOAT, Type
from wpinq.plan.node import Node

# --- groups of GroupBy as running reductions, or as a memo of the whole group -----------------------------------------

_RUNNING = ("length", "sum_list", "min_list", "max_list")
"""The reducers of a list that can be kept up record by record."""


class Group:
    """A group that grows record by record, and the reductions of it that a reducer asks for, as code.

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
            self.add([f"c{i}" for i in range(width(self.record))])
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


EmitRecord = Callable[[Sequence[str], str], None]
"""Takes the words of an output record and the code of its weight, and writes what is done with them."""

WriteLoop = Callable[[Writer, Sequence[str], str, EmitRecord], None]


@dataclass(frozen=True, slots=True)
class Image:
    """One output of a record: what writes its words, and its share of the record's weight."""

    words: Callable[[Writer, Sequence[str]], list[str]]
    share: float


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

    A filter has a condition, and keeps its records; a permutation says which input word each output word is. `images`
    are the outputs of a record, where every record has as many, of the same shares of its weight. Any other step has
    `loop(writer, words, weight, sink)`, which writes what passes a record's outputs to the sink. `scratch` is the table
    in which outputs of a record, of weights of any sign, are added up before their norm is taken.
    """

    condition: Callable[[Writer, Sequence[str]], str] | None = None
    permutation: tuple[int, ...] | None = None
    scratch: str | None = None
    images: tuple[Image, ...] = ()
    loop: WriteLoop | None = None


@dataclass(eq=False)
class SumStep(Step):
    """Inputs added with coefficients."""

    coefficients: tuple[int, ...]


@dataclass(eq=False)
class JoinStep(Step):
    """Pairs by key. `write(writer, left words, right words)` gives the output's words."""

    keys: tuple[tuple[int, ...], tuple[int, ...]]
    write: Callable[[Writer, Sequence[str], Sequence[str]], list[str]]
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
    loop: Callable[[Writer, Sequence[str], Callable[[str, str], None]], None] | None


@dataclass(eq=False)
class GroupStep(Step):
    """Prefixes of the records of a key, reduced. The key's words come first in the output."""

    key: tuple[int, ...]
    group: Callable[[Writer, Sequence[str]], Group]


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
