"""Functions that have no form over words: Python computes them once for each argument, and a table remembers.

Generated code looks a value up. Where it is not there yet, the arguments are put in a table of what is missing, the
proposal is undone, Python computes, and the proposal is redone. So functions of strings and lists compile, whose
values are numbers in a dictionary. A reducer that has no running form is a function of a group: the group goes by two
sums of mixed words, 128 bits, which no order changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wpinq.engines.incremental.compiled.columns import Dictionary, width
from wpinq.expr.types import INT, ListOf, Type
from wpinq.expr.values import Value, order_key

if TYPE_CHECKING:
    from wpinq.engines.incremental.compiled.code import Writer

GROUP_KEY = 2
"""The words that a group goes by."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function of words: its number, the types of its arguments and of its value, and what computes it.

    `member` is the type of the members of a group, where it is a function of one.
    """

    number: int
    arguments: tuple[Type, ...]
    value: Type
    compute: Callable[..., Any]
    member: Type | None = None

    @property
    def key_width(self) -> int:
        """The words that its table is looked up by."""
        return GROUP_KEY if self.member is not None else sum(width(type_) for type_ in self.arguments)

    @property
    def missing_width(self) -> int:
        """The words that tell what is missing."""
        return self.key_width + (0 if self.member is None else width(self.member))

    def learn(self, rows: Sequence[Sequence[int]], dictionary: Dictionary) -> list[tuple[list[int], list[int]]]:
        """The key and the value's words of what is missing."""
        if self.member is None:
            return [(list(row), self._encoded(self._arguments(row, dictionary), dictionary)) for row in rows]
        groups: dict[tuple[int, ...], list[Value]] = {}
        for row in rows:
            member = dictionary.decode(row[GROUP_KEY:], self.member)
            groups.setdefault(tuple(row[:GROUP_KEY]), []).append(member)
        return [
            (list(key), self._encoded([tuple(sorted(members, key=order_key))], dictionary))
            for key, members in groups.items()
        ]

    def _arguments(self, row: Sequence[int], dictionary: Dictionary) -> list[Value]:
        found, start = [], 0
        for type_ in self.arguments:
            size = width(type_)
            found.append(dictionary.decode(row[start : start + size], type_))
            start += size
        return found

    def _encoded(self, arguments: Sequence[Value], dictionary: Dictionary) -> list[int]:
        return dictionary.encode(self.compute(*arguments), self.value)


def function_of(
    dictionary: Dictionary,
    key: object,
    arguments: tuple[Type, ...],
    value: Type,
    compute: Callable[..., Any],
    member: Type | None = None,
) -> Function:
    """The function that goes by this key, noted in the dictionary."""
    known = dictionary.functions
    if key not in known:
        known[key] = Function(len(known), arguments, value, compute, member)
    found: Function = known[key]
    return found


def looked_up(writer: Writer, function: Function, words: Sequence[str]) -> list[str]:
    """Write the look-up of a value; names of its words. Where it is missing, the function being written ends."""
    size = function.key_width
    key = ", ".join(writer.bind(word) for word in words)
    row = writer.bind(f"find_{size}(A, MEMO_{function.number}, {key})", "r")
    with writer.block(f"if {row} == 0:"):
        writer.line(f"gather_{size}(A, MISS_{function.number}, {key}, 1.0)")
        writer.line("save(A, MISSED, 1)")
        writer.line("return")
    return value_words(writer, function, row)


def value_words(writer: Writer, function: Function, row: str) -> list[str]:
    """Names of the words of a value in its row."""
    table, size = f"MEMO_{function.number}", function.key_width
    return [writer.bind(f"load(A, row_at(A, {table}, {row}) + {size + i})") for i in range(width(function.value))]


def length_of(writer: Writer, type_: ListOf, word: str) -> str:
    """Write the length of a list."""
    # by `repr`: types are equal that differ in what may be null, and so in their words
    function = function_of(writer.dictionary, ("length", repr(type_)), (type_,), INT, len)
    return looked_up(writer, function, [word])[0]


def element_of(writer: Writer, type_: ListOf, word: str, index: str) -> list[str]:
    """Write the words of an element of a list. Whoever learns its length learns its elements too."""
    function = function_of(
        writer.dictionary, ("element", repr(type_)), (type_, INT), type_.element, lambda items, at: items[at]
    )
    return looked_up(writer, function, [word, index])


def elements(dictionary: Dictionary, function: Function, row: Sequence[int]) -> Iterator[tuple[Function, list[int]]]:
    """The elements of a list whose length is learnt, each as what would be missing."""
    (type_,) = function.arguments[:1] or (INT,)
    follower = dictionary.functions.get(("element", repr(type_)))
    if follower is not None and dictionary.functions.get(("length", repr(type_))) is function:
        for index in range(len(dictionary.decode(row, type_))):
            yield follower, [*row, index]


def group_looked_up(writer: Writer, function: Function) -> list[str]:
    """Write the look-up of a reducer's value; where it is missing, its members are told if there is room for all."""
    size, number = function.missing_width - GROUP_KEY, function.number
    row = writer.bind(f"find_{GROUP_KEY}(A, MEMO_{number}, group_a, group_b)", "r")
    with writer.block(f"if {row} == 0:"):
        writer.line("save(A, MISSED, 1)")
        needed = f"load(A, MISS_{number} + COUNT) + load(A, GROUP_{number} + COUNT) + 1"
        with writer.block(f"if {needed} >= load(A, MISS_{number} + CAP):"):
            writer.line(f"save(A, STATUS, MISS_{number})")
            writer.line("return")
        at, base = writer.name("z"), writer.name("b")
        with writer.block(f"for {at} in range(1, 1 + load(A, GROUP_{number} + COUNT)):"):
            writer.line(f"{base} = row_at(A, GROUP_{number}, {at})")
            words = ", ".join(["group_a", "group_b", *(f"load(A, {base} + {i})" for i in range(size))])
            writer.line(f"gather_{GROUP_KEY + size}(A, MISS_{number}, {words}, 1.0)")
        writer.line("return")
    return value_words(writer, function, row)
