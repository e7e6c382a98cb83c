"""Functions of strings."""

from __future__ import annotations

from typing import Any

from wpinq.expr.build import call, constant
from wpinq.expr.catalogue import null_if_any
from wpinq.expr.declare import derived, primitive
from wpinq.expr.definition import TEXT_LIMIT, Amount, Types, TypingRule, any_null, expect, handled, strict
from wpinq.expr.nodes import Expr
from wpinq.expr.types import INT, STR, ListOf, Type
from wpinq.expr.values import Value


def _text(result: Type, *parameters: Type) -> TypingRule:
    def typing(types: Types, attributes: object) -> Type:
        for type_, expected in zip(types, parameters, strict=True):
            expect((type_,), expected, what=f"expected {expected}")
        return result.with_nullable(any_null(types))

    return typing


def _concatenated(types: Types, attributes: object) -> Type:
    return _text(STR, STR, STR)(types, ()).with_nullable()


def _within_limit(a: str, b: str) -> Value:
    return a + b if len(a) + len(b) <= TEXT_LIMIT else None


def _both(sizes: tuple[Amount, ...], texts: tuple[Amount, ...], given: Type) -> tuple[Amount, Amount]:
    text = sum(texts, Amount()).capped(TEXT_LIMIT)
    return 1 + text, text


_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


def _part(text: str, start: int, length: int) -> Value:
    return text[max(0, start) : max(0, start, start + length)]


def _pieces(types: Types, attributes: object) -> Type:
    return ListOf(STR, nullable=_text(STR, STR, STR)(types, ()).nullable)


@primitive(_concatenated, strict(_within_limit), work=_both)
def concatenate(a: object, b: object) -> Any:
    """`a + b` of two strings."""


@primitive(_text(INT, STR, STR), strict(lambda text, part: text.find(part)), work=handled)
def find(text: object, part: object) -> Any:
    """The position of the first occurrence of `part`, from 0, or -1."""


@primitive(_text(STR, STR), strict(lambda text: text.translate(_LOWER)), work=handled)
def lower(text: object) -> Any:
    """The string with A to Z in lower case; other letters stay, so that every engine agrees."""


@primitive(_text(STR, STR, INT, INT), strict(_part), work=handled)
def substring(text: object, start: object, length: object) -> Any:
    """At most `length` code points of the string from position `start`, counted from 0."""


@primitive(_pieces, strict(lambda text, by: tuple(text.split(by)) if by else (text,)), work=handled)
def split(text: object, separator: object) -> Any:
    """The pieces of a string between separators; the whole string for an empty separator."""


def _starts_with(text: Expr, prefix: Expr) -> Expr:
    head = call("substring", text, constant(0), call("length", prefix))
    return null_if_any((text, prefix), call("equal", head, prefix))


@derived(lambda text, part: call("not", call("less", call("find", text, part), constant(0))))
def contains(text: object, part: object) -> Any:
    """Whether `part` occurs in the string."""


@derived(_starts_with)
def starts_with(text: object, prefix: object) -> Any:
    """Whether the string begins with `prefix`."""
