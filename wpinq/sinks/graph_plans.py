"""Plans whose output is a graph of undirected edges, in such a way that one record of the source decides on one edge.

The graph of a plan has an edge {a, b}, a ≠ b, where (a, b) or (b, a) has a weight. Above a source of weights 1, Where
keeps or drops a record, a Select that exchanges the two fields (or does nothing) makes (b, a) of (a, b), and Concat and
Union put two such datasets together, as a source with its own reverse. By induction, what there is of (a, b) and (b, a)
at any step is a function of what there is of these two in the source. So a change of k records changes at most k edges,
and at most k/2 where the source is symmetric, for then both records of an edge change together.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from wpinq.errors import PlanError
from wpinq.expr.nodes import Call, Expr, Lambda, Variable
from wpinq.expr.types import TupleOf
from wpinq.expr.values import Value
from wpinq.plan.node import Node, topological
from wpinq.plan.operators import Concat, Select, Source, Union, Where


def edge_source(plan: Node, name: str) -> Node:
    """The source of a plan whose output is a graph of undirected edges; PlanError, for `name`, where it is none."""
    found: list[Node] = []
    for node in topological([plan]):
        operator = node.operator
        if isinstance(operator, Source):
            _check_source(node, name)
            found.append(node)
        elif isinstance(operator, Select):
            if not _permutes(operator.function):
                raise PlanError(
                    f"{name}: a Select before it may exchange the two ends of an edge and do no more, so that one "
                    "record is one edge: declare a source whose records are the two ends"
                )
        elif not isinstance(operator, (Where, Concat, Union)):
            raise PlanError(
                f"{name} counts over the edges of a source, after Where, a Select that exchanges their ends, and "
                f"Concat or Union with its own reverse; {operator.name} is none of these: leave it out, or release "
                "weights with noisy_count"
            )
    if len(found) != 1:
        names = ", ".join(node.operator.source for node in found if isinstance(node.operator, Source))
        raise PlanError(
            f"{name} counts over the edges of one source, not of {names}: protect their edges as one source"
        )
    return found[0]


def uses_of_an_edge(source: Source) -> Fraction:
    """How many edges a unit of weight of the source is: half of one where both directions change together."""
    return Fraction(1, 2) if "symmetric" in source.facts else Fraction(1)


def edges_of(weights: Mapping[Value, Any]) -> list[Value]:
    """The records that have a weight, among integers that an engine computed to within less than 1/2."""
    return [record for record, weight in weights.items() if weight > 0.5]


def _check_source(node: Node, name: str) -> None:
    source, type_ = node.operator, node.type
    assert isinstance(source, Source)
    if not (isinstance(type_, TupleOf) and len(type_.elements) == 2 and type_.elements[0] == type_.elements[1]):
        raise PlanError(
            f"{name} counts over a source of edges: its records are two fields of one type, such as "
            f"(src: int, dst: int), not {type_}"
        )
    if "unit_weights" not in source.facts:
        raise PlanError(
            f'{name} needs records that are there or not: declare facts=["unit_weights"] for the source '
            f"{source.source!r}, in text with facts = [unit_weights]"
        )


def _permutes(function: Lambda) -> bool:
    """Whether a function of a record of two fields gives the record as it is, or with its fields exchanged."""
    body = function.body.core
    if isinstance(body, Variable):
        return True
    if not (isinstance(body, Call) and body.name == "record" and len(body.arguments) == 2):
        return False
    return sorted(map(_field, body.arguments)) == [0, 1]


def _field(expr: Expr) -> int:
    """Which field of the record an expression is, or −1."""
    taken = isinstance(expr, Call) and expr.name == "field" and isinstance(expr.arguments[0], Variable)
    return int(expr.attributes[0] or 0) if taken and isinstance(expr, Call) else -1
