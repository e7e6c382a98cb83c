"""Lines of generated code, and values as the code that holds them.

Generated code holds names of its own making and numbers only: no text of a query is ever executed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count

from wpinq.engines.incremental.compiled.refusal import CannotCompile
from wpinq.engines.incremental.compiled.routines.names import name
from wpinq.engines.incremental.compiled.words.encoding import Dictionary
from wpinq.expr.types import BOOL, FLOAT, NULL, STR, ListOf, TupleOf, Type

LINES_LIMIT = 20_000


@dataclass(frozen=True, slots=True)
class ScalarCode:
    """A scalar: the code of its value, and the code that says whether it is there (None: always).

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
    numbered negative are known to be distinct only. `memoizes` is whether there are tables for memos (see `memo`);
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


def from_words(type_: Type, words: Sequence[str]) -> ValueCode:
    """The value of a type whose words are these names."""
    return _from_words(type_, iter(words))


def _from_words(type_: Type, words: Iterator[str]) -> ValueCode:
    flag = next(words) if type_.nullable else None
    present = f"({flag} != 0)" if flag is not None else None
    if type_ == NULL:
        return absent("null")
    if isinstance(type_, TupleOf):
        return RecordCode(tuple(_from_words(element, words) for element in type_.elements), present, flag)
    word = next(words)
    text = {"float": f"as_float({word})", "bool": f"({word} != 0)"}.get(kind_of(type_), word)
    return ScalarCode(kind_of(type_), text, present, word, flag)


def to_words(value: ValueCode, type_: Type) -> list[str]:
    """The code of each word of a value, as a type of the same shape lays it out."""
    words: list[str] = []
    _to_words(value, type_, None, words)
    return words


def _to_words(value: ValueCode, type_: Type, within: str | None, words: list[str]) -> None:
    present = value.present if within is None else both(within, value.present)
    if type_.nullable and within is None and value.flag is not None:
        words.append(value.flag)
        present = None  # the words of what is not there are 0 already
    elif type_.nullable:
        words.append("1" if present is None else f"(1 if {present} else 0)")
    if type_ == NULL:
        return
    if isinstance(type_, TupleOf):
        parts = value.parts if isinstance(value, RecordCode) else [absent("null")] * len(type_.elements)
        for part, element in zip(parts, type_.elements, strict=True):
            _to_words(part, element, present, words)
        return
    assert isinstance(value, ScalarCode)
    if value.kind == "null":
        words.append("0")
        return
    word = value.word if value.word is not None else _word(value)
    words.append(word if present is None else f"({word} if {present} else 0)")


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
