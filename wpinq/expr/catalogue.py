"""The functions and operators that queries can name, in Python and in text alike, by name.

Each takes expressions and gives an expression. Functions enter themselves where they are defined, with `declare`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from wpinq.errors import ExpressionError
from wpinq.expr.build import call, record
from wpinq.expr.definition import CallAttributes
from wpinq.expr.infix import arithmetic, compare, divide, either, floor_divide, less, modulo, negate
from wpinq.expr.nodes import Expr


@dataclass(frozen=True, slots=True)
class Function:
    """What a name means: how to build it, how many arguments it takes, and whether one of them is a function.

    A function argument is always the second and is applied to the elements of the first, a list.
    """

    build: Callable[..., Expr]
    least: int
    most: int
    takes_function: bool = False


FUNCTIONS: dict[str, Function] = {}
"""Every function that a query can name, besides operators, records and field access."""


_BETWEEN: dict[str, Callable[..., Expr]] = {
    "and": partial(call, "and"),
    "floor_divide": floor_divide,
    "modulo": modulo,
    **{name: partial(arithmetic, name) for name in ("add", "subtract", "multiply")},
    **{name: partial(compare, name) for name in ("equal", "not_equal", "greater", "less_equal", "greater_equal")},
    "divide": divide,
    "less": less,
    "less_record": less,
    "or": either,
}
_BEFORE: dict[str, Callable[..., Expr]] = {"not": partial(call, "not"), "negate": negate}
OPERATORS: dict[str, Function] = {
    **{name: Function(build, 2, 2) for name, build in _BETWEEN.items()},
    **{name: Function(build, 1, 1) for name, build in _BEFORE.items()},
}
"""What is written between two values, or before one."""


def apply(name: str, *arguments: Expr) -> Expr:
    """The function or operator of this name on these arguments, or ExpressionError."""
    function = FUNCTIONS.get(name) or OPERATORS[name]
    if not function.least <= len(arguments) <= function.most:
        wanted = str(function.least) if function.least == function.most else f"{function.least} to {function.most}"
        raise ExpressionError(f"{name} takes {wanted} argument(s), not {len(arguments)}")
    return function.build(*arguments)


def rebuild(name: str, arguments: tuple[Expr, ...], attributes: CallAttributes = ()) -> Expr:
    """The call of this name on these arguments, however it was written first."""
    if name == "record":
        return record(tuple(None if n is None else str(n) for n in attributes), arguments)
    if name == "field":
        return call(name, *arguments, attributes=attributes)
    if name not in FUNCTIONS and name not in OPERATORS:
        raise ExpressionError(f"there is no function {name!r}")
    return apply(name, *arguments)
