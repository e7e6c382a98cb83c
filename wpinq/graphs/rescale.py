"""Counts from released weights, where a recipe has a closed form, and the noise on them.

A recipe with a closed form gives every item of a record (edge, triangle, square) the same weight, which the record
itself tells. A released weight divided by it is an unbiased count, its noise divided likewise. All of this reads
released numbers only and costs no privacy.

A record is given as the degrees in it: as many integers as the name says, each no less than it can be (2 of a vertex of
a triangle or square and of the middle of a path, 1 of the end of an edge), else PlanError.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import permutations
from typing import SupportsIndex

from wpinq.api.query import Query
from wpinq.errors import PlanError
from wpinq.expr.values import Value
from wpinq.graphs.recipes import check_edges, joint_degrees, squares_by_degree, triangles_by_degree
from wpinq.noise.epsilon import parse_epsilon
from wpinq.plan.count_units import Counted
from wpinq.plan.node import Node, topological
from wpinq.plan.operators import Concat, Partition, Select, Source, Where
from wpinq.plan.properties import plan_properties
from wpinq.sinks.answer_kinds import ClosedForm

NODE_WEIGHT = Fraction(1, 2)
"""What a node weighs in `nodes` and in `degrees`."""


def path_weight(middle: SupportsIndex) -> Fraction:
    """What a path weighs in `paths`: `1/(2·d_b)`, d_b the degree of its middle vertex.

    Examples
    --------
    >>> path_weight(3)
    Fraction(1, 6)
    """
    (degree,) = _degrees((middle,), 1, least=2, of="the middle of a path")
    return Fraction(1, 2 * degree)


def joint_degree_weight(degrees: Sequence[SupportsIndex]) -> Fraction:
    """What a directed edge adds in `joint_degrees`: `1/(2 + 2·d_a + 2·d_b)` (paper, equation (3)).

    Examples
    --------
    >>> joint_degree_weight((1, 2))
    Fraction(1, 8)
    """
    a, b = _degrees(degrees, 2, least=1, of="an end of an edge")
    return Fraction(1, 2 + 2 * a + 2 * b)


def triangle_weight(degrees: Sequence[SupportsIndex]) -> Fraction:
    """What a triangle adds in `triangles_by_degree` with `bucket=1`: `3/(x² + y² + z²)` (paper, equation (4)).

    Examples
    --------
    >>> triangle_weight((2, 2, 3))
    Fraction(3, 17)
    """
    x, y, z = _degrees(degrees, 3, least=2, of="a vertex of a triangle")
    return Fraction(3, x * x + y * y + z * z)


def square_weight(degrees: Sequence[SupportsIndex]) -> Fraction:
    """What a square adds in `squares_by_degree`.

    `2/(f(b,c) + f(d,a)) + 2/(f(a,b) + f(c,d))` with `f(p, q) = p²(q − 1) + q²(p − 1)`   (after paper, equation (6))

    The degrees are in order around the square, in any of the eight ways to write it.

    Examples
    --------
    >>> square_weight((2, 2, 5, 7)), square_weight((2, 5, 2, 7))
    (Fraction(26, 1121), Fraction(2, 57))
    """
    a, b, c, d = _degrees(degrees, 4, least=2, of="a vertex of a square")

    def f(p: int, q: int) -> int:
        return p * p * (q - 1) + q * q * (p - 1)

    return Fraction(2, f(b, c) + f(d, a)) + Fraction(2, f(a, b) + f(c, d))


def nodes_from_weight(weight: float) -> float:
    """The number of nodes behind a weight released from `nodes` or `degrees`: its double.

    Examples
    --------
    >>> nodes_from_weight(2620.5)
    5241.0
    """
    return weight / float(NODE_WEIGHT)


def edges_from_joint_degrees(weight: float, degrees: Sequence[SupportsIndex]) -> float:
    """The number of directed edges behind a weight released from `joint_degrees`: `weight · (2 + 2·d_a + 2·d_b)`.

    For undirected edges between degrees i ≠ j average `(i, j)` and `(j, i)`; for i = j halve.

    Examples
    --------
    >>> edges_from_joint_degrees(0.25, (1, 2))
    2.0
    """
    return weight / float(joint_degree_weight(degrees))


def triangles_from_weight(weight: float, degrees: Sequence[SupportsIndex]) -> float:
    """The number of triangles behind a weight released from `triangles_by_degree` with `bucket=1`.

    Examples
    --------
    >>> triangles_from_weight(0.5, (2, 2, 2))
    2.0
    """
    return weight / float(triangle_weight(degrees))


def squares_from_weight(weight: float, degrees: Sequence[SupportsIndex]) -> float:
    """The number of squares behind a weight released from `squares_by_degree`.

    Examples
    --------
    >>> squares_from_weight(0.5, (2, 2, 2, 2))
    2.0
    """
    return weight / float(square_weight(degrees))


def count_noise_scale(item_weight: Fraction, epsilon: object, uses: int = 1) -> Fraction:
    """The scale of the Laplace noise on a count that was rescaled from a weight: `uses / (ε · item_weight)`.

    Parameters
    ----------
    item_weight : Fraction
        What one item adds to its record, more than 0: `triangle_weight(record)` and its like.
    epsilon : number
        More than 0: the epsilon of the NoisyCount; or, with `uses`, the whole cost to the source.
    uses : int
        The uses of the source that epsilon pays for: `query.uses()`; 1 where epsilon is that of the NoisyCount.

    Returns
    -------
    Fraction
        Exact, but for the slack for floating-point error that a session adds (parts in 10⁶ or less).

    Raises
    ------
    EpsilonError
        When epsilon is not a positive finite number.
    PlanError
        When item_weight is not more than 0, or uses is not an integer of at least 1.

    Notes
    -----
    From undirected edges this is the paper's Theorem 2, `6(x² + y² + z²)/ε` (18 uses), and at most its Theorem 3,
    `6(vx(v + x) + yz(y + z))/ε` for degrees v ≤ x ≤ y ≤ z (24 uses).

    Examples
    --------
    >>> count_noise_scale(triangle_weight((2, 3, 4)), epsilon=1, uses=18) == 6 * (2**2 + 3**2 + 4**2)
    True
    """
    if isinstance(uses, bool) or not isinstance(uses, int) or uses < 1:
        raise PlanError(f"uses must be an integer of at least 1, not {uses!r}")
    if not item_weight > 0:
        raise PlanError("item_weight must be more than 0: take it from triangle_weight(record) or its like")
    return uses / (parse_epsilon(epsilon) * Fraction(item_weight))


def _degrees(given: Sequence[SupportsIndex], count: int, least: int, of: str) -> list[int]:
    try:
        degrees = [operator.index(degree) for degree in given]
    except TypeError:
        degrees = []
    if len(degrees) != count or min(degrees) < least:
        number = "one integer" if count == 1 else f"{count} integers"
        raise PlanError(f"expected {number} of at least {least}: the degree of {of} is no less; got {given!r}")
    return degrees


# --- recognition of plans with a closed form --------------------------------------------------------------------------


def closed_form(plan: Node) -> ClosedForm | None:
    """What one item adds to each record of a plan, where it is a recipe with a closed form, or a part of one."""
    while isinstance(plan.operator, (Where, Partition)):  # a record stays, with its weight, or goes
        plan = plan.inputs[0]
    for node in topological([plan]):
        for recipe, form in _forms(node):
            if recipe(Query(node)).plan == plan:
                return form
    return None


def _forms(edges: Node) -> Iterator[tuple[Callable[[Query], Query], ClosedForm]]:
    """The recipes whose closed form holds for these edges, if edges they are."""
    try:
        check_edges(Query(edges))
    except PlanError:
        return
    found = plan_properties(edges).counted
    if isinstance(found, Counted) and found.even and found.factor == 1:
        yield joint_degrees, _JOINT_DEGREES
        made = _made_symmetric(edges)
        if made or (isinstance(edges.operator, Source) and "symmetric" in edges.operator.facts):
            yield triangles_by_degree, _TRIANGLES
        if made:  # of weight 1 also where both sides meet: the source is simple
            yield squares_by_degree, _SQUARES


def _made_symmetric(edges: Node) -> bool:
    """Whether they are some edges and the reverse of these, in whatever order and notation."""
    if not isinstance(edges.operator, Concat):
        return False
    return any(
        isinstance(other.operator, Select) and other.inputs == (once,) and other.operator.reverses
        for once, other in permutations(edges.inputs)
    )


def _known(weight: Callable[[Value], Fraction]) -> Callable[[Value], Fraction | None]:
    def at(key: Value) -> Fraction | None:
        try:
            return weight(key)
        except PlanError:  # degrees that no item can have
            return None

    return at


_JOINT_DEGREES = ClosedForm(
    "directed edges between these degrees whose reverse is there", "1/(2 + 2i + 2j)", _known(joint_degree_weight)
)
_TRIANGLES = ClosedForm("triangles of these degrees", "3/(x² + y² + z²)", _known(triangle_weight))
_SQUARES = ClosedForm(
    "squares of these degrees",
    "2/(f(b,c) + f(d,a)) + 2/(f(a,b) + f(c,d)), f(p,q) = p²(q−1) + q²(p−1),",
    _known(square_weight),
)
