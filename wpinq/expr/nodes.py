"""Expression nodes: immutable, typed when built, equal when they mean the same.

An expression is a DAG of four kinds of node. Variables are named by level, counted from the outermost lambda,
so that two lambdas which differ only in the names of their parameters are equal. Each node carries a digest of
its meaning, computed once from its children's digests: equality and hashing cost nothing however deep the DAG.
What may be null and how long lists may be is part of that meaning, for compiled code depends on it.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from operator import attrgetter, is_
from typing import Any, TypeVar

from wpinq.errors import ExpressionError, shorten
from wpinq.expr.types import CategoryOf, DecimalOf, ListOf, Logical, TupleOf, Type, physical, signature
from wpinq.expr.values import Value, canonical_bytes, to_text


def digest_of(*parts: bytes | str) -> bytes:
    """A collision-resistant digest of a sequence of parts, each delimited by its length."""
    # one list, and a name within it: each step of a plan takes dozens of digests
    delimited = [_LENGTH(len(x)) + x for part in parts for x in (part.encode() if isinstance(part, str) else part,)]
    return hashlib.blake2b(b"".join(delimited), digest_size=32).digest()


_LENGTH = struct.Struct(">Q").pack


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Expr:
    """A scalar expression: its type, its subexpressions, and the digest of its meaning."""

    type: Type
    children: tuple[Expr, ...] = field(init=False, default=())
    digest: bytes = field(init=False, default=b"")

    def _seal(self, children: tuple[Expr, ...], *identity: bytes | str) -> None:
        object.__setattr__(self, "children", children)
        object.__setattr__(self, "digest", digest_of(*identity, *(child.digest for child in children)))

    @property
    def core(self) -> Expr:
        """The same expression in primitives over physical types only, as engines see it."""
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expr) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:  # not of the children: a DAG written out as a tree can be exponentially long
        return f"<{type(self).__name__} {self.type} {self.digest.hex()[:8]}>"


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Constant(Expr):
    """A public value written in the query."""

    value: Value

    @property
    def core(self) -> Expr:
        type_ = physical(self.type)
        return self if type_ is self.type else Constant(type_, self.value)

    def __post_init__(self) -> None:
        self._seal((), "constant", signature(self.type), canonical_bytes(self.value, self.type))


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Variable(Expr):
    """A parameter of an enclosing lambda, with a name for display only."""

    level: int
    name: str

    @property
    def core(self) -> Variable:
        type_ = physical(self.type)
        return self if type_ is self.type else Variable(type_, self.level, self.name)

    def __post_init__(self) -> None:
        self._seal((), "variable", signature(self.type), str(self.level))


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Call(Expr):
    """A function applied to arguments.

    `attributes` are the static parts of a call: field names of a record, the index of a field. `lowered` is the
    same value said in primitives over physical types, or None where the call and everything below it is so already.
    """

    name: str
    arguments: tuple[Expr, ...]
    attributes: tuple[str | int | None, ...] = ()
    lowered: Expr | None = None

    @property
    def core(self) -> Expr:
        return self if self.lowered is None else self.lowered

    def __post_init__(self) -> None:
        self._seal(self.arguments, "call", self.name, repr(self.attributes), str(len(self.arguments)))


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Lambda(Expr):
    """A function of `len(parameters)` variables, the first at `level`; its type is its body's."""

    level: int
    parameters: tuple[Variable, ...]
    body: Expr
    _core: list[Lambda] = field(init=False, default_factory=list)  # once it is known

    def __post_init__(self) -> None:
        types = (signature(parameter.type) for parameter in self.parameters)
        self._seal((self.body,), "lambda", str(self.level), str(len(self.parameters)), *types)

    @property
    def core(self) -> Lambda:
        if not self._core:
            core, parameters = self.body.core, tuple(parameter.core for parameter in self.parameters)
            same = core is self.body and all(map(is_, parameters, self.parameters))
            self._core.append(self if same else Lambda(core.type, self.level, parameters, core))
        return self._core[0]


def make_lambda(parameters: tuple[Variable, ...], body: Expr, level: int = 0) -> Lambda:
    """The function that gives `body` for the values of `parameters`."""
    if isinstance(body, Lambda):
        raise ExpressionError("a function gives a value, not another function")
    return Lambda(body.type, level, parameters, body)


T = TypeVar("T")


def below_first(roots: Iterable[T], below: Callable[[T], Sequence[T]], known: Iterable[bytes] = ()) -> Iterator[T]:
    """Every distinct node once, after those `below` it, without those that are `known`.

    Any depth, no recursion. A node has a `digest`, and is equal to another where the digests are.
    """
    done = set(known)
    stack: list[Any] = [*roots][::-1]
    while stack:
        node = stack.pop()
        expanded = node is None  # what is below the next one was given
        node = stack.pop() if expanded else node
        if node.digest in done:
            continue
        if not expanded and (children := below(node)):
            stack += [node, None, *reversed(children)]
        else:
            done.add(node.digest)
            yield node


def walk(root: Expr) -> Iterator[Expr]:
    """Every distinct node once, children before parents."""
    return below_first([root], attrgetter("children"))


# Whether every variable of a function is bound, by a lambda that gives it the type it has.
#
# Functions come from tracing, from text and from files. Only a closed one can be compiled, and that must be known
# when the query is made: afterwards a failure would come after the debit.

#: How deep lambdas may nest in one another.
NESTING_LIMIT = 40


def check_function(function: Lambda, types: tuple[Type, ...]) -> None:
    """Refuse what is not a closed function of records of these types.

    Raises
    ------
    ExpressionError
        When its parameters are of other types, a symbol of another lambda has slipped in, or lambdas nest too deep.
    """
    given = tuple(parameter.type for parameter in function.parameters)
    same = len(given) == len(types) and all(map(is_, given, types))
    if not same and [*map(signature, given)] != [*map(signature, types)]:
        raise ExpressionError(f"the function is of {_listed(given)}, the records are {_listed(types)}")
    free: dict[bytes, frozenset[bytes]] = {}
    lowest: dict[bytes, int] = {}  # of the levels of the lambdas at or below a node
    highest = NESTING_LIMIT + 1
    for node in walk(function):
        below = [free[child.digest] for child in node.children]
        names = below[0] if below else frozenset()
        for other in below[1:]:
            names = names if other <= names else names | other
        level = min((lowest[child.digest] for child in node.children), default=highest)
        if isinstance(node, Variable):
            names = frozenset((node.digest,))
        elif isinstance(node, Lambda):
            beyond = node.level + len(node.parameters)
            levels = tuple(parameter.level for parameter in node.parameters)
            if levels != tuple(range(node.level, beyond)) or node.level < 0 or beyond > min(level, highest):
                raise ExpressionError(f"lambdas nest deeper than {NESTING_LIMIT}, or share a variable")
            names -= {parameter.digest for parameter in node.parameters}
            level = node.level
        free[node.digest], lowest[node.digest] = names, level
    if free[function.digest]:
        raise ExpressionError(
            "the lambda uses a symbol of another lambda: a function may use its own parameters and constants only"
        )


def _listed(types: tuple[Type, ...]) -> str:
    return ", ".join(map(str, types)) or "nothing"


# Expressions as text, in the notation of the paper: what error messages, explain and printed programs show.

#: How deep expressions may nest in text, read or printed.
DEPTH_LIMIT = 100

#: The most parts that an expression may have as text, where what is shared is written out each time.
SIZE_LIMIT = 20_000

#: Words of the notation that cannot name a variable.
RESERVED = frozenset({"new", "true", "false", "null"})

#: Name of an operator -> its sign, how close it binds, and Python's name for what makes it of symbols.
#: The first of several with one sign is what is read.
INFIX = {
    "or": ("||", 2, "or"),
    "and": ("&&", 3, "and"),
    "equal": ("==", 4, "eq"),
    "not_equal": ("!=", 4, "ne"),
    "less": ("<", 5, "lt"),
    "less_record": ("<", 5, ""),
    "less_equal": ("<=", 5, "le"),
    "greater": (">", 5, "gt"),
    "greater_equal": (">=", 5, "ge"),
    "add": ("+", 6, "add"),
    "subtract": ("-", 6, "sub"),
    "concatenate": ("+", 6, ""),
    "multiply": ("*", 7, "mul"),
    "divide": ("/", 7, "truediv"),
    "floor_divide": ("/", 7, "floordiv"),  # between ints, as in the paper; `//` starts a comment
    "modulo": ("%", 7, "mod"),
}
_TERNARY, _UNARY, _POSTFIX = 1, 8, 9


class TooDeep(Exception):
    """The expression nests deeper, or is longer, than text may."""


def show(expr: Expr) -> str:
    """The expression for people: what nests too deep is cut to an ellipsis."""
    try:
        return shorten(write(expr), 200)
    except TooDeep:
        return "…"


def write(expr: Expr) -> str:
    """The expression as the text language reads it, or TooDeep."""
    return _ExpressionWriter().write(expr, 0, 0)


def quote(text: str) -> str:
    """A string literal."""
    return json.dumps(text)


def write_public(value: object, type_: Type) -> str:
    """A public value, such as a key: as a literal, lists like records."""
    return write_constant(value, type_, lists=False)


def write_constant(value: object, type_: Type | None = None, *, lists: bool = True) -> str:
    """A literal; tuples as lists where the type says so, and as records otherwise."""
    if value is None:
        return "null"
    if isinstance(value, tuple):
        if isinstance(type_, ListOf):
            items = [write_constant(item, type_.element, lists=lists) for item in value]
        else:
            parts = type_.elements if isinstance(type_, TupleOf) else (None,) * len(value)
            items = [write_constant(item, part, lists=lists) for item, part in zip(value, parts, strict=True)]
        if lists and isinstance(type_, ListOf):
            return f"[{', '.join(items)}]"
        return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
    if isinstance(type_, Logical):
        text = quote(to_text(value, type_))
        if isinstance(type_, CategoryOf):
            return text
        return f"{'decimal' if isinstance(type_, DecimalOf) else type_}({text})"
    if isinstance(value, bool):
        return "true" if value else "false"
    return quote(value) if isinstance(value, str) else repr(value)


def write_value(value: object) -> str:
    """A public value for people: a literal, but dates and the like as Python writes them.

    These are dates, times, decimals and durations.
    """
    if isinstance(value, tuple):
        inside = ", ".join(map(write_value, value))
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    if isinstance(value, (datetime.date, datetime.time, datetime.timedelta, Decimal)):
        return str(value)
    return write_constant(value)


class _ExpressionWriter:
    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.parts = 0

    def write(self, expr: Expr, binding: int, depth: int) -> str:
        """The text of a node; in parentheses when it binds weaker than `binding`."""
        self.parts += 1
        if depth > DEPTH_LIMIT or self.parts > SIZE_LIMIT:
            raise TooDeep
        if isinstance(expr, Constant):
            text = write_constant(expr.value, expr.type)
            return f"({text})" if text.startswith("-") and binding > 0 else text
        if isinstance(expr, Variable):
            return self.names.get(expr.level, expr.name)
        if isinstance(expr, Lambda):
            return self._lambda(expr, depth)
        assert isinstance(expr, Call)
        text, strength = self._call(expr, depth + 1)
        return f"({text})" if strength < binding else text

    def _lambda(self, lambda_: Lambda, depth: int) -> str:
        outer = dict(self.names)
        for variable in lambda_.parameters:
            taken = {name for level, name in self.names.items() if level < variable.level}
            plain = re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", variable.name) and variable.name not in RESERVED
            name = variable.name if plain else "x"
            stem, number = name, 2
            while name in taken:
                name, number = f"{stem}{number}", number + 1
            self.names[variable.level] = name
        names = [self.names[variable.level] for variable in lambda_.parameters]
        head = names[0] if len(names) == 1 else f"({', '.join(names)})"
        body = self.write(lambda_.body, _TERNARY, depth + 1)
        self.names = outer
        return f"{head} => {body}"

    def _call(self, call: Call, depth: int) -> tuple[str, int]:
        arguments = call.arguments
        if call.name in INFIX:
            symbol, strength, _ = INFIX[call.name]
            left = self.write(arguments[0], strength, depth)
            right = self.write(arguments[1], strength + 1, depth)
            return f"{left} {symbol} {right}", strength
        if call.name == "where":
            condition, yes, no = arguments
            shown = self.write(condition, _TERNARY + 1, depth), self.write(yes, _TERNARY, depth)
            return f"{shown[0]} ? {shown[1]} : {self.write(no, _TERNARY, depth)}", _TERNARY
        if call.name in ("not", "negate"):
            sign = "!" if call.name == "not" else "-"
            return f"{sign}{self.write(arguments[0], _UNARY, depth)}", _UNARY
        if call.name == "field":
            return self._field(call, depth), _POSTFIX
        inside = [self.write(argument, 0, depth) for argument in arguments]
        if call.name == "record":
            if any(name is not None for name in call.attributes):
                pairs = zip(call.attributes, inside, strict=True)
                return "new { " + ", ".join(t if n is None else f"{n} = {t}" for n, t in pairs) + " }", _POSTFIX
            return (f"({inside[0]},)" if len(inside) == 1 else f"({', '.join(inside)})"), _POSTFIX
        if call.name == "list":
            return f"[{', '.join(inside)}]", _POSTFIX
        return f"{call.name}({', '.join(inside)})", _POSTFIX

    def _field(self, call: Call, depth: int) -> str:
        (record,), (index,) = call.arguments, call.attributes
        # an index that does not fit is shown too: in the error that refuses it
        names = record.type.names if isinstance(record.type, TupleOf) else ()
        name = names[index] if isinstance(index, int) and 0 <= index < len(names) else None
        text = self.write(record, _POSTFIX, depth)
        return f"{text}[{index}]" if name is None else f"{text}.{name}"
