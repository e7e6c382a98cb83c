"""Routines: a name, typed arguments, a result, and a body with the routines that it calls.

A routine is declared once, and called through what declares it: a `Routine`, whose lines are generated, or a Python
function under `@fixed`, whose annotations are its types and whose source goes into the module as it is. A module is
what its entry points reach, callees first.

Numba compiles a function once for each set of argument types, a literal being a type of its own. So every routine
states its signature and is compiled for it alone; where the entry points are cached, nothing else is.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from types import ModuleType
from typing import Annotated, Any, TypeVar, get_type_hints

import numpy as np
from numpy.typing import NDArray

from wpinq.engines.delta.evaluator import CannotCompile as CannotCompile, loss
from wpinq.errors import install

# What routines name besides each other: these constants, and the instructions on words of `modules`.

M32 = 0xFFFFFFFF
ONE = np.uint64(1)
#: How many numbers of a row are read at once: rows are as long as so many, or twice as many, or more.
LANES = np.uint64(4)

#: Bytes on either side: a line is 64 or 128, and processors fetch two at a time.
CACHE_LINES = 256
#: Bytes of a large page. Numpy asks the system for those where it allocates twice as much, and processors remember
#: the places of few pages: an array of 76,000 vertices is on more small ones than that.
LARGE_PAGE = 2**21


def apart(array: NDArray[Any]) -> NDArray[Any]:
    """A copy that begins a cache line and shares none with another array.

    Threads that write side by side slow each other down, and so does a row on more lines than it needs.
    """
    apart_by = CACHE_LINES if array.nbytes < LARGE_PAGE // 8 else LARGE_PAGE
    margin = apart_by // array.itemsize
    held = np.zeros(array.size + 2 * margin, dtype=array.dtype)
    first = -held.ctypes.data % apart_by // array.itemsize
    mine = held[first : first + array.size].reshape(array.shape)
    mine[...] = array
    return mine


# --- names: one character each, until `spelled` writes them out -------------------------------------------------------
# All else in generated code is ASCII. So the names of a line are its other characters, and renaming is translation.

_FIRST = 0x10000
_characters: dict[tuple[str, str], str] = {}
_spellings: dict[int, str] = {}
_lock = Lock()


def name(spelling: str, kind: str = "value") -> str:
    """The character of a name; names of two kinds have two, though they be spelled alike.

    Examples
    --------
    >>> x, y = name("x"), name("y")
    >>> line = f"{x} = {y} + 1"
    >>> spelled(line), names_in(line) == [x, y]
    ('x = y + 1', True)
    """
    key = kind, spelling
    if key not in _characters:
        with _lock:
            place = _FIRST + len(_spellings)
            if place > sys.maxunicode:
                raise CannotCompile("its functions need more names than there are")
            _spellings[place] = spelling
            _characters.setdefault(key, chr(place))
    return _characters[key]


def spelled(code: str) -> str:
    """The code with its names written out."""
    return code.translate(_spellings)


def names_in(*codes: str) -> list[str]:
    """The names in code, each once, in order."""
    return [c for c in dict.fromkeys("".join(codes)) if ord(c) >= _FIRST]


INT64, FLOAT64, BOOLEAN, UINT32, UINT64, VOID = "int64", "float64", "boolean", "uint32", "uint64", "void"
INT64S, FLOAT64S, BOOLEANS, UINT32S, UINT64S = (f"{each}[::1]" for each in (INT64, FLOAT64, BOOLEAN, UINT32, UINT64))
INT64_ROWS, FLOAT64_ROWS, UINT32_ROWS, UINT64_ROWS = (f"{each}[:, ::1]" for each in (INT64, FLOAT64, UINT32, UINT64))

Int64 = Annotated[int, INT64]
Float64 = Annotated[float, FLOAT64]
Boolean = Annotated[bool, BOOLEAN]
Uint32 = Annotated[Any, UINT32]
Uint64 = Annotated[Any, UINT64]
Int64s = Annotated[NDArray[np.int64], INT64S]
Float64s = Annotated[NDArray[np.float64], FLOAT64S]
Uint64s = Annotated[NDArray[Any], UINT64S]
Float64Rows = Annotated[NDArray[np.float64], FLOAT64_ROWS]

#: The arrays that routines share, and their types: what a routine takes of them is what its lines name.
ARRAYS: dict[str, str] = {}


def arrays(**types: str) -> list[str]:
    """Declare arrays, and name them."""
    ARRAYS.update(types)
    return [*map(name, types)]


class Arrays:
    """Shared arrays by name."""

    def __getattr__(self, spelling: str) -> Any: ...


#: The argument that goes without saying: a routine that takes it first is called with it.
STATE = "state"

PRELUDE = """\
from math import exp, isfinite

import numpy as np

from wpinq.engines.delta.compiled.modules import (
    Compiler, add_fits, as_float, as_word, fetch, load, multiply_fits, save, subtract_fits,
)

M32 = 0xFFFFFFFF
ONE = np.uint64(1)
LANES = np.uint64(4)
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
        return spelled("\n".join([head, *(self.lines or ["    pass"])]))


class _Fixed(ast.NodeTransformer, Routine):
    """A routine that is a Python function.

    It is declared after those that it calls. An argument of type `Arrays`, the last, stands for those that the body
    names, or a routine that it is passed on to.
    """

    def __init__(self, function: Callable[..., Any], inline: bool) -> None:
        self._space = function.__globals__
        types = get_type_hints(function, include_extras=True)
        result = types.pop("return")
        self._arrays = [argument for argument, type_ in types.items() if type_ is Arrays]
        self.taken: set[str] = set()
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
        assert isinstance(definition, ast.FunctionDef)
        lines = definition.body[1:] if ast.get_docstring(definition) is not None else definition.body
        text = "\n".join(ast.unparse(self.visit(line)) for line in lines)
        arguments = {argument: type_.__metadata__[0] for argument, type_ in types.items() if type_ is not Arrays}
        arguments |= {array: ARRAYS[array] for array in sorted(self.taken)}
        returned = VOID if result is type(None) else result.__metadata__[0]
        indented = textwrap.indent(text, "    ").split("\n")
        super().__init__(function.__name__, arguments, returned, indented, inline=inline)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """The name of a routine that is called."""
        used = self._space.get(node.id)
        return ast.Name(_FIXED[used].name, node.ctx) if callable(used) and used in _FIXED else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """An array, as an argument."""
        if not (isinstance(node.value, ast.Name) and node.value.id in self._arrays):
            return self.generic_visit(node)
        self.taken.add(node.attr)
        return ast.Name(node.attr, node.ctx)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """A call that passes arrays on."""
        last = node.args[-1] if node.args else None
        if isinstance(node.func, ast.Name) and isinstance(last, ast.Name) and last.id in self._arrays:
            taken = _FIXED[self._space[node.func.id]].taken
            self.taken |= taken
            node.args[-1:] = [ast.Name(array, last.ctx) for array in sorted(taken)]
        return self.generic_visit(node)


_LIBRARY: dict[str, Routine] = {}
_FIXED: dict[Any, _Fixed] = {}
_F = TypeVar("_F", bound=Callable[..., Any])


def library(routine: Routine) -> Routine:
    """Declare a routine that any module may call."""
    if routine.name in _LIBRARY:
        raise TypeError(f"two routines are called {routine.spelling}")
    _LIBRARY[routine.name] = routine
    return routine


def fixed(function: _F, inline: bool = False) -> _F:
    """Declare a Python function as a routine of the library; it stays a Python function too."""
    _FIXED[function] = made = _Fixed(function, inline)
    library(made)
    return function


def inlined(function: _F) -> _F:
    """The same, for a routine whose body is to stand wherever it is called."""
    return fixed(function, inline=True)


def _declared(routine: Routine | Callable[..., Any]) -> Routine:
    return routine if isinstance(routine, Routine) else _FIXED[routine]


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
    """The text of a module: its entry points and what they reach, callees first.

    `apart` says that no routine of it is ever given two arrays that overlap, one of which it writes.
    """
    known = {each.name: each for each in (*_LIBRARY.values(), *routines)}
    done: dict[Routine, None] = {}

    def visit(routine: Routine) -> None:
        if routine not in done:
            for called in names_in(*routine.lines):
                if called in known and called != routine.name:
                    visit(known[called])
            done[routine] = None

    for routine in known.values():
        if routine.entry:
            visit(routine)
    values = "\n".join(f"{constant} = {value!r}" for constant, value in constants.items())
    head = f"{PRELUDE}{DECLARING.format(apart=apart)}{values}"
    return "\n\n\n".join([head, *(routine.text for routine in done)]) + "\n"


def import_module(text: str) -> ModuleType:
    """Import the module of this text, compiled."""
    if importlib.util.find_spec("numba") is None:
        raise CannotCompile(f"the compiled engine needs numba: {install('synthesis')}; the python engine runs without")
    from wpinq.engines.delta.compiled import modules

    return modules.import_module(text)


# --- arithmetic on words, and random numbers --------------------------------------------------------------------------

fixed(loss)


@fixed
def divides(a: Int64, b: Int64) -> Boolean:
    return b != 0 and not (b == -1 and a == -9223372036854775807 - 1)


@fixed
def floor_divide(a: Int64, b: Int64) -> Int64:
    return a // b if divides(a, b) else 0


@fixed
def modulo(a: Int64, b: Int64) -> Int64:
    return 0 if b == 0 or b == -1 else a % b


@fixed
def truncate(number: Float64) -> Int64:
    return np.int64(number) if -9.223372036854775808e18 <= number < 9.223372036854775808e18 else 0  # type: ignore[return-value]


@fixed
def mix(h: Int64, word: Int64) -> Int64:
    h = (h ^ word) * -7046029254386353131
    return h ^ ((h >> 32) & M32)


@fixed
def mix_too(h: Int64, word: Int64) -> Int64:
    h = (h ^ word) * -4417276706812531889
    return h ^ ((h >> 29) & M32)


@fixed
def plus(a: Int64, b: Int64) -> Int64:
    return a + b


@fixed
def range_end(start: Int64, stop: Int64, limit: Int64) -> Int64:
    if stop <= start:
        return start
    return stop if np.uint64(stop) - np.uint64(start) <= np.uint64(limit) else start + limit


@fixed
def next_draw(seeds: Uint64s) -> Float64:
    """The number that `draw` gives next."""
    return np.float64((seeds[0] + seeds[1]) >> np.uint64(11)) * 1.1102230246251565e-16


@fixed
def draw(seeds: Uint64s) -> Float64:
    """xoroshiro128+ (Blackman and Vigna): the top 53 bits as a number in [0, 1)."""
    number = next_draw(seeds)
    s0, s1 = seeds[0], seeds[0] ^ seeds[1]
    seeds[0] = ((s0 << np.uint64(24)) | (s0 >> np.uint64(40))) ^ s1 ^ (s1 << np.uint64(16))
    seeds[1] = (s1 << np.uint64(37)) | (s1 >> np.uint64(27))
    return number
