"""What a program says, before anything is looked up: a tree whose every node knows where it stands.

A tree may be as deep as the text is long: whoever walks one counts the depth.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from wpinq.expr.types import Type


@dataclass(frozen=True, slots=True, eq=False)
class Syntax:
    """An expression as written. `position` counts characters from the start of the text."""

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
    """`name(arguments)`, `subject.name(arguments)` or `new name(arguments)`; `a ? b : c` is `where(a, b, c)`."""

    subject: Syntax | None
    name: str
    arguments: tuple[Argument, ...]
    new: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Infix(Syntax):
    """`left operator right`; the position is the operator's."""

    operator: str
    left: Syntax
    right: Syntax


@dataclass(frozen=True, slots=True, eq=False)
class Prefix(Syntax):
    """`-operand` or `!operand`."""

    operator: str
    operand: Syntax


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
    """`[1, 2.5, -3]`: a list of numbers as they are, a float where there is a point or an exponent."""

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
    """`source name(field: type, …) with option = value, …;`"""

    type: Type
    options: tuple[tuple[str, int, Syntax], ...]


@dataclass(frozen=True, slots=True, eq=False)
class ParameterStatement(ProgramStatement):
    """`parameter name = value;`"""

    value: Syntax


@dataclass(frozen=True, slots=True, eq=False)
class FunctionStatement(ProgramStatement):
    """`function name(x, y) => body;`"""

    function: ArrowFunction


@dataclass(frozen=True, slots=True, eq=False)
class Binding(ProgramStatement):
    """`var name = value;` or, for a name that has a meaning already, `name = value;`"""

    value: Syntax
    declared: bool
