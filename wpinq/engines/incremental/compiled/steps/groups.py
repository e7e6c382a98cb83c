"""Groups of GroupBy as running reductions, or as a memo of the whole group."""

from __future__ import annotations

from wpinq.engines.incremental.compiled.refusal import CannotCompile
from wpinq.engines.incremental.compiled.routines.calculation import mix, mix_too, plus
from wpinq.engines.incremental.compiled.routines.routine import call
from wpinq.engines.incremental.compiled.routines.store import clear, gathering
from wpinq.engines.incremental.compiled.words.code import ScalarCode, ValueCode, Writer, from_words, to_words
from wpinq.engines.incremental.compiled.words.encoding import width
from wpinq.engines.incremental.compiled.words.expressions import emit
from wpinq.engines.incremental.compiled.words.memo import Memo, group_looked_up, memo_of
from wpinq.expr.compile import compile_lambda
from wpinq.expr.nodes import Call, Expr, Lambda, walk
from wpinq.expr.types import FLOAT, STR, ListOf

_RUNNING = ("length", "sum_list", "min_list", "max_list")
"""The reducers of a list that can be kept up record by record."""


class Group:
    """A group that grows record by record, and the reductions of it that an expression asks for."""

    def __init__(self, writer: Writer, reduce: Lambda) -> None:
        self.writer, self.reduce = writer, reduce.core
        (self.parameter,) = self.reduce.parameters
        self.held: list[tuple[Call, Lambda | None, str]] = []
        for node in walk(self.reduce.body):
            if isinstance(node, Call) and node.name in _RUNNING:
                if self._is_group(node.arguments[0]):
                    self.held.append((node, None, writer.name("g")))
                elif (function := self._of_group(node.arguments[0])) is not None:
                    self.held.append((node, function, writer.name("g")))
        self.memo = None if self._runs() else self._whole()

    def _whole(self) -> Memo:
        """The reducer as a function of the group, where a part of it has no running form."""
        if not self.writer.memoizes:
            raise CannotCompile("the reducer has no running form")
        type_ = self.parameter.type
        assert isinstance(type_, ListOf)
        return memo_of(
            self.writer.dictionary,
            ("group", self.reduce.digest),
            (type_,),
            self.reduce.type,
            compile_lambda(self.reduce),
            type_.element,
        )

    def _runs(self) -> bool:
        """Whether all of it can be kept up record by record."""
        probe = Writer(self.writer.dictionary)
        probe.memoizes = False
        try:
            self._check()
            for node, function, _ in self.held:
                probe.known = {}
                assert isinstance(self.parameter.type, ListOf)
                element = self.parameter.type.element
                value = from_words(element, [f"c{i}" for i in range(width(element))])
                if function is not None:
                    probe.known[function.parameters[0].digest] = value
                    value = emit(probe, function.body)
                if node.name != "length" and not isinstance(value, ScalarCode):
                    raise CannotCompile(f"the reducer {node.name} of a record")
            probe.known = {node.digest: from_words(node.type, ["c0", "c1"]) for node, _, _ in self.held}
            emit(probe, self.reduce.body)
        except CannotCompile:
            return False
        return True

    def _is_group(self, expr: Expr) -> bool:
        return expr.digest == self.parameter.digest

    def _of_group(self, expr: Expr) -> Lambda | None:
        """The function that an expression maps over the group."""
        if isinstance(expr, Call) and expr.name == "map" and self._is_group(expr.arguments[0]):
            function = expr.arguments[1]
            assert isinstance(function, Lambda)
            return function
        return None

    def _check(self) -> None:
        for node, _, _ in self.held:
            assert isinstance(node.arguments[0].type, ListOf)
            element = node.arguments[0].type.element
            if node.name != "length" and (element == STR or (node.name == "sum_list" and element == FLOAT)):
                raise CannotCompile(f"the reducer {node.name} of {element} has no exact running form")

    def start(self) -> None:
        """Write what the reductions of an empty group are."""
        if self.memo is not None:
            self.writer.line("group_a = 0", "group_b = 0", call(clear, self.memo.members))
            return
        for node, _, name in self.held:
            zero = "0.0" if node.type == FLOAT else "False" if str(node.type) == "bool" else "0"
            self.writer.line(f"{name} = {zero}", f"{name}_high = 0", f"{name}_any = False")

    def add(self, record: ValueCode) -> None:
        """Write how they change as a record joins the group."""
        writer = self.writer
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
            if not isinstance(value, ScalarCode):
                raise CannotCompile(f"the reducer {node.name} of a record")
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
        """Write what the reductions are of a group of so many records."""
        for _, _, name in self.held:
            self.writer.line(f"{name} = {number}")

    def result(self) -> ValueCode:
        """Write the value of the reducer on the group as it is."""
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
