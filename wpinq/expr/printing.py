"""Expressions as text, in the notation of the paper: what error messages, explain and printed programs show."""

from __future__ import annotations

import datetime
import json
import re
from decimal import Decimal

from wpinq.expr.logical_values import to_text
from wpinq.expr.nodes import Call, Constant, Expr, Lambda, Variable
from wpinq.expr.types import CategoryOf, DecimalOf, ListOf, Logical, TupleOf, Type

DEPTH_LIMIT = 100
"""How deep expressions may nest in text, read or printed."""

SIZE_LIMIT = 20_000
"""The most parts that an expression may have as text, where what is shared is written out each time."""

RESERVED = frozenset({"new", "true", "false", "null"})
"""Words of the notation that cannot name a variable."""

INFIX = {
    "or": ("||", 2),
    "and": ("&&", 3),
    "equal": ("==", 4),
    "not_equal": ("!=", 4),
    "less": ("<", 5),
    "less_record": ("<", 5),
    "less_equal": ("<=", 5),
    "greater": (">", 5),
    "greater_equal": (">=", 5),
    "add": ("+", 6),
    "subtract": ("-", 6),
    "concatenate": ("+", 6),
    "multiply": ("*", 7),
    "divide": ("/", 7),
    "floor_divide": ("/", 7),  # between ints, as in the paper; `//` starts a comment
    "modulo": ("%", 7),
}
"""Name of an operator -> its sign, and how close it binds. The first of several with one sign is what is read."""
_TERNARY, _UNARY, _POSTFIX = 1, 8, 9


class TooDeep(Exception):
    """The expression nests deeper, or is longer, than text may."""


def show(expr: Expr) -> str:
    """The expression for people: what nests too deep is cut to an ellipsis."""
    try:
        text = write(expr)
    except TooDeep:
        return "…"
    return text if len(text) <= 200 else text[:197] + "…"


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
    if isinstance(value, str):
        return quote(value)
    return repr(value)


def write_value(value: object) -> str:
    """A public value for people: a literal, but dates, decimals and durations as Python writes them."""
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
            symbol, strength = INFIX[call.name]
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
