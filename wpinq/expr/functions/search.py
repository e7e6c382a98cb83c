"""Functions that look for a string in another."""

from __future__ import annotations

from typing import Any

from wpinq.expr.build import call, constant
from wpinq.expr.declare import derived
from wpinq.expr.infix import null_if_any
from wpinq.expr.nodes import Expr


def _contains(text: Expr, part: Expr) -> Expr:
    return call("not", call("less", call("find", text, part), constant(0)))


def _starts_with(text: Expr, prefix: Expr) -> Expr:
    head = call("substring", text, constant(0), call("length", prefix))
    return null_if_any((text, prefix), call("equal", head, prefix))


@derived(_contains)
def contains(text: object, part: object) -> Any:
    """Whether `part` occurs in the string."""


@derived(_starts_with)
def starts_with(text: object, prefix: object) -> Any:
    """Whether the string begins with `prefix`."""
