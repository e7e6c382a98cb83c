"""The part of the reader that types and literals need: from tokens to numbers, strings and record types."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from wpinq.errors import ExpressionError
from wpinq.expr.types import (
    BOOL,
    DATE,
    DURATION,
    FLOAT,
    INT,
    STR,
    TIME,
    TIMESTAMP,
    ListOf,
    Type,
    category,
    decimal,
    record_type,
    tuple_type,
)
from wpinq.language.syntax import Literal
from wpinq.language.text import Text, shorten, suggest

DIGITS_LIMIT = 400
"""The most characters of a number."""

EXPONENT_LIMIT = 400
"""The largest decimal exponent of a number, of either sign; floats end at 308."""

SCALARS: dict[str, Type] = {type_.name: type_ for type_ in (INT, FLOAT, BOOL, STR, DATE, TIMESTAMP, TIME, DURATION)}


class TypeReader:
    """One method for each rule of the grammar that makes a type or a literal."""

    def __init__(self, text: Text) -> None:
        self.text = text

    # --- literals ---------------------------------------------------------------------------------------------------

    def number(self, token: Any) -> Literal:
        digits, _, exponent = token.lower().partition("e")
        if len(token) > DIGITS_LIMIT or abs(int(exponent or 0)) > EXPONENT_LIMIT:
            raise self.text.error(
                f"a number has at most {DIGITS_LIMIT} digits and an exponent of at most {EXPONENT_LIMIT}",
                token.start_pos,
            )
        whole = digits == token
        return Literal(token.start_pos, int(token) if whole and "." not in token else Fraction(str(token)))

    def string(self, token: Any) -> Literal:
        try:
            return Literal(token.start_pos, json.loads(token))
        except ValueError:
            raise self.text.error(
                'this string has an escape that is not one of \\" \\\\ \\n \\t \\r \\b \\f \\/ \\u0041; '
                "a backslash is written \\\\",
                token.start_pos,
            ) from None

    # --- types ------------------------------------------------------------------------------------------------------

    def named_type(self, name: Any) -> Type:
        if name in SCALARS:
            return SCALARS[name]
        raise self.text.error(
            f"there is no type `{shorten(name)}`; {suggest(name, [*SCALARS, 'list[T]'])}", name.start_pos
        )

    def applied_type(self, name: Any, opening: Any, *given: Any) -> Type:
        if name not in ("decimal", "category"):
            raise self.text.error(f'`{shorten(name)}` takes no `(`: decimal(2) and category("a") do', name.start_pos)
        if name == "decimal" and len(given) > 1:
            raise self.text.error("a decimal has one scale: decimal(2) has cents", name.start_pos)
        values: list[Any] = [self.number(t).value if t.type == "NUMBER" else self.string(t).value for t in given]
        return self._made(lambda: decimal(*values) if name == "decimal" else category(*values), name.start_pos)

    def list_type(self, name: Any, element: Type, bound: Any = None) -> Type:
        if name != "list":
            raise self.text.error(f"`{shorten(name)}` takes no `[`; a list is written list[T]", name.start_pos)
        most = None
        if bound is not None:
            number = self.number(bound).value
            if not isinstance(number, int) or number < 1:
                raise self.text.error("the most elements of a list is an integer, at least 1", bound.start_pos)
            most = number
        return self._made(lambda: ListOf(element, bound=most), name.start_pos)

    def tuple_type(self, opening: Any, *children: Any) -> Type:
        if len(children) == 1:  # parentheses only; one field is written (T,)
            only: Type = children[0]
            return only
        return self._made(lambda: tuple_type(c for c in children if isinstance(c, Type)), opening.start_pos)

    def nullable_type(self, type_: Type) -> Type:
        return type_.with_nullable()

    def named(self, name: Any, type_: Type) -> tuple[Any, Type]:
        return name, type_

    def named_types(self, *pairs: tuple[Any, Type]) -> Type:
        fields: dict[str, Type] = {}
        for name, type_ in pairs:
            if name in fields:
                raise self.text.error(f"the field `{shorten(name)}` is there twice; name them apart", name.start_pos)
            fields[str(name)] = type_
        return self._made(lambda: record_type(fields), pairs[0][0].start_pos)

    def _made(self, make: Callable[[], Type], position: int) -> Type:
        try:
            return make()
        except ExpressionError as error:
            raise self.text.error(str(error), position) from None
