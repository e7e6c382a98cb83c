"""Records as columns of 64-bit words, and values as the code that holds them.

A record is its leaves side by side: an int as it is, a bool as 0 or 1, a float by its bits, a string or a list by its
number in a dictionary. A value that may be null has a word before it that says whether it is there; where it is not,
all its words are 0. So two records of one type are equal exactly when their words are.

Generated code holds names of its own making and numbers only: no text of a query is ever executed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from wpinq.engines.delta.compiled.routine import CannotCompile, name
from wpinq.expr.types import BOOL, FLOAT, INT, NULL, STR, ListOf, TupleOf, Type
from wpinq.expr.values import Value
from wpinq.plan.arithmetic import Weight
from wpinq.runtime.arrays import Floats, Integers


def width(type_: Type) -> int:
    """How many words a record of the type takes.

    Examples
    --------
    >>> from wpinq.expr.types import INT, tuple_type
    >>> width(tuple_type([INT, INT.with_nullable()]))
    3
    """
    if isinstance(type_, TupleOf):
        return type_.nullable + sum(width(element) for element in type_.elements)
    if type_ == NULL:
        return 1
    if type_ not in (INT, FLOAT, BOOL, STR) and not isinstance(type_, ListOf):
        raise CannotCompile(f"records with a {type_} have no fixed width")
    return 1 + type_.nullable


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Records of one type as words, a row each, and their weights."""

    words: Integers
    weights: Floats


class Dictionary:
    """Strings and lists by number, in order of first use, and the memos of functions of them.

    See `Memo`.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._values: list[Value] = []
        self.memos: dict[object, Any] = {}

    def number(self, value: Value) -> int:
        """The number of a string or a list, a new one if need be."""
        key = repr(value)  # tells 1, 1.0 and True apart, in lists too
        known = self._numbers.get(key)
        if known is None:
            known = self._numbers[key] = len(self._values)
            self._values.append(value)
        return known

    def encode(self, value: Value, type_: Type) -> list[int]:
        """The words of a record."""
        words: list[int] = []
        self._encode(value, type_, words)
        return words

    def rows(self, weights: Mapping[Value, Weight], type_: Type) -> Rows:
        """Records and their weights as words."""
        return Rows(self.encode_all(list(weights), type_), np.array([*map(float, weights.values())], dtype=np.float64))

    def encode_all(self, records: Sequence[Value], type_: Type) -> Integers:
        """The words of records, a row each."""
        parts = type_.elements if isinstance(type_, TupleOf) and not type_.nullable else ()
        if parts and all(part == INT and not part.nullable for part in parts):  # as they are: a million in a second
            return np.array(records, dtype=np.int64).reshape(len(records), len(parts))
        encoded = np.array([self.encode(record, type_) for record in records], dtype=np.int64)
        return encoded.reshape(len(records), width(type_))

    def _encode(self, value: Value, type_: Type, words: list[int]) -> None:
        if type_.nullable:
            words.append(int(value is not None))
        if type_ == NULL:
            return
        if value is None:
            words.extend([0] * (width(type_) - 1))
        elif isinstance(type_, TupleOf):
            for item, element in zip(value, type_.elements, strict=True):
                self._encode(item, element, words)
        elif type_ == FLOAT:
            words.append(struct.unpack("<q", struct.pack("<d", value + 0.0))[0])
        else:
            numbered = type_ == STR or isinstance(type_, ListOf)
            words.append(self.number(value) if numbered else int(value))

    def decode(self, words: Iterable[int], type_: Type) -> Value:
        """The record of these words, of which more may follow."""
        words = iter(words)
        present = not type_.nullable or next(words) != 0
        if type_ == NULL:
            return None
        if isinstance(type_, TupleOf):
            items = tuple(self.decode(words, element) for element in type_.elements)
            return items if present else None
        word = int(next(words))
        if not present:
            return None
        if type_ == FLOAT:
            return struct.unpack("<d", struct.pack("<q", word))[0]
        if type_ == STR or isinstance(type_, ListOf):
            return self._values[word]
        return bool(word) if type_ == BOOL else word

    def decode_all(self, words: Integers, type_: Type) -> list[Value]:
        """The records of rows of words."""
        return [self.decode(row, type_) for row in words.tolist()]


# --- lines of generated code, and values as the code that holds them --------------------------------------------------

LINES_LIMIT = 20_000


@dataclass(frozen=True, slots=True)
class ScalarCode:
    """A scalar: the code of its value, and the code of whether it is present (None: always).

    `word` and `flag` name the words that hold it and whether it is there, where it came so from a record.
    """

    kind: str
    text: str
    present: str | None = None
    word: str | None = None
    flag: str | None = None


@dataclass(frozen=True, slots=True)
class RecordCode:
    """A record: its fields, the code that says whether it is there, and the word that does."""

    parts: tuple[ValueCode, ...]
    present: str | None = None
    flag: str | None = None


ValueCode = ScalarCode | RecordCode

_NOTHING = {"int": "0", "str": "0", "float": "0.0", "bool": "False", "null": "0", "list": "0"}


class Writer:
    """Lines under construction, with what was computed so far by digest.

    `order` may hold words by name whose values are known to be distinct, and in the order of these numbers; those
    numbered negative are known to be distinct only. `memoizes` is whether there are tables for memos (see `Memo`);
    `most` is how many elements are taken of a list that is walked through. `made` holds the fresh names.
    """

    def __init__(self, dictionary: Dictionary) -> None:
        self.dictionary = dictionary
        self.lines: list[str] = []
        self.known: dict[bytes, ValueCode] = {}
        self.order: dict[str, int] = {}
        self.made: set[str] = set()
        self.memoizes = True
        self.most: int | None = None
        self._indent = "    "
        self.counter = count(1)

    def line(self, *texts: str) -> None:
        """Add lines at the present depth."""
        if len(self.lines) > LINES_LIMIT:
            raise CannotCompile(f"its functions come to more than {LINES_LIMIT:,} lines of code")
        self.lines += [self._indent + text for text in texts]

    def when(self, condition: str, *texts: str) -> None:
        """Add lines under a condition."""
        self.line(f"if {condition}:", *(f"    {text}" for text in texts))

    def name(self, prefix: str = "v") -> str:
        """A fresh name."""
        made = name(f"{prefix}{next(self.counter)}")
        self.made.add(made)
        return made

    def bind(self, text: str, prefix: str = "v") -> str:
        """A fresh name that holds the value of the text; truth values stay as they are."""
        if text in ("True", "False"):
            return text
        bound = self.name(prefix)
        self.line(f"{bound} = {text}")
        return bound

    def distinct(self, a: str, b: str) -> bool:
        """Whether two integers are known to differ."""
        return a in self.order and b in self.order and self.order[a] != self.order[b]

    def less(self, a: str, b: str) -> bool | None:
        """Whether an integer is less than another, where that is known."""
        if a == b:
            return False
        places = self.order.get(a, -1), self.order.get(b, -1)
        return places[0] < places[1] if min(places) >= 0 else None

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """An indented block; what is computed inside is forgotten after it."""
        if head:
            self.line(head)
        indent, known = self._indent, dict(self.known)
        self._indent += "    "
        yield
        self._indent, self.known = indent, known


def kind_of(type_: Type) -> str:
    """The kind of a scalar, or of a list."""
    if isinstance(type_, ListOf):
        return "list"
    if str(type_) not in _NOTHING:
        raise CannotCompile(f"a {type_} has no form over words")
    return str(type_)


def from_words(type_: Type, words: Iterable[str]) -> ValueCode:
    """The value of a type whose words are these names, of which more may follow."""
    words = iter(words)
    flag = next(words) if type_.nullable else None
    present = f"({flag} != 0)" if flag is not None else None
    if type_ == NULL:
        return absent("null")
    if isinstance(type_, TupleOf):
        return RecordCode(tuple(from_words(element, words) for element in type_.elements), present, flag)
    word = next(words)
    text = {"float": f"as_float({word})", "bool": f"({word} != 0)"}.get(kind_of(type_), word)
    return ScalarCode(kind_of(type_), text, present, word, flag)


def to_words(value: ValueCode, type_: Type, within: str | None = None) -> list[str]:
    """The code of each word of a value, as a type of the same shape lays it out.

    `within` is the condition under which the record around it is there, None being always.
    """
    present = value.present if within is None else both(within, value.present)
    words: list[str] = []
    if type_.nullable and within is None and value.flag is not None:
        words.append(value.flag)
        present = None  # the words of what is not there are 0 already
    elif type_.nullable:
        words.append("1" if present is None else f"(1 if {present} else 0)")
    if type_ == NULL:
        return words
    if isinstance(type_, TupleOf):
        parts = value.parts if isinstance(value, RecordCode) else [absent("null")] * len(type_.elements)
        pairs = zip(parts, type_.elements, strict=True)
        return words + [word for part, element in pairs for word in to_words(part, element, present)]
    assert isinstance(value, ScalarCode)
    if value.kind == "null":
        return [*words, "0"]
    word = value.word if value.word is not None else _word(value)
    return [*words, word if present is None else f"({word} if {present} else 0)"]


def _word(value: ScalarCode) -> str:
    if value.kind == "float":
        return f"as_word({value.text})"
    return f"(1 if {value.text} else 0)" if value.kind == "bool" else value.text


def both(left: str | None, right: str | None) -> str | None:
    """The conjunction of two conditions, None being always true."""
    if left is None or right is None:
        return left if right is None else right
    return f"({left} and {right})"


def constant(writer: Writer, value: object, type_: Type) -> ValueCode:
    """A value written in the query."""
    if value is None:
        return nothing(type_)
    if isinstance(type_, TupleOf):
        assert isinstance(value, tuple)
        return RecordCode(tuple(constant(writer, v, t) for v, t in zip(value, type_.elements, strict=True)))
    if type_ == STR or isinstance(type_, ListOf):
        return ScalarCode(kind_of(type_), str(writer.dictionary.number(value)))
    if type_ == FLOAT:
        assert isinstance(value, float)
        return ScalarCode("float", f"({value!r})")
    if type_ == BOOL:
        return ScalarCode("bool", repr(value))  # bare: what is settled already is known by that
    if isinstance(value, int) and value == -(2**63):
        return ScalarCode("int", "(-9223372036854775807 - 1)")
    return ScalarCode(kind_of(type_), f"({value!r})")


def nothing(type_: Type) -> ValueCode:
    """Null, in the shape of a type."""
    if isinstance(type_, TupleOf):
        return RecordCode(tuple(nothing(element) for element in type_.elements), "False")
    return absent(kind_of(type_))


def absent(kind: str) -> ScalarCode:
    """A scalar of the kind that is not there."""
    return ScalarCode(kind, _NOTHING[kind], "False")
