"""Tracing: a lambda is called once, with symbols, and what it returns is the expression.

A lambda never sees a record, so it can neither leak one nor depend on one. Whatever Python would do silently
with a value (test it, loop over it, print it) raises with the fix. Symbols have no public attributes: every
name after a dot is a field.
"""

from __future__ import annotations

import dis
import functools
import inspect
import linecache
import reprlib
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from types import CodeType, FunctionType
from typing import Any, NoReturn

from wpinq.errors import ExpressionError, described, warn
from wpinq.expr import build, catalogue
from wpinq.expr.nodes import INFIX, NESTING_LIMIT, Call, Constant, Expr, Lambda, Variable, make_lambda, show, walk
from wpinq.expr.types import INT, STR, TYPE_DEPTH_LIMIT, TupleOf, Type
from wpinq.runtime.public import advice

# Warnings about the few things that Python does to a symbol without calling it, and about pieces taken backwards.
#
# `e.x is None`, `isinstance(e, …)` and `e.x in (…)`-like tests on identity give an ordinary bool while the lambda
# is traced, and so vanish silently from the query. They are searched for where the source of the lambda can be read.
#
# A lambda of two parameters over pieces, as Shave makes them, takes the record first and its index second. The paper's
# listing of nodes has them the other way around; where nodes are numbers, it runs and answers nonsense.

_GENERAL = (
    "this lambda tests identity, membership or a Python type, which is decided while the query is written, "
    "not for each record: use F.is_null(x), == and F.cast"
)


def warn_about(function: Callable[..., Any]) -> None:
    """Warn of what tracing cannot see in a lambda, where its source can be read."""
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(function, "__code__", None)
    for message in () if code is None else _traps_in(code, code.co_filename):
        warn(message)


@functools.lru_cache(maxsize=1024)
def _traps_in(code: CodeType, file: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_traps(code, file)))


def _traps(code: CodeType, file: str) -> Iterator[str]:
    """The tests that byte code decides while the query is written, as its source where readable."""
    asked = set()  # where isinstance(...) and type(...) begin
    for instruction in dis.get_instructions(code):
        name, at = instruction.opname, instruction.positions
        assert at is not None
        begin = at.lineno, at.col_offset
        if name == "IS_OP" or "NONE" in name:
            fix = "use F.is_null(x) or =="
        elif name == "CONTAINS_OP":
            fix = "combine == with |"
        elif name.startswith("CALL") and begin in asked:
            fix = "types are known from the schema"
        else:
            if name == "LOAD_GLOBAL" and instruction.argval in ("isinstance", "type"):
                asked.add(begin)
            continue
        text = _written(file, at)
        yield f"`{text}` is decided while the query is written: {fix}" if text else _GENERAL


def _written(file: str, at: dis.Positions) -> str:
    """The text at a place of a source file; empty where it cannot be read."""
    if at.lineno is None or at.end_lineno is None or at.col_offset is None:  # Python may be set to keep no places
        return ""
    lines = [line.encode() for line in linecache.getlines(file)[at.lineno - 1 : at.end_lineno]]
    if lines:
        lines[-1] = lines[-1][: at.end_col_offset]
        lines[0] = lines[0][at.col_offset :]
    return " ".join(b" ".join(lines).decode(errors="replace").split())


#: The fields of a piece of Shave, in order.
PIECE = ("record", "index")
_INDICES = frozenset({"i", "j", "idx", "index"})
_SWAPPED = (
    "over pieces of Shave, the first parameter is the record and the second its index, so `{}` is the record here{}: "
    "write the parameters as (x, i), or take the piece whole and ask for p.record and p.index"
)


def refuse_swapped(names: Sequence[str], type_: TupleOf) -> None:
    """Refuse a lambda over pieces that calls the record an index, and the index something else."""
    if type_.names == PIECE and len(names) == 2 and names[0] in _INDICES and names[1] not in _INDICES:
        raise ExpressionError(_SWAPPED.format(names[0], ""))


def warn_of_swapped(names: Sequence[str], type_: TupleOf, fields: Sequence[Expr], body: Expr) -> None:
    """Warn of a lambda over pieces that compares the record with a number and ignores the index."""
    if type_.names != PIECE or names[1] in _INDICES or type_.elements[0] != INT:
        return
    record, index = fields
    parts = list(walk(body))
    compared = any(
        isinstance(part, Call)
        and part.name in ("equal", "less")
        and record in part.arguments
        and any(isinstance(side, Constant) for side in part.arguments)
        for part in parts
    )
    if compared and index not in parts:
        warn(_SWAPPED.format(names[0], ", and compared with a number; if the index is meant"))


#: A lambda of a query as its writer gives it: called once, with symbols.
UserFunction = Callable[..., Any]

#: What stands for a function of a record: a lambda, the name of a column, or several of these for a record of them.
RecordFunction = UserFunction | str | Sequence[UserFunction | str]

_level: ContextVar[int] = ContextVar("level", default=0)


class Symbol:
    """Stands for a value while a lambda is traced."""

    __slots__ = ("__expr",)

    def __init__(self, expr: Expr) -> None:
        object.__setattr__(self, "_Symbol__expr", expr)

    def __getattr__(self, name: str) -> Symbol:
        if name.startswith("_"):
            raise AttributeError(name)
        return Symbol(build.field_named(expr_of(self), name))

    def __getitem__(self, index: object) -> Symbol:
        value = expr_of(self)
        if isinstance(value.type, TupleOf):
            if isinstance(index, str):
                return Symbol(build.field_named(value, index))
            count = len(value.type.elements)
            if isinstance(index, bool) or not isinstance(index, int) or not -count <= index < count:
                raise ExpressionError(
                    f"`{show(value)}` has fields [0] to [{count - 1}]; the index must be one of them, "
                    "written in the query"
                )
            return Symbol(build.field(value, index % count))
        if value.type == STR:
            _refuse(self, "is a string", "use F.substring(text, start, length)")
        return Symbol(catalogue.apply("element", value, lift(index)))

    def __abs__(self) -> Symbol:
        return Symbol(catalogue.apply("absolute", expr_of(self)))


def _operator(name: str, order: int = 1) -> Callable[..., Symbol]:
    return lambda *operands: Symbol(catalogue.apply(name, *map(lift, operands[::order])))


_OPERATORS = {"neg": "negate", "invert": "not"}
_OPERATORS |= {python: name for name, (_, _, python) in INFIX.items() if python}
for _python, _name in _OPERATORS.items():
    setattr(Symbol, f"__{_python}__", _operator(_name))
for _name in ("or", "and", "add", "subtract", "multiply", "divide", "floor_divide", "modulo"):
    setattr(Symbol, f"__r{INFIX[_name][2]}__", _operator(_name, -1))

#: What would be done silently with a value, by Python's names -> what a symbol says of it, and the fix.
REFUSED = advice("symbols")


def _refusal(what: str, fix: str) -> Callable[..., NoReturn]:
    def refuse(self: Symbol, *arguments: object, **named: object) -> NoReturn:
        _refuse(self, what, fix)

    return refuse


for _python, _said in REFUSED.items():
    setattr(Symbol, f"__{_python}__", _refusal(*_said))


def _refuse(symbol: Symbol, what: str, fix: str) -> NoReturn:
    raise ExpressionError(f"`{show(expr_of(symbol))}` {what}: {fix}")


def expr_of(symbol: Symbol) -> Expr:
    """The expression behind a symbol."""
    expr: Expr = object.__getattribute__(symbol, "_Symbol__expr")
    return expr


def lift(value: object) -> Expr:
    """The result or operand of a lambda as an expression.

    It may be a symbol, a constant, a tuple, a list, or a dict of fields. A named tuple is a record with its field
    names.
    """
    return _lift(value, 0, {})


def _lift(value: object, depth: int, lifted: dict[int, Expr]) -> Expr:
    if isinstance(value, Symbol):
        return expr_of(value)
    if isinstance(value, Expr):
        return value
    if not isinstance(value, (tuple, list, dict)):
        return build.constant(value)
    if id(value) not in lifted:  # by identity: a tuple of one tuple twice, again and again, is exponentially large
        lifted[id(value)] = _lift_parts(value, depth, lifted)
    return lifted[id(value)]


def _lift_parts(value: tuple[Any, ...] | list[Any] | dict[Any, Any], depth: int, lifted: dict[int, Expr]) -> Expr:
    if depth > TYPE_DEPTH_LIMIT:
        raise ExpressionError(f"tuples, lists and dicts may nest {TYPE_DEPTH_LIMIT} deep in one another, and no deeper")
    if isinstance(value, tuple):
        names = getattr(value, "_fields", (None,) * len(value))
        return build.record(tuple(names), tuple(_lift(item, depth + 1, lifted) for item in value))
    if isinstance(value, list):
        table = build.numbers(value)
        if table is not None:
            return table
        return catalogue.apply("list", *(_lift(item, depth + 1, lifted) for item in value))
    for name in value:
        if not isinstance(name, str):
            raise ExpressionError("a dict in a lambda is a record: its keys must be field names")
    return build.record(tuple(value), tuple(_lift(item, depth + 1, lifted) for item in value.values()))


def as_function(given: object) -> UserFunction:
    """A function of a record: itself, a column's name, or several, for a record of these.

    Raises
    ------
    ExpressionError
        When it is none of these.
    """
    if isinstance(given, str):
        if not given.isidentifier():
            raise ExpressionError(
                f"{reprlib.repr(given)} is no column name: write an expression as `lambda r: r.age > 30` or "
                '`wp.col("age") > 30`'
            )
        return lambda record: Symbol(build.field_named(expr_of(record), given))
    if isinstance(given, (list, tuple)) and given and all(isinstance(part, str) or callable(part) for part in given):
        parts = [as_function(part) for part in given]
        names = tuple(part if isinstance(part, str) else getattr(part, "column_name", None) for part in given)
        return lambda record: Symbol(build.record(names, tuple(lift(part(record)) for part in parts)))
    if callable(given):  # a Column compares with any other value: a function does not
        return (lambda record: given(record)) if hasattr(given, "column_name") else given
    home = type(given).__module__.partition(".")[0]
    other = "a column of another library" if home in ("polars", "pandas", "pyspark", "numpy") else described(given)
    raise ExpressionError(
        f'expected a function of a record, such as `lambda p: p.age > 30` or `wp.col("age") > 30`, or the name of a '
        f'column, such as "age", not {other}'
    )


def trace(function: RecordFunction | Lambda, types: tuple[Type, ...]) -> Lambda:
    """Call a lambda once with symbols of these types; the Lambda node of what it returns.

    A lambda of several parameters over one record takes the record's fields, in order. The name of a column stands for
    the function that gives it.

    Raises
    ------
    ExpressionError
        When the lambda is ill-typed, has the wrong number of parameters, or treats a symbol as a value.

    Examples
    --------
    >>> from wpinq.expr.types import INT, record_type
    >>> print(show(trace(lambda e: e.src + 1, (record_type({"src": INT}),))))
    e => e.src + 1
    """
    if isinstance(function, Lambda):
        return function
    function = as_function(function)
    warn_about(function)
    names = _parameter_names(function)
    level = _level.get()
    if level > NESTING_LIMIT:
        raise ExpressionError(f"lambdas nest deeper than {NESTING_LIMIT}")
    if len(types) == 1 and len(names) > 1:
        (type_,) = types
        if not isinstance(type_, TupleOf) or len(type_.elements) != len(names):
            raise ExpressionError(f"a lambda of {len(names)} parameters needs a record of as many fields, not {type_}")
        refuse_swapped(names, type_)
        whole = Variable(type_, level, "record")
        variables: tuple[Variable, ...] = (whole,)
        arguments = [build.field(whole, i) for i in range(len(names))]
    else:
        if len(names) != len(types):
            raise ExpressionError(f"expected a lambda of {len(types)} parameter(s), not {len(names)}")
        numbered = enumerate(zip(types, names, strict=True), level)
        variables = tuple(Variable(type_, number, name) for number, (type_, name) in numbered)
        arguments = list(variables)
    token = _level.set(level + len(types))
    try:
        body = lift(function(*(Symbol(argument) for argument in arguments)))
    finally:
        _level.reset(token)
    if len(variables) < len(arguments) and isinstance(types[0], TupleOf):
        warn_of_swapped(names, types[0], arguments, body)
    return make_lambda(variables, body, level)


_STARRED = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


def _parameter_names(function: UserFunction) -> list[str]:
    if type(function) is FunctionType and not vars(function):  # a lambda, for which `inspect` takes long
        code, optional = function.__code__, function.__defaults__ or ()
        if not (code.co_flags & _STARRED or code.co_kwonlyargcount):
            return list(code.co_varnames[: code.co_argcount - len(optional)])
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        raise ExpressionError(f"cannot see the parameters of {described(function)}: wrap it in a lambda") from None
    required = [p for p in parameters if p.default is inspect.Parameter.empty]
    if any(p.kind in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_POSITIONAL) for p in required):
        raise ExpressionError("a function in a query takes its parameters by position: no *args, no keyword-only ones")
    return [p.name for p in required if p.kind is not inspect.Parameter.VAR_KEYWORD]
