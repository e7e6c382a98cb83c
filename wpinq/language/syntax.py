"""The syntax of a program before names are resolved: a tree whose nodes know their place.

A tree may be as deep as the text is long: every walk over one counts the depth.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction

from wpinq.errors import LanguageError, WpinqError, shorten as shorten, suggest as suggest
from wpinq.expr.types import Type


@dataclass(frozen=True, slots=True, eq=False)
class Syntax:
    """An expression as written; `position` counts characters from the start of the text."""

    position: int


@dataclass(frozen=True, slots=True, eq=False)
class Literal(Syntax):
    """A number, exactly as written, or a string, true, false, null."""

    value: int | Fraction | str | bool | None


@dataclass(frozen=True, slots=True, eq=False)
class Name(Syntax):
    """A query, a parameter of the program, or a variable of a lambda."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Access(Syntax):
    """`subject.name`."""

    subject: Syntax
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Index(Syntax):
    """`subject[index]`."""

    subject: Syntax
    index: Syntax


@dataclass(frozen=True, slots=True, eq=False)
class Argument:
    """One argument of a call, or one field of a record, with its name where one was given."""

    name: str | None
    value: Syntax


@dataclass(frozen=True, slots=True, eq=False)
class Invocation(Syntax):
    """`name(arguments)`, `subject.name(arguments)` or `new name(arguments)`.

    `a ? b : c` is `where(a, b, c)`.
    """

    subject: Syntax | None
    name: str
    arguments: tuple[Argument, ...]
    new: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Operation(Syntax):
    """`left operator right`, `-operand` or `!operand`; the position is the operator's."""

    operator: str
    operands: tuple[Syntax, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Tuple(Syntax):
    """`(a, b)`."""

    items: tuple[Syntax, ...]


@dataclass(frozen=True, slots=True, eq=False)
class List(Syntax):
    """`[a, b]` or `new T[] { a, b }`."""

    items: tuple[Syntax, ...]
    element: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class NumberList(Syntax):
    """A list of numbers as they are: `[1, 2.5, -3]`.

    A number is a float where it has a point or an exponent.
    """

    numbers: tuple[int | float, ...]


@dataclass(frozen=True, slots=True, eq=False)
class RecordLiteral(Syntax):
    """`new { a = x, y.b }`, with or without `new`."""

    fields: tuple[Argument, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ArrowFunction(Syntax):
    """`x => body` or `(x, y) => body`."""

    parameters: tuple[str, ...]
    body: Syntax


@dataclass(frozen=True, slots=True, eq=False)
class ProgramStatement:
    """A statement, which gives a name its meaning."""

    position: int
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class SourceStatement(ProgramStatement):
    """`source name(field: type, …) with option = value, …;` as a statement."""

    type: Type
    options: tuple[tuple[str, int, Syntax], ...]


@dataclass(frozen=True, slots=True, eq=False)
class ParameterStatement(ProgramStatement):
    """`parameter name = value;` as a statement."""

    value: Syntax


@dataclass(frozen=True, slots=True, eq=False)
class FunctionStatement(ProgramStatement):
    """`function name(x, y) => body;` as a statement."""

    function: ArrowFunction


@dataclass(frozen=True, slots=True, eq=False)
class Binding(ProgramStatement):
    """`var name = value;` or, for a name with a meaning already, `name = value;` as a statement."""

    value: Syntax
    declared: bool


# The text of a program: its limits, and errors that show the line with a caret.

#: The most characters of a program, lists of plain numbers left out.
TEXT_LIMIT = 200_000

#: The most characters with these lists.
TABLES_LIMIT = 10_000_000

_SPACE = r"[ \t\r\n]*"
_NUMBER = r"-?(?:0|[1-9][0-9]{0,18})(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,3})?"
#: A list of two plain numbers or more, each as in JSON: one token, so that a hundred thousand are read at once.
TABLE = rf"\[{_SPACE}{_NUMBER}(?:{_SPACE},{_SPACE}{_NUMBER})+{_SPACE}\]"

_TABLE = re.compile(TABLE)

_WINDOW = 100
_MESSAGE = 1_500
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


LIMITS = f"a program has at most {TEXT_LIMIT:,} characters outside of lists of numbers, and {TABLES_LIMIT:,} with them"


def size(text: str) -> int:
    """The characters of a text, lists of plain numbers left out."""
    return len(_TABLE.sub("[]", text))


def too_long(text: str) -> bool:
    """Whether text has more characters than a program may."""
    return len(text) > TEXT_LIMIT and (len(text) > TABLES_LIMIT or size(text) > TEXT_LIMIT)


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """A program's text and name: where errors come from."""

    text: str
    name: str

    def check(self) -> None:
        """Refuse text that is too long, or that does not read as it looks."""
        if too_long(self.text):
            raise LanguageError(f"{self.name}: {LIMITS}; split it into several")
        for position, character in enumerate(self.text):
            if character < "\x7f" and (character >= " " or character in "\n\r\t"):
                continue
            if character in _BIDI or unicodedata.category(character) in ("Cc", "Cs", "Co", "Cn", "Zl", "Zp"):
                code = ord(character)
                escape = f"\\u{code:04x}" if code < 0x10000 else f"U+{code:X}"
                raise self.error(
                    f"the character {escape} does not show, or changes how the text around it shows; "
                    'remove it, or write it in a string as an escape such as "\\u202e"',
                    position,
                )

    def error(self, message: str, position: int) -> LanguageError:
        """The error at a position: line and column, the message, the line and a caret under it."""
        position = min(position, len(self.text))
        before = self.text[:position]
        line = before.count("\n") + 1
        start = before.rfind("\n") + 1
        end = self.text.find("\n", position)
        column = position - start + 1
        shown, caret = _cut(self.text[start : len(self.text) if end < 0 else end], column - 1)
        where = f"{self.name}, line {line}, column {column}"
        message = message if len(message) <= _MESSAGE else message[: _MESSAGE - 1] + "…"
        return LanguageError(f"{where}: {message}\n    {shown}\n    {' ' * caret}^", line, column)

    @contextmanager
    def placed(self, position: int) -> Iterator[None]:
        """Give errors of the library their place in the text; those of the language have it."""
        try:
            yield
        except LanguageError:
            raise
        except WpinqError as error:
            raise self.error(str(error), position) from None


def _cut(line: str, caret: int) -> tuple[str, int]:
    """The part of a line around a position, and the position in it, a column a character."""
    first = 0 if len(line) <= _WINDOW else max(0, min(caret - _WINDOW // 2, len(line) - _WINDOW))
    shown = "".join(c if c.isprintable() else " " for c in line[first : first + _WINDOW])
    if first > 0:
        shown = "…" + shown[1:]
    if first + _WINDOW < len(line):
        shown = shown[:-1] + "…"
    return shown.rstrip(), min(caret - first, _WINDOW)
