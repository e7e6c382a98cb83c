"""The functions and operators that queries can name, in Python and in text alike, by name.

Each takes expressions and gives an expression. Functions enter themselves where they are defined, with `declare`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from wpinq.errors import ExpressionError
from wpinq.expr.build import arithmetic, call, compare, divide, either, equal, less, negate, not_equal, record
from wpinq.expr.definition import Attributes
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


def apply(name: str, *arguments: Expr) -> Expr:
    """The function of this name on these arguments, or ExpressionError."""
    function = FUNCTIONS[name]
    if not function.least <= len(arguments) <= function.most:
        wanted = str(function.least) if function.least == function.most else f"{function.least} to {function.most}"
        raise ExpressionError(f"{name} takes {wanted} argument(s), not {len(arguments)}")
    return function.build(*arguments)


OPERATORS: dict[str, Callable[..., Expr]] = {
    **{name: partial(call, name) for name in ("and", "not", "floor_divide", "modulo")},
    **{name: partial(arithmetic, name) for name in ("add", "subtract", "multiply")},
    **{name: partial(compare, name) for name in ("greater", "less_equal", "greater_equal")},
    "divide": divide,
    "negate": negate,
    "equal": equal,
    "not_equal": not_equal,
    "less": less,
    "less_record": less,
    "or": either,
}
"""What is written between two values, or before one."""


def operate(name: str, *arguments: Expr) -> Expr:
    """The operator of this name on these arguments, or ExpressionError."""
    wanted = 1 if name in ("not", "negate") else 2
    if len(arguments) != wanted:
        raise ExpressionError(f"{name} takes {wanted} argument(s), not {len(arguments)}")
    return OPERATORS[name](*arguments)


def rebuild(name: str, arguments: tuple[Expr, ...], attributes: Attributes = ()) -> Expr:
    """The call of this name on these arguments, however it was written first."""
    if name == "record":
        return record(tuple(None if n is None else str(n) for n in attributes), arguments)
    if name == "field":
        return call(name, *arguments, attributes=attributes)
    if name in FUNCTIONS:
        return apply(name, *arguments)
    if name in OPERATORS:
        return operate(name, *arguments)
    raise ExpressionError(f"there is no function {name!r}")
