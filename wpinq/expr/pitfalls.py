"""Warnings about the few things that Python does to a symbol without asking it, and about pieces taken backwards.

`e.x is None`, `isinstance(e, …)` and `e.x in (…)`-like tests on identity give an ordinary bool while the lambda
is traced, and so vanish silently from the query. Where the source of the lambda can be read, we look for them.

A lambda of two parameters over pieces, as Shave makes them, takes the record first and its index second. The paper's
listing of nodes has them the other way around; where nodes are numbers, it runs and answers nonsense.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from wpinq.errors import ExpressionError, warn
from wpinq.expr.nodes import Call, Constant, Expr, walk
from wpinq.expr.types import INT, TupleOf

SOURCE_LIMIT = 1000
"""How many characters of a lambda are searched; beyond it the warning is a general one."""

_GENERAL = (
    "this lambda tests identity, membership or a Python type, which is decided while the query is written, "
    "not for each record: use wp.is_null(x), == and wp.cast"
)


def warn_about(function: Callable[..., Any]) -> None:
    """Warn of what tracing cannot see in a lambda, where its source can be read."""
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(function, "__code__", None)
    if code is None or not _mentions_trap(code):
        return
    found = dict.fromkeys(message for tree in _sources(function) for message in _traps_in(tree))
    for message in found or (_GENERAL,):
        warn(message)


PIECE = ("record", "index")
"""The fields of a piece of Shave, in order."""
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
    """Warn of a lambda over pieces that compares the record with a number, and does not look at the index."""
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
        told = _SWAPPED.format(names[0], ", and compared with a number; if the index is meant")
        warn(told)


def _mentions_trap(code: Any) -> bool:
    """A cheap look at the byte code, so that source is read only where there may be something to find."""
    if "isinstance" in code.co_names or "type" in code.co_names:
        return True
    import dis

    return any(
        instruction.opname in ("IS_OP", "CONTAINS_OP") or "NONE" in instruction.opname
        for instruction in dis.get_instructions(code)
    )


def _sources(function: Callable[..., Any]) -> Iterator[ast.AST]:
    """The syntax of a function; of a lambda, what can be made of the lines on which it is written."""
    try:
        source = textwrap.dedent(inspect.getsource(function))
        if function.__code__.co_name != "<lambda>":
            yield ast.parse(source)
            return
    except (OSError, TypeError, SyntaxError):
        return
    for start in (match.start() for match in re.finditer(r"\blambda\b", source[:SOURCE_LIMIT])):
        for end in range(min(len(source), start + SOURCE_LIMIT), start, -1):
            try:  # the rest of the line belongs to the call around the lambda: the longest part that can be read is it
                yield ast.parse(source[start:end], mode="eval")
            except SyntaxError:
                continue
            break


def _traps_in(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and any(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
            yield f"`{ast.unparse(node)}` is decided while the query is written: use wp.is_null(x) or =="
        elif isinstance(node, ast.Compare) and any(isinstance(op, (ast.In, ast.NotIn)) for op in node.ops):
            yield f"`{ast.unparse(node)}` is decided while the query is written: combine == with |"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "type"):
            yield f"`{ast.unparse(node)}` is decided while the query is written: types are known from the schema"
