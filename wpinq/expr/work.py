"""How much work a function can make of one record: static, from the bounds of its lists and the text it builds.

Counts are in proportion to what the record itself holds: a string or an unbounded list of the data counts as one. What
is left is what the query adds, so that no record costs more than its own size times a public number.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from wpinq.errors import ExpressionError
from wpinq.expr.definition import primitive_named
from wpinq.expr.nodes import Call, Constant, Expr, Lambda, Variable, below_first
from wpinq.expr.types import STR, ListOf, Scalar
from wpinq.expr.values import Value

CALLS_LIMIT = 1_000_000
"""The most calls that a function may have, with each function that is mapped written out where it is used."""


@dataclass(frozen=True, slots=True)
class CallWork:
    """What one call of a function may take.

    Attributes
    ----------
    steps : int
        Values and code points that it handles.
    text : int
        The longest string in what it gives.
    """

    steps: int
    text: int


@lru_cache(maxsize=4096)
def work(function: Lambda, texts: tuple[int, ...]) -> CallWork:
    """The work of a closed function of records whose longest strings are these.

    Raises
    ------
    ExpressionError
        When the function, with all that it maps written out, is too large to compile.
    """
    return _Measure().of_lambda(function.core, texts, {})


class _Measure:
    def __init__(self) -> None:
        self.calls = 0

    def of_lambda(self, function: Lambda, texts: tuple[int, ...], outer: dict[bytes, int]) -> CallWork:
        """Each distinct expression once; the functions that are mapped, where they are used."""
        known = dict(outer)
        for variable, text in zip(function.parameters, texts, strict=True):
            known[variable.digest] = text
        steps = 1
        for expr in below_first([function.body], _values_below, known):
            taken, known[expr.digest] = self.of_call(expr, known)
            steps += taken
        return CallWork(steps, known[function.body.digest])

    def of_call(self, expr: Expr, known: dict[bytes, int]) -> tuple[int, int]:
        self.calls += 1
        if self.calls > CALLS_LIMIT:
            raise ExpressionError(f"the function has more than {CALLS_LIMIT:,} calls, with what it maps written out")
        if isinstance(expr, Constant):
            return 1, _longest(expr.value)
        if not isinstance(expr, Call):
            assert isinstance(expr, Variable)
            return 1, 1
        sizes: list[int] = []
        texts: list[int] = []
        for argument in expr.arguments:
            if isinstance(argument, Lambda):  # of every element of the list before it
                inner = self.of_lambda(argument, (texts[-1],), known)
                sizes.append(inner.steps)
                texts.append(inner.text)
            else:
                sizes.append(_size(argument, known))
                texts.append(known[argument.digest])
        steps, text = primitive_named(expr.name).work(tuple(sizes), tuple(texts), expr.type)
        return max(1, steps), 0 if isinstance(expr.type, Scalar) and expr.type != STR else text


def _values_below(expr: Expr) -> list[Expr]:
    return [child for child in expr.children if not isinstance(child, Lambda)]


def _size(expr: Expr, known: dict[bytes, int]) -> int:
    """Elements of a list, code points of a string; what `split` gives has at most one element a code point, and one."""
    text = known[expr.digest]
    if isinstance(expr.type, ListOf):
        return max(1, text) if expr.type.bound is None else expr.type.bound
    return text if expr.type == STR else 0


def _longest(value: Value) -> int:
    """The longest string in a public value."""
    if isinstance(value, tuple):
        return max(map(_longest, value), default=0)
    return len(value) if isinstance(value, str) else 0
