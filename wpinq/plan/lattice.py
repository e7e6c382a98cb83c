"""The lattice of a plan: a public rational g such that every output weight is a multiple of it, for all data.

Static, from the plan and the facts that its sources declare. Where it exists, noise may be drawn on the multiples of
g instead of the reals; its promise is then for neighbours that keep the facts, which are on the same lattice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from wpinq.errors import PlanError
from wpinq.expr.nodes import Call, Constant, Expr, Lambda
from wpinq.expr.printing import show
from wpinq.expr.types import ListOf, Weighted
from wpinq.plan.node import Node, topological
from wpinq.plan.operators import (
    Concat,
    Except,
    GroupBy,
    Intersect,
    Partition,
    Select,
    SelectMany,
    Shave,
    Source,
    Union,
    Where,
)

_LONGEST = 64
"""The longest list of a length that depends on the record: the lattice is divided by the lcm of 1 … that."""
_SHOWN = 200
"""The most characters of a function in an error: its tables may hold millions."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A step whose output lies on no lattice that the plan proves, and why."""

    step: str
    reason: str


def lattice(root: Node) -> Fraction | None:
    """The largest g that the plan proves to divide every output weight, or None.

    Sources with the fact "unit_weights" have 1. Select, Where, Partition keep g; Concat, Except, Union and Intersect
    have the common divisor of their inputs; Shave that of g and its widths; GroupBy has g/2; SelectMany g over
    the norm of its list. Join divides by norms of the data: none.

    Parameters
    ----------
    root : Node
        The plan.

    Returns
    -------
    Fraction or None
        More than 0.

    Notes
    -----
    Privacy cost: none. It depends on the plan and the declarations of its sources alone.

    Examples
    --------
    >>> import wpinq as wp
    >>> items = wp.source("items", group=int, facts=["unit_weights"])
    >>> lattice(items.group_by(lambda r: r.group, lambda g: wp.count(g)).plan)
    Fraction(1, 2)
    >>> lattice(wp.source("weights", int).plan) is None
    True
    """
    found = _analyse(root)
    return None if isinstance(found, Broken) else found


def require_lattice(root: Node) -> Fraction:
    """The lattice of a plan; PlanError names the step that breaks it.

    Examples
    --------
    >>> import wpinq as wp
    >>> items = wp.source("items", group=int)
    >>> require_lattice(items.plan)
    Traceback (most recent call last):
    ...
    wpinq.errors.PlanError: no lattice of weights is proven: Source(items) may hold any weights; declare \
facts=["unit_weights"], or use Laplace noise
    """
    found = _analyse(root)
    if isinstance(found, Broken):
        raise PlanError(f"no lattice of weights is proven: {found.step} {found.reason}, or use Laplace noise")
    return found


def _analyse(root: Node) -> Fraction | Broken:
    known: dict[bytes, Fraction | Broken] = {}
    for node in topological([root]):
        inputs: list[Fraction] = []
        broken: Broken | None = None
        for child in node.inputs:
            below = known[child.digest]
            if isinstance(below, Broken):
                broken = broken or below
            else:
                inputs.append(below)
        known[node.digest] = _step(node, inputs) if broken is None else broken
    return known[root.digest]


def _step(node: Node, inputs: list[Fraction]) -> Fraction | Broken:
    operator = node.operator
    if isinstance(operator, Source):
        if "unit_weights" in operator.facts:
            return Fraction(1)
        return Broken(f"Source({operator.source})", 'may hold any weights; declare facts=["unit_weights"]')
    if isinstance(operator, (Select, Where, Partition)):
        return inputs[0]
    if isinstance(operator, (Concat, Except, Union, Intersect)):
        return common_divisor(*inputs)
    if isinstance(operator, GroupBy):
        return inputs[0] / 2
    if isinstance(operator, Shave):
        if not isinstance(operator.widths, Lambda):
            return common_divisor(inputs[0], Fraction(operator.widths))
        return _varying_widths(operator.widths, inputs[0])
    if isinstance(operator, SelectMany):
        share = _share(operator)
        return share if isinstance(share, Broken) else inputs[0] * share
    return Broken(operator.name, "divides by norms of the data; leave it out")


def common_divisor(*numbers: Fraction) -> Fraction:
    """The largest rational that divides all: `gcd(a/b, c/d) = gcd(ad, cb)/(bd)`.

    Examples
    --------
    >>> common_divisor(Fraction(1, 2), Fraction(3, 4))
    Fraction(1, 4)
    """
    denominator = math.lcm(*(number.denominator for number in numbers))
    return Fraction(math.gcd(*(int(number * denominator) for number in numbers)), denominator)


def _shown(function: Lambda) -> str:
    text = show(function)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} …"


def _varying_widths(widths: Lambda, below: Fraction) -> Fraction | Broken:
    step = f"Shave({_shown(widths)})"
    items = _listed(widths.body.core)
    values = None if items is None else [_values(item) for item in items]
    if values is None or any(value is None for value in values):
        return Broken(step, "cuts by widths that depend on the record; give constants")
    positive = [width for value in values if value is not None for width in value if width > 0]
    return common_divisor(below, *positive)


def _share(operator: SelectMany) -> Fraction | Broken:
    """What divides every coefficient of a SelectMany: elements over their norm."""
    function = operator.function
    step = f"SelectMany({_shown(function)})"
    assert isinstance(function.type, ListOf)
    items = _listed(function.body.core)
    if not isinstance(function.type.element, Weighted):
        if items is not None:
            return Fraction(1, max(1, min(len(items), operator.bound)))
        if operator.bound <= _LONGEST:
            return Fraction(1, math.lcm(*range(1, max(2, operator.bound + 1))))
        return Broken(step, f"divides by lengths up to {operator.bound}; give a limit of at most {_LONGEST}")
    if items is None:
        return Broken(step, "has weights in a list whose elements depend on the record; write the list in place")
    return _weighted_share(items[: operator.bound], step)


def _weighted_share(items: tuple[Expr, ...], step: str) -> Fraction | Broken:
    sizes: list[Fraction] = []
    signed = False
    for item in items:
        values = _values(item.arguments[1]) if isinstance(item, Call) and item.name == "weighted" else None
        magnitudes = set() if values is None else {abs(value) for value in values}
        if len(magnitudes) != 1:
            return Broken(step, "has weights that depend on the record beyond their sign; make them constants")
        signed = signed or any(value < 0 for value in values or ())
        sizes.append(magnitudes.pop())
    if signed and not _distinct([item.arguments[0] for item in items if isinstance(item, Call)]):
        return Broken(step, "may merge elements of opposite sign; tell its records apart by a constant field")
    nonzero = [size for size in sizes if size]
    if not nonzero:
        return Fraction(1)
    return common_divisor(*nonzero) / max(Fraction(1), sum(nonzero, Fraction(0)))


def _listed(body: Expr) -> tuple[Expr, ...] | None:
    """The elements of a list written in place."""
    if isinstance(body, Constant) and isinstance(body.type, ListOf):
        return None if body.value is None else tuple(Constant(body.type.element, item) for item in body.value)
    if isinstance(body, Call) and body.name == "list" and not body.type.nullable:
        return body.arguments
    return None


def _values(expr: Expr) -> set[Fraction] | None:
    """The finitely many numbers that an expression can be, from its constants; None where that does not show."""
    if isinstance(expr, Constant):
        return None if isinstance(expr.value, (bool, str, tuple)) or expr.value is None else {Fraction(expr.value)}
    if isinstance(expr, Call) and expr.name == "where":
        yes, no = _values(expr.arguments[1]), _values(expr.arguments[2])
        return None if yes is None or no is None else yes | no
    if isinstance(expr, Call) and expr.name == "to_float":
        return _values(expr.arguments[0])
    return None


def _distinct(records: list[Expr]) -> bool:
    """Whether a field holds another constant in every record."""
    if not all(isinstance(record, Call) and record.name == "record" for record in records):
        return False
    columns = zip(*(record.children for record in records), strict=False)
    return any(
        all(isinstance(field, Constant) for field in column) and len({field.digest for field in column}) == len(records)
        for column in columns
    )
