"""Memos: functions that have no form over words, which Python computes once for each argument, and a table keeps.

Generated code looks a value up. Where it is not there yet, the arguments are put in a table of what is missing, the
proposal is undone, Python computes, and the proposal is redone. So functions of strings and lists compile, whose
values are numbers in a dictionary. A reducer that has no running form is a function of a group: the group goes by two
sums of mixed words, 128 bits, which no order changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from wpinq.engines.incremental.compiled.routines.routine import call
from wpinq.engines.incremental.compiled.routines.store import finding, gathering, row_at
from wpinq.engines.incremental.compiled.words.code import Writer
from wpinq.engines.incremental.compiled.words.encoding import Dictionary, width
from wpinq.expr.types import INT, ListOf, Type
from wpinq.expr.values import Value, order_key

GROUP_KEY = 2
"""The words that a group goes by."""


@dataclass(frozen=True, slots=True)
class Memo:
    """A function of words: its number, the types of its arguments and of its value, and what computes it.

    `member` is the type of the members of a group, where it is a function of one.
    """

    number: int
    arguments: tuple[Type, ...]
    value: Type
    compute: Callable[..., Any]
    member: Type | None = None

    @property
    def table(self) -> str:
        """The table of its values."""
        return f"MEMO_{self.number}"

    @property
    def missing(self) -> str:
        """The table that gathers the arguments that are missing."""
        return f"MISS_{self.number}"

    @property
    def members(self) -> str:
        """The table that gathers the members of a group."""
        return f"GROUP_{self.number}"

    @property
    def key_width(self) -> int:
        """The words that its table is looked up by."""
        return GROUP_KEY if self.member is not None else sum(map(width, self.arguments))

    @property
    def missing_width(self) -> int:
        """The words that tell what is missing."""
        return self.key_width + (0 if self.member is None else width(self.member))

    def learn(self, rows: Sequence[Sequence[int]], dictionary: Dictionary) -> list[tuple[list[int], list[int]]]:
        """The key and the value's words of what is missing."""
        found: list[tuple[list[int], list[Value]]] = []
        groups: dict[tuple[int, ...], list[Value]] = {}
        for row in rows:
            if self.member is None:
                found.append((list(row), dictionary.decode_side_by_side(row, self.arguments)))
            else:
                member = dictionary.decode(row[GROUP_KEY:], self.member)
                groups.setdefault(tuple(row[:GROUP_KEY]), []).append(member)
        found += [(list(key), [tuple(sorted(members, key=order_key))]) for key, members in groups.items()]
        return [(key, dictionary.encode(self.compute(*arguments), self.value)) for key, arguments in found]


def memo_of(
    dictionary: Dictionary,
    key: object,
    arguments: tuple[Type, ...],
    value: Type,
    compute: Callable[..., Any],
    member: Type | None = None,
) -> Memo:
    """The memo that goes by this key, noted in the dictionary."""
    known = dictionary.memos
    if key not in known:
        known[key] = Memo(len(known), arguments, value, compute, member)
    found: Memo = known[key]
    return found


def looked_up(writer: Writer, memo: Memo, words: Sequence[str]) -> list[str]:
    """Write the look-up of a value; names of its words. Where it is missing, the routine being written ends."""
    size = memo.key_width
    key = [writer.bind(word) for word in words]
    row = writer.bind(call(finding(size), memo.table, *key), "r")
    writer.when(f"{row} == 0", call(gathering(size), memo.missing, *key, "1.0"), "save(state, MISSED, 1)", "return")
    return value_words(writer, memo, row)


def value_words(writer: Writer, memo: Memo, row: str) -> list[str]:
    """Names of the words of a value in its row."""
    start = call(row_at, memo.table, row)
    return [writer.bind(f"load(state, {start} + {memo.key_width + i})") for i in range(width(memo.value))]


def length_of(writer: Writer, type_: ListOf, word: str) -> str:
    """Write the length of a list."""
    # by `repr`: types are equal that differ in what may be null, and so in their words
    memo = memo_of(writer.dictionary, ("length", repr(type_)), (type_,), INT, len)
    return looked_up(writer, memo, [word])[0]


def element_of(writer: Writer, type_: ListOf, word: str, index: str) -> list[str]:
    """Write the words of an element of a list. Whoever learns its length learns its elements too."""
    memo = memo_of(
        writer.dictionary, ("element", repr(type_)), (type_, INT), type_.element, lambda items, at: items[at]
    )
    return looked_up(writer, memo, [word, index])


def elements(dictionary: Dictionary, memo: Memo, row: Sequence[int]) -> Iterator[tuple[Memo, list[int]]]:
    """The elements of a list whose length is learnt, each as what would be missing."""
    (type_,) = memo.arguments[:1] or (INT,)
    follower = dictionary.memos.get(("element", repr(type_)))
    if follower is not None and dictionary.memos.get(("length", repr(type_))) is memo:
        for index in range(len(dictionary.decode(row, type_))):
            yield follower, [*row, index]


def group_looked_up(writer: Writer, memo: Memo) -> list[str]:
    """Write the look-up of a reducer's value; where it is missing, its members are noted if there is room for all."""
    size = memo.missing_width - GROUP_KEY
    row = writer.bind(call(finding(GROUP_KEY), memo.table, "group_a", "group_b"), "r")
    with writer.block(f"if {row} == 0:"):
        writer.line("save(state, MISSED, 1)")
        needed = f"load(state, {memo.missing} + COUNT) + load(state, {memo.members} + COUNT) + 1"
        writer.when(f"{needed} >= load(state, {memo.missing} + CAP)", f"save(state, STATUS, {memo.missing})", "return")
        at, base = writer.name("z"), writer.name("b")
        with writer.block(f"for {at} in range(1, 1 + load(state, {memo.members} + COUNT)):"):
            writer.line(f"{base} = {call(row_at, memo.members, at)}")
            words = ["group_a", "group_b", *(f"load(state, {base} + {i})" for i in range(size))]
            writer.line(call(gathering(GROUP_KEY + size), memo.missing, *words, "1.0"))
        writer.line("return")
    return value_words(writer, memo, row)
