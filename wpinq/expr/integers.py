"""Arithmetic on expressions, as rules of derived functions write it: Python numbers stand for constants."""

from __future__ import annotations

from wpinq.expr.build import call, constant
from wpinq.expr.nodes import Expr


def _expr(value: Expr | float | str | None) -> Expr:
    return value if isinstance(value, Expr) else constant(value)


def plus(a: Expr | float, b: Expr | float) -> Expr:
    """`a + b`; null beyond 64 bits, as all that follow."""
    return call("add", _expr(a), _expr(b))


def minus(a: Expr | float, b: Expr | float) -> Expr:
    """`a - b`."""
    return call("subtract", _expr(a), _expr(b))


def times(a: Expr | float, b: Expr | float) -> Expr:
    """`a * b`."""
    return call("multiply", _expr(a), _expr(b))


def over(a: Expr | float, b: Expr | float) -> Expr:
    """`⌊a / b⌋`."""
    return call("floor_divide", _expr(a), _expr(b))


def rest(a: Expr | float, b: Expr | float) -> Expr:
    """`a - b * ⌊a / b⌋`."""
    return call("modulo", _expr(a), _expr(b))


def below(a: Expr | float, b: Expr | float) -> Expr:
    """Whether `a < b`."""
    return call("less", _expr(a), _expr(b))


def same(a: Expr | float, b: Expr | float) -> Expr:
    """Whether `a == b`."""
    return call("equal", _expr(a), _expr(b))


def both(a: Expr, b: Expr) -> Expr:
    """Whether two conditions hold."""
    return call("and", a, b)


def no(condition: Expr) -> Expr:
    """Whether a condition does not hold."""
    return call("not", condition)


def choose(condition: Expr, yes: Expr | float | str | None, other: Expr | float | str | None) -> Expr:
    """`yes` where the condition holds, else `other`."""
    return call("where", condition, _expr(yes), _expr(other))


def least(a: Expr | float, b: Expr | float) -> Expr:
    """The smaller of two numbers of which neither is null."""
    return choose(below(a, b), a, b)


def within(value: Expr, low: int, high: int) -> Expr:
    """The number where it lies between two others, these included; else null."""
    return choose(both(no(below(value, low)), no(below(high, value))), value, None)


def even_quotient(a: Expr | float, b: Expr | float) -> Expr:
    """The integer nearest to `a / b`; of two, the even one. Null where b is 0 or -2⁶³."""
    a, b = _expr(a), _expr(b)
    quotient, left = over(a, b), rest(a, b)
    # left has the sign of b and is less than it: the halves are compared without doubling, which could overflow
    missing = minus(b, left)
    negative = below(b, 0)
    nearer = choose(negative, below(left, missing), below(missing, left))
    odd = same(rest(quotient, 2), 1)
    up = choose(same(left, missing), odd, nearer)
    return choose(call("is_null", missing), None, choose(up, plus(quotient, 1), quotient))
