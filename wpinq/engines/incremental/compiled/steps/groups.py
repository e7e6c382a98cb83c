"""Groups of GroupBy as running reductions, or as a memo of the whole group."""

from __future__ import annotations

from collections.abc import Sequence

from wpinq.engines.incremental.compiled.refusal import CannotCompile
from wpinq.engines.incremental.compiled.routines.calculation import mix, mix_too, plus
from wpinq.engines.incremental.compiled.routines.routine import call
from wpinq.engines.incremental.compiled.routines.store import clear, gathering
from wpinq.engines.incremental.compiled.words.code import ScalarCode, ValueCode, Writer, from_words, to_words
from wpinq.engines.incremental.compiled.words.encoding import width
from wpinq.engines.incremental.compiled.words.expressions import emit, shaped
from wpinq.engines.incremental.compiled.words.memo import Memo, group_looked_up, memo_of
from wpinq.expr.compile import compile_lambda
from wpinq.expr.nodes import Call, Lambda, walk
from wpinq.expr.types import FLOAT, Type

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
