"""Routines: a name, typed arguments, a result, a body, and with them the routines that it calls.

A routine is declared once, and called through what declares it: a `Routine`, whose lines are generated, or a Python
function under `@fixed`, whose annotations are its types and whose source goes into the module as it is. A module is
what its entry points reach, callees first.

Numba compiles a function once for each set of argument types, a literal being a type of its own. So every routine
states its signature and is compiled for it alone; where the entry points are cached, nothing else is.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, TypeVar, get_type_hints

import numpy as np
from numpy.typing import NDArray

from wpinq.engines.incremental.compiled.refusal import CannotCompile
from wpinq.engines.incremental.compiled.routines.names import name, names_in, spelled

INT64, FLOAT64, BOOLEAN, UINT32, UINT64, VOID = "int64", "float64", "boolean", "uint32", "uint64", "void"
INT64S, FLOAT64S, UINT32S, UINT64S = (f"{each}[::1]" for each in (INT64, FLOAT64, UINT32, UINT64))
INT64_ROWS, FLOAT64_ROWS, UINT32_ROWS, UINT64_ROWS = (f"{each}[:, ::1]" for each in (INT64, FLOAT64, UINT32, UINT64))

Int64 = Annotated[int, INT64]
Float64 = Annotated[float, FLOAT64]
Boolean = Annotated[bool, BOOLEAN]
Uint32 = Annotated[Any, UINT32]
Uint64 = Annotated[Any, UINT64]
Int64s = Annotated[NDArray[np.int64], INT64S]
Float64s = Annotated[NDArray[np.float64], FLOAT64S]
Uint32s = Annotated[NDArray[Any], UINT32S]
Uint64s = Annotated[NDArray[Any], UINT64S]
Float64Rows = Annotated[NDArray[np.float64], FLOAT64_ROWS]
Uint32Rows = Annotated[NDArray[Any], UINT32_ROWS]
Uint64Rows = Annotated[NDArray[Any], UINT64_ROWS]

STATE = "state"
"""The argument that goes without saying: a routine that takes it first is called with it."""

PRELUDE = """\
from math import exp, isfinite

import numpy as np

from wpinq.engines.incremental.compiled.routines.intrinsics import (
    Compiler, add_fits, as_float, as_word, load, multiply_fits, save, subtract_fits,
)

M32 = 0xFFFFFFFF
ONE = np.uint64(1)
"""

DECLARING = """\
compiler = Compiler(apart={apart})
inner, inlined, entry = compiler.inner, compiler.inlined, compiler.entry
"""


@dataclass(eq=False)
class Routine:
    """A function of generated code.

    Parameters
    ----------
    spelling : str
        Its name.
    arguments : mapping
        The name and the type of each argument.
    result : str
        The type of its result.
    lines : sequence of str
        Its body. It may be written after the routine is declared.
    entry : bool
        Whether Python calls it.
    inline : bool
        Whether its body stands wherever it is called, for what every step of a walk does.
    """

    spelling: str
    arguments: Mapping[str, str]
    result: str = VOID
    lines: Sequence[str] = ()
    entry: bool = False
    inline: bool = False

    def __post_init__(self) -> None:
        self.name = name(self.spelling, "routine")

    @property
    def text(self) -> str:
        """Its code."""
        kind = "entry" if self.entry else "inlined" if self.inline else "inner"
        types = ", ".join(self.arguments.values())
        head = f'@{kind}("{self.result}({types})")\ndef {self.name}({", ".join(self.arguments)}):'
        return spelled("\n".join([head, *(self.body or ["    pass"])]))

    @property
    def body(self) -> Sequence[str]:
        """The lines of its body."""
        return self.lines


class _Fixed(Routine):
    """A routine that is a Python function."""

    def __init__(self, function: Callable[..., Any], inline: bool) -> None:
        self._function = function
        self._source = inspect.getsource(function)  # now: the file may be another when a module is made
        types = {
            argument: "void" if type_ is type(None) else type_.__metadata__[0]
            for argument, type_ in get_type_hints(function, include_extras=True).items()
        }
        result = types.pop("return")
        super().__init__(function.__name__, types, result, inline=inline)

    @cached_property
    def body(self) -> Sequence[str]:
        (definition,) = ast.parse(textwrap.dedent(self._source)).body
        assert isinstance(definition, ast.FunctionDef)
        for node in ast.walk(definition):
            if isinstance(node, ast.Name) and callable(used := self._function.__globals__.get(node.id)):
                node.id = _FIXED[used].name if used in _FIXED else node.id
        lines = definition.body[1:] if ast.get_docstring(definition) is not None else definition.body
        return textwrap.indent("\n".join(map(ast.unparse, lines)), "    ").split("\n")


_LIBRARY: dict[str, Routine] = {}
_FIXED: dict[Any, Routine] = {}
_F = TypeVar("_F", bound=Callable[..., Any])


def library(routine: Routine) -> Routine:
    """Declare a routine that any module may call."""
    if routine.name in _LIBRARY:
        raise TypeError(f"two routines are called {routine.spelling}")
    _LIBRARY[routine.name] = routine
    return routine


def fixed(function: _F) -> _F:
    """Declare a Python function as a routine of the library; it stays a Python function too."""
    _FIXED[function] = library(_Fixed(function, inline=False))
    return function


def inlined(function: _F) -> _F:
    """The same, for a routine whose body is to stand wherever it is called."""
    _FIXED[function] = library(_Fixed(function, inline=True))
    return function


def _declared(routine: Routine | Callable[..., Any]) -> Routine:
    if isinstance(routine, Routine):
        return routine
    if routine not in _FIXED:
        raise CannotCompile(f"{routine.__name__} is not declared as a routine")
    return _FIXED[routine]


def call(routine: Routine | Callable[..., Any], *arguments: str) -> str:
    """The code of a call."""
    called = _declared(routine)
    given = (STATE, *arguments) if next(iter(called.arguments), None) == STATE else arguments
    if len(given) != len(called.arguments):
        raise CannotCompile(f"{called.spelling} takes {len(called.arguments)} arguments, not {len(given)}")
    return f"{called.name}({', '.join(given)})"


def call_by_name(routine: Routine | Callable[..., Any], **given: str) -> str:
    """The code of a call where what is not given stands under its own name."""
    called = _declared(routine)
    spellings = map(spelled, called.arguments)
    return call(called, *(given.get(spelling, name(spelling)) for spelling in spellings))


def module_text(routines: Iterable[Routine], constants: Mapping[str, float], apart: bool = False) -> str:
    """The text of a module: the entry points among the routines, what they reach, each after those it calls.

    `apart` says that no routine of it is ever given two arrays that overlap, one of which it writes.
    """
    known = {each.name: each for each in (*_LIBRARY.values(), *routines)}
    done: dict[Routine, None] = {}

    def visit(routine: Routine) -> None:
        if routine not in done:
            for called in names_in(*routine.body):
                if called in known and called != routine.name:
                    visit(known[called])
            done[routine] = None

    for routine in known.values():
        if routine.entry:
            visit(routine)
    values = "\n".join(f"{constant} = {value!r}" for constant, value in constants.items())
    return (
        "\n\n\n".join([f"{PRELUDE}{DECLARING.format(apart=apart)}{values}", *(routine.text for routine in done)]) + "\n"
    )
