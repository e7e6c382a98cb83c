"""Recognition of plans in which every item adds a known weight to its record.

A plan is the recipe of some edges if the recipe, applied to these, gives the very plan. The closed form then holds
where plan and declarations prove that the edges are as it needs them: of weight 1 each and, but for joint degrees, in
both directions.

Loops are edges to the vertex itself. A vertex of n neighbours, itself perhaps among them, has n edges in and n out, and
n(n − 1) paths over it whose ends differ; no path turned twice has a loop on it. So only squares need a graph without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import permutations

from wpinq.api.query import Query
from wpinq.errors import PlanError
from wpinq.expr.values import Value
from wpinq.graphs.recipes import check_edges, joint_degrees, squares_by_degree, triangles_by_degree
from wpinq.graphs.rescale import joint_degree_weight, square_weight, triangle_weight
from wpinq.plan.count_units import Counted
from wpinq.plan.node import Node, topological
from wpinq.plan.operators import Concat, Partition, Select, Source, Where
from wpinq.plan.properties import plan_properties
from wpinq.sinks.answer_kinds import ClosedForm


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
